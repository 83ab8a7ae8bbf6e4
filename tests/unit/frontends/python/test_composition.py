"""`ctx.all`, `any`, `race`, `n_of`, `settled`."""

import asyncio

import pytest

from holdfast import RetryPolicy, WorkflowContext, task, workflow
from holdfast.errors import AllFailed, InvalidRequest, TaskFailed, TooFewSucceeded
from tests.conftest import until

ONCE = RetryPolicy(max_attempts=1)


@task(retry=ONCE)
async def number(value: int) -> int:
    return value


@task(retry=ONCE)
async def fails(value: int) -> int:
    raise ValueError(f"no {value}")


@task(retry=ONCE)
async def never() -> None:
    await asyncio.Event().wait()


async def result_of(engine, fn, *arguments):
    running = await engine(workflows=[fn], tasks=[number, fails, never])
    handle = await running.client.start_workflow(fn, *arguments)
    return await handle.result(timeout=20), handle


async def waits_for(handle, name):
    return name in {wait.name for wait in (await handle.describe()).waiting_for}


async def open_rows(handle):
    return len(await handle.pending_tasks()) + len(await handle.pending_timers())


async def test_all_gives_results_in_list_order(engine):
    """Whatever order the items end in."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[int]:
        return await ctx.all(ctx.task(number, 1), ctx.run(number, 2), ctx.task(number, 3))

    assert [1, 2, 3] == (await result_of(engine, compose))[0]


async def test_all_takes_a_list_too(engine):
    """`all(a, b)` and `all([a, b])` are the same; an empty list gives an empty one."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[list[int]]:
        return [await ctx.all([ctx.task(number, n) for n in range(3)]), await ctx.all([]), await ctx.all()]

    assert [[0, 1, 2], [], []] == (await result_of(engine, compose))[0]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_all_fails_with_the_first_failure(engine, place):
    """Wherever in the list it stands; what is still open is cancelled in the same turn."""

    @workflow
    async def compose(ctx: WorkflowContext, place: int) -> str:
        items: list[object] = [ctx.task(never), ctx.sleep(3600)]
        items.insert(place, ctx.task(fails, place))
        try:
            await ctx.all(items)
        except TaskFailed as error:
            await ctx.wait_for_signal("look")
            return error.error_type
        return "nothing failed"

    running = await engine(workflows=[compose], tasks=[number, fails, never])
    handle = await running.client.start_workflow(compose, place)
    await until(lambda: waits_for(handle, "look"))

    assert 0 == await open_rows(handle)
    await handle.signal("look")
    assert "ValueError" == await handle.result(timeout=10)


async def test_a_thousand_items(engine):
    """All of them, in order."""

    @workflow
    async def compose(ctx: WorkflowContext) -> int:
        return sum(await ctx.all([ctx.task(number, n) for n in range(1_000)]))

    assert sum(range(1_000)) == (await result_of(engine, compose))[0]


async def test_any_gives_the_first_success(engine):
    """Failures before it are passed over."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[object]:
        winner = await ctx.any(ctx.task(fails, 1), ctx.task(never), ctx.task(number, 7))
        return [winner.index, winner.item_id, winner.status, winner.result]

    assert [2, "task:3", "completed", 7] == (await result_of(engine, compose))[0]


async def test_any_with_every_item_failed(engine):
    """The error carries all of them, in list order."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[object]:
        try:
            await ctx.any(ctx.task(fails, 1), ctx.task(fails, 2))
        except AllFailed as error:
            return [(found.index, type(found.error).__name__) for found in error.outcomes]
        return []

    assert [[0, "TaskFailed"], [1, "TaskFailed"]] == (await result_of(engine, compose))[0]


@pytest.mark.parametrize("verb", ["any", "race"])
async def test_any_and_race_of_nothing(engine, verb):
    """There is nothing that could win."""

    @workflow
    async def compose(ctx: WorkflowContext, verb: str) -> str:
        try:
            await getattr(ctx, verb)([])
        except InvalidRequest as error:
            return error.field
        return ""

    assert "items" == (await result_of(engine, compose, verb))[0]


async def test_race_is_won_by_a_failure_too(engine):
    """The first to end, however it ends; `item_id` is the id of what was started."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[object]:
        limit = ctx.sleep(3600)
        work = ctx.task(fails, 1)
        winner = await ctx.race(limit, work)
        return [winner.item_id == work.id, winner.status, type(winner.error).__name__, limit.cancelled()]

    assert [True, "failed", "TaskFailed", True] == (await result_of(engine, compose))[0]


async def test_race_is_decided_by_history_order(engine):
    """Two signals before the program looks: the earlier one wins, though it stands last in the list."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[object]:
        await ctx.wait_for_signal("begin")
        winner = await ctx.race(ctx.wait_for_signal("late"), ctx.wait_for_signal("early"))
        return [winner.index, winner.item_id, winner.result]

    running = await engine(workflows=[compose])
    handle = await running.client.start_workflow(compose)
    await until(lambda: waits_for(handle, "begin"))
    await handle.signal("begin")
    await until(lambda: waits_for(handle, "early"))
    await asyncio.gather(handle.signal("early", 1), handle.signal("late", 2))

    assert [1, "signal:early", 1] == await handle.result(timeout=10)


async def test_n_of_gives_the_first_successes(engine):
    """In the order in which they came; the rest is cancelled."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[int]:
        found = await ctx.n_of(2, ctx.task(never), ctx.task(number, 1), ctx.task(fails, 0), ctx.task(number, 2))
        return sorted(outcome.result for outcome in found)

    assert [1, 2] == (await result_of(engine, compose))[0]


async def test_n_of_that_can_not_be_reached(engine):
    """Over as soon as that is certain, although an item is still open."""

    @workflow
    async def compose(ctx: WorkflowContext) -> int:
        try:
            await ctx.n_of(2, ctx.task(never), ctx.task(fails, 1), ctx.task(fails, 2))
        except TooFewSucceeded as error:
            return len(error.outcomes)
        return -1

    assert 2 == (await result_of(engine, compose))[0]


@pytest.mark.parametrize("n", [0, -1, True, 4, "2"])
async def test_n_of_with_a_bad_number(engine, n):
    """Not a number, none, or more than there are."""

    @workflow
    async def compose(ctx: WorkflowContext) -> str:
        try:
            await ctx.n_of(n, ctx.sleep(60), ctx.sleep(60))
        except InvalidRequest as error:
            return error.field
        return ""

    assert "n" == (await result_of(engine, compose))[0]


async def test_settled_never_raises(engine):
    """How each ended, in list order."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[object]:
        dropped = ctx.sleep(3600)
        dropped.cancel()
        found = await ctx.settled(ctx.task(fails, 1), dropped, ctx.task(number, 3), ctx.sleep(0))
        return [(outcome.index, outcome.status) for outcome in found]

    expected = [[0, "failed"], [1, "cancelled"], [2, "completed"], [3, "completed"]]
    assert expected == (await result_of(engine, compose))[0]


async def test_nested_three_deep(engine):
    """A composition is an item like any other; losers are cancelled all the way down."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[object]:
        inner = ctx.all(ctx.task(number, 1), ctx.any(ctx.task(fails, 0), ctx.task(number, 2)))
        loser = ctx.all(ctx.task(never), ctx.sleep(3600))
        winner = await ctx.race(loser, inner)
        return [winner.index, winner.result[0], winner.result[1].result, loser.cancelled()]

    assert [1, 1, 2, True] == (await result_of(engine, compose))[0]


async def test_coroutines_and_tasks_as_items(engine):
    """What asyncio can await, a composition can, too."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[object]:
        async def twice(value: int) -> int:
            return 2 * await ctx.task(number, value)

        return await ctx.all(twice(1), asyncio.create_task(twice(2)), asyncio.gather(twice(3), twice(4)))

    assert [2, 4, [6, 8]] == (await result_of(engine, compose))[0]


async def test_the_same_item_twice(engine):
    """Its outcome counts for both places."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[int]:
        item = ctx.task(number, 5)
        return await ctx.all(item, item)

    assert [5, 5] == (await result_of(engine, compose))[0]


@pytest.mark.parametrize("given", [7, [7], None])
async def test_what_can_not_be_awaited(engine, given):
    """Named by its place."""

    @workflow
    async def compose(ctx: WorkflowContext) -> str:
        try:
            await ctx.all(given)
        except InvalidRequest as error:
            return error.field
        return ""

    assert "items" == (await result_of(engine, compose))[0]


async def test_cancelling_a_composition_cancels_its_items(engine):
    """As asyncio.gather does."""

    @workflow
    async def compose(ctx: WorkflowContext) -> list[bool]:
        items = [ctx.task(never), ctx.sleep(3600)]
        both = ctx.all(items)
        both.cancel()
        return [item.cancelled() for item in items]

    result, handle = await result_of(engine, compose)
    assert [True, True] == result
    assert 0 == await open_rows(handle)
