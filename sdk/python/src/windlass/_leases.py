"""The calls of a worker: take, extend, complete, fail."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from windlass._calls import API, Call, Response, encode
from windlass._outcome import Outcome
from windlass.context import Context
from windlass.models import LeasedJob

MAX_ITEMS = 1000
# The server takes bodies of 8 MiB.
MAX_BYTES = 4 * 1024 * 1024


@dataclass(eq=False)
class Held:
    """A job this worker holds a lease on, until its outcome is reported."""

    job: LeasedJob
    context: Context
    outcome: Outcome | None = None

    def item(self, fields: dict[str, Any] | None = None) -> dict[str, Any]:
        """The item that names this attempt in a request."""
        return {"id": self.job.id, "attempt": self.job.attempt, "lease": self.job.lease, **(fields or {})}


def take(
    worker: str, queues: Sequence[str], kinds: Sequence[str], count: int, wait: float, lease: float
) -> Call[list[LeasedJob]]:
    body: dict[str, Any] = {
        "worker": worker,
        "max": min(count, MAX_ITEMS),
        "waitMs": round(wait * 1000),
        "leaseMs": round(lease * 1000),
    }
    if queues:
        body["queues"] = list(queues)
    if kinds:
        body["kinds"] = list(kinds)
    # Whether jobs were taken is not known after a lost connection; asking again is right either way.
    return Call(
        "POST",
        f"{API}/leases",
        lambda response: [LeasedJob.from_api(one) for one in response.json()["jobs"]],
        encode(body),
    )


def extend(worker: str, held: Sequence[Held], lease: float) -> Call[list[str]]:
    items = [one.item() for one in held]
    body = {"worker": worker, "results": items, "leaseMs": round(lease * 1000)}
    return Call("POST", f"{API}/leases/extend", _answers(len(items)), encode(body))


def report(worker: str, held: Sequence[Held]) -> Call[list[str]]:
    """The request that reports these outcomes, which are all successes or all not."""
    assert held[0].outcome is not None
    path = "complete" if held[0].outcome.succeeded else "fail"
    items = [one.item(one.outcome.fields) for one in held if one.outcome is not None]
    body = encode({"worker": worker, "results": items})
    return Call("POST", f"{API}/leases/{path}", _answers(len(items)), body)


def batches(held: Iterable[Held]) -> Iterator[list[Held]]:
    """Outcomes in batches that one request can carry: successes and failures apart."""
    for succeeded in (True, False):
        batch: list[Held] = []
        size = 0
        for one in held:
            if one.outcome is None or one.outcome.succeeded != succeeded:
                continue
            weight = 200 + (len(encode(one.outcome.fields)) if one.outcome.fields else 0)
            if batch and (len(batch) == MAX_ITEMS or size + weight > MAX_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(one)
            size += weight
        if batch:
            yield batch


def _answers(count: int) -> Callable[[Response], list[str]]:
    """Reads `ok`, `stale` or `cancel` for each item, in order."""

    def read(response: Response) -> list[str]:
        answers = [str(one["result"]) for one in response.json()["results"]]
        if len(answers) != count:
            raise ValueError(f"{count} items were sent, {len(answers)} answered")
        return answers

    return read
