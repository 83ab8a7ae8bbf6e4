"""Reads for callers: records out, scoped by org except where the engine itself asks. The rows are the caller's own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final, TypeVar

from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DeadLetter, DefinitionRow, Execution, OutputRow, State, Status, TaskRow, TimerRow
from holdfast.model.keys import ApiKey, Org
from holdfast.model.messages import DeliveryRow, PromiseRow, PublishedRow, SubscriptionKind, SubscriptionRow
from holdfast.model.standalone import is_reserved
from holdfast.store import reads
from holdfast.store.closed_pages import ClosedPage, closed_after, page_of
from holdfast.store.looks import Backlog, Inconsistency, QueueDepth
from holdfast.store.reads import ListExecutions, Row, Select
from holdfast.testing.memory.database import MemoryDatabase, copied
from holdfast.testing.memory.deletions import holds_any
from holdfast.testing.memory.load import with_signal

T = TypeVar("T")
_WAITS = frozenset({"event", "message", "broadcast"})


def executions(database: MemoryDatabase, org: str, ids: Sequence[str]) -> dict[str, Execution]:
    found = ((key, database.head(key)) for key in ids)
    return {key: head for key, head in found if head is not None and head.org == org}


def execution_by_workflow_id(database: MemoryDatabase, org: str, workflow_id: str) -> Execution | None:
    return database.head(database.workflow_keys.get((org, workflow_id), ""))


def history(
    database: MemoryDatabase, org: str, execution_id: str, *, after: int, limit: int | None, types: Sequence[str]
) -> list[HistoryEvent]:
    head = database.heads.get(execution_id)
    if head is None or head.org != org:
        return []
    wanted = (
        event for event in database.history(execution_id) if event.seq > after and (not types or event.type in types)
    )
    return list(islice(wanted, limit))


def last_events(database: MemoryDatabase, org: str, ids: Sequence[str]) -> dict[str, HistoryEvent]:
    found = {}
    for key in ids:
        head = database.heads.get(key)
        event = database.events.get(key, {}).get(head.last_seq) if head is not None and head.org == org else None
        if event is not None:
            found[key] = event
    return found


def list_executions(database: MemoryDatabase, query: ListExecutions) -> list[Execution]:
    """One page, newest first."""
    heads = (database.head(key) for key in sorted(database.heads, reverse=True))
    return list(islice((head for head in heads if head is not None and _wanted(head, query)), query.limit))


def _wanted(head: Execution, query: ListExecutions) -> bool:
    return (
        head.org == query.org
        and (query.before is None or head.id < query.before)
        and (not query.statuses or head.status in query.statuses)
        and (not query.kinds or head.kind in query.kinds)
        and (query.workflow_id is None or head.workflow_id == query.workflow_id)
        and (query.queue is None or head.queue == query.queue)
        and (query.created_from is None or head.created_at >= query.created_from)
        and (query.created_before is None or head.created_at < query.created_before)
        and all((head.metadata or {}).get(key) == value for key, value in query.metadata)
    )


def count_executions(database: MemoryDatabase, org: str) -> dict[Status, int]:
    heads = (database.head(key) for key in database.heads)
    return dict(Counter(head.status for head in heads if head is not None and head.org == org))


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


def task_output(
    database: MemoryDatabase, org: str, execution_id: str, task_no: int, *, after: int, limit: int
) -> list[OutputRow]:
    head = database.heads.get(execution_id)
    if head is None or head.org != org:
        return []
    kept = sorted(database.output.get((execution_id, task_no), {}).items())
    return [row for seq, row in kept if seq > after][:limit]


def events_of(
    database: MemoryDatabase, org: str, ids: Sequence[str], types: Sequence[str]
) -> dict[str, list[HistoryEvent]]:
    found = {key: history(database, org, key, after=0, limit=None, types=types) for key in ids}
    return {key: events for key, events in found.items() if events}


def closed_page(database: MemoryDatabase, before: int, after: str, limit: int) -> ClosedPage:
    heads = database.heads.values()
    places = {(head.closed_at, head.id): head for head in heads if head.closed_at is not None}
    found = sorted(place for place in places if place > closed_after(after) and place[0] < before)[:limit]
    return page_of([(key, at, places[at, key].last_seq, places[at, key].open_children) for at, key in found], limit)


def tasks(database: MemoryDatabase, org: str, execution_id: str) -> list[TaskRow]:
    return database.of_execution(database.tasks, org, execution_id)


def tasks_of(database: MemoryDatabase, org: str, ids: Sequence[str]) -> dict[str, list[TaskRow]]:
    found = {key: tasks(database, org, key) for key in ids}
    return {key: rows for key, rows in found.items() if rows}


def task(database: MemoryDatabase, org: str, execution_id: str, task_no: int) -> TaskRow | None:
    found = database.tasks.get((execution_id, task_no))
    return copied(found) if found is not None and found.org == org else None


def timers(database: MemoryDatabase, org: str, execution_id: str) -> list[TimerRow]:
    return database.of_execution(database.timers, org, execution_id)


def promises(database: MemoryDatabase, org: str, execution_id: str) -> list[PromiseRow]:
    found: list[PromiseRow] = database.of_execution(database.promises, org, execution_id)
    return sorted(found, key=lambda row: (row.promise_no, row.name))


def waits(database: MemoryDatabase, org: str, execution_id: str) -> list[SubscriptionRow]:
    return database.of_execution(database.subscriptions, org, execution_id)


def waits_of_key(
    database: MemoryDatabase, org: str, kind: SubscriptionKind, key: str, limit: int
) -> list[SubscriptionRow]:
    rows = sorted(database.subscriptions.items())
    return [row for _, row in rows if (row.org, row.kind, row.key) == (org, kind, key)][:limit]


def published(
    database: MemoryDatabase, org: str, key: str | None, before: int | None, limit: int
) -> list[PublishedRow]:
    found = [
        copied(row)
        for number, row in sorted(database.published.items(), reverse=True)
        if row.org == org and key in (None, row.key) and (before is None or number < before)
    ]
    return found[:limit]


def key_by_hash(database: MemoryDatabase, key_hash: str) -> tuple[ApiKey, Org] | None:
    for key in database.rows[ApiKey].values():
        if key_hash in {key.hash, key.old_hash}:
            return key, database.rows[Org][key.org]
    return None


def definitions(database: MemoryDatabase, org: str, limit: int) -> list[DefinitionRow]:
    known = database.rows[DefinitionRow].values()
    found = [row for row in known if row.org == org and not is_reserved(row.kind)]
    return sorted(found, key=lambda row: (row.kind, -row.registered_at, row.version))[:limit]


def has_remains(database: MemoryDatabase) -> bool:
    return bool(database.remains)


def row(database: MemoryDatabase, query: Row[T]) -> T | None:
    found = database.rows[query.record].get(query.key)
    return query.scoped(copied(found)) if found is not None else None


def select(database: MemoryDatabase, query: Select[T]) -> list[T]:
    (first, falling), *_ = query.columns
    found = [row for row in database.rows[query.record].values() if all(getattr(row, n) == v for n, v in query.asked)]
    if query.after is not None:
        found = [
            row
            for row in found
            if (getattr(row, first) < query.after) is falling and getattr(row, first) != query.after
        ]
    for name, down in reversed(query.columns):
        found.sort(key=attrgetter(name), reverse=down)
    return [copied(row) for row in found[: query.limit]]


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


def news_for(database: MemoryDatabase, worker: str) -> list[tuple[str, int]]:
    found = sorted(key for key, ready in database.ready.items() if ready.worker == worker and ready.news)
    return [(key, database.heads[key].last_seq) for key in found]


def inconsistencies(database: MemoryDatabase, org: str, limit: int) -> list[Inconsistency]:
    """Open executions that wait for rows which do not exist, or have unread events and no ready row."""
    found: list[Inconsistency] = []
    missing: list[Inconsistency] = []
    for key in sorted(database.heads):
        head = database.heads[key]
        if head.org != org or not head.is_open or key in database.ready:
            continue
        if head.last_seq > head.seen_seq:
            found.append(Inconsistency(execution_id=key, unread=True))
            continue
        lost = _missing(database, head)
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


def _missing(database: MemoryDatabase, head: Execution) -> dict[str, list[int]]:
    waits = {row.wait_no for row in database.subscriptions.values() if row.execution_id == head.id}
    promises = {
        row.promise_no
        for row in database.promises.values()
        if row.execution_id == head.id
        and (row.timer_no is None or (head.id, row.timer_no) in database.timers)
        and (row.event_key is None or -row.promise_no in waits)
    }
    lost: dict[str, list[int]] = defaultdict(list)
    for wait in head.waiting_for:
        at = (head.id, wait.number)
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
        head = database.heads[key]
        if ready.worker is None and ready.not_before_at <= now:
            turns[head.org, head.queue].append(max(ready.since_at, ready.not_before_at))
    for task in database.tasks.values():
        if task.worker is None and not task.deferred and task.not_before_at <= now:
            tasks[task.org, task.queue].append(max(task.not_before_at, task.scheduled_at))
    stuck.update(head.org for head in database.heads.values() if head.state is State.STUCK)
    orgs = sorted({head.org for head in database.heads.values()})[:most]
    return Backlog(turns=turns.fullest(most), tasks=tasks.fullest(most), stuck={k: stuck[k] for k in orgs if stuck[k]})


class _Depths(defaultdict[tuple[str, str], list[int]]):
    """Since when what waits, by org and queue."""

    def __init__(self) -> None:
        super().__init__(list)

    def fullest(self, most: int) -> list[QueueDepth]:
        found = [QueueDepth(*key, len(since), min(since)) for key, since in self.items()]
        return sorted(found, key=lambda depth: (-depth.waiting, depth.org, depth.queue))[:most]


ANSWERS: Final[dict[type[Any], Callable[..., Any]]] = {
    reads.Row: row,
    reads.Select: select,
    reads.Executions: executions,
    reads.LastEvents: last_events,
    reads.ExecutionByWorkflowId: execution_by_workflow_id,
    reads.ListExecutions: list_executions,
    reads.CountExecutions: count_executions,
    reads.History: history,
    reads.EventsOf: events_of,
    reads.ClosedExecutions: closed_page,
    reads.DeadLetters: dead_letters,
    reads.Tasks: tasks,
    reads.TasksOf: tasks_of,
    reads.Task: task,
    reads.TaskOutput: task_output,
    reads.Timers: timers,
    reads.Promises: promises,
    reads.Waits: waits,
    reads.WaitsOfKey: waits_of_key,
    reads.Published: published,
    reads.Delivery: delivery,
    reads.KeyByHash: key_by_hash,
    reads.Definitions: definitions,
    reads.HoldsAny: holds_any,
    reads.HasRemains: has_remains,
    reads.NextDueAt: next_due_at,
    reads.NewsFor: news_for,
    reads.Backlogs: backlog,
    reads.Inconsistencies: inconsistencies,
}
"""Which function answers a question."""
