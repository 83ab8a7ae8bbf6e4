"""Signals as a workflow sees them: queued by name, first in first out, each read once."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pydantic
import pytest

from holdfast import WorkflowContext, WorkflowStatus, task, workflow
from holdfast.errors import PayloadNotDecodable, SignalTimeout
from tests.conftest import WATCHFUL, until


@dataclass
class Message:
    text: str
    end: bool = False


class Point(msgspec.Struct):
    x: int
    y: float = 0.5


class Order(pydantic.BaseModel):
    number: int
    placed_at: datetime
    lines: list[str] = []


async def waiting(handle):
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))


async def has_status(handle, status):
    return await handle.status() is status


async def run(engine, fn, *signals, tasks=()):
    """Start the workflow, send the signals one after another, give the handle."""
    client = (await engine(workflows=[fn], tasks=tasks)).client
    handle = await client.start_workflow(fn)
    for name, value in signals:
        await handle.signal(name, value)
    return handle


async def types(handle):
    return [event.type for event in await handle.history()]


# --- waiting ----------------------------------------------------------------------------------------------------------


async def test_a_conversation_runs_until_its_last_message(engine):
    """A loop that waits for `message` until one says that it is the end completes with what it has counted."""

    @workflow
    async def conversation(ctx: WorkflowContext, conversation_id: str) -> list[str]:
        said = [conversation_id]
        while True:
            message = await ctx.wait_for_signal("message", Message)
            said.append(message.text)
            if message.end:
                return said

    client = (await engine(workflows=[conversation])).client
    for message in (Message("hello"), Message("how are you"), Message("bye", end=True)):
        answer = await client.signal_with_start_workflow(
            "conversation:1", conversation, "1", signal_name="message", signal_value=message
        )

    handle = client.workflow(answer.workflow_execution_id)
    assert ["1", "hello", "how are you", "bye"] == await handle.result(timeout=10)


async def test_wait_suspends_until_the_signal_comes(engine):
    """With nothing in the queue the execution is WAITING for that name, and goes on when it comes."""

    @workflow
    async def wait(ctx: WorkflowContext) -> object:
        return await ctx.wait_for_signal("go")

    handle = await run(engine, wait)
    await waiting(handle)
    view = await handle.describe()

    assert [("signal", "go")] == [(wait.kind, wait.name) for wait in view.waiting_for]
    await handle.signal("go", 7)
    assert 7 == await handle.result(timeout=10)


async def test_waiting_emits_no_command(engine):
    """Signals are input only: neither a wait nor a read leaves an event of its own."""

    @workflow
    async def wait(ctx: WorkflowContext) -> None:
        await ctx.wait_for_signal("go")
        ctx.has_signal("go")
        await ctx.drain_signals("go")

    handle = await run(engine, wait)
    await waiting(handle)
    await handle.signal("go")
    await handle.result(timeout=10)

    assert [
        "WORKFLOW_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "SIGNAL_RECEIVED",
        "WORKFLOW_COMPLETED",
    ] == await types(handle)


async def test_the_history_shows_the_turn_around_the_signal(engine):
    """WORKFLOW_TASK_COMPLETED: up to where the turn saw, when it was scheduled and started, by whom, its waits."""

    @workflow
    async def wait(ctx: WorkflowContext) -> None:
        await ctx.wait_for_signal("go")

    running = await engine(workflows=[wait])
    handle = await running.client.start_workflow(wait)
    await waiting(handle)
    started, turn = await handle.history()

    assert (1, running.worker.session) == (turn.body.up_to, turn.body.worker)
    assert started.at <= turn.body.scheduled_at <= turn.body.started_at <= turn.at
    assert ["go"] == [wait.name for wait in turn.body.waiting_for]


async def test_early_signals_are_kept(engine):
    """Signals of all names that arrive before the program asks are there when it does."""

    @workflow
    async def late(ctx: WorkflowContext) -> list[object]:
        await ctx.wait_for_signal("begin")
        return [await ctx.wait_for_signal("b"), await ctx.wait_for_signal("a"), await ctx.wait_for_signal("b")]

    handle = await run(engine, late, ("a", 1), ("b", 2), ("b", 3), ("begin", None))

    assert [2, 1, 3] == await handle.result(timeout=10)


async def test_first_in_first_out_per_name(engine):
    """Names are separate queues, each in order of arrival, whatever the order of reading."""

    @workflow
    async def read(ctx: WorkflowContext) -> list[object]:
        await ctx.wait_for_signal("begin")
        names = ["b", "a", "a", "b", "b", "a"]
        return [(name, await ctx.wait_for_signal(name)) for name in names]

    sent = [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("b", 3), ("a", 3)]
    handle = await run(engine, read, *sent, ("begin", None))

    assert [["b", 1], ["a", 1], ["a", 2], ["b", 2], ["b", 3], ["a", 3]] == await handle.result(timeout=10)


async def test_several_waiters_are_served_in_order(engine):
    """The one that asked first gets the first signal."""

    @workflow
    async def share(ctx: WorkflowContext) -> list[object]:
        return await asyncio.gather(*(ctx.wait_for_signal("item") for _ in range(3)))

    handle = await run(engine, share)
    await waiting(handle)
    for value in "abc":
        await handle.signal("item", value)

    assert ["a", "b", "c"] == await handle.result(timeout=10)


async def test_a_later_wait_does_not_overtake(engine):
    """A signal that is already promised to an earlier waiter is not given to a later call."""

    @workflow
    async def queue_up(ctx: WorkflowContext) -> list[object]:
        first = ctx.wait_for_signal("item")
        await ctx.wait_for_signal("tick")
        second = ctx.wait_for_signal("item")
        return [await first, await second]

    handle = await run(engine, queue_up, ("item", 1), ("tick", None), ("item", 2))

    assert [1, 2] == await handle.result(timeout=10)


async def test_each_signal_is_read_once(engine):
    """However often the program is rebuilt, a signal it has taken does not come again."""

    @task
    async def nothing() -> None: ...

    @workflow
    async def read(ctx: WorkflowContext) -> list[object]:
        seen = []
        for _ in range(4):
            seen.append(await ctx.wait_for_signal("item"))
            await ctx.task(nothing)
        return seen

    first = await engine(workflows=[read], tasks=[nothing])
    handle = await first.client.start_workflow(read)
    await handle.signal("item", 1)
    await handle.signal("item", 2)
    await until(lambda: read_up_to(handle, 2))
    await first.shutdown()
    client = (await engine(workflows=[read], tasks=[nothing])).client
    await client.signal_workflow(handle.id, "item", 3)
    await client.signal_workflow(handle.id, "item", 4)

    assert [1, 2, 3, 4] == await client.workflow(handle.id).result(timeout=10)


async def read_up_to(handle, number):
    return (await types(handle)).count("TASK_COMPLETED") == number and await has_status(handle, WorkflowStatus.WAITING)


# --- looking and draining ---------------------------------------------------------------------------------------------


async def test_has_signal_neither_blocks_nor_takes(engine):
    """True while something of that name is queued, however often asked; False for an unknown name."""

    @workflow
    async def look(ctx: WorkflowContext) -> list[bool]:
        await ctx.wait_for_signal("begin")
        answers = [ctx.has_signal("a"), ctx.has_signal("a"), ctx.has_signal("nothing")]
        await ctx.wait_for_signal("a")
        return [*answers, ctx.has_signal("a")]

    handle = await run(engine, look, ("a", 1), ("begin", None))

    assert [True, True, False, False] == await handle.result(timeout=10)


async def test_pending_signal_count(engine):
    """The number in the queue of that name, going down as they are read."""

    @workflow
    async def count(ctx: WorkflowContext) -> list[int]:
        await ctx.wait_for_signal("begin")
        counts = [ctx.pending_signal_count("a"), ctx.pending_signal_count("nothing")]
        await ctx.wait_for_signal("a")
        return [*counts, ctx.pending_signal_count("a")]

    handle = await run(engine, count, ("a", 1), ("a", 2), ("a", 3), ("begin", None))

    assert [3, 0, 2] == await handle.result(timeout=10)


async def test_drain_takes_all_in_order(engine):
    """Everything queued under the name, then nothing; other names stay."""

    @workflow
    async def drain(ctx: WorkflowContext) -> list[list[object]]:
        await ctx.wait_for_signal("begin")
        return [
            await ctx.drain_signals("a"),
            await ctx.drain_signals("a"),
            await ctx.drain_signals("nothing"),
            await ctx.drain_signals("b"),
        ]

    handle = await run(engine, drain, ("a", 1), ("b", 9), ("a", 2), ("a", 3), ("begin", None))

    assert [[1, 2, 3], [], [], [9]] == await handle.result(timeout=10)


async def test_signals_of_the_start_are_visible_at_once(engine):
    """The signal of a signal-with-start is in the queue before the program's first line."""

    @workflow
    async def look(ctx: WorkflowContext) -> list[object]:
        return [ctx.has_signal("a"), await ctx.drain_signals("a")]

    client = (await engine(workflows=[look])).client
    answer = await client.signal_with_start_workflow("w", look, signal_name="a", signal_value=1)

    assert [True, [1]] == await client.workflow(answer.workflow_execution_id).result(timeout=10)


async def test_a_program_that_checks_its_queue_before_it_ends_loses_nothing(engine):
    """Signals that arrive during the last turn are seen before the end is recorded: the turn is run again with them."""

    @task
    async def work() -> None: ...

    @workflow
    async def careful(ctx: WorkflowContext) -> list[object]:
        seen = []
        await ctx.wait_for_signal("begin")
        while True:
            await ctx.task(work)
            seen += await ctx.drain_signals("item")
            if "last" in seen and not ctx.has_signal("item"):
                return seen

    client = (await engine(workflows=[careful], tasks=[work])).client
    handles = [await client.start_workflow(careful) for _ in range(20)]
    sent = [*range(30), "last"]

    async def send(handle):
        await handle.signal("begin")
        await asyncio.gather(*(handle.signal("item", value) for value in sent))

    await asyncio.gather(*map(send, handles))

    assert [sent] * 20 == await asyncio.gather(*(handle.result(timeout=20) for handle in handles))
    assert [] == await client.dead_letters()


async def test_unread_signals_become_dead_letters(engine):
    """What was accepted but never read before the end can be found, with its number and the reason."""

    @workflow
    async def careless(ctx: WorkflowContext) -> None:
        await ctx.wait_for_signal("go")

    client = (await engine(workflows=[careless])).client
    handle = await client.start_workflow(careless)
    await waiting(handle)
    unread = [(await handle.signal("other", value)).signal_event_sequence for value in range(2)]
    await handle.signal("go")
    await handle.result(timeout=10)
    letters = await client.dead_letters(handle.id)

    assert unread == sorted(letter.seq for letter in letters)
    assert {"closed_before_read"} == {letter.reason for letter in letters}


# --- time-outs --------------------------------------------------------------------------------------------------------


async def test_a_late_signal_is_a_timeout(engine):
    """SignalTimeout, which is a TimeoutError; the late signal is there for the next wait."""

    @workflow
    async def impatient(ctx: WorkflowContext) -> list[object]:
        try:
            await ctx.wait_for_signal("go", timeout=0.01)
        except TimeoutError as late:
            return [type(late).__name__, getattr(late, "code", ""), str(late), await ctx.wait_for_signal("go")]
        return []

    handle = await run(engine, impatient)
    await until(lambda: fired(handle))
    await handle.signal("go", "at last")
    kind, code, message, value = await handle.result(timeout=10)

    assert ("SignalTimeout", "signal_timeout", "at last") == (kind, code, value)
    assert "'go'" in message


async def fired(handle):
    return "TIMER_FIRED" in await types(handle) and await has_status(handle, WorkflowStatus.WAITING)


async def test_a_signal_in_time_cancels_the_timer(engine):
    """Nothing outlives its reason: the time-out's timer is taken back in the same turn."""

    @workflow
    async def patient(ctx: WorkflowContext) -> object:
        value = await ctx.wait_for_signal("go", timeout=timedelta(days=1))
        await ctx.wait_for_signal("end")
        return value

    handle = await run(engine, patient)
    await waiting(handle)
    assert 1 == len(await handle.pending_timers())
    await handle.signal("go", 1)
    await until(lambda: has_no_timers(handle))
    await handle.signal("end")

    assert 1 == await handle.result(timeout=10)
    assert "TIMER_CANCELLED" in await types(handle)


async def has_no_timers(handle):
    return not await handle.pending_timers()


async def test_a_signal_that_is_there_needs_no_timer(engine):
    """A wait that is satisfied at once starts none."""

    @workflow
    async def ready(ctx: WorkflowContext) -> object:
        await ctx.wait_for_signal("begin")
        return await ctx.wait_for_signal("go", timeout=60)

    handle = await run(engine, ready, ("go", 1), ("begin", None))

    assert 1 == await handle.result(timeout=10)
    assert "TIMER_STARTED" not in await types(handle)


async def test_a_time_out_of_nothing(engine):
    """`timeout=0` waits no longer than the present: the queue is empty, so it times out."""

    @workflow
    async def poll(ctx: WorkflowContext) -> str:
        try:
            await ctx.wait_for_signal("go", timeout=0)
        except SignalTimeout:
            return "nothing there"
        return "something"

    handle = await run(engine, poll)

    assert "nothing there" == await handle.result(timeout=10)


async def test_the_earlier_event_wins(engine):
    """A signal that was recorded before the timer fired counts, though both are delivered in one turn."""

    @workflow
    async def race(ctx: WorkflowContext) -> object:
        try:
            return await ctx.wait_for_signal("go", timeout=3600)
        except SignalTimeout:
            return "timed out"

    now = [1_800_000_000_000_000]
    clock = lambda: now[0]  # noqa: E731 - as long as its name
    first = await engine(workflows=[race], clock=clock, config=WATCHFUL)
    handle = await first.client.start_workflow(race)
    await waiting(handle)
    await first.shutdown()
    outside = await engine(clock=clock, config=WATCHFUL)
    await outside.client.signal_workflow(handle.id, "go", "in time")
    now[0] += 3_600_000_000
    await until(lambda: fired_in(outside, handle.id))
    client = (await engine(workflows=[race], clock=clock, config=WATCHFUL)).client

    assert "in time" == await client.workflow(handle.id).result(timeout=10)


async def fired_in(engine, execution_id):
    return any(event.type == "TIMER_FIRED" for event in await engine.client.history(execution_id))


# --- types ------------------------------------------------------------------------------------------------------------

TYPED = [
    (Message, Message("hi", end=True)),
    (Point, Point(3)),
    (Order, Order(number=7, placed_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), lines=["a", "b"])),
    (list[Message], [Message("a"), Message("b")]),
    (dict[str, Point], {"a": Point(1, 2.0)}),
    (UUID, UUID(int=7)),
    (datetime, datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)),
    (tuple[int, str], (1, "a")),
    (Message | None, None),
    (bytes, b"\x00\xff"),
]


@pytest.mark.parametrize(("hint", "value"), TYPED)
@pytest.mark.parametrize("how", ["wait", "drain"])
async def test_values_come_in_the_asked_type(engine, hint, value, how):
    """Dataclasses, msgspec structs, pydantic models and what they consist of arrive as what was sent."""
    received = []  # one entry per run of the code: a replay is another one

    @workflow
    async def receive(ctx: WorkflowContext) -> None:
        await ctx.wait_for_signal("begin")
        if how == "wait":
            received.append(await ctx.wait_for_signal("value", hint))
        else:
            received.append((await ctx.drain_signals("value", hint))[0])

    handle = await run(engine, receive, ("value", value), ("begin", None))
    await handle.result(timeout=10)

    assert received
    assert all(value == each and type(value) is type(each) for each in received)


async def test_without_a_type_values_are_plain(engine):
    """A dataclass arrives as the dict it was stored as."""

    @workflow
    async def receive(ctx: WorkflowContext) -> object:
        return await ctx.wait_for_signal("value")

    handle = await run(engine, receive, ("value", Message("hi")))

    assert {"text": "hi", "end": False} == await handle.result(timeout=10)


@pytest.mark.parametrize("how", ["wait", "drain"])
async def test_a_value_of_the_wrong_type_is_an_error_at_the_await(engine, how):
    """Catchable; it names the signal, and later signals are still there."""

    @workflow
    async def receive(ctx: WorkflowContext) -> list[str]:
        await ctx.wait_for_signal("begin")
        try:
            if how == "wait":
                await ctx.wait_for_signal("value", Message)
            else:
                await ctx.drain_signals("value", Message)
        except PayloadNotDecodable as error:
            good = await ctx.wait_for_signal("later", Message)
            return [error.code, error.field, good.text]
        return []

    handle = await run(engine, receive, ("value", {"text": 5}), ("begin", None), ("later", Message("good")))

    assert ["payload_not_decodable", "value.text", "good"] == await handle.result(timeout=10)
