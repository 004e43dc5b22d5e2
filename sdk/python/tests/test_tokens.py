"""A server that asks for tokens."""

import subprocess
from pathlib import Path

import pytest
from conftest import BINARY, ENVIRONMENT, Server
from running import make_worker

import windlass
from windlass import Client


def test_token(tmp_path: Path, queue: str) -> None:
    server = Server(f"sqlite:{tmp_path / 'jobs.db'}", tmp_path)
    create = [BINARY, "token", "create", "app", "--store", server.store, "--json", "--scope", "enqueue"]
    made = subprocess.run(create, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    token = next(word for word in made.stdout.replace('"', " ").split() if word.startswith("wl_"))
    server.start()
    try:
        with pytest.raises(windlass.Unauthorized):
            Client(server.url).get(1)
        assert Client(server.url, token=token).enqueue("a", queue=queue).state == "queued"
        worker = make_worker(server, queue)
        worker.handler("a")(lambda job, ctx: None)
        with pytest.raises(windlass.Unauthorized):
            worker.run()
    finally:
        server.kill()
    with pytest.raises(ValueError, match="printable"):
        Client(server.url, token="wl_\r\nx")
