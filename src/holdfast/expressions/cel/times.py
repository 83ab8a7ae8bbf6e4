"""Instants and spans of time: read from text, written as text, taken apart.

Precision is the nanosecond, the calendar is the Gregorian one in UTC, from year 1 to 9999. A time zone is UTC or a
fixed offset: names such as Europe/Berlin need the machine's zone database, and two machines may disagree about it.
"""

from __future__ import annotations

import re
from datetime import date

from holdfast.errors import ExpressionFailed
from holdfast.expressions.cel.values import INT_MAX, INT_MIN, Duration, Timestamp

_SECOND = 1_000_000_000
_DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
_EARLIEST = (1 - _EPOCH) * _DAY * _SECOND
_LATEST = (date.max.toordinal() - _EPOCH + 1) * _DAY * _SECOND - 1
_LONGEST = 315_576_000_000 * _SECOND

_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_DURATION = re.compile(r"([+-]?)((?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|ms|s|m|h))+)")
_SPAN = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND}
_OFFSET = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{2})")
_LONGEST_TEXT = 64


def instant(nanos: int) -> Timestamp:
    """Nanoseconds since 1970 as a timestamp, if the calendar has it."""
    if not _EARLIEST <= nanos <= _LATEST:
        raise ExpressionFailed("a timestamp must lie between the years 1 and 9999")
    return Timestamp(nanos)


def span(nanos: int) -> Duration:
    if not -_LONGEST <= nanos <= _LONGEST:
        raise ExpressionFailed("a duration must be shorter than 10,000 years")
    return Duration(nanos)


def between(end: Timestamp, start: Timestamp) -> Duration:
    """A difference has 64 bits of nanoseconds, which is 292 years."""
    nanos = end.nanos - start.nanos
    if not INT_MIN <= nanos <= INT_MAX:
        raise ExpressionFailed("two timestamps are more than 292 years apart")
    return Duration(nanos)


def parse_timestamp(text: str) -> Timestamp:
    match = _TIMESTAMP.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise _no_timestamp(text)
    hour, minute, second = int(match[4]), int(match[5]), int(match[6])
    offset_h, offset_m = int(match[9] or 0), int(match[10] or 0)
    if hour > 23 or minute > 59 or second > 59 or offset_h > 23 or offset_m > 59:
        raise _no_timestamp(text)
    try:
        day = date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH
    except ValueError:
        raise _no_timestamp(text) from None
    offset = (offset_h * 3600 + offset_m * 60) * (-1 if match[8] == "-" else 1)
    seconds = day * _DAY + hour * 3600 + minute * 60 + second - offset
    return instant(seconds * _SECOND + int((match[7] or "0").ljust(9, "0")))


def _no_timestamp(text: str) -> ExpressionFailed:
    return ExpressionFailed(f"{text[:_LONGEST_TEXT]!r} is not a timestamp such as 2024-02-29T12:00:00Z")


def parse_duration(text: str) -> Duration:
    if text.lstrip("+-") == "0" and len(text) <= 2:
        return Duration(0)
    match = _DURATION.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise ExpressionFailed(f"{text[:_LONGEST_TEXT]!r} is not a duration such as 1h30m or 1.5s")
    total = 0
    for whole, fraction, unit in _SPAN.findall(match[2]):
        size = _UNITS[unit]
        total += int(whole or 0) * size + int(fraction or 0) * size // 10 ** len(fraction)
    return span(-total if match[1] == "-" else total)


def timestamp_text(value: Timestamp) -> str:
    seconds, nanos = divmod(value.nanos, _SECOND)
    days, rest = divmod(seconds, _DAY)
    day = date.fromordinal(days + _EPOCH)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{day.year:04}-{day.month:02}-{day.day:02}T{clock}{_fraction(nanos)}Z"


def duration_text(value: Duration) -> str:
    seconds, nanos = divmod(abs(value.nanos), _SECOND)
    return f"{'-' if value.nanos < 0 else ''}{seconds}{_fraction(nanos)}s"


def _fraction(nanos: int) -> str:
    """Nothing, milliseconds, microseconds or nanoseconds: as many digits as are needed, in threes."""
    if not nanos:
        return ""
    digits = f"{nanos:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}"


def seconds_of(value: Timestamp) -> int:
    return value.nanos // _SECOND


def from_seconds(seconds: int) -> Timestamp:
    return instant(seconds * _SECOND)


# --- parts --------------------------------------------------------------------------------------------------------


def timestamp_part(part: str, value: Timestamp, zone: str = "UTC") -> int:
    """`getFullYear` and its kin. Months, days of month and days of year count from 0, but `getDate` from 1."""
    seconds, nanos = divmod(value.nanos + _offset(zone) * _SECOND, _SECOND)
    days, rest = divmod(seconds, _DAY)
    match part:
        case "getHours":
            return rest // 3600
        case "getMinutes":
            return rest // 60 % 60
        case "getSeconds":
            return rest % 60
        case "getMilliseconds":
            return nanos // 1_000_000
        case "getDayOfWeek":
            return (days + 4) % 7  # the epoch was a Thursday; 0 is Sunday
    return _date_part(part, days + _EPOCH)


def _date_part(part: str, ordinal: int) -> int:
    if not 1 <= ordinal <= date.max.toordinal():
        raise ExpressionFailed("a timestamp must lie between the years 1 and 9999, also in its time zone")
    day = date.fromordinal(ordinal)
    match part:
        case "getFullYear":
            return day.year
        case "getMonth":
            return day.month - 1
        case "getDate":
            return day.day
        case "getDayOfMonth":
            return day.day - 1
    return ordinal - date(day.year, 1, 1).toordinal()


def duration_part(part: str, value: Duration) -> int:
    """The whole span in hours, minutes or seconds; of milliseconds only those beyond the last second."""
    sign, nanos = (-1, -value.nanos) if value.nanos < 0 else (1, value.nanos)
    match part:
        case "getHours":
            return sign * (nanos // _UNITS["h"])
        case "getMinutes":
            return sign * (nanos // _UNITS["m"])
        case "getSeconds":
            return sign * (nanos // _SECOND)
    return sign * (nanos % _SECOND // 1_000_000)


def _offset(zone: str) -> int:
    """A zone in seconds east of Greenwich."""
    if zone in {"UTC", "Z", ""}:
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is None or int(match[2]) > 23 or int(match[3]) > 59:
        raise ExpressionFailed(f"{zone[:40]!r} is not a time zone known here: use UTC or an offset such as +02:00")
    seconds = int(match[2]) * 3600 + int(match[3]) * 60
    return -seconds if match[1] == "-" else seconds
