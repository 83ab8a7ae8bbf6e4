"""Instants: whole microseconds inside, ISO 8601 with `Z` outside. Exact both ways."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, overload

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST: Final = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)


def instant(at: int) -> datetime:
    """An instant beyond the calendar, such as one that never comes, is the calendar's last day."""
    return EPOCH + timedelta(microseconds=min(max(at, 0), LAST))


@overload
def instant_or_none(at: int) -> datetime: ...


@overload
def instant_or_none(at: int | None) -> datetime | None: ...


def instant_or_none(at: int | None) -> datetime | None:
    return None if at is None else instant(at)


def micros(when: datetime) -> int:
    return (when - EPOCH) // _MICROSECOND


def micros_or_none(when: datetime | None) -> int | None:
    return None if when is None else micros(when)
