"""The real server, on both stores."""

import os
import random
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from windlass import Client, WindlassError

BINARY = os.environ.get("WINDLASS_BIN", "windlass")
POSTGRES = os.environ.get("WINDLASS_TEST_POSTGRES")
DEADLINE = 120.0
# The server refuses settings it does not know, such as the tests' own. On PostgreSQL it keeps to a schema of its own.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
ENVIRONMENT["WINDLASS_SCHEMA"] = "windlass_sdk_python"


def until(is_so: Callable[[], bool], what: str, deadline: float = DEADLINE) -> None:
    """Waits for a condition. Fails with its description when the deadline passes."""
    ends = time.monotonic() + deadline
    while not is_so():
        if time.monotonic() > ends:
            raise AssertionError(f"not within {deadline:.0f} s: {what}")
        time.sleep(0.01)


def free_port() -> int:
    """A port that no outgoing connection takes, so that a server which starts again finds it free."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Server:
    """A server that can be killed and started again on the same store and port."""

    def __init__(self, store: str, folder: Path) -> None:
        self.store = store
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        arguments = ["serve", "--store", self.store, "--listen", f"127.0.0.1:{self.port}", "--allow-private-targets"]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [BINARY, *arguments, "--quiet-jobs", "--grace", "2s"],
                cwd=self.folder,
                env=ENVIRONMENT,
                stdout=log,
                stderr=log,
            )
        with Client(self.url, retries=0) as client:
            until(lambda: self._is_ready(client), "the server is ready")

    def _is_ready(self, client: Client) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError("the server ended: " + (self.folder / "server.log").read_text()[-2000:])
        try:
            client.request("GET", "/readyz")
        except WindlassError:
            return False
        return True

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=DEADLINE)
            self.process = None


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "sqlite":
        store = f"sqlite:{folder / 'jobs.db'}"
    else:
        assert POSTGRES, "WINDLASS_TEST_POSTGRES is not set; run the tests with scripts/with-postgres"
        store = POSTGRES
    started = Server(store, folder)
    started.start()
    yield started
    started.kill()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as made:
        yield made


@pytest.fixture
def queue() -> str:
    """A queue of the test's own: tests share a server."""
    return f"q{uuid.uuid4().hex[:12]}"
