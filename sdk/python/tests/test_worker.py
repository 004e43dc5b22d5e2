"""Everything a handler can do, against the real server."""

import asyncio
import threading
import time
from collections.abc import Mapping

import pytest
from conftest import Server
from running import make_worker, running

import windlass
from windlass import (
    CancelJob,
    Client,
    Context,
    Job,
    LeasedJob,
    NewJob,
    Permanent,
    RetryAfter,
    RetryIn,
    Snooze,
    Worker,
)
from windlass._aio_transport import AsyncHttpTransport
from windlass._calls import Response
from windlass._target import Target

FAST = "fixed:base=10ms,jitter=none,retries=2"


def test_results_notes_and_what_handlers_see(server: Server, client: Client, queue: str) -> None:
    worker = make_worker(server, queue, name=f"w-{queue}")
    seen: list[tuple[int, str]] = []

    @worker.handler("plain")
    def plain(job: LeasedJob, ctx: Context) -> dict[str, object]:
        seen.append((ctx.attempt, ctx.idempotency_key))
        ctx.note(f"attempt {ctx.attempt} of {job.max_attempts}")
        if not ctx.is_last_attempt:
            raise LookupError("not yet")
        return {"sum": sum(job.payload), "text": "grüße 🎉", "left": ctx.remaining()}

    @worker.handler("async")
    async def coroutine(job: LeasedJob, ctx: Context) -> str:
        await asyncio.sleep(0)
        ctx.note("async note")
        return str(ctx.deadline is not None)

    first = client.enqueue("plain", [1, 2, 3], queue=queue, retry=FAST)
    second = client.enqueue("async", queue=queue, timeout="10s")
    with running(worker):
        result = client.result(first.id, timeout=20)
        assert client.result(second.id, timeout=20) == "True"
    assert result == {"sum": 6, "text": "grüße 🎉", "left": None}
    assert [attempt for attempt, _ in seen] == [1, 2, 3]
    assert len({key for _, key in seen}) == 1
    history = client.history(first.id)
    assert [one.status for one in history] == ["FAILED", "FAILED", "SUCCESS"]
    assert history[0].error_class == "LookupError"
    assert history[0].error == "not yet"
    assert history[2].note == "attempt 3 of 3"
    assert history[2].worker == f"w-{queue}"
    assert client.history(second.id)[0].note == "async note"


def test_what_handlers_can_ask_for(server: Server, client: Client, queue: str) -> None:
    class CardDeclined(Permanent):
        pass

    asked = {
        "permanent": CardDeclined("no funds"),
        "after": RetryAfter(0.2, "busy"),
        "in": RetryIn("50ms", "soon", error_class="RateLimited"),
        "snooze": Snooze(0.05, note="too early"),
        "cancel": CancelJob(),
        "error": ValueError("wrong\x00text"),
        "exit": SystemExit(3),
    }
    worker = make_worker(server, queue)

    @worker.handler("ask")
    def ask(job: LeasedJob, ctx: Context) -> str:
        if ctx.attempt == 1:
            raise asked[job.payload]
        return "second"

    @worker.handler("ask-async")
    async def ask_async(job: LeasedJob, ctx: Context) -> str:
        return ask(job, ctx)

    with running(worker):
        for kind in ("ask", "ask-async"):
            names = [name for name in asked if (kind, name) != ("ask-async", "exit")]
            jobs = {name: client.enqueue(kind, name, queue=queue, retry=FAST).id for name in names}
            ended: dict[str, Job] = {name: client.wait(number, timeout=20) for name, number in jobs.items()}
            histories = {name: client.history(number) for name, number in jobs.items()}
            assert (ended["permanent"].reason, ended["permanent"].error_class) == ("permanent", "CardDeclined")
            assert (histories["after"][0].error_class, ended["after"].result) == ("RetryAfter", "second")
            assert (histories["after"][0].delay_ms or 0) >= 200
            assert (histories["in"][0].error_class, histories["in"][0].delay_ms) == ("RateLimited", 50)
            assert (histories["snooze"][0].status, ended["snooze"].failures) == ("SNOOZED", 0)
            assert ended["cancel"].state == "cancelled"
            assert (histories["error"][0].error_class, ended["error"].state) == ("ValueError", "succeeded")
            if "exit" in ended:
                assert histories["exit"][0].error_class == "SystemExit"


def test_errors_of_errors(server: Server, client: Client, queue: str) -> None:
    """Whatever is wrong with an exception, the worker goes on."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise LookupError

    worker = make_worker(server, queue, concurrency=1)

    @worker.handler("raise")
    def raise_it(job: LeasedJob, ctx: Context) -> None:
        match job.payload:
            case "mute":
                raise Mute
            case "negative":
                raise RetryAfter(-1)
            case "text":
                raise RetryAfter("next tuesday", "busy")

    with running(worker):
        jobs = {name: client.enqueue("raise", name, queue=queue, retry="once") for name in ("mute", "negative", "text")}
        ended = {name: client.wait(job.id, timeout=20) for name, job in jobs.items()}
    assert (ended["mute"].error_class, ended["mute"].reason) == ("Mute", "exhausted")
    assert ended["negative"].error_class == "ValueError"
    assert (ended["text"].error_class, ended["text"].reason) == ("OutcomeRefused", "exhausted")
    assert "RetryAfter: busy" in (ended["text"].error or "")


def test_results_that_cannot_be_stored(server: Server, client: Client, queue: str) -> None:
    results = {"set": {1}, "huge": "x" * 70_000, "nan": float("nan"), "half": "\ud800", "largest": "x" * 65_000}
    worker = make_worker(server, queue)

    @worker.handler("result")
    def result(job: LeasedJob, ctx: Context) -> object:
        return results[job.payload]

    with running(worker):
        items = client.enqueue_many([NewJob(kind="result", payload=name, queue=queue) for name in results])
        ended = {name: client.wait(item.id or 0, timeout=20) for name, item in zip(results, items, strict=True)}
    assert ended["largest"].state == "succeeded"
    for name in ("set", "huge", "nan"):
        assert (ended[name].reason, ended[name].error_class) == ("permanent", "BadResult"), name
    assert (ended["half"].reason, ended["half"].error_class) == ("permanent", "OutcomeRefused")


class WithoutKinds(AsyncHttpTransport):
    """A server that does not know the field `kinds`."""

    refused = 0

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        timeout: float,
        give_up: asyncio.Event | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        if body is not None and path.endswith("/leases") and b'"kinds"' in body:
            self.refused += 1
            return Response(400, b'{"title":"Bad Request","detail":"unknown field `kinds`"}', None)
        return await super().send(method, path, body, timeout, give_up)


def test_unknown_kind_is_a_failure(server: Server, client: Client, queue: str) -> None:
    """With a server that hands out jobs of every kind."""
    transport = WithoutKinds(Target.find(server.url, None, None))
    worker = make_worker(server, queue, transport=transport)
    worker.handler("known")(lambda job, ctx: None)
    job = client.enqueue("unknown", queue=queue, retry="once")
    with running(worker):
        assert client.wait(job.id, timeout=20).error_class == "UnknownKind"
    assert transport.refused == 1


def test_jobs_of_other_kinds_are_left_to_other_workers(server: Server, client: Client, queue: str) -> None:
    worker, other = make_worker(server, queue), make_worker(server, queue)
    worker.handler("known")(lambda job, ctx: "known")
    other.handler("other")(lambda job, ctx: "other")
    # A server that does not know `kinds` hands them out in any order: retries bring each to its worker.
    retry = "fixed:base=10ms,jitter=none,retries=1000"
    left = client.enqueue("other", queue=queue, retry=retry)
    with running(worker):
        known = client.enqueue("known", queue=queue, retry=retry)
        assert client.result(known.id, timeout=20) == "known"
        assert client.get(left.id).state in ("queued", "retrying", "running")
        with running(other):
            assert client.result(left.id, timeout=20) == "other"


def test_timeouts(server: Server, client: Client, queue: str) -> None:
    worker = make_worker(server, queue)
    stopped: list[str] = []

    @worker.handler("plain", timeout=0.2)
    def plain(job: LeasedJob, ctx: Context) -> None:
        assert ctx.wait_cancelled(20)
        stopped.append(f"plain {ctx.cancel_reason}")

    @worker.handler("async")
    async def coroutine(job: LeasedJob, ctx: Context) -> None:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            stopped.append(f"async {ctx.cancel_reason}")
            raise

    plain_job = client.enqueue("plain", queue=queue, retry="once")
    async_job = client.enqueue("async", queue=queue, retry="once", timeout=0.2)
    with running(worker):
        assert client.wait(plain_job.id, timeout=20).error_class == "Timeout"
        assert client.wait(async_job.id, timeout=20).error_class == "Timeout"
    assert sorted(stopped) == ["async timeout", "plain timeout"]


@pytest.mark.parametrize("stubborn", [False, True])
def test_cancel_of_a_running_job(server: Server, client: Client, queue: str, stubborn: bool) -> None:
    worker = make_worker(server, queue, renew_every=0.1)
    started = threading.Barrier(3)

    @worker.handler("plain")
    def plain(job: LeasedJob, ctx: Context) -> str:
        started.wait(20)
        ctx.wait_cancelled(20)
        assert ctx.cancel_reason == "cancelled"
        if not stubborn:
            ctx.raise_if_cancelled()
        return "all the same"

    @worker.handler("async")
    async def coroutine(job: LeasedJob, ctx: Context) -> str:
        await asyncio.to_thread(started.wait, 20)
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            if not stubborn:
                raise
        return "all the same"

    jobs = [client.enqueue(kind, queue=queue) for kind in ("plain", "async")]
    with running(worker):
        started.wait(20)
        for job in jobs:
            assert client.cancel(job.id).cancel_requested
        for job in jobs:
            # An attempt that succeeds all the same stays succeeded.
            assert client.wait(job.id, timeout=20).state == ("succeeded" if stubborn else "cancelled")


def test_leases_are_extended(server: Server, client: Client, queue: str) -> None:
    worker = make_worker(server, queue, lease=1.0)

    @worker.handler("long")
    def long(job: LeasedJob, ctx: Context) -> bool:
        return ctx.wait_cancelled(2.5)

    job = client.enqueue("long", queue=queue)
    with running(worker):
        assert client.result(job.id, timeout=20) is False
    assert client.get(job.id).attempt == 1


def test_traces_are_dropped_if_the_server_refuses_them(server: Server, client: Client, queue: str) -> None:
    worker = make_worker(server, queue, send_traces=True)

    @worker.handler("fail")
    def fail(job: LeasedJob, ctx: Context) -> None:
        raise ZeroDivisionError("1/0")

    job = client.enqueue("fail", queue=queue, retry=FAST)
    with running(worker):
        ended = client.wait(job.id, timeout=20)
    assert (ended.error_class, ended.reason, ended.attempt) == ("ZeroDivisionError", "exhausted", 3)


def test_work_inside_an_event_loop(server: Server, client: Client, queue: str) -> None:
    async def program() -> None:
        worker = make_worker(server, queue)

        @worker.handler("add")
        async def add(job: LeasedJob, ctx: Context) -> int:
            return sum(job.payload)

        work = asyncio.create_task(worker.run_async())
        async with windlass.AsyncClient(server.url) as asynchronous:
            job = await asynchronous.enqueue("add", [40, 2], queue=queue)
            assert await asynchronous.result(job.id, timeout=20) == 42
        began = time.monotonic()
        worker.stop()
        await work
        # The long poll does not hold up an idle worker.
        assert time.monotonic() - began < 4

    asyncio.run(program())


def test_a_refused_request_ends_the_worker(server: Server, queue: str) -> None:
    worker = make_worker(server, "Not A Queue")
    worker.handler("a")(lambda job, ctx: None)
    with pytest.raises(windlass.InvalidRequest):
        worker.run()


def test_wrong_use_is_named() -> None:
    with pytest.raises(TypeError, match="list of names"):
        Worker(queues="email")
    with pytest.raises(ValueError, match="at least 1"):
        Worker(concurrency=0)
    with pytest.raises(ValueError, match="no handlers"):
        Worker().run()
    with pytest.raises(ValueError, match=r"http://…"):
        Worker("ftp://example.com")
    worker = Worker()
    worker.handler("a")(lambda job, ctx: None)
    with pytest.raises(ValueError, match="has a handler already"):
        worker.handler("a")(lambda job, ctx: None)
