"""Signals from workflow to workflow: recorded in the sender, delivered once, answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import EngineConfig, Limits, WorkflowContext, errors, workflow
from holdfast.model import events as e
from tests.conftest import OpenEngine
from tests.replay.recording import check_whole
from verification import invariants


@workflow
async def listens(ctx: WorkflowContext, count: int) -> list[int]:
    return [await ctx.wait_for_signal("number", int) for _ in range(count)]


@workflow
async def sends(ctx: WorkflowContext, target: str) -> None:
    for number in range(3):
        await ctx.signal_external_workflow(target, "number", number)


@workflow
async def sends_and_tells(ctx: WorkflowContext, target: str) -> str:
    try:
        await ctx.signal_external_workflow(target, "number", 1)
    except errors.ExternalSignalFailed as error:
        return error.error_type
    return "delivered"


def types_of(history: list[e.HistoryEvent]) -> list[str]:
    return [event.type for event in history if "EXTERNAL" in event.type]


@pytest.mark.parametrize("by", ["workflow id", "execution id"])
async def test_a_signal_reaches_another_workflow(engine: OpenEngine, by: str):
    """000-71: initiated and completed in the sender, received in the other."""
    opened = await engine(workflows=[listens, sends])
    target = await opened.client.start_workflow(listens, 3, workflow_id="ear")
    sender = await opened.client.start_workflow(sends, "ear" if by == "workflow id" else target.id)
    assert [0, 1, 2] == await target.result()
    await sender.result()
    history = await sender.history()
    initiated = "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED"
    completed = "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMPLETED"
    assert [initiated, completed] * 3 == types_of(history)
    received = [event for event in await target.history() if isinstance(event.body, e.SignalReceived)]
    assert {sender.id} == {getattr(event.body, "sender", None) for event in received}
    told = [event.body for event in history if isinstance(event.body, e.ExternalSignalDelivered)]
    assert [event.seq for event in received] == [body.signal_event_sequence for body in told]
    check_whole(sends, history, sender.id)
    assert [] == invariants.check(await invariants.read(opened.storage))


async def test_a_target_that_is_not_there(engine: OpenEngine):
    opened = await engine(workflows=[listens, sends_and_tells])
    assert "ExecutionNotFound" == await (await opened.client.start_workflow(sends_and_tells, "nobody")).result()


async def test_a_target_that_is_closed(engine: OpenEngine):
    opened = await engine(workflows=[listens, sends_and_tells])
    target = await opened.client.start_workflow(listens, 0, workflow_id="ear")
    await target.result()
    for name in ("ear", target.id):
        found = await (await opened.client.start_workflow(sends_and_tells, name)).result()
        assert found in {"ExecutionClosed", "ExecutionNotFound"}
    by_id = await (await opened.client.start_workflow(sends_and_tells, target.id)).result()
    assert "ExecutionClosed" == by_id


async def test_a_target_that_is_full(engine: OpenEngine):
    config = EngineConfig(limits=Limits(signals_per_execution=2))
    opened = await engine(workflows=[listens, sends_and_tells], config=config)
    await opened.client.start_workflow(listens, 9, workflow_id="ear")
    found = [await (await opened.client.start_workflow(sends_and_tells, "ear")).result() for _ in range(3)]
    assert ["delivered", "delivered", "SignalLimitReached"] == found


async def test_a_workflow_signals_itself(engine: OpenEngine):
    @workflow
    async def echo(ctx: WorkflowContext) -> list[int]:
        for number in range(3):
            await ctx.signal_external_workflow(ctx.info.workflow_id, "number", number)
        return [await ctx.wait_for_signal("number", int) for _ in range(3)]

    opened = await engine(workflows=[echo])
    handle = await opened.client.start_workflow(echo, workflow_id="me")
    assert [0, 1, 2] == await handle.result()
    check_whole(echo, await handle.history(), handle.id)


async def test_sent_and_gone(engine: OpenEngine):
    """Not awaited, and the sender ends in the same turn: delivered all the same, and the answer is on record."""

    @workflow
    async def throws(ctx: WorkflowContext, target: str) -> None:
        ctx.signal_external_workflow(target, "number", 7)

    opened = await engine(workflows=[listens, throws])
    target = await opened.client.start_workflow(listens, 1, workflow_id="ear")
    sender = await opened.client.start_workflow(throws, "ear")
    assert [7] == await target.result()
    await sender.result()
    assert 2 == len(types_of(await sender.history()))
    check_whole(throws, await sender.history(), sender.id)


async def test_ping_pong(engine: OpenEngine):
    """Two workflows that talk to each other, many rounds."""

    @workflow
    async def player(ctx: WorkflowContext, other: str) -> int:
        heard = 0
        while heard < 100:
            heard = await ctx.wait_for_signal("ball", int)
            await ctx.signal_external_workflow(other, "ball", heard + 1)
        return heard

    opened = await engine(workflows=[player])
    one = await opened.client.start_workflow(player, "two", workflow_id="one")
    await opened.client.start_workflow(player, "one", workflow_id="two")
    await one.signal("ball", 0)
    found: Any = await asyncio.wait_for(one.result(), 30)
    assert found in {100, 101}


async def test_many_senders_at_once(engine: OpenEngine):
    """Each signal once, whoever wins."""
    opened = await engine(workflows=[listens, sends])
    target = await opened.client.start_workflow(listens, 60, workflow_id="ear")
    senders = await asyncio.gather(*(opened.client.start_workflow(sends, "ear") for _ in range(20)))
    assert sorted([0, 1, 2] * 20) == sorted(await target.result())
    for sender in senders:
        await sender.result()
    assert [] == invariants.check(await invariants.read(opened.storage))
