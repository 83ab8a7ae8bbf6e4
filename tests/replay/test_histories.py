"""Stored histories, replayed for ever: code that made a history once makes the same moves on it with every Holdfast.

See `corpus.py` for what may be changed there (nothing), and `recorder.py` for how to add to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import WorkflowContext, workflow
from holdfast.errors import DeterminismError
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.replay.registry import Registry
from holdfast.testing import StoredHistory, export_history, load_history, replay
from tests.replay import corpus
from tests.replay.recorder import FOLDER, SCENES
from tests.replay.recording import machine_for, turns_of

STORED = sorted(FOLDER.glob("*.json"))
KINDS = {
    definition.kind: code
    for definition, code in zip(Registry(corpus.WORKFLOWS).workflows, corpus.WORKFLOWS, strict=True)
}
STEPS = (e.StepCompleted, e.StepFailed)


def _name(path: Path) -> str:
    return path.stem


# --- what is stored -----------------------------------------------------------------------------------------------


def test_every_event_type_is_in_a_stored_history():
    """A new type needs a workflow in the corpus, and a scene that brings it about."""
    stored = {event.type for path in STORED for event in load_history(path).events}

    assert set() == set(e.EVENT_TYPES) - stored


def test_every_scene_is_stored():
    """`python -m tests.replay.recorder` stores what is missing. What is stored stays, even if its scene goes."""
    assert set() == set(SCENES) - {path.stem for path in STORED}


def test_signals_that_were_carried_over_are_stored():
    """A field that is rarely set, but without which continue-as-new loses signals."""
    bodies = [event.body for event in load_history(FOLDER / "continued_with_signals.json").events]
    carried = [body.carried_from for body in bodies if isinstance(body, e.SignalReceived)]

    assert len(carried) > 1
    assert None not in carried


@pytest.mark.parametrize("path", STORED, ids=_name)
def test_a_stored_history_is_written_as_it_was_read(path: Path):
    """Nothing of an event is lost on the way through today's types."""
    stored = load_history(path)

    again = export_history(stored.events, execution_id=stored.execution_id)
    assert msgspec.json.decode(path.read_bytes()) == msgspec.json.decode(again)


# --- replay -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", STORED, ids=_name)
def test_a_stored_history_is_replayed(path: Path):
    """From nothing to its end, with all its moves."""
    report = replay(corpus.WORKFLOWS, path)

    ended_by_itself = isinstance(load_history(path).events[-1].body, e.TurnEvent)
    assert report.ended == ended_by_itself
    assert report.turns


@pytest.mark.parametrize("path", STORED, ids=_name)
def test_a_stored_history_is_replayed_from_every_turn(path: Path):
    """Cut before each turn, the rest comes as one that nobody has seen: the turn makes its recorded moves again."""
    stored = load_history(path)
    for up_to in turns_of(stored.events):
        assert _recorded_moves(stored, up_to) == _moves_again(stored, up_to), f"the turn that had seen {up_to}"


def _recorded_moves(stored: StoredHistory, up_to: int) -> list[Any]:
    rows = [event.body for event in stored.events if isinstance(event.body, e.TurnEvent) and event.body.up_to == up_to]
    return [_move(row) for row in rows if not isinstance(row, (*STEPS, e.TurnCompleted))]


def _moves_again(stored: StoredHistory, up_to: int) -> list[Any]:
    seen = max((turn for turn in turns_of(stored.events) if turn < up_to), default=0)
    machine = machine_for(KINDS[stored.kind], stored.execution_id)
    machine.replay([event for event in stored.events if event.seq <= seen or _is_row(event, before=up_to)])
    for event in stored.events[seen:up_to]:
        machine.feed(event)
    turn = machine.turn()
    machine.close()
    return [_move(command) for command in turn.commands]


def _is_row(event: e.HistoryEvent, *, before: int) -> bool:
    """Whether an event was written by a turn before that one. A finished step is news to the turn after it."""
    body = event.body
    return isinstance(body, e.TurnEvent) and not isinstance(body, STEPS) and body.up_to < before


def _move(body: Any) -> Any:
    """What a command or its event asks for: all that may not change, whatever defaults are added to it later."""
    match body:
        case c.CompleteWorkflow() | e.WorkflowCompleted():
            return "complete", msgspec.json.decode(body.result)
        case c.FailWorkflow() | e.WorkflowFailed():
            return "fail", body.failure.type, body.failure.message
        case c.ContinueWorkflow() | e.WorkflowContinued():
            return "continue", msgspec.json.decode(body.input)
        case c.CancelWorkflow() | e.WorkflowCancelled():
            return "cancel", body.reason
        case c.StartTimer() | e.TimerStarted():
            return "timer", body.timer_no, body.fire_at
        case c.ScheduleTask() | e.TaskScheduled():
            return "task", body.task_no, body.kind, msgspec.json.decode(body.input)
        case c.StartChild() | e.ChildStarted():
            return "child", body.child_no, body.child_execution_id, body.kind, msgspec.json.decode(body.input)
        case c.SignalExternal() | e.ExternalSignalInitiated():
            return "signal", body.signal_no, body.target, body.signal_name, msgspec.json.decode(body.signal_value)
        case c.ChangeState() | e.StateChanged() | c.ChangeMetadata() | e.MetadataChanged():
            return "show", sorted(body.values), body.removed
        case c.RejectUpdate() | e.UpdateRejected() | c.FailUpdate() | e.UpdateFailed():
            return "refuse", body.update_id, body.failure.type, body.failure.message
        case c.CompleteUpdate() | e.UpdateCompleted():
            return "answer", body.update_id, msgspec.json.decode(body.result)
    return _move_outside(body)


def _move_outside(body: Any) -> Any:
    """The same for what others may settle or get."""
    match body:
        case c.CreatePromise() | e.PromiseCreated():
            # The token's hash depends on the installation.
            return "promise", body.promise_no, body.name, body.event_key, body.timer_no, body.expires_at
        case c.StartWait() | e.WaitStarted():
            look_back = (body.since_at, body.after_event_id, body.skip)
            return "wait", body.wait_no, body.kind, body.key, body.correlation, body.where, look_back, body.consume
        case c.Publish() | e.EventPublished():
            return "publish", body.key, msgspec.json.decode(body.data), body.correlation, str(body.delivery)
        case c.ThrowBroadcast() | e.BroadcastThrown():
            return "throw", body.name
    return {key: value for key, value in msgspec.structs.asdict(body).items() if key not in {"line", "up_to"}}


# --- changed code -------------------------------------------------------------------------------------------------


@workflow(kind="corpus.steps")
async def other_step(ctx: WorkflowContext, number: int) -> None:
    await ctx.run(corpus.add_in_a_thread, number, 1)


@workflow(kind="corpus.tasks")
async def other_task(ctx: WorkflowContext, number: int) -> None:
    await ctx.task(corpus.fail, "early")


@workflow(kind="corpus.timers")
async def no_timer(ctx: WorkflowContext, ms: int) -> None:
    await ctx.wait_for_signal("instead")


@workflow(kind="corpus.together")
async def one_more(ctx: WorkflowContext, number: int) -> None:
    await asyncio.gather(ctx.task(corpus.double, number), ctx.sleep(0.001), ctx.sleep(0.001))


@workflow(kind="corpus.parent")
async def other_child(ctx: WorkflowContext) -> None:
    await ctx.child(corpus.parent)


@workflow(kind="corpus.again")
async def ends(ctx: WorkflowContext, left: int) -> int:
    return await ctx.wait_for_signal("number", int)


@workflow(kind="corpus.patched")
async def without_patch(ctx: WorkflowContext) -> None:
    await ctx.run(corpus.add, 1, 1)


@workflow(kind="corpus.promises")
async def other_promise(ctx: WorkflowContext) -> None:
    await ctx.promise("another")


@workflow(kind="corpus.events")
async def other_key(ctx: WorkflowContext, key: str) -> None:
    await ctx.wait_for_event(f"{key} two", where="input.number > 1")


@workflow(kind="corpus.broadcasts")
async def a_message_instead(ctx: WorkflowContext) -> None:
    await ctx.wait_for_message("go", "go")


@pytest.mark.parametrize(
    ("name", "changed", "recorded", "attempted"),
    [
        ("steps", other_step, "step 1 'add'", "step 1 'add_in_a_thread'"),
        ("tasks", other_task, "task 1 'corpus.double'", "task 1 'corpus.fail'"),
        ("timers", no_timer, "timer 1", "nothing more in this turn"),
        ("together", one_more, "nothing more in this turn", "timer 2"),
        ("parent", other_child, "child 1 'corpus.child'", "child 1 'corpus.parent'"),
        ("continued", ends, "continue as new", "complete the workflow"),
        ("promises", other_promise, "promise 1 'early'", "promise 1 'another'"),
        ("events", other_key, "wait 1 for event 'key'", "wait 1 for event 'key two'"),
        ("broadcasts", a_message_instead, "wait 1 for broadcast 'go'", "wait 1 for message 'go'"),
        ("patched", without_patch, "patch 'first'", "nothing more in this turn"),
    ],
)
def test_a_changed_workflow_is_caught(name: str, changed: Callable[..., Any], recorded: str, attempted: str):
    """The error names what was recorded and what is asked for now, each with its line where it has one."""
    with pytest.raises(DeterminismError) as caught:
        replay(changed, FOLDER / f"{name}.json")

    error = caught.value
    assert (recorded, attempted) == (error.recorded, error.attempted)
    for what, line, file in (
        (recorded, error.recorded_line, "corpus.py:"),
        (attempted, error.attempted_line, "test_histories.py:"),
    ):
        has_line = what not in {"nothing more in this turn", "continue as new", "complete the workflow"}
        assert line.startswith(file) if has_line else line == ""
        assert what in str(error)
        assert line in str(error)
