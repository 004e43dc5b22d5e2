"""The load on one store: a producer, remote workers, an operator, and a check that acknowledged jobs have ended."""
import collections
import random
import threading
import time

from nodes import Receiver
from places import Place

BATCH = 20
WORKERS = 3
# By then a job has ended, also if an outage and a lost lease came first; its record is kept for longer than that.
ENDED_AFTER, CHECKED_UNTIL = 180.0, 300.0
SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
RETRY = {"strategy": "fixed", "base": "1s", "jitter": "none", "maxRetries": 1000, "maxCrashes": 1000}


class Load:
    def __init__(self, place: Place, receiver: Receiver, rate: float, stop: threading.Event, seed: int) -> None:
        self.place, self.receiver, self.rate, self.stop = place, receiver, rate, stop
        self.chance = random.Random(seed)
        self.acknowledged: collections.deque[tuple[float, int]] = collections.deque()
        self.counts: collections.Counter[str] = collections.Counter()
        self.found: list[str] = []
        names = [self.produce, self.check, self.operate] + [self.work] * WORKERS
        self.threads = [threading.Thread(target=self.guard, args=(run, n), daemon=True) for n, run in enumerate(names)]
        for thread in self.threads:
            thread.start()

    def guard(self, run, number: int) -> None:
        try:
            run(random.Random(self.chance.random() + number))
        except Exception as error:  # A thread that ends early would make the run look better than it is.
            self.found.append(f"{self.place.kind}: {run.__name__} failed: {error!r}")

    def draw(self, chance: random.Random) -> dict:
        job = {"kind": "work", "queue": "plain", "retry": RETRY, "payload": {"text": "x" * chance.randrange(400)}}
        part = chance.random()
        if part < 0.08:
            job |= {"queue": "calls", "kind": "call", "http": {"url": f"{self.receiver.url}/call"}}
        elif part < 0.2:
            job |= {"queue": "limited", "limitKey": f"key-{chance.randrange(200)}"}
        elif part < 0.25:
            job["webhook"] = {"url": f"{self.receiver.url}/hook", "secret": SECRET, "policy": RETRY}
        if chance.random() < 0.2:
            job |= {"idempotencyKey": f"{chance.getrandbits(64):x}", "idempotencyWindow": "2m"}
        if chance.random() < 0.2:
            job["delay"] = f"{chance.randrange(1, 20)}s"
        return job

    def produce(self, chance: random.Random) -> None:
        due = time.monotonic()
        while not self.stop.is_set():
            due = max(due + BATCH / self.rate, time.monotonic() - 5)
            if self.stop.wait(max(0, due - time.monotonic())):
                return
            answer = self.place.ask("POST", "/jobs/batch", {"jobs": [self.draw(chance) for _ in range(BATCH)]})
            if answer is None:
                self.counts["batches without an answer"] += 1
                continue
            if answer.status not in (200, 201, 207):
                raise AssertionError(f"{answer.status} {answer.body[:300]!r}")
            now = time.monotonic()
            for item in answer.json()["results"]:
                if item["result"] != "created":
                    raise AssertionError(f"a job was answered {item}")
                self.acknowledged.append((now, item["id"]))
                self.counts["acknowledged"] += 1

    def work(self, chance: random.Random) -> None:
        name = f"soak-{chance.getrandbits(32):x}"
        while not self.stop.is_set():
            wants = {"worker": name, "queues": ["plain", "limited"], "max": BATCH, "waitMs": 2000, "leaseMs": 10000}
            answer = self.place.ask("POST", "/leases", wants)
            if answer is None:
                self.stop.wait(0.5)
                continue
            parts: dict[str, list] = {"complete": [], "fail": []}
            for job in answer.json()["jobs"]:
                item = {"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]}
                draw = chance.random()
                if draw < 0.05:
                    parts["fail"].append(item | {"class": "Soak", "message": f"attempt {job['attempt']}"})
                elif draw < 0.998:
                    parts["complete"].append(item | {"note": "done", "result": {"ok": True}})
                # The others are never answered: their lease ends.
            for report, items in parts.items():
                while items and not self.stop.is_set():
                    if self.place.ask("POST", f"/leases/{report}", {"worker": name, "results": items}) is not None:
                        self.counts[report] += len(items)
                        break
                    self.stop.wait(0.5)

    def operate(self, chance: random.Random) -> None:
        while not self.stop.wait(1.0):
            if not self.acknowledged:
                continue
            job = self.acknowledged[-1 - chance.randrange(min(200, len(self.acknowledged)))][1]
            asked = chance.choice([("DELETE", f"/jobs/{job}"), ("POST", f"/jobs/{job}/retry"), ("GET", f"/jobs/{job}/why"),
                                   ("GET", "/stats"), ("GET", "/queues"), ("GET", "/jobs?state=retrying&limit=50")])
            answer = self.place.ask(*asked)
            if answer is not None and answer.status >= 500:
                raise AssertionError(f"{asked}: {answer.status} {answer.body[:300]!r}")
            self.counts["operations"] += 1

    def check(self, chance: random.Random) -> None:
        """Looks at jobs that were acknowledged minutes ago: each must be there and have ended."""
        while not self.stop.wait(2.0):
            now = time.monotonic()
            while self.acknowledged and now - self.acknowledged[0][0] > ENDED_AFTER:
                at, job = self.acknowledged.popleft()
                if now - at > CHECKED_UNTIL or chance.random() > 0.1:
                    continue
                answer = self.place.ask("GET", f"/jobs/{job}")
                if answer is None:
                    continue
                self.counts["checked"] += 1
                state = answer.json().get("state", answer.status)
                # An operator's replay may have made it live again; cancelled ones and failed ones have ended too.
                replayed = answer.json().get("replays", 0)
                if state not in ("succeeded", "cancelled", "failed") and not replayed:
                    self.found.append(f"{self.place.kind}: job {job} is {state} {now - at:.0f} s after it was acknowledged")

    def finish(self) -> list[str]:
        for thread in self.threads:
            thread.join(90)
        if not self.counts["checked"]:
            self.found.append(f"{self.place.kind}: no job was checked")
        return self.found

    def summary(self) -> str:
        return f"{self.place.kind}: " + ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
