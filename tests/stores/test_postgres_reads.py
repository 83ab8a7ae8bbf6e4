import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from importlib.resources import files
from typing import Any

import asyncpg
import pytest

from holdfast.config import StoreConfig
from holdfast.errors import EngineStopped, InvalidRequest, StorageBusy
from holdfast.store.postgres import pages, read
from holdfast.store.postgres import store as stores
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.read_session import in_time, index_only
from holdfast.store.postgres.readers import Reads
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.queries import ExecutionQuery
from tests.conftest import until
from verification.postgres import LocalPostgres
from verification.stores.bench import START, Bench
from verification.stores.records import ORG, OTHER_ORG, an_id

HOUR = 3_600_000_000


async def reads_at(url: str, **config: Any) -> tuple[Database, Reads]:
    database = Database(url, StoreConfig(**config), lambda: START)
    await database.prepare()
    return database, Reads(database, await database.open_pool(database.config.readers))


@pytest.fixture
async def reads(postgres_url: str) -> AsyncIterator[Reads]:
    _, reads = await reads_at(postgres_url, readers=1)
    yield reads
    await reads.stop()


async def answer(connection: Any) -> Any:
    return await connection.fetchval("SELECT 42")


async def test_calls_during_a_query_share_the_next(reads: Reads) -> None:
    """Two queries for a hundred calls: the first for the first, the second for all that came meanwhile."""
    queries: list[list[str]] = []
    going, go_on = asyncio.Event(), asyncio.Event()

    async def fetch(_: Any, ids: Sequence[str]) -> list[tuple[str, str, str]]:
        queries.append(list(ids))
        going.set()
        await go_on.wait()
        return [(one, ORG if one != "8" else OTHER_ORG, one.upper()) for one in ids if one != "9"]

    coalesced = reads.coalesced(fetch)
    first = asyncio.create_task(coalesced.get(ORG, ["a"]))
    await going.wait()
    others = [asyncio.create_task(coalesced.get(ORG, [str(number % 10), "a"])) for number in range(99)]
    await asyncio.sleep(0)
    go_on.set()

    assert await first == {"a": "A"}
    found = await asyncio.gather(*others)
    assert found[7] == {"7": "7", "a": "A"}
    assert found[8] == found[9] == {"a": "A"}
    assert [sorted(ids) for ids in queries] == [["a"], [*map(str, range(10)), "a"]]


async def test_an_id_that_cannot_exist_spoils_nothing(reads: Reads) -> None:
    """PostgreSQL refuses U+0000 and half characters; those who share the query do not notice."""
    coalesced = reads.coalesced(read.executions)
    found = await asyncio.gather(*(coalesced.get(ORG, [one]) for one in ("a\0b", "\ud800", an_id(1))))
    assert found == [{}, {}, {}]


async def test_text_that_cannot_be_stored_is_refused_by_name(reads: Reads) -> None:
    """Not as a fault of the database."""
    with pytest.raises(InvalidRequest):
        await reads.run(lambda connection: read.execution_by_workflow_id(connection, ORG, "a\0b"))
    with pytest.raises(InvalidRequest):
        await reads.run(lambda connection: read.execution_by_workflow_id(connection, ORG, "\ud800"))
    assert await reads.run(answer) == 42


async def test_an_error_reaches_all_who_share_a_query(reads: Reads) -> None:
    """And the next call is not harmed."""
    broken = True

    async def fetch(connection: Any, ids: Sequence[str]) -> list[tuple[str, str, int]]:
        if broken:
            raise ZeroDivisionError
        return [(one, ORG, 1) for one in ids]

    coalesced = reads.coalesced(fetch)
    outcomes = await asyncio.gather(*(coalesced.get(ORG, ["a"]) for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError] * 3
    broken = False
    assert await coalesced.get(ORG, ["a"]) == {"a": 1}


async def test_a_cancelled_read_leaves_a_pool_that_works(reads: Reads) -> None:
    """Also in the middle of its transaction."""

    async def endless(connection: Any) -> None:
        await connection.execute("BEGIN")
        await connection.fetchval("SELECT pg_sleep(600)")

    for _ in range(2):
        task = asyncio.create_task(reads.run(endless))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await reads.run(answer) == 42


async def test_a_read_that_never_ends_is_given_up(postgres_url: str) -> None:
    """At the deadline, as busy."""
    _, reads = await reads_at(postgres_url, busy_deadline_s=0.2)
    with pytest.raises(StorageBusy):
        await reads.run(lambda connection: connection.fetchval("SELECT pg_sleep(600)"))
    assert await reads.run(answer) == 42
    await reads.stop()


async def test_others_who_read_are_waited_for_as_long_as_was_said(reads: Reads) -> None:
    """Then it is said that all connections are taken; who did not say waits on."""
    going, go_on = asyncio.Event(), asyncio.Event()

    async def slow(connection: Any) -> None:
        going.set()
        await go_on.wait()

    first = asyncio.create_task(reads.run(slow))
    await going.wait()
    patient = asyncio.create_task(reads.run(answer))
    with pytest.raises(StorageBusy, match="taken by other reads") as busy:
        await reads.run(answer, 0.01)

    assert busy.value.details["readers"] == 1
    go_on.set()
    await first
    assert await patient == 42
    assert await reads.run(answer, 0.01) == 42


async def test_a_server_that_is_slow_to_connect_takes_no_connections(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for until the deadline, by all."""
    database, reads = await reads_at(postgres_url, readers=1)
    meet, going, go_on = database._meet, asyncio.Event(), asyncio.Event()

    async def met_late(connection: Any) -> None:
        going.set()
        await go_on.wait()
        await meet(connection)

    monkeypatch.setattr(database, "_meet", met_late)
    first = asyncio.create_task(reads.run(answer, 0.3))
    await going.wait()
    second = asyncio.create_task(reads.run(answer, 0.3))
    done, _ = await asyncio.wait([first, second], timeout=0.5)
    assert not done
    go_on.set()
    assert (await first, await second) == (42, 42)
    await reads.stop()


@pytest.mark.parametrize("query", ["", "?notify=off"])
@pytest.mark.parametrize("planned", [index_only, in_time])
async def test_the_server_ends_a_read_that_takes_too_long(postgres_url: str, query: str, planned: Any) -> None:
    """Also where a session is no more than a transaction. Once is enough: it would take as long again."""
    _, reads = await reads_at(f"{postgres_url}{query}", statement_timeout_s=0.05)
    runs = 0

    @planned
    async def endless(connection: Any) -> None:
        nonlocal runs
        runs += 1
        await connection.fetchval("SELECT pg_sleep(600)")

    with pytest.raises(StorageBusy, match="statement_timeout_s"):
        await reads.run(endless)
    assert runs == 1
    assert await reads.run(answer) == 42
    await reads.stop()


async def test_slow_lists_do_not_keep_the_engine_from_reading(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timers, histories, news and keys have a connection of their own. Callers are told soon."""
    monkeypatch.setattr(stores, "QUEUE_S", 0.05)
    bench = await Bench.opened(_opener(postgres_url))
    store: Any = bench.store
    going = asyncio.Semaphore(0)

    async def slow(connection: Any) -> None:
        going.release()
        await connection.fetchval("SELECT pg_sleep(600)")

    lists = [asyncio.create_task(store._opened.reads.run(slow)) for _ in range(StoreConfig().readers)]
    for _ in lists:
        await going.acquire()

    assert await store.next_due_at(START) is None
    assert await store.pending_events_for("w-1") == []
    assert await store.history(ORG, an_id(1)) == []
    assert await store.pauses() == []
    assert await store.key_by_hash("") is None
    with pytest.raises(StorageBusy):
        await store.list_executions(ExecutionQuery(org=ORG))
    for task in lists:
        task.cancel()
    await asyncio.gather(*lists, return_exceptions=True)
    await store.close()


async def test_an_open_that_fails_leaves_nothing_behind(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No task, no connection, however far it came."""

    async def broken(_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(stores, "settings", broken)
    before = asyncio.all_tasks()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await Bench.opened(_opener(postgres_url))
    assert asyncio.all_tasks() == before
    connection = await asyncpg.connect(postgres_url)
    count = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'holdfast'"
    await until(lambda: connection.fetchval(f"{count} AND datname = current_database()"))
    await connection.close()


async def test_after_the_stop_nothing_is_read(postgres_url: str) -> None:
    _, reads = await reads_at(postgres_url)
    assert await reads.run(answer) == 42
    await reads.stop()
    with pytest.raises(EngineStopped):
        await reads.run(answer)


async def test_reads_outlive_a_restart_of_the_server() -> None:
    """One that finds its connection dead, and one that finds no server at all."""
    with LocalPostgres() as server:
        _, reads = await reads_at(server.url, readers=2)
        assert await asyncio.gather(*(reads.run(answer) for _ in range(2))) == [42] * 2
        await asyncio.to_thread(server.restart)
        assert await asyncio.gather(*(reads.run(answer) for _ in range(4))) == [42] * 4

        await asyncio.to_thread(server.kill)
        waiting = asyncio.create_task(reads.run(answer))
        await asyncio.to_thread(server.start)
        assert await waiting == 42
        await reads.stop()


async def test_the_next_due_moment_is_looked_up_never_searched(reads: Reads) -> None:
    """Also with a plan that was made while the tables were empty."""

    async def plan(connection: Any) -> str:
        await connection.execute("VACUUM ANALYZE holdfast_tasks, holdfast_ready, holdfast_timers, holdfast_deliveries")
        return await explained(connection)

    async def explained(connection: Any) -> str:
        found: list[str] = []

        class Explaining:
            async def execute(self, query: str) -> Any:
                return await connection.execute(query)

            async def fetchrow(self, query: str, *args: Any) -> tuple[None, None, None, int]:
                found.extend(row[0] for row in await connection.fetch(f"EXPLAIN {query}", *args))
                return None, None, None, 0

        await read.next_due(Explaining(), START, 0)  # type: ignore[arg-type]
        return "\n".join(found)

    text = await reads.run(plan)
    assert text.count("Index") >= 5
    assert "Seq Scan" not in text


async def test_a_page_by_state_does_not_walk_the_primary_key(reads: Reads) -> None:
    """That would lead past all that are in other states and orgs."""

    async def plan(connection: Any) -> str:
        sql, values = pages._page(ExecutionQuery(org=ORG, queue="q", created_from=START), by_tag=False)
        await connection.execute("BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        rows = await connection.fetch(f"EXPLAIN {sql}", *values)
        await connection.execute("ROLLBACK")
        return "\n".join(row[0] for row in rows)

    text = await reads.run(plan)
    assert "Index" in text
    assert "Backward using holdfast_executions_pkey" not in text


def test_every_statement_has_a_name_of_its_own() -> None:
    """Two of the same name in one file would hide one."""
    for file in files("holdfast.store.postgres").joinpath("sql").iterdir():
        names = re.findall(r"^-- name: (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert names
        assert len(names) == len(set(names)), file.name


def _opener(url: str) -> Any:
    async def open_(clock: Any, source: Any) -> PostgresStore:
        store = PostgresStore(url, StoreConfig(), clock)
        await store.open(source)
        return store

    return open_
