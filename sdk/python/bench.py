"""Jobs per second of a worker with empty handlers: python bench.py [JOBS] [CONCURRENCY].

The server is WINDLASS_SERVER."""

import asyncio
import sys
import time
import uuid

from windlass import AsyncClient, Context, LeasedJob, NewJob, Worker


async def measure(kind: str, jobs: int, concurrency: int) -> float:
    queue = f"bench-{uuid.uuid4().hex[:8]}"
    async with AsyncClient() as client:
        for first in range(0, jobs, 5000):
            await client.enqueue_many([NewJob(kind=kind, queue=queue)] * min(5000, jobs - first))
    worker = Worker(queues=[queue], concurrency=concurrency)

    @worker.handler("plain")
    def plain(job: LeasedJob, ctx: Context) -> None:
        pass

    @worker.handler("async")
    async def coroutine(job: LeasedJob, ctx: Context) -> None:
        pass

    began = time.perf_counter()
    work = asyncio.create_task(worker.run_async())
    while worker.stats.succeeded < jobs:  # noqa: ASYNC110 - the worker announces nothing
        await asyncio.sleep(0.005)
    taken = time.perf_counter() - began
    worker.stop()
    await work
    return jobs / taken


async def main(jobs: int = 10_000, concurrency: int = 100) -> None:
    for kind in ("async", "plain"):
        rate = await measure(kind, jobs, concurrency)
        print(f"{kind} handlers: {rate:,.0f} jobs/s ({jobs} jobs, concurrency {concurrency})")


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
