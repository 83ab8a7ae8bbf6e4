"""Workflows that events start: `@workflow(start_on=...)`, registered by workers, begun with the event's data."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import Raw
from msgspec.structs import replace

import holdfast
from holdfast import EngineConfig, EventTrigger, WorkerConfig, WorkflowContext, workflow
from holdfast.contract.messages import PublishEvent
from holdfast.contract.workers import RegisterWorker, Trigger
from holdfast.engine.messages.publish import Publish
from holdfast.engine.upkeep.run_due import RunDue
from holdfast.engine.workers.register import Register
from holdfast.errors import EventTimeout, InvalidDefinition, InvalidExpression, InvalidRequest
from holdfast.model import commands as c
from tests.conftest import QUICK, until
from tests.database_access import rows
from tests.replay.event_world import KIND, ORG, World


@workflow(start_on="order")
async def on_order(ctx: WorkflowContext, data: object) -> object:
    return data


@workflow(start_on=[EventTrigger("order", where="input.amount > 100"), EventTrigger("refund")])
async def on_large(ctx: WorkflowContext, data: object) -> object:
    return ["large", data]


@workflow
async def wait_once(ctx: WorkflowContext) -> object:
    return await ctx.wait_for_event("order")


async def results(client, answer):
    return [await client.workflow(started).result(timeout=10) for started in answer.started]


def triggers(engine):
    """What is registered, by kind."""
    sql = "SELECT kind, key, version, queue, filter FROM holdfast_event_triggers ORDER BY kind, key"
    return rows(engine._url, sql)


# --- starting ---------------------------------------------------------------------------------------------------------


async def test_an_event_starts_the_workflows_of_its_key_whose_filter_it_satisfies(engine):
    """The event's data is the input; the history of each says which event it was."""
    client = (await engine(workflows=[on_order, on_large])).client
    small = await client.publish_event("order", {"amount": 5})
    large = await client.publish_event("order", {"amount": 500})
    refund = await client.publish_event("refund", "r")

    assert [{"amount": 5}] == await results(client, small)
    assert [["large", {"amount": 500}], {"amount": 500}] == sorted(await results(client, large), key=str)
    assert [["large", "r"]] == await results(client, refund)
    (first, *_) = await client.workflow(small.started[0]).history()
    assert small.event_id == first.body.event_id


async def test_an_event_that_has_started_something_is_never_dead(engine):
    """Somebody got it."""
    config = EngineConfig(store=QUICK.store, worker=QUICK.worker, limits=holdfast.Limits(events_per_key=1))
    client = (await engine(workflows=[on_order], config=config)).client
    for number in range(3):
        await client.publish_event("order", number)

    assert [] == await client.dead_events()
    assert 2 == (await client.describe_event_key("order")).dropped


async def test_an_event_for_one_goes_to_who_waits_before_it_starts_anything(engine):
    """H25: a waiter gets it; without one, the first workflow is started, and it is used up."""
    client = (await engine(workflows=[on_order, on_large, wait_once])).client
    handle = await client.start_workflow(wait_once)
    await until(handle.waits)
    taken = await client.publish_event("order", {"amount": 500}, consume_on_read=True)
    started = await client.publish_event("order", {"amount": 500}, consume_on_read=True)

    assert (1, ()) == (taken.delivered, taken.started)
    assert (0, 1, False) == (started.delivered, len(started.started), started.retained)


async def test_a_workflow_does_not_get_the_event_that_started_it_again(engine):
    """Its own first wait sees the next event, however far it looks back."""

    @workflow(start_on="tick")
    async def pairs(ctx: WorkflowContext, first: int) -> list[int]:
        return [first, await ctx.wait_for_event("tick"), await ctx.wait_for_event("tick", look_back=True)]

    @workflow(start_on="tock")
    async def alone(ctx: WorkflowContext, first: int) -> str:
        try:
            await ctx.wait_for_event("tock", look_back=True, timeout=0.1)
        except EventTimeout:
            return "nothing more"
        return "again"

    client = (await engine(workflows=[pairs, alone])).client
    answer = await client.publish_event("tick", 1)
    for number in (2, 3):
        await client.publish_event("tick", number)
    other = await client.publish_event("tock", 1)

    assert [[1, 2, 3]] == await results(client, answer)
    assert ["nothing more"] == await results(client, other)


async def test_the_same_idempotency_key_starts_once(engine):
    """Fifty calls, one execution, and all are told its id."""
    client = (await engine(workflows=[on_order])).client
    answers = await asyncio.gather(*(client.publish_event("order", 1, idempotency_key="k") for _ in range(50)))

    assert 1 == len({answer.started for answer in answers})
    assert 1 == len((await client.list_workflows()).items)


async def test_an_event_of_another_org_starts_nothing_here(engine):
    """Triggers belong to the org of the worker that has registered them."""
    await engine(workflows=[on_order])
    other = (await engine(org="other")).client

    assert () == (await other.publish_event("order", 1)).started


async def test_an_event_that_a_workflow_publishes_starts_workflows_too(engine):
    """In the same transaction as the turn that published it."""

    @workflow
    async def publisher(ctx: WorkflowContext) -> None:
        ctx.publish_event("order", "from inside")

    client = (await engine(workflows=[publisher, on_order])).client
    await (await client.start_workflow(publisher)).result(timeout=10)
    (found,) = (await client.list_workflows(kind="on_order")).items

    assert "from inside" == await client.workflow(found.workflow_execution_id).result(timeout=10)


async def test_it_runs_on_its_queue_or_on_the_first_of_its_worker(engine):
    """Where somebody has the code."""

    @workflow(start_on=EventTrigger("b", queue="fast"))
    async def fast(ctx: WorkflowContext, data: object) -> object:
        return ctx.info.queue

    @workflow(start_on="b")
    async def plain(ctx: WorkflowContext, data: object) -> object:
        return ctx.info.queue

    config = EngineConfig(store=QUICK.store, worker=WorkerConfig(queues=("slow", "fast"), shutdown_grace_s=0.2))
    client = (await engine(workflows=[fast, plain], config=config)).client

    assert ["fast", "slow"] == sorted(await results(client, await client.publish_event("b")))


def test_an_event_for_one_starts_something_when_the_last_page_of_waits_has_refused_it():
    """1,500 waits that refuse it take two pages; then one workflow is started, and the event is used up."""
    world = World(EngineConfig())
    execution = world.start()
    waits = [c.StartWait(wait_no=n + 1, kind="event", key="order", where="input > 9") for n in range(1_500)]
    world.run([world.turn(execution, *waits)])
    trigger = Trigger(kind=KIND, version="1", key="order", queue="default")
    world.run([Register(replace(world.dispatcher.sessions["s"].request, session="other", triggers=(trigger,)))])
    request = PublishEvent(org=ORG, key="order", data=Raw(b"5"), consume=True)
    (answer,) = world.run([Publish(request)])
    assert ((), False) == (answer.started, answer.done)
    for _ in range(3):
        world.run([RunDue(None)])

    assert [(2,)] == world.rows("SELECT count(*) FROM holdfast_executions")
    assert [] == world.rows("SELECT id FROM holdfast_published")
    assert [] == world.received


# --- registering ------------------------------------------------------------------------------------------------------


async def test_the_newest_version_replaces_the_triggers_of_its_kind(engine):
    """An older worker that comes back changes nothing; a kind that has no trigger any more has none."""

    def version(number, start_on):
        @workflow(kind="w", version=number, start_on=start_on)
        async def body(ctx: WorkflowContext, data: object) -> str:
            return number

        return body

    one, two, three = version("1", ["a", "b"]), version("2", EventTrigger("b", where="input > 1")), version("3", None)
    opened = await engine(workflows=[one])
    assert [("w", "a", "1", "default", None), ("w", "b", "1", "default", None)] == triggers(opened)
    await opened.shutdown()
    opened = await engine(workflows=[two])
    assert [("w", "b", "2", "default", "input > 1")] == triggers(opened)
    old = await engine(workflows=[one])
    assert [("w", "b", "2", "default", "input > 1")] == triggers(opened)
    assert ["2"] == await results(opened.client, await opened.client.publish_event("b", 2))
    await old.shutdown()
    await opened.shutdown()
    opened = await engine(workflows=[three])
    assert [] == triggers(opened)


async def test_triggers_of_other_kinds_stay(engine):
    """Each worker answers for the kinds it has."""
    first = await engine(workflows=[on_order])
    await engine(workflows=[on_large])

    assert ["on_large", "on_large", "on_order"] == [row[0] for row in triggers(first)]


@pytest.mark.parametrize(
    ("start_on", "told"),
    [
        ("", "1 to 255"),
        ("x" * 256, "255"),
        (7, "holdfast.On"),
        ([7], "holdfast.On"),
        (EventTrigger("k", where="input.a =="), "column"),
        (EventTrigger("k", where="1"), "k"),
        (["k", EventTrigger("k", where="input == 1")], "twice"),
    ],
)
def test_a_trigger_that_cannot_work_is_refused_when_it_is_written(start_on, told):
    """At import time, with the place in the source."""
    with pytest.raises(InvalidDefinition) as refused:

        @workflow(start_on=start_on)
        async def bad(ctx: WorkflowContext, data: object) -> None: ...

    assert told in str(refused.value)
    assert "test_event_triggers.py" in refused.value.details["place"]


@pytest.mark.parametrize(
    ("trigger", "error"),
    [
        (Trigger(kind="w", version="1", key="k", queue="default", where="input =="), InvalidExpression),
        (Trigger(kind="w", version="1", key="", queue="default"), InvalidRequest),
        (Trigger(kind="unknown", version="1", key="k", queue="default"), InvalidRequest),
    ],
)
async def test_a_worker_with_a_trigger_that_cannot_work_is_not_registered(engine, trigger, error):
    """The engine does not rely on what workers have checked."""
    opened = await engine()
    request = RegisterWorker(
        org="default",
        session="s",
        host="h",
        pid=1,
        builds={("w", "1"): "b"},
        triggers=(trigger,),
        turn_slots=1,
        task_slots=1,
        lease_s=1.0,
    )
    with pytest.raises(error):
        await opened._local.workers.register(request)
    assert [] == triggers(opened)
