"""`ctx.wait_for_broadcast`, `ctx.broadcast`, `ctx.wait_for_message`, `ctx.send_message`."""

from contextlib import suppress

import pytest
from msgspec import Raw

from holdfast import WorkflowContext, query, workflow
from holdfast.errors import EventTimeout, InvalidRequest, QueryNotReadOnly
from holdfast.model import commands as c
from holdfast.model import events as e
from tests.replay.driving import Driven, fired, result_of
from tests.unit.frontends.python.outside import outside


@workflow
async def listener(ctx: WorkflowContext) -> str:
    await ctx.wait_for_broadcast("closing time")
    return "gone"


@workflow
async def mailbox(ctx: WorkflowContext, address: str) -> int:
    return await ctx.wait_for_message("letter", address, int)


# --- broadcasts -------------------------------------------------------------------------------------------------------


async def test_a_broadcast_wakes_everybody_who_waits(engine):
    """And nobody who begins to wait afterwards."""
    world = await outside(engine, listener)
    handles = [await world.start(listener) for _ in range(3)]
    for handle in handles:
        await world.waiting(handle, ("broadcast", "closing time"))

    assert 3 == (await world.broadcast("closing time")).delivered
    assert ["gone"] * 3 == [await world.result(handle) for handle in handles]
    late = await world.start(listener)
    await world.waiting(late, ("broadcast", "closing time"))
    assert 0 == (await world.broadcast("another name")).delivered
    await world.broadcast("closing time")
    assert "gone" == await world.result(late)
    await world.check_replays()


async def test_a_workflow_broadcasts(engine):
    """A recorded command; the broadcaster's own wait of the same turn is woken as well."""

    @workflow
    async def landlord(ctx: WorkflowContext) -> None:
        heard = ctx.wait_for_broadcast("closing time")
        ctx.broadcast("closing time")
        await heard

    world = await outside(engine, listener, landlord)
    handle = await world.start(listener)
    await world.waiting(handle, ("broadcast", "closing time"))
    own = await world.start(landlord)

    await world.result(own)
    assert "gone" == await world.result(handle)
    await world.check_replays()


async def test_a_broadcast_that_does_not_come_in_time(engine):
    @workflow
    async def impatient(ctx: WorkflowContext) -> str:
        try:
            await ctx.wait_for_broadcast("go", timeout=0.02)
        except EventTimeout as error:
            return str(error)
        return ""

    world = await outside(engine, impatient)
    handle = await world.start(impatient)

    assert "no broadcast 'go' came in time" == await world.result(handle)
    assert [] == await handle.waits()
    await world.check_replays()


async def test_the_loser_of_a_race_is_not_reached(engine):
    @workflow
    async def racing(ctx: WorkflowContext) -> str:
        won = await ctx.race(ctx.wait_for_broadcast("a"), ctx.wait_for_broadcast("b"))
        await ctx.wait_for_signal("end")
        return won.item_id

    world = await outside(engine, racing)
    handle = await world.start(racing)
    await world.waiting(handle, ("broadcast", "a"), ("broadcast", "b"))
    assert 1 == (await world.broadcast("b")).delivered
    await world.waiting(handle, ("signal", "end"))
    assert 0 == (await world.broadcast("a")).delivered
    await handle.signal("end")

    assert "broadcast:2" == await world.result(handle)
    await world.check_replays()


# --- messages ---------------------------------------------------------------------------------------------------------


async def test_a_message_reaches_exactly_one(engine):
    """The one that waits for its correlation key, and the longest of those."""
    world = await outside(engine, mailbox)
    other = await world.start(mailbox, "b")
    first = await world.start(mailbox, "a")
    for handle in (other, first):
        await world.waiting(handle, ("message", "letter"))
    second = await world.start(mailbox, "a")
    await world.waiting(second, ("message", "letter"))

    assert 1 == (await world.send("letter", "a", 1)).delivered
    assert 1 == await world.result(first)
    assert 1 == (await world.send("letter", "a", 2)).delivered
    assert 2 == await world.result(second)
    await world.waiting(other, ("message", "letter"))
    await world.send("letter", "b", 3)
    assert 3 == await world.result(other)
    await world.check_replays()


async def test_messages_that_came_first_are_read_in_order(engine):
    @workflow
    async def late(ctx: WorkflowContext) -> list[int]:
        await ctx.wait_for_signal("begin")
        return [await ctx.wait_for_message("letter", "a", int) for _ in range(3)]

    world = await outside(engine, late)
    handle = await world.start(late)
    await world.waiting(handle, ("signal", "begin"))
    for number in (1, 2, 3):
        await world.send("letter", "a", number)
    await handle.signal("begin")

    assert [1, 2, 3] == await world.result(handle)
    assert [] == await world.client.list_events()
    await world.check_replays()


async def test_a_workflow_sends_a_message(engine):
    @workflow
    async def writer(ctx: WorkflowContext) -> None:
        ctx.send_message("letter", "a", 8)

    world = await outside(engine, mailbox, writer)
    handle = await world.start(mailbox, "a")
    await world.waiting(handle, ("message", "letter"))
    await world.result(await world.start(writer))

    assert 8 == await world.result(handle)
    await world.check_replays()


async def test_an_event_is_no_message(engine):
    """The same name without a correlation key reaches nobody who waits for a message, and the other way round."""

    @workflow
    async def both(ctx: WorkflowContext) -> list[int]:
        letter, event = ctx.wait_for_message("letter", "a", int), ctx.wait_for_event("letter", int)
        return [await letter, await event]

    world = await outside(engine, both)
    handle = await world.start(both)
    await world.waiting(handle, ("message", "letter"), ("event", "letter"))
    assert 1 == (await world.publish("letter", 1)).delivered
    assert 1 == (await world.send("letter", "a", 2)).delivered

    assert [2, 1] == await world.result(handle)
    await world.check_replays()


async def test_a_message_that_does_not_come_in_time(engine):
    @workflow
    async def impatient(ctx: WorkflowContext) -> str:
        try:
            await ctx.wait_for_message("letter", "a", timeout=0.02)
        except EventTimeout as error:
            return str(error)
        return ""

    world = await outside(engine, impatient)
    handle = await world.start(impatient)

    assert "no message 'letter' for 'a' came in time" == await world.result(handle)
    await world.check_replays()


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_bad_names_are_refused_at_the_call():
    refused = []

    @workflow
    async def sloppy(ctx: WorkflowContext) -> None:
        for make in (
            lambda: ctx.wait_for_broadcast(""),
            lambda: ctx.wait_for_broadcast("b", timeout=float("nan")),
            lambda: ctx.broadcast("\n"),
            lambda: ctx.wait_for_message("", "a"),
            lambda: ctx.wait_for_message("m", ""),
            lambda: ctx.wait_for_message("m", 7),  # type: ignore[call-overload]
            lambda: ctx.send_message("m", ""),
        ):
            try:
                make()
            except InvalidRequest as error:
                refused.append(error.details["field"])

    driven = Driven(sloppy)
    turn = driven.start()

    assert ["name", "timeout", "name", "name", "correlation_key", "correlation_key", "correlation_key"] == refused
    assert [c.CompleteWorkflow] == [type(command) for command in turn.commands]
    driven.check()


def test_a_message_that_came_for_a_wait_given_up_goes_to_the_next():
    """Nobody else could ever get it."""

    @workflow
    async def again(ctx: WorkflowContext) -> list[int]:
        with suppress(EventTimeout):
            await ctx.wait_for_message("letter", "a", int, timeout=1)
        other = ctx.wait_for_message("letter", "b", int)
        return [await ctx.wait_for_message("letter", "a", int), await other]

    driven = Driven(again)
    driven.start()
    letter = e.EventReceived(wait_no=1, key="letter", event_id=3, data=Raw(b"7"), correlation="a")
    turn = driven.turn(fired(1), letter)
    kinds = [c.CancelWait, c.StartWait, c.StartWait, c.CancelWait]
    assert kinds == [type(command) for command in turn.commands]
    done = driven.turn(e.EventReceived(wait_no=2, key="letter", event_id=4, data=Raw(b"8"), correlation="b"))

    assert [7, 8] == result_of(done)
    driven.check()


def test_sending_is_recorded_in_its_place():
    """Between the other commands of the turn, with the line it was asked for at."""

    @workflow
    async def sender(ctx: WorkflowContext) -> None:
        ctx.broadcast("b")
        ctx.sleep(1)
        ctx.send_message("m", "a", 1)
        ctx.publish_event("k", {"n": 1})

    turn = Driven(sender).start()

    kinds = [c.ThrowBroadcast, c.StartTimer, c.Publish, c.Publish, c.CompleteWorkflow]
    assert kinds == [type(command) for command in turn.commands]
    assert all("test_context_broadcasts.py" in getattr(command, "line", "") for command in turn.commands[:4])


async def test_a_query_can_neither_wait_nor_broadcast(engine):
    @workflow
    class Careful:
        def __init__(self, ctx: WorkflowContext) -> None:
            self.ctx = ctx

        async def run(self, ctx: WorkflowContext) -> None:
            await ctx.wait_for_broadcast("b")

        @query
        def wait(self) -> None:
            self.ctx.wait_for_message("m", "a")

        @query
        def shout(self) -> None:
            self.ctx.broadcast("b")

    world = await outside(engine, Careful)
    handle = await world.start(Careful)
    await world.waiting(handle, ("broadcast", "b"))

    for name in ("wait", "shout"):
        with pytest.raises(QueryNotReadOnly):
            await handle.query(name)
    await world.waiting(handle, ("broadcast", "b"))
    await world.broadcast("b")
    await world.result(handle)
