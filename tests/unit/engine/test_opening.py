"""How an engine and its worker's session come up when something is in the way."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Engine, WorkflowContext, workflow
from holdfast.contract.workers import RegisterWorker
from holdfast.errors import SessionLost, StorageBusy
from holdfast.worker.worker import Worker
from tests.conftest import QUICK, OpenEngine, until


@workflow
async def greets(ctx: WorkflowContext, name: str) -> str:
    return f"hello {name}"


async def test_an_engine_whose_worker_could_not_start_holds_nothing_open(
    database_url: str, monkeypatch: pytest.MonkeyPatch
):
    """It can be started again, and is then complete."""
    start = Worker.start

    async def fails(self: Worker) -> None:
        raise StorageBusy

    engine = Engine(database_url, workflows=[greets], config=QUICK)
    before = asyncio.all_tasks()
    monkeypatch.setattr(Worker, "start", fails)
    for _ in range(2):
        with pytest.raises(StorageBusy):
            await engine.open()
        assert before == asyncio.all_tasks()

    monkeypatch.setattr(Worker, "start", start)
    async with engine:
        handle = await engine.client.start_workflow(greets, "you")
        assert "hello you" == await handle.result(timeout=10)


async def test_an_engine_can_be_started_again(database_url: str):
    """What it has written is there."""
    engine = Engine(database_url, workflows=[greets], config=QUICK)
    for number in (1, 2):
        async with engine:
            handle = await engine.client.start_workflow(greets, "you")
            assert "hello you" == await handle.result(timeout=10)
            assert number == len((await engine.client.list_workflows()).items)


@pytest.mark.sqlite_only("only SQLite has databases in memory")
async def test_an_engine_in_memory_can_be_started_again():
    """It begins with nothing."""
    engine = Engine("sqlite://", workflows=[greets], config=QUICK)
    for _ in range(2):
        async with engine:
            handle = await engine.client.start_workflow(greets, "you")
            assert "hello you" == await handle.result(timeout=10)
            assert 1 == len((await engine.client.list_workflows()).items)


async def test_a_heartbeat_that_overtakes_the_registration_costs_no_session(engine: OpenEngine):
    """It finds no such session: it is not there yet. There must not be two new ones."""
    running = await engine(workflows=[greets])
    worker, workers = running.worker, running._local.workers
    assert worker is not None
    register, may_go_on = workers.register, asyncio.Event()

    async def slowly(request: RegisterWorker) -> None:
        await may_go_on.wait()
        await register(request)

    workers.register = slowly  # type: ignore[method-assign]
    before = worker.session
    running._local.dispatcher.close(before, SessionLost("had expired"))
    name = await until(lambda: worker.session not in {"", before} and worker.session)
    worker._session_lost(name)
    may_go_on.set()

    handle = await running.client.start_workflow(greets, "you")
    assert "hello you" == await handle.result(timeout=10)
    assert name == worker.session
    assert 1 == sum(task.get_name() == "holdfast-worker" for task in asyncio.all_tasks())


async def test_a_worker_that_stops_while_it_opens_a_session_leaves_nothing_behind(engine: OpenEngine):
    """The new session is opened, and ended."""
    running = await engine(workflows=[greets])
    worker = running.worker
    assert worker is not None
    running._local.dispatcher.close(worker.session, SessionLost("had expired"))
    await running.shutdown()

    assert 0 == sum(task.get_name() == "holdfast-worker" for task in asyncio.all_tasks())
