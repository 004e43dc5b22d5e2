"""Jobs per second of a worker with empty handlers: python bench.py [JOBS] [CONCURRENCY] [PROCESSES].

The server is WINDLASS_SERVER. With several processes, the concurrency is divided among them."""

import asyncio
import os
import signal
import sys
import time
import uuid

from windlass import AsyncClient, Client, Context, LeasedJob, NewJob, Worker


async def fill(kind: str, jobs: int) -> str:
    queue = f"bench-{uuid.uuid4().hex[:8]}"
    async with AsyncClient() as client:
        for first in range(0, jobs, 5000):
            await client.enqueue_many([NewJob(kind=kind, queue=queue)] * min(5000, jobs - first))
    return queue


def make(queue: str, concurrency: int) -> Worker:
    worker = Worker(queues=[queue], concurrency=concurrency)

    @worker.handler("plain")
    def plain(job: LeasedJob, ctx: Context) -> None:
        pass

    @worker.handler("async")
    async def coroutine(job: LeasedJob, ctx: Context) -> None:
        pass

    return worker


async def measure(kind: str, jobs: int, concurrency: int) -> float:
    worker = make(await fill(kind, jobs), concurrency)
    began = time.perf_counter()
    work = asyncio.create_task(worker.run_async())
    while worker.stats.succeeded < jobs:  # noqa: ASYNC110 - the worker announces nothing
        await asyncio.sleep(0.005)
    taken = time.perf_counter() - began
    worker.stop()
    await work
    return jobs / taken


def measure_processes(jobs: int, concurrency: int, processes: int) -> float:
    """The counts of the processes stay with them, so the server is asked what is left."""
    queue = asyncio.run(fill("async", jobs))
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        make(queue, max(1, concurrency // processes)).run(processes=processes)
        os._exit(0)
    with Client() as client:
        while any(client.list(queue=queue, state=state, limit=1).items for state in ("queued", "running", "retrying")):
            time.sleep(0.02)
    taken = time.perf_counter() - began
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
    return jobs / taken


def main(jobs: int = 10_000, concurrency: int = 100, processes: int = 2) -> None:
    for kind in ("async", "plain"):
        rate = asyncio.run(measure(kind, jobs, concurrency))
        print(f"{kind} handlers: {rate:,.0f} jobs/s ({jobs} jobs, concurrency {concurrency})")
    rate = measure_processes(jobs, concurrency, processes)
    print(f"async handlers in {processes} processes: {rate:,.0f} jobs/s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
