"""A COMMIT that is lost, or whose answer is, through a proxy that cuts there: each batch is written exactly once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from holdfast import Engine, EngineConfig, StoreConfig
from tests.conftest import until
from verification.chaos import broken_store
from verification.chaos.proxy import Cut, Proxy
from verification.postgres import LocalPostgres
from verification.postgres_databases import SpareDatabases

CALLS = 50
# A connection that is held is given up after statement_timeout_s and a grace of five seconds.
CONFIG = EngineConfig(store=StoreConfig(statement_timeout_s=1.0, batch_size=10))


class Script:
    """What happens to the next COMMITs, one after another; then they pass."""

    def __init__(self, *cuts: Cut | None) -> None:
        self.cuts = list(cuts)

    def __call__(self, _: str) -> Cut | None:
        return self.cuts.pop(0) if self.cuts else None


@pytest.fixture
async def proxy(postgres_server: LocalPostgres) -> AsyncIterator[Proxy]:
    async with Proxy(postgres_server.port) as made:
        yield made


@pytest.fixture
def url(postgres_server: LocalPostgres) -> Iterator[str]:
    databases = SpareDatabases(postgres_server.url)
    with databases.one() as made:
        yield made
    databases.close()


async def publish_all(engine: Engine) -> list[int]:
    """Calls without a request id: whatever is written twice is there twice."""
    answers = await asyncio.gather(*(engine.client.publish_event("key", number) for number in range(CALLS)))
    return [answer.event_id for answer in answers]


async def kept(engine: Engine) -> Counter[int]:
    return Counter(view.data for view in await engine.client.list_events("key", limit=1_000))


ONCE = Counter(range(CALLS))
EVERY_CUT = [Cut.BEFORE, Cut.DURING, Cut.AFTER]


@pytest.mark.parametrize("cut", EVERY_CUT, ids=str)
@pytest.mark.parametrize("first", [True, False], ids=["the first", "a later one"])
async def test_a_batch_whose_commit_is_cut_is_written_once(proxy: Proxy, url: str, cut: Cut, first: bool):
    """Before: nothing was written, it is tried again. After: it is known to stand, and answered. By its first
    transaction a writer has left no mark yet."""
    async with Engine(proxy.url_of(url), config=CONFIG) as engine:
        if not first:
            await engine.client.publish_event("other")
        proxy.choose = Script(cut)
        ids = await publish_all(engine)

        assert ONCE == await kept(engine)
        assert CALLS == len(set(ids))
        assert 1 == proxy.counts[cut]


@pytest.mark.parametrize("cut", EVERY_CUT, ids=str)
async def test_several_cuts_in_a_row_change_nothing(proxy: Proxy, url: str, cut: Cut):
    """Also the COMMIT of the second and third try may be lost."""
    async with Engine(proxy.url_of(url), config=CONFIG) as engine:
        proxy.choose = Script(cut, cut, cut, None, cut)
        await publish_all(engine)

        assert ONCE == await kept(engine)
        assert 4 == proxy.counts[cut]


@pytest.mark.parametrize(
    ("mutant", "cut"),
    [("lost_commit_counts_as_failed", Cut.AFTER), ("lost_commit_counts_as_committed", Cut.BEFORE)],
    ids=str,
)
async def test_a_store_that_only_guesses_is_found_out(proxy: Proxy, url: str, mutant: str, cut: Cut):
    """What these tests say would not hold for it: something is there twice, or was answered and is not there."""
    with broken_store.planted(mutant):
        async with Engine(proxy.url_of(url), config=CONFIG) as engine:
            await engine.client.publish_event("other")
            proxy.choose = Script(cut)
            await publish_all(engine)

            assert ONCE != await kept(engine)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [Cut.HELD_BEFORE, Cut.HELD_AFTER], ids=str)
async def test_a_commit_that_nobody_answers_is_looked_up(proxy: Proxy, url: str, cut: Cut):
    """The connection stands and is silent. Its session is ended, whatever it was about to do."""
    async with Engine(proxy.url_of(url), config=CONFIG) as engine:
        await engine.client.publish_event("other")
        proxy.choose = Script(None, cut)
        await publish_all(engine)

        assert ONCE == await kept(engine)
        assert 1 == proxy.counts[cut]
        assert 0 == await _forgotten_transactions(url)


@pytest.mark.slow
async def test_nobody_is_answered_while_nothing_passes(proxy: Proxy, url: str):
    """A network that stands still: calls wait, and go on when it does."""
    async with Engine(proxy.url_of(url), config=CONFIG) as engine:
        await engine.client.publish_event("other")
        proxy.block()
        calls = asyncio.ensure_future(publish_all(engine))
        await asyncio.sleep(0.5)
        assert not calls.done()
        proxy.heal()
        await calls

        assert ONCE == await kept(engine)


@pytest.fixture(scope="module")
def slow_to_commit() -> Iterator[LocalPostgres]:
    """A COMMIT takes 100 ms, and an immediate stop loses nothing that was committed."""
    settings = {"fsync": "on", "synchronous_commit": "on", "commit_delay": "100000", "commit_siblings": "0"}
    with LocalPostgres(settings=settings) as server:
        yield server


@pytest.mark.parametrize("first", [True, False], ids=["the first", "a later one"])
async def test_a_commit_still_under_way_is_waited_for(slow_to_commit: LocalPostgres, first: bool):
    """The client is gone, the server has not finished: nobody may say yet that nothing was written."""
    url = slow_to_commit.create_database(f"waited_{first}".lower())

    assert ONCE == await _cut_while_it_commits(slow_to_commit, url, first=first)


async def test_a_store_that_does_not_wait_for_its_first_commit_is_found_out(slow_to_commit: LocalPostgres):
    """It sees no mark, takes the commit for lost, and makes it again."""
    url = slow_to_commit.create_database("not_waited")
    with broken_store.planted("first_commit_not_waited_for"):
        assert ONCE != await _cut_while_it_commits(slow_to_commit, url, first=True)


async def _cut_while_it_commits(server: LocalPostgres, url: str, *, first: bool) -> Counter[int]:
    """What is kept of calls whose COMMIT, the writer's first or a later one, takes long when it is cut."""
    going_on: list[asyncio.Task[None]] = []

    async def stop_in_the_middle() -> None:
        pid = await _committing(url)
        os.kill(pid, signal.SIGSTOP)
        going_on.append(asyncio.ensure_future(_go_on(pid)))

    async with Proxy(server.port) as proxy, Engine(proxy.url_of(url), config=CONFIG) as engine:
        if not first:
            await engine.client.publish_event("other")
        proxy.before_cut = stop_in_the_middle
        proxy.choose = Script(Cut.DURING)
        await publish_all(engine)
        await asyncio.gather(*going_on)
        await _done(url)

        assert 1 == len(going_on) == proxy.counts[Cut.DURING]
        return await kept(engine)


COMMITTING = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT'"
    " AND state = 'active' AND wait_event IS DISTINCT FROM 'ClientRead'"
)


async def _committing(url: str) -> int:
    """The process of the server that is in the middle of a COMMIT."""
    connection = await asyncpg.connect(url)
    try:
        return await until(lambda: connection.fetchval(COMMITTING))
    finally:
        await connection.close()


async def _done(url: str) -> None:
    """Nobody is in the middle of one any more."""
    connection = await asyncpg.connect(url)
    try:

        async def quiet() -> bool:
            return await connection.fetchval(COMMITTING) is None

        await until(quiet)
    finally:
        await connection.close()


async def _go_on(pid: int) -> None:
    """A disk that takes its time: a COMMIT can't be interrupted while it waits for it."""
    await asyncio.sleep(0.5)
    os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["immediate", "killed"])
async def test_a_server_that_goes_down_while_it_commits(slow_to_commit: LocalPostgres, how: str):
    """Whether the commit was in time or not: written once. Answered calls are never lost."""
    url = slow_to_commit.create_database(f"down_{how}")
    async with Proxy(slow_to_commit.port) as proxy, Engine(proxy.url_of(url), config=CONFIG) as engine:
        await engine.client.publish_event("other")
        for _ in range(3):
            committing = asyncio.Event()

            def tell(_: str, committing: asyncio.Event = committing) -> None:
                committing.set()

            proxy.choose = tell
            calls = asyncio.ensure_future(publish_all(engine))
            await committing.wait()
            if how == "killed":
                await asyncio.to_thread(slow_to_commit.kill)
                await asyncio.to_thread(slow_to_commit.start)
            else:
                await asyncio.to_thread(slow_to_commit.restart, "immediate")
            await calls

        assert Counter(dict.fromkeys(range(CALLS), 3)) == await kept(engine)


async def _forgotten_transactions(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in trans%'"
        )
    finally:
        await connection.close()
