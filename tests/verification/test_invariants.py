"""The checker finds each planted violation, says where it is, and is silent about a sound set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw, structs

from holdfast import Engine, WorkflowContext, task, workflow
from holdfast.model import events as e
from holdfast.model.executions import Execution, Ready, State, StuckReason, TaskRow, TimerRow
from holdfast.model.values import DEFAULT_TASK_RETRY, DEFAULT_TIMEOUTS, Failure, Wait
from tests.conftest import OpenEngine, until
from verification.invariants import Record, Violation, check, check_growth, read

ID = "execution-1"
DUE = 500

# A history in which everything that is checked takes place once.
BODIES: tuple[e.EventBody, ...] = (
    e.WorkflowStarted(kind="k", workflow_id="w", request_id="begin"),
    e.SignalReceived(signal_name="s", request_id="first"),
    e.TaskScheduled(up_to=2, task_no=1, kind="t"),
    e.TimerStarted(up_to=2, timer_no=1, fire_at=DUE),
    e.TaskScheduled(up_to=2, task_no=2, kind="t"),
    e.TimerStarted(up_to=2, timer_no=2, fire_at=9_000),
    e.StepCompleted(up_to=2, step_no=2, name="b"),
    e.StepCompleted(up_to=2, step_no=1, name="a"),
    e.TurnCompleted(up_to=8),
    e.TaskCompleted(task_no=1),
    e.TimerFired(timer_no=1),
    e.TaskCancelRequested(up_to=11, task_no=2),
    e.TimerCancelled(up_to=11, timer_no=2),
    e.WorkflowCompleted(up_to=11),
)


def execution(**fields: Any) -> Execution:
    whole: dict[str, Any] = {
        "id": ID,
        "org": "default",
        "workflow_id": "w",
        "kind": "k",
        "version": "1",
        "queue": "default",
        "priority": 0,
        "state": State.COMPLETED,
        "created_at": 0,
        "updated_at": 0,
        **fields,
    }
    return Execution(**whole)


def record(*bodies: e.EventBody, **fields: Any) -> Record:
    """An execution with this history, an event every 50 µs, and a head that agrees with it."""
    history = [e.HistoryEvent(seq, seq * 50, body) for seq, body in enumerate(bodies, start=1)]
    signals = sum(isinstance(body, e.SignalReceived) for body in bodies)
    return Record(
        execution_row=execution(**{"last_seq": len(history), "signal_count": signals, **fields}), history=history
    )


def sound() -> Record:
    return record(*BODIES)


def with_history(change: Callable[[list[e.HistoryEvent]], None]) -> Record:
    whole = sound()
    events = list(whole.history)
    change(events)
    signals = sum(isinstance(event.body, e.SignalReceived) for event in events)
    return Record(
        execution_row=structs.replace(whole.execution_row, last_seq=len(events), signal_count=signals),
        history=[e.HistoryEvent(seq, event.at, event.body) for seq, event in enumerate(events, start=1)],
    )


def inserted(at: int, body: e.EventBody) -> Record:
    """The sound history with one event more, which becomes number `at`."""
    return with_history(lambda events: events.insert(at - 1, e.HistoryEvent(0, events[at - 2].at, body)))


def found(*records: Record) -> list[tuple[str, int]]:
    return [(violation.invariant, violation.seq) for violation in check(records)]


def test_a_sound_history_has_no_violations():
    """Nothing is reported where nothing is wrong: steps in any order, outcomes, cancels, an end."""
    assert [] == check([sound()])


def test_a_cancel_that_crossed_an_outcome_is_sound():
    """A turn may cancel what had its outcome before the turn was recorded."""
    crossed = record(
        BODIES[0],
        e.TaskScheduled(up_to=1, task_no=1, kind="t"),
        e.TimerStarted(up_to=1, timer_no=1, fire_at=0),
        e.TaskFailed(task_no=1, failure=Failure(type="E")),
        e.TimerFired(timer_no=1),
        e.TaskCancelRequested(up_to=3, task_no=1),
        e.TimerCancelled(up_to=3, timer_no=1),
        e.WorkflowCompleted(up_to=5),
    )

    assert [] == check([crossed])


# --- one execution ------------------------------------------------------------------------------------------------


def test_a_gap_in_the_numbers():
    """I01: an event is missing in the middle."""
    whole = sound()
    gap = Record(execution_row=whole.execution_row, history=[event for event in whole.history if event.seq != 7])

    assert ("I01", 8) in found(gap)


def test_a_number_that_stands_twice():
    """I01: two events have the same number."""
    whole = sound()
    doubled = Record(
        execution_row=whole.execution_row, history=[*whole.history[:9], whole.history[8], *whole.history[9:]]
    )

    assert ("I01", 9) in found(doubled)


def test_a_head_that_says_more_than_the_history_has():
    """I01: the head's number is not that of the last event."""
    assert [("I01", 15)] == found(record(*BODIES, last_seq=15))


def test_a_history_without_its_beginning():
    """I03: the first event is something else."""
    assert ("I03", 1) in found(record(*BODIES[1:]))


def test_a_history_without_events():
    """I03: there is nothing at all."""
    assert [("I03", 1)] == found(record(state=State.OPEN))


def test_a_second_beginning():
    """I03: WORKFLOW_STARTED occurs again."""
    assert [("I03", 4)] == found(inserted(4, e.WorkflowStarted(kind="k", workflow_id="w")))


def test_something_after_the_end():
    """I04: the terminal event is not the last."""
    assert [("I04", 15)] == found(record(*BODIES, e.CancelRequested()))


def test_two_ends():
    """I04: there are two terminal events."""
    ended_twice = record(*BODIES, e.WorkflowTerminated(), state=State.TERMINATED)

    assert [("I04", 15)] == found(ended_twice)


def test_a_closed_head_over_an_open_history():
    """I04: the head says it is over, the history does not."""
    assert [("I04", 0)] == found(record(*BODIES[:-1]))


def test_an_open_head_over_a_closed_history():
    """I04: the history says it is over, the head does not."""
    assert [("I04", 14)] == found(record(*BODIES, state=State.OPEN))


def test_a_head_that_ended_otherwise_than_its_history():
    """I04: completed is not failed."""
    assert [("I04", 14)] == found(record(*BODIES, state=State.FAILED))


def test_time_that_goes_back():
    """I05: an event is older than the one before it."""
    whole = sound()
    history = [structs.replace(event, at=event.at - 60) if event.seq == 9 else event for event in whole.history]

    assert [("I05", 9)] == found(Record(execution_row=whole.execution_row, history=history))


def test_a_signal_that_came_twice():
    """I07: one request id has brought two signals."""
    assert [("I07", 3)] == found(inserted(3, e.SignalReceived(signal_name="s", request_id="first")))


def test_a_signal_the_head_has_not_counted():
    """I09: the head's count of signals is not that of the history."""
    assert [("I09", 0)] == found(record(*BODIES, signal_count=2))


@pytest.mark.parametrize(
    ("at", "body"),
    [
        (9, e.TaskScheduled(up_to=2, task_no=2, kind="t")),
        (9, e.TaskScheduled(up_to=2, task_no=4, kind="t")),
        (9, e.TimerStarted(up_to=2, timer_no=1, fire_at=0)),
        (12, e.TaskCompleted(task_no=1)),
        (12, e.TaskFailed(task_no=1, failure=Failure(type="E"))),
        (12, e.TaskCompleted(task_no=3)),
        (14, e.TaskCompleted(task_no=2)),
        (14, e.TimerFired(timer_no=3)),
        (14, e.TaskCancelRequested(up_to=11, task_no=2)),
        (14, e.TimerCancelled(up_to=11, timer_no=3)),
        (9, e.StepCompleted(up_to=2, step_no=1, name="a")),
        (9, e.StepFailed(up_to=2, step_no=2, name="b", failure=Failure(type="E"))),
    ],
    ids=[
        "task scheduled twice",
        "task number left out",
        "timer started twice",
        "task completed twice",
        "task failed after it completed",
        "result of no task",
        "result of a cancelled task",
        "no such timer",
        "task cancelled twice",
        "no such timer cancelled",
        "step recorded twice",
        "step failed after it completed",
    ],
)
def test_a_command_with_a_wrong_number_or_outcome(at: int, body: e.EventBody):
    """I10: every number is asked for once, in order, and has one outcome, which follows."""
    assert ("I10", at) in found(inserted(at, body))


def test_an_outcome_before_its_schedule():
    """I10: a task can't be over before it was asked for."""
    early = record(
        BODIES[0],
        e.TaskCompleted(task_no=1),
        e.TaskScheduled(up_to=2, task_no=1, kind="t"),
        e.WorkflowCompleted(up_to=2),
    )

    assert [("I10", 2)] == found(early)


def test_a_timer_that_fires_twice():
    """I13: one timer, one firing."""
    assert [("I13", 12)] == found(inserted(12, e.TimerFired(timer_no=1)))


def test_a_timer_that_fires_after_its_cancel():
    """I13: a cancelled timer is silent."""
    assert ("I13", 14) in found(inserted(14, e.TimerFired(timer_no=2)))


def test_a_timer_that_fires_early():
    """I13: not before it is due."""
    early = record(
        BODIES[0],
        e.TimerStarted(up_to=1, timer_no=1, fire_at=151),
        e.TimerFired(timer_no=1),
        e.WorkflowCompleted(up_to=3),
    )

    assert [("I13", 3)] == found(early)


# --- rows ---------------------------------------------------------------------------------------------------------

STARTED = BODIES[0]
SCHEDULED = e.TaskScheduled(up_to=1, task_no=1, kind="t")
TIMER = e.TimerStarted(up_to=1, timer_no=1, fire_at=9_000)
QUIET = e.TurnCompleted(up_to=1)
TASK_ROW = TaskRow(
    execution_id=ID,
    task_no=1,
    org="default",
    kind="t",
    queue="default",
    priority=0,
    retry=DEFAULT_TASK_RETRY,
    timeouts=DEFAULT_TIMEOUTS,
    scheduled_at=0,
)
TIMER_ROW = TimerRow(execution_id=ID, timer_no=1, org="default", fire_at=9_000)
WAITS = (Wait("task", "t", 1), Wait("timer", "sleep", 1))


def at_rest(
    *more: e.EventBody,
    tasks: tuple[TaskRow, ...] = (TASK_ROW,),
    timers: tuple[TimerRow, ...] = (TIMER_ROW,),
    **fields: Any,
) -> Record:
    """An execution that waits for a task and a timer."""
    plain = record(STARTED, SCHEDULED, TIMER, QUIET, *more, **{"state": State.OPEN, "waiting_for": WAITS, **fields})
    return structs.replace(plain, tasks=tasks, timers=timers)


def test_an_execution_at_rest_that_waits_for_its_rows_is_sound():
    """Waiting for a task and a timer which both have their rows is what waiting means."""
    assert [] == check([at_rest()])


def test_an_execution_that_waits_for_a_task_without_a_row():
    """I16: nobody will ever run the task."""
    assert [("I16", 0)] == found(at_rest(tasks=()))


def test_an_execution_that_waits_for_a_timer_without_a_row():
    """I16: the timer will never fire."""
    assert [("I16", 0)] == found(at_rest(timers=()))


def test_an_execution_that_waits_for_a_step_nobody_runs():
    """I16: steps run where the execution is held, and it is not held."""
    assert [("I16", 0)] == found(at_rest(waiting_for=(*WAITS, Wait("step", "s", 1))))


def test_an_execution_that_waits_for_nothing():
    """I16: nothing can wake it."""
    assert [("I16", 0)] == found(at_rest(waiting_for=()))


def test_an_execution_with_unread_events_and_no_ready_row():
    """I16: its wake-up was lost."""
    assert [("I16", 5)] == found(at_rest(e.SignalReceived(signal_name="s")))


def test_an_execution_with_unread_events_and_a_ready_row_is_sound():
    """It will be claimed; what it waits for may just have come."""
    assert [] == check([at_rest(e.TaskCompleted(task_no=1), tasks=(), ready=Ready(since_at=1))])


def test_a_stuck_execution_without_a_reason():
    """I16: being stuck is no excuse without one."""
    stuck: dict[str, Any] = {"state": State.STUCK, "ready": Ready(since_at=1)}

    assert [("I16", 0)] == found(at_rest(**stuck))
    assert [] == check([at_rest(**stuck, stuck=StuckReason(code="c", message="m"))])


def test_rows_that_outlive_their_execution():
    """I19: a closed execution has no ready row, no task, no timer."""
    leftover = structs.replace(sound(), tasks=[TASK_ROW], timers=[TIMER_ROW])
    ready = structs.replace(leftover, execution_row=structs.replace(leftover.execution_row, ready=Ready(since_at=1)))

    assert [("I19", 0)] * 2 == found(leftover)
    assert [("I19", 0)] * 3 == found(ready)


# --- several executions -------------------------------------------------------------------------------------------


def test_two_open_executions_of_one_workflow_id():
    """I17: a workflow id has at most one open execution."""
    first = record(e.WorkflowStarted(kind="k", workflow_id="w"), id="a", state=State.OPEN)
    second = record(e.WorkflowStarted(kind="k", workflow_id="w"), id="b", state=State.OPEN)
    elsewhere = structs.replace(second, execution_row=structs.replace(second.execution_row, id="c", org="other"))

    assert [Violation("I17", "b", 0, "workflow id 'w' has another open execution: a")] == check([first, second])
    assert [] == check([first, elsewhere])


def test_a_closed_and_an_open_execution_of_one_workflow_id_are_sound():
    """I17: the next one may begin when the last one is over."""
    closed = record(
        e.WorkflowStarted(kind="k", workflow_id="w"), e.WorkflowTerminated(), id="a", state=State.TERMINATED
    )
    running = record(e.WorkflowStarted(kind="k", workflow_id="w"), id="b", state=State.OPEN)

    assert [] == check([closed, running])


def test_one_request_that_started_two_executions():
    """I03: a request id starts one execution."""
    started = [
        record(
            e.WorkflowStarted(kind="k", workflow_id=name, request_id="r"), id=name, workflow_id=name, state=State.OPEN
        )
        for name in "ab"
    ]

    assert [("I03", 1)] == found(*started)


def test_one_request_that_signalled_two_executions():
    """I07: a request id brings one signal, wherever it goes."""
    signalled = [
        record(
            e.WorkflowStarted(kind="k", workflow_id=name),
            e.SignalReceived(signal_name="s", request_id="r"),
            id=name,
            workflow_id=name,
            state=State.OPEN,
        )
        for name in "ab"
    ]

    assert [("I07", 2)] == found(*signalled)


# --- two reads ----------------------------------------------------------------------------------------------------


def test_a_history_that_has_grown_is_sound():
    """A later read shows more, and the same before it."""
    assert [] == check_growth([record(*BODIES[:5], state=State.OPEN)], [sound()])


def test_a_history_that_has_shrunk():
    """I01: what was read once is there for ever."""
    shrunk = check_growth([sound()], [record(*BODIES[:-1], state=State.OPEN)])

    assert [("I01", 14)] == [(violation.invariant, violation.seq) for violation in shrunk]


def test_an_event_that_reads_differently():
    """I01: an event never changes, not even its payload."""
    changed = list(BODIES)
    changed[1] = e.SignalReceived(signal_name="s", signal_value=Raw(b"1"), request_id="first")

    assert [2] == [violation.seq for violation in check_growth([sound()], [record(*changed)])]


def test_an_execution_that_is_gone():
    """I01: a whole execution is missing in the later read."""
    assert [Violation("I01", ID, 0, "was there before and is gone")] == check_growth([sound()], [])


# --- reading ------------------------------------------------------------------------------------------------------


@task
async def double(number: int) -> int:
    return number * 2


@workflow
async def busy(ctx: WorkflowContext, number: int) -> int:
    doubled = await ctx.task(double, number)
    await ctx.sleep(0.001)
    return await ctx.wait_for_signal("add", int) + doubled


async def _waiting(engine: Engine) -> bool:
    page = await engine.client.list_workflows(limit=1_000)
    return all(any(wait.kind == "signal" for wait in found.waiting_for) for found in page.items)


async def test_everything_in_a_store_is_read(engine: OpenEngine):
    """All executions come, oldest first, with their whole histories; what the engine writes is sound."""
    running = await engine(workflows=[busy], tasks=[double])
    handles = [await running.client.start_workflow(busy, number) for number in range(12)]
    await until(lambda: _waiting(running))
    for handle in handles[:6]:
        await handle.signal("add", 1)
        await handle.result()

    records = await read(running.storage)

    assert [handle.id for handle in handles] == [found.execution_row.id for found in records]
    assert ["WORKFLOW_COMPLETED"] * 6 == [found.history[-1].type for found in records[:6]]
    assert [] == check(records)
