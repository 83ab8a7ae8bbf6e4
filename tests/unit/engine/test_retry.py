"""Retry of an execution that has no result: what made it fail is tried again, what it has done is not."""

import asyncio
from datetime import timedelta

import pytest

from holdfast import NonRetryable, RetryPolicy, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.errors import Conflict, ExecutionNotFound, ExecutionOpen, WorkflowAlreadyRunning, WorkflowFailed
from holdfast.model import events as e
from tests.conftest import WATCHFUL
from tests.replay.recording import check_whole
from tests.unit.engine.records import check_all, dump, reached, types, waiting

DOWN = {"task": False, "step": False, "code": False, "child": False}
RAN: list[str] = []


@pytest.fixture(autouse=True)
def afresh():
    RAN.clear()
    DOWN.update(dict.fromkeys(DOWN, False))


@task(retry=RetryPolicy(max_attempts=1))
async def deliver(what: str) -> str:
    RAN.append(f"task {what}")
    if DOWN["task"]:
        raise ConnectionError("down")
    return what


def record(what: str) -> str:
    RAN.append(f"step {what}")
    if DOWN["step"]:
        raise NonRetryable("down")
    return what


@workflow
async def with_task(ctx: WorkflowContext) -> list[str]:
    first = await ctx.run(record, "first")
    return [first, *await asyncio.gather(ctx.task(deliver, "a"), ctx.task(deliver, "b"))]


@workflow
async def with_step(ctx: WorkflowContext) -> list[str]:
    first = await ctx.task(deliver, "first")
    return [first, await ctx.run(record, "last")]


@workflow
async def with_a_bug(ctx: WorkflowContext) -> str:
    first = await ctx.task(deliver, "first")
    if DOWN["code"]:
        raise KeyError("a bug")
    return first


@workflow
async def born(ctx: WorkflowContext) -> str:
    RAN.append("child")
    if DOWN["child"]:
        raise ValueError("down")
    return "grown"


@workflow
async def with_child(ctx: WorkflowContext) -> list[str]:
    first = await ctx.task(deliver, "first")
    return [first, await ctx.child(born)]


@workflow
async def wait_for_go(ctx: WorkflowContext) -> list[str]:
    first = await ctx.run(record, "first")
    return [first, await ctx.wait_for_signal("go", str)]


WORKFLOWS = [with_task, with_step, with_a_bug, born, with_child, wait_for_go]


async def failed(client, fn, down):
    DOWN[down] = True
    handle = await client.start_workflow(fn, workflow_id="w")
    with pytest.raises(WorkflowFailed):
        await handle.result(timeout=20)
    DOWN[down] = False
    RAN.clear()
    return handle


@pytest.mark.parametrize(
    ("fn", "down", "result", "ran"),
    [
        (with_step, "step", ["first", "last"], ["step last"]),
        (with_a_bug, "code", "first", []),
        (with_child, "child", ["first", "grown"], ["child"]),
    ],
)
async def test_what_failed_is_run_again_and_nothing_else(engine, fn, down, result, ran):
    """A failed step, a failed child, a bug in the code that is fixed by now."""
    running = await engine(workflows=WORKFLOWS, tasks=[deliver])
    handle = await failed(running.client, fn, down)
    again = await handle.retry(reason="it is up again")

    assert result == await again.result(timeout=20)
    assert ran == RAN
    assert ("w", again.id) == (again.workflow_id, (await handle.describe()).successor)
    reset = next(event.body for event in await again.history() if isinstance(event.body, e.WorkflowReset))
    assert ("it is up again", handle.id) == (reset.reason, reset.from_execution_id)
    check_whole(fn, await again.history(), again.id)
    await check_all(running)


async def test_a_failed_task_is_run_again(engine):
    """The step before it is not; a task beside it may be, if its end was not recorded before the failure."""
    running = await engine(workflows=WORKFLOWS, tasks=[deliver])
    handle = await failed(running.client, with_task, "task")
    again = await handle.retry()

    assert ["first", "a", "b"] == await again.result(timeout=20)
    assert "step first" not in RAN
    assert {"task a", "task b"} >= set(RAN) != set()
    check_whole(with_task, await again.history(), again.id)
    await check_all(running)


async def test_it_may_fail_again_and_be_retried_again(engine):
    """From the new execution, or from the first one once more."""
    running = await engine(workflows=WORKFLOWS, tasks=[deliver])
    first = await failed(running.client, with_step, "step")
    DOWN["step"] = True
    second = await first.retry()
    with pytest.raises(WorkflowFailed):
        await second.result(timeout=20)
    DOWN["step"] = False
    third = await second.retry()
    assert ["first", "last"] == await third.result(timeout=20)
    fourth = await first.retry()
    assert ["first", "last"] == await fourth.result(timeout=20)
    assert fourth.id == (await first.describe()).successor
    await check_all(running)


async def test_one_that_was_terminated_continues_where_it_was(engine):
    """Everything but its end is kept."""
    running = await engine(workflows=WORKFLOWS, tasks=[deliver])
    handle = await running.client.start_workflow(wait_for_go)
    await waiting(handle)
    await handle.terminate("by mistake")
    RAN.clear()
    again = await handle.retry()
    await again.signal("go", "on")

    assert ["first", "on"] == await again.result(timeout=20)
    assert [] == RAN
    assert (await types(handle))[:-1] == (await types(again))[: len(await types(handle)) - 1]
    await check_all(running)


async def test_one_that_was_out_of_time_gets_its_time_again(engine):
    """The whole of its execution timeout, from now."""
    now = [1_800_000_000_000_000]
    running = await engine(workflows=WORKFLOWS, tasks=[deliver], clock=lambda: now[0], config=WATCHFUL)
    handle = await running.client.start_workflow(wait_for_go, execution_timeout=timedelta(hours=1))
    await waiting(handle)
    now[0] += 5 * 3600 * 10**6
    await reached(handle, WorkflowStatus.TIMED_OUT)
    again = await handle.retry()

    (deadline,) = await running.storage.timers("default", again.id)
    assert now[0] + 3600 * 10**6 == deadline.fire_at
    await again.signal("go", "on")
    assert ["first", "on"] == await again.result(timeout=20)


async def test_one_that_was_cancelled_has_not_been_asked_to(engine):
    """It goes on from before the request; signals that came after it are received."""
    running = await engine(workflows=WORKFLOWS, tasks=[deliver])
    handle = await running.client.start_workflow(wait_for_go)
    await waiting(handle)
    await handle.cancel()
    await reached(handle, WorkflowStatus.CANCELLED)
    again = await handle.retry()

    assert "CANCEL_REQUESTED" not in await types(again)
    await waiting(again)
    await again.signal("go", "on")
    assert ["first", "on"] == await again.result(timeout=20)
    await check_all(running)


async def test_cancelled_before_it_began(engine):
    """Even then: the start is kept."""
    running = await engine(workflows=WORKFLOWS, tasks=[deliver])
    handle = await running.client.start_workflow(wait_for_go)
    await handle.cancel()
    await reached(handle, WorkflowStatus.CANCELLED)
    again = await handle.retry()
    await again.signal("go", "on")

    assert ["first", "on"] == await again.result(timeout=20)


async def test_what_is_open_or_done_is_not_retried(engine, database_url):
    """An open one, a completed one, one whose workflow id is in use, one that is not there: typed, nothing changes."""
    running = await engine(workflows=WORKFLOWS, tasks=[deliver])
    client = running.client
    lost = await failed(client, with_step, "step")
    opened = await client.start_workflow(wait_for_go, workflow_id="w")
    await waiting(opened)
    done = await client.start_workflow(with_step)
    await done.result(timeout=20)
    before = dump(database_url)

    with pytest.raises(ExecutionOpen) as still:
        await opened.retry()
    assert opened.id == still.value.details["execution_id"]
    with pytest.raises(Conflict, match="COMPLETED") as over:
        await done.retry()
    assert "COMPLETED" == over.value.details["status"]
    with pytest.raises(WorkflowAlreadyRunning):
        await lost.retry()
    with pytest.raises(ExecutionNotFound):
        await client.retry_workflow("nobody")
    assert before == dump(database_url)


async def test_a_retried_child_does_not_tell_its_parent_twice(engine):
    """The parent has heard of its failure; the retried one stands alone."""

    @workflow
    async def patient(ctx: WorkflowContext) -> str:
        try:
            await ctx.child(born, workflow_id="the-child")
        except Exception as error:
            await ctx.wait_for_signal("go")
            return type(error).__name__
        return "no error"

    running = await engine(workflows=[*WORKFLOWS, patient], tasks=[deliver])
    DOWN["child"] = True
    handle = await running.client.start_workflow(patient)
    await waiting(handle)
    DOWN["child"] = False
    child = await running.client.find_workflow("the-child")
    await reached(child, WorkflowStatus.FAILED)
    again = await child.retry()

    assert "grown" == await again.result(timeout=20)
    await handle.signal("go")
    assert "ChildWorkflowFailed" == await handle.result(timeout=20)
    await check_all(running)
