"""Messages: correlated by name and key, to exactly one subscriber, now or later."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from holdfast import (
    Engine,
    EngineConfig,
    SendResult,
    StoreConfig,
    WorkflowContext,
    WorkflowHandle,
    WorkflowStatus,
    errors,
    workflow,
)
from holdfast.model import events as e
from tests.conftest import OpenEngine, until
from tests.replay.recording import check_whole
from verification import invariants


@workflow
async def awaits(ctx: WorkflowContext, key: str) -> Any:
    return await ctx.wait_for_message("paid", key)


@workflow
async def awaits_only_what_comes(ctx: WorkflowContext, key: str) -> Any:
    return await ctx.wait_for_message("paid", key, look_back=False)


@workflow
async def awaits_all_that_is_kept(ctx: WorkflowContext, key: str) -> Any:
    return await ctx.wait_for_message("paid", key, look_back=True)


@workflow
async def awaits_two(ctx: WorkflowContext, key: str) -> list[Any]:
    return [await ctx.wait_for_message("paid", key), await ctx.wait_for_message("paid", key)]


@workflow
async def sends(ctx: WorkflowContext, key: str) -> str:
    ctx.send_message("paid", key, {"by": ctx.info.workflow_id})
    return "sent"


@workflow
async def sends_to_itself(ctx: WorkflowContext) -> Any:
    ctx.send_message("paid", "mine", "to me")
    return await ctx.wait_for_message("paid", "mine", look_back=True)


async def start(engine: Engine, kind: Any, *keys: str) -> list[WorkflowHandle]:
    """One after another, each at rest before the next: they wait in this order."""
    handles = []
    for key in keys:
        handle = await engine.client.start_workflow(kind, key)

        async def waiting(handle: WorkflowHandle = handle) -> bool:
            return await handle.status() is WorkflowStatus.WAITING

        await until(waiting)
        handles.append(handle)
    return handles


async def check_all(engine: Engine) -> None:
    assert [] == [str(wrong) for wrong in invariants.check(await invariants.read(engine.storage))]


async def test_a_message_reaches_exactly_one(engine: OpenEngine):
    """001-08: of those who wait for a name and key, the one who has waited longest."""
    opened = await engine(workflows=[awaits])
    first, second = await start(opened, awaits, "a", "a")

    sent = await opened.client.send_message("paid", "a", {"amount": 7})

    assert isinstance(sent, SendResult)
    assert (True, True, False) == (bool(sent), sent.delivered, sent.retained)
    assert {"amount": 7} == await first.result(timeout=10)
    assert await second.status() is WorkflowStatus.WAITING
    (body,) = [event.body for event in await first.history() if isinstance(event.body, e.EventReceived)]
    assert ("paid", "a", sent.event_id) == (body.key, body.correlation, body.event_id)
    assert await opened.client.send_message("paid", "a", 8)
    assert 8 == await second.result(timeout=10)
    await check_all(opened)
    check_whole(awaits, await first.history(), first.id)


async def test_name_and_key_have_to_be_the_same(engine: OpenEngine):
    """001-07, 001-08: neither the name alone nor the key alone will do."""
    opened = await engine(workflows=[awaits])
    (handle,) = await start(opened, awaits, "a")

    answers = [
        await opened.client.send_message("paid", "b"),
        await opened.client.send_message("billed", "a"),
        await opened.client.send_message("paid", "A"),
    ]

    assert [(False, True)] * 3 == [(bool(sent), sent.retained) for sent in answers]
    assert await handle.status() is WorkflowStatus.WAITING
    assert await opened.client.send_message("paid", "a")


async def test_an_event_is_no_message(engine: OpenEngine):
    """An event of the same key reaches no wait for a message, nor a broadcast, nor the other way round."""
    opened = await engine(workflows=[awaits])
    (handle,) = await start(opened, awaits, "a")

    await opened.client.publish_event("paid", 1)
    assert 0 == await opened.client.broadcast("paid")

    assert await handle.status() is WorkflowStatus.WAITING
    assert await opened.client.send_message("paid", "a", 2)
    assert 2 == await handle.result(timeout=10)


async def test_the_answer_says_whether_somebody_waited(engine: OpenEngine):
    """001-10: a message answers yes or no, as a broadcast answers with a count."""
    opened = await engine(workflows=[awaits])
    assert not await opened.client.send_message("paid", "nobody")
    await start(opened, awaits, "a")
    assert await opened.client.send_message("paid", "a")


async def test_a_message_is_kept_for_the_first_who_asks(engine: OpenEngine):
    """Nobody waits: it is kept, and used up by the first who looks back."""
    opened = await engine(workflows=[awaits_all_that_is_kept])
    assert not await opened.client.send_message("paid", "a", "early")

    first = await opened.client.start_workflow(awaits_all_that_is_kept, "a")

    assert "early" == await first.result(timeout=10)
    (second,) = await start(opened, awaits_all_that_is_kept, "a")
    assert await opened.client.send_message("paid", "a", "next")
    assert "next" == await second.result(timeout=10)
    await check_all(opened)
    check_whole(awaits_all_that_is_kept, await first.history(), first.id)


async def test_kept_messages_come_in_the_order_of_sending(engine: OpenEngine):
    """Two of one key are two: each is had once, the oldest first."""
    opened = await engine(workflows=[awaits_two])
    handle = await opened.client.start_workflow(awaits_two, "a")
    for number in (1, 2):
        await opened.client.send_message("paid", "a", number)

    assert [1, 2] == await handle.result(timeout=10)
    await check_all(opened)


async def test_who_does_not_look_back_gets_only_what_comes(engine: OpenEngine):
    """A kept message stays where it is."""
    opened = await engine(workflows=[awaits_only_what_comes])
    await opened.client.send_message("paid", "a", "early")
    (handle,) = await start(opened, awaits_only_what_comes, "a")

    assert await opened.client.send_message("paid", "a", "late")

    assert "late" == await handle.result(timeout=10)


async def test_a_kept_message_expires(engine: OpenEngine):
    """After `expire_after` nobody can have it any more."""
    now = time.time_ns() // 1000
    opened = await engine(workflows=[awaits_all_that_is_kept], clock=lambda: now)
    await opened.client.send_message("paid", "a", "short-lived", expire_after=5)
    now += 6_000_000
    (handle,) = await start(opened, awaits_all_that_is_kept, "a")

    assert await opened.client.send_message("paid", "a", "next")
    assert "next" == await handle.result(timeout=10)


async def test_racing_messages_and_waits_meet_exactly_once(engine: OpenEngine):
    """Many of both for one key, in any order and in shared transactions: each message is had by one, none is lost."""
    config = EngineConfig(store=StoreConfig(synchronous="normal"))
    opened = await engine(workflows=[awaits_all_that_is_kept], config=config)

    async def send(number: int) -> bool:
        return bool(await opened.client.send_message("paid", "a", number))

    handles, answers = await asyncio.gather(
        asyncio.gather(*(opened.client.start_workflow(awaits_all_that_is_kept, "a") for _ in range(200))),
        asyncio.gather(*(send(number) for number in range(200))),
    )

    results = await asyncio.gather(*(handle.result(timeout=20) for handle in handles))
    assert list(range(200)) == sorted(results)
    assert len(answers) == 200
    assert not await opened.client.messages.events("default", "paid")
    await check_all(opened)


async def test_a_workflow_sends_a_message(engine: OpenEngine):
    """001-44, for messages: recorded with its turn, delivered with it."""
    opened = await engine(workflows=[awaits, sends])
    (handle,) = await start(opened, awaits, "a")

    sender = await opened.client.start_workflow(sends, "a", workflow_id="sender")

    assert "sent" == await sender.result(timeout=10)
    assert {"by": "sender"} == await handle.result(timeout=10)
    await check_all(opened)
    check_whole(sends, await sender.history(), sender.id)


async def test_a_workflow_sends_to_itself(engine: OpenEngine):
    """001-27, for messages: no deadlock."""
    opened = await engine(workflows=[sends_to_itself])
    handle = await opened.client.start_workflow(sends_to_itself)
    assert "to me" == await handle.result(timeout=10)
    await check_all(opened)
    check_whole(sends_to_itself, await handle.history(), handle.id)


async def test_the_same_key_is_the_same_message(engine: OpenEngine):
    """A repeated call changes nothing and gets the first answer."""
    opened = await engine(workflows=[awaits])
    first, second = await start(opened, awaits, "a", "a")
    sent = await opened.client.send_message("paid", "a", 1, idempotency_key="k")

    again = await opened.client.send_message("paid", "a", 1, idempotency_key="k")

    assert sent == again
    assert 1 == await first.result(timeout=10)
    assert await second.status() is WorkflowStatus.WAITING
    with pytest.raises(errors.RequestMismatch):
        await opened.client.send_message("paid", "a", 2, idempotency_key="k")


@pytest.mark.parametrize(
    ("field", "arguments", "options"),
    [
        ("name", ("", "a"), {}),
        ("correlation_key", ("paid", ""), {}),
        ("idempotency_key", ("paid", "a"), {"idempotency_key": ""}),
        ("expire_after", ("paid", "a"), {"expire_after": -1}),
        ("data", ("paid", "a", object()), {}),
    ],
)
async def test_bad_input_is_refused(engine: OpenEngine, field: str, arguments: Any, options: Any):
    """With the field that is wrong, and nothing is kept."""
    opened = await engine()
    with pytest.raises(errors.HoldfastError) as refused:
        await opened.client.send_message(*arguments, **options)
    assert field == refused.value.details["field"]
    assert not await opened.client.messages.events("default")
