"""Errors that calls raise, and exceptions that handlers raise to say what happens to a job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass._duration import Duration, to_api

if TYPE_CHECKING:
    from windlass.models import Job


class WindlassError(Exception):
    """Base of every error this package raises."""


# --- Errors of calls ---------------------------------------------------------------------------------------------


class NotSent(WindlassError):
    """The server could not be reached. Nothing was changed."""


class ConnectionLost(WindlassError):
    """The connection was lost, or timed out, before the answer arrived. Whether the request was carried out is not
    known."""


@dataclass(frozen=True)
class Fault:
    """One wrong field of a request."""

    pointer: str
    detail: str


class ApiError(WindlassError):
    """The server answered with an error (RFC 9457 problem details)."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.type: str = str(problem.get("type", "about:blank"))
        """Stable name of the kind of error, such as `urn:windlass:problem:invalid`."""
        self.title: str = str(problem.get("title", f"HTTP {status}"))
        self.detail: str = str(problem.get("detail", ""))
        self.request_id: str | None = problem.get("requestId")
        self.faults: Sequence[Fault] = tuple(
            Fault(str(fault.get("pointer", "")), str(fault.get("detail", ""))) for fault in problem.get("errors") or ()
        )
        self.retry_after = retry_after
        """Seconds the server asked to wait, if it did."""
        super().__init__(f"{status} {self.title}: {self.detail}" if self.detail else f"{status} {self.title}")


class InvalidRequest(ApiError):
    """400, 413, 415, 422: the request has wrong fields; `faults` names them."""


class Unauthorized(ApiError):
    """401: a valid token is needed."""


class Forbidden(ApiError):
    """403: the token does not allow this."""


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409: not in the present state, or the idempotency key is another job's."""


class TooManyRequests(ApiError):
    """429: try again later."""


class Unavailable(ApiError):
    """5xx: the server cannot serve the request now."""

    @property
    def is_outcome_unknown(self) -> bool:
        """True if the request may have been carried out."""
        return not self.type.endswith((":unavailable", ":draining"))


_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: TooManyRequests,
}


def api_error(status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> ApiError:
    """The error class of a status."""
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else ApiError)
    return kind(status, problem, retry_after)


class JobNotSucceeded(WindlassError):
    """`result` was asked for, and the job ended without one."""

    def __init__(self, job: "Job") -> None:
        self.job = job
        why = f" ({job.reason})" if job.reason else ""
        error = f": {job.error_class}: {job.error}" if job.error_class else ""
        super().__init__(f"job {job.id} {job.state}{why}{error}")


class WaitTimeout(WindlassError, TimeoutError):
    """The job was not finished in time. It goes on."""


class WebhookError(WindlassError):
    """A received webhook is not genuine, or too old."""


# --- Raised by handlers ------------------------------------------------------------------------------------------


class HandlerError(Exception):
    """Base of failures that say what happens next. The class on record is the name of the exception's own class,
    or `error_class`."""

    def __init__(self, message: str = "", *, error_class: str | None = None) -> None:
        super().__init__(message)
        self.error_class = error_class or type(self).__name__


class Permanent(HandlerError):
    """The job fails now and is never retried."""


class RetryAfter(HandlerError):
    """The attempt failed; the next one is not before `delay` (seconds, `timedelta` or text)."""

    def __init__(self, delay: Duration, message: str = "", *, error_class: str | None = None) -> None:
        super().__init__(message, error_class=error_class)
        self.delay = to_api(delay)


class RetryIn(HandlerError):
    """The attempt failed; the next one is in exactly `delay`, whatever the policy says."""

    def __init__(self, delay: Duration, message: str = "", *, error_class: str | None = None) -> None:
        super().__init__(message, error_class=error_class)
        self.delay = to_api(delay)


class Snooze(Exception):
    """Not now: try again after `delay`. Counts as no failure."""

    def __init__(self, delay: Duration, note: str | None = None) -> None:
        super().__init__(f"snoozed for {delay}")
        self.delay = to_api(delay)
        self.note = note


class CancelJob(Exception):
    """End the job as cancelled."""


class AttemptCancelled(Exception):
    """Raised by `Context.raise_if_cancelled`: the attempt must stop."""
