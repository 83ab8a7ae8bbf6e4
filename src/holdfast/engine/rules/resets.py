"""A past taken over: from the first N events of a history to the head, rows and events of a new execution.

A turn is there whole or not at all: its rows carry the same `up_to`, and replay compares all of them with what the
program asks for. So a history can be cut only where no turn's rows lie on both sides. Finished steps are events of
their own: one that is cut off is simply run again, as a task without outcome is put on its queue again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from holdfast.engine.rules import children, messages, promises, tasks
from holdfast.engine.rules.commands import carry
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.starts import start_later
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import Conflict, ExecutionOpen, InvalidResetPoint
from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Execution, TimerRow
from holdfast.model.values import IfRunning, ParentClose

Events = Sequence[HistoryEvent]

_CALLS = (e.SignalReceived, e.UpdateRequested, e.CancelRequested)
_STEPS = (e.StepCompleted, e.StepFailed)
_FAILED = (e.StepFailed, e.TaskFailed, e.ChildFailed)
_OPENED: dict[type[Any], str] = {
    e.TaskScheduled: "task",
    e.TimerStarted: "timer",
    e.ChildStarted: "child",
    e.ExternalSignalInitiated: "signal",
    e.WaitStarted: "wait",
}
_SETTLED: dict[type[Any], str] = {
    e.TaskCompleted: "task",
    e.TaskFailed: "task",
    e.TaskCancelRequested: "task",
    e.TimerFired: "timer",
    e.TimerCancelled: "timer",
    e.ChildCompleted: "child",
    e.ChildFailed: "child",
    e.ExternalSignalDelivered: "signal",
    e.ExternalSignalFailed: "signal",
    e.EventReceived: "wait",
    e.BroadcastReceived: "wait",
    e.WaitCancelled: "wait",
}
_GIVEN = (e.PromiseResolved, e.PromiseRejected)
_PROMISE_ENDS = (*_GIVEN, e.PromiseTimedOut, e.PromiseCancelled)


# --- where a history can be cut -----------------------------------------------------------------------------------


class Span(msgspec.Struct, frozen=True):
    """The rows of one turn: it has seen everything up to `up_to` and wrote from `first` to `last`."""

    up_to: int
    first: int
    last: int


def spans(history: Events) -> list[Span]:
    """The rows of every turn, finished steps aside, in order."""
    found: dict[int, Span] = {}
    for event in history:
        body = event.body
        if isinstance(body, e.TurnEvent) and not isinstance(body, _STEPS):
            first = found[body.up_to].first if body.up_to in found else event.seq
            found[body.up_to] = Span(body.up_to, first, event.seq)
    return list(found.values())


def last_point(history: Events) -> int:
    """The last event one may go back to: the end itself can't be kept."""
    return len(history) - 1 if history[-1].body.TERMINAL else len(history)


def check_point(history: Events, seq: int, field: str) -> None:
    """Refuse an event after which no turn ends, and say where one does."""
    last = last_point(history)
    if type(seq) is not int or not 1 <= seq <= last:
        end = f", which is followed by its end ({history[-1].type})" if last < len(history) else ""
        raise InvalidResetPoint(
            f"{field} must be the number of an event from 1 to {last}{end}, not {seq!r:.50}",
            field=field,
            first_valid=1,
            last_valid=last,
        )
    cut = next((span for span in spans(history) if span.first <= seq < span.last), None)
    if cut is None:
        return
    before, after = cut.first - 1, cut.last if cut.last <= last else None
    nearest = f"{before} or {after}" if after is not None else f"{before}"
    raise InvalidResetPoint(
        f"{field} {seq} lies inside a turn, whose rows go from {cut.first} to {cut.last}: the nearest events where one "
        f"ends are {nearest}",
        field=field,
        turn_first=cut.first,
        turn_last=cut.last,
        before=before,
        after=after,
    )


def points(history: Events) -> list[int]:
    """Every event one may go back to."""
    inside = {seq for span in spans(history) for seq in range(span.first, span.last)}
    return [seq for seq in range(1, last_point(history) + 1) if seq not in inside]


def retry_point(history: Events, execution: Execution) -> int:
    """The event to go back to so that what ended the execution is tried again."""
    if execution.is_open:
        raise ExecutionOpen(
            f"execution {execution.id} is still open ({execution.status}): a task or turn that fails is tried again by "
            "itself; reset takes an open execution back",
            execution_id=execution.id,
            status=execution.status.value,
        )
    end = history[-1].body
    match end:
        case e.WorkflowFailed():
            return _before_failure(history, end.up_to)
        case e.WorkflowCancelled():
            asked = [event.seq for event in history if isinstance(event.body, e.CancelRequested)]
            return _point_before(history, (asked[0] if asked else len(history)) - 1)
        case e.WorkflowTerminated() | e.WorkflowTimedOut():
            return last_point(history)
    raise Conflict(
        f"execution {execution.id} is {execution.status}: there is nothing to retry; reset takes it back to an event, "
        "fork begins another one there",
        execution_id=execution.id,
        status=execution.status.value,
    )


def _before_failure(history: Events, up_to: int) -> int:
    """Before the failed work that the closing turn was told of, if any, else before that turn."""
    seen = max(
        (event.body.up_to for event in history if isinstance(event.body, e.TurnEvent) and event.body.up_to < up_to),
        default=0,
    )
    for event in history[seen:up_to]:
        body = event.body
        if isinstance(body, e.ChildFailed):
            # Its outcome stands. To get another one, another child must be started.
            return _before_child(history, body.child_no)
        if isinstance(body, _FAILED):
            return _point_before(history, event.seq - 1)
    return next(span.first for span in spans(history) if span.up_to == up_to) - 1


def _before_child(history: Events, child_no: int) -> int:
    started = next(
        event.seq for event in history if isinstance(event.body, e.ChildStarted) and event.body.child_no == child_no
    )
    return _point_before(history, started - 1)


def _point_before(history: Events, seq: int) -> int:
    return max(point for point in points(history) if point <= max(seq, 1))


# --- what a past leaves behind ------------------------------------------------------------------------------------


class Prefix(msgspec.Struct, frozen=True, kw_only=True):
    """The first events of a history, and what is still open after them, by number."""

    events: tuple[HistoryEvent, ...]
    started: e.WorkflowStarted
    seen_seq: int
    call_seq: int
    signal_count: int
    cancel_requested: bool
    metadata: dict[str, str] | None
    tasks: dict[int, e.TaskScheduled]
    timers: dict[int, e.TimerStarted]
    children: dict[int, e.ChildStarted]
    signals: dict[int, e.ExternalSignalInitiated]
    waits: dict[int, e.WaitStarted]
    promises: dict[int, e.PromiseCreated]
    """All of them: those that are settled are remembered as such."""
    settled: dict[int, e.EventBody]
    """How promises have ended: one that its program has cancelled without knowing that it was settled is settled."""


def prefix_of(history: Events, seq: int) -> Prefix:
    kept = tuple(history[:seq])
    started = kept[0].body
    assert isinstance(started, e.WorkflowStarted), "a history begins with its start"
    opened: dict[str, dict[int, Any]] = {"task": {}, "timer": {}, "child": {}, "signal": {}, "wait": {}}
    for event in kept:
        body = event.body
        if type(body) in _OPENED:
            kind = _OPENED[type(body)]
            opened[kind][_number(kind, body)] = body
        elif type(body) in _SETTLED:
            kind = _SETTLED[type(body)]
            opened[kind].pop(_number(kind, body), None)
    return Prefix(
        events=kept,
        started=started,
        seen_seq=max((event.body.up_to for event in kept if isinstance(event.body, e.TurnEvent)), default=0),
        call_seq=max((event.seq for event in kept if isinstance(event.body, _CALLS)), default=0),
        signal_count=sum(isinstance(event.body, e.SignalReceived) for event in kept),
        cancel_requested=any(isinstance(event.body, e.CancelRequested) for event in kept),
        metadata=_metadata(started, kept),
        tasks=opened["task"],
        timers=opened["timer"],
        children=opened["child"],
        signals=opened["signal"],
        waits=opened["wait"],
        promises={event.body.promise_no: event.body for event in kept if isinstance(event.body, e.PromiseCreated)},
        # The first end counts, so it comes last.
        settled={event.body.promise_no: event.body for event in kept[::-1] if isinstance(event.body, _PROMISE_ENDS)},
    )


def _number(kind: str, body: Any) -> int:
    number: int = getattr(body, f"{kind}_no")
    return number


def _metadata(started: e.WorkflowStarted, kept: Events) -> dict[str, str] | None:
    metadata = started.metadata
    for event in kept:
        if isinstance(event.body, e.MetadataChanged):
            changed = event.body
            metadata = {key: value for key, value in (metadata or {}).items() if key not in changed.removed}
            metadata |= changed.values
    return metadata


def answers(prefix: Prefix, tail: Events) -> list[HistoryEvent]:
    """What has come since of children and of signals to others: these are not started or sent again."""
    return [
        event
        for event in tail
        if (isinstance(event.body, e.ChildCompleted | e.ChildFailed) and event.body.child_no in prefix.children)
        or (
            isinstance(event.body, e.ExternalSignalDelivered | e.ExternalSignalFailed)
            and event.body.signal_no in prefix.signals
        )
    ]


def calls(tail: Events) -> list[HistoryEvent]:
    """Signals and updates that came later. An update that was refused has changed nothing, and stays refused."""
    refused = {event.body.update_id for event in tail if isinstance(event.body, e.UpdateRejected)}
    return [
        event
        for event in tail
        if isinstance(event.body, e.SignalReceived)
        or (isinstance(event.body, e.UpdateRequested) and event.body.update_id not in refused)
    ]


def undecided(tail: Events) -> bool:
    """Whether there are updates of which nobody knows yet whether they are refused."""
    known = {event.body.update_id for event in tail if isinstance(event.body, e.UpdateRejected | e.UpdateAccepted)}
    return any(isinstance(event.body, e.UpdateRequested) and event.body.update_id not in known for event in tail)


def given(prefix: Prefix, tail: Events) -> list[HistoryEvent]:
    """What came later for promises and waits that the past had open: settlements, events, broadcasts. A time-out is not
    among them: its timer runs again."""
    return [
        event
        for event in tail
        if (
            isinstance(event.body, _GIVEN)
            and event.body.promise_no in prefix.promises
            and event.body.promise_no not in prefix.settled
        )
        or (isinstance(event.body, e.EventReceived | e.BroadcastReceived) and event.body.wait_no in prefix.waits)
    ]


def unsettled_children(prefix: Prefix, tail: Events) -> dict[int, e.ChildStarted]:
    """Children of the past whose end the history does not tell."""
    told = {event.body.child_no for event in tail if isinstance(event.body, e.ChildCompleted | e.ChildFailed)}
    return {number: child for number, child in prefix.children.items() if number not in told}


# --- the new execution --------------------------------------------------------------------------------------------


def with_tokens(prefix: Prefix, token_hash: Callable[[str], str]) -> Prefix:
    """The past of another execution: its promises have the same names, but tokens of their own."""
    if not prefix.promises:
        return prefix
    events = tuple(
        HistoryEvent(event.seq, event.at, msgspec.structs.replace(event.body, token_hash=token_hash(event.body.name)))
        if isinstance(event.body, e.PromiseCreated)
        else event
        for event in prefix.events
    )
    made = {event.body.promise_no: event.body for event in events if isinstance(event.body, e.PromiseCreated)}
    return msgspec.structs.replace(prefix, events=events, promises=made)


def take_over(uow: UnitOfWork, execution: Execution, prefix: Prefix, *, seed: str) -> None:
    """Give a new head the events of the past. They go straight into the history: its worker has to replay them."""
    started = msgspec.structs.replace(prefix.started, request_id=None, seed=prefix.started.seed or seed)
    first = HistoryEvent(1, prefix.events[0].at, started)
    uow.changes.events.extend((execution.id, event) for event in (first, *prefix.events[1:]))
    execution.last_seq = prefix.events[-1].seq
    execution.updated_at = max(uow.now, prefix.events[-1].at)
    execution.seen_seq = prefix.seen_seq
    execution.call_seq = prefix.call_seq
    execution.signal_count = prefix.signal_count
    execution.cancel_requested = prefix.cancel_requested


def continue_from(
    uow: UnitOfWork, execution: Execution, prefix: Prefix, reset: e.WorkflowReset, carried: Sequence[HistoryEvent]
) -> None:
    """What follows the past: why it was taken over, what has come since, and the rows of what is still open."""
    start_at = prefix.started.start_at
    if start_at is not None and start_at > uow.now and not prefix.seen_seq and not prefix.cancel_requested:
        start_later(uow, execution, start_at)
    uow.append(execution, reset)
    for event in carried:
        if isinstance(event.body, e.SignalReceived | e.UpdateRequested):
            carry(uow, execution, event)
        else:
            uow.append(execution, event.body)
    for task in prefix.tasks.values():
        tasks.schedule(uow, execution, task)
    for timer in prefix.timers.values():
        uow.add_timer(
            execution,
            TimerRow(execution_id=execution.id, timer_no=timer.timer_no, org=execution.org, fire_at=timer.fire_at),
        )
    _wait_again(uow, execution, prefix, [event.body for event in carried])
    wake(uow, execution)


def _wait_again(uow: UnitOfWork, execution: Execution, prefix: Prefix, carried: Iterable[e.EventBody]) -> None:
    """Promises with their tokens and time-outs, and whatever else somebody outside may give."""
    settled = dict(prefix.settled)
    waits = dict(prefix.waits)
    for body in carried:
        if isinstance(body, _GIVEN):
            settled[body.promise_no] = body
        elif isinstance(body, e.EventReceived | e.BroadcastReceived):
            waits.pop(body.wait_no)
    for number, made in prefix.promises.items():
        promises.recreate(uow, execution, made, settled.get(number))
        messages.subscribe_promise(uow, execution, made)
    for wait in waits.values():
        messages.subscribe(uow, execution, wait)
    # An event that is kept may have settled one of them at once.
    uow.run_deferred()


def move_child(uow: UnitOfWork, child_no: int, child: Execution, new: Execution, prefix: Prefix) -> None:
    """An open child hangs on another execution from now on, as that one's past has asked for: what the end of the one
    before has made of it does not count any more."""
    policy = _policy(prefix, child_no, child)
    if child.parent_id is not None:
        before = uow.loaded.executions.get(child.parent_id)
        if before is not None:  # one that has closed may have been removed since; nothing hung on it any more
            children.release(uow, before, child)
        uow.loaded.children.pop((child.parent_id, child.child_no), None)
    child.parent_id = new.id
    child.child_no = child_no
    child.on_parent_close = policy
    uow.mark_state_changed(child)
    children.bind(uow, new, child)


def _policy(prefix: Prefix, child_no: int, child: Execution) -> str:
    """One that was adopted, or that was asked to cancel, lives its own life."""
    started = prefix.children[child_no]
    asked = any(
        isinstance(event.body, e.ChildCancelRequested) and event.body.child_no == child_no for event in prefix.events
    )
    if asked or (started.if_running == IfRunning.USE_EXISTING and child.id != started.child_execution_id):
        return child.on_parent_close or ParentClose.ABANDON
    return started.on_parent_close
