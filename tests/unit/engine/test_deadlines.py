"""Execution timeouts: when the time is over the execution ends, whoever is at work on it."""

import asyncio
from datetime import timedelta

import pytest

from holdfast import WorkflowContext, WorkflowStatus, task, workflow
from holdfast.errors import InvalidDuration, WorkflowTimedOut
from holdfast.model import events as e
from tests.conftest import WATCHFUL, until
from tests.unit.engine.records import check_all, dump, reached, types, waiting

NOW = 1_800_000_000_000_000
HOUR = 3_600_000_000


class Clock:
    """Moved by hand. `recover` lets an engine look at once."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@task
async def sleep_long() -> None:
    await asyncio.sleep(3600)


@workflow
async def wait_for_go(ctx: WorkflowContext) -> str:
    await ctx.wait_for_signal("go")
    return "went"


@workflow
async def occupied(ctx: WorkflowContext) -> None:
    await asyncio.gather(ctx.task(sleep_long), ctx.sleep(50 * 3600))


@workflow(execution_timeout=timedelta(hours=1))
async def declared(ctx: WorkflowContext) -> None:
    await ctx.wait_for_signal("go")


async def test_it_ends_when_its_time_is_over_and_not_before(engine, clock):
    """Status, event and error say so; everything it had is gone."""
    running = await engine(workflows=[occupied], tasks=[sleep_long], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(occupied, execution_timeout=timedelta(hours=2))
    await waiting(handle)
    clock.now = NOW + 2 * HOUR - 1
    await running.recover()
    assert (await handle.status()).is_open

    clock.now = NOW + 2 * HOUR
    with pytest.raises(WorkflowTimedOut, match="execution timeout") as ended:
        await handle.result(timeout=20)
    assert "workflow_timed_out" == ended.value.code
    assert WorkflowStatus.TIMED_OUT == await handle.status()
    assert e.WorkflowTimedOut(expires_at=NOW + 2 * HOUR) == (await handle.history())[-1].body
    assert [] == await handle.pending_tasks() == await handle.pending_timers()
    await check_all(running)


async def test_real_time_ends_it_as_well(engine):
    """No clock is moved: a short timeout passes, and whoever waits for the result is told."""
    client = (await engine(workflows=[wait_for_go])).client
    handle = await client.start_workflow(wait_for_go, execution_timeout=0.05)

    with pytest.raises(WorkflowTimedOut):
        await handle.result(timeout=20)


async def test_one_that_ends_in_time_leaves_no_deadline(engine, clock):
    """The row of the deadline goes with the end; nothing happens later."""
    running = await engine(workflows=[wait_for_go], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(wait_for_go, execution_timeout=60)
    await handle.signal("go")

    assert "went" == await handle.result(timeout=20)
    assert [] == await running.storage.timers("default", handle.id)
    clock.now += HOUR
    await running.recover()
    assert WorkflowStatus.COMPLETED == await handle.status()


async def test_the_deadline_is_nobodys_timer(engine, clock):
    """It is no pending timer, not waited for, and recover finds nothing to repair."""
    running = await engine(workflows=[wait_for_go], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(wait_for_go, execution_timeout=60)
    await waiting(handle)

    assert [] == await handle.pending_timers()
    assert ["signal"] == [wait.kind for wait in (await handle.describe()).waiting_for]
    assert 0 == (await running.recover()).repaired
    assert (await handle.status()).is_open
    await check_all(running)


async def test_the_program_s_own_timers_count_from_one(engine, clock):
    """A deadline does not take a number from them."""
    running = await engine(workflows=[occupied], tasks=[sleep_long], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(occupied, execution_timeout=60)
    await waiting(handle)

    assert [1] == [timer.timer_no for timer in await handle.pending_timers()]


async def test_a_declared_timeout_counts_unless_the_start_says_otherwise(engine, clock):
    """`@workflow(execution_timeout=...)` is the default of every start; signal-with-start has it, too."""
    running = await engine(workflows=[declared], clock=clock, config=WATCHFUL)
    client = running.client
    first = await client.start_workflow(declared)
    second = await client.start_workflow(declared, execution_timeout=5 * 3600)
    third = await client.signal_with_start_workflow("w", declared, signal_name="x")
    fourth = await client.signal_with_start_workflow("v", declared, signal_name="x", execution_timeout=3 * 3600)

    ids = [first.id, second.id, third.workflow_execution_id, fourth.workflow_execution_id]
    started = [(await client.history(key))[0].body.expires_at for key in ids]
    assert [NOW + hours * HOUR for hours in (1, 5, 1, 3)] == started


async def test_a_worker_that_holds_it_is_turned_away(engine, clock):
    """Its step ends in nothing: the commit is refused, and the terminal event stays the last."""
    entered, go = asyncio.Event(), asyncio.Event()
    finished = []

    async def hold() -> None:
        entered.set()
        try:
            await go.wait()
        finally:
            finished.append(True)

    @workflow
    async def holding(ctx: WorkflowContext) -> None:
        await ctx.run(hold)

    running = await engine(workflows=[holding, wait_for_go], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(holding, execution_timeout=60)
    await entered.wait()
    clock.now += HOUR
    await running.recover()
    go.set()
    await until(lambda: finished)

    assert WorkflowStatus.TIMED_OUT == await handle.status()
    other = await running.client.start_workflow(wait_for_go)
    await other.signal("go")
    assert "went" == await other.result(timeout=20)
    assert ["WORKFLOW_STARTED", "WORKFLOW_TIMED_OUT"] == await types(handle)
    await check_all(running)


async def test_a_deadline_passes_while_nobody_runs(engine, clock):
    """Whoever opens the database next ends the execution at once."""
    first = await engine(workflows=[wait_for_go], clock=clock, config=WATCHFUL)
    handle = await first.client.start_workflow(wait_for_go, execution_timeout=60)
    await waiting(handle)
    await first.shutdown()
    clock.now += HOUR

    second = await engine(clock=clock, config=WATCHFUL)
    await reached(second.client.workflow(handle.id), WorkflowStatus.TIMED_OUT)


async def test_one_that_never_began_ends_as_well(engine, clock):
    """No worker has its code: it times out all the same."""
    first = await engine(workflows=[wait_for_go], clock=clock, config=WATCHFUL)
    await first.shutdown()
    second = await engine(clock=clock, config=WATCHFUL)
    handle = await second.client.start_workflow("wait_for_go", execution_timeout=60)
    clock.now += HOUR

    await reached(handle, WorkflowStatus.TIMED_OUT)


async def test_a_thousand_and_more_deadlines_at_once(engine, clock):
    """More than a page: all of them end."""
    running = await engine(workflows=[wait_for_go], clock=clock, config=WATCHFUL)
    handles = await asyncio.gather(
        *(running.client.start_workflow(wait_for_go, execution_timeout=60) for _ in range(1_100))
    )
    clock.now += HOUR
    await running.recover()

    assert {WorkflowStatus.TIMED_OUT: 1_100} == await running.client.count_workflows()
    assert 1_100 == len(handles)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 10**12, timedelta(days=-1), "60", True])
async def test_what_is_no_duration_is_refused(engine, database_url, timeout):
    """Typed, naming the field; nothing is started."""
    client = (await engine(workflows=[wait_for_go])).client
    before = dump(database_url)

    for call in (
        lambda: client.start_workflow(wait_for_go, execution_timeout=timeout),
        lambda: client.signal_with_start_workflow("w", wait_for_go, signal_name="s", execution_timeout=timeout),
    ):
        with pytest.raises(InvalidDuration) as refused:
            await call()
        assert "execution_timeout" == refused.value.field
    assert before == dump(database_url)
