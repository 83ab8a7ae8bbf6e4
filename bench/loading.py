"""Fills a PostgreSQL database with executions by COPY: so many would take an hour to run.

Rows are as the engine leaves them: a head, its first event, and a ready row where it waits for a worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from holdfast.model.ids import execution_id

HEAD: Final = [
    "id",
    "org",
    "workflow_id",
    "kind",
    "version",
    "queue",
    "priority",
    "state",
    "created_at",
    "updated_at",
    "closed_at",
    "last_seq",
    "seen_seq",
    "call_seq",
    "signal_count",
    "open_tasks",
    "open_timers",
    "open_children",
    "open_waits",
    "epoch",
    "nonce",
    "crashes",
    "close_rounds",
    "cancel_requested",
    "metadata",
    "child_no",
]
READY: Final = [
    "execution_id",
    "org",
    "queue",
    "priority",
    "kind",
    "version",
    "since_at",
    "not_before_at",
    "worker",
    "news",
]

_PORTION = 50_000


def ids(count: int, first_us: int, every_us: int) -> Iterator[tuple[str, int]]:
    """So many ids with the moments they were made at, in that order."""
    for number in range(count):
        at = first_us + number * every_us
        yield execution_id(at, number, number * 2654435761 % 2**62), at


def head(
    key: str,
    at: int,
    *,
    kind: str,
    version: str,
    org: str = "default",
    queue: str = "default",
    state: str = "OPEN",
    workflow_id: str | None = None,
) -> tuple[Any, ...]:
    closed_at = None if state in {"OPEN", "STUCK"} else at + 1_000_000
    name = workflow_id if workflow_id is not None else key
    counts = (1, 0 if closed_at is None else 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    return (key, org, name, kind, version, queue, 0, state, at, at, closed_at, *counts, False, None, 0)


def ready(key: str, at: int, *, kind: str, version: str, queue: str = "default") -> tuple[Any, ...]:
    return (key, "default", queue, 0, kind, version, at, 0, None, True)


async def copy(connection: Any, table: str, columns: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    """In portions: one transaction of a million rows would hold back the cleaning of all tables."""
    portion: list[tuple[Any, ...]] = []
    for row in rows:
        portion.append(row)
        if len(portion) == _PORTION:
            await connection.copy_records_to_table(table, records=portion, columns=columns)
            portion = []
    if portion:
        await connection.copy_records_to_table(table, records=portion, columns=columns)
