"""The checker finds what is wrong with waits, promises, events and broadcasts, and is silent about what is sound."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw, structs

from holdfast.model import events as e
from holdfast.model.executions import State
from holdfast.model.messages import PromiseRow, PromiseState, SubscriptionKind, SubscriptionRow
from holdfast.model.values import Failure, Wait
from tests.verification.test_invariants import ID, record
from verification.invariants import Record, check

STARTED = e.WorkflowStarted(kind="k", workflow_id="w")
WAIT = e.WaitStarted(up_to=1, wait_no=1, kind="broadcast", key="go")
PROMISE = e.PromiseCreated(up_to=1, promise_no=1, name="p", token_hash="h")
RECEIVED = e.BroadcastReceived(wait_no=1, name="go", broadcast_id=7)
COMPLETED = e.WorkflowCompleted(up_to=3)


def a_row(number: int = 1, **fields: Any) -> SubscriptionRow:
    defaults: dict[str, Any] = {"wait_no": 1, "kind": SubscriptionKind.BROADCAST, "key": "go"}
    return SubscriptionRow(id=number, execution_id=ID, org="default", created_at=0, **(defaults | fields))


def a_promise(state: PromiseState = PromiseState.PENDING, **fields: Any) -> PromiseRow:
    defaults: dict[str, Any] = {"promise_no": 1, "name": "p"}
    settled_at = None if state is PromiseState.PENDING else 10_000
    return PromiseRow(
        execution_id=ID, org="default", state=state, created_at=0, settled_at=settled_at, **(defaults | fields)
    )


def at_rest(*bodies: e.EventBody, waits: Any = (), promises: Any = (), waiting_for: Any = ()) -> Record:
    """An open execution that nobody runs, with these rows."""
    turn = e.TurnCompleted(up_to=len(bodies), waiting_for=waiting_for)
    whole = record(*bodies, turn, state=State.OPEN, waiting_for=waiting_for, open_waits=len(waits))
    return structs.replace(whole, tasks=(), timers=(), waits=waits, promises=promises)


def found(*records: Record) -> list[tuple[str, int]]:
    return [(violation.invariant, violation.seq) for violation in check(records)]


def test_a_sound_wait_and_promise():
    """At rest with their rows; and closed, with settled promises kept and no subscription."""
    waiting = (Wait("broadcast", "go", 1), Wait("promise", "p", 1))
    assert [] == check([at_rest(STARTED, WAIT, PROMISE, waits=[a_row()], promises=[a_promise()], waiting_for=waiting)])
    resolved = e.PromiseResolved(promise_no=1, name="p")
    closed = record(STARTED, WAIT, PROMISE, RECEIVED, resolved, e.WorkflowCompleted(up_to=5))
    rows: dict[str, Any] = {"tasks": (), "timers": (), "waits": ()}
    assert [] == check([structs.replace(closed, promises=[a_promise(PromiseState.RESOLVED)], **rows)])


@pytest.mark.parametrize("kind", ["event", "message", "broadcast", "promise"])
def test_waiting_for_a_row_that_is_gone(kind: str):
    """I16: an execution at rest that nobody could ever wake."""
    made = PROMISE if kind == "promise" else structs.replace(WAIT, kind=kind)
    missing = at_rest(STARTED, made, waiting_for=(Wait(kind, "x", 1),))
    assert ("I16", 0) in found(missing)


def test_waiting_for_a_promise_that_is_settled():
    """I16, I22: its row says that it is over, its history does not."""
    waiting = at_rest(
        STARTED, PROMISE, promises=[a_promise(PromiseState.RESOLVED)], waiting_for=(Wait("promise", "p", 1),)
    )
    assert [("I16", 0), ("I22", 0)] == found(waiting)


@pytest.mark.parametrize("body", [RECEIVED, e.EventReceived(wait_no=1, key="go", event_id=3)])
def test_what_came_and_was_seen_by_no_turn(body: e.EventBody):
    """I16: news without a ready row."""
    whole = record(STARTED, WAIT, e.TurnCompleted(up_to=2), body, state=State.OPEN, waiting_for=(Wait("signal", "s"),))
    assert [("I16", 4)] == found(structs.replace(whole, tasks=(), timers=(), waits=(), promises=()))


def test_a_subscription_that_outlives_its_execution():
    """I19, I20: closed, and still subscribed."""
    closed = record(STARTED, WAIT, e.WorkflowCompleted(up_to=2))
    assert ["I19", "I20"] == [name for name, _ in found(structs.replace(closed, tasks=(), timers=(), waits=[a_row()]))]


def test_a_subscription_of_a_wait_that_is_over():
    """I20: it has had its outcome, or was cancelled, or never began."""
    for end in (RECEIVED, e.WaitCancelled(up_to=2, wait_no=1)):
        over = at_rest(STARTED, WAIT, end, waits=[a_row()], waiting_for=(Wait("signal", "s"),))
        assert ("I20", 0) in found(over)
    assert ("I20", 0) in found(at_rest(STARTED, waits=[a_row()], waiting_for=(Wait("signal", "s"),)))


def test_a_head_that_has_miscounted_its_waits():
    """I20."""
    whole = at_rest(STARTED, WAIT, waits=[a_row()], waiting_for=(Wait("broadcast", "go", 1),))
    assert [("I20", 0)] == found(
        structs.replace(whole, execution_row=structs.replace(whole.execution_row, open_waits=2))
    )


@pytest.mark.parametrize(
    "second",
    [
        RECEIVED,
        e.EventReceived(wait_no=1, key="go", event_id=3),
        e.BroadcastReceived(wait_no=2, name="go", broadcast_id=7),
    ],
)
def test_a_wait_has_one_outcome(second: e.EventBody):
    """I10: not two, and none without a wait."""
    assert [("I10", 4)] == found(record(STARTED, WAIT, RECEIVED, second, e.WorkflowCompleted(up_to=4)))


def test_nothing_comes_after_a_cancel():
    """I10; a cancel that crossed the outcome is sound."""
    cancel = e.WaitCancelled(up_to=2, wait_no=1)
    assert [("I10", 4)] == found(record(STARTED, WAIT, cancel, RECEIVED, COMPLETED))
    assert [] == found(record(STARTED, WAIT, RECEIVED, cancel, COMPLETED))


@pytest.mark.parametrize(
    "second",
    [
        e.PromiseResolved(promise_no=1, name="p"),
        e.PromiseRejected(promise_no=1, name="p", failure=Failure(type="E")),
    ],
)
def test_a_promise_is_settled_once(second: e.EventBody):
    """I10."""
    first = e.PromiseResolved(promise_no=1, name="p")
    assert [("I10", 4)] == found(record(STARTED, PROMISE, first, second, e.WorkflowCompleted(up_to=4)))


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (e.PromiseResolved(promise_no=1, name="p"), PromiseState.RESOLVED),
        (e.PromiseRejected(promise_no=1, name="p", failure=Failure(type="E")), PromiseState.REJECTED),
        (e.PromiseCancelled(up_to=2, promise_no=1, name="p"), PromiseState.CANCELLED),
    ],
)
def test_the_row_of_a_promise_agrees_with_the_history(end: e.EventBody, state: PromiseState):
    """I22: for every way it can end."""
    closed = record(STARTED, PROMISE, end, e.WorkflowCompleted(up_to=3))
    for claimed in PromiseState:
        wrong = found(structs.replace(closed, tasks=(), timers=(), waits=(), promises=[a_promise(claimed)]))
        assert ([] if claimed is state else [("I22", 0)]) == wrong


@pytest.mark.parametrize(("settled_at", "violated"), [(1, False), (10**9, True), (None, True)])
def test_a_promise_given_up_at_once_may_have_been_settled_before(settled_at: int | None, violated: bool):
    """I22, I10: before it was made, not later; and its workflow, which does not want it, is not told."""
    given_up = e.PromiseCancelled(up_to=1, promise_no=1, name="p")
    row = structs.replace(a_promise(PromiseState.RESOLVED), settled_at=settled_at)
    closed = record(STARTED, PROMISE, given_up, e.WorkflowCompleted(up_to=1))
    whole = structs.replace(closed, tasks=(), timers=(), waits=(), promises=[row])
    assert ([("I22", 0)] if violated else []) == found(whole)

    told = e.PromiseResolved(promise_no=1, name="p")
    closed = record(STARTED, PROMISE, given_up, told, e.WorkflowCompleted(up_to=1))
    assert ("I10", 4) in found(closed)


def test_the_row_of_a_promise_has_its_shape():
    """I22: a value must fit what the workflow has asked for."""
    row = structs.replace(a_promise(), shape=Raw(b'"int"'))
    waiting = (Wait("promise", "p", 1),)
    assert [("I22", 0)] == found(at_rest(STARTED, PROMISE, promises=[row], waiting_for=waiting))
    made = structs.replace(PROMISE, shape=Raw(b'"int"'))
    assert [] == found(at_rest(STARTED, made, promises=[row], waiting_for=waiting))


def test_an_open_execution_has_the_rows_of_its_promises():
    """I22: one is missing, one was never made; one that was settled early is nobody's yet."""
    waiting = (Wait("signal", "s"),)
    assert [("I22", 0)] == found(at_rest(STARTED, PROMISE, waiting_for=waiting))
    assert [("I22", 0)] == found(at_rest(STARTED, promises=[a_promise()], waiting_for=waiting))
    early = a_promise(PromiseState.RESOLVED, promise_no=0)
    assert [] == found(at_rest(STARTED, promises=[early], waiting_for=waiting))


def test_a_promise_does_not_time_out_early():
    """I13: nor without a time-out. Its timer is one of the execution's: the next one has the next number."""
    timed = structs.replace(PROMISE, timer_no=1, expires_at=150)
    late = e.PromiseTimedOut(promise_no=1, name="p")
    other = e.TimerStarted(up_to=1, timer_no=2, fire_at=900)
    assert [] == found(record(STARTED, timed, late, other, e.WorkflowCompleted(up_to=3)))
    hasty = structs.replace(timed, expires_at=151)
    assert [("I13", 3)] == found(record(STARTED, hasty, late, COMPLETED))
    assert [("I13", 3)] == found(record(STARTED, PROMISE, late, COMPLETED))


def test_broadcasts_of_one_name_come_in_order():
    """I21: two waits may get the same one, a later wait none that is older; another name has its own order."""
    waits = [structs.replace(WAIT, wait_no=number) for number in (1, 2, 3)]
    first, same, other = (
        e.BroadcastReceived(wait_no=number, name=name, broadcast_id=thrown)
        for number, name, thrown in ((1, "go", 7), (2, "go", 7), (3, "stop", 5))
    )
    assert [] == found(record(STARTED, *waits, first, same, other, e.WorkflowCompleted(up_to=7)))
    older = structs.replace(same, broadcast_id=6)
    assert [("I21", 6)] == found(record(STARTED, *waits, first, older, other, e.WorkflowCompleted(up_to=7)))


def test_a_message_reaches_one_execution():
    """I21: an event may reach many."""

    def receiving(name: str, correlation: str | None) -> Record:
        body = e.EventReceived(wait_no=1, key="go", event_id=7, correlation=correlation)
        return record(STARTED, WAIT, body, COMPLETED, id=name, workflow_id=name)

    assert [] == found(receiving("a", None), receiving("b", None))
    assert [("I21", 3)] == found(receiving("a", "c"), receiving("b", "c"))
