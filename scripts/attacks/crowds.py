"""Crowds: connections, streams and calls that are opened and then do nothing."""
import concurrent.futures
import select
import socket
import struct
import threading

from nodes import Node, Receiver, check, until

SLOTS = 1024


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def closed_window(streams: int) -> bytes:
    """An HTTP/2 client that allows no byte of a body to be sent, and asks for /docs on each stream."""
    header = b"\x82\x86\x04\x05/docs\x01\x09localhost"
    opened = b"".join(frame(1, 5, 1 + 2 * number, header) for number in range(streams))
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"\x00\x04\x00\x00\x00\x00") + opened


def crowd(node: Node, count: int, payload: bytes, source: str = "127.0.0.1") -> list[socket.socket]:
    opened = []
    for _ in range(count):
        try:
            one = socket.create_connection(("127.0.0.1", node.port), timeout=5, source_address=(source, 0))
            one.setblocking(False)
            one.send(payload)
            opened.append(one)
        except OSError:
            # Refused or closed by the node: that is its defence.
            pass
    return opened


def close(opened: list[socket.socket]) -> None:
    for one in opened:
        one.close()


def crowds(store: str) -> None:
    pipelined = b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
    with Node(store) as node:
        for what, payload in [("HTTP/2 connections with a closed window", closed_window(1)),
                              ("connections with 100 pipelined requests that read nothing", pipelined)]:
            opened = crowd(node, SLOTS + 50, payload)
            node.served(f"{SLOTS + 50} {what}: another address is served")
            node.served(f"{SLOTS + 50} {what}: the same address is served", source="127.0.0.1", within=15)
            close(opened)
            node.served("after they closed, everybody is served", source="127.0.0.1", within=5)
            print(f"       memory: {node.memory()} MiB")
    with Node(store) as node:
        worker, _ = node.make_token("--scope", "work")
        other, _ = node.make_token("--scope", "admin")
        body = b'{"worker":"w","queues":["empty"],"max":1,"waitMs":30000}'
        poll = (b"POST /api/v1/leases HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + worker.encode()
                + b"\r\nContent-Type: application/json\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
        for source in ["127.0.0.1", "127.0.0.3"]:
            opened = crowd(node, SLOTS, poll, source)
            node.served(f"{SLOTS} long polls of one token from {source}: another token is served", token=other)
        node.served("the same address, another token", source="127.0.0.1", token=other, within=15)
        close(opened)


def memory(store: str) -> None:
    with Node(store) as node:
        before = node.memory()
        opened = [one for _ in range(10) for one in crowd(node, 1, closed_window(256))]
        peak = [before]
        until(lambda: peak.append(node.memory()) or False, 5)
        check(max(peak) - before < 100, "10 connections with 256 streams of /docs", f"{before} to {max(peak)} MiB")
        node.served("meanwhile others are served")
        close(opened)


class Silent:
    """Accepts connections on many loopback addresses and never answers. Counts those that are open."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("0.0.0.0", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            readable, _, _ = select.select([self.listener, *self.open], [], [], 1)
            for one in readable:
                if one is self.listener:
                    self.open.add(self.listener.accept()[0])
                elif not _read(one):
                    self.open.discard(one)
                    one.close()


def _read(one: socket.socket) -> bytes:
    try:
        return one.recv(65536)
    except OSError:
        return b""


def silent_hosts(store: str) -> None:
    silent, lively = Silent(), Receiver()
    with Node(store, "--allow-private-targets") as node:
        def call(tenant: str, url: str, **fields):
            return node.api("POST", "/jobs", {"tenantId": tenant, "http": {"url": url}, "retry": "once", **fields})

        answer = call("loud", f"http://127.0.9.9:{silent.port}/", timeout="876000h")
        check(answer.status == 422, "a timeout of a hundred years is refused", answer.status)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            hosts = [f"http://127.0.{1 + n // 200}.{1 + n % 200}:{silent.port}/" for n in range(120)]
            jobs = [one.json()["id"] for one in pool.map(lambda url: call("loud", url, timeout="1h"), hosts)]
        until(lambda: len(silent.open) >= 32, 15)
        check(len(silent.open) == 32, "120 calls to silent hosts hold half of the 64 slots", len(silent.open))
        job = call("quiet", f"{lively.url}/job", webhook={"url": f"{lively.url}/hook"}).json()
        check(bool(until(lambda: len(lively.calls) >= 2, 10)), "another tenant's job and webhook run", len(lively.calls))
        state = node.api("GET", f"/jobs/{job['id']}").json()["state"]
        check(state == "succeeded", "and its job is finished", state)
        running = [one for one in jobs if node.api("GET", f"/jobs/{one}").json()["state"] == "running"]
        node.api("DELETE", f"/jobs/{running[0]}")
        gone = until(lambda: node.api("GET", f"/jobs/{running[0]}").json()["state"] == "cancelled", 3)
        check(bool(gone), "a running call is dropped when it is cancelled, within 3 s")
        node.api("PUT", "/tenants/loud/quotas", {"httpConcurrency": 4})
        for one in jobs:
            node.api("DELETE", f"/jobs/{one}")
        until(lambda: not silent.open, 15)
        for url in hosts[:20]:
            call("loud", url, timeout="1h")
        until(lambda: len(silent.open) >= 4, 15)
        until(lambda: len(silent.open) > 4, 3)
        check(len(silent.open) == 4, "a quota of 4 calls at once holds", len(silent.open))
