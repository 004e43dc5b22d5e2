"""Nodes to attack: the real binary on a store of its own, and how to call it."""
import http.client
import http.server
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid

BINARY = os.environ.get("WINDLASS_BIN") or "windlass"
POSTGRES = os.environ.get("WINDLASS_TEST_POSTGRES", "")
# Where crowds of connections come from.
ATTACKER = "127.0.0.1"
STORES = ["sqlite", "postgres"] if POSTGRES else ["sqlite"]
# The node refuses settings it does not know, such as the tests' own.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
faults: list[str] = []
where = ""

# Thousands of connections are opened from here.
resource.setrlimit(resource.RLIMIT_NOFILE, (min(16_384, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)


def section(title: str) -> None:
    global where
    where = title
    print(f"\n== {title}", flush=True)


def check(held: bool, what: str, seen: object = "") -> None:
    print(f"{'held ' if held else 'BROKE'}  {what}{f': {seen}' if seen != '' else ''}", flush=True)
    if not held:
        faults.append(f"{where}: {what}: {seen}")


def report() -> int:
    print(f"\n{len(faults)} attacks succeeded")
    for fault in faults:
        print(f"  {fault}")
    return 1 if faults else 0


def until(is_so, seconds: float = 20.0):
    """What `is_so` answers as soon as it is true; its last answer when the time is over."""
    ends = time.monotonic() + seconds
    while not (answer := is_so()) and time.monotonic() < ends:
        time.sleep(0.05)
    return answer


def free_port() -> int:
    """A port that no outgoing connection takes, so that a node which starts again finds it free."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Node:
    """A running node. Leaving the block ends it and removes its store."""

    log_level = "debug"

    def __init__(self, store: str, *arguments: str, **variables: str) -> None:
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="windlass-attack-"))
        self.kind = store
        self.schema = f"attack_{uuid.uuid4().hex[:12]}"
        self.store = f"sqlite:{self.home / 'jobs.db'}" if store == "sqlite" else POSTGRES
        self.arguments, self.variables = arguments, variables
        self.port = free_port()
        self.token: str | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Node":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGKILL)
        if self.kind == "postgres":
            subprocess.run(
                ["psql", POSTGRES, "-qc", f"DROP SCHEMA IF EXISTS {self.schema} CASCADE"], check=False, stderr=-3
            )
        shutil.rmtree(self.home, ignore_errors=True)

    def environment(self) -> dict[str, str]:
        return {**CLEAN, "WINDLASS_SCHEMA": self.schema, **self.variables}

    def start(self, is_ready: bool = True) -> None:
        listen = ["serve", "--store", self.store, "--listen", f"127.0.0.1:{self.port}", "--grace", "1s"]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [BINARY, *listen, "--log-level", self.log_level, *self.arguments],
                cwd=self.home, env=self.environment(), stdout=log, stderr=log,
            )
        path = "/readyz" if is_ready else "/healthz"
        answered = until(lambda: self.process.poll() is not None or self.status(path) == 200, 60)
        if not answered or self.process.poll() is not None:
            raise SystemExit(f"the node did not start: {self.log()[-2000:]}")

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None

    def log(self) -> str:
        return (self.home / "log").read_text(errors="replace")

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command that works on the store."""
        command = [BINARY, *arguments, "--store", self.store]
        return subprocess.run(
            command, cwd=self.home, env={**self.environment(), **variables}, capture_output=True, text=True, timeout=120
        )

    def make_token(self, *arguments: str) -> tuple[str, str]:
        """A new token's text and id."""
        made = self.run("token", "create", "attack", *arguments)
        text = re.search(r"wl_[A-Za-z0-9_-]+", made.stdout)
        if text is None:
            raise SystemExit(made.stdout + made.stderr)
        # A node without tokens notices its first one within seconds.
        until(lambda: self.call("GET", "/api/v1/queues", headers={"authorization": ""}).status == 401)
        return text[0], text[0].split("_")[1]

    def call(self, method: str, path: str, body: object = None, token: str | None = None, source: str = "127.0.0.1",
             headers: dict[str, str] | None = None, timeout: float = 30.0) -> "Answer":
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=timeout, source_address=(source, 0)
        )
        token = token or self.token
        sent = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
        try:
            began = time.monotonic()
            connection.request(method, path, None if body is None else json.dumps(body), {**sent, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read(), time.monotonic() - began)
        finally:
            connection.close()

    def api(self, method: str, path: str, body: object = None, **options) -> "Answer":
        return self.call(method, f"/api/v1{path}", body, **options)

    def status(self, path: str) -> int:
        try:
            return self.call("GET", path, timeout=5).status
        except OSError:
            return 0

    def memory(self) -> int:
        """Resident memory in MiB."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) // 1024

    def served(self, what: str, within: float = 5.0, source: str = "127.0.0.2", token: str | None = None) -> None:
        """Checks that somebody else is served: stores a job and reads a page. Only the attacker's own address, which has
        used up its share, may be refused at first; then it tries again, as clients do."""
        began, refused, answers = time.monotonic(), 0, None
        while answers is None and time.monotonic() - began < within:
            try:
                stored = self.api("POST", "/jobs", {"kind": "a"}, source=source, token=token, timeout=30)
                answers = (stored.status, self.call("GET", "/healthz", source=source, timeout=30).status)
            except OSError:
                refused += 1
                time.sleep(0.2)
        took = time.monotonic() - began
        tries = f", refused {refused} times before" if refused else ""
        is_allowed = refused == 0 or source == ATTACKER
        check(answers == (201, 200) and took < within and is_allowed, what, f"{answers} after {took:.2f} s{tries}")


class Answer:
    def __init__(self, status: int, headers, body: bytes, took: float) -> None:
        self.status, self.headers, self.body, self.took = status, headers, body, took

    def json(self):
        return json.loads(self.body) if self.body else None


class Receiver:
    """Receives calls and keeps them. Paths with `fail` are answered 500."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, str], bytes]] = []
        calls = self.calls

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                calls.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(500 if "fail" in self.path else 200)
                self.send_header("content-length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
