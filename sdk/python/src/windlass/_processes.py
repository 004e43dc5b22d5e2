"""Several processes of one worker. The parent starts them, replaces those that die, and passes on requests to stop."""

import contextlib
import logging
import multiprocessing
import multiprocessing.connection
import multiprocessing.process
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from windlass._backoff import Backoff

log = logging.getLogger("windlass.worker")

# The exit code of a process that cannot work at all, for example because its token is refused.
CANNOT_WORK = 78
# A process that lived this long did not die at its start.
_LONG = 10.0

ForkProcess = multiprocessing.process.BaseProcess


class Processes:
    """Runs `work(number, lifeline)` in `count` processes until it is stopped. `lifeline` is a descriptor that reaches
    its end when the parent has died."""

    def __init__(self, count: int, work: Callable[[int, int], None]) -> None:
        if "fork" not in multiprocessing.get_all_start_methods():
            raise RuntimeError("this system cannot fork: run several workers instead")
        self._fork = multiprocessing.get_context("fork")
        self._work = work
        self._backoffs = [Backoff() for _ in range(count)]
        self._running: dict[int, tuple[ForkProcess, float]] = {}
        self._due = dict.fromkeys(range(count), 0.0)
        self._stops = 0
        self._failed = False
        # A signal may arrive while its own thread holds the lock.
        self._lock = threading.RLock()

    def run(self) -> None:
        """Returns when every process has ended."""
        self._lifeline, self._held_end = os.pipe()
        try:
            while self._running or not self._stops:
                self._start_due()
                sentinels = [process.sentinel for process, _ in self._running.values()]
                multiprocessing.connection.wait(sentinels, self._until_due())
                self._collect()
        finally:
            self.stop()
            os.close(self._lifeline)
            os.close(self._held_end)
        if self._failed:
            raise RuntimeError("a worker process cannot work; its log says why")

    def stop(self) -> None:
        """Passes on the request to stop. May be called from any thread and by signal handlers."""
        with self._lock:
            self._stops += 1
            for process, _ in self._running.values():
                self._send_stop(process)

    def _send_stop(self, process: ForkProcess) -> None:
        if process.pid is not None and process.exitcode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)

    def _start_due(self) -> None:
        now = time.monotonic()
        for number, due in list(self._due.items()):
            with self._lock:
                if self._stops or due > now:
                    continue
                del self._due[number]
                process: Any = self._fork.Process(target=self._child, args=(number,), name=f"windlass-{number}")
                # A stop that arrives before the child can handle it must not be lost.
                held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
                try:
                    process.start()
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, held)
                self._running[number] = (process, now)

    def _child(self, number: int) -> None:
        os.close(self._held_end)
        # Ctrl-C reaches the whole group; the parent passes it on as SIGTERM.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._work(number, self._lifeline)
        except Exception:
            log.exception("the worker process %d cannot work", number)
            os._exit(CANNOT_WORK)

    def _until_due(self) -> float | None:
        if self._stops or not self._due:
            return None if self._running else 0.0
        return max(0.0, min(self._due.values()) - time.monotonic())

    def _collect(self) -> None:
        for number, (process, began) in list(self._running.items()):
            if process.exitcode is None:
                continue
            process.join()
            with self._lock:
                del self._running[number]
                if self._stops:
                    continue
                if process.exitcode == CANNOT_WORK:
                    self._failed = True
                    self.stop()
                    continue
                if time.monotonic() - began > _LONG:
                    self._backoffs[number].reset()
                delay = self._backoffs[number].next()
                self._due[number] = time.monotonic() + delay
            log.error("worker process %d died (exit code %s); a new one starts", number, process.exitcode)
