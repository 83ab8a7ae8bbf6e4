"""What must hold for any set of executions, whatever has happened to the processes that ran them.

    read(store) ─► records ─► check(records) ─► violations          check_growth(before, after) ─► violations

Owns the checks only: it reads through the `Store` protocol, changes nothing, and knows no rule of the engine, so that a
wrong rule can't hide itself. Each violation names its invariant:

    I01  sequence numbers are exactly 1..n and the head says n; what was once read never changes
    I03  the first event is WORKFLOW_STARTED, there is one, and its request id started nothing else
    I04  at most one terminal event; it is the last, and the head's state agrees with it
    I05  event times never decrease
    I07  a request id has brought at most one signal
    I09  the head has counted every signal of the history once
    I10  tasks, timers and steps: each number made once and in order, one outcome each, after it was asked for
    I13  a timer never fires before it is due, twice, or after it was cancelled
    I16  an execution at rest has seen everything and waits for something that exists   (needs the rows)
    I17  a workflow id never has two open executions
    I19  a closed execution has left no ready row, task or timer behind                 (needs the rows)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Execution, State, TaskRow, TimerRow
from holdfast.store.protocol import ExecutionQuery, Store

PAGE: Final = 500

_ENDS: Final[dict[type[e.EventBody], State]] = {
    e.WorkflowCompleted: State.COMPLETED,
    e.WorkflowFailed: State.FAILED,
    e.WorkflowCancelled: State.CANCELLED,
    e.WorkflowTerminated: State.TERMINATED,
}
_NEWS: Final = (
    e.WorkflowStarted,
    e.SignalReceived,
    e.TimerFired,
    e.TaskCompleted,
    e.TaskFailed,
    e.StepCompleted,
    e.StepFailed,
    e.CancelRequested,
)


class Violation(msgspec.Struct, frozen=True, order=True):
    """What does not hold, and where. `seq` is 0 when no single event is at fault."""

    invariant: str
    execution_id: str
    seq: int
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.execution_id} #{self.seq}: {self.text}"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One execution: its head with the ready row, its history, and its unfinished rows if they were read."""

    head: Execution
    history: Sequence[HistoryEvent]
    tasks: Sequence[TaskRow] | None = None
    timers: Sequence[TimerRow] | None = None


# --- reading ------------------------------------------------------------------------------------------------------


async def read(store: Store, org: str = "default") -> list[Record]:
    """Every execution of an org, oldest first. The store must be open; writers may be at work."""
    found: list[Execution] = []
    before: str | None = None
    while page := await store.list_executions(ExecutionQuery(org=org, before=before, limit=PAGE)):
        found.extend(page)
        before = page[-1].id
    return [await _read_one(store, head) for head in reversed(found)]


async def _read_one(store: Store, head: Execution) -> Record:
    """Rows that belong together: read again if the execution has moved between its head and its rows."""
    while True:
        history = await store.history(head.org, head.id)
        tasks = await store.tasks(head.org, head.id)
        timers = await store.timers(head.org, head.id)
        now = (await store.executions(head.org, [head.id]))[head.id]
        if now == head:
            return Record(head=head, history=history, tasks=tasks, timers=timers)
        head = now


# --- checking -----------------------------------------------------------------------------------------------------


def check(records: Iterable[Record]) -> list[Violation]:
    """All violations, sorted. Empty is what one hopes for."""
    kept = list(records)
    found: list[Violation] = []
    for record in kept:
        found.extend(_check_one(record))
    found.extend(_among(kept))
    return sorted(found)


def check_growth(before: Iterable[Record], after: Iterable[Record]) -> list[Violation]:
    """Histories only grow: what an earlier read showed is the beginning of what a later one shows."""
    later = {record.head.id: record for record in after}
    found: list[Violation] = []
    for record in before:
        now = later.get(record.head.id)
        if now is None:
            found.append(Violation("I01", record.head.id, 0, "was there before and is gone"))
            continue
        found.extend(_grown(record, now))
    return sorted(found)


def _grown(before: Record, after: Record) -> Iterator[Violation]:
    events = {event.seq: _as_stored(event) for event in after.history}
    for event in before.history:
        if events.get(event.seq) != _as_stored(event):
            yield Violation("I01", before.head.id, event.seq, f"{event.type} was read before and is now different")


def _as_stored(event: HistoryEvent) -> tuple[int, int, str, bytes]:
    return event.seq, event.at, event.type, e.encode_body(event.body)


def _check_one(record: Record) -> Iterator[Violation]:
    yield from _numbers(record)
    yield from _beginning(record)
    yield from _ending(record)
    yield from _times(record)
    yield from _signals(record)
    yield from _Commands(record).check()
    if record.tasks is not None and record.timers is not None:
        yield from _leftovers(record) if not record.head.is_open else _rest(record, record.tasks, record.timers)


def _numbers(record: Record) -> Iterator[Violation]:
    head = record.head
    for expected, event in enumerate(record.history, start=1):
        if event.seq != expected:
            yield Violation("I01", head.id, event.seq, f"number {event.seq} stands where {expected} belongs")
            return
    if head.last_seq != len(record.history):
        text = f"the head says {head.last_seq} events, the history has {len(record.history)}"
        yield Violation("I01", head.id, head.last_seq, text)


def _beginning(record: Record) -> Iterator[Violation]:
    if not record.history or type(record.history[0].body) is not e.WorkflowStarted:
        first = record.history[0].type if record.history else "nothing"
        yield Violation("I03", record.head.id, 1, f"the history begins with {first}")
    for event in record.history[1:]:
        if type(event.body) is e.WorkflowStarted:
            yield Violation("I03", record.head.id, event.seq, "started once more")


def _ending(record: Record) -> Iterator[Violation]:
    head = record.head
    ends = [event for event in record.history if event.body.TERMINAL]
    for event in ends[1:]:
        yield Violation("I04", head.id, event.seq, f"{event.type} although it had ended with {ends[0].type}")
    if ends and ends[-1] is not record.history[-1]:
        text = f"{record.history[-1].type} follows the end"
        yield Violation("I04", head.id, record.history[-1].seq, text)
    if not ends and not head.is_open:
        yield Violation("I04", head.id, 0, f"the head says {head.state}, the history has no end")
    if ends and head.state is not _ENDS.get(type(ends[-1].body), head.state):
        yield Violation("I04", head.id, ends[-1].seq, f"the head says {head.state}, the history {ends[-1].type}")


def _times(record: Record) -> Iterator[Violation]:
    for earlier, later in zip(record.history, record.history[1:], strict=False):
        if later.at < earlier.at:
            yield Violation("I05", record.head.id, later.seq, f"{earlier.at - later.at} µs before the event it follows")


def _signals(record: Record) -> Iterator[Violation]:
    count = sum(type(event.body) is e.SignalReceived for event in record.history)
    if count != record.head.signal_count:
        text = f"the head has counted {record.head.signal_count} signals, the history has {count}"
        yield Violation("I09", record.head.id, 0, text)


# --- commands and their outcomes ----------------------------------------------------------------------------------


class _Commands:
    """One walk through a history, keeping what was asked for and what has come of it."""

    def __init__(self, record: Record) -> None:
        self._id = record.head.id
        self._history = record.history
        self._due: dict[int, int] = {}
        self._made: Counter[str] = Counter()
        self._outcome: dict[tuple[str, int], HistoryEvent] = {}
        self._cancelled: dict[tuple[str, int], HistoryEvent] = {}

    def check(self) -> Iterator[Violation]:
        for event in self._history:
            body: Any = event.body
            match body:
                case e.TaskScheduled():
                    yield from self._make("task", body.task_no, event)
                case e.TimerStarted():
                    self._due[body.timer_no] = body.fire_at
                    yield from self._make("timer", body.timer_no, event)
                case e.TaskCompleted() | e.TaskFailed():
                    yield from self._settle("task", body.task_no, event, "I10")
                case e.TimerFired():
                    yield from self._fire(body.timer_no, event)
                case e.TaskCancelRequested():
                    yield from self._cancel("task", body.task_no, event)
                case e.TimerCancelled():
                    yield from self._cancel("timer", body.timer_no, event)
                case e.StepCompleted() | e.StepFailed():
                    yield from self._step(body.step_no, event)

    def _make(self, kind: str, number: int, event: HistoryEvent) -> Iterator[Violation]:
        self._made[kind] += 1
        if number != self._made[kind]:
            yield self._violation(
                "I10", event, f"{kind} {number} was asked for where {kind} {self._made[kind]} belongs"
            )

    def _settle(self, kind: str, number: int, event: HistoryEvent, twice: str) -> Iterator[Violation]:
        key = (kind, number)
        if not 1 <= number <= self._made[kind]:
            yield self._violation("I10", event, f"outcome of {kind} {number}, which was never asked for")
        if key in self._outcome:
            yield self._violation(twice, event, f"{kind} {number} had its outcome at {self._outcome[key].seq}")
        if key in self._cancelled:
            yield self._violation(twice, event, f"{kind} {number} was cancelled at {self._cancelled[key].seq}")
        self._outcome.setdefault(key, event)

    def _fire(self, number: int, event: HistoryEvent) -> Iterator[Violation]:
        yield from self._settle("timer", number, event, "I13")
        early_us = self._due.get(number, event.at) - event.at
        if early_us > 0:
            yield self._violation("I13", event, f"timer {number} fired {early_us} µs before it was due")

    def _cancel(self, kind: str, number: int, event: HistoryEvent) -> Iterator[Violation]:
        # Cancelling what has just had its outcome is no violation: the turn had not seen it yet.
        if not 1 <= number <= self._made[kind]:
            yield self._violation("I10", event, f"{kind} {number} is cancelled and was never asked for")
        if (kind, number) in self._cancelled:
            yield self._violation("I10", event, f"{kind} {number} is cancelled twice")
        self._cancelled.setdefault((kind, number), event)

    def _step(self, number: int, event: HistoryEvent) -> Iterator[Violation]:
        """A step is known by its outcome alone; steps that run side by side finish in any order."""
        if ("step", number) in self._outcome:
            yield self._violation("I10", event, f"step {number} was recorded at {self._outcome['step', number].seq}")
        self._outcome.setdefault(("step", number), event)

    def _violation(self, invariant: str, event: HistoryEvent, text: str) -> Violation:
        return Violation(invariant, self._id, event.seq, text)


# --- rows ---------------------------------------------------------------------------------------------------------


def _rest(record: Record, tasks: Sequence[TaskRow], timers: Sequence[TimerRow]) -> Iterator[Violation]:
    """An open execution that nobody runs and nobody is asked to run must have a reason to be still."""
    head = record.head
    if head.state is State.STUCK and head.stuck is None:
        yield Violation("I16", head.id, 0, "stuck without a reason")
    if head.ready is not None:
        return
    seen = max((event.body.up_to for event in record.history if isinstance(event.body, e.TurnEvent)), default=0)
    for event in record.history:
        if event.seq > seen and isinstance(event.body, _NEWS):
            yield Violation("I16", head.id, event.seq, f"{event.type} has been seen by no turn, and no turn is due")
            break
    if not head.waiting_for:
        yield Violation("I16", head.id, 0, "at rest, but waits for nothing")
    there = {("task", row.task_no) for row in tasks} | {("timer", row.timer_no) for row in timers}
    for wait in head.waiting_for:
        if wait.kind == "step":
            yield Violation("I16", head.id, 0, f"waits for step {wait.number}, which nobody runs")
        if wait.kind in {"task", "timer"} and (wait.kind, wait.number) not in there:
            yield Violation("I16", head.id, 0, f"waits for {wait.kind} {wait.number}, which has no row")


def _leftovers(record: Record) -> Iterator[Violation]:
    head = record.head
    if head.ready is not None:
        yield Violation("I19", head.id, 0, "closed, but has a ready row")
    for task in record.tasks or ():
        yield Violation("I19", head.id, 0, f"closed, but task {task.task_no} is still there")
    for timer in record.timers or ():
        yield Violation("I19", head.id, 0, f"closed, but timer {timer.timer_no} is still there")


# --- executions among each other ----------------------------------------------------------------------------------


def _among(records: Sequence[Record]) -> Iterator[Violation]:
    yield from _open_twice(records)
    yield from _repeated("I03", "started", _requests(records, e.WorkflowStarted))
    yield from _repeated("I07", "brought a signal", _requests(records, e.SignalReceived))


def _open_twice(records: Sequence[Record]) -> Iterator[Violation]:
    found: dict[tuple[str, str], str] = {}
    for head in (record.head for record in records if record.head.is_open):
        first = found.setdefault((head.org, head.workflow_id), head.id)
        if first != head.id:
            yield Violation("I17", head.id, 0, f"workflow id {head.workflow_id!r} has another open execution: {first}")


Requests = Mapping[tuple[str, str], Sequence[tuple[str, int]]]


def _requests(records: Sequence[Record], kind: type[e.WorkflowStarted | e.SignalReceived]) -> Requests:
    """Where each request id of an org is found: execution and number."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for record in records:
        for event in record.history:
            if isinstance(event.body, kind) and event.body.request_id is not None:
                found.setdefault((record.head.org, event.body.request_id), []).append((record.head.id, event.seq))
    return found


def _repeated(invariant: str, effect: str, requests: Requests) -> Iterator[Violation]:
    for (_, request_id), places in requests.items():
        for execution_id, seq in places[1:]:
            first = f"{places[0][0]} #{places[0][1]}"
            yield Violation(invariant, execution_id, seq, f"request {request_id!r} has also {effect} at {first}")
