"""What comes from outside and is no signal: promises, events, messages, broadcasts, and the rows that wait for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from holdfast.model.messages import PromiseRow, PromiseState, SubscriptionRow
from verification.invariants.records import Record, Violation, own_reset

_STATES: Final[dict[type[e.EventBody], PromiseState]] = {
    e.PromiseResolved: PromiseState.RESOLVED,
    e.PromiseRejected: PromiseState.REJECTED,
    e.PromiseTimedOut: PromiseState.TIMED_OUT,
}
_SETTLED: Final = (e.PromiseResolved, e.PromiseRejected, e.PromiseTimedOut)
_PROMISES: Final = frozenset({e.PromiseCreated, e.PromiseCancelled, *_SETTLED})


def check_outside(record: Record) -> Iterator[Violation]:
    if e.BroadcastReceived in record.kinds:
        yield from _order(record)
    if e.PromiseTimedOut in record.kinds:
        yield from _deadlines(record)
    if record.waits is not None:
        yield from _counted(record, record.waits)
        yield from _asked_for(record, record.waits)
    if record.promises is not None and (record.promises or not _PROMISES.isdisjoint(record.kinds)):
        yield from _promises(record, record.promises)


def check_messages(records: Sequence[Record]) -> Iterator[Violation]:
    """A message is for one alone. What a reset has copied or carried over was received by another one before."""
    receiver: dict[int, str] = {}
    for record in records:
        if e.EventReceived not in record.kinds or own_reset(record) is not None:
            continue
        for event in record.history:
            if isinstance(event.body, e.EventReceived) and event.body.correlation is not None:
                first = receiver.setdefault(event.body.event_id, record.execution_row.id)
                if first != record.execution_row.id:
                    text = f"message {event.body.event_id} was received by {first} as well"
                    yield Violation("I21", record.execution_row.id, event.seq, text)


def _order(record: Record) -> Iterator[Violation]:
    """Broadcasts of one name reach an execution in the order in which they were thrown."""
    last: dict[str, int] = {}
    for event in record.history:
        if isinstance(event.body, e.BroadcastReceived):
            before = last.get(event.body.name, 0)
            if event.body.broadcast_id < before:
                text = f"broadcast {event.body.broadcast_id} of {event.body.name!r} came after {before}"
                yield Violation("I21", record.execution_row.id, event.seq, text)
            last[event.body.name] = max(before, event.body.broadcast_id)


def _deadlines(record: Record) -> Iterator[Violation]:
    expires: dict[int, int | None] = {}
    for event in record.history:
        body = event.body
        if isinstance(body, e.PromiseCreated):
            expires[body.promise_no] = body.expires_at
        elif isinstance(body, e.PromiseTimedOut):
            at = expires.get(body.promise_no)
            if at is None:
                text = f"promise {body.promise_no} timed out, and has no time-out"
                yield Violation("I13", record.execution_row.id, event.seq, text)
            elif event.at < at:
                text = f"promise {body.promise_no} timed out {at - event.at} µs too early"
                yield Violation("I13", record.execution_row.id, event.seq, text)


def _counted(record: Record, waits: Sequence[SubscriptionRow]) -> Iterator[Violation]:
    execution_row = record.execution_row
    if execution_row.open_waits != len(waits):
        text = f"the head has counted {execution_row.open_waits} subscriptions, there are {len(waits)}"
        yield Violation("I20", execution_row.id, 0, text)


def _asked_for(record: Record, waits: Sequence[SubscriptionRow]) -> Iterator[Violation]:
    """Each subscription belongs to a wait, or to a promise with an event key, that is not over."""
    open_waits: dict[int, HistoryEvent] = {}
    for event in record.history if waits else ():
        match event.body:
            case e.WaitStarted():
                open_waits[event.body.wait_no] = event
            case e.PromiseCreated() if event.body.event_key is not None:
                open_waits[-event.body.promise_no] = event
            case e.EventReceived() | e.BroadcastReceived() | e.WaitCancelled():
                open_waits.pop(event.body.wait_no, None)
            case e.PromiseResolved() | e.PromiseRejected() | e.PromiseTimedOut() | e.PromiseCancelled():
                open_waits.pop(-event.body.promise_no, None)
    for wait in waits:
        if wait.wait_no not in open_waits:
            what = f"wait {wait.wait_no}" if wait.wait_no > 0 else f"promise {-wait.wait_no}"
            yield Violation(
                "I20", record.execution_row.id, 0, f"a subscription to {wait.key!r}, but {what} is not open"
            )


def _settled_before(row: PromiseRow, at: int) -> bool:
    given = row.state in {PromiseState.RESOLVED, PromiseState.REJECTED}
    return given and row.settled_at is not None and row.settled_at <= at


def _promises(record: Record, rows: Sequence[PromiseRow]) -> Iterator[Violation]:
    """The row says what the history says. One that was settled early has no event until its workflow makes it, nor if
    that turn gives it up again."""
    made: dict[int, tuple[str, PromiseState]] = {}
    made_at: dict[int, int] = {}
    shapes: dict[int, bytes] = {}
    for event in record.history:
        body = event.body
        if isinstance(body, e.PromiseCreated):
            made[body.promise_no] = (body.name, PromiseState.PENDING)
            made_at[body.promise_no] = event.at
            shapes[body.promise_no] = bytes(body.shape)
        elif isinstance(body, _SETTLED):
            made[body.promise_no] = (body.name, _STATES[type(body)])
        elif isinstance(body, e.PromiseCancelled) and made.get(body.promise_no) == (body.name, PromiseState.PENDING):
            made[body.promise_no] = (body.name, PromiseState.CANCELLED)
    found = {row.promise_no: row for row in rows if row.promise_no}
    for number, row in found.items():
        if number not in made:
            yield Violation("I22", record.execution_row.id, 0, f"promise {number} has a row, and was never made")
        elif made[number] == (row.name, PromiseState.CANCELLED) and _settled_before(row, made_at[number]):
            continue
        elif made[number] != (row.name, row.state):
            name, state = made[number]
            text = f"promise {number} is {name!r}, {state} in the history; its row says {row.name!r}, {row.state}"
            yield Violation("I22", record.execution_row.id, 0, text)
        elif shapes[number] != bytes(row.shape):
            text = f"promise {number} takes {shapes[number]!r} in the history; its row says {bytes(row.shape)!r}"
            yield Violation("I22", record.execution_row.id, 0, text)
    if record.execution_row.is_open:
        for number in made.keys() - found.keys():
            yield Violation("I22", record.execution_row.id, 0, f"promise {number} has no row")
