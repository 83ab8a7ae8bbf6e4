"""One workflow driven by what the test feeds it: no engine, no database, no event loop of the test's."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import RetryPolicy, WorkflowContext, signal, task, update, workflow
from holdfast import errors as err
from holdfast.testing import MockWorkflowContext, replay

T0 = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class Order:
    name: str
    price: int


@task(retry=RetryPolicy(max_attempts=4))
async def charge(order: Order) -> int:
    raise AssertionError("the real body must not run")


def fetch(url: str) -> str:
    raise AssertionError("the real body must not run")


@workflow
async def conversation(ctx: WorkflowContext, greeting: str) -> list[str]:
    said = [greeting]
    while True:
        message = await ctx.wait_for_signal("message", str)
        said.append(await ctx.task("reply", message))
        if message == "bye":
            return said


@workflow
async def paying(ctx: WorkflowContext, order: Order) -> int:
    return await ctx.task(charge, order)


@workflow
async def reading(ctx: WorkflowContext) -> list[str]:
    return [await ctx.run(fetch, "a"), await ctx.run(fetch, "b")]


def test_signals_and_results_drive_the_workflow():
    """Each signal is taken once, each result used once, in the order in which they were fed."""
    mock = MockWorkflowContext()
    mock.signal("message", "hi")
    mock.signal("message", "bye")
    mock.result("reply", "hello", "see you")

    assert ["begin", "hello", "see you"] == mock.run(conversation, "begin")
    assert [("hi",), ("bye",)] == mock.called("reply")
    assert ([], {}) == (mock.unread_signals, mock.unused)


def test_arguments_and_results_are_typed_where_the_task_is_known():
    """What a real worker would get and give: values pass through their durable form."""
    mock = MockWorkflowContext()
    mock.result(charge, lambda order: order.price + 1)

    assert 13 == mock.run(paying, Order("book", 12))
    (call,) = mock.calls
    assert ("task", "charge", (Order("book", 12),), T0) == (call.kind, call.name, call.args, call.at)
    assert "test_mock_workflow.py:" in call.line


def test_a_function_computes_for_every_call():
    """Steps are fed by their function, as tasks are."""
    mock = MockWorkflowContext()
    mock.result(fetch, str.upper)

    assert ["A", "B"] == mock.run(reading)
    assert ["step", "step"] == [call.kind for call in mock.calls]


def test_steps_may_be_fed_by_name():
    """The name in the history: the function's, or the one given to ctx.run."""

    @workflow
    async def named(ctx: WorkflowContext) -> list[str]:
        return [await ctx.run(fetch, "a"), await ctx.run(fetch, "b", name="second")]

    mock = MockWorkflowContext()
    mock.result("fetch", "one")
    mock.result("second", "two")

    assert ["one", "two"] == mock.run(named)


def test_failure_is_the_last_word_of_the_retries():
    """The workflow sees what it would see when all attempts are used up."""

    @workflow
    async def careful(ctx: WorkflowContext) -> str:
        try:
            await ctx.task(charge, Order("book", 12))
        except err.TaskFailed as failed:
            return f"{failed.error_type} after {failed.attempts}"
        return "paid"

    mock = MockWorkflowContext()
    mock.failure(charge, ConnectionError("down"))

    assert "ConnectionError after 4" == mock.run(careful)


def test_step_failure_reaches_the_workflow():
    """As StepFailed, and uncaught it fails the workflow."""
    mock = MockWorkflowContext()
    mock.result(fetch, "page")
    mock.failure(fetch, ValueError)

    with pytest.raises(err.WorkflowFailed, match="StepFailed"):
        mock.run(reading)


def test_timeout_of_a_task_can_be_fed():
    """TaskTimedOut, with the limit that was passed."""

    @workflow
    async def hasty(ctx: WorkflowContext) -> str:
        try:
            await ctx.task(charge, Order("book", 12))
        except err.TaskTimedOut as late:
            return str(late.details["failure"].message)
        return "paid"

    mock = MockWorkflowContext()
    mock.timeout(charge, "heartbeat")

    assert "heartbeat passed" == mock.run(hasty)


def test_timers_fire_by_themselves_in_order_of_time():
    """Sleeping costs nothing; the mock knows how long it was, and what was only threatened."""

    @workflow
    async def napping(ctx: WorkflowContext) -> list[str]:
        woken = []

        async def nap(name: str, days: int) -> None:
            await ctx.sleep(timedelta(days=days))
            woken.append(f"{name} {ctx.now():%d}")

        await asyncio.gather(nap("late", 20), nap("early", 10))
        await ctx.wait_for_signal("go", timeout=60)
        return woken

    mock = MockWorkflowContext()
    mock.signal("go", after=timedelta(days=20, seconds=30))

    assert ["early 11", "late 21"] == mock.run(napping)
    assert timedelta(days=20, seconds=30) == mock.slept == mock.now - T0
    assert ["fired", "fired", "cancelled"] == [timer.outcome for timer in mock.timers]
    assert timedelta(seconds=60) == mock.timers[2].duration


def test_unfed_signal_times_out():
    """A wait with a limit ends by it."""

    @workflow
    async def brief(ctx: WorkflowContext) -> str:
        try:
            return await ctx.wait_for_signal("go", str, timeout=60)
        except TimeoutError:
            return "late"

    assert "late" == MockWorkflowContext().run(brief)


def test_slow_task_loses_a_race():
    """`after` is how long a call takes in virtual time."""

    @workflow
    async def racing(ctx: WorkflowContext) -> int:
        return (await ctx.race(ctx.task("slow"), ctx.sleep(60))).index

    slow, quick = MockWorkflowContext(), MockWorkflowContext()
    slow.result("slow", 1, after=61)
    quick.result("slow", 1, after=59)

    assert (1, 0) == (slow.run(racing), quick.run(racing))
    assert timedelta(seconds=60) == slow.slept


def test_unread_signals_are_listed():
    """Names and values of what came and was never taken."""
    mock = MockWorkflowContext()
    mock.signal("message", "bye")
    mock.signal("other", {"a": 1})
    mock.result("reply", "ok")
    mock.run(conversation, "x")

    assert [("other", {"a": 1})] == mock.unread_signals


def test_wait_that_was_never_fed_is_named_with_its_line():
    """A signal that does not come."""
    mock = MockWorkflowContext()
    with pytest.raises(err.NeverSettled, match=r"signal 'message' at .*test_mock_workflow.py:\d+"):
        mock.run(conversation, "x")


def test_call_without_an_outcome_is_named_and_counted():
    """The second call of a task for which one result was fed."""
    mock = MockWorkflowContext()
    mock.signal("message", "hi")
    mock.signal("message", "bye")
    mock.result("reply", "hello")
    with pytest.raises(err.NeverSettled, match=r"task 'reply' at .*task 'reply' \(call 2\) has no outcome"):
        mock.run(conversation, "x")


def test_unused_outcomes_are_counted():
    """What was fed and never asked for."""
    mock = MockWorkflowContext()
    mock.signal("message", "bye")
    mock.result("reply", "a", "b", "c")
    mock.run(conversation, "x")

    assert {"reply": 2} == mock.unused


def test_cancel_reaches_the_code_at_its_await():
    """The workflow may tidy up, and ends cancelled."""
    tidied = []

    @workflow
    async def long(ctx: WorkflowContext) -> None:
        try:
            await ctx.sleep(timedelta(days=365))
        finally:
            tidied.append(ctx.now())

    mock = MockWorkflowContext(check_replay=False)
    mock.cancel("enough", after=60)
    with pytest.raises(err.WorkflowCancelled, match="enough"):
        mock.run(long)

    assert [T0 + timedelta(seconds=60)] == tidied


def test_history_is_real_and_replays():
    """What the mock has gone through is a history like any other."""
    mock = MockWorkflowContext(workflow_execution_id="e1")
    mock.signal("message", "bye")
    mock.result("reply", "ok")
    mock.run(conversation, "x")

    report = replay(conversation, mock.history, execution_id="e1")

    assert (True, len(mock.history)) == (report.ended, report.events)


def test_code_that_differs_from_run_to_run_fails_its_unit_test():
    """The history is replayed at the end: a global counter is found here, not in production."""
    runs: list[int] = []

    @workflow
    async def moody(ctx: WorkflowContext) -> None:
        runs.append(1)
        if len(runs) == 1:
            await ctx.task("first")
        else:
            await ctx.sleep(1)

    mock = MockWorkflowContext()
    mock.result("first", None)
    with pytest.raises(err.DeterminismError, match="event 2 records: task 1 'first'"):
        mock.run(moody)


def test_endless_workflow_is_stopped():
    """A loop of timers is not waited out."""

    @workflow
    async def forever(ctx: WorkflowContext) -> None:
        while True:
            await ctx.sleep(60)

    with pytest.raises(err.NeverSettled, match="no end after"):
        MockWorkflowContext(max_events=100).run(forever)


def test_await_of_something_foreign_is_refused_as_in_production():
    """The deterministic loop is the real one."""

    @workflow
    async def lost(ctx: WorkflowContext) -> None:
        await asyncio.Event().wait()

    with pytest.raises(err.BlockedForever):
        MockWorkflowContext().run(lost)


async def test_it_works_inside_a_running_loop():
    """A test that is async itself may use it, too."""
    mock = MockWorkflowContext()
    mock.result(fetch, "a", "b")

    assert ["a", "b"] == mock.run(reading)


def test_children_are_fed_like_tasks():
    """By function or kind; a failure reaches the parent as ChildWorkflowFailed."""

    @workflow
    async def kid(ctx: WorkflowContext, number: int) -> int:
        raise AssertionError("the child must not run")

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        first = await ctx.child(kid, 2)
        try:
            await ctx.child("other", 3)
        except err.ChildWorkflowFailed as failed:
            return f"{first}, {failed.error_type}"
        return "both"

    mock = MockWorkflowContext()
    mock.child_result(kid, 7)
    mock.child_failure("other", ValueError("x"))

    assert "7, ValueError" == mock.run(parent)
    assert [("child", "kid", (2,)), ("child", "other", (3,))] == [
        (call.kind, call.name, call.args) for call in mock.calls
    ]


def test_signals_to_others_arrive_and_are_listed():
    """The target exists as far as the workflow can tell."""

    @workflow
    async def caller(ctx: WorkflowContext) -> None:
        await ctx.signal_external_workflow("order-1", "paid", 12)

    mock = MockWorkflowContext()
    mock.run(caller)

    assert [("signal", "paid", ("order-1", 12))] == [(call.kind, call.name, call.args) for call in mock.calls]


def test_class_workflow_takes_signals_and_updates():
    """Handlers run as in production; the update tells what became of it."""

    @workflow
    class Cart:
        def __init__(self) -> None:
            self.items: list[str] = []
            self.paid = False

        @signal
        def add(self, item: str) -> None:
            self.items.append(item)

        @update
        async def pay(self, amount: int) -> str:
            if amount < len(self.items):
                raise ValueError("too little")
            self.paid = True
            return f"{amount} for {len(self.items)}"

        async def run(self, ctx: WorkflowContext) -> list[str]:
            await ctx.wait_until(lambda: self.paid)
            return self.items

    mock = MockWorkflowContext()
    mock.signal("add", "tea")
    mock.signal("add", "milk", after=60)
    refused = mock.update("pay", 0, after=90)
    taken = mock.update("pay", 2, after=120)

    assert ["tea", "milk"] == mock.run(Cart)
    assert ("failed", "completed", "2 for 2") == (refused.status, taken.status, taken.result)
    assert refused.failure is not None
    assert "ValueError" == refused.failure.type


def test_state_and_the_next_run_can_be_read():
    """`ctx.state` as others would see it, and what the next run would begin with."""

    @workflow
    async def counting(ctx: WorkflowContext, number: int) -> None:
        ctx.state["number"] = number
        await ctx.sleep(60)
        ctx.continue_as_new(number + 1)

    mock = MockWorkflowContext()

    assert mock.run(counting, 3) is None
    assert ({"number": 3}, 4) == (mock.state, mock.continued_with)


def test_plain_def_workflow_runs():
    """One that needs no waiting."""

    @workflow
    def adding(ctx: WorkflowContext, numbers: list[int]) -> int:
        return sum(numbers)

    assert 6 == MockWorkflowContext().run(adding, [1, 2, 3])


def _not_a_workflow(ctx: WorkflowContext) -> None: ...


async def _async_value() -> int:
    return 1


def _used(mock: MockWorkflowContext) -> Any:
    mock.result(fetch, "a", "b")
    mock.run(reading)
    return mock.run(reading)


def _async_outcome(mock: MockWorkflowContext) -> Any:
    mock.result(fetch, lambda _: _async_value())
    return mock.run(reading)


@pytest.mark.parametrize(
    ("misuse", "field"),
    [
        (lambda mock: mock.run(_not_a_workflow), "workflow"),
        (_used, "workflow"),
        (_async_outcome, "value"),
        (lambda mock: mock.result("reply"), "values"),
        (lambda mock: mock.result(5, 1), "target"),
        (lambda mock: mock.failure("reply", "text"), "error"),
        (lambda mock: mock.result("reply", 1, after=-1), "after"),
        (lambda mock: mock.signal("x", object()), "value"),
        (lambda mock: mock.signal(""), "name"),
    ],
)
def test_misuse_is_refused_by_field(misuse, field):
    """What can't work is said at once."""
    with pytest.raises(err.InvalidRequest) as raised:
        misuse(MockWorkflowContext())

    assert field == raised.value.field
