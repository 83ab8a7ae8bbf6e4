"""`ctx.wait_for_event` and `ctx.publish_event`: keyed payloads, filters, looking back."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import Raw

from holdfast import WorkflowContext, query, workflow
from holdfast.errors import EventTimeout, InvalidExpression, InvalidRequest, QueryNotReadOnly
from holdfast.model import commands as c
from holdfast.model import events as e
from tests.replay.driving import Driven, fired, result_of
from tests.unit.frontends.python.outside import outside


@dataclass
class Order:
    id: int
    state: str = "new"


def received(number: int = 1, event_id: int = 1, data: str = "null", key: str = "k", **fields: str) -> e.EventReceived:
    return e.EventReceived(wait_no=number, key=key, event_id=event_id, data=Raw(data.encode()), **fields)


# --- end to end -------------------------------------------------------------------------------------------------------


async def test_an_event_wakes_those_whose_filter_it_satisfies(engine):
    """`where` sees the payload as `input`; the data comes as the type that was asked for."""

    @workflow
    async def shipping(ctx: WorkflowContext, number: int) -> str:
        order = await ctx.wait_for_event("order", Order, where=f"input.id == {number} && input.state == 'paid'")
        return order.state

    world = await outside(engine, shipping)
    one, two = await world.start(shipping, 1), await world.start(shipping, 2)
    await world.waiting(one, ("event", "order"))
    await world.waiting(two, ("event", "order"))

    assert 0 == (await world.publish("order", {"id": 1, "state": "new"})).delivered
    assert 1 == (await world.publish("order", {"id": 1, "state": "paid"})).delivered
    assert "paid" == await world.result(one)
    await world.waiting(two, ("event", "order"))
    await world.publish("order", {"id": 2, "state": "paid"})
    assert "paid" == await world.result(two)
    await world.check_replays()


async def test_an_event_that_came_first_is_not_missed(engine):
    """What was published since the workflow began counts, in whatever order it then asks."""

    @workflow
    async def late(ctx: WorkflowContext) -> list[int]:
        await ctx.wait_for_signal("begin")
        second = await ctx.wait_for_event("k", where="input.n == 2")
        first = await ctx.wait_for_event("k", where="input.n == 1")
        return [first["n"], second["n"]]

    world = await outside(engine, late)
    handle = await world.start(late)
    await world.waiting(handle, ("signal", "begin"))
    await world.publish("k", {"n": 1})
    await world.publish("k", {"n": 2})
    await handle.signal("begin")

    assert [1, 2] == await world.result(handle)
    await world.check_replays()


async def test_no_event_is_received_twice(engine):
    """One after another, whether the question stays the same or changes."""

    @workflow
    async def reader(ctx: WorkflowContext) -> list[int]:
        found = [await ctx.wait_for_event("k", int, where="input < 3") for _ in range(2)]
        found += [await ctx.wait_for_event("k", int) for _ in range(2)]
        return found

    world = await outside(engine, reader)
    handle = await world.start(reader)
    await world.waiting(handle, ("event", "k"))
    for number in (3, 1, 2, 4):
        await world.publish("k", number)

    assert [1, 2, 3, 4] == await world.result(handle)
    await world.check_replays()


async def test_what_was_published_before_the_workflow_needs_a_look_back(engine):
    """By default a workflow sees what was published in its life; `look_back=True` sees all that is kept."""

    @workflow
    async def historian(ctx: WorkflowContext, everything: bool) -> int:
        try:
            return int(await ctx.wait_for_event("k", look_back=everything or None, timeout=0.02))
        except EventTimeout:
            return -1

    world = await outside(engine, historian)
    await world.publish("k", 5)

    assert 5 == await world.result(await world.start(historian, True))
    assert -1 == await world.result(await world.start(historian, False))
    await world.check_replays()


async def test_a_wait_without_looking_back_sees_only_what_comes(engine):
    @workflow
    async def present(ctx: WorkflowContext) -> int:
        await ctx.wait_for_signal("begin")
        return int(await ctx.wait_for_event("k", look_back=False))

    world = await outside(engine, present)
    handle = await world.start(present)
    await world.publish("k", 1)
    await handle.signal("begin")
    await world.waiting(handle, ("event", "k"))
    await world.publish("k", 2)

    assert 2 == await world.result(handle)
    await world.check_replays()


async def test_a_look_back_of_a_while(engine):
    @workflow
    async def hourly(ctx: WorkflowContext) -> int:
        return int(await ctx.wait_for_event("k", look_back=timedelta(hours=1)))

    world = await outside(engine, hourly)
    await world.publish("k", 8)

    assert 8 == await world.result(await world.start(hourly))
    await world.check_replays()


async def test_a_wait_that_consumes_leaves_nothing_for_others(engine):
    """The longest waiting gets it, alone."""

    @workflow
    async def greedy(ctx: WorkflowContext) -> int:
        return int(await ctx.wait_for_event("k", consume_on_read=True))

    world = await outside(engine, greedy)
    one = await world.start(greedy)
    await world.waiting(one, ("event", "k"))
    two = await world.start(greedy)
    await world.waiting(two, ("event", "k"))
    assert 1 == (await world.publish("k", 1)).delivered
    assert 1 == await world.result(one)
    await world.publish("k", 2)

    assert 2 == await world.result(two)
    await world.check_replays()


async def test_an_event_that_does_not_come_in_time(engine):
    """EventTimeout is a TimeoutError and says what was waited for; the wait is gone afterwards."""

    @workflow
    async def impatient(ctx: WorkflowContext) -> str:
        try:
            await ctx.wait_for_event("k", where="input.n > 1", timeout=0.02)
        except TimeoutError as error:
            await ctx.wait_for_signal("end")
            return str(error)
        return ""

    world = await outside(engine, impatient)
    handle = await world.start(impatient)
    await world.waiting(handle, ("signal", "end"))
    assert [] == await handle.waits()
    await handle.signal("end")

    assert "no event 'k' where input.n > 1 came in time" == await world.result(handle)
    await world.check_replays()


async def test_an_event_in_time_leaves_no_timer(engine):
    @workflow
    async def patient(ctx: WorkflowContext) -> int:
        found = await ctx.wait_for_event("k", int, timeout=3600)
        await ctx.wait_for_signal("end")
        return found

    world = await outside(engine, patient)
    handle = await world.start(patient)
    await world.waiting(handle, ("event", "k"), ("timer", "timeout of k"))
    await world.publish("k", 4)
    await world.waiting(handle, ("signal", "end"))

    assert await world.engine._local.upkeep.next_due_at(0) is None
    await handle.signal("end")
    assert 4 == await world.result(handle)
    await world.check_replays()


async def test_the_loser_of_a_race_no_longer_waits(engine):
    @workflow
    async def racing(ctx: WorkflowContext) -> str:
        won = await ctx.race(ctx.wait_for_event("a"), ctx.wait_for_event("b", timeout=3600))
        await ctx.wait_for_signal("end")
        return won.item_id

    world = await outside(engine, racing)
    handle = await world.start(racing)
    await world.waiting(handle, ("event", "a"), ("event", "b"), ("timer", "timeout of b"))
    await world.publish("a")
    await world.waiting(handle, ("signal", "end"))

    assert [] == await handle.waits()
    assert 0 == (await world.publish("b")).delivered
    await handle.signal("end")
    assert "event:1" == await world.result(handle)
    await world.check_replays()


async def test_workflows_publish_to_each_other(engine):
    """A recorded command: the reader gets it whether it waits already or begins to wait later."""

    @workflow
    async def reader(ctx: WorkflowContext) -> int:
        return (await ctx.wait_for_event("made", Order)).id

    @workflow
    async def maker(ctx: WorkflowContext) -> None:
        ctx.publish_event("made", Order(7))
        await ctx.sleep(0)

    world = await outside(engine, reader, maker)
    handle = await world.start(reader)
    await world.waiting(handle, ("event", "made"))
    made = await world.start(maker)
    await world.result(made)

    assert 7 == await world.result(handle)
    assert ["EVENT_PUBLISHED"] == [
        event.type for event in await world.events(made) if isinstance(event.body, e.EventPublished)
    ]
    await world.check_replays()


async def test_a_workflow_hears_itself(engine):
    """Its own event reaches its own wait, in the turn after."""

    @workflow
    async def echo(ctx: WorkflowContext) -> int:
        heard = ctx.wait_for_event("k", int)
        ctx.publish_event("k", 3)
        return await heard

    world = await outside(engine, echo)

    assert 3 == await world.result(await world.start(echo))
    await world.check_replays()


async def test_an_event_published_by_the_last_turn_is_out(engine):
    @workflow
    async def farewell(ctx: WorkflowContext) -> None:
        ctx.publish_event("bye", "x", expire_after=60)

    world = await outside(engine, farewell)
    await world.result(await world.start(farewell))

    assert ["bye"] == [event.key for event in await world.client.list_events()]
    await world.check_replays()


async def test_an_event_nobody_may_look_back_for(engine):
    @workflow
    async def shout(ctx: WorkflowContext) -> None:
        ctx.publish_event("k", delivery="waiters")

    world = await outside(engine, shout)
    await world.result(await world.start(shout))

    assert [] == await world.client.list_events()


async def test_a_query_can_neither_wait_nor_publish(engine):
    @workflow
    class Careful:
        def __init__(self, ctx: WorkflowContext) -> None:
            self.ctx = ctx

        async def run(self, ctx: WorkflowContext) -> None:
            await ctx.wait_for_event("k")

        @query
        def wait(self) -> None:
            self.ctx.wait_for_event("k")

        @query
        def publish(self) -> None:
            self.ctx.publish_event("k")

    world = await outside(engine, Careful)
    handle = await world.start(Careful)
    await world.waiting(handle, ("event", "k"))

    for name in ("wait", "publish"):
        with pytest.raises(QueryNotReadOnly):
            await handle.query(name)
    assert 0 == len(await world.client.list_events())
    await world.publish("k")
    await world.result(handle)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_bad_waits_are_refused_at_the_call():
    """Typed errors that the workflow can catch; nothing is recorded."""
    refused = []

    @workflow
    async def sloppy(ctx: WorkflowContext) -> None:
        for make in (
            lambda: ctx.wait_for_event(""),
            lambda: ctx.wait_for_event("k", where="input.n =="),
            lambda: ctx.wait_for_event("k", where=7),  # type: ignore[call-overload]
            lambda: ctx.wait_for_event("k", timeout=-1),
            lambda: ctx.wait_for_event("k", look_back=-1),
            lambda: ctx.wait_for_event("k", look_back="yesterday"),  # type: ignore[call-overload]
            lambda: ctx.wait_for_event("k", look_back=datetime(2024, 1, 1)),  # noqa: DTZ001 - that is the point
            lambda: ctx.publish_event(""),
            lambda: ctx.publish_event("k", expire_after=0),
            lambda: ctx.publish_event("k", delivery="nobody"),
        ):
            try:
                make()
            except InvalidRequest as error:
                refused.append((type(error) is InvalidExpression, error.details.get("field")))

    driven = Driven(sloppy)
    turn = driven.start()

    fields = [
        "key",
        "where",
        "where",
        "timeout",
        "look_back",
        "look_back",
        "look_back",
        "key",
        "expire_after",
        "delivery",
    ]
    assert fields == [field for _, field in refused]
    assert [1] == [place for place, (expression, _) in enumerate(refused) if expression]
    assert [c.CompleteWorkflow] == [type(command) for command in turn.commands]
    driven.check()


def test_how_far_a_wait_looks_back():
    """By default to the start of the execution; never to what it has had."""
    instant = datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)

    @workflow
    async def looker(ctx: WorkflowContext) -> None:
        await ctx.sleep(5)
        for look_back in (None, False, True, 2, timedelta(seconds=1), instant):
            ctx.wait_for_event("k", look_back=look_back)
        await ctx.wait_for_signal("end")

    driven = Driven(looker)
    driven.start()
    turn = driven.turn(fired(1))
    now = driven.history[3].at

    waits = [command for command in turn.commands if isinstance(command, c.StartWait)]
    assert [1_000_000, None, 0, now - 2_000_000, now - 1_000_000, 2_000_000] == [wait.since_at for wait in waits]
    driven.check()


def test_a_wait_says_what_the_execution_has_had():
    """After the last answer to the same question, and without the answers to others."""

    @workflow
    async def reader(ctx: WorkflowContext) -> None:
        await ctx.wait_for_event("k")
        await ctx.wait_for_event("k", where="input.x == 1")
        await ctx.wait_for_event("k")
        await ctx.wait_for_event("other")

    driven = Driven(reader)
    found = []
    turn = driven.start()
    for number, event_id in enumerate((5, 9, 11), start=1):
        (wait,) = [command for command in turn.commands if isinstance(command, c.StartWait)]
        found.append((wait.key, wait.after_event_id, wait.skip))
        turn = driven.turn(received(number, event_id))
    (wait,) = [command for command in turn.commands if isinstance(command, c.StartWait)]
    found.append((wait.key, wait.after_event_id, wait.skip))

    assert [("k", 0, ()), ("k", 0, (5,)), ("k", 5, (9,)), ("other", 0, ())] == found
    driven.check()


def test_an_event_that_came_for_a_wait_given_up_goes_to_the_next():
    """The engine had given it before it knew of the time-out: nothing is lost, not even what nobody else can have."""

    @workflow
    async def again(ctx: WorkflowContext) -> int:
        with suppress(EventTimeout):
            await ctx.wait_for_event("k", int, timeout=1, consume_on_read=True)
        await ctx.wait_for_signal("go on")
        return await ctx.wait_for_event("k", int, where="input > 1")

    driven = Driven(again)
    driven.start()
    turn = driven.turn(fired(1), received(1, 3, "7"))
    assert [c.CancelWait] == [type(command) for command in turn.commands]
    done = driven.turn(e.SignalReceived(signal_name="go on"))

    assert 7 == result_of(done)
    driven.check()


def test_an_event_of_another_kind_is_left_for_its_own_wait():
    @workflow
    async def again(ctx: WorkflowContext) -> list[int]:
        await ctx.race(ctx.wait_for_event("k", int), ctx.wait_for_signal("go on"))
        other = ctx.wait_for_event("other", int)
        new = ctx.wait_for_event("k", int, look_back=False)
        small = ctx.wait_for_event("k", int, where="input < 5")
        return [await new, await small, await other, await ctx.wait_for_event("k", int)]

    driven = Driven(again)
    driven.start()
    driven.turn(e.SignalReceived(signal_name="go on"), received(1, 3, "7"))
    done = driven.turn(received(4, 4, "1"), received(3, 5, "2"), received(2, 6, "3", key="other"))

    assert [2, 1, 3, 7] == result_of(done)
    driven.check()


async def test_a_workflow_that_continues_as_new_misses_no_event_and_gets_none_twice(engine):
    """What was published between the last wait of a run and the first of the next is for the next."""

    @workflow
    async def rolls(ctx: WorkflowContext, seen: list[int]) -> list[int]:
        seen.append(await ctx.wait_for_event("tick", int))
        if len(seen) < 12:
            ctx.continue_as_new(seen)
        return seen

    there = await outside(engine, rolls)
    await there.publish("tick", -1)
    handle = await there.engine.client.start_workflow(rolls, [])
    for number in range(12):
        await there.publish("tick", number)
    assert list(range(12)) == await handle.result(timeout=20)
