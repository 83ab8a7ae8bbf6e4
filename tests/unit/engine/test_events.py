"""Published events: to those who wait and whose filter they satisfy, kept for those who look back, each once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from holdfast import DeliveryMode, EngineConfig, Limits, WorkflowContext, WorkflowStatus, workflow
from holdfast.errors import (
    EventNotFound,
    EventTimeout,
    InvalidDuration,
    InvalidExpression,
    InvalidRequest,
    PayloadTooLarge,
    RequestMismatch,
)
from tests.conftest import QUICK, until

FEW = EngineConfig(store=QUICK.store, worker=QUICK.worker, limits=Limits(events_per_key=3))


class Clock:
    """Wall time that a test can move on."""

    def __init__(self) -> None:
        self.ahead = 0

    def __call__(self) -> int:
        return time.time_ns() // 1000 + self.ahead

    def move(self, seconds: float) -> None:
        self.ahead += int(seconds * 1_000_000)


@workflow
async def wait_once(ctx: WorkflowContext, options: dict[str, Any] | None = None) -> object:
    return await ctx.wait_for_event("order", **(options or {}))


@workflow
async def wait_thrice(ctx: WorkflowContext, options: dict[str, Any] | None = None) -> list[object]:
    return [await ctx.wait_for_event("order", **(options or {})) for _ in range(3)]


@workflow
async def wait_when_told(ctx: WorkflowContext, options: dict[str, Any] | None = None) -> object:
    await ctx.wait_for_signal("now")
    try:
        return await ctx.wait_for_event("order", timeout=0.2, **(options or {}))
    except EventTimeout:
        return "nothing"


WORKFLOWS = [wait_once, wait_thrice, wait_when_told]


async def begin(client, workflow, options=None, *, waits=1):
    handle = await client.start_workflow(workflow, options)
    await until(lambda: has_waits(handle, waits))
    return handle


async def has_waits(handle, count):
    return len(await handle.waits()) == count


async def received(handle):
    return [event.body.event_id for event in await handle.history() if event.type == "EVENT_RECEIVED"]


# --- to those who wait ------------------------------------------------------------------------------------------------


async def test_an_event_goes_to_the_waits_of_its_key_and_lets_them_run(engine):
    """004-22: one EVENT_RECEIVED at each waiter's own place, with the value; the workflows go on."""
    opened = await engine(workflows=WORKFLOWS)
    first, second = await begin(opened.client, wait_once), await begin(opened.client, wait_once)
    answer = await opened.send_event("order", {"id": 7})

    assert [{"id": 7}] * 2 == [await handle.result(timeout=10) for handle in (first, second)]
    assert (2, True) == (answer.delivered, answer.retained)
    assert [answer.event_id] == await received(first) == await received(second)
    assert [] == await first.waits()


async def test_another_key_is_another_matter(engine):
    """Keys are compared as they are, letter by letter."""
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await begin(client, wait_once)

    assert [0, 0] == [(await client.publish_event(key)).delivered for key in ("orders", "Order")]
    assert await handle.status() is WorkflowStatus.WAITING


@pytest.mark.parametrize(
    ("where", "data", "satisfied"),
    [
        ('input.order == "o1" && input.amount > 10', {"order": "o1", "amount": 11}, True),
        ('input.order == "o1" && input.amount > 10', {"order": "o1", "amount": 10}, False),
        ("input == 7", 7, True),
        ("input == 7", {"input": 7}, False),
        ("size(input) == 2", [1, 2], True),
        ('input["data"].order == 1', {"data": {"order": 1}}, True),
        ("input.order == 1", {"data": {"order": 1}}, False),
        ("input == null", None, True),
    ],
)
async def test_a_filter_sees_the_whole_payload_as_input(engine, where, data, satisfied):
    """H24: `input` is what was published, whatever it is, with nothing around it."""
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await begin(client, wait_once, {"where": where})
    answer = await client.publish_event("order", data)

    assert int(satisfied) == answer.delivered
    if satisfied:
        assert data == await handle.result(timeout=10)


async def test_a_filter_that_fails_on_a_payload_is_no_match(engine):
    """A missing field, a division by zero, a wrong type: refused for this payload, and the wait goes on."""
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await begin(client, wait_once, {"where": "10 / input.amount > 1"})
    answers = [await client.publish_event("order", data) for data in ({"amount": 0}, {}, "text", {"amount": "x"})]

    assert [0] * 4 == [answer.delivered for answer in answers]
    assert 1 == (await client.publish_event("order", {"amount": 2})).delivered
    assert {"amount": 2} == await handle.result(timeout=10)


async def test_a_filter_over_its_budget_on_a_payload_is_no_match_and_harms_nobody(engine):
    """The cost of a filter is bounded: the event goes to everybody else."""
    client = (await engine(workflows=WORKFLOWS)).client
    where = "input.all(a, input.all(b, input.all(c, a + b + c >= 0)))"
    greedy, plain = await begin(client, wait_once, {"where": where}), await begin(client, wait_once)
    answer = await client.publish_event("order", list(range(200)))

    assert 1 == answer.delivered
    assert await plain.result(timeout=10)
    explained = (await client.explain_event(answer.event_id)).waits
    assert greedy.id == explained[0].workflow_execution_id
    assert "steps" in explained[0].reason


# --- one or all -------------------------------------------------------------------------------------------------------


async def test_consume_on_read_gives_an_event_to_the_longest_waiter_that_matches(engine):
    """H25, 004-23: the first of two waiters gets it, and it is not kept; a third, which matches no filter, is passed
    over although it has waited longest."""
    client = (await engine(workflows=WORKFLOWS)).client
    other = await begin(client, wait_once, {"where": "input == 2"})
    first, second = await begin(client, wait_once), await begin(client, wait_once)
    answer = await client.publish_event("order", 1, consume_on_read=True)

    assert (1, False) == (answer.delivered, answer.retained)
    assert 1 == await first.result(timeout=10)
    assert [WorkflowStatus.WAITING] * 2 == [await handle.status() for handle in (other, second)]
    assert [] == await client.list_events("order")


async def test_without_consume_on_read_all_get_it(engine):
    """H25: five waiters, five deliveries, and whoever looks back later."""
    client = (await engine(workflows=WORKFLOWS)).client
    handles = [await begin(client, wait_once) for _ in range(5)]

    assert 5 == (await client.publish_event("order", 1)).delivered
    assert [1] * 5 == [await handle.result(timeout=10) for handle in handles]
    late = await client.start_workflow(wait_once, {"look_back": True})
    assert 1 == await late.result(timeout=10)


async def test_a_wait_that_consumes_uses_up_what_it_gets(engine):
    """A wait may ask for an event of its own: those behind it do not get it, nor does who looks back."""
    client = (await engine(workflows=WORKFLOWS)).client
    before = await begin(client, wait_once)
    greedy = await begin(client, wait_once, {"consume_on_read": True})
    behind = await begin(client, wait_once)
    answer = await client.publish_event("order", 1)

    assert (2, False) == (answer.delivered, answer.retained)
    assert [1, 1] == [await handle.result(timeout=10) for handle in (before, greedy)]
    assert await behind.status() is WorkflowStatus.WAITING


async def test_one_who_looks_back_uses_up_an_event_that_only_one_may_have(engine):
    """004-24, H25: kept while nobody waits; gone when the first has looked back."""
    client = (await engine(workflows=WORKFLOWS)).client
    answer = await client.publish_event("order", 1, consume_on_read=True)
    first = await client.start_workflow(wait_once, {"look_back": True})

    assert (0, True) == (answer.delivered, answer.retained)
    assert 1 == await first.result(timeout=10)
    await begin(client, wait_once, {"look_back": True})
    assert [] == await client.list_events("order")


# --- those who look back ----------------------------------------------------------------------------------------------


async def test_an_event_nobody_waits_for_is_kept_with_name_id_value_and_time(engine):
    """004-24: a queue per key, listed newest first, page by page."""
    client = (await engine(workflows=WORKFLOWS)).client
    sent = [await client.publish_event("order", number) for number in range(3)]
    await client.publish_event("other", "x")

    kept = await client.list_events("order")
    assert [(sent[n].event_id, "order", n) for n in (2, 1, 0)] == [(each.id, each.key, each.data) for each in kept]
    assert all(0 < (each.expires_at - each.published_at).total_seconds() <= 7 * 86_400 for each in kept)
    assert [0] == [each.data for each in await client.list_events("order", before=sent[1].event_id)]
    assert 4 == len(await client.list_events())
    assert (3, 0) == (
        (await client.describe_event_key("order")).retained,
        (await client.describe_event_key("order")).dropped,
    )


async def test_waits_that_look_back_get_kept_events_in_order_each_once(engine):
    """Three kept, three waits one after another: the oldest first, none twice, none left out."""
    client = (await engine(workflows=WORKFLOWS)).client
    for number in range(3):
        await client.publish_event("order", number)
    handle = await client.start_workflow(wait_thrice, {"look_back": True})

    assert [0, 1, 2] == await handle.result(timeout=10)


async def test_by_default_a_wait_sees_what_was_published_since_its_execution_began(engine):
    """An event before the start is none of its business; one between start and wait is not missed."""
    client = (await engine(workflows=WORKFLOWS)).client
    await client.publish_event("order", "before")
    handle = await client.start_workflow(wait_when_told)
    await client.publish_event("order", "after")
    await handle.signal("now")

    assert "after" == await handle.result(timeout=10)


async def test_look_back_false_sees_only_what_comes(engine):
    """Nothing that was published before the wait."""
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await client.start_workflow(wait_when_told, {"look_back": False})
    await client.publish_event("order", "early")
    await handle.signal("now")

    assert "nothing" == await handle.result(timeout=10)


async def test_delivery_to_waiters_alone_keeps_nothing(engine):
    """004-23: delivery="waiters"."""
    client = (await engine(workflows=WORKFLOWS)).client
    answer = await client.publish_event("order", 1, delivery="waiters")

    assert (0, False) == (answer.delivered, answer.retained)
    assert [] == await client.list_events()


async def test_delivery_to_those_created_before_leaves_younger_executions_out(engine):
    """004-23: one that had begun finds it when it looks back; one that begins later does not."""
    client = (await engine(workflows=WORKFLOWS)).client
    older = await client.start_workflow(wait_when_told, {"look_back": True})
    await client.publish_event("order", 1, delivery=DeliveryMode.CREATED_BEFORE)
    younger = await client.start_workflow(wait_when_told, {"look_back": True})
    for handle in (older, younger):
        await handle.signal("now")

    assert [1, "nothing"] == [await handle.result(timeout=10) for handle in (older, younger)]


async def test_options_are_those_of_the_event_not_of_its_key(engine):
    """004-25: two events of one key, each by its own options."""
    client = (await engine(workflows=WORKFLOWS)).client
    await client.publish_event("order", "for one", consume_on_read=True, expire_after=3600)
    await client.publish_event("order", "for all")
    first = await client.start_workflow(wait_once, {"look_back": True})
    others = [await client.start_workflow(wait_once, {"look_back": True}) for _ in range(2)]

    assert "for one" == await first.result(timeout=10)
    assert ["for all"] * 2 == [await handle.result(timeout=10) for handle in others]


# --- retention --------------------------------------------------------------------------------------------------------


async def test_an_expired_event_is_gone_and_dead_if_nobody_got_it(engine):
    """004-23: after `expire_after` nobody finds it; housekeeping makes a dead event of it, with the reason."""
    clock = Clock()
    opened = await engine(workflows=WORKFLOWS, clock=clock)
    client = opened.client
    lost = await client.publish_event("order", "lost", expire_after=5)
    kept = await client.publish_event("order", "kept", expire_after=500)
    clock.move(6)
    handle = await client.start_workflow(wait_once, {"look_back": True})

    assert "kept" == await handle.result(timeout=10)
    await opened._local.upkeep.prune()
    assert [kept.event_id] == [each.id for each in await client.list_events()]
    (dead,) = await client.dead_events("order")
    assert (lost.event_id, "lost", "expired") == (dead.id, dead.data, dead.reason)
    assert 1 == (await client.describe_event_key("order")).retained


async def test_an_event_that_somebody_got_is_never_dead(engine):
    """It expires without a trace."""
    clock = Clock()
    opened = await engine(workflows=WORKFLOWS, clock=clock)
    await begin(opened.client, wait_once)
    await opened.client.publish_event("order", 1)
    clock.move(8 * 86_400)
    await opened._local.upkeep.prune()

    assert ([], []) == (await opened.client.list_events(), await opened.client.dead_events())


async def test_dead_events_are_forgotten_in_the_end(engine):
    """Kept for as long as an event is, from the moment they died."""
    clock = Clock()
    opened = await engine(clock=clock)
    await opened.client.publish_event("order", 1, expire_after=1)
    for days in (1, 6):
        clock.move(days * 86_400)
        await opened._local.upkeep.prune()
        assert 1 == len(await opened.client.dead_events())
    clock.move(3 * 86_400)
    await opened._local.upkeep.prune()

    assert [] == await opened.client.dead_events()


async def test_the_oldest_events_of_a_key_are_dropped_when_there_are_too_many(engine):
    """The newest stay; those dropped are counted, and dead if nobody got them. Other keys do not count."""
    client = (await engine(workflows=WORKFLOWS, config=FEW)).client
    await begin(client, wait_once)
    answers = await asyncio.gather(*(client.publish_event("order", number) for number in range(8)))
    await client.publish_event("other", 1)

    ids = [answer.event_id for answer in answers]
    assert ids[:-4:-1] == [each.id for each in await client.list_events("order")]
    view = await client.describe_event_key("order")
    assert (3, 5) == (view.retained, view.dropped)
    dead = await client.dead_events("order")
    assert (ids[4:0:-1], {"dropped"}) == ([each.id for each in dead], {each.reason for each in dead})


# --- dead events ------------------------------------------------------------------------------------------------------


async def test_a_dead_event_can_be_published_again(engine):
    """It has a new number, goes to who waits now, and is kept; the dead one is gone."""
    clock = Clock()
    opened = await engine(workflows=WORKFLOWS, clock=clock)
    client = opened.client
    lost = await client.publish_event("order", {"a": 1}, expire_after=5)
    clock.move(6)
    await opened._local.upkeep.prune()
    handle = await begin(client, wait_once)
    answer = await client.replay_event(lost.event_id)

    assert answer.event_id > lost.event_id
    assert (1, True) == (answer.delivered, answer.retained)
    assert {"a": 1} == await handle.result(timeout=10)
    assert [] == await client.dead_events()
    with pytest.raises(EventNotFound):
        await client.replay_event(lost.event_id)
    assert 1 == (await client.describe_event_key("order")).retained


async def test_of_many_replays_at_once_one_publishes(engine):
    """The others are told that it is not dead any more."""
    clock = Clock()
    opened = await engine(clock=clock)
    lost = await opened.client.publish_event("order", 1, expire_after=5)
    clock.move(6)
    await opened._local.upkeep.prune()
    answers = await asyncio.gather(
        *(opened.client.replay_event(lost.event_id) for _ in range(20)), return_exceptions=True
    )

    assert 1 == sum(not isinstance(answer, EventNotFound) for answer in answers)
    assert 1 == len(await opened.client.list_events())


async def test_events_can_be_removed_kept_or_dead(engine):
    """Nobody gets them any more; the count of the key is right; another remove is refused."""
    clock = Clock()
    opened = await engine(clock=clock)
    client = opened.client
    dead = await client.publish_event("order", 1, expire_after=5)
    clock.move(6)
    await opened._local.upkeep.prune()
    kept = await client.publish_event("order", 2)
    for sent in (dead, kept):
        await client.remove_event(sent.event_id)
        with pytest.raises(EventNotFound) as refused:
            await client.remove_event(sent.event_id)
        assert sent.event_id == refused.value.details["event_id"]

    assert ([], [], 0) == (
        await client.list_events(),
        await client.dead_events(),
        (await client.describe_event_key("order")).retained,
    )


async def test_events_of_another_org_are_nobodys_business(engine):
    """Neither listed nor replayed nor removed nor matched."""
    opened = await engine(workflows=WORKFLOWS)
    other = (await engine(org="other")).client
    await begin(opened.client, wait_once)
    sent = await other.publish_event("order", 1)

    assert 0 == sent.delivered
    assert [] == await opened.client.list_events()
    for call in (opened.client.remove_event, opened.client.replay_event, opened.client.explain_event):
        with pytest.raises(EventNotFound):
            await call(sent.event_id)


# --- once -------------------------------------------------------------------------------------------------------------


async def test_the_same_idempotency_key_is_the_same_event(engine):
    """Fifty at once and one later: one event, the same answer; other content is refused."""
    client = (await engine(workflows=WORKFLOWS)).client
    await begin(client, wait_thrice)
    answers = await asyncio.gather(*(client.publish_event("order", 1, idempotency_key="k") for _ in range(50)))
    answers.append(await client.publish_event("order", 1, idempotency_key="k"))

    assert 1 == len({answer.event_id for answer in answers})
    assert 1 == sum(answer.idempotency_key_new for answer in answers)
    assert 1 == len(await client.list_events())
    with pytest.raises(RequestMismatch):
        await client.publish_event("order", 2, idempotency_key="k")


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "field"),
    [
        (("",), {}, "key"),
        (("x" * 256,), {}, "key"),
        (("a\nb",), {}, "key"),
        ((7,), {}, "key"),
        (("order", 1), {"idempotency_key": ""}, "idempotency_key"),
        (("order", 1), {"delivery": "everybody"}, "delivery"),
        (("order", 1), {"expire_after": 0}, "expire_after"),
        (("order", 1), {"expire_after": -1}, "expire_after"),
        (("order", 1), {"expire_after": float("nan")}, "expire_after"),
        (("order", 1), {"idempotency_key": "k", "idempotency_key_ttl": 0}, "idempotency_key_ttl"),
        (("order", object()), {}, "data"),
    ],
)
async def test_what_cannot_be_published_is_refused_with_the_field(engine, arguments, options, field):
    """A typed error, and nothing was changed."""
    client = (await engine()).client
    with pytest.raises((InvalidRequest, InvalidDuration)) as refused:
        await client.publish_event(*arguments, **options)

    assert field in refused.value.field
    assert [] == await client.list_events()


async def test_a_payload_that_is_too_large_is_refused(engine):
    """With its size and the limit."""
    config = EngineConfig(store=QUICK.store, limits=Limits(payload_bytes=100))
    client = (await engine(config=config)).client
    with pytest.raises(PayloadTooLarge):
        await client.publish_event("order", "x" * 200)
    assert [] == await client.list_events()


async def test_a_filter_that_cannot_be_read_says_where(engine):
    """The workflow's own code gets the error at the call, with the position."""

    @workflow
    async def careless(ctx: WorkflowContext, where: str) -> list[object]:
        try:
            await ctx.wait_for_event("order", where=where)
        except InvalidExpression as error:
            return [error.line, error.column, str(error)]
        return []

    client = (await engine(workflows=[careless])).client
    handle = await client.start_workflow(careless, "input.a ==\n  && input.b")
    line, column, text = await handle.result(timeout=10)

    assert (2, 3) == (line, column)
    assert "&&" in text
