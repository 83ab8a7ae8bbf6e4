"""How long closed executions are kept: then nothing of them is left, and nothing else is touched."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial

import asyncpg
import pytest

from holdfast import WorkflowContext, task, workflow
from holdfast.engine import retention
from holdfast.engine.upkeep import remove_closed
from holdfast.engine.upkeep.remove_closed import RemoveClosed
from holdfast.errors import NotFound
from tests.conftest import QUICK, until
from tests.database_access import dump

AT_ONCE = replace(QUICK, closed_retention_s=0.0)


@task
async def remember(text: str) -> str:
    return text


@workflow
async def lives(ctx: WorkflowContext, text: str) -> str:
    """Has a bit of everything: a task, a timer, a promise, a wait for an event."""
    await ctx.task(remember, text)
    await ctx.any(ctx.promise("approval"), ctx.wait_for_event("order"), ctx.sleep(3600))
    return text


@workflow
async def waits(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("go")


@workflow
async def parent(ctx: WorkflowContext) -> None:
    """Ends before its child, which lives on."""
    ctx.child(waits, workflow_id="child", on_parent_close="abandon")
    await ctx.wait_for_signal("end")


@workflow
async def again(ctx: WorkflowContext, left: int) -> str:
    if left:
        ctx.continue_as_new(left - 1)
    return await ctx.wait_for_signal("go")


ALL = {"workflows": [lives, waits, parent, again], "tasks": [remember]}


async def sweep(running):
    """One walk over all executions."""
    while await running._local.upkeep.remove_closed():
        pass


async def swept(running, *ids):
    """Walk until these are gone: what was closed in this millisecond is not over yet."""

    async def gone():
        await sweep(running)
        return {} == await running.storage.executions("default", ids)

    await until(gone)


async def has_status(handle, status):
    return await handle.status() == status


async def last_waits(client):
    return await has_status(await client.find_workflow("w"), "WAITING")


async def live(client, workflow_id):
    """An execution with rows in as many tables as possible, closed."""
    handle = await client.start_workflow(lives, "x", workflow_id=workflow_id, metadata={"a": "b"})
    await until(partial(has_status, handle, "WAITING"))
    await handle.signal("unread", "x")
    await handle.terminate()
    return handle


async def test_by_default_everything_is_kept(engine):
    running = await engine(**ALL)
    handle = await live(running.client, "w")
    await sweep(running)
    assert await has_status(handle, "TERMINATED")


async def test_what_is_removed_is_unknown_and_its_workflow_id_is_free(engine):
    running = await engine(**ALL, config=AT_ONCE)
    handle = await live(running.client, "w")
    await swept(running, handle.id)

    with pytest.raises(NotFound):
        await running.client.history(handle.id)
    with pytest.raises(NotFound):
        await running.client.find_workflow("w")
    assert [] == list((await running.client.list_workflows()).items)
    assert [] == await running.client.dead_letters()
    assert (await running.client.start_workflow(waits, workflow_id="w", if_closed="reject")).created


async def test_no_table_is_forgotten(engine, database_url):
    """Also those that are added some day."""
    running = await engine(**ALL, config=AT_ONCE)
    handle = await live(running.client, "w")
    assert handle.id in dump(database_url)
    await swept(running, handle.id)
    await running.shutdown()
    assert handle.id not in dump(database_url)


async def test_what_is_open_or_young_stays(engine):
    running = await engine(**ALL, config=replace(QUICK, closed_retention_s=3600.0))
    waiting = await running.client.start_workflow(waits, workflow_id="open")
    closed = await live(running.client, "w")
    await sweep(running)
    old = await engine(**ALL, config=AT_ONCE)
    assert {waiting.id, closed.id} == set(await running.storage.executions("default", [waiting.id, closed.id]))

    await swept(old, closed.id)
    await waiting.signal("go", "on")
    assert "on" == await waiting.result()


async def test_the_id_of_the_newest_stays_with_it(engine):
    """An older execution of the same workflow id goes without it."""
    running = await engine(**ALL, config=AT_ONCE)
    first = await live(running.client, "w")
    second = await running.client.start_workflow(waits, workflow_id="w")
    await swept(running, first.id)

    assert second.id == (await running.client.find_workflow("w")).id
    await second.signal("go", "on")
    assert "on" == await second.result()


async def test_a_child_outlives_its_parent(engine):
    running = await engine(**ALL, config=AT_ONCE)
    first = await running.client.start_workflow(parent)
    await until(partial(has_status, first, "WAITING"))
    await first.signal("end")
    await first.result()
    await swept(running, first.id)

    child = await running.client.find_workflow("child")
    await child.signal("go", "on")
    assert "on" == await child.result()


async def test_a_run_goes_and_its_successor_stays(engine):
    running = await engine(**ALL, config=AT_ONCE)
    first = await running.client.start_workflow(again, 2, workflow_id="w")
    await until(partial(last_waits, running.client))
    last = await running.client.find_workflow("w")
    await swept(running, first.id)

    await last.signal("go", "on")
    assert "on" == await last.result()


async def test_pages_are_small_and_shared(engine, monkeypatch):
    """Two processes walk at once: everything goes, no transaction takes more than its portion."""
    monkeypatch.setattr(retention, "PAGE", 7)
    monkeypatch.setattr(retention, "AT_ONCE", 3)
    one, two = await engine(**ALL, config=AT_ONCE), await engine(**ALL, config=AT_ONCE)
    handles = [await one.client.start_workflow(waits) for _ in range(30)]
    await asyncio.gather(*(handle.terminate() for handle in handles))
    largest = 0
    decide = RemoveClosed.decide

    def watched(self, uow):
        nonlocal largest
        largest = max(largest, len(self.request.ids))
        return decide(self, uow)

    monkeypatch.setattr(RemoveClosed, "decide", watched)
    ids = [handle.id for handle in handles]
    await asyncio.gather(swept(one, *ids), swept(two, *ids))
    assert 3 == largest


def test_a_portion_has_as_many_events_as_go_at_once():
    """A history that is longer does not go with its execution, and counts for nothing."""
    found = [("a", 10), ("b", 5_000), ("c", 1_990), ("d", 1), ("e", 1_999), ("f", 2_001)]
    assert [("a", "b", "c"), ("d", "e", "f")] == list(retention._portions(found))


async def count_events(url, execution_id):
    """All there are, whether anybody could find them or not."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            sql = "SELECT count(*) FROM holdfast_events WHERE execution_id = ?"
            return file.execute(sql, (execution_id,)).fetchone()[0]
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval("SELECT count(*) FROM holdfast_events WHERE execution_id = $1", execution_id)
    finally:
        await connection.close()


async def long_life(client, workflow_id):
    """A closed execution with a history of more than thirty events."""
    handle = await client.start_workflow(waits, workflow_id=workflow_id)
    for number in range(30):
        await handle.signal("noise", number)
    await handle.terminate()
    return handle


async def assert_gone(client, handle, workflow_id):
    """As if it had never been."""
    with pytest.raises(NotFound):
        await client.history(handle.id)
    with pytest.raises(NotFound):
        await client.find_workflow(workflow_id)
    assert [] == list((await client.list_workflows()).items)
    assert [] == await client.dead_letters()


async def test_a_long_history_goes_in_pages_and_is_never_seen_in_part(engine, database_url, monkeypatch):
    """Its execution goes first. Each page is removed by another process, none of which has been told to remove
    anything."""
    monkeypatch.setattr(remove_closed, "EVENTS_AT_ONCE", 10)
    running = await engine(**ALL, config=AT_ONCE)
    handle = await long_life(running.client, "w")
    whole = await count_events(database_url, handle.id)

    async def begun():
        await running._local.upkeep.remove_closed()
        return await running.storage.has_remains()

    await until(begun)
    await running.shutdown()
    left = [await count_events(database_url, handle.id)]
    while left[-1]:
        other = await engine(**ALL)
        await assert_gone(other.client, handle, "w")
        await other._local.upkeep.remove_closed()
        await other.shutdown()
        left.append(await count_events(database_url, handle.id))

    assert [*range(whole, 0, -10), 0] == left
    assert not await (await engine(**ALL)).storage.has_remains()


# Removes pages until it is killed in the middle of the third, before the commit.
KILLED = """
import asyncio, os, signal, sys
from holdfast import Engine, EngineConfig
from holdfast.engine.upkeep import remove_closed
from holdfast.store.postgres import deletions as postgres, write as postgres_write
from holdfast.store.sqlite import deletions as sqlite

remove_closed.EVENTS_AT_ONCE = 10
pages = 0

def counted():
    global pages
    pages += 1
    if pages == 3:
        os.kill(os.getpid(), signal.SIGKILL)

async def clear(*args, clear=postgres.clear):
    await clear(*args)
    counted()

def clear_file(*args, clear=sqlite._clear):
    clear(*args)
    counted()

postgres_write.clear, sqlite._clear = clear, clear_file

async def main():
    async with Engine(sys.argv[1], config=EngineConfig(closed_retention_s=0.0)) as engine:
        while True:
            await engine._local.upkeep.remove_closed()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_who_is_killed_half_way_leaves_the_rest_to_the_next(engine, database_url, monkeypatch):
    """What was under way did not happen, what was committed did, and nobody sees a part of it."""
    running = await engine(**ALL)
    handle = await long_life(running.client, "w")
    whole = await count_events(database_url, handle.id)
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, database_url)
    assert -signal.SIGKILL == await asyncio.wait_for(child.wait(), 60)

    assert whole - 20 == await count_events(database_url, handle.id)
    await assert_gone(running.client, handle, "w")
    monkeypatch.setattr(remove_closed, "EVENTS_AT_ONCE", 10)
    await until(partial(cleared, running))
    assert 0 == await count_events(database_url, handle.id)


async def cleared(running):
    """PostgreSQL may take a moment to notice that a client is gone."""
    await sweep(running)
    return not await running.storage.has_remains()
