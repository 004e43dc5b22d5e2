"""Durations as users write them and as the API takes them."""

from datetime import timedelta

Duration = float | timedelta | str
"""Seconds, a `timedelta`, or text in the server's form: `500ms`, `30s`, `1m30s`, `2h`."""


def to_api(duration: Duration) -> str | int:
    """The form the API takes: text as it is, everything else as whole milliseconds."""
    if isinstance(duration, str):
        return duration
    milliseconds = to_milliseconds(duration)
    if milliseconds < 0:
        raise ValueError("a duration must not be negative")
    return milliseconds


def to_milliseconds(duration: float | timedelta) -> int:
    """Whole milliseconds."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return round(seconds * 1000)


def to_seconds(duration: float | timedelta) -> float:
    """Seconds, for timers."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)
