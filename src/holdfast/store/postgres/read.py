"""Queries for callers: connection in, records out, scoped by org except where the engine itself asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from holdfast.model.events import HistoryEvent
from holdfast.model.executions import (
    OPEN_STATES,
    DeadLetter,
    Execution,
    OutputRow,
    State,
    TaskRow,
    TimerRow,
    WorkflowStatus,
)
from holdfast.store.postgres.read_session import in_time, index_only
from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.queries import Inconsistency
from holdfast.store.rows import (
    row_to_dead_letter,
    row_to_event,
    row_to_execution,
    row_to_output,
    row_to_task,
    row_to_timer,
)

_EXECUTION_ROWS = statement("executions", "by_ids")
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
_PENDING_EVENTS = statement("ready", "news")
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


@index_only
async def executions(connection: Connection, ids: Sequence[str]) -> list[tuple[str, str, Execution]]:
    execution_rows = [row_to_execution(row) for row in await connection.fetch(_EXECUTION_ROWS, ids)]
    return [(execution_row.id, execution_row.org, execution_row) for execution_row in execution_rows]


@index_only
async def last_events(connection: Connection, ids: Sequence[str]) -> list[tuple[str, str, HistoryEvent]]:
    found = await connection.fetch(_LAST_EVENTS, ids)
    return [(execution_id, org, row_to_event(*event)) for execution_id, org, *event in found]


@index_only
async def execution_by_workflow_id(connection: Connection, org: str, workflow_id: str) -> Execution | None:
    row = await connection.fetchrow(_BY_WORKFLOW_ID, org, workflow_id)
    return row_to_execution(row) if row is not None else None


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


@index_only
async def events_of(
    connection: Connection, org: str, ids: Sequence[str], types: Sequence[str]
) -> dict[str, list[HistoryEvent]]:
    found: dict[str, list[HistoryEvent]] = {}
    for execution_id, *event in await connection.fetch(_EVENTS_OF_EACH, org, list(ids), list(types)):
        found.setdefault(execution_id, []).append(row_to_event(*event))
    return found


@in_time
async def count_executions(connection: Connection, org: str) -> dict[WorkflowStatus, int]:
    """Statuses that occur."""
    counts: dict[str, int] = dict(await connection.fetch(_COUNT, org))
    with_ready = counts.get(WorkflowStatus.PENDING, 0) + counts.get(WorkflowStatus.RUNNING, 0)
    counts[WorkflowStatus.WAITING] = counts.pop(State.OPEN, 0) - with_ready
    return {WorkflowStatus(status): count for status, count in counts.items() if count}


@index_only
async def tasks(connection: Connection, org: str, execution_id: str) -> list[TaskRow]:
    return [row_to_task(row) for row in await connection.fetch(_TASKS, org, execution_id)]


@index_only
async def tasks_of(connection: Connection, org: str, ids: Sequence[str]) -> dict[str, list[TaskRow]]:
    found: dict[str, list[TaskRow]] = {}
    for row in await connection.fetch(_TASKS_OF_EACH, org, list(ids)):
        task = row_to_task(row)
        found.setdefault(task.execution_id, []).append(task)
    return found


@index_only
async def task(connection: Connection, org: str, execution_id: str, task_no: int) -> TaskRow | None:
    row = await connection.fetchrow(_TASK, org, execution_id, task_no)
    return row_to_task(row) if row is not None else None


@index_only
async def task_output(
    connection: Connection, org: str, execution_id: str, task_no: int, *, after: int, limit: int
) -> list[OutputRow]:
    return [row_to_output(row) for row in await connection.fetch(_OUTPUT, org, execution_id, task_no, after, limit)]


@index_only
async def timers(connection: Connection, org: str, execution_id: str) -> list[TimerRow]:
    return [row_to_timer(row) for row in await connection.fetch(_TIMERS, org, execution_id)]


@index_only
async def dead_letters(connection: Connection, org: str, execution_id: str | None, limit: int) -> list[DeadLetter]:
    if execution_id is None:
        found = await connection.fetch(_DEAD_LETTERS, org, limit)
    else:
        found = await connection.fetch(_DEAD_LETTERS_OF_EXECUTION, org, execution_id, limit)
    return [row_to_dead_letter(row)[0] for row in found]


@index_only
async def next_due(connection: Connection, after: int, since: int) -> NextDue:
    return NextDue(*await connection.fetchrow(_NEXT_DUE, after, since))


@index_only
async def pending_events_for(connection: Connection, worker: str) -> list[tuple[str, int]]:
    return [(execution_id, last_seq) for execution_id, last_seq in await connection.fetch(_PENDING_EVENTS, worker)]


@index_only
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
