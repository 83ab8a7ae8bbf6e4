"""Children: begun with their parent's event, heard of once, and what becomes of them when the parent closes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import WorkflowContext, WorkflowStatus, errors, workflow
from holdfast.engine.turns.checks import refusal_of
from holdfast.model import commands as c
from holdfast.model import events as e
from tests.conftest import OpenEngine, until
from tests.replay.recording import check_whole
from verification import invariants


@workflow
async def double(ctx: WorkflowContext, number: int) -> int:
    return 2 * number


@workflow
async def failing(ctx: WorkflowContext, text: str = "no") -> int:
    raise ValueError(text)


@workflow
async def waiting(ctx: WorkflowContext) -> str:
    """Waits for `go`; says so when it was cancelled and has cleaned up."""
    try:
        return await ctx.wait_for_signal("go", str)
    except asyncio.CancelledError:
        await ctx.run(cleaned_up)
        raise


async def cleaned_up() -> None: ...


@workflow
async def asks_double(ctx: WorkflowContext, number: int) -> int:
    return await ctx.child(double, number)


@workflow
async def grandparent(ctx: WorkflowContext, number: int) -> int:
    return await ctx.child(asks_double, number) + 1


@workflow
async def catches(ctx: WorkflowContext, kind: str) -> dict[str, Any]:
    try:
        await ctx.child(kind)
    except errors.ChildWorkflowFailed as error:
        return {"type": type(error).__name__, "status": error.status, "error_type": error.error_type}
    return {}


@workflow
async def awaits(ctx: WorkflowContext, policy: str = "default") -> str:
    return await ctx.child(waiting, workflow_id="the-child", on_parent_close=policy)


@workflow
async def leaves(ctx: WorkflowContext, policy: str = "default") -> str:
    return ctx.child(waiting, workflow_id="the-child", on_parent_close=policy).execution_id


@workflow
async def leaves_and_fails(ctx: WorkflowContext, policy: str = "default") -> str:
    ctx.child(waiting, workflow_id="the-child", on_parent_close=policy)
    await ctx.wait_for_signal("end")
    raise ValueError("parent failed")


ALL: list[Any] = [double, failing, waiting, asks_double, grandparent, catches, awaits, leaves, leaves_and_fails]


async def test_a_child_gives_its_result(engine: OpenEngine):
    """Awaited, it is a value like any other; both histories tell of it, and both replay."""
    opened = await engine(workflows=ALL)
    handle = await opened.client.start_workflow(asks_double, 21)
    assert 42 == await handle.result()
    history = await handle.history()
    started = next(event.body for event in history if isinstance(event.body, e.ChildStarted))
    ended = next(event.body for event in history if isinstance(event.body, e.ChildCompleted))
    assert started.child_execution_id == ended.child_execution_id
    child = opened.client.workflow(started.child_execution_id, double)
    assert 42 == await child.result()
    begun = (await child.history())[0].body
    assert isinstance(begun, e.WorkflowStarted)
    assert (handle.id, 1, 1) == (begun.parent_execution_id, begun.child_no, begun.depth)
    check_whole(asks_double, history, handle.id)
    assert [] == invariants.check(await invariants.read(opened.storage))


async def test_children_of_children(engine: OpenEngine):
    opened = await engine(workflows=ALL)
    assert 11 == await (await opened.client.start_workflow(grandparent, 5)).result()


async def test_a_failing_child_raises_at_the_await(engine: OpenEngine):
    """004-30: catchable, with the child's own error in it."""
    opened = await engine(workflows=ALL)
    found = await (await opened.client.start_workflow(catches, "failing")).result()
    assert {"type": "ChildWorkflowFailed", "status": "failed", "error_type": "ValueError"} == found


async def test_a_child_of_an_unknown_kind_does_not_begin(engine: OpenEngine):
    """A typed error at the await; nothing but the parent's own history has changed."""
    opened = await engine(workflows=ALL)
    found = await (await opened.client.start_workflow(catches, "no-such-kind")).result()
    assert {"type": "ChildNotStarted", "status": "not_started", "error_type": "UnknownWorkflowKind"} == found
    assert 1 == sum((await opened.client.count_workflows()).values())


@pytest.mark.parametrize(
    ("end", "status"), [("terminate", "terminated"), ("cancel", "cancelled")], ids=["terminated", "cancelled"]
)
async def test_a_child_that_is_ended_from_outside(engine: OpenEngine, end: str, status: str):
    """The parent hears how."""

    @workflow
    async def tells(ctx: WorkflowContext) -> str:
        try:
            await ctx.child(waiting, workflow_id="the-child")
        except errors.ChildWorkflowFailed as error:
            return error.status
        return "completed"

    opened = await engine(workflows=[tells, waiting])
    handle = await opened.client.start_workflow(tells)
    child = await until_child(opened.client)
    assert await getattr(child, end)("enough")
    assert status == await handle.result()


async def until_child(client: Any) -> Any:
    async def found() -> Any:
        try:
            handle = await client.find_workflow("the-child")
        except errors.ExecutionNotFound:
            return None
        return handle if await handle.status() is WorkflowStatus.WAITING else None

    return await until(found)


async def test_cancelling_the_parent_cancels_the_child_it_awaits(engine: OpenEngine):
    """Cancellation flows down, and the child has time to clean up though its parent is gone by then."""
    opened = await engine(workflows=ALL)
    handle = await opened.client.start_workflow(awaits)
    child = await until_child(opened.client)
    assert await handle.cancel()
    with pytest.raises(errors.WorkflowCancelled):
        await handle.result()
    with pytest.raises(errors.WorkflowCancelled):
        await child.result()
    assert any(isinstance(event.body, e.StepCompleted) for event in await child.history())


async def test_a_child_nobody_awaits_outlives_a_parent_that_completes(engine: OpenEngine):
    """004-31: left alone, it goes on."""
    opened = await engine(workflows=ALL)
    assert await (await opened.client.start_workflow(leaves)).result()
    child = await until_child(opened.client)
    await child.signal("go", "on")
    assert "on" == await child.result()
    assert [] == invariants.check(await invariants.read(opened.storage))


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ("default", WorkflowStatus.CANCELLED),
        ("cancel", WorkflowStatus.CANCELLED),
        ("terminate", WorkflowStatus.TERMINATED),
        ("abandon", WorkflowStatus.WAITING),
    ],
)
async def test_what_becomes_of_a_child_when_its_parent_fails(engine: OpenEngine, policy: str, status: WorkflowStatus):
    opened = await engine(workflows=ALL)
    handle = await opened.client.start_workflow(leaves_and_fails, policy)
    child = await until_child(opened.client)
    await handle.signal("end")
    with pytest.raises(errors.WorkflowFailed):
        await handle.result()
    await until_settled(opened)
    assert status == await child.status()


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ("cancel", WorkflowStatus.CANCELLED),
        ("terminate", WorkflowStatus.TERMINATED),
        ("abandon", WorkflowStatus.WAITING),
    ],
)
async def test_what_becomes_of_a_child_when_its_parent_completes(
    engine: OpenEngine, policy: str, status: WorkflowStatus
):
    opened = await engine(workflows=ALL)
    await (await opened.client.start_workflow(leaves, policy)).result()
    await until_settled(opened)
    child = await opened.client.find_workflow("the-child")
    await until(lambda: is_at(child, status))


async def is_at(handle: Any, status: WorkflowStatus) -> bool:
    return await handle.status() is status


async def until_settled(opened: Any) -> None:
    """Until no closed parent has anything left to decide, and nothing is to be run."""

    async def settled() -> bool:
        execution_rows = [record.execution_row for record in await invariants.read(opened.storage)]
        return not any(
            execution_row.open_children for execution_row in execution_rows if not execution_row.is_open
        ) and not any(execution_row.ready for execution_row in execution_rows)

    await until(settled)


async def test_fate_reaches_grandchildren(engine: OpenEngine):
    """A terminated parent takes the whole family along."""

    @workflow
    async def middle(ctx: WorkflowContext) -> None:
        await ctx.child(waiting, workflow_id="the-child", on_parent_close="terminate")

    @workflow
    async def top(ctx: WorkflowContext) -> None:
        await ctx.child(middle, on_parent_close="terminate")

    opened = await engine(workflows=[top, middle, waiting])
    handle = await opened.client.start_workflow(top)
    child = await until_child(opened.client)
    assert await handle.terminate("enough")
    with pytest.raises(errors.WorkflowTerminated):
        await child.result(timeout=20)


@pytest.mark.parametrize("how", ["completes", "fails", "is cancelled"])
@pytest.mark.parametrize("first", ["child", "parent"])
async def test_a_child_ends_while_its_parent_closes(engine: OpenEngine, how: str, first: str):
    """In both orders: no event twice, none after the end, nobody bound to a closed parent."""

    @workflow
    async def child(ctx: WorkflowContext) -> None:
        await ctx.wait_for_signal("end")
        if how == "fails":
            raise ValueError(how)

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        ctx.child(child, workflow_id="the-child", on_parent_close="terminate")
        await ctx.wait_for_signal("end")

    opened = await engine(workflows=[parent, child])
    for _ in range(10):
        handle = await opened.client.start_workflow(parent)
        young = await until_child(opened.client)
        end_child = young.cancel() if how == "is cancelled" else young.signal("end")
        calls = [end_child, handle.signal("end")]
        await asyncio.gather(*(calls if first == "child" else reversed(calls)))
        await handle.result()
        await until_settled(opened)
        ends = [event for event in await handle.history() if isinstance(event.body, e.ChildCompleted | e.ChildFailed)]
        assert len(ends) <= 1
        assert not (await young.status()).is_open
    assert [] == invariants.check(await invariants.read(opened.storage))


async def test_a_child_with_the_workflow_id_of_an_open_execution(engine: OpenEngine):
    """Refused by default; adopted on request, and then it lives its own life."""

    @workflow
    async def starts(ctx: WorkflowContext, if_running: str) -> str:
        try:
            return await ctx.child(waiting, workflow_id="the-child", if_running=if_running)
        except errors.ChildNotStarted as error:
            return error.error_type

    opened = await engine(workflows=[starts, waiting])
    running = await opened.client.start_workflow(waiting, workflow_id="the-child")
    assert "WorkflowAlreadyRunning" == await (await opened.client.start_workflow(starts, "fail")).result()
    adopter = await opened.client.start_workflow(starts, "use_existing")
    await until(lambda: is_at(adopter, WorkflowStatus.WAITING))
    second = await opened.client.start_workflow(starts, "use_existing")
    assert "WorkflowAlreadyRunning" == await second.result()
    await running.signal("go", "well")
    assert "well" == await adopter.result()


async def test_a_parent_talks_to_its_child(engine: OpenEngine):
    """Signals by the handle reach the child, even one that was started in the same turn."""

    @workflow
    async def talks(ctx: WorkflowContext) -> str:
        child = ctx.child(waiting)
        await child.signal("go", "hello")
        return await child

    opened = await engine(workflows=[talks, waiting])
    assert "hello" == await (await opened.client.start_workflow(talks)).result()


async def test_losers_of_a_race_are_cancelled(engine: OpenEngine):
    @workflow
    async def races(ctx: WorkflowContext) -> int:
        won = await ctx.race(ctx.child(waiting, workflow_id="the-child"), ctx.child(double, 4))
        return int(won.result)

    opened = await engine(workflows=[races, waiting, double])
    assert 8 == await (await opened.client.start_workflow(races)).result()
    child = await opened.client.find_workflow("the-child")
    with pytest.raises(errors.WorkflowCancelled):
        await child.result(timeout=20)


async def test_failures_can_be_looked_at_instead_of_raised(engine: OpenEngine):
    """H28."""

    @workflow
    async def looks(ctx: WorkflowContext) -> str:
        found = await ctx.child(failing, "broken", propagate_failure=False)
        assert isinstance(found.error, errors.ChildWorkflowFailed)
        return f"{found.status}: {found.error.error_type}"

    opened = await engine(workflows=[looks, failing])
    assert "failed: ValueError" == await (await opened.client.start_workflow(looks)).result()


async def test_a_parent_waits_for_a_child_that_continues_as_new(engine: OpenEngine):
    """The link moves along: the parent gets the last run's result, signals by the handle reach the run that is open."""

    @workflow
    async def counts(ctx: WorkflowContext, number: int) -> int:
        await ctx.wait_for_signal("next")
        if number < 3:
            ctx.continue_as_new(number + 1)
        return number

    @workflow
    async def waits(ctx: WorkflowContext) -> int:
        child = ctx.child(counts, 1)
        for _ in range(3):
            await child.signal("next")
        return await child

    opened = await engine(workflows=[waits, counts])
    handle = await opened.client.start_workflow(waits)
    assert 3 == await handle.result()
    assert [] == invariants.check(await invariants.read(opened.storage))


async def test_many_children(engine: OpenEngine):
    """A thousand at once, each heard of once."""

    @workflow
    async def many(ctx: WorkflowContext, count: int) -> int:
        return sum(await ctx.all([ctx.child(double, number) for number in range(count)]))

    opened = await engine(workflows=[many, double])
    handle = await opened.client.start_workflow(many, 1_000)
    assert 999_000 == await handle.result()
    ends = [event.body.child_no for event in await handle.history() if isinstance(event.body, e.ChildCompleted)]
    assert list(range(1, 1_001)) == sorted(ends)


async def test_too_deep(engine: OpenEngine):
    """A workflow that starts itself for ever is stopped."""

    @workflow
    async def deeper(ctx: WorkflowContext) -> int:
        try:
            return 1 + await ctx.child("deeper")
        except errors.ChildNotStarted:
            return 0

    opened = await engine(workflows=[deeper])
    assert 100 == await (await opened.client.start_workflow(deeper)).result()


@pytest.mark.parametrize("field", ["on_parent_close", "if_running"])
def test_a_worker_cant_ask_for_a_fate_that_nobody_knows(field: str):
    """It would be found out when the parent closes, by whoever looks after all executions."""
    asked: dict[str, Any] = {"child_no": 1, "child_execution_id": "c", "kind": "k", field: "NONSENSE"}
    refusal = refusal_of([c.Turn(up_to=1, commands=(c.StartChild(**asked),))])

    assert refusal is not None
    assert field == refusal.field
