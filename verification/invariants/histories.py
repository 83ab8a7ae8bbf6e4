"""One history and its head: numbers, beginning, end, times, counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.model import events as e
from holdfast.model.executions import State
from verification.invariants.records import Record, Violation, own_reset

_ENDS: Final[dict[type[e.EventBody], State]] = {
    e.WorkflowCompleted: State.COMPLETED,
    e.WorkflowFailed: State.FAILED,
    e.WorkflowCancelled: State.CANCELLED,
    e.WorkflowTerminated: State.TERMINATED,
    e.WorkflowTimedOut: State.TIMED_OUT,
    e.WorkflowContinued: State.CONTINUED,
}


def check_history(record: Record) -> Iterator[Violation]:
    yield from _numbers(record)
    yield from _beginning(record)
    yield from _ending(record)
    yield from _times(record)
    yield from _signals(record)
    if e.SignalReceived in record.kinds:
        yield from _requests(record)
    yield from _deadline(record)
    yield from _successor(record)


def _numbers(record: Record) -> Iterator[Violation]:
    execution_row = record.execution_row
    for expected, event in enumerate(record.history, start=1):
        if event.seq != expected:
            yield Violation("I01", execution_row.id, event.seq, f"number {event.seq} stands where {expected} belongs")
            return
    if execution_row.last_seq != len(record.history):
        text = f"the head says {execution_row.last_seq} events, the history has {len(record.history)}"
        yield Violation("I01", execution_row.id, execution_row.last_seq, text)


def _beginning(record: Record) -> Iterator[Violation]:
    if not record.history or type(record.history[0].body) is not e.WorkflowStarted:
        first = record.history[0].type if record.history else "nothing"
        yield Violation("I03", record.execution_row.id, 1, f"the history begins with {first}")
    for event in record.history[1:]:
        if type(event.body) is e.WorkflowStarted:
            yield Violation("I03", record.execution_row.id, event.seq, "started once more")


def _ending(record: Record) -> Iterator[Violation]:
    execution_row = record.execution_row
    ends = [event for event in record.history if event.body.TERMINAL]
    for event in ends[1:]:
        yield Violation("I04", execution_row.id, event.seq, f"{event.type} although it had ended with {ends[0].type}")
    if ends and ends[-1] is not record.history[-1]:
        text = f"{record.history[-1].type} follows the end"
        yield Violation("I04", execution_row.id, record.history[-1].seq, text)
    if not ends and not execution_row.is_open:
        yield Violation("I04", execution_row.id, 0, f"the head says {execution_row.state}, the history has no end")
    if ends and execution_row.state is not _ENDS[type(ends[-1].body)]:
        yield Violation(
            "I04", execution_row.id, ends[-1].seq, f"the head says {execution_row.state}, the history {ends[-1].type}"
        )


def _times(record: Record) -> Iterator[Violation]:
    for earlier, later in zip(record.history, record.history[1:], strict=False):
        if later.at < earlier.at:
            yield Violation(
                "I05", record.execution_row.id, later.seq, f"{earlier.at - later.at} µs before the event it follows"
            )


def _signals(record: Record) -> Iterator[Violation]:
    count = sum(type(event.body) is e.SignalReceived for event in record.history)
    if count != record.execution_row.signal_count:
        text = f"the head has counted {record.execution_row.signal_count} signals, the history has {count}"
        yield Violation("I09", record.execution_row.id, 0, text)


def _requests(record: Record) -> Iterator[Violation]:
    """Within one history a request id stands once, carried and copied signals included."""
    first: dict[str, int] = {}
    for event in record.history:
        if isinstance(event.body, e.SignalReceived) and event.body.request_id is not None:
            seq = first.setdefault(event.body.request_id, event.seq)
            if seq != event.seq:
                text = f"request {event.body.request_id!r} has also brought the signal at {seq}"
                yield Violation("I07", record.execution_row.id, event.seq, text)


def _deadline(record: Record) -> Iterator[Violation]:
    """A reset gives an execution another deadline than its first event says."""
    if not record.history:
        return
    last, started = record.history[-1], record.history[0].body
    if not isinstance(last.body, e.WorkflowTimedOut):
        return
    if last.at < last.body.expires_at:
        text = f"timed out {last.body.expires_at - last.at} µs before its time was over"
        yield Violation("I13", record.execution_row.id, last.seq, text)
    given = started.expires_at if isinstance(started, e.WorkflowStarted) else None
    if own_reset(record) is None and given != last.body.expires_at:
        text = f"timed out at {last.body.expires_at}, but was given until {given}"
        yield Violation("I13", record.execution_row.id, last.seq, text)


def _successor(record: Record) -> Iterator[Violation]:
    """The head names the one who goes on as its last event does. A closed execution may be reset later."""
    if not record.history:
        return
    execution_row, last = record.execution_row, record.history[-1]
    match last.body:
        case e.WorkflowContinued(new_execution_id=named) | e.WorkflowTerminated(successor=str(named)):
            if execution_row.successor is None or (
                isinstance(last.body, e.WorkflowContinued) and execution_row.successor != named
            ):
                yield Violation(
                    "I04", execution_row.id, last.seq, f"goes on as {named}; the head says {execution_row.successor}"
                )
    if execution_row.is_open and execution_row.successor is not None:
        yield Violation("I04", execution_row.id, 0, f"open, but {execution_row.successor} goes on in its place")
