"""What an attempt came to, as the API takes it."""

import traceback
from dataclasses import dataclass
from typing import Any

from windlass._calls import encode
from windlass.errors import CancelJob, HandlerError, Permanent, RetryAfter, RetryIn, Snooze

MAX_RESULT = 64 * 1024
MAX_TRACE = 32 * 1024
_MAX_MESSAGE = 8 * 1024


@dataclass(frozen=True)
class Outcome:
    """The end of an attempt. `fields` go to `/leases/complete` if it succeeded, else to `/leases/fail`."""

    succeeded: bool
    fields: dict[str, Any]
    """Fields of the item, apart from id, attempt and lease."""


def success(result: Any, note: str | None) -> Outcome:
    """A handler returned. A result that cannot be stored is a failure that no retry would cure."""
    fields: dict[str, Any] = {}
    if note is not None:
        fields["note"] = note
    if result is None:
        return Outcome(True, fields)
    try:
        size = len(encode(result))
    except Exception as error:
        return failed("BadResult", f"the handler's result is not JSON: {_text(error)}", permanent=True)
    if size > MAX_RESULT:
        return failed("BadResult", f"the handler's result has {size} bytes; {MAX_RESULT} are allowed", permanent=True)
    return Outcome(True, fields | {"result": result})


def failed(error_class: str, message: str, **more: Any) -> Outcome:
    """A failure that goes through the job's policy."""
    return Outcome(False, {"class": error_class, "message": message[:_MAX_MESSAGE], **more})


def released(*, started: bool) -> Outcome:
    """The worker stops and gives the job back."""
    return Outcome(False, {"release": True, "started": started})


def refused(outcome: Outcome, why: str) -> Outcome:
    """What is reported instead of an outcome that the server refuses. Work that succeeded must not be repeated."""
    before = f" ({outcome.fields['class']}: {outcome.fields['message']})" if "class" in outcome.fields else ""
    return failed("OutcomeRefused", f"the server refused the outcome: {why}{before}", permanent=outcome.succeeded)


CANCELLED = Outcome(False, {"cancel": True})


def of_exception(error: BaseException, note: str | None, *, with_trace: bool) -> Outcome:
    """What a handler's exception means."""
    fields: dict[str, Any] = {} if note is None else {"note": note}
    match error:
        case Snooze():
            if error.note is not None:
                fields["note"] = error.note
            return Outcome(False, fields | {"snooze": error.delay})
        case CancelJob():
            return Outcome(False, fields | {"cancel": True})
        case Permanent():
            fields["permanent"] = True
        case RetryAfter():
            fields["retryAfter"] = error.delay
        case RetryIn():
            fields["retryIn"] = error.delay
    if with_trace:
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        # The end of a trace names the failing line.
        fields["trace"] = trace.encode("utf-8", "replace")[-MAX_TRACE:].decode("utf-8", "ignore")
    error_class = error.error_class if isinstance(error, HandlerError) else type(error).__name__
    return failed(error_class, _text(error), **fields)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "the exception has no text: its __str__ raised"
