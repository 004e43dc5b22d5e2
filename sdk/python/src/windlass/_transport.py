"""HTTP over blocking sockets, for the sync client. Connections are kept and shared by threads."""

import contextlib
import http.client
import select
import socket
import threading
from collections.abc import Mapping
from typing import Protocol

from windlass._calls import Response
from windlass._target import Target, retry_after_seconds
from windlass.errors import ConnectionLost, NotSent

MAX_IDLE = 16


class Transport(Protocol):
    """Carries requests to a server."""

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        timeout: float,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Sends one request and reads its answer."""

    def close(self) -> None:
        """Closes idle connections."""


class HttpTransport:
    """The transport to a real server."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        timeout: float,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        connection = self._take_idle() or self._connect(timeout)
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request(method, self._target.prefix + path, body, self._target.headers_of(body, headers))
            answer = connection.getresponse()
            response = Response(answer.status, answer.read(), retry_after_seconds(answer.getheader("Retry-After")))
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ConnectionLost(f"no answer to {method} {path}: {error or type(error).__name__}") from error
        except BaseException:
            # An interrupted exchange leaves the connection in the middle of an answer.
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._put_back(connection)
        return response

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        target = self._target
        connection = (
            http.client.HTTPConnection(target.host, target.port, timeout=timeout)
            if target.tls is None
            else http.client.HTTPSConnection(target.host, target.port, timeout=timeout, context=target.tls)
        )
        try:
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connection.close()
            raise NotSent(f"cannot reach {target.host}:{target.port}: {error}") from error
        return connection

    def _take_idle(self) -> http.client.HTTPConnection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if _is_usable(connection):
                return connection
            connection.close()

    def _put_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()


def _is_usable(connection: http.client.HTTPConnection) -> bool:
    """An idle connection with something to read was closed by the server."""
    if connection.sock is None:
        return False
    with contextlib.suppress(OSError, ValueError):
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(connection.sock, select.POLLIN)
            return not poll.poll(0)
        return not select.select([connection.sock], [], [], 0)[0]
    return False
