"""The PyPI package `faktory`, unchanged: produce QUEUE MARK, or work QUEUE OUT WID."""

import sys
from datetime import datetime, timedelta, timezone

import faktory
from faktory import Worker

OUT = ""


def write(text: str) -> None:
    with open(OUT, "a", encoding="utf-8") as out:
        out.write(f"{text}\n")


def flaky(text: str) -> None:
    with open(OUT, encoding="utf-8") as out:
        seen = "flaky failed" in out.read()
    if not seen:
        write("flaky failed")
        raise ValueError("not yet")
    write(text)


def produce(queue: str, mark: str) -> None:
    later = (datetime.now(timezone.utc) + timedelta(seconds=2)).isoformat()
    with faktory.connection() as client:
        client.queue("write", args=[f"plain {mark}"], queue=queue)
        client.queue("write", args=[f"later {mark}"], queue=queue, at=later)
        client.queue("flaky", args=[f"flaky {mark}"], queue=queue, custom={"policy": "fixed:base=1s"})


def work(queue: str, wid: str) -> None:
    worker = Worker(queues=[queue], concurrency=2, use_threads=True, worker_id=wid)
    worker.send_heartbeat_every = 1
    worker.register("write", write)
    worker.register("flaky", flaky)
    worker.run()


if __name__ == "__main__":
    if sys.argv[1] == "produce":
        produce(sys.argv[2], sys.argv[3])
    else:
        OUT = sys.argv[3]
        work(sys.argv[2], sys.argv[4])
