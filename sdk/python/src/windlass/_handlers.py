"""Handlers by kind, and how one is run."""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from windlass import _outcome
from windlass._outcome import Outcome
from windlass.context import Context
from windlass.errors import AttemptCancelled
from windlass.models import LeasedJob

Handler = Callable[[LeasedJob, Context], Any]
"""A plain or an async function."""
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True)
class Registered:
    """A handler and its options."""

    run: Callable[[LeasedJob, Context], Any]
    is_async: bool
    timeout: float | None


class Handlers:
    """Handlers by kind."""

    def __init__(self) -> None:
        self._by_kind: dict[str, Registered] = {}

    def add(self, kind: str, run: Handler, timeout: float | None) -> None:
        if kind in self._by_kind:
            raise ValueError(f"the kind {kind!r} has a handler already")
        call = getattr(run, "__call__", None)  # noqa: B004 - an object whose __call__ is async is a handler too
        is_async = inspect.iscoroutinefunction(run) or inspect.iscoroutinefunction(call)
        self._by_kind[kind] = Registered(run, is_async, timeout)

    def find(self, kind: str) -> Registered | None:
        return self._by_kind.get(kind)

    def kinds(self) -> list[str]:
        return sorted(self._by_kind)

    def __len__(self) -> int:
        return len(self._by_kind)


def timeout_of(job: LeasedJob, handler: Registered | None) -> float | None:
    """The job's own timeout, else the handler's."""
    if job.timeout_ms is not None:
        return job.timeout_ms / 1000
    return handler.timeout if handler else None


def unknown_kind(job: LeasedJob) -> Outcome:
    """Retried by the policy: a rolling deploy may bring the handler."""
    return _outcome.failed("UnknownKind", f"no handler of this worker knows the kind {job.kind}")


def timed_out(context: Context) -> Outcome:
    """The failure of an attempt that took too long."""
    return _outcome.failed("Timeout", f"the attempt took longer than {context.timeout:g} s")


def run_plain(handler: Registered, context: Context, *, with_trace: bool) -> Outcome | None:
    """Runs a plain function. None means: it stopped because it was cancelled, `Context` says why."""
    try:
        result = handler.run(context.job, context)
    except AttemptCancelled:
        return None
    except BaseException as error:
        return _outcome.of_exception(error, context._note, with_trace=with_trace)
    return _outcome.success(result, context._note)


async def run_async(handler: Registered, context: Context, *, with_trace: bool) -> Outcome | None:
    """Runs an async function. None means: it stopped because it was cancelled, `Context` says why."""
    try:
        result = await handler.run(context.job, context)
    except AttemptCancelled:
        return None
    except asyncio.CancelledError as error:
        if context.cancelled:
            return None
        return _outcome.of_exception(error, context._note, with_trace=with_trace)
    except BaseException as error:
        return _outcome.of_exception(error, context._note, with_trace=with_trace)
    return _outcome.success(result, context._note)
