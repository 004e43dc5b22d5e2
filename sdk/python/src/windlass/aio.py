"""The asyncio client: the methods of `Client`, to be awaited."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, Self, TypeVar, Unpack

from windlass import _calls, _operations
from windlass._aio_transport import AsyncHttpTransport, AsyncTransport
from windlass._backoff import Backoff
from windlass._calls import Call
from windlass._duration import Duration
from windlass._target import Target
from windlass.aio_operations import AsyncDeadLetters, AsyncHolds, AsyncKinds, AsyncQueues
from windlass.errors import ApiError, JobNotSucceeded, WaitTimeout, WindlassError
from windlass.models import (
    Attempt,
    BatchItem,
    Job,
    JobOptions,
    NamedPolicy,
    NewJob,
    Page,
    Policy,
    PolicyPreview,
    Priority,
    Schedule,
)
from windlass.operating_models import Why

T = TypeVar("T")


class AsyncClient:
    """Calls a Windlass server. May be shared by the tasks of an event loop.

    Without `url` and `token` the environment variables WINDLASS_SERVER and WINDLASS_TOKEN count, else the server is
    http://127.0.0.1:9463.

    Calls that could not be carried out, and calls that are safe to repeat, are repeated up to `retries` times with
    backoff and jitter. `enqueue` is safe to repeat with an `idempotency_key`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        retries: int = 4,
        tls: ssl.SSLContext | None = None,
        transport: AsyncTransport | None = None,
    ) -> None:
        self._transport = transport or AsyncHttpTransport(Target.find(url, token, tls))
        self._timeout = timeout
        self._retries = retries
        self.schedules = AsyncSchedules(self)
        self.policies = AsyncPolicies(self)
        self.queues = AsyncQueues(self)
        self.holds = AsyncHolds(self)
        self.kinds = AsyncKinds(self)
        self.dead_letters = AsyncDeadLetters(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes idle connections."""
        await self._transport.close()

    async def _run(self, call: Call[T]) -> T:
        """Sends a call; repeats it where that is safe."""
        backoff = Backoff()
        for left in range(self._retries, -1, -1):
            try:
                return call.finish(
                    await self._transport.send(call.method, call.path, call.body, self._timeout, headers=call.headers)
                )
            except WindlassError as error:
                if left == 0 or not call.may_repeat(error):
                    raise
                await asyncio.sleep(backoff.next(error.retry_after if isinstance(error, ApiError) else None))
        raise AssertionError("unreachable")

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        """Any call of the API that has no method here: `client.request("GET", "/api/v1/queues")`."""
        return await self._run(_calls.raw(method, path, body))

    async def enqueue(
        self,
        kind: str | None = None,
        payload: Any = None,
        *,
        traceparent: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Stores one job. With `http` it is a call to a URL, and `kind` may be left out.

        The job belongs to the trace of `traceparent`, or of the current span if the program uses OpenTelemetry.
        """
        return await self._run(_calls.enqueue(NewJob(kind=kind, payload=payload, **options), traceparent))

    async def enqueue_many(
        self, jobs: Iterable[NewJob], *, atomic: bool = True, traceparent: str | None = None
    ) -> Sequence[BatchItem]:
        """Stores up to 10,000 jobs in one commit: all or none, or (`atomic=False`) each by itself."""
        return await self._run(_calls.enqueue_many(jobs, atomic, traceparent))

    async def get(self, job_id: int) -> Job:
        """Looks at a job."""
        return await self._run(_calls.get(job_id))

    async def list(
        self,
        *,
        state: str | None = None,
        queue: str | None = None,
        kind: str | None = None,
        tenant: str | None = None,
        error_class: str | None = None,
        schedule: int | None = None,
        parent: int | None = None,
        since: datetime | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> Page[Job]:
        """One page of jobs, newest first."""
        call = _calls.list_jobs(
            state=state,
            queue=queue,
            kind=kind,
            tenant=tenant,
            **{"class": error_class},
            schedule=schedule,
            parent=parent,
            since=since,
            limit=limit,
            cursor=cursor,
            order=order,
        )
        return await self._run(call)

    async def iterate(self, **filters: Any) -> AsyncIterator[Job]:
        """All jobs that match the filters of `list`, page by page."""
        cursor: str | None = None
        while True:
            page = await self.list(**filters, cursor=cursor)
            for job in page.items:
                yield job
            cursor = page.next
            if cursor is None:
                return

    async def history(self, job_id: int, *, limit: int = 10) -> Sequence[Attempt]:
        """The latest attempts, oldest first."""
        return await self._run(_calls.history(job_id, limit))

    async def why(self, job_id: int) -> Why:
        """Why a job is where it is: what it waits for and until when, who runs it, or why it gave up."""
        return await self._run(_operations.why(job_id))

    async def cancel(self, job_id: int) -> Job:
        """Cancels a job. A running one is asked to stop: `cancel_requested` is then true."""
        return await self._run(_calls.cancel(job_id))

    async def replay(self, job_id: int) -> Job:
        """Sends a job again under its own id, with a fresh allowance of retries."""
        return await self._run(_calls.replay(job_id))

    async def amend(
        self,
        job_id: int,
        *,
        priority: Priority | None = None,
        run_at: datetime | None = None,
        delay: Duration | None = None,
    ) -> Job:
        """Changes the priority or time of a waiting job."""
        return await self._run(_calls.amend(job_id, priority=priority, run_at=run_at, delay=delay))

    async def wait(self, job_id: int, *, timeout: float | None = None) -> Job:
        """Waits until the job is finished, however it ended."""
        until = None if timeout is None else time.monotonic() + timeout
        backoff = Backoff(base=0.05, cap=1.0)
        while True:
            job = await self.get(job_id)
            if job.is_finished:
                return job
            pause = backoff.next()
            if until is not None:
                left = until - time.monotonic()
                if left <= 0:
                    raise WaitTimeout(f"job {job_id} is {job.state} after {timeout} s")
                pause = min(pause, left)
            await asyncio.sleep(pause)

    async def result(self, job_id: int, *, timeout: float | None = None) -> Any:
        """Waits for the job's result. Raises `JobNotSucceeded` if it failed or was cancelled."""
        job = await self.wait(job_id, timeout=timeout)
        if job.state != "succeeded":
            raise JobNotSucceeded(job)
        return job.result


class AsyncSchedules:
    """Schedules: `client.schedules`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(
        self,
        job: NewJob,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        timezone: str | None = None,
        overlap: Literal["skip", "allow"] | None = None,
        missed: Literal["one", "skip"] | None = None,
        recurring: bool | None = None,
        paused: bool | None = None,
    ) -> Schedule:
        """Makes a schedule: a cron line or an interval, and the job each firing enqueues."""
        call = _calls.create_schedule(
            job=job,
            cron=cron,
            every=every,
            timezone=timezone,
            overlap=overlap,
            missed=missed,
            recurring=recurring,
            paused=paused,
        )
        return await self._client._run(call)

    async def get(self, schedule_id: int) -> Schedule:
        """Looks at a schedule."""
        return await self._client._run(_calls.get_schedule(schedule_id))

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[Schedule]:
        """One page of schedules."""
        return await self._client._run(_calls.list_schedules(limit=limit, cursor=cursor))

    async def change(self, schedule_id: int, **fields: Any) -> Schedule:
        """Changes a schedule; takes the fields of `create`."""
        return await self._client._run(_calls.change_schedule(schedule_id, **fields))

    async def remove(self, schedule_id: int) -> None:
        """Removes a schedule. Its runs stay in history."""
        await self._client._run(_calls.remove_schedule(schedule_id))

    async def pause(self, schedule_id: int) -> Schedule:
        """Pauses a schedule."""
        return await self._client._run(_calls.pause_schedule(schedule_id))

    async def resume(self, schedule_id: int) -> Schedule:
        """Resumes a schedule. Firings during the pause are not made up for."""
        return await self._client._run(_calls.resume_schedule(schedule_id))

    async def trigger(self, schedule_id: int) -> Job:
        """Fires now, whatever the cron line says."""
        return await self._client._run(_calls.trigger_schedule(schedule_id))

    async def preview(self, schedule_id: int, *, count: int = 5) -> Sequence[datetime]:
        """The next firings."""
        return await self._client._run(_calls.preview_schedule(schedule_id, count))

    async def preview_new(
        self, *, cron: str | None = None, every: Duration | None = None, timezone: str | None = None, count: int = 5
    ) -> Sequence[datetime]:
        """The firings that a schedule would have."""
        return await self._client._run(
            _calls.preview_new_schedule(cron=cron, every=every, timezone=timezone, count=count)
        )


class AsyncPolicies:
    """Retry policies: `client.policies`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def preview(self, policy: Policy, *, count: int | None = None) -> PolicyPreview:
        """The delays of a policy, their jitter windows and totals."""
        return await self._client._run(_calls.preview_policy(policy, count))

    async def list(self) -> Sequence[NamedPolicy]:
        """Presets, and the operator's own."""
        return await self._client._run(_calls.list_policies())

    async def get(self, name: str) -> NamedPolicy:
        """One policy."""
        return await self._client._run(_calls.get_policy(name))
