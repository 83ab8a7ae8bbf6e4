"""What a worker has lost holds nothing up: slots of stopped attempts, sessions taken back by others, suspects."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from holdfast import WorkflowContext, task, workflow
from holdfast.config import EngineConfig
from holdfast.contract.executions import StartWorkflow
from holdfast.contract.workers import Heartbeat, RegisterWorker
from holdfast.engine.facade import LocalEngine
from holdfast.errors import SessionLost
from holdfast.model.executions import Ready
from tests.conftest import QUICK, OpenEngine
from verification.memory import MemoryDatabase, MemoryStore

NOW = 1_700_000_000_000_000


@task
async def answer() -> int:
    return 42


@workflow
async def gives_up_at_once(ctx: WorkflowContext) -> None:
    ctx.task(answer).cancel()


@workflow
async def asks(ctx: WorkflowContext) -> int:
    return await ctx.task(answer)


async def test_an_attempt_that_is_stopped_before_it_starts_gives_its_slot_back(engine: OpenEngine) -> None:
    """A task that is scheduled and given up in one turn; with one slot, the next task could not run."""
    config = replace(QUICK, worker=replace(QUICK.worker, task_slots=1))
    running = await engine(workflows=[gives_up_at_once, asks], tasks=[answer], config=config)
    for _ in range(3):
        await (await running.client.start_workflow(gives_up_at_once)).result(timeout=10)

    handle = await running.client.start_workflow(asks)

    assert await handle.result(timeout=10) == 42


@pytest.fixture
async def local() -> AsyncIterator[LocalEngine]:
    """An engine of a cluster, whose database the test can change behind its back."""
    started = LocalEngine(MemoryStore(MemoryDatabase(), lambda: NOW), EngineConfig())
    await started.start()
    yield started
    await started.stop()


async def register(local: LocalEngine, session: str, turn_slots: int = 2) -> None:
    await local.workers.register(
        RegisterWorker(
            org="default",
            session=session,
            host="h",
            pid=1,
            builds={("k", "1"): "b"},
            turn_slots=turn_slots,
            task_slots=0,
            lease_s=30.0,
        )
    )


def database_of(local: LocalEngine) -> MemoryDatabase:
    assert isinstance(local.store, MemoryStore)
    return local.store.database


async def test_a_session_that_others_have_taken_back_gets_nothing_more(local: LocalEngine) -> None:
    """Its next heartbeat finds no row: it is closed here, whoever polls for it is told, new work goes elsewhere."""
    await register(local, "old")
    polling = local.workers.poll("old")
    del database_of(local).workers["old"]

    beat = Heartbeat(org="default", session="old", lease_s=30.0)
    assert not (await asyncio.wrap_future(local.workers.heartbeat(beat))).alive
    await register(local, "new")
    started = await local.executions.start(StartWorkflow(org="default", kind="k"))

    with pytest.raises(SessionLost):
        await polling
    assert list(local.dispatcher.sessions) == ["new"]
    assert database_of(local).ready[started.workflow_execution_id].worker == "new"


async def test_suspects_that_have_to_wait_are_not_looked_for_without_end(local: LocalEngine) -> None:
    """One is held, the other passed over: that is no reason to look again at once."""
    await register(local, "s", turn_slots=2)
    held, waiting = [
        (await local.executions.start(StartWorkflow(org="default", kind="k"))).workflow_execution_id for _ in range(2)
    ]
    database = database_of(local)
    for execution_id in (held, waiting):
        database.execution_rows[execution_id].crashes = 4
    database.ready[waiting] = Ready(since_at=NOW)
    session = local.dispatcher.sessions["s"]
    session.free_turns, session.suspect = 1, held

    await local.upkeep.claim()
    await asyncio.sleep(0)

    assert database.ready[waiting].worker is None
    assert not session.could_take_more
