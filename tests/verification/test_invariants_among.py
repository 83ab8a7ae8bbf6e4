"""The checker finds each planted violation among several executions: families, runs that follow each other, signals
from one to another, updates, copies."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw, structs

from holdfast.model import events as e
from holdfast.model.executions import Execution, Ready, State, TimerRow
from holdfast.model.values import Failure, Wait
from verification.invariants import Record, check

ONE = Raw(b"1")
OOPS = Failure(type="E")


def record(name: str, *bodies: e.EventBody, **fields: Any) -> Record:
    """An execution with this history, an event every 50 µs, and a head that agrees with it."""
    history = [e.HistoryEvent(seq, seq * 50, body) for seq, body in enumerate(bodies, start=1)]
    whole: dict[str, Any] = {
        "id": name,
        "org": "default",
        "workflow_id": name,
        "kind": "k",
        "version": "1",
        "queue": "default",
        "priority": 0,
        "state": State.OPEN,
        "created_at": 0,
        "updated_at": 0,
        "last_seq": len(history),
        "signal_count": sum(isinstance(body, e.SignalReceived) for body in bodies),
        "ready": Ready(since_at=0) if fields.get("state", State.OPEN) is State.OPEN else None,
        **fields,
    }
    return Record(execution_row=Execution(**whole), history=history)


def started(**fields: Any) -> e.WorkflowStarted:
    return e.WorkflowStarted(kind="k", workflow_id="w", **fields)


def found(*records: Record, **options: Any) -> list[tuple[str, str, int]]:
    return [(fault.invariant, fault.execution_id, fault.seq) for fault in check(records, **options)]


# --- families -----------------------------------------------------------------------------------------------------

CHILD_STARTED = e.ChildStarted(up_to=1, child_no=1, child_execution_id="child", kind="k")
TOLD = e.ChildCompleted(child_no=1, child_execution_id="child", result=ONE)


def parent(*more: e.EventBody, first: e.ChildStarted = CHILD_STARTED, **fields: Any) -> Record:
    return record("parent", started(), first, *more, **fields)


def child(*more: e.EventBody, name: str = "child", **fields: Any) -> Record:
    whole = {"parent_id": "parent", "child_no": 1, "on_parent_close": "default", **fields}
    return record(name, started(parent_execution_id="parent", child_no=1), *more, **whole)


def ended_child(*more: e.EventBody, **fields: Any) -> Record:
    end = more or (e.WorkflowCompleted(up_to=1, result=ONE),)
    return child(*end, **{"state": State.COMPLETED, "on_parent_close": "abandon", **fields})


def test_a_sound_family_has_no_violations():
    """An open child that hangs on its parent; one that has ended and was told; one that could not begin."""
    refused = e.ChildFailed(child_no=1, child_execution_id="child", status="not_started", failure=OOPS)

    assert [] == check([parent(open_children=1), child()])
    assert [] == check([parent(TOLD), ended_child()])
    assert [] == check([parent(refused)])


def test_a_child_its_parent_does_not_know():
    """I15: no child without its parent's event."""
    assert [("I15", "child", 0)] == found(record("parent", started(), open_children=1), child())


def test_a_child_that_is_not_the_one_that_was_started():
    """I15: the number is its parent's, the execution is another one; an adopted one may be."""
    other = child(name="other")
    adopting = structs.replace(CHILD_STARTED, if_running="use_existing")

    assert [("I15", "other", 0)] == found(parent(open_children=1), other)
    assert [] == found(parent(first=adopting, open_children=1), other)


def test_two_outcomes_of_one_child():
    """I10: a child ends once."""
    assert [("I10", "parent", 4)] == found(parent(TOLD, TOLD), ended_child())


def test_an_outcome_of_no_child():
    """I10: nobody has started it."""
    assert [("I10", "parent", 2)] == found(record("parent", started(), TOLD))


def test_an_outcome_after_a_cancel_is_sound():
    """A child that was asked to cancel ends all the same."""
    asked = e.ChildCancelRequested(up_to=2, child_no=1)
    told = e.ChildFailed(child_no=1, child_execution_id="child", status="cancelled", failure=OOPS)
    end = e.WorkflowCancelled(up_to=1)

    assert [] == found(parent(asked, told), ended_child(end, state=State.CANCELLED))
    assert [("I10", "parent", 4)] == found(parent(asked, asked, open_children=1), child())


@pytest.mark.parametrize(
    ("told", "end", "state"),
    [
        (TOLD, e.WorkflowCompleted(up_to=1, result=Raw(b"2")), State.COMPLETED),
        (TOLD, e.WorkflowFailed(up_to=1, failure=OOPS), State.FAILED),
        (
            e.ChildFailed(child_no=1, child_execution_id="child", status="failed", failure=OOPS),
            e.WorkflowTimedOut(expires_at=0),
            State.TIMED_OUT,
        ),
        (
            e.ChildFailed(child_no=1, child_execution_id="child", status="not_started", failure=OOPS),
            e.WorkflowFailed(up_to=1, failure=OOPS),
            State.FAILED,
        ),
    ],
    ids=["another result", "a failure", "another failure", "not started"],
)
def test_an_outcome_that_is_not_the_childs(told: e.EventBody, end: e.EventBody, state: State):
    """I15: the parent was told something else than what happened."""
    faults = found(parent(told), ended_child(end, state=state))

    assert ("I15", "parent", 3) in faults


def test_an_outcome_of_a_child_that_is_still_open():
    """I15: it was told before it happened."""
    assert [("I15", "parent", 3)] == found(parent(TOLD, open_children=1), child())


def test_an_end_that_an_open_parent_was_not_told_of():
    """I15: it would wait for ever. A closed parent need not hear it, nor the parent of a run that goes on."""
    closed = parent(e.WorkflowTerminated(), state=State.TERMINATED)
    goes_on = ended_child(
        e.WorkflowContinued(up_to=1, new_execution_id="next", kind="k", version="1"),
        state=State.CONTINUED,
        successor="next",
    )
    first = started(parent_execution_id="parent", child_no=1, continued_from="child")
    following = record("next", first, parent_id="parent", child_no=1, on_parent_close="default")

    assert [("I15", "child", 2)] == found(parent(), ended_child())
    assert [] == found(closed, ended_child())
    assert [] == found(parent(open_children=1), goes_on, following)


def test_children_that_are_counted_wrong():
    """I15: a parent counts the open children that hang on it, no more and no less."""
    assert [("I15", "parent", 0)] == found(parent(open_children=0), child())
    assert [("I15", "parent", 0)] == found(parent(open_children=2), child())
    assert [] == found(parent(open_children=0), child(on_parent_close="abandon"))


def test_a_closed_parent_whose_child_still_hangs_on_it():
    """I15: for a moment that may be; not once everything is at rest."""
    closed = parent(e.WorkflowTerminated(), state=State.TERMINATED, open_children=1)

    assert [] == found(closed, child())
    assert [("I15", "parent", 0)] == found(closed, child(), at_rest=True)


CLOSED = "its parent w has closed (COMPLETED)"
TERMINATED = e.WorkflowTerminated(reason=CLOSED)
CANCELLED = e.CancelRequested(reason=CLOSED)


def orphans(policy: str, *fate: e.EventBody, end: e.EventBody | None = None) -> list[tuple[str, str, int]]:
    """What is wrong when a parent with such a policy has closed and this has become of its child."""
    first = structs.replace(CHILD_STARTED, on_parent_close=policy)
    over = end or e.WorkflowCompleted(up_to=1)
    state = State.COMPLETED if isinstance(over, e.WorkflowCompleted) else State.TERMINATED
    closed = any(body.TERMINAL for body in fate)
    orphan = child(*fate, on_parent_close="abandon", state=State.TERMINATED if closed else State.OPEN)
    return found(parent(over, first=first, state=state), orphan, at_rest=True)


@pytest.mark.parametrize(
    ("policy", "fate"),
    [
        ("terminate", (TERMINATED,)),
        ("cancel", (CANCELLED,)),
        ("abandon", ()),
        ("default", ()),
        # Somebody else may have been faster.
        ("abandon", (e.WorkflowTerminated(reason="by hand"),)),
        ("terminate", (e.WorkflowTerminated(reason="by hand"),)),
    ],
)
def test_a_child_that_ends_as_its_parent_wanted_is_sound(policy: str, fate: tuple[e.EventBody, ...]):
    assert [] == orphans(policy, *fate)


@pytest.mark.parametrize(
    ("policy", "fate", "seq"),
    [
        ("terminate", (), 0),
        ("terminate", (CANCELLED,), 2),
        ("cancel", (), 0),
        ("cancel", (TERMINATED,), 2),
        ("abandon", (TERMINATED,), 2),
        ("abandon", (CANCELLED,), 2),
        ("default", (TERMINATED,), 2),
        ("default", (CANCELLED,), 2),
    ],
)
def test_a_child_that_ends_otherwise_than_its_parent_wanted(policy: str, fate: tuple[e.EventBody, ...], seq: int):
    """I15: what was to become of it is in its parent's history."""
    assert ("I15", "child", seq) in orphans(policy, *fate)


def test_a_child_of_a_parent_that_ended_badly_is_cancelled_by_default():
    """I15: it outlives one that has completed, and no other."""
    end = e.WorkflowTerminated()

    assert [] == orphans("default", CANCELLED, end=end)
    assert [("I15", "child", 0)] == orphans("default", end=end)


def test_a_parent_that_waits_for_a_child_that_is_not_there():
    """I16: nobody will ever tell it."""
    resting = parent(waiting_for=(Wait("child", "k", 1),), ready=None)

    assert [("I16", "parent", 0)] == found(resting)


# --- runs that follow each other ----------------------------------------------------------------------------------

SIGNAL = e.SignalReceived(signal_name="s", signal_value=ONE, request_id="r")
ASKED = e.UpdateRequested(update_id="u", update_name="n")
GOES_ON = e.WorkflowContinued(up_to=1, new_execution_id="next", kind="k", version="1")


def before(*more: e.EventBody) -> Record:
    """A run that has seen its first event only."""
    return record("before", started(), *more, GOES_ON, workflow_id="w", state=State.CONTINUED, successor="next")


def following(*more: e.EventBody, **fields: Any) -> Record:
    return record("next", started(continued_from="before"), *more, workflow_id="w", **fields)


def carried(body: Any, seq: int) -> Any:
    return structs.replace(body, carried_from=seq)


def test_calls_that_were_carried_over_are_sound():
    """In order, the same as before; the request id of a signal does not count twice."""
    more = structs.replace(SIGNAL, request_id="r2")

    assert [] == check([before(), following()])
    assert [] == check(
        [before(SIGNAL, ASKED, more), following(carried(SIGNAL, 2), carried(ASKED, 3), carried(more, 4))]
    )


@pytest.mark.parametrize(
    "taken",
    [(), (3,), (3, 2), (2, 2, 3), (2, 3, 4), (1, 2, 3)],
    ids=["all lost", "one lost", "other order", "twice", "from the end", "from the start"],
)
def test_calls_that_were_not_carried_over_as_they_were(taken: tuple[int, ...]):
    """I06: each of those that nobody has read is in the next run, once, in order, and nothing else."""
    plain = structs.replace(SIGNAL, request_id=None)
    faults = found(before(plain, plain), following(*(carried(plain, seq) for seq in taken)))

    assert {"I06"} == {invariant for invariant, _, _ in faults}


def test_a_call_that_was_carried_over_as_something_else():
    """I06: same number, another value; or no run before at all."""
    changed = structs.replace(SIGNAL, signal_value=Raw(b"2"))

    assert [("I06", "next", 2)] == found(before(SIGNAL), following(carried(changed, 2)))
    assert [("I06", "alone", 2)] == found(record("alone", started(), carried(SIGNAL, 2)))


def test_an_update_that_was_answered_and_carried_over():
    """I06: the next run would do it again."""
    accepted = e.UpdateAccepted(up_to=2, update_id="u")
    end = structs.replace(GOES_ON, up_to=2)
    run = record("before", started(), ASKED, accepted, end, workflow_id="w", state=State.CONTINUED, successor="next")

    assert [] == found(run, following())
    assert [("I06", "next", 2)] == found(run, following(carried(ASKED, 2)))


def test_runs_that_do_not_name_each_other():
    """I06: the next run is not there, or is that of another one; I04: the head names another successor."""
    stray = following()

    assert [("I06", "before", 2)] == found(before())
    assert [("I06", "next", 1)] == found(record("before", started(), workflow_id="x"), stray)
    wrong = before()
    wrong = structs.replace(wrong, execution_row=structs.replace(wrong.execution_row, successor=None))
    assert [("I04", "before", 2)] == found(wrong, stray)


def test_an_open_execution_in_whose_place_another_continues():
    """I04: only what has ended has a successor."""
    assert [("I04", "a", 0)] == found(record("a", started(), successor="b"))


# --- copies -------------------------------------------------------------------------------------------------------

RESET = e.WorkflowReset(from_execution_id="old", event_seq=2)


def old(*more: e.EventBody) -> Record:
    end = e.WorkflowTerminated(successor="new")
    first = started(request_id="begin")
    return record("old", first, SIGNAL, *more, end, workflow_id="w", state=State.TERMINATED, successor="new")


def new(*bodies: e.EventBody) -> Record:
    return record("new", *bodies, workflow_id="w")


def test_a_reset_is_sound():
    """Request ids in copies and in what was carried over have had their effect once."""
    later = structs.replace(SIGNAL, request_id="r2")

    assert [] == check([old(later), new(started(seed="old"), SIGNAL, RESET, carried(later, 3))])
    assert [] == check([old(later), new(started(seed="old"), SIGNAL, RESET)])


def test_a_reset_of_a_reset_is_sound():
    """The second one's copies contain the first one's reset."""
    first = structs.replace(new(started(), SIGNAL, RESET))
    closed = record(
        "new", started(), SIGNAL, RESET, e.WorkflowTerminated(successor="third"),
        workflow_id="w", state=State.TERMINATED, successor="third",
    )  # fmt: skip
    third = record(
        "third", started(), SIGNAL, RESET, e.WorkflowReset(from_execution_id="new", event_seq=3), workflow_id="w"
    )

    assert [] == check([old(), first])
    assert [] == check([old(), closed, third])


def test_a_copy_that_differs():
    """I01: what was taken over is what was there."""
    changed = structs.replace(SIGNAL, signal_value=Raw(b"2"))

    assert [("I01", "new", 2)] == found(old(), new(started(), changed, RESET))
    assert ("I01", "new", 3) in found(old(), new(started(), SIGNAL, structs.replace(RESET, event_seq=1)))


def test_a_signal_that_came_twice_by_a_reset():
    """I07: copied and carried over as well."""
    assert ("I07", "new", 4) in found(old(), new(started(), SIGNAL, RESET, carried(SIGNAL, 2)))


# --- signals from one to another ----------------------------------------------------------------------------------

SENT = e.ExternalSignalInitiated(up_to=1, signal_no=1, target="target", signal_name="s", signal_value=ONE)
DELIVERED = e.ExternalSignalDelivered(signal_no=1, target_execution_id="target", signal_event_sequence=2)
ARRIVED = e.SignalReceived(signal_name="s", signal_value=ONE, sender="sender")


def sender(*more: e.EventBody) -> Record:
    return record("sender", started(), SENT, *more)


def test_a_signal_from_one_to_another_is_sound():
    """Delivered, or refused; the target need not be there any more."""
    assert [] == check([sender(DELIVERED), record("target", started(), ARRIVED)])
    assert [] == check([sender(e.ExternalSignalFailed(signal_no=1, failure=OOPS)), record("target", started())])
    assert [] == check([sender(DELIVERED)])


@pytest.mark.parametrize(
    "there",
    [
        (),
        (structs.replace(ARRIVED, sender=None),),
        (structs.replace(ARRIVED, signal_value=Raw(b"2")),),
        (structs.replace(ARRIVED, signal_name="t"),),
        (e.CancelRequested(),),
    ],
    ids=["not there", "of somebody else", "other value", "other name", "no signal"],
)
def test_a_delivered_signal_that_is_not_there(there: tuple[e.EventBody, ...]):
    """I06: the sender was told that it is."""
    assert ("I06", "sender", 3) in found(sender(DELIVERED), record("target", started(), *there))


def test_a_signal_its_sender_does_not_know_of():
    """I06: it was delivered, and the sender was not told, or was told that it was not."""
    target = record("target", started(), ARRIVED)

    assert [("I06", "target", 2)] == found(sender(), target)
    assert [("I06", "target", 2)] == found(sender(e.ExternalSignalFailed(signal_no=1, failure=OOPS)), target)


def test_a_signal_with_two_answers():
    """I10: one each; and each number is sent once."""
    target = record("target", started(), ARRIVED)

    assert ("I10", "sender", 4) in found(sender(DELIVERED, e.ExternalSignalFailed(signal_no=1, failure=OOPS)), target)
    assert [("I10", "sender", 3)] == found(sender(SENT))
    assert [("I10", "sender", 3)] == found(sender(e.ExternalSignalFailed(signal_no=2, failure=OOPS)))


def test_an_execution_at_rest_that_waits_for_an_answer_nobody_gives():
    """I16: signals to others are answered in the transaction that sends them."""
    resting = record("sender", started(), SENT, waiting_for=(Wait("external_signal", "s", 1),), ready=None)

    assert [("I16", "sender", 0)] == found(structs.replace(resting, tasks=(), timers=()))


# --- updates ------------------------------------------------------------------------------------------------------

ACCEPTED = e.UpdateAccepted(up_to=2, update_id="u")
REJECTED = e.UpdateRejected(up_to=2, update_id="u", failure=OOPS)
COMPLETED = e.UpdateCompleted(up_to=2, update_id="u")
FAILED = e.UpdateFailed(up_to=2, update_id="u", failure=OOPS)


@pytest.mark.parametrize(
    "answers",
    [(), (ACCEPTED,), (REJECTED,), (ACCEPTED, COMPLETED), (ACCEPTED, FAILED)],
    ids=lambda answers: "-".join(answer.TYPE for answer in answers) or "none",
)
def test_an_answered_update_is_sound(answers: tuple[e.EventBody, ...]):
    """Rejected, or accepted and then completed or failed; it may still be at work."""
    assert [] == check([record("a", started(), ASKED, *answers)])


@pytest.mark.parametrize(
    "bodies",
    [
        (ACCEPTED,),
        (REJECTED,),
        (COMPLETED,),
        (ASKED, ASKED),
        (ASKED, COMPLETED),
        (ASKED, REJECTED, FAILED),
        (ASKED, ACCEPTED, ACCEPTED),
        (ASKED, ACCEPTED, REJECTED),
        (ASKED, ACCEPTED, COMPLETED, COMPLETED),
        (ASKED, ACCEPTED, COMPLETED, FAILED),
    ],
    ids=lambda bodies: ", ".join(body.TYPE for body in bodies),
)
def test_an_update_that_is_answered_out_of_order(bodies: tuple[e.EventBody, ...]):
    """I10: asked for once, one verdict, one end, in this order."""
    assert [("I10", "a", 1 + len(bodies))] == found(record("a", started(), *bodies))


# --- deadlines ----------------------------------------------------------------------------------------------------


def test_an_execution_that_timed_out_is_sound():
    """At its time or later."""
    timed_out = record("a", started(expires_at=90), e.WorkflowTimedOut(expires_at=90), state=State.TIMED_OUT)

    assert [] == check([timed_out])


@pytest.mark.parametrize(("given", "ended"), [(101, 101), (90, 80), (None, 90)], ids=["early", "other", "none"])
def test_an_execution_that_timed_out_at_another_time(given: int | None, ended: int):
    """I13: not before its time, and only if it has one."""
    timed_out = record("a", started(expires_at=given), e.WorkflowTimedOut(expires_at=ended), state=State.TIMED_OUT)

    assert [("I13", "a", 2)] == found(timed_out)


def test_a_head_that_did_not_time_out():
    """I04: head and history end alike, with the new ends too."""
    timed_out = record("a", started(expires_at=90), e.WorkflowTimedOut(expires_at=90), state=State.TERMINATED)

    assert [("I04", "a", 2)] == found(timed_out)


def test_a_deadline_without_its_timer():
    """I16: the time limit of an open execution is timer 0, which fires no event of its own."""
    row = TimerRow(execution_id="a", timer_no=0, org="default", fire_at=90)
    limited, free = record("a", started(expires_at=90)), record("a", started())

    assert [] == check([structs.replace(limited, tasks=(), timers=(row,))])
    assert [("I16", "a", 0)] == found(structs.replace(limited, tasks=(), timers=()))
    assert [("I16", "a", 0)] == found(structs.replace(free, tasks=(), timers=(row,)))
    assert [("I10", "a", 2)] == found(record("a", started(), e.TimerFired(timer_no=0)))
