"""Pages of closed executions in the order they were closed in, and the places where such pages end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec


class ClosedPage(msgspec.Struct, frozen=True):
    """Closed executions with the number of their events. The next page begins `after` this place; None: it is over."""

    executions: list[tuple[str, int]]
    after: str | None


def closed_after(place: str) -> tuple[int, str]:
    """When the last execution of the page before was closed, and its id: many are closed in the same instant."""
    closed_at, _, execution_id = place.partition(" ")
    return int(closed_at or 0), execution_id


def page_of(rows: Sequence[Any], limit: int) -> ClosedPage:
    """From rows of id, closed_at, last_seq and open_children, in the order of closed_at and id."""
    over = [(row[0], row[2]) for row in rows if not row[3]]
    return ClosedPage(over, f"{rows[-1][1]} {rows[-1][0]}" if len(rows) >= limit else None)
