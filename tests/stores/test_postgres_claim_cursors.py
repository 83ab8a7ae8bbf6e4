"""Claims on PostgreSQL from queues whose front is full of dead rows: they begin behind them, and miss nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from holdfast.model.executions import Ready
from holdfast.store.claim_cursors import ClaimCursor, ClaimCursors, ClaimScope
from holdfast.store.postgres import transactions
from holdfast.store.postgres.claims import Claims
from holdfast.store.postgres.load import load
from holdfast.store.postgres.statements import columns, statement
from holdfast.store.protocol import LoadPlan, StickyPolicy
from tests.stores.always_cursors import claim_from_cursors
from tests.stores.query_plans import pages_touched
from verification.stores import Bench
from verification.stores.bench import START
from verification.stores.claiming import Claiming, make_ready, task_claim, turn_claim
from verification.stores.records import ORG, a_task, an_id

LEAVE = StickyPolicy(min_events=500, sticky_us=100_000)
MINUTE = 60_000_000
MANY = 20_000
KEYS_ONLY = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"


@pytest.fixture
def every_scope_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    claim_from_cursors(monkeypatch, transactions)


@pytest.mark.usefixtures("every_scope_is_long")
class TestClaimsInLanes(Claiming):
    """All that is said of claims holds of those in lanes."""

    shared = True


@pytest.mark.usefixtures("every_scope_is_long")
async def test_what_this_node_writes_is_seen_at_once(open_store):
    """Older than the beginning of its lane, or of a priority nobody has met."""
    bench = await Bench.opened(open_store)
    bench.now = START + MINUTE
    await make_ready(bench, (1, 0, MINUTE))
    assert (await bench.load(turn_claims=[turn_claim()])).turn_claims == [[an_id(1)]]

    await make_ready(bench, (2, 0, 5), (3, 7, MINUTE))
    assert (await bench.load(turn_claims=[turn_claim()])).turn_claims == [[an_id(3), an_id(2), an_id(1)]]


@pytest.mark.usefixtures("every_scope_is_long")
async def test_a_claim_that_may_have_passed_something_by_says_when_to_claim_again(open_store):
    """Not one that has got all it wanted."""
    bench = await Bench.opened(open_store)
    bench.now = START + MINUTE
    made = await make_ready(bench, (1, 0, MINUTE))
    await bench.write(new_tasks=[a_task(made[0], scheduled_at=START + MINUTE)])
    full = await bench.load(turn_claims=[turn_claim(1)], task_claims=[task_claim(1)])
    assert full.claim_again_at is None
    for short in ({"turn_claims": [turn_claim(2)]}, {"task_claims": [task_claim(2)]}):
        again_at = (await bench.load(**short)).claim_again_at
        assert again_at is not None
        assert bench.now < again_at <= bench.now + 10_000_000


@pytest.mark.usefixtures("every_scope_is_long")
async def test_what_another_node_writes_is_seen_in_time(open_store):
    """What is young at once; what a lane passes by, ten seconds later at most."""
    bench, other = await Bench.opened(open_store), await Bench.opened(open_store)
    bench.now = other.now = START + MINUTE
    assert (await bench.load(turn_claims=[turn_claim()])).turn_claims == [[]]
    await make_ready(other, (1, 0, MINUTE - 1_000_000), (2, 0, 5), (3, 7, MINUTE))

    assert (await bench.load(turn_claims=[turn_claim()])).turn_claims == [[an_id(1)]]
    bench.now += 10_000_000
    assert (await bench.load(turn_claims=[turn_claim()])).turn_claims == [[an_id(3), an_id(2), an_id(1)]]


@pytest.mark.usefixtures("every_scope_is_long")
async def test_rows_that_somebody_holds_are_passed_by(postgres_url, open_store):
    bench = await Bench.opened(open_store)
    made = await make_ready(bench, *((number, 0, number) for number in range(1, 9)))
    await bench.write(new_tasks=[a_task(execution, scheduled_at=START + n) for n, execution in enumerate(made)])
    async with held(postgres_url, an_id(1), an_id(3)):
        loaded = await bench.load(turn_claims=[turn_claim(3)], task_claims=[task_claim(3)])
    assert loaded.turn_claims == [[an_id(2), an_id(4), an_id(5)]]
    assert [key for key, _ in loaded.task_claims[0]] == [an_id(2), an_id(4), an_id(5)]


@pytest.mark.parametrize("sticky", [None, LEAVE], ids=["alone", "in company"])
async def test_a_claim_continues_behind_what_somebody_holds(postgres_url, open_store, sticky):
    """Another node is about to take the first: it must not cost this one its share."""
    bench = await Bench.opened(open_store)
    await make_ready(bench, *((number, 0, number) for number in range(1, 9)))
    async with held(postgres_url, an_id(1), an_id(2), an_id(3)):
        loaded = await bench.load(turn_claims=[turn_claim(3, sticky=sticky)])
    assert loaded.turn_claims == [[an_id(4), an_id(5), an_id(6)]]
    assert loaded.executions.keys() == set(loaded.turn_claims[0])


@pytest.mark.parametrize("sticky", [None, LEAVE], ids=["alone", "in company"])
async def test_a_claim_continues_behind_what_somebody_has_just_taken(monkeypatch, open_store, sticky):
    """Between finding and locking: a claim that comes back with less looks as if there were no more."""
    claim_from_cursors(monkeypatch, transactions)
    bench, other = await Bench.opened(open_store), await Bench.opened(open_store)
    made = await make_ready(bench, *((number, 0, number) for number in range(1, 9)))
    really = Claims._from_cursors

    async def slowly(*args: Any) -> list[Any]:
        found = await really(*args)
        for execution in made[:3]:
            execution.ready = Ready(since_at=START, worker="w-2")
        await other.write(ready={execution.id: execution for execution in made[:3]})
        return found

    monkeypatch.setattr(Claims, "_from_cursors", slowly)
    loaded = await bench.load(turn_claims=[turn_claim(3, sticky=sticky)])
    assert loaded.turn_claims == [[an_id(4), an_id(5), an_id(6)]]


@pytest.mark.parametrize("sticky", [None, LEAVE], ids=["alone", "in company"])
@pytest.mark.parametrize("from_cursors", [False, True], ids=["from the beginning", "in lanes"])
async def test_a_small_claim_continues_behind_all_that_somebody_holds(
    request, postgres_url, open_store, sticky, from_cursors
):
    """However little room a node has: somebody's long transaction holds up what it has touched, and nothing else."""
    if from_cursors:
        request.getfixturevalue("every_scope_is_long")
    bench = await Bench.opened(open_store)
    made = await make_ready(bench, *((number, 0, number) for number in range(1, 52)))
    await bench.write(new_tasks=[a_task(execution, scheduled_at=START + n) for n, execution in enumerate(made)])
    async with held(postgres_url, *(an_id(number) for number in range(1, 51))):
        loaded = await bench.load(turn_claims=[turn_claim(1, sticky=sticky)], task_claims=[task_claim(1)])
    assert loaded.turn_claims == [[an_id(51)]]
    assert [key for key, _ in loaded.task_claims[0]] == [an_id(51)]


async def test_whose_row_is_held_is_not_touched(postgres_url, open_store):
    """Its holder is about to write the ready row and the task: he must not have to wait for whoever has passed by."""
    bench = await Bench.opened(open_store)
    made = await make_ready(bench, (1, 0, 1), (2, 0, 2))
    await bench.write(new_tasks=[a_task(execution) for execution in made])
    claiming, looking = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    free = "SELECT execution_id FROM holdfast_{} FOR UPDATE SKIP LOCKED"
    try:
        async with held(postgres_url, an_id(1)), claiming.transaction():
            plan = LoadPlan(turn_claims=[turn_claim()], task_claims=[task_claim()])
            loaded = await load(claiming, plan, START + MINUTE)
            assert loaded.turn_claims == [[an_id(2)]]
            assert [row[0] for row in await looking.fetch(free.format("ready"))] == [an_id(1)]
            assert [row[0] for row in await looking.fetch(free.format("tasks"))] == [an_id(1)]
    finally:
        await claiming.close()
        await looking.close()


async def test_dead_rows_are_not_walked(postgres_url, open_store):
    """Twenty thousand rows that are gone and may not be cleared away: a claim in lanes touches a few pages."""
    bench = await Bench.opened(open_store)
    await make_ready(bench, *((number, 0, MINUTE) for number in range(1, 6)))
    now = START + MINUTE
    async with amid_dead_rows(postgres_url) as connection:
        able = ("default", ["shipping"], ["1"], ["b1"])
        cursors = await found_cursors(connection, now)
        assert cursors == [ClaimCursor("default", 0, now - 2_000_000)]
        from_the_beginning = await pages_touched(connection, "ready", "claimable", ORG, *able, now, 10, 2**31, 2**62, 0)
        from_cursors = await pages_touched(
            connection, "ready", "from_cursors", ORG, *columns(cursors, 3), *able[1:], now, 10, 2**31
        )
    assert from_the_beginning > 200
    assert from_cursors < 30


async def test_rows_of_unknown_kinds_are_not_walked(postgres_url, open_store):
    """Those who know them are away: twenty thousand living rows, and a claim of what comes behind them touches a few
    pages."""
    bench = await Bench.opened(open_store)
    await make_ready(bench, *((number, 0, MINUTE) for number in range(1, 6)))
    now = START + MINUTE
    connection = await asyncpg.connect(postgres_url)
    try:
        await waiting(connection, kind="unknown")
        await connection.execute(KEYS_ONLY)
        cursors = await found_cursors(connection, now)
        assert cursors == [ClaimCursor("default", 0, now - 2_000_000)]
        able = (["shipping"], ["1"], ["b1"], now, 10, 2**31)
        from_the_beginning = await pages_touched(connection, "ready", "claimable", ORG, "default", *able, 2**62, 0)
        from_cursors = await pages_touched(connection, "ready", "from_cursors", ORG, *columns(cursors, 3), *able)
    finally:
        await connection.close()
    assert from_the_beginning > 200
    assert from_cursors < 30


@asynccontextmanager
async def held(url: str, *ids: str) -> AsyncIterator[None]:
    """Somebody else's transaction has locked these heads."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.fetch("SELECT 1 FROM holdfast_executions WHERE id = ANY ($1) FOR NO KEY UPDATE", ids)
            yield
    finally:
        await connection.close()


async def found_cursors(connection: Any, now: int) -> list[ClaimCursor]:
    """As a node finds them that knows one kind."""
    known, scope = ClaimCursors(), ClaimScope("turns", ORG, ("default",), (("shipping",), ("1",)))
    assert known.should_refresh(scope, 1.0, now)
    found = await connection.fetch(statement("ready", "oldest_live"), scope.org, scope.queues, *scope.known)
    known.refreshed(scope, found, 1.0, now)
    return list(known.cursors(scope, now) or ())


async def waiting(connection: Any, *, kind: str) -> None:
    """Twenty thousand ready rows, older than any other."""
    await connection.execute(
        "INSERT INTO holdfast_ready (execution_id, org, queue, priority, kind, version, since_at, not_before_at, "
        "news) SELECT 'many-' || n, $1, 'default', 0, $4, '1', $2::bigint + n, 0, true "
        "FROM generate_series(1, $3::integer) AS n",
        ORG,
        START,
        MANY,
        kind,
    )


@asynccontextmanager
async def amid_dead_rows(url: str) -> AsyncIterator[Any]:
    """Rows have come and gone while somebody reads for an hour."""
    connection, reader = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await reader.fetch("SELECT 1 FROM holdfast_ready")
        await waiting(connection, kind="shipping")
        await connection.execute("DELETE FROM holdfast_ready WHERE execution_id LIKE 'many-%'")
        await connection.execute(KEYS_ONLY)
        yield connection
    finally:
        await reader.close()
        await connection.close()
