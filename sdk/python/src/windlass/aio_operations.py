"""The asyncio client's calls for operators: the methods of `operations`, to be awaited."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar, Unpack

from windlass import _operations
from windlass._calls import Call
from windlass._duration import Duration
from windlass.models import Job, Page, Policy
from windlass.operating_models import (
    BulkResult,
    DeadLetterFilter,
    DeadLetterGroup,
    Hold,
    KindSettings,
    Queue,
    QueueOptions,
    Rules,
)

T = TypeVar("T")


class AsyncRuns(Protocol):
    """Whoever sends calls."""

    async def _run(self, call: Call[T]) -> T: ...


class AsyncQueues:
    """Queues: `client.queues`. `tenant="*"` means the queues of this name of all tenants."""

    def __init__(self, client: AsyncRuns) -> None:
        self._client = client

    async def list(self, *, tenant: str | None = None) -> Sequence[Queue]:
        """Depth, oldest job and settings of each queue."""
        return await self._client._run(_operations.list_queues(tenant))

    async def set(self, name: str, *, tenant: str | None = None, **options: Unpack[QueueOptions]) -> Mapping[str, Any]:
        """Sets a queue's policy, retention, limits, breaker and rules; those not named return to their defaults."""
        return await self._client._run(_operations.set_queue(name, tenant, options))

    async def pause(self, name: str, *, tenant: str | None = None) -> int:
        """Nothing of the queue starts until it is resumed. Returns how many queues have this name."""
        return await self._client._run(_operations.pause_queue(name, tenant))

    async def resume(self, name: str, *, tenant: str | None = None) -> int:
        """Resumes a paused queue."""
        return await self._client._run(_operations.resume_queue(name, tenant))

    async def purge(self, name: str, *, tenant: str | None = None) -> int:
        """Cancels all waiting jobs of a queue. Returns how many."""
        return await self._client._run(_operations.purge_queue(name, tenant))


class AsyncHolds:
    """Holds: `client.holds`."""

    def __init__(self, client: AsyncRuns) -> None:
        self._client = client

    async def list(self, *, tenant: str | None = None) -> Sequence[Hold]:
        """What is held, and open circuit breakers."""
        return await self._client._run(_operations.list_holds(tenant))

    async def place(
        self,
        *,
        queue: str | None = None,
        key: str | None = None,
        duration: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        tenant: str | None = None,
    ) -> int:
        """Nothing of the queue, or of the limit key, starts for `duration` or until `until`. Returns how many are
        held. A key without a queue is held in every queue."""
        call = _operations.place_hold(
            queue=queue, key=key, duration=duration, until=until, reason=reason, tenant=tenant
        )
        return await self._client._run(call)

    async def release(self, *, queue: str | None = None, key: str | None = None, tenant: str | None = None) -> int:
        """Ends a hold. Returns how many were released."""
        return await self._client._run(_operations.release_hold(queue=queue, key=key, tenant=tenant))


class AsyncKinds:
    """Settings of kinds, for every tenant and queue: `client.kinds`."""

    def __init__(self, client: AsyncRuns) -> None:
        self._client = client

    async def list(self) -> Sequence[KindSettings]:
        """The kinds that have settings of their own."""
        return await self._client._run(_operations.list_kinds())

    async def set(self, name: str, *, policy: Policy | None = None, rules: Rules | None = None) -> KindSettings:
        """Sets the policy and error rules of a kind; what is left out returns to what the nodes' files say."""
        return await self._client._run(_operations.set_kind(name, policy, rules))

    async def remove(self, name: str) -> None:
        """Removes what was set here."""
        await self._client._run(_operations.set_kind(name, None, None))


class AsyncDeadLetters:
    """Failed jobs that await manual action: `client.dead_letters`."""

    def __init__(self, client: AsyncRuns) -> None:
        self._client = client

    async def list(
        self, *, limit: int | None = None, cursor: str | None = None, **which: Unpack[DeadLetterFilter]
    ) -> Page[Job]:
        """One page of dead letters, newest first."""
        return await self._client._run(_operations.list_dead_letters(limit, cursor, which))

    async def groups(self, **which: Unpack[DeadLetterFilter]) -> Sequence[DeadLetterGroup]:
        """Groups of similar failures, the largest first."""
        return await self._client._run(_operations.dead_letter_groups(which))

    async def replay(
        self,
        ids: Iterable[int] | None = None,
        *,
        everything: bool = False,
        rate: int | None = None,
        **which: Unpack[DeadLetterFilter],
    ) -> BulkResult:
        """Sends dead letters again: those with these ids, those that match the filter, or everything. `rate` is in
        jobs per second."""
        return await self._client._run(_operations.replay_dead_letters(ids, everything, rate, which))

    async def discard(
        self,
        ids: Iterable[int] | None = None,
        *,
        everything: bool = False,
        reason: str | None = None,
        **which: Unpack[DeadLetterFilter],
    ) -> BulkResult:
        """Declares dead letters dealt with. They stay in the archive."""
        return await self._client._run(_operations.discard_dead_letters(ids, everything, reason, which))
