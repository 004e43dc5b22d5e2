"""HTTP over asyncio streams, for the asyncio client and the worker. Connections belong to one event loop."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from windlass._calls import Response
from windlass._target import Target, retry_after_seconds
from windlass.errors import ConnectionLost, NotSent

MAX_IDLE = 32
_LINE_LIMIT = 64 * 1024


class AsyncTransport(Protocol):
    """Carries requests to a server."""

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        timeout: float,
        give_up: asyncio.Event | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Sends one request and reads its answer. `give_up` ends a long wait early without losing an answer that is
        already on its way."""

    async def close(self) -> None:
        """Closes idle connections."""


@dataclass
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def is_usable(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing() or self.reader.exception())

    def close(self) -> None:
        # The loop it belongs to may be gone.
        with contextlib.suppress(Exception):
            self.writer.close()


class AsyncHttpTransport:
    """The transport to a real server."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._idle: list[_Connection] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        timeout: float,
        give_up: asyncio.Event | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        connection = self._take_idle() or await self._connect(timeout)
        try:
            async with asyncio.timeout(timeout):
                connection.writer.write(self._head(method, path, body, headers) + (body or b""))
                await connection.writer.drain()
                response, keep = await self._answer(connection, give_up)
        except (OSError, EOFError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            # TimeoutError is an OSError.
            connection.close()
            raise ConnectionLost(f"no answer to {method} {path}: {error or type(error).__name__}") from error
        except BaseException:
            connection.close()
            raise
        if keep and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        return response

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
            with contextlib.suppress(Exception):
                await connection.writer.wait_closed()

    async def _connect(self, timeout: float) -> _Connection:
        target = self._target
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_connection(
                    target.host, target.port, ssl=target.tls, limit=_LINE_LIMIT
                )
        except OSError as error:
            reason = str(error) or type(error).__name__
            raise NotSent(f"cannot reach {target.host}:{target.port}: {reason}") from error
        return _Connection(reader, writer)

    def _take_idle(self) -> _Connection | None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # Connections of another loop cannot be used in this one.
            for connection in self._idle:
                connection.close()
            self._idle, self._loop = [], loop
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.close()
        return None

    def _head(self, method: str, path: str, body: bytes | None, more: Mapping[str, str] | None) -> bytes:
        lines = [f"{method} {self._target.prefix}{path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self._target.headers_of(body, more).items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")

    async def _answer(self, connection: _Connection, give_up: asyncio.Event | None) -> tuple[Response, bool]:
        if give_up is None:
            return await _read_response(connection.reader)
        answer = asyncio.ensure_future(_read_response(connection.reader))
        stop = asyncio.ensure_future(give_up.wait())
        try:
            await asyncio.wait((answer, stop), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and connection.writer.can_write_eof():
                # Closing only our side: the server drops the request, or we still receive the answer it has sent.
                connection.writer.write_eof()
            response, keep = await answer
            return response, keep and not give_up.is_set()
        finally:
            stop.cancel()
            answer.cancel()


async def _read_response(reader: asyncio.StreamReader) -> tuple[Response, bool]:
    """Reads one answer. The second value says whether the connection can be used again."""
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        version, status_text = head[0].split(" ", 2)[:2]
        status = int(status_text)
        if status >= 200:
            break
    headers = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    if status in (204, 304):
        body = b""
    elif "chunked" in headers.get("transfer-encoding", "").lower():
        body = await _read_chunks(reader)
    elif "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    else:
        body, keep = await reader.read(), False
    return Response(status, body, retry_after_seconds(headers.get("retry-after"))), keep


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    chunks: list[bytes] = []
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if size == 0:
            # Trailers, up to the empty line.
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
            return b"".join(chunks)
        chunks.append(await reader.readexactly(size))
        await reader.readexactly(2)
