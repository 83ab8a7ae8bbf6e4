"""Deleting an org: its keys are dead at once, nothing it had is left, nobody else loses anything."""

from __future__ import annotations

import logging
from functools import partial
from typing import cast

import pytest

from holdfast import WorkflowContext, task, workflow
from holdfast.contract.keys import CreateKey, DeleteOrg, Principal
from holdfast.contract.upkeep import Upkeep
from holdfast.engine import org_deletion
from holdfast.errors import EngineStopped, Forbidden, InvalidRequest, OrgClosed, StorageBusy, Unauthenticated
from holdfast.model.api_key_text import hash_key
from holdfast.model.keys import Role
from holdfast.services.deletions import Deletions
from tests.conftest import until
from tests.database_access import columns, dump, rows, tables

KEPT = {"holdfast_orgs", "holdfast_audit"}
"""The name, so that it is not given again; and the record of acts."""


@task
async def remember(text: str) -> str:
    return text


@workflow
async def lives(ctx: WorkflowContext, text: str) -> str:
    """Has a bit of everything: a task, a timer, a promise, an event, a child."""
    await ctx.task(remember, text)
    ctx.state["said"] = text
    promise = ctx.promise("approval", event_key="approvals")
    event = ctx.wait_for_event("order", where="input.id == 7")
    nap = ctx.sleep(3600)
    await ctx.any(promise, event, nap)
    return text


ALL = {"workflows": [lives], "tasks": [remember]}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(org_deletion, "GRACE", 0)
    monkeypatch.setattr(org_deletion, "PAGE", 7)


async def live(client, count=3):
    """Executions with rows in as many tables as possible."""
    handles = [
        await client.start_workflow(lives, "secret", workflow_id=f"w{n}", metadata={"a": "b"}, request_id=f"r{n}")
        for n in range(count)
    ]
    for handle in handles:
        await until(partial(is_waiting, handle))
        await handle.signal("unread", "secret")
    await client.publish_event("nobody waits", {"x": "secret"}, expire_after=3600)
    await client.resolve_promise(f"{handles[0].id}:later", "secret", allow_early=True)
    await client.terminate_workflow(handles[-1].id)
    await client.pause_queue("other")
    return handles


async def is_waiting(handle):
    return await handle.status() == "WAITING"


async def key_of(running, org, role=Role.ADMIN):
    made = await running.keys.create(CreateKey(org=org, name="k", role=role))
    return await running.keys.authenticate(hash_key(made.text)), hash_key(made.text)


async def delete(running, org, by=None):
    await running.keys.delete_org(DeleteOrg(slug=org, confirm=org, by=by))


async def finish(running):
    while await running._local.upkeep.delete_orgs():
        pass


async def test_the_keys_are_dead_at_once(engine):
    """And the name is not given again."""
    running = await engine(org="acme")
    admin, key_hash = await key_of(running, "acme")
    await delete(running, "acme", by=admin)

    with pytest.raises(Unauthenticated):
        await running.keys.authenticate(key_hash)
    await finish(running)
    with pytest.raises(Unauthenticated):
        await running.keys.authenticate(key_hash)
    with pytest.raises(OrgClosed):
        await key_of(running, "acme")


async def test_nothing_is_left_but_name_and_record(engine):
    """Whatever table has an org, or belongs to an execution; of another org nothing is missing."""
    theirs, ours = await engine(**ALL, org="acme"), await engine(**ALL)
    kept = await live(ours.client)
    before = await ours.client.history(kept[0].id)
    handles = await live(theirs.client)
    admin, _ = await key_of(theirs, "acme")
    await theirs.shutdown()
    await delete(ours, "acme", by=admin)
    await finish(ours)

    assert {} == await ours.storage.executions("acme", [handle.id for handle in handles])
    assert not await ours.storage.holds_any("acme")
    assert [] == await ours.storage.deletions()
    assert before == await ours.client.history(kept[0].id)
    assert await is_waiting(kept[0])
    assert ["orgs.deleted", "orgs.delete"] == [act.action for act in await ours.keys.audit("acme", limit=2)]
    assert (await ours.keys.verify_audit("acme")).is_whole


async def test_no_table_is_forgotten(engine, database_url):
    """Every table that has an org or an execution is empty of it: also those that are added some day."""
    running = await engine(**ALL, org="acme")
    ids = {handle.id for handle in await live(running.client)}
    await key_of(running, "acme")
    await running.shutdown()
    filled = set(rows_of(database_url, "acme", ids))
    assert {"holdfast_events", "holdfast_tokens", "holdfast_metadata", "holdfast_requests", "holdfast_timers"} <= filled

    cleaner = await engine()
    await delete(cleaner, "acme")
    await finish(cleaner)
    assert KEPT == set(rows_of(database_url, "acme", ids))
    text = dump(database_url)
    assert not [execution_id for execution_id in ids if execution_id in text]


def rows_of(url, org, ids):
    """The tables that have rows of this org or of these executions."""
    for table in tables(url):
        wanted = {"org": [org], "slug": [org], "execution_id": sorted(ids), "parent_id": sorted(ids)}
        for column in wanted.keys() & set(columns(url, table)):
            marks = ", ".join("?" * len(wanted[column]))
            if rows(url, f"SELECT 1 FROM {table} WHERE {column} IN ({marks})", *wanted[column]):
                yield table


async def test_another_process_continues_where_one_has_stopped(engine):
    """What is left to do stands in the database."""
    theirs = await engine(**ALL, org="acme")
    await live(theirs.client)
    await theirs.shutdown()
    first = await engine()
    await delete(first, "acme")
    assert await first._local.upkeep.delete_orgs()
    await first.shutdown()

    second = await engine()
    assert await second.storage.holds_any("acme")
    await finish(second)
    assert not await second.storage.holds_any("acme")


async def test_it_waits_until_sessions_and_streams_are_over(engine, monkeypatch):
    """A few seconds, so that what they write is removed, too."""
    monkeypatch.setattr(org_deletion, "GRACE", 3600 * 1_000_000)
    running = await engine(org="acme")
    await running.client.pause_queue("q")
    await delete(running, "acme")

    assert not await running._local.upkeep.delete_orgs()
    assert await running.storage.holds_any("acme")


async def test_it_has_to_be_confirmed(engine):
    running = await engine()
    for confirm in ("", "other", "DEFAULT"):
        with pytest.raises(InvalidRequest) as refused:
            await running.keys.delete_org(DeleteOrg(slug="default", confirm=confirm))
        assert "confirm" == refused.value.field
    assert [] == await running.storage.deletions()


async def test_only_an_admin_of_that_org_may(engine):
    """Neither a lesser key, nor an admin of another org, nor whoever needs no key on a machine of his own."""
    running = await engine()
    writer, _ = await key_of(running, "acme", Role.WRITER)
    stranger, _ = await key_of(running, "other")
    for by in (writer, stranger, Principal("acme", Role.ADMIN)):
        with pytest.raises(Forbidden):
            await delete(running, "acme", by=by)
    assert [] == await running.storage.deletions()


async def test_deleting_twice_is_deleting_once(engine):
    running = await engine()
    await key_of(running, "acme")
    await delete(running, "acme")
    closed_at = (await running.storage.org("acme")).closed_at
    await delete(running, "acme")
    await finish(running)

    assert closed_at == (await running.storage.org("acme")).closed_at
    assert [] == await running.storage.deletions()


async def test_a_look_that_fails_is_not_called_a_deletion(caplog):
    """Whether any org was deleted may be just what could not be asked."""

    class Failing:
        answers = iter([StorageBusy("the server is away"), EngineStopped("enough")])

        async def delete_orgs(self) -> bool:
            raise next(self.answers)

    with caplog.at_level(logging.WARNING):
        await Deletions(cast("Upkeep", Failing()), every_s=0)._run_on()

    assert ["holdfast-deletions waits: the server is away"] == caplog.messages
