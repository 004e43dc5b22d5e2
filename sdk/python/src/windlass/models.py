"""What the API takes and answers, as Python values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

from windlass._duration import Duration, to_api

T = TypeVar("T")

State = Literal["queued", "running", "retrying", "succeeded", "failed", "cancelled"]
Priority = Literal["lowest", "low", "normal", "high", "highest"] | int
DeliveryMode = Literal["AT_LEAST_ONCE", "AT_MOST_ONCE"]
Policy = str | Mapping[str, Any]
"""A policy's name, a policy line, or a policy object."""

FINISHED: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})


class HttpCall(TypedDict):
    """A call to a URL, made by Windlass itself."""

    url: str
    method: NotRequired[str]
    headers: NotRequired[Mapping[str, str]]


class Webhook(TypedDict):
    """Whom to notify when a job finishes."""

    url: str
    events: NotRequired[Sequence[Literal["succeeded", "failed", "cancelled"]]]
    secret: NotRequired[str]
    policy: NotRequired[Policy]


class JobOptions(TypedDict, total=False):
    """Optional fields of a new job."""

    queue: str
    tenant: str
    priority: Priority
    run_at: datetime
    delay: Duration
    retry: Policy
    delivery: DeliveryMode
    timeout: Duration
    start_by: datetime
    idempotency_key: str
    idempotency_window: Duration
    limit_key: str
    webhook: Webhook
    http: HttpCall


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """A job to be stored. Give `kind`, or `http` for a call to a URL."""

    kind: str | None = None
    payload: Any = None
    queue: str | None = None
    tenant: str | None = None
    priority: Priority | None = None
    run_at: datetime | None = None
    delay: Duration | None = None
    retry: Policy | None = None
    delivery: DeliveryMode | None = None
    timeout: Duration | None = None
    start_by: datetime | None = None
    idempotency_key: str | None = None
    idempotency_window: Duration | None = None
    limit_key: str | None = None
    webhook: Webhook | None = None
    http: HttpCall | None = None

    def to_api(self) -> dict[str, Any]:
        """The body of `POST /jobs`."""
        body: dict[str, Any] = {
            "kind": self.kind,
            "payload": self.payload,
            "queue": self.queue,
            "tenantId": self.tenant,
            "priority": self.priority,
            "runAt": time_to_api(self.run_at),
            "delay": optional_duration(self.delay),
            "retry": self.retry,
            "delivery": self.delivery,
            "timeout": optional_duration(self.timeout),
            "startBy": time_to_api(self.start_by),
            "idempotencyKey": self.idempotency_key,
            "idempotencyWindow": optional_duration(self.idempotency_window),
            "limitKey": self.limit_key,
            "webhook": self.webhook,
            "http": self.http,
        }
        return {name: value for name, value in body.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Job:
    """A stored job."""

    id: int
    state: State
    queue: str = "default"
    kind: str = ""
    tenant: str = "default"
    payload: Any = None
    priority: str = "normal"
    delivery: str = "AT_LEAST_ONCE"
    attempt: int = 0
    failures: int = 0
    max_attempts: int = 0
    replays: int = 0
    result: Any = None
    reason: str | None = None
    error_class: str | None = None
    error: str | None = None
    idempotency_key: str | None = None
    limit_key: str | None = None
    cancel_requested: bool = False
    run_at: datetime | None = None
    next_run_at: datetime | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None
    schedule_id: int | None = None
    parent_id: int | None = None
    retry: Mapping[str, Any] = field(default_factory=dict)
    existing: bool = False
    """True if `enqueue` found this job under the same idempotency key."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The server's answer, with every field."""

    @property
    def is_finished(self) -> bool:
        """Succeeded, failed or cancelled."""
        return self.state in FINISHED

    @classmethod
    def from_api(cls, raw: Mapping[str, Any], *, existing: bool = False) -> "Job":
        """Reads the server's answer. Fields the caller may not see are left at their defaults."""
        return cls(
            id=raw["id"],
            state=raw["state"],
            queue=raw.get("queue", "default"),
            kind=raw.get("kind", ""),
            tenant=raw.get("tenantId", "default"),
            payload=raw.get("payload"),
            priority=raw.get("priority", "normal"),
            delivery=raw.get("delivery", "AT_LEAST_ONCE"),
            attempt=raw.get("attempt", 0),
            failures=raw.get("failures", 0),
            max_attempts=raw.get("maxAttempts", 0),
            replays=raw.get("replays", 0),
            result=raw.get("result"),
            reason=raw.get("reason"),
            error_class=raw.get("errorClass"),
            error=raw.get("error"),
            idempotency_key=raw.get("idempotencyKey"),
            limit_key=raw.get("limitKey"),
            cancel_requested=raw.get("cancelRequested", False),
            run_at=time_from_api(raw.get("runAt")),
            next_run_at=time_from_api(raw.get("nextRunAt")),
            created_at=time_from_api(raw.get("createdAt")),
            finished_at=time_from_api(raw.get("finishedAt")),
            schedule_id=raw.get("scheduleId"),
            parent_id=raw.get("parentId"),
            retry=raw.get("retry") or {},
            existing=existing,
            raw=raw,
        )


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One line of a job's history."""

    attempt: int
    retry_count: int
    label: str
    status: str
    started_at: datetime | None
    duration_ms: int
    worker: str
    why: str
    error_class: str | None = None
    error: str | None = None
    note: str | None = None
    next_run_at: datetime | None = None
    delay_ms: int | None = None
    job_id: int | None = None

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "Attempt":
        """Reads the server's answer."""
        return cls(
            attempt=raw["attempt"],
            retry_count=raw["retryCount"],
            label=raw["label"],
            status=raw["status"],
            started_at=time_from_api(raw.get("executionTime")),
            duration_ms=raw["durationMs"],
            worker=raw["worker"],
            why=raw["why"],
            error_class=raw.get("errorClass"),
            error=raw.get("error"),
            note=raw.get("note"),
            next_run_at=time_from_api(raw.get("nextRunAt")),
            delay_ms=raw.get("delayMs"),
            job_id=raw.get("jobId"),
        )


@dataclass(frozen=True, kw_only=True)
class BatchItem:
    """What became of one job of `enqueue_many`: created, existing, conflict, refused or not_stored."""

    result: str
    id: int | None = None
    detail: str | None = None

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "BatchItem":
        """Reads the server's answer."""
        return cls(result=raw["result"], id=raw.get("id"), detail=raw.get("detail"))


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list. `next` is the cursor of the following page, or None on the last one."""

    items: Sequence[T]
    next: str | None

    @classmethod
    def from_api(cls, raw: Mapping[str, Any], item: Callable[[Mapping[str, Any]], T]) -> "Page[T]":
        """Reads the server's answer."""
        return cls([item(one) for one in raw["items"]], raw.get("next"))


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A rule that enqueues jobs."""

    id: int
    cron: str | None
    every: str | None
    timezone: str
    recurring: bool
    overlap: str
    missed: str
    paused: bool
    next_run_at: datetime | None
    next_firing_at: datetime | None
    last_firing_at: datetime | None
    last_job_id: int | None
    job: Mapping[str, Any]
    """The job each firing enqueues."""

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "Schedule":
        """Reads the server's answer."""
        return cls(
            id=raw["id"],
            cron=raw.get("cron"),
            every=raw.get("every"),
            timezone=raw.get("timezone", "UTC"),
            recurring=raw.get("recurring", True),
            overlap=raw.get("overlap", "skip"),
            missed=raw.get("missed", "one"),
            paused=raw.get("paused", False),
            next_run_at=time_from_api(raw.get("nextRunAt")),
            next_firing_at=time_from_api(raw.get("nextFiringAt")),
            last_firing_at=time_from_api(raw.get("lastFiringAt")),
            last_job_id=raw.get("lastJobId"),
            job=raw.get("job") or {},
        )


@dataclass(frozen=True, kw_only=True)
class Delay:
    """One retry of a previewed policy, in milliseconds: the delay before jitter, the jitter window, the running sum."""

    retry: int
    delay_ms: int
    min_ms: int
    max_ms: int
    total_ms: int


@dataclass(frozen=True, kw_only=True)
class PolicyPreview:
    """What a policy would do."""

    policy: Mapping[str, Any]
    delays: Sequence[Delay]
    explained: str

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "PolicyPreview":
        """Reads the server's answer."""
        delays = [
            Delay(
                retry=one["retry"],
                delay_ms=one["delayMs"],
                min_ms=one["minMs"],
                max_ms=one["maxMs"],
                total_ms=one["totalMs"],
            )
            for one in raw["delays"]
        ]
        return cls(policy=raw["policy"], delays=delays, explained=raw["explained"])


@dataclass(frozen=True, kw_only=True)
class NamedPolicy:
    """A policy with a name: a preset, or the operator's own."""

    name: str
    preset: bool
    line: str
    explained: str
    policy: Mapping[str, Any]
    purpose: str | None = None

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "NamedPolicy":
        """Reads the server's answer."""
        return cls(
            name=raw["name"],
            preset=raw["preset"],
            line=raw["line"],
            explained=raw["explained"],
            policy=raw["policy"],
            purpose=raw.get("purpose"),
        )


@dataclass(frozen=True, kw_only=True)
class LeasedJob:
    """A job as its handler receives it."""

    id: int
    attempt: int
    kind: str
    payload: Any
    queue: str = "default"
    tenant: str = "default"
    failures: int = 0
    max_attempts: int = 1
    delivery: str = "AT_LEAST_ONCE"
    priority: str = "normal"
    idempotency_key: str = ""
    timeout_ms: int | None = None
    created_at: datetime | None = None
    run_at: datetime | None = None
    schedule_id: int | None = None
    traceparent: str | None = None
    lease: str = field(default="", repr=False)

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "LeasedJob":
        """Reads the server's answer."""
        return cls(
            id=raw["id"],
            attempt=raw["attempt"],
            kind=raw["kind"],
            payload=raw.get("payload"),
            queue=raw["queue"],
            tenant=raw["tenantId"],
            failures=raw["failures"],
            max_attempts=raw["maxAttempts"],
            delivery=raw["delivery"],
            priority=raw["priority"],
            idempotency_key=raw["idempotencyKey"],
            timeout_ms=raw.get("timeoutMs"),
            created_at=time_from_api(raw.get("createdAt")),
            run_at=time_from_api(raw.get("runAt")),
            schedule_id=raw.get("scheduleId"),
            traceparent=raw.get("traceparent"),
            lease=raw["lease"],
        )


def time_from_api(text: str | None) -> datetime | None:
    """Reads an RFC 3339 time."""
    return None if text is None else datetime.fromisoformat(text)


def time_to_api(time: datetime | None) -> str | None:
    """Writes an RFC 3339 time. A time without a zone would mean something else on every machine, so it is refused."""
    if time is None:
        return None
    if time.tzinfo is None:
        raise ValueError("a time needs a time zone, such as datetime.now(UTC)")
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def optional_duration(duration: Duration | None) -> str | int | None:
    """A duration as the API takes it, if there is one."""
    return None if duration is None else to_api(duration)
