"""`ctx.run`: work done inline, its result recorded."""

import asyncio
import contextvars
import functools
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pydantic
import pytest

from holdfast import NonRetryable, RetryPolicy, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.errors import PayloadNotDecodable, StepFailed, WorkflowFailed
from tests.conftest import until

AT_ONCE = RetryPolicy(initial_interval_s=0, max_attempts=3)


@dataclass
class Receipt:
    number: int
    lines: list[str]


class Point(msgspec.Struct):
    x: int


class Order(pydantic.BaseModel):
    placed_at: datetime


async def outcome(engine, fn, *arguments, **definitions):
    client = (await engine(workflows=[fn], **definitions)).client
    return await (await client.start_workflow(fn, *arguments)).result(timeout=10)


async def steps(handle):
    return [event for event in await handle.history() if event.type.startswith("STEP_")]


async def test_an_async_step_runs_on_the_workers_loop(engine):
    """It may do real I/O: there it has a real event loop."""
    loops = []

    async def look() -> str:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return "done"

    @workflow
    async def stepping(ctx: WorkflowContext) -> str:
        return await ctx.run(look)

    assert "done" == await outcome(engine, stepping)
    assert [asyncio.get_running_loop()] == loops


async def test_a_plain_step_runs_in_a_thread(engine):
    """A blocking function holds up nobody."""
    threads = []

    def block() -> str:
        threads.append(threading.current_thread())
        return "done"

    @workflow
    async def stepping(ctx: WorkflowContext) -> str:
        return await ctx.run(block)

    assert "done" == await outcome(engine, stepping)
    assert threading.current_thread() not in threads


async def test_arguments_are_passed_as_they_are(engine):
    """A step runs in the same process: its arguments need no durable form."""
    thing = object()

    def same(a, b) -> bool:
        return a is b

    @workflow
    async def stepping(ctx: WorkflowContext) -> bool:
        return await ctx.run(same, thing, thing)

    assert await outcome(engine, stepping)


async def test_lambdas_partials_and_callables(engine):
    """Whatever can be called can be a step; a `name` tells what has none."""

    class Adder:
        def __call__(self, a, b):
            return a + b

    async def double(a):
        return 2 * a

    @workflow
    async def stepping(ctx: WorkflowContext) -> list[int]:
        return [
            await ctx.run(lambda: 1, name="one"),
            await ctx.run(functools.partial(max, 2), 1),
            await ctx.run(Adder(), 1, 2),
            await ctx.run(functools.partial(double, 2)),
        ]

    assert [1, 2, 3, 4] == await outcome(engine, stepping)


async def test_the_result_is_recorded(engine):
    """STEP_COMPLETED carries number, name, result, attempts, times and the line that asked."""

    def answer() -> int:
        return 42

    @workflow
    async def stepping(ctx: WorkflowContext) -> None:
        await ctx.run(answer)
        await ctx.run(answer, name="again")

    client = (await engine(workflows=[stepping])).client
    handle = await client.start_workflow(stepping)
    await handle.result(timeout=10)
    first, second = (event.body for event in await steps(handle))

    assert (1, 1, b"42") == (first.step_no, first.attempts, bytes(first.result))
    assert first.name.endswith("answer")
    assert "test_context_steps.py" in first.line
    assert "stepping" in first.line
    assert 0 < first.started_at <= first.finished_at
    assert (2, "again") == (second.step_no, second.name)


async def test_a_recorded_step_does_not_run_again(engine):
    """After a restart the program goes on from its results."""
    ran = []

    def work(name: str) -> str:
        ran.append(name)
        return name

    @workflow
    async def stepping(ctx: WorkflowContext) -> list[str]:
        first = await ctx.run(work, "first")
        await ctx.wait_for_signal("go")
        return [first, await ctx.run(work, "second")]

    one = await engine(workflows=[stepping])
    handle = await one.client.start_workflow(stepping)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    await one.shutdown()
    two = await engine(workflows=[stepping])
    await two.client.signal_workflow(handle.id, "go")

    assert ["first", "second"] == await two.client.workflow(handle.id).result(timeout=10)
    assert ["first", "second"] == ran


async def has_status(handle, status):
    return await handle.status() is status


@pytest.mark.parametrize("plain", [False, True])
async def test_a_failing_step_is_tried_again(engine, plain):
    """Until it succeeds, within its policy; the attempts are recorded."""
    tries = []

    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("not yet")
        return "at last"

    async def flaky_async() -> str:
        return flaky()

    @workflow
    async def stepping(ctx: WorkflowContext) -> str:
        return await ctx.run(flaky if plain else flaky_async, retry=AT_ONCE)

    client = (await engine(workflows=[stepping])).client
    handle = await client.start_workflow(stepping)

    assert "at last" == await handle.result(timeout=10)
    assert [3] == [event.body.attempts for event in await steps(handle)]


async def test_by_default_a_step_is_tried_three_times(engine):
    """Then StepFailed tells what it was, and can be caught."""
    tries = []

    def broken() -> None:
        tries.append(1)
        raise ConnectionError("no route")

    @workflow
    async def stepping(ctx: WorkflowContext) -> list[object]:
        try:
            await ctx.run(broken)
        except StepFailed as failed:
            failure = failed.details["failure"]
            return [failed.code, failed.error_type, failed.attempts, str(failed), "broken" in failure.traceback]
        return []

    code, kind, attempts, message, traced = await outcome(engine, stepping)

    assert ("step_failed", "ConnectionError", 3, True) == (code, kind, attempts, traced)
    assert "broken" in message
    assert "no route" in message
    assert 3 == len(tries)


@pytest.mark.parametrize("how", ["raised", "named"])
async def test_what_is_not_retryable_fails_at_once(engine, how):
    """NonRetryable and its subclasses, and the types the policy names."""

    class Declined(NonRetryable):
        pass

    def decline() -> None:
        raise Declined("no") if how == "raised" else LookupError("no")

    policy = RetryPolicy(initial_interval_s=0, max_attempts=5, non_retryable=("LookupError",))

    @workflow
    async def stepping(ctx: WorkflowContext) -> list[object]:
        try:
            await ctx.run(decline, retry=policy)
        except StepFailed as failed:
            return [failed.error_type, failed.attempts]
        return []

    assert ["Declined" if how == "raised" else "LookupError", 1] == await outcome(engine, stepping)


async def test_an_uncaught_step_failure_fails_the_workflow(engine):
    """The workflow's failure is StepFailed, with the step's own failure told in the message."""

    def broken() -> None:
        raise ConnectionError("no route")

    @workflow
    async def stepping(ctx: WorkflowContext) -> None:
        await ctx.run(broken, retry=RetryPolicy(max_attempts=1))

    with pytest.raises(WorkflowFailed, match="no route") as failed:
        await outcome(engine, stepping)
    assert "StepFailed" == failed.value.error_type


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Receipt, Receipt(1, ["a"])),
        (Point, Point(3)),
        (Order, Order(placed_at=datetime(2026, 1, 2, tzinfo=UTC))),
        (list[Point], [Point(1)]),
        (datetime, datetime(2026, 1, 2, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("how", ["annotated", "hinted"])
async def test_results_come_back_in_their_type(engine, hint, value, how):
    """By the function's annotation or by `type_hint`; live and after a restart alike."""
    seen = []

    def annotated():
        return value

    annotated.__annotations__["return"] = hint

    def bare():
        return value

    @workflow
    async def stepping(ctx: WorkflowContext) -> None:
        result = await (ctx.run(annotated) if how == "annotated" else ctx.run(bare, type_hint=hint))
        seen.append(result)
        await ctx.wait_for_signal("go")

    one = await engine(workflows=[stepping])
    handle = await one.client.start_workflow(stepping)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    await one.shutdown()
    two = await engine(workflows=[stepping])
    await two.client.signal_workflow(handle.id, "go")
    await two.client.workflow(handle.id).result(timeout=10)

    assert [value, value] == seen
    assert type(value) is type(seen[0]) is type(seen[1])


async def test_a_result_without_durable_form_is_a_step_failure(engine):
    """Not tried again: the value would be the same."""
    tries = []

    def unkeepable() -> object:
        tries.append(1)
        return {"here": print}

    @workflow
    async def stepping(ctx: WorkflowContext) -> list[object]:
        try:
            await ctx.run(unkeepable, retry=AT_ONCE)
        except StepFailed as failed:
            return [failed.error_type, str(failed)]
        return []

    kind, message = await outcome(engine, stepping)

    assert "PayloadNotEncodable" == kind
    assert "unkeepable.here" in message
    assert 1 == len(tries)


async def test_a_result_that_does_not_fit_its_annotation(engine):
    """An error at the await that names the step; catchable."""

    def lies() -> int:
        return "not a number"  # type: ignore[return-value]  # that is the point

    @workflow
    async def stepping(ctx: WorkflowContext) -> str:
        try:
            await ctx.run(lies)
        except PayloadNotDecodable as error:
            return error.field
        return ""

    assert (await outcome(engine, stepping)).endswith("lies")


async def test_a_task_function_may_be_a_step(engine):
    """The same function as a task here and a step there."""

    @task
    async def work(value: int) -> Point:
        return Point(value)

    @workflow
    async def stepping(ctx: WorkflowContext) -> list[int]:
        return [(await ctx.run(work, 1)).x, (await ctx.task(work, 2)).x]

    assert [1, 2] == await outcome(engine, stepping, tasks=[work])


async def test_steps_run_at_the_same_time(engine):
    """Each starts when it is asked for: two that wait for each other both finish."""
    meeting = asyncio.Barrier(2)

    async def meet(name: str) -> str:
        await meeting.wait()
        return name

    @workflow
    async def stepping(ctx: WorkflowContext) -> list[str]:
        return list(await asyncio.gather(ctx.run(meet, "a"), ctx.run(meet, "b")))

    assert ["a", "b"] == await outcome(engine, stepping)


async def test_signals_during_a_step_are_seen_by_the_turn_after_it(engine):
    """What arrives while a step runs is in the queue when the program goes on."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        await go_on.wait()

    @workflow
    async def stepping(ctx: WorkflowContext) -> list[object]:
        before = ctx.has_signal("item")
        await ctx.run(slow)
        return [before, await ctx.drain_signals("item")]

    client = (await engine(workflows=[stepping])).client
    handle = await client.start_workflow(stepping)
    await begun.wait()
    await handle.signal("item", 1)
    await handle.signal("item", 2)
    go_on.set()

    assert [False, [1, 2]] == await handle.result(timeout=10)


@pytest.mark.parametrize("at_once", [1, 3])
async def test_a_step_runs_once_whatever_comes_meanwhile(engine, at_once):
    """Signals that arrive while steps run, or just as they end, make no step run again; each has one outcome."""
    ran = []
    clients: list[Any] = []

    async def signalling(execution_id: str, number: int) -> None:
        ran.append(number)
        for _ in range(2):
            await clients[0].signal_workflow(execution_id, "item")

    @workflow
    async def stepping(ctx: WorkflowContext) -> int:
        me = ctx.info.workflow_execution_id
        for number in range(0, 12, at_once):
            await asyncio.gather(*(ctx.run(signalling, me, number + offset) for offset in range(at_once)))
        return len(await ctx.drain_signals("item"))

    client = (await engine(workflows=[stepping])).client
    clients.append(client)
    handle = await client.start_workflow(stepping)

    assert 24 == await handle.result(timeout=10)
    assert list(range(12)) == ran
    assert list(range(1, 13)) == sorted(event.body.step_no for event in await steps(handle))


async def test_a_step_no_longer_wanted_is_stopped(engine):
    """When its await is cancelled, an async step is cancelled too, and its outcome is not recorded."""
    stopped = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @workflow
    async def stepping(ctx: WorkflowContext) -> str:
        try:
            await asyncio.wait_for(ctx.run(endless), 0.01)
        except TimeoutError:
            return "gave up"
        return ""

    client = (await engine(workflows=[stepping])).client
    handle = await client.start_workflow(stepping)

    assert "gave up" == await handle.result(timeout=10)
    await asyncio.wait_for(stopped.wait(), 10)
    assert [] == await steps(handle)


async def test_a_step_sees_the_context_of_its_thread_copy(engine):
    """Context variables set inside a step do not leak into the worker."""
    variable = contextvars.ContextVar("variable", default="untouched")

    def spoil() -> None:
        variable.set("spoilt")

    @workflow
    async def stepping(ctx: WorkflowContext) -> None:
        await ctx.run(spoil)

    await outcome(engine, stepping)

    assert "untouched" == variable.get()


async def test_many_steps_in_a_row(engine):
    """Three hundred steps one after another, each recorded once and in order."""

    @workflow
    async def stepping(ctx: WorkflowContext) -> int:
        total = 0
        for number in range(300):
            total += await ctx.run(abs, -number)
        return total

    client = (await engine(workflows=[stepping])).client
    handle = await client.start_workflow(stepping)

    assert sum(range(300)) == await handle.result(timeout=20)
    assert list(range(1, 301)) == [event.body.step_no for event in await steps(handle)]


UNUSUAL = [asyncio.CancelledError("by itself"), StopIteration("empty"), SystemExit(3)]


@pytest.mark.parametrize("error", UNUSUAL, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("plain", [False, True])
async def test_whatever_a_step_raises_is_its_failure(engine, error, plain):
    """Also what asyncio and Python treat in a special way: the workflow gets StepFailed and the worker lives on."""

    def raise_it() -> None:
        raise error

    async def raise_it_async() -> None:
        raise error

    @workflow
    async def stepping(ctx: WorkflowContext) -> str:
        try:
            await ctx.run(raise_it if plain else raise_it_async, retry=RetryPolicy(max_attempts=1))
        except StepFailed as failed:
            return await ctx.run(str, failed.error_type)
        return "nothing was raised"

    client = (await engine(workflows=[stepping])).client
    handle = await client.start_workflow(stepping)

    # Python itself turns a StopIteration that leaves a coroutine into a RuntimeError.
    expected = {type(error).__name__, "RuntimeError" if isinstance(error, StopIteration) else ""}
    assert await handle.result(timeout=3) in expected


async def test_what_a_workflow_raises_after_a_failed_step_refers_to_nothing_of_the_worker(engine):
    """The step's own exception is over when the workflow goes on, live as on replay."""

    def fail() -> None:
        raise ValueError("in the step")

    @workflow
    async def stepping(ctx: WorkflowContext) -> str:
        try:
            await ctx.run(fail, retry=RetryPolicy(max_attempts=1))
        except StepFailed as failed:
            return repr(failed.__context__)
        return "nothing was raised"

    client = (await engine(workflows=[stepping])).client

    assert "None" == await (await client.start_workflow(stepping)).result(timeout=3)
