"""The PyPI package `pyfaktory`, unchanged: produce QUEUE MARK, or work QUEUE OUT WID."""

import sys
from datetime import datetime, timedelta, timezone

from pyfaktory import Client, Consumer, Job, Producer

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
    with Client(role="producer") as client:
        producer = Producer(client=client)
        producer.push(Job(jobtype="write", args=[f"plain {mark}"], queue=queue))
        producer.push(Job(jobtype="write", args=[f"later {mark}"], queue=queue, at=later))
        producer.push(Job(jobtype="flaky", args=[f"flaky {mark}"], queue=queue, backtrace=10, custom={"policy": "fixed:base=1s"}))
        print(client.info()["faktory"]["queues"][queue])


def work(queue: str, wid: str) -> None:
    with Client(role="consumer", worker_id=wid, beat_period=1) as client:
        consumer = Consumer(client=client, queues=[queue], concurrency=2, grace_period=5)
        consumer.register("write", write)
        consumer.register("flaky", flaky)
        consumer.run()


if __name__ == "__main__":
    if sys.argv[1] == "produce":
        produce(sys.argv[2], sys.argv[3])
    else:
        OUT = sys.argv[3]
        work(sys.argv[2], sys.argv[4])
