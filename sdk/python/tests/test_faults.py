"""Kills, lost leases, drains, and a server that is away."""

import asyncio
import collections
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from conftest import DEADLINE, Server, until
from running import make_worker, running

from windlass import Client, Context, LeasedJob, NewJob, Worker
from windlass._calls import Response

# A nightly run makes these longer.
JOBS = int(os.environ.get("SDK_TEST_JOBS", "3000"))
AWAY = float(os.environ.get("SDK_TEST_AWAY", "0"))
FAST = "fixed:base=10ms,jitter=none,retries=3"


def wait_handler(worker: Worker, kind: str = "wait") -> tuple[threading.Event, threading.Event]:
    """A handler that announces itself, then works until it is let go."""
    started, go = threading.Event(), threading.Event()

    @worker.handler(kind)
    def wait(job: LeasedJob, ctx: Context) -> str:
        started.set()
        assert go.wait(DEADLINE)
        return f"attempt {ctx.attempt}"

    return started, go


class Process:
    """A worker process."""

    def __init__(
        self, server: Server, queue: str, folder: Path, lease: float, grace: float, processes: int = 1
    ) -> None:
        script = Path(__file__).parent / "worker_process.py"
        arguments = [server.url, queue, str(lease), str(grace), str(processes)]
        self.log = folder / "worker.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([sys.executable, str(script), *arguments], stderr=log)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        return self.process.wait(DEADLINE)


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_server_killed_in_the_middle_of_a_job(server: Server, client: Client, queue: str) -> None:
    worker = make_worker(server, queue, lease=20.0, renew_every=0.2)
    started, go = wait_handler(worker)
    job = client.enqueue("wait", queue=queue, retry=FAST)
    with running(worker):
        assert started.wait(DEADLINE)
        server.kill()
        # The handler ends while there is no server: its outcome must wait.
        go.set()
        until(lambda: worker.stats.reconnections > 0, "the worker noticed")
        server.start()
        assert client.result(job.id, timeout=DEADLINE) == "attempt 1"
        # And the worker takes new jobs.
        assert client.result(client.enqueue("wait", queue=queue).id, timeout=DEADLINE) == "attempt 1"
    assert worker.stats.refused == 0


def test_server_away_for_a_while(server: Server, client: Client, queue: str) -> None:
    worker = make_worker(server, queue, concurrency=8)
    counts: collections.Counter[int] = collections.Counter()

    @worker.handler("count")
    async def count(job: LeasedJob, ctx: Context) -> None:
        counts[job.payload] += 1

    jobs = [NewJob(kind="count", payload=n, queue=queue, delay=n * 0.01, retry=FAST) for n in range(200)]
    client.enqueue_many(jobs)
    with running(worker):
        until(lambda: len(counts) > 20, "work began")
        server.kill()
        back = time.monotonic() + AWAY
        until(
            lambda: time.monotonic() >= back and worker.stats.reconnections >= 3,
            "the worker tried again, more than once",
            AWAY + DEADLINE,
        )
        server.start()
        until(lambda: _succeeded(client, queue) == 200, "all were run and reported")
    assert len(counts) == 200


def _succeeded(client: Client, queue: str) -> int:
    return len(client.list(queue=queue, state="succeeded", limit=200).items)


def test_worker_killed_in_the_middle_of_a_job(
    server: Server, client: Client, queue: str, tmp_path: Path, processes: list[Process]
) -> None:
    processes.append(Process(server, queue, tmp_path, lease=2, grace=5))
    job = client.enqueue("until-file", str(tmp_path), queue=queue, retry=FAST)
    until(lambda: (tmp_path / "started-1").exists(), "the first attempt began")
    processes[0].send(signal.SIGKILL)
    processes[0].ended()
    processes.append(Process(server, queue, tmp_path, lease=2, grace=5))
    until(lambda: (tmp_path / "started-2").exists(), "the second attempt began")
    (tmp_path / "go").touch()
    assert client.result(job.id, timeout=DEADLINE) == "attempt 2"
    assert client.history(job.id)[0].error_class == "WorkerLost"


def test_lost_lease(server: Server, client: Client, queue: str) -> None:
    """The handler is cancelled, and what it returns all the same is refused."""
    worker = make_worker(server, queue, lease=1.0, renew_every=4.0, concurrency=1)
    reasons: list[str | None] = []

    @worker.handler("slow")
    def slow(job: LeasedJob, ctx: Context) -> str:
        if ctx.attempt == 1:
            ctx.wait_cancelled(DEADLINE)
            reasons.append(ctx.cancel_reason)
        return f"attempt {ctx.attempt}"

    job = client.enqueue("slow", queue=queue, retry=FAST)
    with running(worker):
        assert client.result(job.id, timeout=DEADLINE) == "attempt 2"
        until(lambda: worker.stats.refused == 1, "the first attempt's result was refused")
    assert reasons == ["lease_lost"]
    assert worker.stats.leases_lost == 1
    assert [one.error_class for one in client.history(job.id)] == ["WorkerLost", None]


def test_sigterm_drains(server: Server, client: Client, queue: str, tmp_path: Path, processes: list[Process]) -> None:
    processes.append(Process(server, queue, tmp_path, lease=10, grace=20))
    job = client.enqueue("until-file", str(tmp_path), queue=queue)
    until(lambda: (tmp_path / "started-1").exists(), "the attempt began")
    processes[0].send(signal.SIGTERM)
    later = client.enqueue("until-file", str(tmp_path), queue=queue)
    (tmp_path / "go").touch()
    assert processes[0].ended() == 0
    assert client.result(job.id, timeout=DEADLINE) == "attempt 1"
    assert client.get(later.id).state in ("queued", "succeeded")


def test_end_of_the_grace_time_gives_jobs_back(
    server: Server, client: Client, queue: str, tmp_path: Path, processes: list[Process]
) -> None:
    processes.append(Process(server, queue, tmp_path, lease=60, grace=60))
    job = client.enqueue("until-file", str(tmp_path), queue=queue)
    until(lambda: (tmp_path / "started-1").exists(), "the attempt began")
    processes[0].send(signal.SIGTERM)
    until(lambda: "draining" in processes[0].log.read_text(), "the worker drains")
    # The second signal cuts the grace time short, although the handler never ends.
    processes[0].send(signal.SIGTERM)
    assert processes[0].ended() == 0
    given_back = client.get(job.id)
    assert (given_back.state, given_back.failures) == ("queued", 0)
    assert client.history(job.id)[0].status == "RELEASED"


def test_several_processes_share_the_work_and_drain(
    server: Server, client: Client, queue: str, tmp_path: Path, processes: list[Process]
) -> None:
    processes.append(Process(server, queue, tmp_path, lease=60, grace=20, processes=2))
    items = [client.enqueue("process", queue=queue) for _ in range(60)]
    ran_in = {client.result(item.id, timeout=DEADLINE) for item in items}
    assert len(ran_in) == 2
    assert processes[0].process.pid not in ran_in
    running = client.enqueue("until-file", str(tmp_path), queue=queue)
    until(lambda: (tmp_path / "started-1").exists(), "the attempt began")
    processes[0].send(signal.SIGTERM)
    until(lambda: processes[0].log.read_text().count("draining") == 2, "both processes drain")
    (tmp_path / "go").touch()
    assert processes[0].ended() == 0
    assert client.result(running.id, timeout=DEADLINE) == "attempt 1"


def test_a_process_that_dies_is_replaced(
    server: Server, client: Client, queue: str, tmp_path: Path, processes: list[Process]
) -> None:
    processes.append(Process(server, queue, tmp_path, lease=5, grace=5, processes=2))
    job = client.enqueue("process", "die", queue=queue, retry=FAST)
    client.result(job.id, timeout=DEADLINE)
    assert client.history(job.id)[0].error_class == "WorkerLost"
    items = [client.enqueue("process", queue=queue) for _ in range(60)]
    assert len({client.result(item.id, timeout=DEADLINE) for item in items}) == 2
    assert "a new one starts" in processes[0].log.read_text()


def test_processes_drain_when_their_parent_is_killed(
    server: Server, client: Client, queue: str, tmp_path: Path, processes: list[Process]
) -> None:
    processes.append(Process(server, queue, tmp_path, lease=60, grace=20, processes=2))
    job = client.enqueue("until-file", str(tmp_path), queue=queue)
    until(lambda: (tmp_path / "started-1").exists(), "the attempt began")
    processes[0].send(signal.SIGKILL)
    until(lambda: processes[0].log.read_text().count("draining") == 2, "both processes drain")
    (tmp_path / "go").touch()
    assert client.result(job.id, timeout=DEADLINE) == "attempt 1"


def test_a_draining_server_is_not_hammered(queue: str) -> None:
    """503 with Retry-After: the worker waits as long as it was asked to."""
    asked: list[float] = []

    class Draining:
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
            asked.append(time.monotonic())
            return Response(503, b'{"type":"urn:windlass:problem:draining","title":"Service Unavailable"}', 0.4)

        async def close(self) -> None:
            pass

    worker = Worker(queues=[queue], transport=Draining())
    worker.handler("a")(lambda job, ctx: None)
    with running(worker):
        until(lambda: len(asked) == 4, "the worker asked again")
    waits = [after - before for before, after in itertools.pairwise(asked)]
    assert min(waits) >= 0.4, waits


def test_stopping_takes_no_job_along(server: Server, client: Client, queue: str) -> None:
    """Jobs that arrive while workers stop are run or left, never lost with a connection."""
    for _ in range(10):
        worker = make_worker(server, queue, lease=60.0)
        worker.handler("a")(lambda job, ctx: None)
        with running(worker):
            client.enqueue_many([NewJob(kind="a", queue=queue) for _ in range(5)])
    # What a dropped request had taken is given back by the server, long before the lease ends.
    until(lambda: client.list(queue=queue, state="running").items == [], "nothing is held")


def test_thousands_of_jobs_at_concurrency_100(server: Server, client: Client, queue: str) -> None:
    counts: collections.Counter[int] = collections.Counter()
    worker = make_worker(server, queue, concurrency=100)

    @worker.handler("count")
    def count(job: LeasedJob, ctx: Context) -> None:
        counts[job.payload] += 1

    client.enqueue_many([NewJob(kind="count", payload=n, queue=queue) for n in range(JOBS)])
    with running(worker):
        until(lambda: worker.stats.succeeded == JOBS, "all were run and reported", 120)
    assert counts == dict.fromkeys(range(JOBS), 1)
    assert client.list(queue=queue, state="queued").items == []
