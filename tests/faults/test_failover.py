"""The primary is lost and a standby takes over, under load: nodes find it by themselves and go on.

With a standby that is waited for, nothing that was answered is lost. With one that is not, the last answers are, which
nobody can prevent; what remains must be whole all the same, although nodes remember more than the database does (F18).
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asyncpg
import pytest

from holdfast import Engine, EngineConfig, StoreConfig, WorkerConfig, WorkflowContext, task, workflow
from holdfast.errors import NOT_NOW, ExecutionNotFound
from tests.conftest import until
from tests.stores.pooler import Pooler
from verification.invariants import check, read
from verification.postgres import LocalPostgres

pytestmark = pytest.mark.slow

CONFIG = EngineConfig(store=StoreConfig(busy_deadline_s=5.0), worker=WorkerConfig(lease_s=2.0, shutdown_grace_s=1.0))
SETTINGS = {"wal_level": "replica", "max_wal_senders": "5", "hot_standby": "on", "synchronous_commit": "on"}
CALLERS = 6


@task
async def double(number: int) -> int:
    return 2 * number


async def add_one(number: int) -> int:
    return number + 1


@workflow
async def order(ctx: WorkflowContext, number: int) -> int:
    for _ in range(3):
        number = await ctx.run(add_one, number)
        await ctx.sleep(0.05)
    return await ctx.task(double, number)


class Pair:
    """A primary, and a standby that follows it."""

    def __init__(self, primary: LocalPostgres, standby: LocalPostgres) -> None:
        self.primary, self.standby = primary, standby

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (self.primary, self.standby))
        return f"postgresql://holdfast@{hosts}/app?target_session_attrs=read-write"

    async def wait_for_standby(self) -> None:
        """From now on no commit is answered that the standby does not have."""
        await _execute(self.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        sql = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        async with _connected(self.primary) as connection:
            await until(lambda: connection.fetchval(sql))

    async def catch_up(self) -> None:
        """The standby has everything that is there now."""
        async with _connected(self.primary) as connection:
            end = await connection.fetchval("SELECT pg_current_wal_insert_lsn()::text")
        async with _connected(self.standby) as connection:
            sql = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn"
            await until(lambda: connection.fetchval(sql, end))

    async def cut_off(self) -> None:
        """The standby gets nothing any more."""
        await _execute(self.standby, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        async with _connected(self.primary) as connection:
            await until(lambda: connection.fetchval("SELECT count(*) = 0 FROM pg_stat_replication"))

    async def fail_over(self) -> None:
        await asyncio.to_thread(self.primary.kill)
        await _execute(self.standby, "SELECT pg_promote()")


@asynccontextmanager
async def _connected(server: LocalPostgres) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(server.url)
    try:
        yield connection
    finally:
        await connection.close()


async def _execute(server: LocalPostgres, *statements: str) -> None:
    async with _connected(server) as connection:
        for statement in statements:
            await connection.execute(statement)


@pytest.fixture
def pair() -> Iterator[Pair]:
    # Not in the test's own folder: as root, the server runs as somebody who can't enter that.
    with TemporaryDirectory(prefix="holdfast-standby-") as name, LocalPostgres(settings=SETTINGS) as primary:
        folder = Path(name)
        primary.create_database("app")
        primary.stop()
        _copy(primary.directory / "data", folder / "data")
        primary.start()
        (folder / "data" / "standby.signal").touch()
        with (folder / "data" / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = 'host=127.0.0.1 port={primary.port} user=holdfast'\n")
        with LocalPostgres(folder, settings=SETTINGS) as standby:
            yield Pair(primary, standby)


def _copy(source: Path, target: Path) -> None:
    """With its owner: as root, the server runs as somebody else."""
    shutil.copytree(source, target)
    owner = source.stat()
    for path in (target.parent, target, *target.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    target.chmod(0o700)


class Load:
    """Callers who start orders, one after another, and repeat what was not answered."""

    def __init__(self, *nodes: Engine) -> None:
        self._nodes = nodes
        self.answered: dict[str, int] = {}
        self._enough = False
        self._callers = [asyncio.ensure_future(self._call(number)) for number in range(CALLERS)]

    async def until_answered(self, more: int) -> None:
        wanted = len(self.answered) + more
        await until(lambda: len(self.answered) >= wanted)

    async def end(self) -> None:
        self._enough = True
        await asyncio.gather(*self._callers)

    async def _call(self, caller: int) -> None:
        number = caller
        while not self._enough:
            name, client = f"order-{number}", self._nodes[number % len(self._nodes)].client
            while True:
                try:
                    await client.start_workflow(order, number, workflow_id=name, request_id=name)
                    break
                except NOT_NOW:
                    await asyncio.sleep(0.05)
            self.answered[name] = number
            number += CALLERS
            await asyncio.sleep(0.01)


def _node(url: str) -> Engine:
    return Engine(url, workflows=[order], tasks=[double], config=CONFIG)


@pytest.mark.parametrize("waited_for", [True, False], ids=["synchronous", "asynchronous"])
async def test_nodes_continue_with_the_standby(pair, record_property, waited_for):
    if waited_for:
        await pair.wait_for_standby()
    async with _node(pair.url) as one, _node(pair.url) as two:
        load = Load(one, two)
        await load.until_answered(60)
        if not waited_for:
            await pair.cut_off()
            await load.until_answered(60)
        await pair.fail_over()
        await load.until_answered(60)
        await load.end()

        lost = []
        for name, number in load.answered.items():
            try:
                handle = await one.client.find_workflow(name)
            except ExecutionNotFound:
                lost.append(name)
            else:
                assert 2 * (number + 3) == await handle.result(timeout=60), name
        record_property("failover", f"{len(lost)} of {len(load.answered)} answered starts were lost")
        if waited_for:
            assert [] == lost
        else:
            assert lost, "the standby was to lose what it was not sent"
        assert [] == [str(violation) for violation in check(await read(one.storage))]


class Stage:
    """What the bodies below and their test tell each other."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.read: list[str] = []


stage = Stage()


async def long_step() -> None:
    stage.begun.set()
    await stage.go_on.wait()


@workflow
async def long_order(ctx: WorkflowContext) -> str:
    """Holds its lease, by a step that takes long, while a signal comes."""

    async def word() -> str:
        stage.read.append(await ctx.wait_for_signal("word", str))
        return stage.read[-1]

    reading = asyncio.ensure_future(word())
    await ctx.run(long_step)
    return await reading


async def test_a_node_that_has_lost_nothing_forgets_what_others_have_lost(pair, caplog, monkeypatch):
    """A signal that another node wrote, and a program of this one has read, is gone, and the history has grown to the
    same length by another one: what the program would record next does not belong there."""
    monkeypatch.setattr(f"{__name__}.stage", Stage())
    # Without heartbeats meanwhile: those would be lost, and the node would know by them.
    config = EngineConfig(store=CONFIG.store, worker=WorkerConfig(lease_s=60.0, shutdown_grace_s=1.0))
    async with Engine(pair.url, config=CONFIG) as caller, Engine(pair.url, workflows=[long_order], config=config):
        handle = await caller.client.start_workflow(long_order, workflow_id="o")
        await stage.begun.wait()
        await pair.catch_up()
        await pair.cut_off()
        await handle.signal("word", "lost")
        await until(lambda: stage.read == ["lost"])
        await pair.fail_over()
        await _signalled(handle, "word", "found")
        stage.go_on.set()

        assert "found" == await handle.result(timeout=60)
        assert [] == [str(violation) for violation in check(await read(caller.storage))]
    assert "whether other nodes have lost any is not known here" in caplog.text


async def test_a_failover_behind_a_pooler_is_noticed(pair, monkeypatch):
    """Also where a connection leads to the new server from one transaction to the next, as if nothing had happened."""
    monkeypatch.setattr(f"{__name__}.stage", Stage())
    pooler = Pooler(pair.primary.url_of("app"), size=4)
    config = EngineConfig(store=CONFIG.store, worker=WorkerConfig(lease_s=60.0, shutdown_grace_s=1.0))
    async with (
        pooler.running() as url,
        Engine(pair.url, config=CONFIG) as caller,
        Engine(url, workflows=[long_order], config=config) as node,
    ):
        handle = await caller.client.start_workflow(long_order, workflow_id="o")
        await stage.begun.wait()
        await pair.catch_up()
        await pair.cut_off()
        await handle.signal("word", "lost")
        await until(lambda: stage.read == ["lost"])
        await _execute(pair.standby, "SELECT pg_promote()")
        pooler.go_over(pair.standby.url_of("app"))
        await asyncio.to_thread(pair.primary.kill)
        await _signalled(handle, "word", "found")
        stage.go_on.set()

        # By the node itself: nobody tells the caller of what is done behind a pooler.
        assert "found" == await (await node.client.find_workflow("o")).result(timeout=60)
        assert [] == [str(violation) for violation in check(await read(caller.storage))]


async def _signalled(handle: Any, name: str, value: str) -> None:
    while True:
        try:
            return await handle.signal(name, value, request_id=value)
        except NOT_NOW:
            await asyncio.sleep(0.05)
