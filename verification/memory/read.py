"""Reads for callers: records out, scoped by org except where the engine itself asks. The rows are the caller's own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DeadLetter, Execution, OutputRow, State, WorkflowStatus
from holdfast.model.messages import DeliveryRow, EventKeyRow
from holdfast.store.protocol import TaskKey
from holdfast.store.queries import Backlog, ExecutionQuery, Inconsistency, QueueDepth
from verification.memory.database import MemoryDatabase, copied
from verification.memory.load import with_signal

_WAITS = frozenset({"event", "message", "broadcast"})


def executions(database: MemoryDatabase, org: str, ids: Sequence[str]) -> dict[str, Execution]:
    found = ((key, database.execution_row(key)) for key in ids)
    return {
        key: execution_row for key, execution_row in found if execution_row is not None and execution_row.org == org
    }


def execution_by_workflow_id(database: MemoryDatabase, org: str, workflow_id: str) -> Execution | None:
    return database.execution_row(database.workflow_keys.get((org, workflow_id), ""))


def history(
    database: MemoryDatabase, org: str, execution_id: str, *, after: int, limit: int | None, types: Sequence[str]
) -> list[HistoryEvent]:
    execution_row = database.execution_rows.get(execution_id)
    if execution_row is None or execution_row.org != org:
        return []
    wanted = (
        event for event in database.history(execution_id) if event.seq > after and (not types or event.type in types)
    )
    return list(islice(wanted, limit))


def last_events(database: MemoryDatabase, org: str, ids: Sequence[str]) -> dict[str, HistoryEvent]:
    found = {}
    for key in ids:
        execution_row = database.execution_rows.get(key)
        event = (
            database.events.get(key, {}).get(execution_row.last_seq)
            if execution_row is not None and execution_row.org == org
            else None
        )
        if event is not None:
            found[key] = event
    return found


def list_executions(database: MemoryDatabase, query: ExecutionQuery) -> list[Execution]:
    """One page, newest first."""
    execution_rows = (database.execution_row(key) for key in sorted(database.execution_rows, reverse=True))
    return list(
        islice(
            (
                execution_row
                for execution_row in execution_rows
                if execution_row is not None and _wanted(execution_row, query)
            ),
            query.limit,
        )
    )


def _wanted(execution_row: Execution, query: ExecutionQuery) -> bool:
    return (
        execution_row.org == query.org
        and (query.before is None or execution_row.id < query.before)
        and (not query.statuses or execution_row.status in query.statuses)
        and (not query.kinds or execution_row.kind in query.kinds)
        and (query.workflow_id is None or execution_row.workflow_id == query.workflow_id)
        and (query.queue is None or execution_row.queue == query.queue)
        and (query.created_from is None or execution_row.created_at >= query.created_from)
        and (query.created_before is None or execution_row.created_at < query.created_before)
        and all((execution_row.metadata or {}).get(key) == value for key, value in query.metadata)
    )


def count_executions(database: MemoryDatabase, org: str) -> dict[WorkflowStatus, int]:
    execution_rows = (database.execution_row(key) for key in database.execution_rows)
    return dict(
        Counter(
            execution_row.status
            for execution_row in execution_rows
            if execution_row is not None and execution_row.org == org
        )
    )


def dead_letters(database: MemoryDatabase, org: str, execution_id: str | None, limit: int) -> list[DeadLetter]:
    found = [
        letter
        for letter in database.dead_letters.values()
        if letter.org == org and not letter.settled and execution_id in (None, letter.execution_id)
    ]
    newest = sorted(found, key=lambda letter: (letter.at, letter.execution_id, letter.seq), reverse=True)
    if execution_id is not None:
        newest.sort(key=lambda letter: letter.seq, reverse=True)
    return [with_signal(database, letter)[0] for letter in newest[:limit]]


def task_output(database: MemoryDatabase, org: str, key: TaskKey, after: int, limit: int) -> list[OutputRow]:
    execution_row = database.execution_rows.get(key[0])
    if execution_row is None or execution_row.org != org:
        return []
    kept = sorted(database.output.get(key, {}).items())
    return [row for seq, row in kept if seq > after][:limit]


def event_key(database: MemoryDatabase, org: str, key: str) -> EventKeyRow:
    return copied(database.event_keys.get((org, key)) or EventKeyRow(org=org, key=key))


def delivery(database: MemoryDatabase, org: str | None, number: int) -> DeliveryRow | None:
    found = database.deliveries.get(number)
    return copied(found) if found is not None and org in (None, found.org) else None


def next_due_at(database: MemoryDatabase, after: int) -> int | None:
    """A delay that was over at `after` does not count: such a row waits for a worker, not for the clock."""
    return min(_instants(database, after), default=None)


def _instants(database: MemoryDatabase, after: int) -> Iterator[int]:
    for timer in database.timers.values():
        yield timer.fire_at
    for task in database.tasks.values():
        if task.due_at is not None:
            yield task.due_at
        if task.worker is None and not task.deferred and task.not_before_at > after:
            yield task.not_before_at
    for row in database.deliveries.values():
        if row.done_at is None:
            yield row.sent_at
    for ready in database.ready.values():
        if ready.worker is None and ready.not_before_at > after:
            yield ready.not_before_at


def pending_events_for(database: MemoryDatabase, worker: str) -> list[tuple[str, int]]:
    found = sorted(key for key, ready in database.ready.items() if ready.worker == worker and ready.pending_events)
    return [(key, database.execution_rows[key].last_seq) for key in found]


def inconsistencies(database: MemoryDatabase, org: str, limit: int) -> list[Inconsistency]:
    """Open executions that wait for rows which do not exist, or have unread events and no ready row."""
    found: list[Inconsistency] = []
    missing: list[Inconsistency] = []
    for key in sorted(database.execution_rows):
        execution_row = database.execution_rows[key]
        if execution_row.org != org or not execution_row.is_open or key in database.ready:
            continue
        if execution_row.last_seq > execution_row.seen_seq:
            found.append(Inconsistency(execution_id=key, unread=True))
            continue
        lost = _missing(database, execution_row)
        if lost:
            missing.append(
                Inconsistency(
                    execution_id=key,
                    missing_timers=tuple(lost["timer"]),
                    missing_tasks=tuple(lost["task"]),
                    missing_waits=tuple(lost["wait"]),
                    missing_promises=tuple(lost["promise"]),
                )
            )
    return [*found, *missing][:limit]


def _missing(database: MemoryDatabase, execution_row: Execution) -> dict[str, list[int]]:
    waits = {row.wait_no for row in database.subscriptions.values() if row.execution_id == execution_row.id}
    promises = {
        row.promise_no
        for row in database.promises.values()
        if row.execution_id == execution_row.id
        and (row.timer_no is None or (execution_row.id, row.timer_no) in database.timers)
        and (row.event_key is None or -row.promise_no in waits)
    }
    lost: dict[str, list[int]] = defaultdict(list)
    for wait in execution_row.waiting_for:
        at = (execution_row.id, wait.number)
        if wait.kind == "timer" and at not in database.timers:
            lost["timer"].append(wait.number)
        elif wait.kind == "task" and at not in database.tasks:
            lost["task"].append(wait.number)
        elif wait.kind in _WAITS and wait.number not in waits:
            lost["wait"].append(wait.number)
        elif wait.kind == "promise" and wait.number not in promises:
            lost["promise"].append(wait.number)
    return lost


def backlog(database: MemoryDatabase, now: int, most: int) -> Backlog:
    turns, tasks, stuck = _Depths(), _Depths(), Counter[str]()
    for key, ready in database.ready.items():
        execution_row = database.execution_rows[key]
        if ready.worker is None and ready.not_before_at <= now:
            turns[execution_row.org, execution_row.queue].append(max(ready.since_at, ready.not_before_at))
    for task in database.tasks.values():
        if task.worker is None and not task.deferred and task.not_before_at <= now:
            tasks[task.org, task.queue].append(max(task.not_before_at, task.scheduled_at))
    stuck.update(
        execution_row.org for execution_row in database.execution_rows.values() if execution_row.state is State.STUCK
    )
    orgs = sorted({execution_row.org for execution_row in database.execution_rows.values()})[:most]
    return Backlog(turns=turns.fullest(most), tasks=tasks.fullest(most), stuck={k: stuck[k] for k in orgs if stuck[k]})


class _Depths(defaultdict[tuple[str, str], list[int]]):
    """Since when what waits, by org and queue."""

    def __init__(self) -> None:
        super().__init__(list)

    def fullest(self, most: int) -> list[QueueDepth]:
        found = [QueueDepth(*key, len(since), min(since)) for key, since in self.items()]
        return sorted(found, key=lambda depth: (-depth.waiting, depth.org, depth.queue))[:most]
