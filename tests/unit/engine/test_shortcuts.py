"""The short forms of Engine, for scripts: start, query, cancel, recover, shutdown, storage."""

import asyncio
from functools import partial
from uuid import uuid4

import pytest

from holdfast import Engine, EngineConfig, Limits, RecoveryReport, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.errors import EngineStopped, WorkflowCancelled, WorkflowFailed, WorkflowTerminated
from tests.conftest import until
from tests.database_access import change, rows


@workflow
async def wait_for_go(ctx: WorkflowContext, answer: str = "went") -> str:
    await ctx.wait_for_signal("go")
    return answer


@workflow
async def break_down(ctx: WorkflowContext) -> None:
    raise ValueError("no")


async def is_open_and_waiting(engine, execution_id):
    return await engine.query_status(execution_id) is WorkflowStatus.WAITING


async def test_start_answers_with_the_id(engine):
    """A new execution each time, or the open one of the given workflow id."""
    running = await engine(workflows=[wait_for_go])
    one = await running.start(wait_for_go, "a", workflow_id="w")

    assert isinstance(one, str)
    assert one == await running.start(wait_for_go, "b", workflow_id="w")
    assert one != await running.start("wait_for_go", "c")


async def test_query_status(engine):
    """The status of an execution, at every stage; None for one that does not exist."""
    running = await engine(workflows=[wait_for_go])
    execution = await running.start(wait_for_go)
    await until(lambda: is_open_and_waiting(running, execution))
    await running.client.signal_workflow(execution, "go")
    await running.client.workflow(execution).result(timeout=10)

    assert WorkflowStatus.COMPLETED == await running.query_status(execution)
    assert await running.query_status(str(uuid4())) is None


async def test_query_result(engine):
    """None while it is open or unknown; the result once it is there, as often as asked."""
    running = await engine(workflows=[wait_for_go])
    execution = await running.start(wait_for_go, "there")

    assert await running.query_result(execution) is None
    assert await running.query_result(str(uuid4())) is None
    await running.client.signal_workflow(execution, "go")
    await running.client.workflow(execution).result(timeout=10)
    assert ["there", "there"] == [await running.query_result(execution) for _ in range(2)]


async def test_query_result_of_what_ended_without_one(engine):
    """Failed, cancelled, terminated: the error that says so."""
    running = await engine(workflows=[wait_for_go, break_down])
    failed = await running.start(break_down)
    cancelled = await running.start(wait_for_go)
    terminated = await running.start(wait_for_go)
    await running.cancel(cancelled)
    await running.client.terminate_workflow(terminated)
    for execution, error in (
        (failed, WorkflowFailed),
        (cancelled, WorkflowCancelled),
        (terminated, WorkflowTerminated),
    ):
        with pytest.raises(error):
            await running.client.workflow(execution).result(timeout=10)
        with pytest.raises(error):
            await running.query_result(execution)


async def test_cancel(engine):
    """True the first time; False when asked before, closed or unknown."""
    running = await engine(workflows=[wait_for_go])
    execution = await running.start(wait_for_go)

    assert await running.cancel(execution)
    with pytest.raises(WorkflowCancelled):
        await running.client.workflow(execution).result(timeout=10)
    assert not await running.cancel(execution)
    assert not await running.cancel(str(uuid4()))


async def test_recover_with_nothing_to_do(engine):
    """The report counts what is open and repairs nothing."""
    running = await engine(workflows=[wait_for_go])
    execution = await running.start(wait_for_go)
    await until(lambda: is_open_and_waiting(running, execution))
    report = await running.recover()

    assert RecoveryReport(open_executions=1) == report
    assert 0 == report.repaired


async def test_recover_mends_rows_deleted_by_hand(engine, database_url):
    """A deleted ready row, timer or task: each is found, and its workflow goes on to its end."""
    ran = []

    @task
    async def work() -> str:
        ran.append("work")
        return "worked"

    @workflow
    async def signalled(ctx: WorkflowContext) -> object:
        return await ctx.wait_for_signal("go")

    @workflow
    async def sleeping(ctx: WorkflowContext) -> str:
        await ctx.sleep(3600)
        return "slept"

    @workflow
    async def working(ctx: WorkflowContext) -> str:
        return await ctx.task(work)

    first = await engine(workflows=[signalled, sleeping, working])  # nobody runs the task yet
    executions = {fn: await first.start(fn) for fn in (signalled, sleeping, working)}
    for execution in executions.values():
        await until(partial(is_open_and_waiting, first, execution))
    await first.shutdown()
    outside = await engine()
    await outside.client.signal_workflow(executions[signalled], "go", 1)
    await outside.shutdown()
    for table in ("ready", "timers", "tasks"):
        assert 1 == await change(database_url, f"DELETE FROM holdfast_{table}"), table

    last = await engine(workflows=[signalled, sleeping, working], tasks=[work])
    report = await last.recover()

    assert (3, 1, 1, 1) == (
        report.open_executions,
        report.made_ready,
        report.timers_restored,
        report.tasks_restored,
    )
    assert 3 == report.repaired
    results = [await last.client.workflow(execution).result(timeout=10) for execution in executions.values()]
    assert [1, "slept", "worked"] == results
    assert ["work"] == ran
    assert 0 == (await last.recover()).repaired


async def test_recover_names_what_is_stuck(engine):
    """Executions that can't go on by themselves are listed for a person to look at."""

    @workflow
    async def blocked(ctx: WorkflowContext) -> None:
        await asyncio.Event().wait()

    running = await engine(workflows=[blocked])
    execution = await running.start(blocked)
    await until(lambda: has_status(running, execution, WorkflowStatus.STUCK))

    assert (execution,) == (await running.recover()).stuck


async def test_recover_looks_at_its_own_org(engine):
    """The report is about the org of the engine, not about others on the same database."""
    blue = await engine(workflows=[wait_for_go], org="blue")
    red = await engine(workflows=[wait_for_go], org="red")
    execution = await blue.start(wait_for_go)
    await until(lambda: is_open_and_waiting(blue, execution))

    assert 1 == (await blue.recover()).open_executions
    assert 0 == (await red.recover()).open_executions


async def test_recover_fires_what_is_due(engine):
    """Timers that came due while nothing ran are fired at once and counted."""
    now = [1_000_000_000_000_000]

    def clock() -> int:
        return now[0]

    @workflow
    async def sleeping(ctx: WorkflowContext) -> str:
        await ctx.sleep(30 * 86_400)
        return "slept"

    first = await engine(workflows=[sleeping], clock=clock)
    execution = await first.start(sleeping)
    await until(lambda: is_open_and_waiting(first, execution))
    await first.shutdown()
    now[0] += 31 * 86_400 * 1_000_000
    second = await engine(clock=clock)  # no worker: nothing but the timer can move
    fired_before = await until(lambda: timer_events(second, execution))
    third = await engine(workflows=[sleeping], clock=clock)

    assert 1 == fired_before
    assert "slept" == await third.client.workflow(execution).result(timeout=10)


async def timer_events(engine, execution):
    await engine.recover()
    return sum(event.type == "TIMER_FIRED" for event in await engine.client.history(execution))


async def has_status(engine, execution, status):
    return await engine.query_status(execution) is status


async def test_shutdown_stops_everything(engine):
    """Afterwards every call is refused with EngineStopped, and a second shutdown does nothing."""
    running = await engine(workflows=[wait_for_go])
    execution = await running.start(wait_for_go)
    await running.shutdown()
    await running.shutdown()

    for call in (
        lambda: running.start(wait_for_go),
        lambda: running.client.signal_workflow(execution, "go"),
        lambda: running.client.signal_with_start_workflow("w", wait_for_go, signal_name="go"),
        lambda: running.query_status(execution),
        lambda: running.cancel(execution),
        running.recover,
        running.client.list_workflows,
    ):
        with pytest.raises(EngineStopped) as refused:
            await call()
        assert "engine_stopped" == refused.value.code


async def test_shutdown_tells_who_waits(engine):
    """A caller that waits for a result gets EngineStopped instead of waiting for ever."""
    running = await engine(workflows=[wait_for_go])
    execution = await running.start(wait_for_go)
    waiter = asyncio.create_task(running.client.workflow(execution).result())
    await until(lambda: is_open_and_waiting(running, execution))
    await running.shutdown()

    with pytest.raises(EngineStopped):
        await asyncio.wait_for(waiter, 10)


async def test_shutdown_leaves_no_lease_behind(engine, database_url):
    """The next engine goes on at once: no session, no leased row is left in the database."""
    begun = asyncio.Event()

    @task
    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await ctx.task(endless)

    running = await engine(workflows=[parent, wait_for_go], tasks=[endless])
    await running.start(parent)
    await running.start(wait_for_go)
    await begun.wait()
    await running.shutdown()
    held = [
        rows(database_url, query)[0][0]
        for query in (
            "SELECT count(*) FROM holdfast_workers",
            "SELECT count(*) FROM holdfast_ready WHERE worker IS NOT NULL",
            "SELECT count(*) FROM holdfast_tasks WHERE worker IS NOT NULL",
        )
    ]

    assert [0, 0, 0] == held


async def test_work_continues_after_a_restart(engine):
    """What waited before a shutdown goes on in the next engine, from where it was."""
    first = await engine(workflows=[wait_for_go])
    execution = await first.start(wait_for_go, "after the restart")
    await until(lambda: is_open_and_waiting(first, execution))
    await first.shutdown()
    second = await engine(workflows=[wait_for_go])
    await second.client.signal_workflow(execution, "go")

    assert "after the restart" == await second.client.workflow(execution).result(timeout=10)


async def test_starting_up_twice_is_starting_up_once(engine):
    """`open` on a running engine changes nothing."""
    running = await engine(workflows=[wait_for_go])
    session = running.worker.session
    await running.open()

    assert session == running.worker.session


async def test_an_engine_that_was_never_started_refuses(database_url):
    """Outside `async with` it says what to do."""
    idle = Engine(database_url, workflows=[wait_for_go])
    with pytest.raises(EngineStopped, match="async with Engine"):
        await idle.start(wait_for_go)
    with pytest.raises(EngineStopped):
        await idle.recover()


async def test_storage_is_the_one_store(engine):
    """What the engine writes can be read from `storage`, which holds everything."""
    running = await engine(workflows=[wait_for_go])
    execution = await running.start(wait_for_go)
    events = await running.storage.history("default", execution)

    assert "WORKFLOW_STARTED" == events[0].type
    assert {execution} == set(await running.storage.executions("default", [execution]))


async def test_an_engine_without_code_has_no_worker(engine):
    """Services and client only: it starts and looks, but runs nothing."""
    assert (await engine()).worker is None
    assert (await engine(workflows=[wait_for_go])).worker is not None


async def test_an_engine_has_its_own_configuration(engine):
    """Defaults when nothing is given, else exactly what was given."""
    own = EngineConfig(limits=Limits(page_size=2))

    assert EngineConfig() == Engine("sqlite://").config
    assert own is (await engine(config=own)).config
