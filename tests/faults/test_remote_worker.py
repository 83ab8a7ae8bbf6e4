"""Workers elsewhere that are killed, suspended, cut off or sent away, and servers that go: nothing is lost, nothing is
recorded twice."""

from __future__ import annotations

import asyncio
import itertools
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Engine, EngineConfig, StoreConfig
from holdfast.model import events as e
from tests.conftest import OpenEngine, until
from tests.faults.app import KINDS, listens
from tests.faults.conftest import Process, Spawn, lines, sound_records, value_of
from tests.grpc_door import open_server
from tests.tcp_proxy import TcpProxy

REMOTE = "tests.faults.remote_app"
SHORT = {"lease_s": 1.0, "shutdown_grace_s": 2.0}
LONG = {"lease_s": 60.0, "shutdown_grace_s": 2.0}


@asynccontextmanager
async def serving(api: Engine) -> AsyncIterator[Any]:
    server = await open_server(api)
    try:
        yield server
    finally:
        await server.stop()


async def see_through(api: Engine, number: int) -> Any:
    """One of a crowd, from its start to its result."""
    kind: Any = KINDS[number % len(KINDS)]
    key = f"{kind.__name__}-{number}"
    handle = await api.client.start_workflow(kind, key, workflow_id=key)
    if kind is listens:
        for word in ("one", "two"):
            await handle.signal("word", word)
    return await handle.result(timeout=90)


class Load:
    """Callers that see one workflow after another through, until it is enough."""

    def __init__(self, api: Engine, callers: int = 12) -> None:
        self._numbers = itertools.count()
        self._enough = False
        self._callers = [asyncio.ensure_future(self._call(api)) for _ in range(callers)]

    async def _call(self, api: Engine) -> None:
        while not self._enough:
            await see_through(api, next(self._numbers))

    async def end(self) -> int:
        """Let what was begun come to its end; how many there were."""
        self._enough = True
        await asyncio.gather(*self._callers)
        return next(self._numbers)


async def check_ledger(folder: Path, database_url: str) -> None:
    """The histories are sound, and every result in them is one that a body has really given."""
    given = {words[-1] for words in lines(folder, "ledger")}
    for record in await sound_records(database_url):
        for event in record.history:
            if isinstance(event.body, e.StepCompleted | e.TaskCompleted):
                assert value_of(event.body.result) in given


@pytest.mark.slow
async def test_killed_workers_lose_nothing(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """Under load, one after another, at random moments: another worker takes over, and everything comes to its end."""
    dice = random.Random(7)
    api = await engine()
    async with serving(api) as server:
        workers = [await spawn("work", module=REMOTE, server=server.url, worker=SHORT) for _ in range(2)]
        load = Load(api)
        for _ in range(3):
            await asyncio.sleep(dice.uniform(0.1, 0.5))
            victim = workers.pop(dice.randrange(len(workers)))
            await victim.kill()
            workers.append(await spawn("work", module=REMOTE, server=server.url, worker=SHORT))
        await load.end()
        assert [0, 0] == [await worker.stop() for worker in workers]
    await check_ledger(folder, database_url)


@pytest.mark.slow
async def test_worker_suspended_past_its_lease_is_replaced_and_works_on(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """What it reports when it wakes is refused, and it goes on under a new session."""
    api = await engine()
    async with serving(api) as server:
        first = await spawn("work", module=REMOTE, server=server.url, worker=SHORT)
        handles = [
            await api.client.start_workflow(kind, "gate", workflow_id=kind) for kind in ("long_step", "long_chore")
        ]
        await until(lambda: len(lines(folder, "begun")) == 2)
        second = await spawn("work", module=REMOTE, server=server.url, worker=SHORT)
        first.suspend()
        await until(lambda: len(lines(folder, "begun")) == 4)
        first.wake()
        (folder / "gate").touch()
        for handle in handles:
            await handle.result(timeout=20)
        assert 0 == await second.stop()

        alone = await api.client.start_workflow("chores", "after")
        await alone.result(timeout=20)
        assert 0 == await first.stop()
        done = [event.body for event in await alone.history() if isinstance(event.body, e.TaskCompleted)]
        assert {str(first.pid)} == {body.worker.split("-")[-2] for body in done}
    history = [event.body for record in await sound_records(database_url) for event in record.history]
    assert 2 + 3 == sum(isinstance(body, e.StepCompleted | e.TaskCompleted) for body in history)


@pytest.mark.slow
async def test_workers_cut_off_at_random_lose_nothing(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Their way to the server is cut, held up and closed again and again under load; their sessions live on."""
    dice = random.Random(11)
    api = await engine()
    async with serving(api) as server, TcpProxy(server.port) as proxy:
        way = f"grpc://127.0.0.1:{proxy.port}"
        workers = [await spawn("work", module=REMOTE, server=way, worker=SHORT) for _ in range(2)]
        load = Load(api)
        for _ in range(20):
            await asyncio.sleep(dice.uniform(0.05, 0.4))
            match dice.randrange(3):
                case 0:
                    proxy.cut()
                case 1:
                    proxy.hold()
                    await asyncio.sleep(dice.uniform(0.05, 0.3))
                    proxy.resume()
                case 2:
                    proxy.refuses = True
                    proxy.cut()
                    await asyncio.sleep(dice.uniform(0.05, 0.3))
                    proxy.refuses = False
        await load.end()
        assert [0, 0] == [await worker.stop() for worker in workers]
    await check_ledger(folder, database_url)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
async def test_killed_server_loses_nothing(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """It is killed and started again under load. Workers open new sessions, and their old ones need not expire."""
    port = free_port()
    api = await engine()
    server: Process = await spawn("serve", module=REMOTE, port=port)
    workers = [await spawn("work", module=REMOTE, server=f"grpc://127.0.0.1:{port}", worker=LONG) for _ in range(2)]
    load = Load(api)
    for _ in range(2):
        await asyncio.sleep(0.4)
        await server.kill()
        server = await spawn("serve", module=REMOTE, port=port)
    await load.end()
    assert [0, 0] == [await worker.stop() for worker in workers]
    assert 0 == await server.stop()
    await check_ledger(folder, database_url)


@pytest.mark.slow
async def test_two_servers_share_the_workers(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """One of two servers on a database is killed under load: its workers go on with the other one."""
    ports = [free_port(), free_port()]
    api = await engine()
    servers: list[Process] = [await spawn("serve", module=REMOTE, port=port) for port in ports]
    both = "grpc://" + ",".join(f"127.0.0.1:{port}" for port in ports)
    workers = [await spawn("work", module=REMOTE, server=both, worker=LONG) for _ in range(2)]
    load = Load(api)
    await asyncio.sleep(0.4)
    await servers[0].kill()
    servers[0] = await spawn("serve", module=REMOTE, port=ports[0])
    await asyncio.sleep(0.4)
    await servers[1].kill()
    await load.end()
    assert [0, 0] == [await worker.stop() for worker in workers]
    await check_ledger(folder, database_url)


@pytest.mark.slow
async def test_server_that_goes_sends_its_worker_on(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """It would wait ten minutes for what runs, and the worker's lease is an hour: the server ends because its worker
    has heard of it and moved, with its tasks, which are done once. The step that ran was finished first."""
    ports = [free_port(), free_port()]
    both = "grpc://" + ",".join(f"127.0.0.1:{port}" for port in ports)
    api = await engine()
    first = await spawn("serve", module=REMOTE, port=ports[0], grace_s=600)
    worker = await spawn("work", module=REMOTE, server=both, worker={**LONG, "lease_s": 3600.0})
    second = await spawn("serve", module=REMOTE, port=ports[1], grace_s=600)
    chores = [await api.client.start_workflow("long_chore", "chores", workflow_id=f"c{n}") for n in range(5)]
    step = await api.client.start_workflow("long_step", "step", workflow_id="s")
    await until(lambda: len(lines(folder, "begun")) == 6)

    first.terminate()
    later = await api.client.start_workflow("chores", "later", workflow_id="later")
    (folder / "step").touch()
    assert 0 == await first.ended()

    await later.result(timeout=20)
    (folder / "chores").touch()
    for handle in (*chores, step):
        await handle.result(timeout=20)
    assert 0 == await worker.stop()
    assert 0 == await second.stop()
    assert [*sorted([f"c{n}" for n in range(5)]), *["later"] * 3, "s"] == sorted(w[0] for w in lines(folder, "ledger"))
    await check_ledger(folder, database_url)


@pytest.mark.slow
async def test_servers_restarted_in_turn_cost_nothing(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Under load, each is told to stop and started again: not even a step is run twice."""
    ports = [free_port(), free_port()]
    api = await engine()
    servers: list[Process] = [await spawn("serve", module=REMOTE, port=port, grace_s=30) for port in ports]
    both = "grpc://" + ",".join(f"127.0.0.1:{port}" for port in ports)
    workers = [await spawn("work", module=REMOTE, server=both, worker=LONG) for _ in range(2)]
    load = Load(api)
    for number in (0, 1):
        await asyncio.sleep(0.3)
        assert 0 == await servers[number].stop()
        servers[number] = await spawn("serve", module=REMOTE, port=ports[number], grace_s=30)
    await load.end()
    assert [0, 0] == [await worker.stop() for worker in workers]
    done = [(words[0], words[1]) for words in lines(folder, "ledger")]
    assert len(done) == len(set(done)) > 0
    await check_ledger(folder, database_url)


@pytest.mark.slow
async def test_worker_that_is_told_to_stop_hands_over_at_once(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Its leases last a minute, and nobody waits for them."""
    api = await engine()
    async with serving(api) as server:
        workers = [await spawn("work", module=REMOTE, server=server.url, worker=LONG) for _ in range(2)]
        load = Load(api)
        for _ in range(3):
            await asyncio.sleep(0.2)
            assert 0 == await workers.pop(0).stop()
            workers.append(await spawn("work", module=REMOTE, server=server.url, worker=LONG))
        await asyncio.wait_for(load.end(), 50)
        assert [0, 0] == [await worker.stop() for worker in workers]
    await check_ledger(folder, database_url)


@pytest.mark.slow
async def test_program_that_kills_its_remote_worker_is_parked(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """The loss of a worker is counted as anywhere else, and after some of them the execution is stuck."""
    api = await engine(config=EngineConfig(store=StoreConfig(synchronous="normal"), crash_attempts=2))
    async with serving(api) as server:
        first = await spawn("work", module=REMOTE, server=server.url, worker=SHORT)
        handle = await api.client.start_workflow("poison", "gate", workflow_id="p")
        assert 7 == await first.ended()
        await until(lambda: crashes(api, handle.id, 1))
        second = await spawn("work", module=REMOTE, server=server.url, worker=SHORT)
        assert 7 == await second.ended()
        await until(lambda: crashes(api, handle.id, 2))
        assert "STUCK" == await handle.status()


async def crashes(api: Engine, execution_id: str, count: int) -> bool:
    return (await api._local.reads.row("default", execution_id)).crashes >= count
