"""`ctx.wait_until`."""

import asyncio

import pytest

from holdfast import WorkflowContext, signal, task, workflow
from holdfast.errors import BlockedForever, ConditionTimeout, InvalidRequest
from holdfast.frontends.python import conditions
from holdfast.frontends.python.loop import BusyLoop
from holdfast.model import commands as c
from holdfast.model.values import Wait
from tests.conftest import until
from tests.replay.driving import Driven, completed, fired, result_of, signalled
from tests.replay.recording import Commits, check_cuts, check_whole


def test_a_condition_that_holds_is_over_at_once():
    """Nothing is recorded for it."""

    @workflow
    async def fine(ctx: WorkflowContext) -> str:
        await ctx.wait_until(lambda: True, timeout=5)
        return "went on"

    driven = Driven(fine)
    assert "went on" == result_of(driven.start())
    driven.check()


def test_conditions_are_looked_at_in_order_and_each_finds_what_it_waited_for():
    """One item wakes one of two waiters: the first looks, takes it, and only then the second looks."""

    @workflow
    class Store:
        def __init__(self) -> None:
            self.items: list[str] = []
            self.taken: list[str] = []

        async def run(self, ctx: WorkflowContext) -> list[str]:
            await asyncio.gather(self.take(ctx, "first"), self.take(ctx, "second"))
            return self.taken

        async def take(self, ctx: WorkflowContext, who: str) -> None:
            await ctx.wait_until(lambda: self.items)
            self.taken.append(f"{who} {self.items.pop(0)}")

        @signal
        def put(self, item: str) -> None:
            self.items.append(item)

    driven = Driven(Store)
    driven.start()
    driven.turn(signalled("put", '"a"'))
    assert ("condition",) == tuple(wait.kind for wait in driven.machine.waits())
    assert ["first a", "second b"] == result_of(driven.turn(signalled("put", '"b"')))
    driven.check()


def test_one_condition_can_make_another_true():
    """Within the same event."""

    @workflow
    async def chain(ctx: WorkflowContext) -> int:
        reached = 0

        async def step(number: int) -> None:
            nonlocal reached
            await ctx.wait_until(lambda: reached == number)
            reached += 1

        steps = [asyncio.ensure_future(step(number)) for number in (3, 2, 1)]
        await ctx.task("go")
        reached = 1
        await asyncio.gather(*steps)
        return reached

    driven = Driven(chain)
    driven.start()
    assert 4 == result_of(driven.turn(completed()))
    driven.check()


def test_a_condition_is_shown_among_the_waits():
    """With its name and line; its time-out is a timer."""

    @workflow
    async def shown(ctx: WorkflowContext) -> None:
        def paid() -> bool:
            return False

        await ctx.wait_until(paid, timeout=60)

    driven = Driven(shown)
    (timer,) = driven.start().commands
    assert isinstance(timer, c.StartTimer)
    of_timer, of_condition = driven.machine.waits()
    assert ("timer", "timeout of paid") == (of_timer.kind, of_timer.name)
    assert Wait("condition", "paid", 0, of_timer.line) == of_condition
    assert "test_context_conditions.py" in of_condition.line
    driven.check()


def test_a_condition_that_is_late_times_out():
    """ConditionTimeout, which is a TimeoutError; the condition is looked at no more."""
    looked: list[int] = []

    @workflow
    async def late(ctx: WorkflowContext) -> str:
        try:
            await ctx.wait_until(lambda: looked.append(1), timeout=2)
        except TimeoutError as error:
            await ctx.wait_for_signal("end")
            return f"{type(error).__name__}: {error}"
        return "in time"

    driven = Driven(late)
    driven.start()
    driven.turn(fired())
    seen = len(looked)
    assert result_of(driven.turn(signalled("end"))).startswith(ConditionTimeout.__name__)
    assert seen == len(looked)
    driven.check()


def test_a_condition_that_comes_true_takes_its_timer_back():
    """No timer outlives its reason; nor does it when the wait is cancelled."""

    @workflow
    async def timely(ctx: WorkflowContext) -> str:
        seen: list[str] = []

        async def listen() -> None:
            seen.append(await ctx.wait_for_signal("go"))

        listener = asyncio.ensure_future(listen())
        await ctx.wait_until(lambda: seen, timeout=60)
        other = ctx.wait_until(lambda: len(seen) > 5, timeout=60)
        await listener
        other.cancel()
        return seen[0]

    driven = Driven(timely)
    driven.start()
    turn = driven.turn(signalled("go", '"!"'))
    assert [c.CancelTimer, c.StartTimer, c.CancelTimer] == [type(command) for command in turn.commands[:-1]]
    assert "!" == result_of(turn)
    driven.check()


def test_an_error_of_the_predicate_is_raised_at_the_wait():
    """At once, or later when it happens."""

    @workflow
    async def broken(ctx: WorkflowContext) -> list[str]:
        data: dict[str, int] = {"a": 1}
        seen = []
        try:
            await ctx.wait_until(lambda: data["missing"])
        except KeyError as error:
            seen.append(f"now {error}")
        waiting = ctx.wait_until(lambda: data["a"] > 1)
        await ctx.task("t")
        del data["a"]
        try:
            await waiting
        except KeyError as error:
            seen.append(f"later {error}")
        return seen

    driven = Driven(broken)
    driven.start()
    assert ["now 'missing'", "later 'a'"] == result_of(driven.turn(completed()))
    driven.check()


@pytest.mark.parametrize("what", ["coroutine function", "not callable", "asks", "awaitable"])
def test_a_predicate_that_does_more_than_look_is_refused(what):
    """It must answer at once, and ask for nothing."""

    @workflow
    async def wrong(ctx: WorkflowContext) -> str:
        async def later() -> bool:
            return True

        def gives_later() -> object:
            return later()

        predicates = {
            "coroutine function": later,
            "not callable": True,
            "asks": lambda: ctx.sleep(1),
            "awaitable": gives_later,
        }
        try:
            await ctx.wait_until(predicates[what])  # type: ignore[arg-type]
        except InvalidRequest as error:
            return error.field
        return "taken"

    driven = Driven(wrong)
    assert "predicate" == result_of(driven.start())
    driven.check()


def test_conditions_alone_are_blocked_for_ever():
    """Nothing can make one true; a task, a timer or a handler could."""

    @workflow
    async def alone(ctx: WorkflowContext) -> None:
        await ctx.wait_until(lambda: False)

    with pytest.raises(BlockedForever, match=r"test_context_conditions\.py"):
        Driven(alone).start()


def test_conditions_that_never_come_to_rest(monkeypatch):
    """Two that make each other true for ever are an error that says where."""
    monkeypatch.setattr(conditions, "MAX_SETTLED", 50)

    @workflow
    async def ping_pong(ctx: WorkflowContext) -> None:
        side = "nobody"

        async def play(me: str, other: str) -> None:
            def my_turn() -> bool:
                return side == me

            nonlocal side
            while True:
                await ctx.wait_until(my_turn)
                side = other

        players = [asyncio.ensure_future(play("a", "b")), asyncio.ensure_future(play("b", "a"))]
        await ctx.task("t")
        side = "a"
        await asyncio.wait(players)

    driven = Driven(ping_pong)
    driven.start()
    with pytest.raises(BusyLoop, match="they make each other true for ever"):
        driven.turn(completed())


@task
async def double(value: int) -> int:
    return 2 * value


@workflow
class Adder:
    def __init__(self) -> None:
        self.sum = 0

    async def run(self, ctx: WorkflowContext) -> list[int]:
        seen = []
        for limit in (3, 6, 9):
            await ctx.wait_until(lambda limit=limit: self.sum >= limit, timeout=60)  # type: ignore[misc]
            seen.append(await ctx.task(double, self.sum))
        return seen

    @signal
    def add(self, value: int) -> None:
        self.sum += value


async def test_conditions_with_an_engine(engine):
    """Recorded waits say condition; wherever the history is cut, the next move is the recorded one."""
    running = await engine(workflows=[Adder], tasks=[double])
    commits = Commits(running)
    handle = await running.client.start_workflow(Adder)
    await until(lambda: _waits_for_condition(handle))
    for value in (1, 2, 3, 4):
        await handle.signal("add", value)
    results = await handle.result(timeout=10)
    assert 20 == results[-1]
    history = await handle.history()
    check_whole(Adder, history, handle.id)
    assert check_cuts(Adder, history, handle.id, commits.cuts(handle.id, len(history)))


async def _waits_for_condition(handle):
    return "condition" in {wait.kind for wait in (await handle.describe()).waiting_for}
