"""`ctx.child`, `ctx.signal_external_workflow`, `ctx.continue_as_new`, and work that nobody awaits."""

import asyncio
from dataclasses import dataclass

import pytest
from msgspec import Raw

from holdfast import Outcome, ParentClose, WorkflowContext, query, signal, task, workflow
from holdfast.errors import (
    ChildNotStarted,
    ChildWorkflowFailed,
    ExternalSignalFailed,
    InvalidRequest,
    NeverAwaited,
)
from holdfast.frontends.python.definitions import workflow_definition
from holdfast.frontends.python.program import program_maker
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.ids import child_execution_id
from holdfast.model.values import Failure
from holdfast.replay.machine import Machine
from tests.conftest import until
from tests.replay.driving import Driven, completed, fired, result_of, signalled
from tests.replay.recording import machine_for


@dataclass
class Report:
    pages: int


@workflow(kind="report", version="3", execution_timeout=90)
async def report(ctx: WorkflowContext, topic: str) -> Report:
    return Report(len(topic))


@workflow(kind="desk")
class Dispatcher:
    async def run(self, ctx: WorkflowContext) -> Report:
        return Report(1)


def child_done(number: int = 1, result: str = '{"pages":4}', execution: str = "c") -> e.ChildCompleted:
    return e.ChildCompleted(child_no=number, child_execution_id=execution, result=Raw(result.encode()))


def child_failed(status: str = "failed", number: int = 1) -> e.ChildFailed:
    return e.ChildFailed(
        child_no=number,
        child_execution_id="c",
        status=status,
        failure=Failure(type="ValueError", message="no paper"),
    )


# --- children ---------------------------------------------------------------------------------------------------------


def test_a_child_is_asked_for_and_awaited():
    """Everything the definition says is in the command; the result has the declared type."""

    @workflow
    async def parent(ctx: WorkflowContext) -> list[object]:
        handle = ctx.child(report, "news", workflow_id="r1", priority=2, metadata={"a": "b"})
        found = await handle
        assert isinstance(found, Report)
        return [found.pages, handle.workflow_id, handle.id]

    driven = Driven(parent, depth=1, queue="slow")
    (asked,) = driven.start().commands
    assert isinstance(asked, c.StartChild)
    expected = c.StartChild(
        child_no=1,
        child_execution_id=child_execution_id("execution", 1, 1_000_000),
        kind="report",
        version="3",
        workflow_id="r1",
        input=Raw(b'"news"'),
        queue="slow",
        priority=2,
        metadata={"a": "b"},
        execution_timeout_s=90.0,
        depth=2,
        line=asked.line,
    )
    assert expected == asked
    assert "test_context_children.py" in asked.line
    (wait,) = driven.machine.waits()
    assert ("child", "report", 1) == (wait.kind, wait.name, wait.number)
    assert [4, "r1", "child:1"] == result_of(driven.turn(child_done()))
    driven.check()


def test_a_child_by_kind_or_class_with_options():
    """A kind has no version of its own; `type_hint` says how to read its result."""

    @workflow
    async def parent(ctx: WorkflowContext) -> list[int]:
        named = ctx.child(
            "report",
            version="7",
            queue="q",
            execution_timeout=5,
            on_parent_close="abandon",
            if_running="use_existing",
            type_hint=Report,
        )
        dispatcher = ctx.child(Dispatcher, on_parent_close=ParentClose.TERMINATE)
        assert named.workflow_id == named.execution_id != dispatcher.execution_id
        return [found.pages for found in await asyncio.gather(named, dispatcher)]

    driven = Driven(parent)
    first, second = driven.start().commands
    assert isinstance(first, c.StartChild)
    assert isinstance(second, c.StartChild)
    assert ("report", "7", "q", 5.0, "abandon", "use_existing") == (
        first.kind,
        first.version,
        first.queue,
        first.execution_timeout_s,
        first.on_parent_close,
        first.if_running,
    )
    assert ("desk", "1", "default", None, "terminate", "fail") == (
        second.kind,
        second.version,
        second.queue,
        second.execution_timeout_s,
        second.on_parent_close,
        second.if_running,
    )
    assert [4, 5] == result_of(driven.turn(child_done(2, '{"pages":5}'), child_done(1)))
    driven.check()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("failed", ChildWorkflowFailed),
        ("cancelled", ChildWorkflowFailed),
        ("terminated", ChildWorkflowFailed),
        ("timed_out", ChildWorkflowFailed),
        ("not_started", ChildNotStarted),
    ],
)
def test_a_child_that_ends_without_a_result_raises(status, kind):
    """With how it ended, which it was, and why."""

    @workflow
    async def parent(ctx: WorkflowContext) -> list[str]:
        try:
            await ctx.child(report, "x")
        except ChildWorkflowFailed as error:
            return [type(error).__name__, error.status, error.child_execution_id, error.error_type, str(error)]
        return []

    driven = Driven(parent)
    driven.start()
    name, how, which, why, text = result_of(driven.turn(child_failed(status)))
    assert (kind.__name__, status, "c", "ValueError") == (name, how, which, why)
    assert f"child 'report' (c) {status.replace('_', ' ')}: ValueError: no paper" == text
    driven.check()


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (child_done(), ["completed", "Report(pages=4)", "None"]),
        (child_done(result='"nothing"'), ["failed", "None", "PayloadNotDecodable"]),
        (child_failed(), ["failed", "None", "ChildWorkflowFailed"]),
        (child_failed("cancelled"), ["cancelled", "None", "ChildWorkflowFailed"]),
    ],
)
def test_without_propagation_awaiting_gives_an_outcome(outcome, expected):
    """Well or badly."""

    @workflow
    async def parent(ctx: WorkflowContext) -> list[str]:
        found = await ctx.child(report, "x", propagate_failure=False)
        assert isinstance(found, Outcome)
        assert "child:1" == found.item_id
        return [found.status, str(found.result), type(found.error).__name__ if found.error else "None"]

    driven = Driven(parent)
    driven.start()
    assert expected == result_of(driven.turn(outcome))
    driven.check()


def test_the_worker_sets_the_default_of_propagation_and_history_keeps_it():
    """What was decided when the child was started stays, whatever the setting is later."""

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        found: object = await ctx.child(report, "x")
        return type(found).__name__

    definition = workflow_definition(parent)
    assert definition is not None
    quiet = Machine(program_maker(definition, "default", "execution", propagate_child_failures=False))
    begun = e.HistoryEvent(1, 1_000_000, e.WorkflowStarted(kind="k", workflow_id="w"))
    quiet.feed(begun)
    (asked,) = quiet.turn().commands
    assert isinstance(asked, c.StartChild)
    assert not asked.propagate_failure
    recorded = e.ChildStarted(
        up_to=1, child_no=1, child_execution_id="kept", kind="report", version="3", propagate_failure=False
    )
    later = machine_for(parent)
    later.replay([begun, e.HistoryEvent(2, 2_000_000, recorded)])
    later.feed(e.HistoryEvent(3, 3_000_000, child_failed()))
    (end,) = later.turn().commands
    assert isinstance(end, c.CompleteWorkflow)
    assert b'"Outcome"' == bytes(end.result)


def test_the_recorded_id_of_a_child_stays():
    """Whatever the code would make of it now."""
    seen: list[str] = []

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        handle = ctx.child(report, "x")
        seen.append(handle.execution_id)
        await handle

    machine = machine_for(parent)
    recorded = e.ChildStarted(up_to=1, child_no=1, child_execution_id="kept", kind="report")
    begun = e.WorkflowStarted(kind="k", workflow_id="w")
    machine.replay([e.HistoryEvent(1, 1, begun), e.HistoryEvent(2, 2, recorded)])
    assert ["kept"] == seen
    machine.close()


def test_a_child_that_is_left_runs_on_by_itself():
    """Whether it fails or not, before the parent ends or after: nothing is raised, nothing is logged."""

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        ctx.child(report, "x")
        ctx.child(report, "y")
        await ctx.wait_for_signal("end")
        return "left"

    driven = Driven(parent)
    driven.start()
    driven.turn(child_failed())
    assert "left" == result_of(driven.turn(signalled("end")))
    assert not driven.program.loop.unhandled
    driven.check()


def test_cancelling_a_child():
    """Asks it to cancel; the handle is cancelled at once, and what becomes of the child is not waited for."""

    @workflow
    async def parent(ctx: WorkflowContext) -> list[bool]:
        handle = ctx.child(report, "x")
        await ctx.task("t")
        said = [handle.cancel(), handle.cancelled(), handle.cancel()]
        await ctx.wait_for_signal("end")
        return said

    driven = Driven(parent)
    driven.start()
    (cancel,) = driven.turn(completed()).commands
    assert isinstance(cancel, c.CancelChild)
    assert 1 == cancel.child_no
    driven.turn(child_failed("cancelled"))
    assert [True, True, False] == result_of(driven.turn(signalled("end")))
    driven.check()


def test_a_time_limit_on_awaiting_a_child_cancels_it():
    """As with everything that is awaited."""

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        try:
            await asyncio.wait_for(ctx.child(report, "x"), 5)
        except TimeoutError:
            return "late"
        return "in time"

    driven = Driven(parent)
    driven.start()
    turn = driven.turn(fired())
    assert isinstance(turn.commands[0], c.CancelChild)
    assert "late" == result_of(turn)
    driven.check()


def test_children_in_compositions():
    """A race is won by the first to end; the others are cancelled."""

    @workflow
    async def parent(ctx: WorkflowContext) -> list[object]:
        won = await ctx.race(ctx.child(report, "x"), ctx.child(report, "y"), ctx.sleep(60))
        return [won.index, won.item_id, won.result.pages]

    driven = Driven(parent)
    driven.start()
    turn = driven.turn(child_done(2))
    first, second, _ = turn.commands
    assert isinstance(first, c.CancelChild)
    assert isinstance(second, c.CancelTimer)
    assert [1, "child:2", 4] == result_of(turn)
    driven.check()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"workflow": len}, "workflow"),
        ({"workflow": ""}, "workflow"),
        ({"workflow_id": ""}, "workflow_id"),
        ({"queue": 5}, "queue"),
        ({"version": "\n"}, "version"),
        ({"priority": "high"}, "priority"),
        ({"metadata": {"a": 1}}, "metadata['a']"),
        ({"execution_timeout": 0}, "execution_timeout"),
        ({"on_parent_close": "explode"}, "on_parent_close"),
        ({"if_running": "terminate"}, "if_running"),
        ({"input": object()}, "input"),
    ],
)
def test_bad_options_of_a_child_are_refused(options, field):
    """With the option's name; nothing is started."""

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        try:
            ctx.child(**{"workflow": report, **options})
        except InvalidRequest as error:
            return error.field
        return "taken"

    turn = Driven(parent).start()
    assert field == result_of(turn)
    assert 1 == len(turn.commands)


# --- signals to others ------------------------------------------------------------------------------------------------


def test_a_signal_to_another_workflow():
    """Awaiting it tells that it was delivered."""

    @workflow
    async def sender(ctx: WorkflowContext) -> str:
        await ctx.signal_external_workflow("other", "paid", {"amount": 5})
        return "delivered"

    driven = Driven(sender)
    (sent,) = driven.start().commands
    assert isinstance(sent, c.SignalExternal)
    assert (1, "other", "paid", b'{"amount":5}', 0) == (
        sent.signal_no,
        sent.target,
        sent.signal_name,
        bytes(sent.signal_value),
        sent.child_no,
    )
    (wait,) = driven.machine.waits()
    assert ("external_signal", "paid") == (wait.kind, wait.name)
    delivered = e.ExternalSignalDelivered(signal_no=1, target_execution_id="x", signal_event_sequence=7)
    assert "delivered" == result_of(driven.turn(delivered))
    driven.check()


def test_a_signal_to_a_child_names_it():
    """By its number and its id."""

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        handle = ctx.child(report, "x")
        await handle.signal("more", 1)
        await ctx.signal_external_workflow(handle, "more", 2)

    driven = Driven(parent)
    child, first = driven.start().commands
    delivered = e.ExternalSignalDelivered(signal_no=1, target_execution_id="x", signal_event_sequence=7)
    (second,) = driven.turn(delivered).commands
    assert isinstance(child, c.StartChild)
    for sent in (first, second):
        assert isinstance(sent, c.SignalExternal)
        assert (child.child_execution_id, 1) == (sent.target, sent.child_no)
    driven.check()


def test_a_signal_that_is_not_delivered_raises():
    """With the target and the reason."""

    @workflow
    async def sender(ctx: WorkflowContext) -> str:
        try:
            await ctx.signal_external_workflow("other", "paid")
        except ExternalSignalFailed as error:
            return f"{error.error_type}: {error}"
        return "delivered"

    driven = Driven(sender)
    driven.start()
    failed = e.ExternalSignalFailed(signal_no=1, failure=Failure(type="ExecutionNotFound", message="no such id"))
    text = result_of(driven.turn(failed))
    assert "ExecutionNotFound: signal 'paid' did not reach 'other': no such id" == text
    driven.check()


def test_giving_up_waiting_for_delivery_takes_nothing_back():
    """The signal is on its way; its outcome is of no interest any more."""

    @workflow
    async def sender(ctx: WorkflowContext) -> str:
        sending = ctx.signal_external_workflow("other", "paid")
        sending.cancel()
        await ctx.wait_for_signal("end")
        return "ended"

    driven = Driven(sender)
    assert [c.SignalExternal] == [type(command) for command in driven.start().commands]
    driven.turn(e.ExternalSignalFailed(signal_no=1, failure=Failure(type="X")))
    assert "ended" == result_of(driven.turn(signalled("end")))
    driven.check()


@pytest.mark.parametrize(
    ("target", "name", "field"), [("", "s", "target"), (5, "s", "target"), ("w", "", "signal_name")]
)
def test_bad_external_signals_are_refused(target, name, field):
    """Before anything is sent."""

    @workflow
    async def sender(ctx: WorkflowContext) -> str:
        try:
            ctx.signal_external_workflow(target, name)
        except InvalidRequest as error:
            return error.field
        return "sent"

    assert field == result_of(Driven(sender).start())


# --- beginning afresh -------------------------------------------------------------------------------------------------


def test_continue_as_new_ends_the_run():
    """With the input for the next one; the kind is this one's unless given."""

    @workflow
    async def counter(ctx: WorkflowContext, n: int) -> None:
        await ctx.task("t")
        ctx.continue_as_new(n + 1)

    driven = Driven(counter, depth=2)
    driven.start(input="1")
    (end,) = driven.turn(completed()).commands
    assert c.ContinueWorkflow(input=Raw(b"2"), kind="k", depth=2) == end
    assert driven.machine.ended
    assert not driven.program.loop.unhandled
    driven.check()


def test_continue_as_another_workflow():
    """Its declared version goes with it."""

    @workflow
    async def first(ctx: WorkflowContext) -> None:
        ctx.continue_as_new("topic", workflow=report, queue="q")

    @workflow
    async def by_kind(ctx: WorkflowContext) -> None:
        ctx.continue_as_new(workflow="report", version="9")

    driven = Driven(first)
    expected = c.ContinueWorkflow(input=Raw(b'"topic"'), kind="report", version="3", queue="q")
    assert [expected] == driven.start().commands
    assert [c.ContinueWorkflow(kind="report", version="9")] == Driven(by_kind).start().commands
    driven.check()


def test_nothing_prevents_continue_as_new():
    """Code that catches everything, a background task, a handler, a TaskGroup: this run is over."""

    @workflow
    async def stubborn(ctx: WorkflowContext) -> str:
        try:
            ctx.continue_as_new(1)
        except BaseException:
            await ctx.task("more")
        return "not over"

    @workflow
    async def background(ctx: WorkflowContext) -> None:
        async def later() -> None:
            ctx.continue_as_new(1)

        asyncio.ensure_future(later())  # noqa: RUF006
        await ctx.sleep(60)

    @workflow
    async def grouped(ctx: WorkflowContext) -> None:
        async def later() -> None:
            ctx.continue_as_new(1)

        async with asyncio.TaskGroup() as group:
            group.create_task(later())
            await ctx.sleep(60)

    @workflow
    class Handled:
        async def run(self, ctx: WorkflowContext) -> None:
            await ctx.sleep(60)

        @signal
        def again(self, ctx: WorkflowContext) -> None:
            ctx.continue_as_new(1)

    for fn, news in ((stubborn, []), (background, []), (grouped, []), (Handled, [signalled("again")])):
        driven = Driven(fn)
        assert c.ContinueWorkflow(input=Raw(b"1"), kind="k") == driven.start(*news).commands[-1]
        loop = driven.program.loop
        driven.check()
        assert not loop.unhandled


def test_continue_as_new_with_input_that_has_no_form():
    """Is refused there and then; the run goes on."""

    @workflow
    async def wrong(ctx: WorkflowContext) -> str:
        try:
            ctx.continue_as_new(object())
        except InvalidRequest as error:
            return error.field

    assert "input" == result_of(Driven(wrong).start())


# --- work that nobody awaits ------------------------------------------------------------------------------------------


def test_work_that_nobody_ever_awaited_is_not_lost_silently():
    """The error names each, its line, and what to do."""

    @workflow
    async def careless(ctx: WorkflowContext) -> None:
        ctx.task("mail")
        ctx.run(len, "abc", name="count")
        ctx.sleep(5)
        ctx.wait_for_signal("s")
        ctx.child("other")

    with pytest.raises(NeverAwaited) as caught:
        Driven(careless).start()
    text = str(caught.value)
    assert "task 'mail' (test_context_children.py:" in text
    assert "step 'count' (test_context_children.py:" in text
    assert "other" not in text
    assert "Await it, cancel it with .cancel(), or let a child workflow do it" in text


def test_work_that_was_awaited_once_may_be_left():
    """Losers of a wait, whatever was cancelled, whatever is done, and work of a workflow that fails."""

    @workflow
    async def fine(ctx: WorkflowContext) -> str:
        ctx.task("done")
        await ctx.wait_for_signal("go")
        taken_back = ctx.task("taken back")
        taken_back.cancel()
        losers = [ctx.task("a"), ctx.run(len, "a")]
        await asyncio.wait([*losers, ctx.wait_for_signal("end")], return_when=asyncio.FIRST_COMPLETED)
        return "fine"

    @workflow
    async def failing(ctx: WorkflowContext) -> None:
        ctx.task("t")
        raise ValueError("first")

    driven = Driven(fine)
    driven.start()
    driven.turn(completed(), signalled("go"))
    assert "fine" == result_of(driven.turn(signalled("end")))
    driven.check()
    assert isinstance(Driven(failing).start().commands[-1], c.FailWorkflow)


@task
async def number(value: int) -> int:
    return value


async def test_an_execution_with_lost_work_is_parked(engine):
    """It is not failed: fixed code can go on with it."""

    @workflow
    class Careless:
        async def run(self, ctx: WorkflowContext) -> None:
            ctx.task("nobody knows it")

        @query
        def look(self) -> int:
            return 1

    running = await engine(workflows=[Careless], tasks=[number])
    handle = await running.client.start_workflow(Careless)
    await until(lambda: _stuck(handle))


async def _stuck(handle):
    return "never awaited" in str((await handle.describe()).stuck)
