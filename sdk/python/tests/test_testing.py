"""Test mode: handlers in process, without a server."""

import asyncio

import pytest

import windlass
from windlass import Context, LeasedJob, NewJob, Permanent, RetryIn, Snooze, Worker
from windlass.testing import InProcess


@pytest.fixture
def worker() -> Worker:
    worker = Worker()

    @worker.handler("double")
    def double(job: LeasedJob, ctx: Context) -> int:
        ctx.note("easy")
        return int(job.payload) * 2

    @worker.handler("slow", timeout=0.01)
    async def slow(job: LeasedJob, ctx: Context) -> None:
        await asyncio.sleep(60)

    @worker.handler("third time lucky")
    async def lucky(job: LeasedJob, ctx: Context) -> str:
        if ctx.attempt < 3:
            raise RuntimeError(f"attempt {ctx.attempt}")
        return "done"

    @worker.handler("scripted")
    def scripted(job: LeasedJob, ctx: Context) -> None:
        errors = {"permanent": Permanent("no"), "snooze": Snooze(30), "in": RetryIn("5s"), "fail": OSError("away")}
        if ctx.attempt == 1 or job.payload == "fail":
            raise errors[job.payload]

    return worker


def test_result_note_and_list(worker: Worker) -> None:
    queue = InProcess(worker)
    job = queue.client.enqueue("double", 21)
    assert queue.run_due() == 1
    assert queue.client.result(job.id) == 42
    assert queue.client.history(job.id)[0].note == "easy"
    assert [one.id for one in queue.client.list(state="succeeded").items] == [job.id]


def test_retries_move_the_time(worker: Worker) -> None:
    queue = InProcess(worker)
    job = queue.client.enqueue("third time lucky")
    began = queue.now
    assert queue.run_due() == 1
    assert queue.client.get(job.id).state == "retrying"
    assert queue.run_all() == 2
    assert (queue.now - began).total_seconds() == 180
    assert queue.client.result(job.id) == "done"
    assert [one.status for one in queue.client.history(job.id)] == ["FAILED", "FAILED", "SUCCESS"]


def test_what_handlers_ask_for(worker: Worker) -> None:
    queue = InProcess(worker)
    names = ("permanent", "snooze", "in", "fail")
    jobs = {name: queue.client.enqueue("scripted", name, retry={"maxRetries": 2}) for name in names}
    slow = queue.client.enqueue("slow", retry="once")
    unknown = queue.client.enqueue("unheard of", retry="once")
    queue.run_all()
    ended = {name: queue.client.get(job.id) for name, job in jobs.items()}
    assert (ended["permanent"].state, ended["permanent"].reason) == ("failed", "permanent")
    assert (ended["snooze"].state, ended["snooze"].failures) == ("succeeded", 0)
    assert (ended["in"].state, ended["in"].failures) == ("succeeded", 1)
    assert (ended["fail"].reason, ended["fail"].attempt) == ("exhausted", 3)
    assert queue.client.get(slow.id).error_class == "Timeout"
    assert queue.client.get(unknown.id).error_class == "UnknownKind"


def test_async_client_and_batches(worker: Worker) -> None:
    async def scenario() -> None:
        queue = InProcess(worker)
        items = await queue.async_client.enqueue_many([NewJob(kind="double", payload=n) for n in range(3)])
        assert await queue.run_all_async() == 3
        assert [await queue.async_client.result(one.id) for one in items if one.id] == [0, 2, 4]

    asyncio.run(scenario())


def test_cancel_replay_and_keys(worker: Worker) -> None:
    queue = InProcess(worker)
    job = queue.client.enqueue("double", 1, idempotency_key="k", delay=60)
    assert queue.client.enqueue("double", 1, idempotency_key="k", delay=60).existing
    with pytest.raises(windlass.Conflict):
        queue.client.enqueue("double", 2, idempotency_key="k")
    assert queue.run_due() == 0
    queue.advance(60)
    queue.client.cancel(job.id)
    assert queue.run_due() == 0
    queue.client.replay(job.id)
    assert queue.run_due() == 1
    with pytest.raises(windlass.NotFound):
        queue.client.get(99)
