"""The calls of operators: queues, holds, kinds, dead letters, and why a job waits."""

from datetime import UTC, datetime, timedelta

import pytest

import windlass
from windlass import Client, NewJob


def test_queues(client: Client, queue: str) -> None:
    job = client.enqueue("email", queue=queue)
    settings = client.queues.set(
        queue,
        policy="low-latency",
        limits={"concurrency": 2, "perKey": {"rate": "100/1m"}},
        max_hold=timedelta(minutes=1),
        honor_retry_after="job",
    )
    assert settings["policy"] == "low-latency"
    [found] = [one for one in client.queues.list() if one.name == queue]
    assert (found.due, found.running, found.paused) == (1, 0, False)
    assert found.limits is not None
    assert found.limits["concurrency"] == 2
    with pytest.raises(windlass.InvalidRequest) as caught:
        client.queues.set(queue, limits={"concurrency": 0})
    assert [fault.pointer for fault in caught.value.faults] == ["/limits/concurrency"]

    assert client.queues.pause(queue) == 1
    why = client.why(job.id)
    assert why.waiting_for == "paused"
    assert "paused" in str(why)
    assert client.queues.resume(queue) == 1
    assert client.queues.purge(queue) == 1
    assert client.get(job.id).state == "cancelled"


def test_holds(client: Client, queue: str) -> None:
    job = client.enqueue("email", queue=queue, limit_key=f"key-{queue}")
    until = datetime.now(UTC) + timedelta(hours=1)
    assert client.holds.place(queue=queue, until=until, reason="the provider is down") == 1
    [hold] = [one for one in client.holds.list() if one.queue == queue]
    assert (hold.origin, hold.reason, hold.breaker) == ("operator", "the provider is down", "closed")
    assert hold.until is not None
    assert abs(hold.until - until) < timedelta(seconds=1)
    why = client.why(job.id)
    assert (why.waiting_for, why.until) == ("hold", hold.until)
    assert client.holds.release(queue=queue) == 1
    assert client.holds.place(queue=queue, key=f"key-{queue}", duration="5m") == 1
    assert [one.key for one in client.holds.list() if one.queue == queue] == [f"key-{queue}"]
    assert client.holds.release(queue=queue, key=f"key-{queue}") == 1
    with pytest.raises(windlass.InvalidRequest):
        client.holds.place(queue=queue)


def test_kinds(client: Client, queue: str) -> None:
    name = f"Kind of/{queue}"
    rules = [{"match": {"class": "Deadlock*"}, "then": "retry"}]
    made = client.kinds.set(name, policy="once", rules=rules)
    assert (made.name, made.policy, made.rules) == (name, "once", rules)
    assert made in client.kinds.list()
    assert client.enqueue(name, queue=queue).max_attempts == 1
    with pytest.raises(windlass.InvalidRequest):
        client.kinds.set(name, policy="nonsense")
    client.kinds.remove(name)
    assert name not in [one.name for one in client.kinds.list()]
    assert client.enqueue(name, queue=queue).max_attempts > 1


def test_dead_letters(client: Client, queue: str) -> None:
    def fail(count: int) -> None:
        client.enqueue_many([NewJob(kind="email", queue=queue, retry="once") for _ in range(count)])
        body = {"worker": "w", "queues": [queue], "max": count, "waitMs": 5000}
        jobs = client.request("POST", "/api/v1/leases", body)["jobs"]
        items = [
            {"id": job["id"], "attempt": job["attempt"], "lease": job["lease"], "class": "Oops", "message": "no"}
            for job in jobs
        ]
        client.request("POST", "/api/v1/leases/fail", {"worker": "w", "results": items})

    fail(3)
    dead = client.dead_letters.list(queue=queue).items
    assert [job.state for job in dead] == ["failed"] * 3
    [group] = client.dead_letters.groups(queue=queue)
    assert (group.count, group.error_class) == (3, "Oops")
    result = client.dead_letters.replay([dead[0].id])
    assert (result.done, result.results) == (1, {dead[0].id: "queued"})
    assert client.dead_letters.discard(queue=queue, error_class="Oops", reason="known").done == 2
    assert client.dead_letters.list(queue=queue).items == []
    with pytest.raises(ValueError, match="ids or a filter"):
        client.dead_letters.replay([1], queue=queue)
    with pytest.raises(windlass.InvalidRequest, match="all"):
        client.dead_letters.discard()
