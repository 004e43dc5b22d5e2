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


def call(method: str, path: str, seconds: float = 120) -> Any:
    request = urllib.request.Request(SERVER + path, method=method)
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(request, timeout=seconds) as response:
                text = response.read()
            return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            # The store may be slow on a busy machine.
            if error.code != 503 or time.monotonic() > end:
                raise
            time.sleep(int(error.headers.get("retry-after", "1")))


def wait_for(what: str, worker: "subprocess.Popen[bytes]", holds: Callable[[], bool], seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert worker.poll() is None, f"{what}: not so when the worker ended, with status {worker.returncode}"
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.1)


def run(name: str) -> None:
    command, queue, wid = COMMANDS[name], f"q-{name}", f"{name}-worker-1"
    out, log = (Path(os.environ["WORK"]) / f"{name}.{end}" for end in ("out", "log"))
    out.write_text("")
    began = time.monotonic()
    # What the clients say is shown only if a check fails: they report the planned failure as an error.
    with log.open("w") as said:
        try:
            subprocess.run([*command, "produce", queue, name], check=True, timeout=180, stdout=said, stderr=said)
            worker = subprocess.Popen([*command, "work", queue, str(out), wid], stdout=said, stderr=said)
            try:
                check(name, queue, wid, out, worker)
                worker.wait(timeout=180)
            finally:
                worker.kill()
        except BaseException:
            print(f"== {name}: what the client said\n{log.read_text()}\n== {name}: what its handlers wrote\n{out.read_text()}")
            raise
    print(f"{name}: produced, ran, retried, scheduled and stopped in {time.monotonic() - began:.1f} s")


def check(name: str, queue: str, wid: str, out: Path, worker: "subprocess.Popen[bytes]") -> None:
    expected = {f"plain {name}", f"later {name}", f"flaky {name}", "flaky failed"}
    wait_for(f"{name}: all jobs have run", worker, lambda: expected <= set(out.read_text().splitlines()))
    jobs = call("GET", f"/api/v1/jobs?queue={queue}")["items"]
    wait_for(
        f"{name}: all jobs have succeeded",
        worker,
        lambda: all(job["state"] == "succeeded" for job in call("GET", f"/api/v1/jobs?queue={queue}")["items"]),
    )
    [flaky] = [job for job in jobs if job["kind"] == "flaky"]
    history = call("GET", f"/api/v1/jobs/{flaky['id']}/history")["items"]
    assert [line["status"] for line in history] == ["FAILED", "SUCCESS"], history
    assert history[0]["errorClass"] == CLASSES.get(name, "ValueError"), history
    assert history[0]["error"] == "not yet", history
    assert history[0]["worker"] == f"faktory:{wid}", history
    listed = {row["wid"] for row in call("GET", "/api/v1/faktory/workers")["items"]}
    assert wid in listed, listed
    call("POST", f"/api/v1/faktory/workers/{wid}/quiet")
    call("POST", f"/api/v1/faktory/workers/{wid}/terminate")


for client in sys.argv[1:] or list(COMMANDS):
    run(client)
