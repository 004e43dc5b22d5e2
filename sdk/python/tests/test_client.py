"""Every call of the sync client, against the real server."""

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from conftest import DEADLINE, until

import windlass
from windlass import Client, NewJob


def test_enqueue_takes_every_option(client: Client, queue: str) -> None:
    start_by = datetime.now(UTC) + timedelta(hours=2)
    job = client.enqueue(
        "email",
        {"to": "ada@example.com", "text": "grüße 🎉"},
        queue=queue,
        priority="high",
        delay=timedelta(hours=1),
        retry={"policy": "stepped", "maxRetries": 5},
        delivery="AT_MOST_ONCE",
        timeout=1.5,
        start_by=start_by,
        idempotency_key=f"k-{queue}",
        idempotency_window="live",
        limit_key="customer-7",
        webhook={"url": "https://example.com/done", "events": ["failed"]},
    )
    assert (job.state, job.kind, job.queue, job.priority) == ("queued", "email", queue, "high")
    assert job.payload == {"to": "ada@example.com", "text": "grüße 🎉"}
    assert job.max_attempts == 1, "an at-most-once job starts once, whatever its policy says"
    assert job.limit_key == "customer-7"
    assert job.delivery == "AT_MOST_ONCE"
    assert job.raw["timeoutMs"] == 1500
    assert job.run_at is not None
    assert job.created_at is not None
    assert job.run_at - job.created_at == timedelta(hours=1)
    assert not job.existing
    assert client.get(job.id) == job


def test_idempotency_key(client: Client, queue: str) -> None:
    first = client.enqueue("email", {"n": 1}, queue=queue, idempotency_key=queue)
    again = client.enqueue("email", {"n": 1}, queue=queue, idempotency_key=queue)
    assert (again.id, again.existing) == (first.id, True)
    with pytest.raises(windlass.Conflict) as caught:
        client.enqueue("email", {"n": 2}, queue=queue, idempotency_key=queue)
    assert caught.value.type == "urn:windlass:problem:key-conflict"


def test_wrong_fields_are_named(client: Client) -> None:
    with pytest.raises(windlass.InvalidRequest) as caught:
        client.enqueue("email", queue="Not A Queue", retry="nonsense")
    assert {fault.pointer for fault in caught.value.faults} >= {"/queue", "/retry"}
    with pytest.raises(windlass.NotFound):
        client.get(10**15)
    with pytest.raises(ValueError, match="time zone"):
        client.enqueue("email", run_at=datetime(2030, 1, 1))


def test_many_at_once(client: Client, queue: str) -> None:
    items = client.enqueue_many([NewJob(kind="a", payload=n, queue=queue) for n in range(50)])
    assert [item.result for item in items] == ["created"] * 50
    with pytest.raises(windlass.InvalidRequest):
        client.enqueue_many([NewJob(kind="a", queue=queue), NewJob(kind="", queue=queue)])
    mixed = client.enqueue_many([NewJob(kind="a", queue=queue), NewJob(kind="", queue=queue)], atomic=False)
    assert [item.result for item in mixed] == ["created", "refused"]
    page = client.list(queue=queue, limit=20)
    assert len(page.items) == 20
    assert page.next is not None
    ids = [job.id for job in client.iterate(queue=queue, limit=20)]
    assert len(ids) == len(set(ids)) == 51


def test_cancel_replay_amend(client: Client, queue: str) -> None:
    job = client.enqueue("email", queue=queue, delay="1h")
    assert client.amend(job.id, priority="highest", delay=60).priority == "highest"
    assert client.cancel(job.id).state == "cancelled"
    with pytest.raises(windlass.Conflict):
        client.cancel(job.id)
    replayed = client.replay(job.id)
    assert (replayed.state, replayed.replays) == ("queued", 1)
    with pytest.raises(windlass.WaitTimeout):
        client.wait(job.id, timeout=0.1)
    client.cancel(job.id)
    with pytest.raises(windlass.JobNotSucceeded, match="cancelled"):
        client.result(job.id, timeout=DEADLINE)


def test_schedules(client: Client, queue: str) -> None:
    template = NewJob(kind="digest", queue=queue)
    made = client.schedules.create(template, cron="0 9 * * mon-fri", timezone="Europe/Berlin")
    assert client.schedules.get(made.id) == made
    assert made.id in [one.id for one in client.schedules.list(limit=100).items]
    assert client.schedules.change(made.id, cron="0 10 * * *").cron == "0 10 * * *"
    firings = client.schedules.preview(made.id, count=3)
    assert len(firings) == 3
    assert firings[0].tzinfo is not None
    assert client.schedules.pause(made.id).paused
    assert not client.schedules.resume(made.id).paused
    run = client.schedules.trigger(made.id)
    assert run.schedule_id == made.id
    client.schedules.remove(made.id)
    with pytest.raises(windlass.NotFound):
        client.schedules.get(made.id)
    assert len(client.schedules.preview_new(every=30, count=4)) == 4


def test_policies(client: Client) -> None:
    preview = client.policies.preview("exponential:base=1s,cap=5m,jitter=full,retries=5")
    assert [delay.delay_ms for delay in preview.delays] == [1000, 2000, 4000, 8000, 16000]
    assert preview.delays[4].total_ms == 31000
    assert "full-jitter" in [policy.name for policy in client.policies.list()]
    assert client.policies.get("http").preset
    with pytest.raises(windlass.InvalidRequest):
        client.policies.preview("exponential:base=never")


def test_any_other_call(client: Client) -> None:
    assert "items" in client.request("GET", "/api/v1/queues")


def test_unreachable_server_is_named() -> None:
    with pytest.raises(windlass.NotSent, match=r"127\.0\.0\.1:1"):
        Client("http://127.0.0.1:1", retries=1).get(1)


def test_one_client_for_many_threads(client: Client, queue: str) -> None:
    failures: list[BaseException] = []

    def enqueue() -> None:
        try:
            for _ in range(20):
                client.enqueue("a", queue=queue)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=enqueue) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(list(client.iterate(queue=queue))) == 160


def test_received_webhook_is_genuine(client: Client, queue: str) -> None:
    """The server's own signature, over the network."""
    received: list[tuple[bytes, dict[str, str]]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((body, dict(self.headers.items())))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    secret = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    with HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{receiver.server_port}/done"
        job = client.enqueue(
            "email", queue=queue, delay="1h", webhook={"url": url, "events": ["cancelled"], "secret": secret}
        )
        client.cancel(job.id)
        until(lambda: bool(received), "a webhook arrived")
        call = client.enqueue(
            http={"url": url, "headers": {"x-test": "1"}}, payload={"a": 1}, retry="once", queue=queue
        )
        assert client.wait(call.id, timeout=DEADLINE).state == "succeeded"
        assert json.loads(received[1][0]) == {"a": 1}
        receiver.shutdown()
    body, headers = received[0]
    event = windlass.webhooks.verify(body, headers, secret)
    assert event == json.loads(body)
    with pytest.raises(windlass.WebhookError, match="no signature"):
        windlass.webhooks.verify(body + b" ", headers, secret)
