"""Cancel asks the program, terminate does not; both leave nothing behind."""

import asyncio
from uuid import uuid4

import pytest

from holdfast import TaskContext, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.errors import ExecutionNotFound, WorkflowCancelled, WorkflowTerminated
from tests.conftest import until


@workflow
async def wait_for_go(ctx: WorkflowContext) -> str:
    await ctx.wait_for_signal("go")
    return "went"


async def has_status(handle, *statuses):
    return await handle.status() in statuses


async def waiting(handle):
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))


async def types(handle):
    return [event.type for event in await handle.history()]


# --- cancel -----------------------------------------------------------------------------------------------------------


async def test_cancel_ends_a_waiting_workflow(engine):
    """True; the history records request and end with the reason, and the result is an error that carries it."""
    client = (await engine(workflows=[wait_for_go])).client
    handle = await client.start_workflow(wait_for_go)
    await waiting(handle)

    assert await handle.cancel("no longer needed")
    with pytest.raises(WorkflowCancelled, match="no longer needed") as ended:
        await handle.result(timeout=10)
    assert ("workflow_cancelled", {"reason": "no longer needed"}) == (ended.value.code, ended.value.details)
    assert ["CANCEL_REQUESTED", "WORKFLOW_CANCELLED"] == (await types(handle))[-2:]
    assert WorkflowStatus.CANCELLED == await handle.status()


async def test_cancel_raises_at_the_await_and_cleanup_may_wait(engine):
    """The program gets CancelledError where it waits; its `finally` may run steps, tasks and sleeps."""
    cleaned = []

    @task
    async def clean(what: str) -> None:
        cleaned.append(what)

    @workflow
    async def careful(ctx: WorkflowContext) -> None:
        try:
            await ctx.wait_for_signal("go")
        except asyncio.CancelledError:
            await ctx.run(cleaned.append, "caught")
            raise
        finally:
            await ctx.task(clean, "task")
            await ctx.sleep(0.01)
            await ctx.run(cleaned.append, "step")

    client = (await engine(workflows=[careful], tasks=[clean])).client
    handle = await client.start_workflow(careful)
    await waiting(handle)
    await handle.cancel()

    with pytest.raises(WorkflowCancelled):
        await handle.result(timeout=10)
    assert ["caught", "task", "step"] == cleaned


async def test_a_program_that_catches_cancel_completes(engine):
    """What it returns is its result: it was asked, not told."""

    @workflow
    async def stubborn(ctx: WorkflowContext) -> str:
        try:
            await ctx.wait_for_signal("go")
        except asyncio.CancelledError:
            return "settled"
        return "went"

    client = (await engine(workflows=[stubborn])).client
    handle = await client.start_workflow(stubborn)
    await waiting(handle)

    assert await handle.cancel()
    assert "settled" == await handle.result(timeout=10)
    assert WorkflowStatus.COMPLETED == await handle.status()


async def test_the_reason_reaches_the_program(engine):
    """CancelledError carries it."""

    @workflow
    async def ask_why(ctx: WorkflowContext) -> str:
        try:
            await ctx.wait_for_signal("go")
        except asyncio.CancelledError as why:
            return str(why)
        return ""

    client = (await engine(workflows=[ask_why])).client
    handle = await client.start_workflow(ask_why)
    await waiting(handle)
    await handle.cancel("too late")

    assert "too late" == await handle.result(timeout=10)


async def test_a_second_cancel_changes_nothing(engine):
    """False while the first is being worked on: the program is asked once."""

    @workflow
    async def slow_to_leave(ctx: WorkflowContext) -> None:
        try:
            await ctx.wait_for_signal("go")
        finally:
            await ctx.wait_for_signal("leave")

    client = (await engine(workflows=[slow_to_leave])).client
    handle = await client.start_workflow(slow_to_leave)
    await waiting(handle)

    assert await handle.cancel()
    await waiting(handle)
    before = await handle.history()
    assert not await handle.cancel("again")
    assert before == await handle.history()
    await handle.signal("leave")
    with pytest.raises(WorkflowCancelled):
        await handle.result(timeout=10)


async def test_cancels_at_once_are_one(engine):
    """Of many concurrent cancels exactly one changes something."""
    client = (await engine(workflows=[wait_for_go])).client
    handle = await client.start_workflow(wait_for_go)
    answers = await asyncio.gather(*(handle.cancel() for _ in range(20)))

    assert [True] == [answer for answer in answers if answer]
    with pytest.raises(WorkflowCancelled):
        await handle.result(timeout=10)
    assert 1 == (await types(handle)).count("CANCEL_REQUESTED")


async def test_a_closed_execution_cannot_be_cancelled(engine):
    """False, and its history stays as it is."""
    client = (await engine(workflows=[wait_for_go])).client
    handle = await client.start_workflow(wait_for_go)
    await handle.signal("go")
    await handle.result(timeout=10)
    before = await handle.history()

    assert not await handle.cancel()
    assert before == await handle.history()
    assert "went" == await handle.result(timeout=10)


@pytest.mark.parametrize("verb", ["cancel", "terminate"])
async def test_an_unknown_execution_is_an_error(engine, verb):
    """Neither cancelled nor terminated: the error names the id."""
    client = (await engine(workflows=[wait_for_go])).client
    nobody = str(uuid4())
    with pytest.raises(ExecutionNotFound, match=nobody):
        await getattr(client.workflow(nobody), verb)()


async def test_cancel_before_the_first_turn(engine):
    """A program that has not begun is cancelled at its first await; nothing it would have done happens."""
    done: list[str] = []

    @workflow
    async def eager(ctx: WorkflowContext) -> None:
        await ctx.run(done.append, "step")
        done.append("went on")

    client = (await engine()).client
    with_kind = await engine(workflows=[eager])
    await with_kind.shutdown()
    handle = await client.start_workflow("eager")
    assert await handle.cancel()
    await engine(workflows=[eager])

    with pytest.raises(WorkflowCancelled):
        await handle.result(timeout=15)
    assert "went on" not in done


async def test_cancel_takes_back_what_was_waited_for(engine):
    """The task's body is stopped, its row and the timer's are gone: nothing outlives its reason."""
    stopped = asyncio.Event()
    begun = asyncio.Event()

    @task
    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await asyncio.gather(ctx.task(endless), ctx.sleep(3600))

    client = (await engine(workflows=[parent], tasks=[endless])).client
    handle = await client.start_workflow(parent)
    await begun.wait()
    await handle.cancel()
    with pytest.raises(WorkflowCancelled):
        await handle.result(timeout=10)
    await asyncio.wait_for(stopped.wait(), 10)

    assert [] == await handle.pending_tasks()
    assert [] == await handle.pending_timers()


async def test_cancel_of_a_workflow_in_a_step(engine):
    """A step that runs is stopped too, and the workflow ends without waiting for it."""
    begun = asyncio.Event()
    stopped = asyncio.Event()

    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @workflow
    async def stepping(ctx: WorkflowContext) -> None:
        await ctx.run(endless)

    client = (await engine(workflows=[stepping])).client
    handle = await client.start_workflow(stepping)
    await begun.wait()
    await handle.cancel()

    with pytest.raises(WorkflowCancelled):
        await handle.result(timeout=10)
    await asyncio.wait_for(stopped.wait(), 10)


# --- terminate --------------------------------------------------------------------------------------------------------


async def test_terminate_ends_at_once(engine):
    """The program is not asked: no cleanup runs, and the reason is recorded."""
    cleaned: list[int] = []

    @workflow
    async def careful(ctx: WorkflowContext) -> None:
        try:
            await ctx.wait_for_signal("go")
        finally:
            await ctx.run(cleaned.append, 1)

    client = (await engine(workflows=[careful])).client
    handle = await client.start_workflow(careful)
    await waiting(handle)

    assert await handle.terminate("runaway")
    with pytest.raises(WorkflowTerminated, match="runaway") as ended:
        await handle.result(timeout=10)
    assert ("workflow_terminated", {"reason": "runaway"}) == (ended.value.code, ended.value.details)
    assert "WORKFLOW_TERMINATED" == (await types(handle))[-1]
    assert [] == cleaned


async def test_a_closed_execution_cannot_be_terminated(engine):
    """False the second time, and nothing is appended."""
    client = (await engine(workflows=[wait_for_go])).client
    handle = await client.start_workflow(wait_for_go)
    assert await handle.terminate()
    before = await handle.history()

    assert not await handle.terminate()
    assert before == await handle.history()


async def test_terminate_leaves_nothing_behind(engine):
    """A running task body is stopped and told, timers and tasks are gone, a late report changes nothing."""
    contexts = []
    stopped = asyncio.Event()

    @task
    async def endless(ctx: TaskContext) -> None:
        contexts.append(ctx)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            raise

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await asyncio.gather(ctx.task(endless), ctx.sleep(3600))

    client = (await engine(workflows=[parent], tasks=[endless])).client
    handle = await client.start_workflow(parent)
    await until(lambda: contexts)
    await handle.terminate()
    await asyncio.wait_for(stopped.wait(), 10)

    assert contexts[0].is_cancelled
    assert [] == await handle.pending_tasks()
    assert [] == await handle.pending_timers()
    assert "WORKFLOW_TERMINATED" == (await types(handle))[-1]


async def test_terminate_while_a_step_runs(engine):
    """The step is stopped and its outcome is never recorded."""
    begun = asyncio.Event()
    stopped = asyncio.Event()

    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @workflow
    async def stepping(ctx: WorkflowContext) -> None:
        await ctx.run(endless)

    client = (await engine(workflows=[stepping])).client
    handle = await client.start_workflow(stepping)
    await begun.wait()
    await handle.terminate()
    await asyncio.wait_for(stopped.wait(), 10)

    assert ["WORKFLOW_STARTED", "WORKFLOW_TERMINATED"] == await types(handle)
