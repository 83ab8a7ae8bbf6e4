"""Explaining: which part of which filter has refused an event, and which events came nearest to a wait."""

from __future__ import annotations

import pytest

from holdfast import WorkflowContext, workflow
from holdfast.errors import EventNotFound, InvalidRequest
from tests.conftest import until
from tests.unit.engine.test_events import Clock


@workflow
async def wait_for(ctx: WorkflowContext, filters: list[str | None]) -> None:
    waits = [ctx.wait_for_event("order", where=where, look_back=False) for where in filters]
    await ctx.all(*waits)


@workflow
async def wait_for_message(ctx: WorkflowContext, key: str) -> object:
    return await ctx.wait_for_message("paid", key)


async def begin(client, filters):
    handle = await client.start_workflow(wait_for, filters)
    await until(lambda: all_wait(handle, len(filters)))
    return handle


async def all_wait(handle, count):
    return len(await handle.waits()) == count


# --- an event ---------------------------------------------------------------------------------------------------------


async def test_an_event_names_for_every_wait_the_part_that_refused_it(engine):
    """In the words of the filter, with the values it saw."""
    client = (await engine(workflows=[wait_for])).client
    handle = await begin(client, ['input.order == "o1" && input.amount > 10', "input.amount / 0 > 1", "input.a.b"])
    sent = await client.publish_event("order", {"order": "o1", "amount": 5})
    explained = await client.explain_event(sent.event_id)

    assert [handle.id] * 3 == [each.workflow_execution_id for each in explained.waits]
    reasons = [each.reason for each in explained.waits]
    assert "input.amount > 10 was false: input.amount is 5" == reasons[0]
    assert "failed" in reasons[1]
    assert "divi" in reasons[1]
    assert "failed" in reasons[2]
    assert [('input.order == "o1"', "true"), ("input.amount > 10", "false")] == [
        (part.source, part.outcome) for part in explained.waits[0].findings
    ]
    assert not any(each.satisfied for each in explained.waits)
    assert (sent.event_id, {"order": "o1", "amount": 5}) == (explained.event.id, explained.event.data)
    assert "input.amount is 5" in str(explained)


async def test_a_wait_that_came_too_late_is_told_from_one_that_refuses(engine):
    """Its filter is satisfied; it began after the event and does not look back."""
    client = (await engine(workflows=[wait_for])).client
    sent = await client.publish_event("order", 1)
    await begin(client, [None, "input == 2"])
    late, refusing = (await client.explain_event(sent.event_id)).waits

    assert (True, False) == (late.satisfied, refusing.satisfied)
    assert "began after the event" in late.reason
    assert "input == 2 was false: input is 1" == refusing.reason


async def test_a_dead_event_can_be_explained(engine):
    """Why nobody got it: here is who waited."""
    clock = Clock()
    opened = await engine(workflows=[wait_for], clock=clock)
    await begin(opened.client, ["input == 2"])
    sent = await opened.client.publish_event("order", 1, expire_after=5)
    clock.move(6)
    await opened._local.upkeep.prune()
    explained = await opened.client.explain_event(sent.event_id)

    assert "expired" == explained.event.reason
    assert ["input == 2 was false: input is 1"] == [each.reason for each in explained.waits]


async def test_an_event_nobody_waits_for_says_so(engine):
    """No waits, and a text that tells."""
    client = (await engine()).client
    sent = await client.publish_event("order", 1)
    explained = await client.explain_event(sent.event_id)

    assert () == explained.waits
    assert "nobody waits" in str(explained)


@pytest.mark.parametrize(("number", "error"), [(12345, EventNotFound), (0, InvalidRequest), ("x", InvalidRequest)])
async def test_what_is_not_there_cannot_be_explained(engine, number, error):
    """An unknown number, and what is no number."""
    client = (await engine()).client
    with pytest.raises(error):
        await client.explain_event(number)


# --- a wait -----------------------------------------------------------------------------------------------------------


async def test_a_wait_shows_the_events_that_came_nearest_first(engine):
    """Those that met most parts of the filter, and of equals the newest."""
    client = (await engine(workflows=[wait_for])).client
    handle = await begin(client, ["input.a == 1 && input.b == 2 && input.c == 3"])
    payloads = [{"a": 0, "b": 0, "c": 0}, {"a": 1, "b": 2, "c": 0}, {"a": 1, "b": 0, "c": 0}, {"a": 0, "b": 2, "c": 3}]
    ids = [(await client.publish_event("order", data)).event_id for data in payloads]
    explained = await handle.explain_wait()

    assert [ids[3], ids[1], ids[2], ids[0]] == [miss.event_id for miss in explained.nearest]
    assert [(2, 3), (2, 3), (1, 3), (0, 3)] == [(miss.met, miss.parts) for miss in explained.nearest]
    assert "input.c == 3 was false: input.c is 0" == explained.nearest[1].reason
    assert 4 == explained.events
    assert f"event {ids[3]}" in str(explained)


async def test_a_wait_shows_dead_events_too(engine):
    """With the hint that they can be replayed."""
    clock = Clock()
    opened = await engine(workflows=[wait_for], clock=clock)
    sent = await opened.client.publish_event("order", 1, expire_after=5)
    clock.move(6)
    await opened._local.upkeep.prune()
    handle = await begin(opened.client, [None])
    (miss,) = (await handle.explain_wait()).nearest

    assert (sent.event_id, True, True) == (miss.event_id, miss.dead, miss.satisfied)
    assert "replay" in miss.reason


async def test_one_of_several_waits_has_to_be_named(engine):
    """By its number; the error lists them."""
    client = (await engine(workflows=[wait_for])).client
    handle = await begin(client, ["input == 1", "input == 2"])

    with pytest.raises(InvalidRequest, match="1, 2") as refused:
        await handle.explain_wait()
    assert "wait_no" == refused.value.field
    assert "input == 2" == (await handle.explain_wait(2)).wait.where
    with pytest.raises(InvalidRequest):
        await handle.explain_wait(3)


async def test_waits_are_listed_with_what_they_wait_for(engine):
    """The longest first."""
    client = (await engine(workflows=[wait_for, wait_for_message])).client
    handle = await begin(client, ["input == 1", None])
    message = await client.start_workflow(wait_for_message, "c1")
    await until(lambda: all_wait(message, 1))

    assert [(1, "event", "order", "input == 1"), (2, "event", "order", None)] == [
        (wait.wait_no, wait.kind, wait.key, wait.where) for wait in await handle.waits()
    ]
    assert [("message", "paid", "c1")] == [(w.kind, w.key, w.correlation_key) for w in await message.waits()]


async def test_a_message_for_another_correlation_key_is_explained(engine):
    """That is what refused it."""
    client = (await engine(workflows=[wait_for_message])).client
    handle = await client.start_workflow(wait_for_message, "c1")
    await until(lambda: all_wait(handle, 1))
    sent = await client.send_message("paid", "c2", 1)

    (considered,) = (await client.explain_event(sent.event_id)).waits
    assert "'c1'" in considered.reason
    assert "'c2'" in considered.reason
    assert 1 == (await handle.explain_wait()).events


async def test_leases_and_ages_are_judged_by_the_clock_of_the_database(engine):
    """It may be an hour behind this machine's: nothing waits for an hour because of that."""
    clock = Clock()
    clock.move(-3600)
    client = (await engine(workflows=[wait_for], clock=clock)).client
    handle = await begin(client, [None])
    [found] = (await client.explain_workflow(handle.id)).findings

    assert (" ago" in found.text, " h " in found.text) == (True, False)
