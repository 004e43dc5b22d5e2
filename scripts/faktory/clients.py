"""Runs real Faktory clients against a real server: produce, consume, fail, retry, schedule, heartbeat, quiet, stop.

Environment: WINDLASS_SERVER (HTTP), FAKTORY_URL, WORK (a directory). Arguments: names of clients.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SERVER = os.environ["WINDLASS_SERVER"]
COMMANDS = {
    "pyfaktory": [sys.executable, str(HERE / "pyfaktory_client.py")],
    "faktory": [sys.executable, str(HERE / "faktory_client.py")],
    "node": ["node", os.environ.get("NODE_CLIENT", str(HERE / "node_client.mjs"))],
    "rust": [os.environ.get("RUST_CLIENT", "faktory-client")],
}
# What a client reports as `errtype`: the Rust one never says more.
CLASSES = {"rust": "unknown"}


def call(method: str, path: str) -> Any:
    request = urllib.request.Request(SERVER + path, method=method)
    with urllib.request.urlopen(request, timeout=120) as response:
        text = response.read()
    return json.loads(text) if text else None


def wait_for(what: str, check: Callable[[], Any], seconds: float = 180) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = check()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds} s")


def run(name: str) -> None:
    command, queue, wid = COMMANDS[name], f"q-{name}", f"{name}-worker-1"
    out = Path(os.environ["WORK"]) / f"{name}.out"
    out.write_text("")
    subprocess.run([*command, "produce", queue, name], check=True, timeout=180)
    began = time.monotonic()
    worker = subprocess.Popen([*command, "work", queue, str(out), wid])
    try:
        expected = {f"plain {name}", f"later {name}", f"flaky {name}", "flaky failed"}
        wait_for(f"{name}: all jobs have run", lambda: expected <= set(out.read_text().splitlines()))
        jobs = call("GET", f"/api/v1/jobs?queue={queue}")["items"]
        wait_for(
            f"{name}: all jobs have succeeded",
            lambda: all(job["state"] == "succeeded" for job in call("GET", f"/api/v1/jobs?queue={queue}")["items"]),
        )
        [flaky] = [job for job in jobs if job["kind"] == "flaky"]
        history = call("GET", f"/api/v1/jobs/{flaky['id']}/history")["items"]
        assert [line["status"] for line in history] == ["FAILED", "SUCCESS"], history
        assert history[0]["errorClass"] == CLASSES.get(name, "ValueError"), history
        assert history[0]["error"] == "not yet", history
        assert history[0]["worker"] == f"faktory:{wid}", history
        listed = {worker["wid"] for worker in call("GET", "/api/v1/faktory/workers")["items"]}
        assert wid in listed, listed
        call("POST", f"/api/v1/faktory/workers/{wid}/quiet")
        call("POST", f"/api/v1/faktory/workers/{wid}/terminate")
        worker.wait(timeout=180)
    finally:
        worker.kill()
    print(f"{name}: produced, ran, failed, retried, scheduled and stopped in {time.monotonic() - began:.1f} s")


for client in sys.argv[1:] or list(COMMANDS):
    run(client)
