"""Where claims begin in queues whose front is full of what they may not take; and claims in lanes on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from holdfast.config import StoreConfig
from holdfast.store import claim_cursors
from holdfast.store.claim_cursors import ClaimCursor, ClaimCursors, ClaimScope
from holdfast.store.protocol import BatchSource, Clock, Store
from holdfast.store.sqlite import transactions
from holdfast.store.sqlite.store import SqliteStore
from tests.stores.always_cursors import claim_from_cursors
from verification.stores import Bench, OpenStore
from verification.stores.bench import START
from verification.stores.claiming import Claiming, make_ready, task_claim, turn_claim
from verification.stores.records import ORG, a_task, an_id

MINUTE = 60_000_000
SECOND = 1_000_000
LINE = ClaimScope("turns", ORG, ("default",), (("shipping",), ("1",)))


@pytest.fixture
async def open_store(tmp_path: Path) -> AsyncIterator[OpenStore]:
    async with AsyncExitStack() as stack:

        async def open_(clock: Clock, source: BatchSource) -> Store:
            store = SqliteStore(tmp_path / "holdfast.db", StoreConfig(synchronous="normal"), clock)
            await store.open(source)
            stack.push_async_callback(store.close)
            return store

        yield open_


@pytest.fixture
def always_from_cursors(monkeypatch: pytest.MonkeyPatch) -> None:
    claim_from_cursors(monkeypatch, transactions)


@pytest.mark.usefixtures("always_from_cursors")
class TestClaimsInLanes(Claiming):
    """All that is said of claims holds of those in lanes."""

    shared = True


@pytest.mark.usefixtures("always_from_cursors")
async def test_what_this_process_writes_is_seen_at_once(open_store):
    """Older than the beginning of its lane, or of a priority nobody has met."""
    bench = await Bench.opened(open_store)
    bench.now = START + MINUTE
    await make_ready(bench, (1, 0, MINUTE))
    assert (await bench.load(turn_claims=[turn_claim()])).turn_claims == [[an_id(1)]]

    await make_ready(bench, (2, 0, 5), (3, 7, MINUTE))
    assert (await bench.load(turn_claims=[turn_claim()])).turn_claims == [[an_id(3), an_id(2), an_id(1)]]


@pytest.mark.usefixtures("always_from_cursors")
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


@pytest.mark.usefixtures("always_from_cursors")
async def test_what_another_process_writes_is_seen_in_time(open_store):
    """What is young at once; what a lane passes by, ten seconds later at most."""
    bench, other = await Bench.opened(open_store), await Bench.opened(open_store)
    bench.now = other.now = START + MINUTE
    assert (await bench.load(turn_claims=[turn_claim()], task_claims=[task_claim()])).turn_claims == [[]]
    made = await make_ready(other, (1, 0, MINUTE - SECOND), (2, 0, 5), (3, 7, MINUTE))
    await other.write(new_tasks=[a_task(made[0], scheduled_at=START + MINUTE), a_task(made[1], scheduled_at=START)])

    loaded = await bench.load(turn_claims=[turn_claim()], task_claims=[task_claim()])
    assert ([[an_id(1)]], [[(an_id(1), 1)]]) == (loaded.turn_claims, loaded.task_claims)
    bench.now += 10 * SECOND
    loaded = await bench.load(turn_claims=[turn_claim()], task_claims=[task_claim()])
    assert [[an_id(3), an_id(2), an_id(1)]] == loaded.turn_claims
    assert [[(an_id(2), 1), (an_id(1), 1)]] == loaded.task_claims


def test_only_a_slow_claim_is_looked_into(monkeypatch):
    """Not again and again; and if looking is quick, claims begin at the beginning."""
    monkeypatch.setattr(claim_cursors, "LONG_S", 60.0)
    known = ClaimCursors()
    assert not known.should_refresh(LINE, claim_cursors.SLOW_S, START)
    assert known.should_refresh(LINE, 1.0, START)
    known.refreshed(LINE, [], 0.0, START)
    assert not known.should_refresh(LINE, 1.0, START)
    assert () == known.cursors(LINE, START)
    assert known.should_refresh(LINE, 1.0, START + MINUTE)


def test_cursors_begin_where_the_first_row_was_found():
    """Or two seconds ago, where there is none: a transaction that is older may still be about to write one."""
    known = ClaimCursors()
    known.should_refresh(LINE, 1.0, START)
    known.refreshed(LINE, [("default", 7, START - MINUTE)], 0.1, START)
    assert {ClaimCursor("default", 7, START - MINUTE), ClaimCursor("default", 0, START - 2 * SECOND)} == set(
        known.cursors(LINE, START + SECOND) or ()
    )


def test_cursors_hold_for_twenty_times_as_long_as_finding_them_took():
    """Then one has to look again."""
    known = ClaimCursors()
    known.should_refresh(LINE, 1.0, START)
    known.refreshed(LINE, [], 0.1, START)
    assert known.cursors(LINE, START + 2 * SECOND - 1)
    assert known.cursors(LINE, START + 2 * SECOND) is None


def test_who_knows_other_kinds_has_cursors_of_its_own():
    """Where the rows begin that one may take says nothing of those that another may."""
    known = ClaimCursors()
    known.should_refresh(LINE, 1.0, START)
    known.refreshed(LINE, [], 0.1, START)
    assert () == known.cursors(LINE._replace(known=(("billing",), ("1",))), START)
