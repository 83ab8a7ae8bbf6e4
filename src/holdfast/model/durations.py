"""Durations and time limits as users write them, checked: a number of seconds or a timedelta."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from holdfast.errors import InvalidDuration
from holdfast.model.values import DEFAULT_TIMEOUTS, TEN_YEARS_S, TaskTimeouts

Duration = float | int | timedelta


def duration_s(value: Duration, field: str) -> float:
    """A duration in seconds, from 0 to ten years."""
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise InvalidDuration(
            f"{field} must be a number of seconds or a timedelta, not {value!r}", field=field, value=value
        )
    if not 0 <= number <= TEN_YEARS_S:  # NaN fails this as well
        # repr refuses integers of more than 4300 digits, and nobody would read them.
        shown = "a far larger number" if isinstance(value, int) and value.bit_length() > 100 else repr(value)
        raise InvalidDuration(f"{field} must lie between 0 and ten years, not {shown}", field=field, value=value)
    return float(number)


def task_timeouts(
    start_to_close: Duration | None = None,
    schedule_to_close: Duration | None = None,
    heartbeat_timeout: Duration | None = None,
    *,
    base: TaskTimeouts | None = None,
) -> TaskTimeouts | None:
    """`base` (or the defaults) with what is given here in its place; `base` itself when nothing is given."""
    given = {
        name: time_limit_s(value, field)
        for name, field, value in (
            ("start_to_close_s", "start_to_close", start_to_close),
            ("schedule_to_close_s", "schedule_to_close", schedule_to_close),
            ("heartbeat_s", "heartbeat_timeout", heartbeat_timeout),
        )
        if value is not None
    }
    return replace(base or DEFAULT_TIMEOUTS, **given) if given else base


def time_limit_s(value: Duration, field: str) -> float:
    """A duration in seconds that something can finish in."""
    seconds = duration_s(value, field)
    if not seconds:
        raise InvalidDuration(f"{field} must be more than 0: nothing could ever finish", field=field, value=value)
    return seconds
