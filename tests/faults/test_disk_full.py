"""A full disk, through the whole engine: calls are refused, reads go on, work waits, and all resumes by itself."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast import Engine, EngineConfig, StoreConfig, WorkerConfig, WorkflowContext, task, workflow
from holdfast.errors import StorageFull
from holdfast.model import events as e
from holdfast.model.executions import State
from tests.conftest import OpenEngine, until
from tests.faults.conftest import Spawn, lines, sound_records, value_of

# A lease beyond every patience of these tests: what resumes has not waited for it.
CONFIG = EngineConfig(store=StoreConfig(synchronous="normal"), worker=WorkerConfig(lease_s=600.0, shutdown_grace_s=1.0))
LARGE = "x" * 20_000

pytestmark = pytest.mark.sqlite_only("limits the size of the file")

gate = asyncio.Event()


@pytest.fixture(autouse=True)
def _closed_gate() -> None:
    global gate  # noqa: PLW0603 - an Event belongs to the loop of one test
    gate = asyncio.Event()


async def held(text: str) -> str:
    await gate.wait()
    return text * 20_000


@task
async def chore(text: str) -> str:
    await gate.wait()
    return text * 20_000


@workflow
async def both(ctx: WorkflowContext) -> str:
    step, done = await asyncio.gather(ctx.run(held, "s"), ctx.task(chore, "t"))
    return f"{len(step)} {len(done)}"


BOTH = "20000 20000"


@workflow
async def naps(ctx: WorkflowContext) -> str:
    await ctx.sleep(0.2)
    return LARGE


@workflow
async def collect(ctx: WorkflowContext) -> list[str]:
    found = []
    while (item := await ctx.wait_for_signal("item", str)) != "end":
        found.append(item)
    return [item[:10] for item in found]


async def set_space(engine: Engine, pages: int | None) -> None:
    """Let the database grow by so many pages, or without limit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def job(connect: Any) -> None:
        connection: sqlite3.Connection = connect()
        used = connection.execute("PRAGMA page_count").fetchone()[0]
        limit = 1_073_741_823 if pages is None else used + pages
        connection.execute(f"PRAGMA max_page_count = {limit}").fetchone()
        loop.call_soon_threadsafe(done.set_result, None)

    engine.storage._writer.post(job)  # type: ignore[attr-defined]
    await done


async def fill(engine: Engine, execution_id: str) -> list[int]:
    """Send signals until there is no room for another; the numbers of those that were taken."""
    taken: list[int] = []
    while True:
        try:
            value = f"{len(taken):010}{LARGE}"
            taken.append((await engine.client.signal_workflow(execution_id, "item", value)).signal_event_sequence)
        except StorageFull:
            return taken


@pytest.mark.slow
async def test_everything_resumes_when_there_is_space_again(engine: OpenEngine, database: Path):
    """Refused calls have no effect, acknowledged ones stay, and running workflows complete once there is space."""
    running = await engine(workflows=[both, naps, collect], tasks=[chore], config=CONFIG)
    client = running.client
    working = [await client.start_workflow(both) for _ in range(3)]
    asleep = [await client.start_workflow(naps) for _ in range(3)]
    collecting = await client.start_workflow(collect, workflow_id="collecting")

    await set_space(running, 30)
    taken = await fill(running, collecting.id)
    with pytest.raises(StorageFull):
        await client.start_workflow(collect, LARGE, workflow_id="refused")
    with pytest.raises(StorageFull):
        await client.signal_with_start_workflow("refused", collect, signal_name="item", signal_value=LARGE)
    gate.set()
    results = [asyncio.ensure_future(handle.result(timeout=30)) for handle in (*working, *asleep)]
    await asyncio.wait(results, timeout=0.5)

    assert taken == [event.seq for event in await collecting.history() if isinstance(event.body, e.SignalReceived)]
    assert 7 == len((await client.list_workflows()).items)
    assert [True] * 6 == [(await handle.status()).is_open for handle in (*working, *asleep)]

    await set_space(running, None)
    assert [BOTH] * 3 + [LARGE] * 3 == await asyncio.gather(*results)
    await collecting.signal("item", "end")
    assert [f"{number:010}" for number in range(len(taken))] == await collecting.result(timeout=20)
    await sound_records(f"sqlite:///{database}")


@pytest.mark.slow
async def test_full_disk_longer_than_the_lease(engine: OpenEngine, database: Path):
    """Nothing is lost when not even heartbeats could be written for several leases."""
    config = EngineConfig(worker=WorkerConfig(lease_s=0.3, shutdown_grace_s=1.0), crash_attempts=50)
    running = await engine(workflows=[both, collect], tasks=[chore], config=config)
    handle = await running.client.start_workflow(both)
    filler = await running.client.start_workflow(collect)
    await until(lambda: _scheduled(running, handle.id))

    await set_space(running, 0)
    await fill(running, filler.id)
    gate.set()
    result = asyncio.ensure_future(handle.result(timeout=20))
    await asyncio.wait([result], timeout=1.5)
    await set_space(running, None)

    assert BOTH == await result
    await sound_records(f"sqlite:///{database}")


async def _scheduled(engine: Engine, execution_id: str) -> bool:
    return any(isinstance(event.body, e.TaskScheduled) for event in await engine.client.history(execution_id))


@pytest.mark.slow
async def test_shutdown_with_a_full_disk_ends(engine: OpenEngine, database: Path):
    """An engine whose disk is full can be stopped; the next one, with space, finishes what it could not record."""
    running = await engine(workflows=[both, collect], tasks=[chore], config=CONFIG)
    handle = await running.client.start_workflow(both)
    filler = await running.client.start_workflow(collect)
    await until(lambda: _scheduled(running, handle.id))
    await set_space(running, 0)
    await fill(running, filler.id)
    gate.set()

    await asyncio.wait_for(running.shutdown(), 15)

    await sound_records(f"sqlite:///{database}")
    config = EngineConfig(worker=WorkerConfig(lease_s=0.5))
    again = await engine(workflows=[both, collect], tasks=[chore], config=config)
    await _expire(database)
    assert BOTH == await again.client.workflow(handle.id).result(timeout=20)
    await sound_records(f"sqlite:///{database}")


async def _expire(database: Path) -> None:
    """The lease of the engine that could not say goodbye passes."""
    connection = sqlite3.connect(database, timeout=10)
    with connection:
        # The long lease is that of the first engine, if it has left one.
        connection.execute(
            "UPDATE holdfast_workers SET lease_until_at = 1 WHERE lease_until_at > started_at + 100000000"
        )
    connection.close()


@pytest.mark.slow
async def test_file_that_may_not_grow(engine: OpenEngine, spawn: Spawn, folder: Path, database: Path):
    """The same with the operating system's limit on files: refused, nothing acknowledged lost, resumed by itself."""
    process = await spawn("fill", store={"synchronous": "full"})

    answers = [await process.line() for _ in range(4)]

    assert ["full", "readable", "resumed", "done"] == answers
    assert 0 == await process.ended()
    (record,) = await sound_records(f"sqlite:///{database}")
    assert State.COMPLETED is record.execution_row.state
    signals = [
        (event.seq, event.body.signal_value) for event in record.history if isinstance(event.body, e.SignalReceived)
    ]
    assert lines(folder, "acknowledged") == [[seq, int(value_of(value)[:10])] for seq, value in signals[:-1]]
