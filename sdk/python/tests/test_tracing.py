"""The trace context of jobs: given, or the current one of OpenTelemetry, and what workers see of it."""

import asyncio

import pytest
from conftest import Server
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span
from running import make_worker, running

from windlass import AsyncClient, Client, Context, LeasedJob, NewJob, Worker
from windlass.testing import InProcess

TRACE = 0x0AF7651916CD43DD8448EB211C80319C
GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CURRENT = "00-0af7651916cd43dd8448eb211c80319c-00000000000000ab-01"
SPAN = NonRecordingSpan(SpanContext(TRACE, 0xAB, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)))


def test_jobs_carry_the_context_to_their_worker(server: Server, client: Client, queue: str) -> None:
    seen: dict[str, str | None] = {}
    worker = make_worker(server, queue)

    @worker.handler("traced")
    def traced(job: LeasedJob, ctx: Context) -> None:
        seen[job.payload] = job.traceparent

    async def enqueue() -> int:
        async with AsyncClient(server.url) as other:
            return (await other.enqueue("traced", "async", queue=queue, traceparent=GIVEN)).id

    jobs = [client.enqueue("traced", "none", queue=queue).id]
    jobs.append(client.enqueue("traced", "given", queue=queue, traceparent=GIVEN).id)
    jobs.append(asyncio.run(enqueue()))
    batch = [NewJob(kind="traced", payload="batch", queue=queue)]
    jobs += [item.id for item in client.enqueue_many(batch, traceparent=GIVEN) if item.id is not None]
    with use_span(SPAN):
        jobs.append(client.enqueue("traced", "current", queue=queue).id)
        jobs.append(client.enqueue("traced", "nearer", queue=queue, traceparent=GIVEN).id)
    with running(worker):
        for job in jobs:
            client.wait(job, timeout=20)
    given = {"given": GIVEN, "async": GIVEN, "batch": GIVEN, "nearer": GIVEN}
    assert seen == {"none": None, "current": CURRENT} | given


@pytest.mark.parametrize("wrong", ["", "00-1-2-01", f"{GIVEN}\r\nx: y", GIVEN.upper()])
def test_what_is_no_context_is_refused(client: Client, wrong: str) -> None:
    with pytest.raises(ValueError, match="a traceparent has the form"):
        client.enqueue("traced", traceparent=wrong)


def test_test_mode_hands_the_context_on() -> None:
    seen: list[str | None] = []
    worker = Worker()
    worker.handler("traced")(lambda job, ctx: seen.append(job.traceparent))
    queue = InProcess(worker)
    queue.client.enqueue("traced", traceparent=GIVEN)
    queue.client.enqueue("traced")
    queue.run_all()
    assert seen == [GIVEN, None]
