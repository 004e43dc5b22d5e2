"""The asyncio client has the same methods, from the same core."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from conftest import DEADLINE, Server

import windlass
from windlass import AsyncClient, Client, NewJob
from windlass.aio import AsyncPolicies, AsyncSchedules
from windlass.aio_operations import AsyncDeadLetters, AsyncHolds, AsyncKinds, AsyncQueues
from windlass.client import Policies, Schedules
from windlass.operations import DeadLetters, Holds, Kinds, Queues


@pytest.mark.parametrize(
    ("sync", "other"),
    [
        (Client, AsyncClient),
        (Schedules, AsyncSchedules),
        (Policies, AsyncPolicies),
        (Queues, AsyncQueues),
        (Holds, AsyncHolds),
        (Kinds, AsyncKinds),
        (DeadLetters, AsyncDeadLetters),
    ],
)
def test_both_clients_have_the_same_methods(sync: type, other: type) -> None:
    def methods(of: type) -> dict[str, Callable[..., Any]]:
        return {name: value for name, value in vars(of).items() if callable(value) and not name.startswith("_")}

    assert methods(sync).keys() == methods(other).keys()
    for name, method in methods(sync).items():
        twin = methods(other)[name]
        assert inspect.signature(method).parameters == inspect.signature(twin).parameters, name
        assert inspect.iscoroutinefunction(twin) or inspect.isasyncgenfunction(twin), name


def test_jobs_schedules_and_policies(server: Server, queue: str) -> None:
    async def calls() -> None:
        async with AsyncClient(server.url) as client:
            jobs = await asyncio.gather(*(client.enqueue("a", n, queue=queue, delay="1h") for n in range(40)))
            assert len({job.id for job in jobs}) == 40
            await client.enqueue_many([NewJob(kind="b", queue=queue, delay=60) for _ in range(10)])
            assert len([job async for job in client.iterate(queue=queue, limit=7)]) == 50
            assert (await client.cancel(jobs[0].id)).state == "cancelled"
            assert (await client.wait(jobs[0].id, timeout=DEADLINE)).state == "cancelled"
            assert (await client.replay(jobs[0].id)).state == "queued"
            assert await client.history(jobs[0].id) == []
            with pytest.raises(windlass.WaitTimeout):
                await client.wait(jobs[1].id, timeout=0.05)
            schedule = await client.schedules.create(NewJob(kind="c", queue=queue), every="1h")
            assert (await client.schedules.pause(schedule.id)).paused
            await client.schedules.remove(schedule.id)
            assert len((await client.policies.preview("financial")).delays) == 5
            assert await client.queues.pause(queue) == 1
            assert (await client.why(jobs[1].id)).sentences
            assert await client.holds.place(queue=queue, duration="1m") == 1
            assert await client.holds.release(queue=queue) == 1
            await client.kinds.set(f"async-{queue}", policy="once")
            await client.kinds.remove(f"async-{queue}")
            assert (await client.dead_letters.list(queue=queue)).items == []
            with pytest.raises(windlass.NotFound):
                await client.get(10**15)

    asyncio.run(calls())


def test_one_client_in_several_event_loops(server: Server) -> None:
    client = AsyncClient(server.url)
    for _ in range(3):
        assert asyncio.run(client.request("GET", "/healthz"))["status"]


def test_unreachable_server() -> None:
    with pytest.raises(windlass.NotSent):
        asyncio.run(AsyncClient("http://127.0.0.1:1", retries=1).get(1))
