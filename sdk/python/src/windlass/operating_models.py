"""What the calls of operators take and answer: queues, holds, kinds, dead letters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

from windlass._duration import Duration
from windlass.models import Policy, time_from_api

Rules = Sequence[Mapping[str, Any]]
"""Error rules: `{"match": {"class", "status", "message"}, "then", "for", "policy"}`; the first that matches decides."""


class QueueOptions(TypedDict, total=False):
    """The settings of a queue. An omitted one returns to its default."""

    policy: Policy
    retention: Mapping[str, str]
    limits: Mapping[str, Any]
    """`{"concurrency", "rate", "burst", "perKey": {…}, "keyBy", "across"}`."""
    breaker: str | Mapping[str, Any]
    retry_budget: str | Mapping[str, Any]
    honor_retry_after: Literal["key", "job"]
    max_hold: Duration
    rules: Rules


class DeadLetterFilter(TypedDict, total=False):
    """Which dead letters: all that match every field given."""

    tenant: str
    queue: str
    kind: str
    error_class: str
    since: datetime | str
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class Why:
    """Why a job is where it is."""

    state: str
    waiting_for: str | None
    until: datetime | None
    sentences: Sequence[str]

    def __str__(self) -> str:
        return " ".join(self.sentences)

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "Why":
        """Reads the server's answer."""
        return cls(
            state=raw["state"],
            waiting_for=raw.get("waitingFor"),
            until=time_from_api(raw.get("until")),
            sentences=raw["sentences"],
        )


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A queue: what waits and runs in it, and its settings."""

    name: str
    tenant: str
    paused: bool
    due: int
    later: int
    running: int
    dead: int
    oldest_due_at: datetime | None
    limits: Mapping[str, Any] | None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The server's answer, with every field."""

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "Queue":
        """Reads the server's answer."""
        return cls(
            name=raw["name"],
            tenant=raw["tenantId"],
            paused=raw["paused"],
            due=raw["due"],
            later=raw["later"],
            running=raw["running"],
            dead=raw["dead"],
            oldest_due_at=time_from_api(raw.get("oldestDueAt")),
            limits=raw.get("limits"),
            raw=raw,
        )


@dataclass(frozen=True, kw_only=True)
class Hold:
    """A queue or limit key of which nothing starts, or only a probe of its circuit breaker."""

    queue: str
    key: str | None
    tenant: str
    until: datetime | None
    origin: str | None
    reason: str | None
    breaker: str
    breaker_until: datetime | None
    parked: int
    in_use: int

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "Hold":
        """Reads the server's answer."""
        return cls(
            queue=raw["queue"],
            key=raw.get("key"),
            tenant=raw["tenantId"],
            until=time_from_api(raw.get("until")),
            origin=raw.get("origin"),
            reason=raw.get("reason"),
            breaker=raw["breaker"],
            breaker_until=time_from_api(raw.get("breakerUntil")),
            parked=raw["parked"],
            in_use=raw["inUse"],
        )


@dataclass(frozen=True, kw_only=True)
class KindSettings:
    """The policy and error rules of a kind."""

    name: str
    policy: Policy | None
    rules: Rules | None

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "KindSettings":
        """Reads the server's answer."""
        settings = raw["settings"]
        return cls(name=raw["name"], policy=settings.get("policy"), rules=settings.get("rules"))


@dataclass(frozen=True, kw_only=True)
class DeadLetterGroup:
    """Dead letters that failed in the same way."""

    fingerprint: str
    tenant: str
    queue: str
    kind: str
    error_class: str
    message: str
    count: int
    first_seen: datetime | None
    last_seen: datetime | None
    example_id: int

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "DeadLetterGroup":
        """Reads the server's answer."""
        return cls(
            fingerprint=raw["fingerprint"],
            tenant=raw["tenantId"],
            queue=raw["queue"],
            kind=raw["kind"],
            error_class=raw["errorClass"],
            message=raw["message"],
            count=raw["count"],
            first_seen=time_from_api(raw["firstSeen"]),
            last_seen=time_from_api(raw["lastSeen"]),
            example_id=raw["exampleId"],
        )


@dataclass(frozen=True, kw_only=True)
class BulkResult:
    """What a replay or discard did."""

    done: int
    more: bool
    """True if the filter may match more: repeat the call."""
    results: Mapping[int, str]
    """For each id given: queued, already_live, running, discarded, not_dead or not_found."""
    last_due_at: datetime | None
    """With `rate`: when the last replayed job is due."""

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "BulkResult":
        """Reads the server's answer."""
        return cls(
            done=raw["done"],
            more=raw.get("more", False),
            results={one["id"]: one["result"] for one in raw.get("results") or []},
            last_due_at=time_from_api(raw.get("lastDueAt")),
        )
