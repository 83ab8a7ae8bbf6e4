"""Parents and children: what each history says of the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from holdfast.model.values import IfRunning, ParentClose
from verification.invariants.records import Record, Violation, own_reset

Records = Mapping[str, Record]

_STATUS: Final[dict[type[e.EventBody], str]] = {
    e.WorkflowFailed: "failed",
    e.WorkflowCancelled: "cancelled",
    e.WorkflowTerminated: "terminated",
    e.WorkflowTimedOut: "timed_out",
}
_ENDS: Final = (e.ChildCompleted, e.ChildFailed)


def check_families(records: Sequence[Record], by_id: Records, *, at_rest: bool) -> Iterator[Violation]:
    open_children = {
        (record.execution_row.parent_id, record.execution_row.child_no): record
        for record in records
        if record.execution_row.is_open
    }
    bound = Counter(
        record.execution_row.parent_id
        for record in records
        if record.execution_row.is_open and record.execution_row.on_parent_close not in (None, ParentClose.ABANDON)
    )
    for record in records:
        yield from _parent_of(record, by_id)
        if not record.kinds.isdisjoint(_ENDS):
            yield from _outcomes(record, by_id)
        yield from _unheard(record, by_id)
        yield from _counted(record, bound[record.execution_row.id], at_rest=at_rest)
        yield from _parent_close(record, by_id, at_rest=at_rest)
        for wait in (
            record.execution_row.waiting_for
            if record.execution_row.ready is None and record.execution_row.is_open
            else ()
        ):
            if wait.kind == "child" and (record.execution_row.id, wait.number) not in open_children:
                yield Violation("I16", record.execution_row.id, 0, f"waits for child {wait.number}, which is not there")


def _parent_of(child: Record, by_id: Records) -> Iterator[Violation]:
    """Its parent's history knows the child, by its number and by the id of its first run, unless it was adopted."""
    execution_row = child.execution_row
    parent = by_id.get(execution_row.parent_id or "")
    if parent is None:
        return
    started = _started(parent).get(execution_row.child_no)
    if started is None:
        text = f"is child {execution_row.child_no} of {parent.execution_row.id}, whose history does not know it"
        yield Violation("I15", execution_row.id, 0, text)
        return
    first = _first_run(child, by_id)
    if first is not None and first != started.child_execution_id and started.if_running != IfRunning.USE_EXISTING:
        other = started.child_execution_id
        text = f"is child {execution_row.child_no} of {parent.execution_row.id}, which has started {other} as that"
        yield Violation("I15", execution_row.id, 0, text)


def _started(parent: Record) -> dict[int, e.ChildStarted]:
    return {event.body.child_no: event.body for event in parent.history if isinstance(event.body, e.ChildStarted)}


def _first_run(record: Record, by_id: Records) -> str | None:
    """The run with which a chain of continue-as-new and resets has begun; None if part of the chain is not there."""
    while True:
        reset = own_reset(record)
        if reset is not None and isinstance(reset.body, e.WorkflowReset):
            before: str | None = reset.body.from_execution_id
        else:
            started = record.history[0].body if record.history else None
            before = started.continued_from if isinstance(started, e.WorkflowStarted) else None
        if before is None:
            return record.execution_row.id
        if before not in by_id:
            return None
        record = by_id[before]


def _outcomes(parent: Record, by_id: Records) -> Iterator[Violation]:
    """What a parent was told of a child's end is how the child ended."""
    started = _started(parent)
    for event in parent.history:
        body = event.body
        if not isinstance(body, _ENDS) or body.child_no not in started:
            continue
        child = by_id.get(body.child_execution_id)
        if isinstance(body, e.ChildFailed) and body.status == "not_started":
            if (
                child is not None
                and child.execution_row.parent_id == parent.execution_row.id
                and child.execution_row.child_no == body.child_no
            ):
                text = f"child {body.child_no} has not started, but {child.execution_row.id} is there"
                yield Violation("I15", parent.execution_row.id, event.seq, text)
        elif child is not None and not _agrees(body, child.history[-1] if child.history else None):
            text = f"child {body.child_no} is told to have ended otherwise than {child.execution_row.id} did"
            yield Violation("I15", parent.execution_row.id, event.seq, text)


def _agrees(told: e.ChildCompleted | e.ChildFailed, end: HistoryEvent | None) -> bool:
    body = end.body if end is not None else None
    if isinstance(told, e.ChildCompleted):
        return isinstance(body, e.WorkflowCompleted) and bytes(body.result) == bytes(told.result)
    return body is not None and _STATUS.get(type(body)) == told.status


def _unheard(child: Record, by_id: Records) -> Iterator[Violation]:
    """An open parent has heard of every child that has ended. One that goes on as another run has not."""
    execution_row = child.execution_row
    parent = by_id.get(execution_row.parent_id or "")
    if execution_row.is_open or parent is None or not parent.execution_row.is_open or not child.history:
        return
    end = child.history[-1].body
    if isinstance(end, e.WorkflowContinued) or (isinstance(end, e.WorkflowTerminated) and end.successor is not None):
        return
    told = [
        event
        for event in parent.history
        if isinstance(event.body, _ENDS) and event.body.child_no == execution_row.child_no
    ]
    if not told:
        text = f"has ended, and its parent {parent.execution_row.id} was not told (child {execution_row.child_no})"
        yield Violation("I15", execution_row.id, child.history[-1].seq, text)


def _counted(parent: Record, bound: int, *, at_rest: bool) -> Iterator[Violation]:
    execution_row = parent.execution_row
    if execution_row.open_children != bound:
        text = f"the head has counted {execution_row.open_children} children that hang on it, there are {bound}"
        yield Violation("I15", execution_row.id, 0, text)
    elif at_rest and not execution_row.is_open and execution_row.open_children:
        yield Violation(
            "I15", execution_row.id, 0, f"closed, but {execution_row.open_children} children still hang on it"
        )


def check_parent_close(records: Sequence[Record]) -> list[Violation]:
    """Children whose parents have closed, once all is at rest: what was to become of them has."""
    by_id = {record.execution_row.id: record for record in records}
    return [violation for record in records for violation in _parent_close(record, by_id, at_rest=True)]


def _parent_close(child: Record, by_id: Records, *, at_rest: bool) -> Iterator[Violation]:
    """What has become of a child when its parent closed is what its parent had asked for: no more, and (`at_rest`, if
    the child has not ended by itself) no less. One that its parent has cancelled is left alone afterwards, and so is
    one that was adopted."""
    execution_row = child.execution_row
    parent = by_id.get(execution_row.parent_id or "")
    if parent is None:
        return
    started = _started(parent).get(execution_row.child_no)
    if started is None or started.if_running == IfRunning.USE_EXISTING:
        return
    asked = _asked_for(started, parent)
    for event in child.history:
        done = _BY_PARENT.get(type(event.body))
        if done is None or not getattr(event.body, "reason", "").startswith("its parent "):
            continue
        # It may have been done before another one took the child over, with its parent's past.
        if done not in {asked, *(_asked_for(started, before) for before in _before(parent, by_id))}:
            text = f"when its parent closed: {done}, but {asked} was asked for ({started.on_parent_close})"
            yield Violation("I15", execution_row.id, event.seq, text)
    if (
        not at_rest
        or parent.execution_row.is_open
        or not execution_row.is_open
        or _was_cancelled(parent, execution_row.child_no)
    ):
        return
    if execution_row.on_parent_close != ParentClose.ABANDON:
        return  # not decided yet, which the parent's count tells
    # One that was cancelled may have been reset to before that: whoever did so wanted it.
    told = any(e.CancelRequested in record.kinds for record in (child, *_before(child, by_id)))
    if asked is ParentClose.TERMINATE or (asked is ParentClose.CANCEL and not told):
        text = f"open, but {asked} was asked for when its parent closed ({started.on_parent_close})"
        yield Violation("I15", execution_row.id, 0, text)


def _before(record: Record, by_id: Records) -> Iterator[Record]:
    """Those whose past it has, the nearest first."""
    while (reset := own_reset(record)) is not None:
        assert isinstance(reset.body, e.WorkflowReset), "found by type"
        if reset.body.from_execution_id not in by_id:
            return
        record = by_id[reset.body.from_execution_id]
        yield record


_BY_PARENT: Final[dict[type[e.EventBody], ParentClose]] = {
    e.WorkflowTerminated: ParentClose.TERMINATE,
    e.CancelRequested: ParentClose.CANCEL,
}


def _asked_for(started: e.ChildStarted, parent: Record) -> ParentClose:
    policy = ParentClose(started.on_parent_close)
    if policy is not ParentClose.DEFAULT:
        return policy
    end = parent.history[-1].body if parent.history else None
    went_well = isinstance(end, e.WorkflowCompleted | e.WorkflowContinued)
    return ParentClose.ABANDON if went_well else ParentClose.CANCEL


def _was_cancelled(parent: Record, child_no: int | None) -> bool:
    return any(
        isinstance(event.body, e.ChildCancelRequested) and event.body.child_no == child_no for event in parent.history
    )
