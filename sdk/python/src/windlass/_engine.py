"""The loops of a worker: take jobs, run them, extend their leases, report their outcomes, drain."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from windlass import _handlers, _leases, _outcome
from windlass._aio_transport import AsyncTransport
from windlass._backoff import Backoff
from windlass._calls import Call
from windlass._handlers import Handlers, Registered
from windlass._leases import Held
from windlass._outcome import Outcome
from windlass._threads import Threads
from windlass.context import CancelReason, Context
from windlass.errors import ApiError, ConnectionLost, InvalidRequest, NotSent, TooManyRequests, Unavailable
from windlass.models import LeasedJob

log = logging.getLogger("windlass.worker")
T = TypeVar("T")

# How long handlers may take to stop once they are cancelled at the end of the grace time.
_UNWIND = 1.0
# How long the last reports may take.
_LAST_REPORTS = 5.0
# A short wait for more free slots, so that a busy worker takes jobs in batches.
_GATHER = 0.005
# Time for an answer beyond the wait that was asked for.
_MARGIN = 10.0
_TRY_AGAIN = (NotSent, ConnectionLost, TooManyRequests, Unavailable)


@dataclass(frozen=True)
class Settings:
    """What a worker was given."""

    name: str
    queues: tuple[str, ...]
    concurrency: int
    lease: float
    renew_every: float
    poll: float
    grace: float
    with_trace: bool


@dataclass
class Stats:
    """Counts since the worker started."""

    taken: int = 0
    succeeded: int = 0
    failed: int = 0
    """Reported failures, snoozes and cancelled jobs."""
    released: int = 0
    refused: int = 0
    """Outcomes that the server did not accept, because the lease was lost."""
    leases_lost: int = 0
    reconnections: int = 0


@dataclass
class _Signals:
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    stop_now: asyncio.Event = field(default_factory=asyncio.Event)
    slot: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: asyncio.Event = field(default_factory=asyncio.Event)
    progress: asyncio.Event = field(default_factory=asyncio.Event)
    """An attempt ended or was reported, or the worker was stopped."""


class Engine:
    """One run of a worker, in one event loop."""

    def __init__(self, transport: AsyncTransport, handlers: Handlers, settings: Settings, stats: Stats) -> None:
        self._transport = transport
        self._handlers = handlers
        self._settings = settings
        self._stats = stats
        self._with_trace = settings.with_trace
        self._with_kinds = True
        self._loop = asyncio.get_running_loop()
        self._signals = _Signals()
        self._threads = Threads(settings.concurrency, "windlass-handler")
        self._held: dict[str, Held] = {}
        self._running: set[Held] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._outcomes: list[Held] = []

    # --- Life ----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Drain; the second time: give up the grace time."""
        if self._signals.stop.is_set():
            self._signals.stop_now.set()
        self._signals.stop.set()
        self._signals.slot.set()
        self._signals.progress.set()

    async def run(self) -> None:
        """Works until it is stopped, then drains. Raises what makes work impossible, such as a refused token."""
        loops = [asyncio.create_task(self._renew_loop()), asyncio.create_task(self._report_loop())]
        for loop in loops:
            loop.add_done_callback(self._loop_ended)
        try:
            await self._take_loop()
        finally:
            self._signals.stop.set()
            await self._drain()
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            self._threads.close()
            await self._transport.close()

    def _loop_ended(self, loop: "asyncio.Task[None]") -> None:
        """A worker that can no longer extend or report must not take more jobs."""
        if not loop.cancelled() and (error := loop.exception()) is not None:
            log.error("the worker stops because of a fault", exc_info=error)
            self.stop()

    async def _drain(self) -> None:
        log.info("draining: %d attempts may go on for %.0f s", len(self._running), self._settings.grace)
        await self._until(lambda: not self._running, self._settings.grace, self._signals.stop_now)
        if self._running:
            for held in list(self._running):
                held.context._cancel("shutdown")
            await self._until(lambda: not self._running, _UNWIND)
            for held in list(self._running):
                self._decide(held, _outcome.released(started=True))
        if not await self._until(lambda: not self._held, _LAST_REPORTS):
            log.warning("%d outcomes could not be reported; their jobs run again", len(self._held))

    async def _until(self, is_done: Callable[[], bool], limit: float, cut: asyncio.Event | None = None) -> bool:
        progress = self._signals.progress
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while not is_done() and not (cut and cut.is_set()):
                    progress.clear()
                    await progress.wait()
        return is_done()

    # --- Take ----------------------------------------------------------------------------------------------------

    async def _take_loop(self) -> None:
        backoff = Backoff()
        while not self._signals.stop.is_set():
            free = await self._free_slots()
            if not free or self._signals.stop.is_set():
                continue
            began = self._loop.time()
            try:
                jobs = await self._take(free)
            except _TRY_AGAIN as error:
                if self._signals.stop.is_set():
                    return
                await self._wait_for_server("jobs", error, backoff)
                continue
            except InvalidRequest as error:
                if not self._with_kinds or "kinds" not in str(error) + str(error.faults):
                    raise
                log.warning("the server does not know `kinds`; jobs of other kinds fail with class UnknownKind")
                self._with_kinds = False
                continue
            for job in jobs:
                self._start(job)
            if jobs or self._loop.time() - began >= self._settings.poll / 2:
                backoff.reset()
            else:
                # The server answered at once and with nothing: it is stopping.
                await self._pause(backoff.next())

    async def _free_slots(self) -> int:
        limit = self._settings.concurrency
        while len(self._running) >= limit and not self._signals.stop.is_set():
            self._signals.slot.clear()
            await self._signals.slot.wait()
        if (limit - len(self._running)) * 8 < limit:
            await self._pause(_GATHER)
        return limit - len(self._running)

    async def _take(self, count: int) -> list[LeasedJob]:
        settings = self._settings
        kinds = self._handlers.kinds() if self._with_kinds else []
        call = _leases.take(settings.name, settings.queues, kinds, count, settings.poll, settings.lease)
        return await self._send(call, settings.poll + _MARGIN, self._signals.stop)

    # --- Run -----------------------------------------------------------------------------------------------------

    def _start(self, job: LeasedJob) -> None:
        handler = self._handlers.find(job.kind)
        context = Context(job, _handlers.timeout_of(job, handler))
        held = Held(job, context)
        self._held[job.lease] = held
        self._stats.taken += 1
        if self._signals.stop.is_set():
            self._decide(held, _outcome.released(started=False))
        elif handler is None:
            self._decide(held, _handlers.unknown_kind(job))
        else:
            self._running.add(held)
            self._run(held, handler)

    def _run(self, held: Held, handler: Registered) -> None:
        timer = None
        if held.context.timeout is not None:
            timer = self._loop.call_later(held.context.timeout, self._time_out, held)
        with_trace = self._with_trace
        if handler.is_async:
            task = asyncio.create_task(self._run_async(held, handler, timer))
            held.context._stop_with(task)
            self._tasks.add(task)
            task.add_done_callback(lambda task: self._task_done(task, held, timer))
            return

        def work() -> None:
            outcome = _handlers.run_plain(handler, held.context, with_trace=with_trace)
            # The loop is closed if the worker ended without waiting for this handler.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._ended, held, outcome, timer)

        self._threads.submit(work)

    async def _run_async(self, held: Held, handler: Registered, timer: asyncio.TimerHandle | None) -> None:
        self._ended(held, await _handlers.run_async(handler, held.context, with_trace=self._with_trace), timer)

    def _task_done(self, task: "asyncio.Task[None]", held: Held, timer: asyncio.TimerHandle | None) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            # Cancelled before its first step: the handler never ran.
            self._ended(held, None, timer)

    def _time_out(self, held: Held) -> None:
        # The failure counts at once; the slot is free when the handler has really ended.
        self._decide(held, _handlers.timed_out(held.context))
        held.context._cancel("timeout")

    def _ended(self, held: Held, outcome: Outcome | None, timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
        self._running.discard(held)
        self._signals.slot.set()
        self._signals.progress.set()
        if outcome is None:
            outcome = self._outcome_of_cancelled(held)
        if outcome is None:
            self._forget(held)
        else:
            self._decide(held, outcome)

    def _outcome_of_cancelled(self, held: Held) -> Outcome | None:
        reason: CancelReason | None = held.context.cancel_reason
        match reason:
            case "cancelled":
                return _outcome.CANCELLED
            case "shutdown":
                return _outcome.released(started=True)
            case "timeout":
                return _handlers.timed_out(held.context)
            case "lease_lost":
                # Nothing to report: the attempt is no longer ours.
                return None
            case None:
                return _outcome.failed("AttemptCancelled", "the handler raised AttemptCancelled by itself")

    def _decide(self, held: Held, outcome: Outcome) -> None:
        """The first outcome counts."""
        if held.outcome is None:
            held.outcome = outcome
            self._outcomes.append(held)
            self._signals.outcome.set()

    def _forget(self, held: Held) -> None:
        self._held.pop(held.job.lease, None)
        self._signals.progress.set()

    # --- Extend --------------------------------------------------------------------------------------------------

    async def _renew_loop(self) -> None:
        backoff = Backoff(cap=min(1.0, self._settings.renew_every))
        delay = self._settings.renew_every
        while True:
            await asyncio.sleep(delay)
            try:
                await self._renew()
            except _TRY_AGAIN as error:
                log.warning("leases could not be extended: %s", error)
                delay = backoff.next()
            except ApiError as error:
                log.error("leases could not be extended: %s", error)
                delay = self._settings.renew_every
            else:
                backoff.reset()
                delay = self._settings.renew_every

    async def _renew(self) -> None:
        held = [one for one in self._held.values() if one.context.cancel_reason != "lease_lost"]
        for first in range(0, len(held), _leases.MAX_ITEMS):
            part = held[first : first + _leases.MAX_ITEMS]
            call = _leases.extend(self._settings.name, part, self._settings.lease)
            answers = await self._send(call, self._settings.lease)
            for one, answer in zip(part, answers, strict=True):
                # What was reported meanwhile is answered `stale`, rightly.
                if answer != "ok" and one.job.lease in self._held and one in self._running:
                    self._stop_attempt(one, "cancelled" if answer == "cancel" else "lease_lost")

    def _stop_attempt(self, held: Held, reason: CancelReason) -> None:
        if not held.context._cancel(reason):
            return
        if reason == "lease_lost":
            self._stats.leases_lost += 1
            log.warning("job %d %s: attempt %d lost its lease", held.job.id, held.job.kind, held.job.attempt)
        else:
            log.info("job %d %s: cancel was requested", held.job.id, held.job.kind)

    # --- Report --------------------------------------------------------------------------------------------------

    async def _report_loop(self) -> None:
        backoff = Backoff(cap=1.0)
        while True:
            await self._signals.outcome.wait()
            self._signals.outcome.clear()
            ready, self._outcomes = self._outcomes, []
            for batch in _leases.batches(ready):
                while True:
                    try:
                        await self._report(batch)
                        backoff.reset()
                        break
                    except _TRY_AGAIN as error:
                        log.warning("%d outcomes could not be reported: %s", len(batch), error)
                        retry_after = error.retry_after if isinstance(error, ApiError) else None
                        await asyncio.sleep(backoff.next(retry_after))

    async def _report(self, batch: list[Held]) -> None:
        try:
            answers = await self._send(_leases.report(self._settings.name, batch), 30.0)
        except _TRY_AGAIN:
            raise
        except ApiError as error:
            await self._report_one_by_one(batch, error)
            return
        for held, answer in zip(batch, answers, strict=True):
            self._reported(held, answer)

    async def _report_one_by_one(self, batch: list[Held], error: ApiError) -> None:
        """One outcome that the server refuses must not hold up the others."""
        if len(batch) > 1:
            for held in batch:
                await self._report([held])
            return
        [held] = batch
        refused = isinstance(error, InvalidRequest)
        if refused and held.outcome is not None and "trace" in held.outcome.fields:
            log.warning("the server does not accept stack traces; none are sent from now on")
            self._with_trace = False
            without = {name: value for name, value in held.outcome.fields.items() if name != "trace"}
            held.outcome = Outcome(held.outcome.succeeded, without)
            await self._report([held])
            return
        if refused and held.outcome is not None and held.outcome.fields.get("class") != "OutcomeRefused":
            held.outcome = _outcome.refused(held.outcome, str(error))
            await self._report([held])
            return
        log.error("job %d %s: its outcome cannot be reported: %s", held.job.id, held.job.kind, error)
        self._forget(held)

    def _reported(self, held: Held, answer: str) -> None:
        self._forget(held)
        if answer != "ok":
            self._stats.refused += 1
            log.warning(
                "job %d %s: the outcome of attempt %d was refused, its lease was lost",
                held.job.id,
                held.job.kind,
                held.job.attempt,
            )
        elif held.outcome is not None and held.outcome.succeeded:
            self._stats.succeeded += 1
        elif held.outcome is not None and held.outcome.fields.get("release"):
            self._stats.released += 1
        else:
            self._stats.failed += 1

    # --- Calls ---------------------------------------------------------------------------------------------------

    async def _send(self, call: Call[T], timeout: float, give_up: asyncio.Event | None = None) -> T:
        return call.finish(await self._transport.send(call.method, call.path, call.body, timeout, give_up))

    async def _wait_for_server(self, what: str, error: Exception, backoff: Backoff) -> None:
        delay = backoff.next(error.retry_after if isinstance(error, ApiError) else None)
        log.warning("no %s from the server, trying again in %.1f s: %s", what, delay, error)
        self._stats.reconnections += 1
        await self._pause(delay)

    async def _pause(self, seconds: float) -> None:
        """Sleeps, unless the worker is stopped."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._signals.stop.wait(), seconds)
