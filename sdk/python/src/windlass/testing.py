"""Test mode: jobs and handlers in this process, without a server and without waiting.

    queue = InProcess(worker)
    job = queue.client.enqueue("email", {"to": "ada@example.com"})
    queue.run_all()
    assert queue.client.get(job.id).state == "succeeded"

The clients are the real ones; what they call is held in memory. Time stands still except in `run_all` and `advance`.
Retries wait 1m, 2m, 4m, … whatever the policy; how often a job is retried and what is given up on follow its policy.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from windlass import _handlers
from windlass._calls import API, Response
from windlass._handlers import Registered
from windlass._outcome import Outcome
from windlass.aio import AsyncClient
from windlass.client import Client
from windlass.context import Context
from windlass.models import FINISHED, LeasedJob, time_from_api, time_to_api
from windlass.worker import Worker

_GIVE_UP_ON = ("ValidationError", "NotFoundError", "UnauthorizedError", "ForbiddenError", "SyntaxError")
_RETRIES = {"once": 0, "low-latency": 2, "queue-worker": 4, "financial": 5}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass
class _Stored:
    job: dict[str, Any]
    retries: int
    give_up_on: tuple[str, ...]
    traceparent: str | None
    history: list[dict[str, Any]] = field(default_factory=list)


class InProcess:
    """A queue in memory, worked by a worker's handlers."""

    def __init__(self, worker: Worker, *, now: datetime | None = None) -> None:
        self.now = now or datetime.now(UTC)
        """The time of this queue."""
        self._worker = worker
        self._jobs: dict[int, _Stored] = {}
        self.client = Client(transport=_Local(self))
        self.async_client = AsyncClient(transport=_AsyncLocal(self))

    def advance(self, by: timedelta | float) -> None:
        """Moves the time forward. Nothing runs by itself."""
        self.now += by if isinstance(by, timedelta) else timedelta(seconds=by)

    def run_due(self) -> int:
        """Runs every job that is due now, one after the other. Returns how many attempts were made."""
        return asyncio.run(self.run_due_async())

    def run_all(self, *, limit: int = 1000) -> int:
        """Runs jobs until none waits, moving the time forward to later jobs and retries. Returns how many attempts
        were made; raises after `limit` of them."""
        return asyncio.run(self.run_all_async(limit=limit))

    async def run_due_async(self) -> int:
        """`run_due` inside a running event loop."""
        attempts = 0
        while (due := self._next(until=self.now)) is not None:
            await self._attempt(due)
            attempts += 1
        return attempts

    async def run_all_async(self, *, limit: int = 1000) -> int:
        """`run_all` inside a running event loop."""
        attempts = 0
        while (waiting := self._next(until=None)) is not None:
            if attempts >= limit:
                raise RuntimeError(f"jobs still wait after {limit} attempts")
            self.now = max(self.now, _due(waiting))
            await self._attempt(waiting)
            attempts += 1
        return attempts

    # --- Running -------------------------------------------------------------------------------------------------

    def _next(self, until: datetime | None) -> _Stored | None:
        waiting = [one for one in self._jobs.values() if one.job["nextRunAt"] is not None and not one.job["http"]]
        due = [one for one in waiting if until is None or _due(one) <= until]
        return min(due, key=lambda one: (_due(one), one.job["id"]), default=None)

    async def _attempt(self, stored: _Stored) -> None:
        job = stored.job
        job.update(state="running", attempt=job["attempt"] + 1, nextRunAt=None)
        leased = LeasedJob(
            id=job["id"],
            attempt=job["attempt"],
            kind=job["kind"],
            # A handler gets values as they come from JSON, and cannot change what is stored.
            payload=json.loads(json.dumps(job["payload"])),
            queue=job["queue"],
            tenant=job["tenantId"],
            failures=job["failures"],
            max_attempts=job["maxAttempts"],
            delivery=job["delivery"],
            priority=job["priority"],
            idempotency_key=job["idempotencyKey"] or f"windlass-{job['id']}",
            timeout_ms=job["timeoutMs"],
            created_at=time_from_api(job["createdAt"]),
            traceparent=stored.traceparent,
            run_at=time_from_api(job["runAt"]),
        )
        handler = self._worker.handlers.find(leased.kind)
        context = Context(leased, _handlers.timeout_of(leased, handler))
        outcome = _handlers.unknown_kind(leased) if handler is None else await _run(handler, context)
        self._apply(stored, outcome)

    def _apply(self, stored: _Stored, outcome: Outcome) -> None:
        job, fields = stored.job, outcome.fields
        entry = {
            "attempt": job["attempt"],
            "retryCount": job["failures"],
            "label": "Initial" if job["failures"] == 0 else f"Retry #{job['failures']}",
            "status": "SUCCESS" if outcome.succeeded else "SNOOZED" if "snooze" in fields else "FAILED",
            "executionTime": self._time(),
            "durationMs": 0,
            "worker": self._worker.settings.name,
            "why": "",
            "note": fields.get("note"),
            "errorClass": fields.get("class"),
            "error": fields.get("message"),
        }
        stored.history.append(entry)
        job.update(errorClass=fields.get("class"), error=fields.get("message"))
        if outcome.succeeded:
            self._finish(job, "succeeded", result=fields.get("result"))
        elif fields.get("cancel") or job["cancelRequested"]:
            self._finish(job, "cancelled")
        elif "snooze" in fields:
            self._wait(job, "queued", _seconds(fields["snooze"]))
        else:
            job["failures"] += 1
            self._fail(stored, fields)
        entry["nextRunAt"] = job["nextRunAt"]

    def _fail(self, stored: _Stored, fields: Mapping[str, Any]) -> None:
        job = stored.job
        if job["delivery"] == "AT_MOST_ONCE":
            self._finish(job, "failed", reason="at_most_once")
        elif fields.get("permanent") or fields["class"] in stored.give_up_on:
            self._finish(job, "failed", reason="permanent")
        elif job["failures"] > stored.retries:
            self._finish(job, "failed", reason="exhausted")
        elif "retryIn" in fields:
            self._wait(job, "retrying", _seconds(fields["retryIn"]))
        else:
            delay = min(3600.0, 60.0 * 2 ** (job["failures"] - 1))
            self._wait(job, "retrying", max(delay, _seconds(fields.get("retryAfter", 0))))

    def _finish(self, job: dict[str, Any], state: str, **fields: Any) -> None:
        job.update(state=state, finishedAt=self._time(), nextRunAt=None, **fields)

    def _wait(self, job: dict[str, Any], state: str, seconds: float) -> None:
        due = time_to_api(self.now + timedelta(seconds=seconds))
        job.update(state=state, nextRunAt=due, runAt=due)

    def _time(self) -> str | None:
        return time_to_api(self.now)

    # --- Calls ---------------------------------------------------------------------------------------------------

    def answer(self, method: str, path: str, body: bytes | None, traceparent: str | None = None) -> Response:
        """Answers a call as the server would."""
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        value = json.loads(body) if body else {}
        steps = parts.path.removeprefix(f"{API}/").split("/")
        match (method, *steps):
            case ("POST", "jobs"):
                return self._enqueue(value, traceparent)
            case ("POST", "jobs", "batch"):
                stored = [json.loads(self._enqueue(one, traceparent).body) for one in value["jobs"]]
                return _ok({"created": len(stored), "results": [{"result": "created", "id": j["id"]} for j in stored]})
            case ("GET", "jobs"):
                return self._list(query)
            case (_, "jobs", number, *rest) if number.isdigit():
                return self._one(method, int(number), rest)
            case _:
                return _problem(501, "not in test mode", f"test mode does not answer {method} {parts.path}")

    def _one(self, method: str, number: int, rest: list[str]) -> Response:
        stored = self._jobs.get(number)
        if stored is None:
            return _problem(404, "not-found", f"there is no job {number}")
        job = stored.job
        match (method, *rest):
            case ("GET",):
                return _ok(job)
            case ("GET", "history"):
                return _ok({"items": stored.history, "next": None})
            case ("DELETE",) if job["state"] in FINISHED:
                return _problem(409, "conflict", f"job {number} is {job['state']} already")
            case ("DELETE",) if job["state"] == "running":
                job["cancelRequested"] = True
                return _ok(job, 202)
            case ("DELETE",):
                self._finish(job, "cancelled")
                return _ok(job)
            case ("POST", "retry") if job["state"] == "running":
                return _problem(409, "conflict", f"job {number} is running")
            case ("POST", "retry"):
                job.update(failures=0, replays=job["replays"] + 1, finishedAt=None, reason=None)
                self._wait(job, "queued", 0)
                return _ok(job)
            case _:
                return _problem(501, "not in test mode", f"test mode does not answer {method} for one job")

    def _list(self, query: Mapping[str, str]) -> Response:
        def matches(job: Mapping[str, Any]) -> bool:
            return all(query.get(name) in (None, job[name]) for name in ("state", "queue", "kind"))

        jobs = [one.job for one in reversed(self._jobs.values()) if matches(one.job)]
        return _ok({"items": jobs[: int(query.get("limit", 100))], "next": None})

    def _enqueue(self, new: Mapping[str, Any], traceparent: str | None) -> Response:
        key = new.get("idempotencyKey")
        for one in self._jobs.values():
            if key is not None and one.job["idempotencyKey"] == key:
                if (one.job["kind"], one.job["payload"]) != (new.get("kind", "http"), new.get("payload")):
                    return _problem(409, "key-conflict", "the idempotency key is another job's")
                return _ok(one.job, 200)
        number = len(self._jobs) + 1
        retries, give_up_on = _policy(new.get("retry"))
        delay = timedelta(seconds=_seconds(new.get("delay", 0)))
        due = new.get("runAt") or time_to_api(self.now + delay)
        job = {
            "id": number,
            "state": "queued",
            "tenantId": new.get("tenantId", "default"),
            "queue": new.get("queue", "default"),
            "kind": new.get("kind", "http"),
            "payload": new.get("payload"),
            "priority": new.get("priority", "normal"),
            "delivery": new.get("delivery", "AT_LEAST_ONCE"),
            "attempt": 0,
            "failures": 0,
            "maxAttempts": retries + 1,
            "replays": 0,
            "runAt": due,
            "nextRunAt": due,
            "createdAt": self._time(),
            "finishedAt": None,
            "timeoutMs": round(_seconds(new["timeout"]) * 1000) if "timeout" in new else None,
            "idempotencyKey": key,
            "limitKey": new.get("limitKey"),
            "cancelRequested": False,
            "http": new.get("http"),
            "result": None,
        }
        self._jobs[number] = _Stored(job, retries, give_up_on, traceparent)
        return _ok(job, 201)


async def _run(handler: Registered, context: Context) -> Outcome:
    if not handler.is_async:
        outcome = _handlers.run_plain(handler, context, with_trace=False)
    else:
        task = asyncio.create_task(_handlers.run_async(handler, context, with_trace=False))
        context._stop_with(task)
        timer = None
        if context.timeout is not None:
            timer = asyncio.get_running_loop().call_later(context.timeout, context._cancel, "timeout")
        outcome = await task
        if timer is not None:
            timer.cancel()
    return outcome or _handlers.timed_out(context)


def _due(stored: _Stored) -> datetime:
    due = time_from_api(stored.job["nextRunAt"])
    assert due is not None
    return due


def _policy(retry: Any) -> tuple[int, tuple[str, ...]]:
    """How often to retry, and what to give up on."""
    if isinstance(retry, str):
        name, _, settings = retry.partition(":")
        fields = dict(one.split("=", 1) for one in settings.split(",") if "=" in one)
        retries = _RETRIES.get(name, 3)
        if "attempts" in fields:
            retries = int(fields["attempts"]) - 1
        return int(fields.get("retries", retries)), _GIVE_UP_ON
    if isinstance(retry, dict):
        retries, _ = _policy(retry.get("policy", ""))
        if "maxAttempts" in retry:
            retries = retry["maxAttempts"] - 1
        return retry.get("maxRetries", retries), tuple(retry.get("giveUpOn", _GIVE_UP_ON))
    return 3, _GIVE_UP_ON


def _seconds(duration: str | int) -> float:
    if isinstance(duration, int):
        return duration / 1000
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(duration))


def _ok(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value).encode())


def _problem(status: int, kind: str, detail: str) -> Response:
    return _ok({"type": f"urn:windlass:problem:{kind}", "title": kind, "status": status, "detail": detail}, status)


class _Local:
    def __init__(self, queue: InProcess) -> None:
        self._queue = queue

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        timeout: float,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        return self._queue.answer(method, path, body, (headers or {}).get("traceparent"))

    def close(self) -> None:
        pass


class _AsyncLocal:
    def __init__(self, queue: InProcess) -> None:
        self._queue = queue

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
        return self._queue.answer(method, path, body, (headers or {}).get("traceparent"))

    async def close(self) -> None:
        pass
