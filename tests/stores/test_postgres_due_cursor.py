"""Due work on PostgreSQL amid dead rows: passes begin behind them, and miss nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from holdfast.model.executions import Execution
from holdfast.store.postgres import due_cursor, read
from holdfast.store.postgres.due_cursor import DueCursor
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.protocol import BatchSource, Clock, Store
from tests.stores.query_plans import pages_touched
from verification.stores import Bench, OpenStore
from verification.stores.bench import START
from verification.stores.loading import Loading
from verification.stores.reading import Reading
from verification.stores.records import ORG, a_task, a_timer, an_execution, an_id

SECOND = 1_000_000
MINUTE = 60 * SECOND
DEAD = 20_000


@pytest.fixture
def every_lookup_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_cursor, "LONG_US", -1)


@pytest.mark.usefixtures("every_lookup_is_long")
class _Looked:
    """Stores that have looked before they are used."""

    @pytest.fixture
    async def open_store(self, open_store: OpenStore) -> OpenStore:
        async def open_(clock: Clock, source: BatchSource) -> Store:
            store = await open_store(clock, source)
            await store.next_due_at(clock())
            assert isinstance(store, PostgresStore)
            assert store.due_from
            return store

        return open_


class TestLoadingFromAFloor(_Looked, Loading):
    """All that is said of loading holds of passes that begin at a floor."""

    shared = True


class TestReadingFromAFloor(_Looked, Reading):
    """So does all that is said of when something is due."""

    shared = True


async def begun(bench: Bench, *numbers: int) -> list[Execution]:
    made = [an_execution(number) for number in numbers]
    await bench.write(new_executions=made)
    return made


async def due(bench: Bench) -> tuple[list[str], list[str]]:
    """Whose timers and whose tasks are due now."""
    loaded = await bench.load(due_timers=10, due_tasks=10)
    return [timer.execution_id for timer in loaded.due_timers], [key for key, _ in loaded.due_tasks]


@pytest.mark.usefixtures("every_lookup_is_long")
async def test_what_this_node_writes_is_seen_at_once(open_store):
    bench = await Bench.opened(open_store)
    first, second = await begun(bench, 1, 2)
    bench.now = START + MINUTE
    assert await bench.store.next_due_at(bench.now) is None

    await bench.write(new_timers=[a_timer(first, fire_at=START + 5)], new_tasks=[a_task(second, due_at=START + 7)])
    assert await bench.store.next_due_at(bench.now) == START + 5
    assert await due(bench) == ([an_id(1)], [an_id(2)])


@pytest.mark.usefixtures("every_lookup_is_long")
async def test_what_another_node_writes_is_seen_in_time(open_store):
    """What has become due just now at once; what was due long before, after the next look."""
    bench, other = await Bench.opened(open_store), await Bench.opened(open_store)
    first, second = await begun(bench, 1, 2)
    bench.now = other.now = START + MINUTE
    assert await bench.store.next_due_at(bench.now) is None

    await other.write(new_timers=[a_timer(first, fire_at=START + 5), a_timer(second, fire_at=bench.now - SECOND)])
    assert await bench.store.next_due_at(bench.now) == bench.now - SECOND
    assert await due(bench) == ([an_id(2)], [])

    bench.now += 10 * SECOND
    assert await bench.store.next_due_at(bench.now) == START + 5
    assert await due(bench) == ([an_id(1), an_id(2)], [])


@pytest.mark.usefixtures("every_lookup_is_long")
async def test_a_clock_that_is_put_back_makes_it_look_again(open_store):
    bench, other = await Bench.opened(open_store), await Bench.opened(open_store)
    (first,) = await begun(bench, 1)
    bench.now = START + 60 * MINUTE
    assert await bench.store.next_due_at(bench.now) is None
    bench.now = START + MINUTE
    await other.write(new_timers=[a_timer(first, fire_at=START + 5)])
    assert await bench.store.next_due_at(bench.now) == START + 5


@pytest.mark.usefixtures("every_lookup_is_long")
async def test_what_is_written_while_somebody_looks_counts(monkeypatch, open_store):
    bench = await Bench.opened(open_store)
    (first,) = await begun(bench, 1)
    bench.now = START + MINUTE

    async def slowly(*args: Any) -> Any:
        found = await read.next_due(*args)
        await bench.write(new_timers=[a_timer(first, fire_at=START + 5)])
        return found

    monkeypatch.setattr("holdfast.store.postgres.due_cursor.next_due", slowly)
    assert await bench.store.next_due_at(bench.now) is None
    assert await due(bench) == ([an_id(1)], [])


async def test_a_quick_look_leaves_no_cursor(open_store):
    store: Any = (await Bench.opened(open_store)).store
    await store.next_due_at(START)
    assert store.due_from == 0


async def test_dead_rows_are_not_walked(monkeypatch, postgres_url, open_store):
    """Twenty thousand timers that are gone and may not be cleared away: a pass touches a few pages."""
    monkeypatch.setattr(due_cursor, "LONG_US", -1)
    await Bench.opened(open_store)  # makes the tables
    now = START + MINUTE
    async with amid_dead_rows(postgres_url) as connection:
        cursor = DueCursor()
        assert await cursor.next_due_at(connection, now, now) is None
        assert cursor.at == now - 2 * SECOND
        for file, name, values in (
            ("timers", "anything_due", (now,)),
            ("timers", "due", (now, 10)),
            ("ready", "next_due", (now,)),
        ):
            assert await pages_touched(connection, file, name, *values, 0) > 100
            assert await pages_touched(connection, file, name, *values, cursor.at) < 30


@asynccontextmanager
async def amid_dead_rows(url: str) -> AsyncIterator[Any]:
    """Timers have come and gone while somebody reads for an hour."""
    connection, reader = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await reader.fetch("SELECT 1 FROM holdfast_timers")
        await connection.execute(
            "INSERT INTO holdfast_timers (execution_id, timer_no, org, fire_at) "
            "SELECT 'gone-' || n, 1, $1, $2::bigint + n FROM generate_series(1, $3::integer) AS n",
            ORG,
            START,
            DEAD,
        )
        await connection.execute("DELETE FROM holdfast_timers")
        await connection.execute("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
        yield connection
    finally:
        await reader.close()
        await connection.close()
