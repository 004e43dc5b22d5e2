"""The worker: runs handlers for the jobs of its queues."""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from windlass._aio_transport import AsyncHttpTransport, AsyncTransport
from windlass._duration import to_seconds
from windlass._engine import Engine, Settings, Stats
from windlass._handlers import H, Handlers
from windlass._processes import Processes
from windlass._target import Target

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Worker:
    """Takes jobs of its queues and runs the handler of their kind.

        worker = Worker(queues=["email"], concurrency=20)

        @worker.handler("email")
        def send(job, ctx):
            ...

        worker.run()

    Plain functions run in threads, `async` functions in the event loop. Durations are seconds or `timedelta`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        queues: Sequence[str] = (),
        concurrency: int = 10,
        token: str | None = None,
        name: str | None = None,
        lease: float | timedelta = 30.0,
        renew_every: float | timedelta | None = None,
        poll: float | timedelta = 10.0,
        grace: float | timedelta = 25.0,
        send_traces: bool = True,
        tls: ssl.SSLContext | None = None,
        transport: AsyncTransport | None = None,
    ) -> None:
        """
        url, token: else the environment's WINDLASS_SERVER and WINDLASS_TOKEN, else http://127.0.0.1:9463.
        queues: the queues to work; all of them if empty.
        concurrency: attempts at once.
        lease: how long a lease lasts without being extended. It is extended every third of it, or every `renew_every`;
            a cancelled job's handler learns of it then.
        poll: how long one request waits for jobs.
        grace: how long running handlers may go on after a stop.
        send_traces: send stack traces of failures; they are kept with the attempt.
        """
        if isinstance(queues, str):
            raise TypeError("queues must be a list of names, not one text")
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        lease_seconds = to_seconds(lease)
        self._target = None if transport else Target.find(url, token, tls)
        self._given_transport = transport
        self.settings = Settings(
            name=name or f"{socket.gethostname()[:64]}-{os.getpid()}-{secrets.token_hex(3)}",
            queues=tuple(queues),
            concurrency=concurrency,
            lease=lease_seconds,
            renew_every=lease_seconds / 3 if renew_every is None else to_seconds(renew_every),
            poll=to_seconds(poll),
            grace=to_seconds(grace),
            with_trace=send_traces,
        )
        self.handlers = Handlers()
        self.stats = Stats()
        self._engine: tuple[asyncio.AbstractEventLoop, Engine] | None = None
        self._processes: Processes | None = None
        self._stop_requests = 0
        # A signal may arrive while its own thread holds the lock.
        self._lock = threading.RLock()

    def handler(self, kind: str, *, timeout: float | timedelta | None = None) -> Callable[[H], H]:
        """Registers the decorated function for a kind. `timeout` holds for jobs that have none of their own.

        The function is given the job and a `Context`. What it returns (JSON, up to 64 KiB) is the job's result.
        """

        def register(function: H) -> H:
            self.handlers.add(kind, function, None if timeout is None else to_seconds(timeout))
            return function

        return register

    def run(self, *, processes: int = 1, handle_signals: bool = True) -> None:
        """Works until SIGTERM, SIGINT or `stop`; then drains. A second signal cuts the grace time short.

        With `processes`, that many copies of this process work, each with `concurrency` attempts at once: for handlers
        that fill a processor. One that dies is replaced, and its jobs run again by their policy. Call it in the main
        thread, before other threads are started; the counts in `stats` stay those of this process, which only
        watches. Not on Windows.
        """
        if processes < 1:
            raise ValueError("processes must be at least 1")
        if processes == 1:
            asyncio.run(self.run_async(handle_signals=handle_signals))
            return
        if not len(self.handlers):
            raise ValueError("the worker has no handlers")
        group = Processes(processes, self._run_child)
        with self._lock:
            self._processes = group
            for _ in range(self._stop_requests):
                group.stop()
        try:
            with _plain_signals(group.stop) if handle_signals else contextlib.nullcontext():
                group.run()
        finally:
            with self._lock:
                self._processes = None
                self._stop_requests = 0

    def _run_child(self, number: int, lifeline: int) -> None:
        """The work of one of several processes: drains when it is asked to, or when its parent has died."""
        self.settings = replace(self.settings, name=f"{self.settings.name}-{number + 1}")
        self._processes = None
        self._lock = threading.RLock()

        async def work() -> None:
            loop = asyncio.get_running_loop()

            def orphaned() -> None:
                loop.remove_reader(lifeline)
                self.stop()

            loop.add_reader(lifeline, orphaned)
            with _signals(loop, self.stop, (signal.SIGTERM,)):
                # From here on a stop is handled.
                signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
                await self.run_async()

        asyncio.run(work())

    async def run_async(self, *, handle_signals: bool = False) -> None:
        """The same inside a running event loop, for programs that do more than work."""
        if not len(self.handlers):
            raise ValueError("the worker has no handlers")
        if self._engine is not None:
            raise RuntimeError("the worker is running already")
        loop = asyncio.get_running_loop()
        engine = Engine(self._transport(), self.handlers, self.settings, self.stats)
        with self._lock:
            self._engine = (loop, engine)
            for _ in range(self._stop_requests):
                engine.stop()
        try:
            with _signals(loop, self.stop) if handle_signals else contextlib.nullcontext():
                await engine.run()
        finally:
            with self._lock:
                self._engine = None
                self._stop_requests = 0

    def stop(self) -> None:
        """Drains: takes no more jobs, lets running handlers finish within the grace time. May be called from any
        thread. The second call cuts the grace time short."""
        with self._lock:
            self._stop_requests += 1
            if self._processes is not None:
                self._processes.stop()
            if self._engine is not None:
                loop, engine = self._engine
                loop.call_soon_threadsafe(engine.stop)

    def _transport(self) -> AsyncTransport:
        if self._given_transport is not None:
            return self._given_transport
        assert self._target is not None
        return AsyncHttpTransport(self._target)


@contextlib.contextmanager
def _plain_signals(stop: Callable[[], None]) -> Iterator[None]:
    """The same without an event loop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, lambda *_: stop()) for one in SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextlib.contextmanager
def _signals(
    loop: asyncio.AbstractEventLoop, stop: Callable[[], None], numbers: Sequence[signal.Signals] = SIGNALS
) -> Iterator[None]:
    """Calls `stop` on SIGTERM and SIGINT. Only the main thread may handle signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {}
    for one in numbers:
        before[one] = signal.getsignal(one)
        try:
            loop.add_signal_handler(one, stop)
        except NotImplementedError:
            # Windows has no signal handlers in its loop.
            signal.signal(one, lambda *_: stop())
    try:
        yield
    finally:
        for one, handler in before.items():
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(one)
            signal.signal(one, handler)
