"""Every call of the API: its request, and how its answer is read. The sync and the asyncio client both use these."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from windlass import errors
from windlass._duration import Duration
from windlass._tracing import traceparent
from windlass.models import (
    Attempt,
    BatchItem,
    Job,
    NamedPolicy,
    NewJob,
    Page,
    Policy,
    PolicyPreview,
    Schedule,
    optional_duration,
    time_from_api,
    time_to_api,
)

T = TypeVar("T")
API = "/api/v1"


@dataclass(frozen=True)
class Response:
    """An answer of the server."""

    status: int
    body: bytes
    retry_after: float | None = None

    def json(self) -> Any:
        """The body as a value; None if it is empty."""
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request, and how to read its answer."""

    method: str
    path: str
    read: Callable[[Response], T]
    body: bytes | None = None
    repeatable: bool = True
    """Whether sending it twice does no more than sending it once."""
    headers: Mapping[str, str] | None = None
    """Headers of this request only."""

    def finish(self, response: Response) -> T:
        """Reads the answer, or raises the error it holds."""
        if response.status >= 400:
            raise errors.api_error(response.status, _problem(response), response.retry_after)
        try:
            return self.read(response)
        except (ValueError, KeyError, TypeError) as error:
            # Not from the server itself: perhaps a proxy's page.
            raise errors.ConnectionLost(
                f"the answer to {self.method} {self.path} could not be read: {error}"
            ) from error

    def may_repeat(self, error: errors.WindlassError) -> bool:
        """Whether the call may be sent again after this error."""
        match error:
            case errors.NotSent() | errors.TooManyRequests():
                return True
            case errors.Unavailable() if not error.is_outcome_unknown:
                return True
            case errors.Unavailable():
                # A fault of the server (500) is not cured by repetition.
                return self.repeatable and error.status in (502, 503, 504)
            case errors.ConnectionLost():
                return self.repeatable
            case _:
                return False


def _problem(response: Response) -> Mapping[str, Any]:
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if isinstance(problem, dict):
        return problem
    return {"detail": response.body[:500].decode("utf-8", "replace")}


def encode(body: Any) -> bytes:
    """JSON. NaN and infinities are refused: they are not JSON."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


def query(path: str, parameters: Mapping[str, Any]) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _job(response: Response) -> Job:
    return Job.from_api(response.json())


def _nothing(_response: Response) -> None:
    return None


def raw(method: str, path: str, body: Any = None) -> Call[Any]:
    return Call(
        method, path, Response.json, None if body is None else encode(body), repeatable=method in ("GET", "PUT")
    )


# --- Jobs --------------------------------------------------------------------------------------------------------


def enqueue(job: NewJob, given: str | None) -> Call[Job]:
    return Call(
        "POST",
        f"{API}/jobs",
        lambda response: Job.from_api(response.json(), existing=response.status == 200),
        encode(job.to_api()),
        repeatable=job.idempotency_key is not None,
        headers=_context(given),
    )


def enqueue_many(jobs: Iterable[NewJob], atomic: bool, given: str | None) -> Call[list[BatchItem]]:
    listed = list(jobs)
    return Call(
        "POST",
        f"{API}/jobs/batch",
        lambda response: [BatchItem.from_api(one) for one in response.json()["results"]],
        encode({"jobs": [job.to_api() for job in listed], "atomic": atomic}),
        repeatable=all(job.idempotency_key is not None for job in listed),
        headers=_context(given),
    )


def _context(given: str | None) -> Mapping[str, str] | None:
    context = traceparent(given)
    return None if context is None else {"traceparent": context}


def get(job_id: int) -> Call[Job]:
    return Call("GET", f"{API}/jobs/{job_id}", _job)


def list_jobs(**filters: Any) -> Call[Page[Job]]:
    since = filters.pop("since", None)
    filters["since"] = time_to_api(since) if isinstance(since, datetime) else since
    return Call("GET", query(f"{API}/jobs", filters), lambda response: Page.from_api(response.json(), Job.from_api))


def history(job_id: int, limit: int) -> Call[list[Attempt]]:
    return Call(
        "GET",
        query(f"{API}/jobs/{job_id}/history", {"limit": limit}),
        lambda response: [Attempt.from_api(one) for one in response.json()["items"]],
    )


def cancel(job_id: int) -> Call[Job]:
    # Repeating it changes nothing more, but the second answer would be "cancelled already".
    return Call("DELETE", f"{API}/jobs/{job_id}", _job, repeatable=False)


def replay(job_id: int) -> Call[Job]:
    return Call("POST", f"{API}/jobs/{job_id}/retry", _job, repeatable=False)


def amend(job_id: int, *, priority: Any, run_at: datetime | None, delay: Duration | None) -> Call[Job]:
    changes = {"priority": priority, "runAt": time_to_api(run_at), "delay": optional_duration(delay)}
    return Call("PATCH", f"{API}/jobs/{job_id}", _job, encode({k: v for k, v in changes.items() if v is not None}))


# --- Schedules ---------------------------------------------------------------------------------------------------


def _schedule(response: Response) -> Schedule:
    return Schedule.from_api(response.json())


def _firings(response: Response) -> list[datetime]:
    return [time for time in map(time_from_api, response.json()["firings"]) if time is not None]


def _schedule_body(fields: Mapping[str, Any]) -> bytes:
    body = {name: value for name, value in fields.items() if value is not None}
    if "every" in body:
        body["every"] = optional_duration(body["every"])
    if isinstance(body.get("job"), NewJob):
        body["job"] = body["job"].to_api()
    return encode(body)


def create_schedule(**fields: Any) -> Call[Schedule]:
    return Call("POST", f"{API}/schedules", _schedule, _schedule_body(fields), repeatable=False)


def get_schedule(schedule_id: int) -> Call[Schedule]:
    return Call("GET", f"{API}/schedules/{schedule_id}", _schedule)


def list_schedules(**filters: Any) -> Call[Page[Schedule]]:
    return Call(
        "GET", query(f"{API}/schedules", filters), lambda response: Page.from_api(response.json(), Schedule.from_api)
    )


def change_schedule(schedule_id: int, **fields: Any) -> Call[Schedule]:
    return Call("PATCH", f"{API}/schedules/{schedule_id}", _schedule, _schedule_body(fields))


def remove_schedule(schedule_id: int) -> Call[None]:
    return Call("DELETE", f"{API}/schedules/{schedule_id}", _nothing, repeatable=False)


def pause_schedule(schedule_id: int) -> Call[Schedule]:
    return Call("POST", f"{API}/schedules/{schedule_id}/pause", _schedule)


def resume_schedule(schedule_id: int) -> Call[Schedule]:
    return Call("POST", f"{API}/schedules/{schedule_id}/resume", _schedule)


def trigger_schedule(schedule_id: int) -> Call[Job]:
    return Call("POST", f"{API}/schedules/{schedule_id}/trigger", _job, repeatable=False)


def preview_schedule(schedule_id: int, count: int) -> Call[list[datetime]]:
    return Call("GET", query(f"{API}/schedules/{schedule_id}/preview", {"count": count}), _firings)


def preview_new_schedule(**fields: Any) -> Call[list[datetime]]:
    return Call("POST", f"{API}/schedules/preview", _firings, _schedule_body(fields))


# --- Policies ----------------------------------------------------------------------------------------------------


def preview_policy(policy: Policy, count: int | None) -> Call[PolicyPreview]:
    body = {"policy": policy} if count is None else {"policy": policy, "count": count}
    return Call(
        "POST", f"{API}/policies/preview", lambda response: PolicyPreview.from_api(response.json()), encode(body)
    )


def list_policies() -> Call[list[NamedPolicy]]:
    return Call(
        "GET", f"{API}/policies", lambda response: [NamedPolicy.from_api(one) for one in response.json()["items"]]
    )


def get_policy(name: str) -> Call[NamedPolicy]:
    return Call("GET", f"{API}/policies/{quote(name, safe='')}", lambda response: NamedPolicy.from_api(response.json()))
