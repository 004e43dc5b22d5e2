"""Two nodes on one store: one that is measured and never restarted, and one that is killed and restarted."""
import random
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

from nodes import POSTGRES, Node, until

# Finished jobs go soon, so that the archive has reached its size after some minutes.
RETENTION = "6m"
QUEUES = ["plain", "calls", "limited", "webhooks"]
OUTAGE = 20.0


class Proxy:
    """A way to the database that can be cut."""

    def __init__(self, host: str, port: int) -> None:
        self.target, self.is_open, self.sockets = (host, port), True, set()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            client, _ = self.server.accept()
            if not self.is_open:
                client.close()
                continue
            server = socket.create_connection(self.target)
            for one, other in ((client, server), (server, client)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.sockets.add(one)
                threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    def copy(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            self.sockets.discard(one)
            self.close(one)

    def close(self, one: socket.socket) -> None:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        one.close()

    def cut(self, stop: threading.Event) -> None:
        self.is_open = False
        for one in list(self.sockets):
            self.close(one)
        stop.wait(OUTAGE)
        self.is_open = True


class Place:
    def __init__(self, kind: str) -> None:
        self.kind, self.faults, self.proxy = kind, {}, None
        flags = ("--quiet-jobs", "--allow-private-targets", "--lease", "10s")
        self.steady, self.other = Node(kind, *flags, "--worker", "steady"), Node(kind, *flags, "--worker", "other")
        self.steady.log_level = self.other.log_level = "warn"
        self.other.schema, self.other.store = self.steady.schema, self.steady.store
        if kind == "postgres":
            url = urllib.parse.urlsplit(POSTGRES)
            self.proxy = Proxy(url.hostname, url.port)
            through = url._replace(netloc=f"{url.username}:{url.password}@127.0.0.1:{self.proxy.port}").geturl()
            self.steady.store = self.other.store = through
        self.steady.start()
        self.other.start()
        for queue in QUEUES:
            body = {"retention": {"succeeded": RETENTION, "failed": RETENTION, "cancelled": RETENTION}}
            if queue == "limited":
                body["limits"] = {"concurrency": 20, "perKey": {"concurrency": 2}}
            answer = self.steady.api("PUT", f"/queues/{queue}", body)
            assert answer.status == 200, answer.body
        schedule = {"every": "10s", "queue": "plain", "kind": "tick"}
        answer = self.steady.api("POST", "/schedules", schedule)
        assert answer.status == 201, answer.body

    def nodes(self) -> list[Node]:
        return [self.steady, self.other]

    def ask(self, method: str, path: str, body: object = None, timeout: float = 60.0):
        """The answer of the steady node or the other one; none while they cannot answer."""
        node = random.choice(self.nodes())
        try:
            answer = node.api(method, path, body, timeout=timeout)
        except (OSError, ValueError):
            return None
        except Exception as error:  # http.client has errors of its own for answers that end early.
            if type(error).__module__ == "http.client":
                return None
            raise
        return None if answer.status == 503 else answer

    def disturb(self, chance: random.Random, stop: threading.Event) -> None:
        kinds = ["kill", "restart"] + (["outage"] if self.proxy else [])
        kind = chance.choice(kinds)
        self.faults[kind] = self.faults.get(kind, 0) + 1
        if kind == "outage":
            self.proxy.cut(stop)
        else:
            self.other.stop(signal.SIGKILL if kind == "kill" else signal.SIGTERM)
            self.other.start()

    def problems(self) -> list[str]:
        """What the store's own check and the steady node's log say."""
        found = []
        if self.steady.process.poll() is not None:
            found.append(f"{self.kind}: the steady node ended: {self.steady.log()[-500:]}")
        if "panicked" in self.steady.log() + self.other.log():
            found.append(f"{self.kind}: a node panicked")
        doctor = self.steady.run("doctor")
        if doctor.returncode != 0:
            found.append(f"{self.kind}: doctor says {doctor.stdout[-500:]} {doctor.stderr[-300:]}")
        return found

    def disturbances(self) -> str:
        return ", ".join(f"{count} × {kind}" for kind, count in sorted(self.faults.items())) or "no faults"

    def end(self) -> None:
        self.other.stop(signal.SIGKILL)
        self.steady.__exit__()
