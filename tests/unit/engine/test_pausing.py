"""Pausing queues and workers: nothing is handed out, everything is accepted, nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast import WorkflowContext, task, workflow
from holdfast.contract.deployments import ChangePause
from holdfast.contract.keys import Principal
from holdfast.errors import Forbidden, InvalidRequest, WorkerDraining, WorkerNotFound
from holdfast.model.keys import Role
from holdfast.model.pauses import Pausable, PauseMode
from tests.conftest import QUICK, until

RAN: list[str] = []


@pytest.fixture(autouse=True)
def forget():
    RAN.clear()


@task
async def note(text: str) -> str:
    RAN.append(text)
    return text


@workflow
async def notes(ctx: WorkflowContext, text: str) -> str:
    return await ctx.task(note, text)


@workflow
async def notes_slowly(ctx: WorkflowContext, text: str) -> str:
    return await ctx.task(note, text, queue="slow")


@workflow
async def hears(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("go", str)


ALL = {"workflows": [notes, notes_slowly, hears], "tasks": [note]}


async def pending(handle):
    return await handle.status() == "PENDING"


# --- queues -----------------------------------------------------------------------------------------------------------


async def test_a_paused_queue_accepts_and_hands_out_nothing(engine):
    """Starts and signals are taken; what waits runs when it is resumed."""
    client = (await engine(**ALL)).client
    assert await client.pause_queue("default", reason="the bank is closed")
    handle = await client.start_workflow(notes, "one")
    listener = await client.start_workflow(hears)
    await listener.signal("go", "early")

    assert ["PENDING", "PENDING"] == [await handle.status(), await listener.status()]
    (queue,) = await client.list_queues()
    assert ("default", 2, 0, True, "the bank is closed") == (
        queue.name,
        queue.turns,
        queue.tasks,
        queue.paused,
        queue.pause.reason,
    )
    assert await client.resume_queue("default")
    assert ["one", "early"] == [await handle.result(), await listener.result()]
    assert [] == await client.list_queues()


async def test_tasks_of_a_paused_queue_wait_too(engine):
    """Other queues go on."""
    client = (await engine(**ALL, config=on_queues("default", "slow"))).client
    await client.pause_queue("slow")
    slow = await client.start_workflow(notes_slowly, "slow")
    quick = await client.start_workflow(notes, "quick")

    assert "quick" == await quick.result()
    await until(lambda: waits_in(client, "slow"))
    assert ["quick"] == RAN
    await client.resume_queue("slow")
    assert "slow" == await slow.result()


def on_queues(*queues):
    return replace(QUICK, worker=replace(QUICK.worker, queues=queues))


async def waits_in(client, name):
    return [queue for queue in await client.list_queues() if queue.name == name and queue.tasks]


async def test_pausing_twice_changes_nothing_the_second_time(engine):
    """Nor does resuming what goes on."""
    client = (await engine()).client

    assert [True, False] == [await client.pause_queue("q"), await client.pause_queue("q", reason="again")]
    (queue,) = await client.list_queues()
    assert "" == queue.pause.reason
    assert [True, False] == [await client.resume_queue("q"), await client.resume_queue("q")]


async def test_a_pause_outlives_a_restart(engine):
    """Whoever starts later knows of it before it takes anything."""
    first = await engine()
    await first.client.pause_queue("default")
    await first.shutdown()

    client = (await engine(**ALL)).client
    handle = await client.start_workflow(notes, "later")
    assert await pending(handle)
    await client.resume_queue("default")
    assert "later" == await handle.result()


async def test_other_nodes_notice(engine):
    """The one that is asked does no work; the one that works is told by the database."""
    works, asked = await engine(**ALL), await engine()
    client = asked.client
    await client.pause_queue("default")
    await until(lambda: works._local.dispatcher.paused_queues)
    handle = await client.start_workflow("notes", "there")
    await works.client.start_workflow(notes, "here")

    assert await pending(handle)
    assert [] == RAN
    await client.resume_queue("default")
    assert "there" == await handle.result()
    await until(lambda: {"here", "there"} == set(RAN))


async def test_a_paused_queue_of_another_org_is_another_queue(engine):
    """Names belong to orgs."""
    client = (await engine(**ALL)).client
    other = (await engine(org="other")).client
    await other.pause_queue("default")

    assert "mine" == await (await client.start_workflow(notes, "mine")).result()
    assert [] == await client.list_queues()


async def test_idle_workers_do_not_spin_on_a_paused_queue(engine):
    """Waiting work that may not be handed out is no reason to look for work again and again."""
    running = await engine(**ALL)
    await running.client.pause_queue("default")
    for number in range(3):
        await running.client.start_workflow(notes, str(number))
    sessions = running._local.dispatcher.sessions.values()
    await until(lambda: not any(session.could_take_more for session in sessions))
    assert [3] == [queue.turns for queue in await running.client.list_queues()]


# --- workers ----------------------------------------------------------------------------------------------------------


async def test_a_paused_worker_gets_nothing_and_another_does(engine):
    """Until it is resumed."""
    one = await engine(**ALL)
    client = one.client
    (worker,) = await client.list_workers()
    assert await client.pause_worker(worker.id, reason="look at it")
    handle = await client.start_workflow(notes, "one")

    assert await pending(handle)
    (paused,) = await client.list_workers()
    assert (PauseMode.PAUSED, "look at it") == (paused.pause.mode, paused.pause.reason)
    assert await client.resume_worker(worker.id)
    assert "one" == await handle.result()
    assert [None] == [found.pause for found in await client.list_workers()]


async def test_a_drained_worker_is_not_taken_back(engine):
    """What it has it finishes; another takes its place; it is forgotten when it ends."""
    one = await engine(**ALL)
    client = one.client
    (worker,) = await client.list_workers()
    assert await client.pause_worker(worker.id)
    assert [True, False] == [await client.drain_worker(worker.id), await client.drain_worker(worker.id)]
    for call in (client.resume_worker, client.pause_worker):
        with pytest.raises(WorkerDraining, match="for good"):
            await call(worker.id)
    handle = await client.start_workflow(notes, "one")
    assert await pending(handle)

    other = await engine(**ALL)
    assert "one" == await handle.result()
    await one.shutdown()
    assert [] == await other.storage.pauses()


async def test_a_worker_of_another_org_is_unknown(engine):
    """As one that does not exist."""
    client = (await engine(**ALL)).client
    other = (await engine(org="other")).client
    (worker,) = await client.list_workers()
    for name in (worker.id, "nobody"):
        with pytest.raises(WorkerNotFound, match="in org 'other'"):
            await other.pause_worker(name)
    assert [] == await other.list_workers()


# --- what is refused, and what is recorded ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 256, 7])
async def test_a_name_that_is_none_is_refused(engine, name):
    client = (await engine()).client
    with pytest.raises(InvalidRequest) as refused:
        await client.pause_queue(name)
    assert "queue" == refused.value.field


async def test_a_reason_has_its_length(engine):
    client = (await engine()).client
    with pytest.raises(InvalidRequest) as refused:
        await client.pause_queue("q", reason="x" * 1001)
    assert "reason" == refused.value.field
    assert [] == await client.list_queues()


async def test_only_an_admin_pauses(engine):
    """The rule is in the transaction: a door that forgot to ask would not matter."""
    local = (await engine())._local
    writer = Principal("default", Role.WRITER, None, "")
    request = ChangePause(org="default", what=Pausable.QUEUE, name="q", mode=PauseMode.PAUSED, by=writer)
    with pytest.raises(Forbidden):
        await local.deployments.change_pause(request)
    assert [] == await local.store.pauses()


async def test_every_change_is_recorded(engine):
    """Once for each that was one."""
    running = await engine(**ALL)
    client = running.client
    (worker,) = await client.list_workers()
    await client.pause_queue("q", reason="why")
    await client.pause_queue("q")
    await client.resume_queue("q")
    await client.pause_worker(worker.id)
    await client.drain_worker(worker.id)

    acts = await running.keys.audit("default")
    assert [
        ("workers.drain", worker.id, ""),
        ("workers.pause", worker.id, ""),
        ("queues.resume", "q", ""),
        ("queues.pause", "q", "why"),
    ] == [(act.action, act.subject, act.detail) for act in acts]
    assert (await running.keys.verify_audit("default")).is_whole
