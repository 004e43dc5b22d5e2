"""The W3C trace context that jobs take over from the request that stores them."""

import importlib
import re
import sys

_FORM = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def traceparent(given: str | None) -> str | None:
    """The context that was given, or the current one of OpenTelemetry, or none."""
    if given is None:
        return _current()
    # It becomes a header, so a line break must not get through.
    if not _FORM.fullmatch(given):
        raise ValueError(f"a traceparent has the form 00-TRACE-SPAN-FLAGS in hexadecimal digits, not {given!r}")
    return given


def _current() -> str | None:
    # A program that has not loaded OpenTelemetry has no current span.
    if "opentelemetry" not in sys.modules:
        return None
    try:
        module = importlib.import_module("opentelemetry.trace.propagation.tracecontext")
    except ImportError:
        return None
    carrier: dict[str, str] = {}
    module.TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")
