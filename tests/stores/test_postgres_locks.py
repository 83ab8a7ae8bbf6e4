"""Who waits for whom on PostgreSQL: topics and heads are waited for, claims and due work never; nobody in a circle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from holdfast.model.executions import Ready
from holdfast.store.postgres import transactions
from holdfast.store.postgres.load_messages import lock_of
from holdfast.store.protocol import Changes, Loaded, LoadPlan
from tests.conftest import PATIENCE_S, until
from verification.chaos import broken_store
from verification.stores import Bench
from verification.stores.bench import START
from verification.stores.claiming import turn_claim
from verification.stores.messages import a_match
from verification.stores.records import ORG, a_timer, an_execution, an_id

HEAD = "SELECT 1 FROM holdfast_executions WHERE id = $1 FOR NO KEY UPDATE"
SOMEBODY_WAITS = (
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')"
)
TOPIC = "SELECT 1 FROM holdfast_topic_locks WHERE id = $1 FOR NO KEY UPDATE"


@asynccontextmanager
async def held(url: str, sql: str, *values: object) -> AsyncIterator[None]:
    """Somebody else's transaction has locked this."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            assert await connection.fetch(sql, *values)
            yield
    finally:
        await connection.close()


async def test_whoever_sends_waits_for_the_topic(postgres_url, open_store):
    """Not for other topics."""
    bench = await Bench.opened(open_store)
    async with held(postgres_url, TOPIC, lock_of((ORG, "go"))):
        waiting = asyncio.create_task(bench.load(matches=[a_match()]))
        assert lock_of((ORG, "stop")) != lock_of((ORG, "go"))
        await bench.load(matches=[a_match(key="stop")])
        assert not waiting.done()
    await waiting


@pytest.mark.parametrize("plan", [{"topics": {(ORG, "go")}}, {"event_keys": {(ORG, "go")}}])
async def test_whoever_starts_to_wait_does_so_under_the_lock_of_the_topic(plan, postgres_url, open_store):
    """And whoever counts what is kept for it."""
    bench = await Bench.opened(open_store)
    async with held(postgres_url, TOPIC, lock_of((ORG, "go"))):
        waiting = asyncio.create_task(bench.load(**plan))
        await bench.load(executions={an_id(1)})
        assert not waiting.done()
    await waiting


async def test_a_store_that_does_not_lock_topics_is_found_out(postgres_url, open_store):
    """What these tests say would not hold for it: whoever sends or begins to wait does so under somebody's hands."""
    bench = await Bench.opened(open_store)
    with broken_store.planted("topics_not_locked"):
        async with held(postgres_url, TOPIC, lock_of((ORG, "go"))):
            await asyncio.wait_for(bench.load(topics={(ORG, "go")}), PATIENCE_S)


async def test_a_head_is_waited_for_and_read_anew(postgres_url, open_store):
    """What its holder has written meanwhile is what is loaded."""
    bench = await Bench.opened(open_store)
    await bench.write(new_executions=[an_execution(1), an_execution(2)])
    connection = await asyncpg.connect(postgres_url)
    async with connection.transaction():
        await connection.execute("UPDATE holdfast_executions SET last_seq = 77 WHERE id = $1", an_id(1))
        await connection.execute(
            "INSERT INTO holdfast_ready VALUES ($1, $2, 'default', 0, 'shipping', '1', $3, 0, NULL, false, NULL)",
            an_id(1),
            ORG,
            START,
        )
        waiting = asyncio.create_task(bench.load(executions={an_id(1)}))
        await bench.load(executions={an_id(2)})
        assert not waiting.done()
    await connection.close()

    execution_row = (await waiting).executions[an_id(1)]
    assert (execution_row.last_seq, execution_row.ready) == (77, Ready(since_at=START))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who waits for a head is set aside, to begin again later."""
    monkeypatch.setitem(transactions._SETTINGS, "lock_timeout", "60000")


@pytest.mark.usefixtures("patient")
async def test_a_key_that_moves_while_its_row_is_waited_for_is_looked_up_again(postgres_url, open_store):
    """The batch decides about the execution the key points at in the end."""
    loaded, seen = await _decided_while_the_key_moves(postgres_url, await Bench.opened(open_store))

    assert seen == [an_id(2)]
    assert loaded.executions.keys() == {an_id(2)}


@pytest.mark.usefixtures("patient")
async def test_a_store_that_does_not_look_up_keys_again_is_found_out(postgres_url, open_store):
    """It decides about an execution that the key has left."""
    with broken_store.planted("keys_not_looked_up_again"):
        _, seen = await _decided_while_the_key_moves(postgres_url, await Bench.opened(open_store))

    assert seen == [an_id(1)]


async def _decided_while_the_key_moves(url: str, bench: Bench) -> tuple[Loaded, list[str]]:
    """What is loaded in the end, and about which executions was decided."""
    old, new = an_execution(1), an_execution(2)
    await bench.write(new_executions=[old, new], workflow_keys={(ORG, "order"): old.id})
    seen: list[str] = []

    def decide(loaded: Loaded) -> Changes:
        seen.append(loaded.workflow_keys[ORG, "order"])
        return Changes()

    connection, looking = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.fetch(HEAD, old.id)
            waiting = asyncio.create_task(bench.run(LoadPlan(workflow_keys={(ORG, "order")}), decide))
            await until(lambda: looking.fetchval(SOMEBODY_WAITS))
            await connection.execute("UPDATE holdfast_workflow_keys SET execution_id = $1", new.id)
    finally:
        await connection.close()
        await looking.close()
    return await waiting, seen


@pytest.mark.usefixtures("patient")
async def test_a_child_that_gets_another_parent_while_its_row_is_waited_for_comes_with_that_one(
    postgres_url, open_store
):
    """A reset takes children over: whoever closes one has to tell the parent it has now."""
    bench = await Bench.opened(open_store)
    child = an_execution(3, parent_id=an_id(1), child_no=1, on_parent_close="abandon")
    await bench.write(new_executions=[an_execution(1), an_execution(2), child])
    connection, looking = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    try:
        async with connection.transaction():
            await connection.execute("UPDATE holdfast_executions SET parent_id = $1 WHERE id = $2", an_id(2), child.id)
            waiting = asyncio.create_task(bench.load(executions={child.id}))
            await until(lambda: looking.fetchval(SOMEBODY_WAITS))
    finally:
        await connection.close()
        await looking.close()
    assert {an_id(2), child.id} <= (await waiting).executions.keys()


async def test_claims_and_due_timers_pass_by_what_somebody_holds(postgres_url, open_store):
    """They come to it the next time."""
    bench = await Bench.opened(open_store)
    made = [an_execution(number, ready=Ready(since_at=START + number)) for number in (1, 2)]
    await bench.write(
        new_executions=made,
        ready={execution.id: execution for execution in made},
        new_timers=[a_timer(execution, fire_at=START) for execution in made],
    )
    async with held(postgres_url, HEAD, an_id(1)):
        loaded = await bench.load(turn_claims=[turn_claim()], due_timers=10)
        assert loaded.turn_claims == [[an_id(2)]]
        assert [timer.execution_id for timer in loaded.due_timers] == [an_id(2)]
    loaded = await bench.load(turn_claims=[turn_claim()], due_timers=10)
    assert loaded.turn_claims == [[an_id(1), an_id(2)]]
    assert len(loaded.due_timers) == 2


async def test_nodes_that_want_the_same_in_any_order_never_wait_in_a_circle(postgres_url, open_store):
    """Heads, topics and new keys of four nodes, in all directions: no deadlock is ever counted by the server."""
    benches = [await Bench.opened(open_store) for _ in range(4)]
    await benches[0].write(new_executions=[an_execution(number) for number in range(1, 9)])

    async def wrap_connection(bench: Bench, turn: int) -> None:
        wanted = [an_id(1 + (turn * 3 + step) % 8) for step in range(4)]
        topics = {(ORG, f"topic {(turn + step) % 5}") for step in range(3)}

        def decide(loaded: Loaded) -> Changes:
            for execution in loaded.executions.values():
                execution.signal_count += 1
            keys = {(ORG, f"key {(turn + step) % 7}"): wanted[0] for step in range(3)}
            return Changes(changed_executions=dict(loaded.executions), workflow_keys=keys)

        keys = {(ORG, f"key {number}") for number in range(7)}
        await bench.run(LoadPlan(executions=set(wanted), topics=topics, workflow_keys=keys), decide)

    await asyncio.gather(*(wrap_connection(bench, turn) for turn in range(12) for bench in benches))

    execution_rows = await benches[0].store.executions(ORG, [an_id(number) for number in range(1, 9)])
    assert sum(execution_row.signal_count for execution_row in execution_rows.values()) >= 12 * 4 * 4
    connection = await asyncpg.connect(postgres_url)
    counted = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert await connection.fetchval(counted) == 0
    await connection.close()
