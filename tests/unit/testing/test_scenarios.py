"""What only time brings, on virtual time: one story each, with the instants at which things happen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import WorkflowContext, WorkflowStatus, query, signal, update, workflow
from holdfast import errors as err
from holdfast.testing import WorkflowEnvironment

pytestmark = pytest.mark.usefixtures("on_the_tests_store")

T0 = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@workflow
async def nap(ctx: WorkflowContext, days: int) -> int:
    await ctx.sleep(days * DAY)
    return days


async def test_children_end_when_their_own_time_is_over():
    """The parent goes on at the instant at which the last child ends."""

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        naps = await ctx.all([ctx.child(nap, 2), ctx.child(nap, 5)])
        return f"{naps} on day {(ctx.now() - T0).days}"

    async with WorkflowEnvironment(workflows=[parent, nap]) as env:
        assert "[2, 5] on day 5" == await env.run(parent)
        assert 3 == len(await env.replay_all())


async def test_run_after_run_is_one_story():
    """A workflow that begins afresh every hour is followed to its end."""

    @workflow
    async def hourly(ctx: WorkflowContext, hour: int) -> int:
        await ctx.sleep(3600)
        if hour < 24:
            ctx.continue_as_new(hour + 1)
        return hour

    async with WorkflowEnvironment(workflows=[hourly]) as env:
        assert 24 == await env.run(hourly, 1)
        assert T0 + DAY == env.now()


async def test_execution_is_over_at_its_limit():
    """Not before, and exactly then."""
    async with WorkflowEnvironment(workflows=[nap]) as env:
        handle = await env.client.start_workflow(nap, 9, execution_timeout=3 * DAY)
        await env.advance(days=2, hours=23, minutes=59)
        assert WorkflowStatus.WAITING == await handle.status()

        with pytest.raises(err.WorkflowTimedOut):
            await env.result(handle)
        assert T0 + 3 * DAY == env.now()


async def test_delayed_start_starts_at_its_instant():
    """Nothing happens before."""
    async with WorkflowEnvironment(workflows=[nap]) as env:
        handle = await env.client.start_workflow(nap, 0, start_at=T0 + 3 * DAY)
        await env.advance(days=2)
        assert 1 == len(await handle.history())

        assert 0 == await env.result(handle)
        assert T0 + 3 * DAY == env.now()


async def test_queries_and_updates_need_no_time():
    """They are answered where the clock stands."""

    @workflow
    class Cart:
        def __init__(self) -> None:
            self.items: list[str] = []
            self.paid = False

        @signal
        def add(self, item: str) -> None:
            self.items.append(item)

        @query
        def count(self) -> int:
            return len(self.items)

        @update
        async def pay(self, amount: int) -> int:
            self.paid = True
            return amount - len(self.items)

        async def run(self, ctx: WorkflowContext) -> list[str]:
            await ctx.wait_until(lambda: self.paid, timeout=DAY)
            return self.items

    async with WorkflowEnvironment(workflows=[Cart]) as env:
        handle = await env.client.start_workflow(Cart)
        await handle.signal("add", "tea")

        assert 1 == await handle.query("count")
        assert 4 == await handle.update("pay", 5)
        assert ["tea"] == await env.result(handle)
        assert T0 == env.now()
