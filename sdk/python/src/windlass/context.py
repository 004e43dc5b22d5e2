"""What a handler knows about its attempt, apart from the job."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal

from windlass.errors import AttemptCancelled
from windlass.models import LeasedJob

CancelReason = Literal["cancelled", "lease_lost", "timeout", "shutdown"]
"""Why an attempt must stop: the job was cancelled, another worker may have it by now, it took too long, or the worker
stops."""


class Context:
    """One attempt. Its methods may be called from any thread.

    `async` handlers are cancelled as asyncio tasks are. Plain functions cannot be interrupted: long ones should look
    at `cancelled`, or wait with `wait_cancelled` instead of `time.sleep`.
    """

    def __init__(self, job: LeasedJob, timeout: float | None = None) -> None:
        self.job = job
        self.timeout = timeout
        """The longest the attempt may take, in seconds."""
        self.deadline: datetime | None = None if timeout is None else datetime.now(UTC) + timedelta(seconds=timeout)
        """When the attempt fails with class `Timeout`."""
        self._ends = None if timeout is None else time.monotonic() + timeout
        self._note: str | None = None
        self._reason: CancelReason | None = None
        self._event: threading.Event | None = None
        self._lock = threading.Lock()
        self._on_cancel: list[Callable[[], object]] = []

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self.job.attempt

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of the job: hand it to services that take one."""
        return self.job.idempotency_key

    @property
    def is_last_attempt(self) -> bool:
        """True if a failure now uses up the job's retries."""
        return self.job.failures + 1 >= self.job.max_attempts

    def remaining(self) -> float | None:
        """Seconds until the deadline, or None without one."""
        return None if self._ends is None else max(0.0, self._ends - time.monotonic())

    def note(self, text: str) -> None:
        """Leaves a text with the attempt in the job's history. The last one counts."""
        self._note = text

    @property
    def cancelled(self) -> bool:
        """True once the attempt must stop."""
        return self._reason is not None

    @property
    def cancel_reason(self) -> CancelReason | None:
        """Why it must stop."""
        return self._reason

    def raise_if_cancelled(self) -> None:
        """Raises `AttemptCancelled` once the attempt must stop."""
        if self._reason is not None:
            raise AttemptCancelled(self._reason)

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Blocks until the attempt must stop, or the timeout passes. Use it in plain functions only."""
        with self._lock:
            if self._reason is not None:
                return True
            if self._event is None:
                self._event = threading.Event()
        return self._event.wait(timeout)

    # The worker's side.

    def _cancel(self, reason: CancelReason) -> bool:
        """Returns whether this is the first reason."""
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
        if self._event is not None:
            self._event.set()
        for stop in self._on_cancel:
            stop()
        return True

    def _stop_with(self, task: "asyncio.Task[object]") -> None:
        self._on_cancel.append(task.cancel)
