"""Threads for handlers that are plain functions."""

import queue
import threading
from collections.abc import Callable

Work = Callable[[], None]


class Threads:
    """Up to `limit` daemon threads, started as needed. A hanging handler must not keep the process from ending, so
    the standard pool does not fit: it waits for its threads at exit."""

    def __init__(self, limit: int, name: str) -> None:
        self._limit = limit
        self._name = name
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._started = 0
        self._busy = 0
        self._lock = threading.Lock()

    def submit(self, work: Work) -> None:
        """Runs `work` in a thread. It must not raise."""
        with self._lock:
            self._busy += 1
            start = self._busy > self._started and self._started < self._limit
            self._started += start
            number = self._started
        self._work.put(work)
        if start:
            threading.Thread(target=self._loop, name=f"{self._name}-{number}", daemon=True).start()

    def close(self) -> None:
        """Ends idle threads; busy ones end after their work."""
        for _ in range(self._started):
            self._work.put(None)

    def _loop(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            # A reference would keep the job alive while the thread waits.
            del work
            with self._lock:
                self._busy -= 1
