"""Where a history can be cut, and what a past leaves behind: decided from events alone."""

import pytest
from msgspec import Raw

from holdfast.engine.rules import resets
from holdfast.errors import Conflict, ExecutionOpen, InvalidResetPoint
from holdfast.model import events as e
from holdfast.model.executions import Execution, State
from holdfast.model.values import Failure

FAILURE = Failure(type="ValueError")
STARTED = e.WorkflowStarted(kind="k", workflow_id="w", metadata={"a": "1", "b": "2"})


def history(*bodies):
    return [e.HistoryEvent(seq, 1_000 + seq, body) for seq, body in enumerate(bodies, 1)]


def execution_row(state=State.FAILED):
    return Execution(
        id="x",
        org="o",
        workflow_id="w",
        kind="k",
        version="1",
        queue="q",
        priority=0,
        state=state,
        created_at=0,
        updated_at=0,
    )


def task(up_to, number):
    return e.TaskScheduled(up_to=up_to, task_no=number, kind="t")


def quiet(up_to):
    return e.TurnCompleted(up_to=up_to)


def signal(name="s"):
    return e.SignalReceived(signal_name=name)


# --- cuts -------------------------------------------------------------------------------------------------------------


def test_a_turn_is_kept_whole():
    """Between its rows there is no cut; before the first and after the last there is."""
    source = history(STARTED, task(1, 1), task(1, 2), quiet(1), signal(), quiet(5))

    assert [1, 4, 5, 6] == resets.points(source)


def test_two_turns_of_one_commit_can_be_parted():
    """They have seen different events."""
    source = history(STARTED, signal(), task(1, 1), task(1, 2), task(2, 3), quiet(2))

    assert [1, 2, 4, 6] == resets.points(source)


def test_a_finished_step_is_an_event_of_its_own():
    """It may come after the cut, and between the rows of no turn."""
    step = e.StepCompleted(up_to=1, step_no=1, name="n")
    source = history(STARTED, task(1, 1), task(1, 2), step, quiet(4))

    assert [1, 3, 4, 5] == resets.points(source)


def test_observations_belong_to_their_turn():
    """State and metadata of a turn are not kept without it."""
    changed = e.MetadataChanged(up_to=1, values={"a": "3"})
    source = history(STARTED, task(1, 1), e.StateChanged(up_to=1), changed, quiet(1))

    assert [1, 5] == resets.points(source)


def test_answers_to_a_turn_s_commands_follow_it():
    """They may be cut off; an end that comes after them belongs to the turn all the same."""
    sent = e.ExternalSignalInitiated(up_to=1, signal_no=1, target="t", signal_name="s")
    answer = e.ExternalSignalDelivered(signal_no=1, target_execution_id="t", signal_event_sequence=3)
    assert [1, 3, 4] == resets.points(history(STARTED, sent, quiet(1), answer))

    ended = history(STARTED, sent, answer, e.WorkflowCompleted(up_to=1))
    assert [1] == resets.points(ended)


def test_the_end_is_no_cut():
    """Neither one by the code nor one from outside."""
    assert [1, 2] == resets.points(history(STARTED, signal(), e.WorkflowTerminated()))
    assert [1, 2] == resets.points(history(STARTED, signal(), e.WorkflowCompleted(up_to=2)))


@pytest.mark.parametrize(("seq", "before", "after"), [(2, 1, 4), (3, 1, 4), (6, 5, None)])
def test_a_refusal_names_the_nearest_cuts(seq, before, after):
    """And the rows of the turn; none after one that ends the workflow."""
    source = history(STARTED, task(1, 1), task(1, 2), quiet(1), signal(), task(5, 3), e.WorkflowCompleted(up_to=5))

    with pytest.raises(InvalidResetPoint) as refused:
        resets.check_point(source, seq, "to_event")
    assert (before, after) == (refused.value.details["before"], refused.value.details["after"])
    resets.check_point(source, before, "to_event")


# --- retries ----------------------------------------------------------------------------------------------------------


def test_before_the_failed_work():
    """The first failure the closing turn was told of; one that an earlier turn has survived does not count."""
    lost = e.TaskFailed(task_no=1, failure=FAILURE)
    again = e.TaskFailed(task_no=2, failure=FAILURE)
    third = e.TaskFailed(task_no=3, failure=FAILURE)
    source = history(
        STARTED,
        task(1, 1),
        quiet(1),
        lost,
        task(4, 2),
        task(4, 3),
        quiet(4),
        again,
        third,
        e.WorkflowFailed(up_to=9, failure=FAILURE),
    )

    assert 7 == resets.retry_point(source, execution_row())


def test_before_the_turn_that_raised():
    """No work has failed: its code has. Also in the first turn of all."""
    done = e.TaskCompleted(task_no=1)
    source = history(STARTED, task(1, 1), quiet(1), done, task(4, 2), e.WorkflowFailed(up_to=4, failure=FAILURE))
    assert 4 == resets.retry_point(source, execution_row())

    assert 1 == resets.retry_point(history(STARTED, e.WorkflowFailed(up_to=1, failure=FAILURE)), execution_row())


def test_before_the_start_of_a_failed_child():
    """Its outcome stands, so another one must be started."""
    born = e.ChildStarted(up_to=1, child_no=1, child_execution_id="c", kind="k")
    lost = e.ChildFailed(child_no=1, child_execution_id="c", status="failed", failure=FAILURE)
    source = history(STARTED, task(1, 1), born, quiet(1), lost, e.WorkflowFailed(up_to=5, failure=FAILURE))

    assert 1 == resets.retry_point(source, execution_row())


def test_before_the_cancel_request():
    """Whenever it came."""
    source = history(STARTED, quiet(1), e.CancelRequested(), signal(), e.WorkflowCancelled(up_to=4))
    assert 2 == resets.retry_point(source, execution_row(State.CANCELLED))

    early = history(STARTED, e.CancelRequested(), task(1, 1), e.WorkflowCancelled(up_to=2))
    assert 1 == resets.retry_point(early, execution_row(State.CANCELLED))


def test_all_but_an_end_from_outside():
    """Terminated or timed out: nothing failed."""
    for end in (e.WorkflowTerminated(), e.WorkflowTimedOut()):
        assert 3 == resets.retry_point(history(STARTED, task(1, 1), quiet(1), end), execution_row(State.TERMINATED))


def test_open_and_completed_ones_are_not_retried():
    """Two different errors."""
    with pytest.raises(ExecutionOpen):
        resets.retry_point(history(STARTED), execution_row(State.OPEN))
    with pytest.raises(Conflict, match="nothing to retry"):
        resets.retry_point(history(STARTED, e.WorkflowCompleted(up_to=1)), execution_row(State.COMPLETED))


# --- what is left -----------------------------------------------------------------------------------------------------


def test_a_prefix_knows_what_is_open():
    """Tasks, timers, children and signals to others without outcome or cancel; what was counted; the tags."""
    source = history(
        STARTED,
        task(1, 1),
        task(1, 2),
        task(1, 3),
        e.TimerStarted(up_to=1, timer_no=1, fire_at=9),
        e.TimerStarted(up_to=1, timer_no=2, fire_at=9),
        e.ChildStarted(up_to=1, child_no=1, child_execution_id="c", kind="k"),
        e.ExternalSignalInitiated(up_to=1, signal_no=1, target="t", signal_name="s"),
        e.MetadataChanged(up_to=1, values={"a": "3"}, removed=("b",)),
        quiet(1),
        signal(),
        e.TaskCompleted(task_no=1, result=Raw(b"1")),
        e.TimerFired(timer_no=1),
        e.TaskCancelRequested(up_to=13, task_no=2),
        quiet(13),
        signal(),
    )
    prefix = resets.prefix_of(source, 15)

    assert ([3], [2]) == (list(prefix.tasks), list(prefix.timers))
    assert ([1], [1]) == (list(prefix.children), list(prefix.signals))
    assert (13, 11, 1, False) == (prefix.seen_seq, prefix.call_seq, prefix.signal_count, prefix.cancel_requested)
    assert {"a": "3"} == prefix.metadata
    assert {"a": "1", "b": "2"} == resets.prefix_of(source, 1).metadata
    assert [16] == [event.seq for event in resets.calls(source[15:])]


def test_refused_updates_are_not_called_again():
    """The others are, with the signals, in order."""
    tail = history(
        e.UpdateRequested(update_id="no", update_name="u"),
        e.UpdateRejected(up_to=1, update_id="no", failure=FAILURE),
        signal(),
        e.UpdateRequested(update_id="yes", update_name="u"),
    )

    assert [3, 4] == [event.seq for event in resets.calls(tail)]


def test_a_promise_is_settled_for_ever():
    """A turn that had not seen the settlement has cancelled it: that changes nothing, before a reset or after it."""
    made = e.PromiseCreated(up_to=1, promise_no=1, name="p", token_hash="h")
    resolved = e.PromiseResolved(promise_no=1, name="p", value=Raw(b"1"))
    cancelled = e.PromiseCancelled(up_to=3, promise_no=1, name="p")
    source = history(STARTED, made, quiet(1), resolved, cancelled, quiet(3))

    assert {1: resolved} == resets.prefix_of(source, 6).settled
