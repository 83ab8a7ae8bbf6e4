"""A server that lets nobody in for a while: calls wait, each for as long as a call may, and go on when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from holdfast import EngineConfig, StoreConfig
from holdfast.errors import AccessDenied, ServerReadOnly, StorageBusy
from holdfast.store.postgres import transactions
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.readers import Reads
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.protocol import Changes, LoadPlan
from tests.conftest import SECRET, OpenEngine, until
from verification.stores.bench import START, Bench, Group, Member
from verification.stores.records import ORG, an_execution, an_id


class Guest:
    """A user who can be locked out."""

    def __init__(self, url: str, admin: asyncpg.Connection) -> None:
        self._name = f"guest_{url.rpartition('_')[2]}"
        self._admin = admin
        self.url = url.replace("//holdfast@", f"//{self._name}@")

    async def come(self) -> None:
        await self._admin.execute(f"CREATE ROLE {self._name} LOGIN SUPERUSER")

    async def lock_out(self) -> None:
        await self._admin.execute(f"ALTER ROLE {self._name} NOLOGIN")
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1::text"
        await self._admin.execute(end, self._name)

    async def let_in(self) -> None:
        await self._admin.execute(f"ALTER ROLE {self._name} LOGIN")

    async def go(self) -> None:
        await self._admin.execute(f"REASSIGN OWNED BY {self._name} TO CURRENT_USER; DROP ROLE {self._name}")


@pytest.fixture
async def guest(postgres_url: str) -> AsyncIterator[Guest]:
    admin = await asyncpg.connect(postgres_url)
    guest = Guest(postgres_url, admin)
    await guest.come()
    yield guest
    await guest.go()
    await admin.close()


async def reads_at(url: str, **config: Any) -> Reads:
    database = Database(url, StoreConfig(**config), lambda: START)
    return Reads(database, await database.open_pool(1))


async def bench_at(url: str, **config: Any) -> Bench:
    async def opened(clock: Any, source: Any) -> PostgresStore:
        store = PostgresStore(url, StoreConfig(notify=False, **config), clock)
        await store.open(source)
        return store

    return await Bench.opened(opened)


class Failures:
    """Counts how often something raised."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.count = 0
        original = getattr(owner, name)

        async def counted(*args: Any, **options: Any) -> Any:
            try:
                return await original(*args, **options)
            except Exception:
                self.count += 1
                raise

        monkeypatch.setattr(owner, name, counted)


async def answer(connection: Any) -> Any:
    return await connection.fetchval("SELECT 42")


# --- reads ---


async def test_a_read_waits_until_it_is_let_in_again(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password that is just being changed is no reason to fail."""
    reads = await reads_at(guest.url)
    assert await reads.run(answer) == 42
    await guest.lock_out()
    refused = Failures(monkeypatch, reads, "_attempt")
    waiting = asyncio.create_task(reads.run(answer))
    await until(lambda: refused.count >= 3)
    await guest.let_in()

    assert await waiting == 42
    await reads.stop()


async def test_a_read_that_was_not_let_in_says_so_at_the_deadline(guest: Guest) -> None:
    """Not that the database was busy."""
    reads = await reads_at(guest.url, busy_deadline_s=0.5)
    await guest.lock_out()

    with pytest.raises(AccessDenied):
        await reads.run(answer)
    await reads.stop()


async def test_a_read_that_was_not_let_in_says_so_also_when_the_last_try_took_too_long(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = await reads_at(guest.url, busy_deadline_s=0.5)
    await guest.lock_out()
    connect, tries = reads._connection, 0

    @asynccontextmanager
    async def connect_once() -> AsyncIterator[Any]:
        nonlocal tries
        tries += 1
        if tries > 1:
            await asyncio.Event().wait()
        async with connect() as connection:
            yield connection

    monkeypatch.setattr(reads, "_connection", connect_once)
    with pytest.raises(AccessDenied):
        await reads.run(answer)
    assert tries == 2
    await reads.stop()


async def test_a_read_waits_for_the_successor_of_a_primary(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile the address may lead to a standby."""
    reads = await reads_at(postgres_url)
    meet, met = reads._database._meet, 0

    async def met_a_standby_first(connection: Any) -> None:
        nonlocal met
        met += 1
        if met <= 2:
            raise ServerReadOnly("a standby")
        await meet(connection)

    monkeypatch.setattr(reads._database, "_meet", met_a_standby_first)
    assert await reads.run(answer) == 42
    await reads.stop()


# --- writes ---


async def test_a_write_waits_until_it_is_let_in_again(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is written once."""
    bench = await bench_at(guest.url)
    await guest.lock_out()
    refused = Failures(monkeypatch, Database, "connect_writer")
    waiting = asyncio.create_task(bench.write(new_executions=[an_execution(1)]))
    await until(lambda: refused.count >= 3)
    await guest.let_in()

    await waiting
    assert set(await bench.store.executions(ORG, [an_id(1)])) == {an_id(1)}
    await bench.store.close()


async def test_a_write_that_was_not_let_in_says_so_at_the_deadline(guest: Guest) -> None:
    """Nothing of it was written; the next one works."""
    bench = await bench_at(guest.url, busy_deadline_s=0.2)
    await guest.lock_out()
    with pytest.raises(AccessDenied):
        await bench.write(new_executions=[an_execution(1)])

    await guest.let_in()
    await bench.write(new_executions=[an_execution(1)])
    await bench.store.close()


async def test_a_store_that_is_opened_does_not_wait_to_be_let_in(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most likely the password is wrong: that is said at once."""
    await guest.lock_out()
    refused = Failures(monkeypatch, Database, "_connect")

    with pytest.raises(AccessDenied):
        await bench_at(guest.url)
    assert refused.count == 1


# --- deadlines ---


class Away:
    """The server is not there for a store's writer, until `over` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: Any) -> None:
        self.attempts = 0
        self.over = asyncio.Event()
        writer, connect = store._writer.transactions, store._database.connect_writer

        async def connect_later() -> Any:
            self.attempts += 1
            if not self.over.is_set():
                raise StorageBusy("nobody is there")
            return await connect()

        writer._connection.terminate()
        writer._connection = None
        monkeypatch.setattr(store._database, "connect_writer", connect_later)


async def test_those_who_wait_longest_fail_first(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others of the same transaction go on without them."""
    monkeypatch.setattr(transactions, "_TRY_AT_LEAST_S", 0.0)
    bench = await bench_at(postgres_url)
    away = Away(monkeypatch, bench.store)

    def member(number: int, waited_s: float) -> Member:
        made = Member(LoadPlan(), lambda _: Changes(new_executions=[an_execution(number)]))
        made.waiting_since -= waited_s
        return made

    old, young = [member(number, 60.0) for number in (1, 2)], [member(number, 0.0) for number in (3, 4)]
    bench.source.waiting.append(Group([*old, *young]))
    bench.store.wake()
    for each in old:
        with pytest.raises(StorageBusy):
            await each.future
    assert not any(each.future.done() for each in young)

    away.over.set()
    await asyncio.gather(*(each.future for each in young))
    assert set(await bench.store.executions(ORG, [an_id(number) for number in range(1, 5)])) == {an_id(3), an_id(4)}
    await bench.store.close()


async def test_the_deadline_counts_from_the_call(
    postgres_url: str, engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not from when the writer was done with those before it."""
    monkeypatch.setattr(transactions, "_TRY_AT_LEAST_S", 0.0)
    deadline_s = 1.0
    config = EngineConfig(store=StoreConfig(busy_deadline_s=deadline_s), secret_key=SECRET)
    node = await engine(url=postgres_url, config=config)
    away = Away(monkeypatch, node.storage)
    loop = asyncio.get_running_loop()

    async def waited_s() -> float:
        begun_at = loop.time()
        with pytest.raises(StorageBusy):
            await node.client.publish_event("key", 1)
        return loop.time() - begun_at

    first = asyncio.create_task(waited_s())
    await until(lambda: away.attempts)
    second = await waited_s()
    away.over.set()

    assert deadline_s * 0.9 < await first
    assert deadline_s * 0.9 < second < deadline_s * 1.6
