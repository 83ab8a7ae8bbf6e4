"""Queries for callers: connection in, records out, scoped by org except where the engine itself asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from holdfast.model.events import HistoryEvent
from holdfast.model.executions import (
    OPEN_STATES,
    DeadLetter,
    DefinitionRow,
    Execution,
    OutputRow,
    State,
    Status,
    TaskRow,
    TimerRow,
)
from holdfast.model.keys import ApiKey, Org
from holdfast.store.looks import Backlog, Inconsistency, QueueDepth
from holdfast.store.plain import TABLES, key_and_org
from holdfast.store.postgres.planning import by_keys, in_time
from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.rows import (
    row_to_dead_letter,
    row_to_event,
    row_to_head,
    row_to_output,
    row_to_task,
    row_to_timer,
)

_HEADS = statement("executions", "heads")
_LAST_EVENTS = statement("events", "last")
_BY_WORKFLOW_ID = statement("executions", "by_workflow_id")
_EVENTS = statement("events", "page")
_EVENTS_OF_TYPES = statement("events", "page_of_types")
_EVENTS_OF_EACH = statement("events", "of_each")
_COUNT = statement("executions", "count_by_status")
_TASKS = statement("tasks", "of_execution")
_TASKS_OF_EACH = statement("tasks", "of_each")
_TASK = statement("tasks", "one")
_OUTPUT = statement("task_output", "page")
_TIMERS = statement("timers", "of_execution")
_DEAD_LETTERS = statement("dead_letters", "of_org")
_DEAD_LETTERS_OF_EXECUTION = statement("dead_letters", "of_execution")
_NEXT_DUE = statement("ready", "next_due")
_BY_HASH = statement("keys", "by_hash")
_DEFINITIONS = statement("definitions", "of_org")
_WAITING_TURNS = statement("ready", "backlog")
_WAITING_TASKS = statement("tasks", "backlog")
_STUCK = statement("executions", "stuck")
_NEWS = statement("ready", "news")
_END_OF_PAGE = statement("executions", "end_of_page")
_INCONSISTENT = statement("executions", "inconsistent")
# So many executions are checked by one query: a long one would keep the server from clearing away dead rows.
_CHECKED_AT_ONCE: Final = 10_000


class NextDue(NamedTuple):
    """When the next timer, the next deadline of a task and the next of all others is due."""

    timer: int | None
    deadline: int | None
    other: int | None
    took_us: int

    @property
    def earliest(self) -> int | None:
        found = (self.timer, self.deadline, self.other)
        return min((moment for moment in found if moment is not None), default=None)


@by_keys
async def executions(connection: Connection, ids: Sequence[str]) -> list[tuple[str, str, Execution]]:
    heads = [row_to_head(row) for row in await connection.fetch(_HEADS, ids)]
    return [(head.id, head.org, head) for head in heads]


@by_keys
async def last_events(connection: Connection, ids: Sequence[str]) -> list[tuple[str, str, HistoryEvent]]:
    found = await connection.fetch(_LAST_EVENTS, ids)
    return [(execution_id, org, row_to_event(*event)) for execution_id, org, *event in found]


@by_keys
async def execution_by_workflow_id(connection: Connection, org: str, workflow_id: str) -> Execution | None:
    row = await connection.fetchrow(_BY_WORKFLOW_ID, org, workflow_id)
    return row_to_head(row) if row is not None else None


async def history(
    connection: Connection,
    org: str,
    execution_id: str,
    *,
    after: int = 0,
    limit: int | None = None,
    types: Sequence[str] = (),
) -> list[HistoryEvent]:
    if types:
        found = await connection.fetch(_EVENTS_OF_TYPES, org, execution_id, after, limit, list(types))
    else:
        found = await connection.fetch(_EVENTS, org, execution_id, after, limit)
    return [row_to_event(*row) for row in found]


@by_keys
async def events_of(
    connection: Connection, org: str, ids: Sequence[str], types: Sequence[str]
) -> dict[str, list[HistoryEvent]]:
    found: dict[str, list[HistoryEvent]] = {}
    for execution_id, *event in await connection.fetch(_EVENTS_OF_EACH, org, list(ids), list(types)):
        found.setdefault(execution_id, []).append(row_to_event(*event))
    return found


@in_time
async def count_executions(connection: Connection, org: str) -> dict[Status, int]:
    """Statuses that occur."""
    counts: dict[str, int] = dict(await connection.fetch(_COUNT, org))
    with_ready = counts.get(Status.PENDING, 0) + counts.get(Status.RUNNING, 0)
    counts[Status.WAITING] = counts.pop(State.OPEN, 0) - with_ready
    return {Status(status): count for status, count in counts.items() if count}


@by_keys
async def tasks(connection: Connection, org: str, execution_id: str) -> list[TaskRow]:
    return [row_to_task(row) for row in await connection.fetch(_TASKS, org, execution_id)]


@by_keys
async def tasks_of(connection: Connection, org: str, ids: Sequence[str]) -> dict[str, list[TaskRow]]:
    found: dict[str, list[TaskRow]] = {}
    for row in await connection.fetch(_TASKS_OF_EACH, org, list(ids)):
        task = row_to_task(row)
        found.setdefault(task.execution_id, []).append(task)
    return found


@by_keys
async def task(connection: Connection, org: str, execution_id: str, task_no: int) -> TaskRow | None:
    row = await connection.fetchrow(_TASK, org, execution_id, task_no)
    return row_to_task(row) if row is not None else None


@by_keys
async def task_output(
    connection: Connection, org: str, execution_id: str, task_no: int, *, after: int, limit: int
) -> list[OutputRow]:
    return [row_to_output(row) for row in await connection.fetch(_OUTPUT, org, execution_id, task_no, after, limit)]


@by_keys
async def timers(connection: Connection, org: str, execution_id: str) -> list[TimerRow]:
    return [row_to_timer(row) for row in await connection.fetch(_TIMERS, org, execution_id)]


@by_keys
async def dead_letters(connection: Connection, org: str, execution_id: str | None, limit: int) -> list[DeadLetter]:
    if execution_id is None:
        found = await connection.fetch(_DEAD_LETTERS, org, limit)
    else:
        found = await connection.fetch(_DEAD_LETTERS_OF_EXECUTION, org, execution_id, limit)
    return [row_to_dead_letter(row)[0] for row in found]


@by_keys
async def key_by_hash(connection: Connection, key_hash: str) -> tuple[ApiKey, Org] | None:
    row = await connection.fetchrow(_BY_HASH, key_hash)
    return key_and_org(row) if row is not None else None


@by_keys
async def definitions(connection: Connection, org: str, limit: int) -> list[DefinitionRow]:
    table = TABLES[DefinitionRow]
    return [table.from_row(row) for row in await connection.fetch(_DEFINITIONS, org, limit)]


@by_keys
async def next_due(connection: Connection, after: int, since: int) -> NextDue:
    return NextDue(*await connection.fetchrow(_NEXT_DUE, after, since))


@by_keys
async def news_for(connection: Connection, worker: str) -> list[tuple[str, int]]:
    return [(execution_id, last_seq) for execution_id, last_seq in await connection.fetch(_NEWS, worker)]


@by_keys
async def inconsistencies(connection: Connection, org: str, limit: int) -> list[Inconsistency]:
    """Those with unread events first, then by id."""
    found: list[Inconsistency] = []
    for state in sorted(OPEN_STATES):
        after = ""
        while len(found) < limit:
            end = await connection.fetchval(_END_OF_PAGE, org, state.value, after, _CHECKED_AT_ONCE)
            if end is None:
                break
            found += map(_inconsistency, await connection.fetch(_INCONSISTENT, org, state.value, after, end))
            after = end
    found.sort(key=lambda one: (not one.unread, one.execution_id))
    return found[:limit]


def _inconsistency(row: Any) -> Inconsistency:
    execution_id, unread, kinds, numbers = row
    missing: dict[str, list[int]] = defaultdict(list)
    for kind, number in zip(kinds or (), numbers or (), strict=True):
        missing[kind].append(number)
    return Inconsistency(
        execution_id=execution_id,
        unread=unread,
        missing_timers=tuple(missing["timer"]),
        missing_tasks=tuple(missing["task"]),
        missing_waits=tuple(missing["wait"]),
        missing_promises=tuple(missing["promise"]),
    )


@by_keys
async def backlog(connection: Connection, now: int, most: int) -> Backlog:
    return Backlog(
        turns=[QueueDepth(*row) for row in await connection.fetch(_WAITING_TURNS, now, most)],
        tasks=[QueueDepth(*row) for row in await connection.fetch(_WAITING_TASKS, now, most)],
        stuck={org: count for org, count in await connection.fetch(_STUCK, most) if count},
    )
