"""A start that is due later: nothing runs before, and nothing that comes before is lost."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast import WorkflowContext, WorkflowStatus, workflow
from holdfast.errors import InvalidRequest, WorkflowTimedOut
from tests.conftest import WATCHFUL, until
from tests.unit.engine.records import check_all, dump, reached, types

NOW = 1_800_000_000_000_000
HOUR = 3_600_000_000
SOON = datetime.fromtimestamp(NOW / 10**6, UTC) + timedelta(hours=1)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@workflow
async def tell_time(ctx: WorkflowContext) -> list:
    return [ctx.pending_signal_count("early"), await ctx.wait_for_signal("early", str)]


@workflow
async def at_once(ctx: WorkflowContext) -> str:
    return "done"


async def test_it_starts_when_its_time_has_come(engine, clock):
    """Until then it is pending and says when it will begin."""
    running = await engine(workflows=[at_once], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(at_once, start_at=SOON)

    view = await handle.describe()
    assert (WorkflowStatus.PENDING, SOON) == (view.status, view.start_at)
    clock.now += HOUR - 1
    await running.recover()
    assert ["WORKFLOW_STARTED"] == await types(handle)
    clock.now += 1
    assert "done" == await handle.result(timeout=20)
    assert (await handle.describe()).start_at is None
    await check_all(running)


async def test_any_time_zone_will_do(engine, clock):
    """The instant counts."""
    running = await engine(workflows=[at_once], clock=clock, config=WATCHFUL)
    there = SOON.astimezone(timezone(timedelta(hours=-7)))
    handle = await running.client.start_workflow(at_once, start_at=there)

    assert SOON == (await handle.describe()).start_at


async def test_a_time_that_is_over_means_now(engine, clock):
    """It begins at once."""
    running = await engine(workflows=[at_once], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(at_once, start_at=SOON - timedelta(days=1))

    assert "done" == await handle.result(timeout=20)
    assert (await handle.describe()).start_at is None


async def test_real_time_starts_it(engine):
    """No clock is moved."""
    client = (await engine(workflows=[at_once])).client
    handle = await client.start_workflow(at_once, start_at=datetime.now(UTC) + timedelta(seconds=0.05))

    assert "done" == await handle.result(timeout=20)


async def test_signals_that_come_before_are_there_at_the_start(engine, clock):
    """They wake nobody, and are seen by the first turn. Signal-with-start counts its own."""
    running = await engine(workflows=[tell_time], clock=clock, config=WATCHFUL)
    started = await running.client.signal_with_start_workflow(
        "w", tell_time, signal_name="early", signal_value="a", start_at=SOON
    )
    handle = running.client.workflow(started.workflow_execution_id)
    await handle.signal("early", "b")
    assert WorkflowStatus.PENDING == await handle.status()
    clock.now += HOUR

    assert [2, "a"] == await handle.result(timeout=20)


async def test_cancel_before_the_start_ends_it_soon(engine, clock):
    """Nobody waits for the start."""
    running = await engine(workflows=[tell_time], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(tell_time, start_at=SOON)
    assert await handle.cancel("not needed")

    await reached(handle, WorkflowStatus.CANCELLED)
    await check_all(running)


async def test_terminate_before_the_start(engine, clock):
    """It ends at once; its time comes and nothing happens."""
    running = await engine(workflows=[tell_time], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(tell_time, start_at=SOON)
    assert await handle.terminate()
    clock.now += 2 * HOUR
    await running.recover()

    assert ["WORKFLOW_STARTED", "WORKFLOW_TERMINATED"] == await types(handle)
    await check_all(running)


async def test_a_retry_before_the_start_waits_for_it(engine, clock):
    """One that was terminated by mistake begins when it was to begin, with as much time."""
    running = await engine(workflows=[at_once], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(at_once, start_at=SOON, execution_timeout=60)
    await handle.terminate()
    again = await handle.retry()

    assert (WorkflowStatus.PENDING, SOON) == (await again.status(), (await again.describe()).start_at)
    (deadline,) = await running.storage.timers("default", again.id)
    assert NOW + HOUR + 60 * 10**6 == deadline.fire_at
    clock.now += HOUR
    assert "done" == await again.result(timeout=20)
    await check_all(running)


async def test_the_execution_timeout_counts_from_the_start(engine, clock):
    """An hour after an hour."""
    running = await engine(workflows=[tell_time], clock=clock, config=WATCHFUL)
    handle = await running.client.start_workflow(tell_time, start_at=SOON, execution_timeout=timedelta(hours=1))
    clock.now += HOUR
    await reached(handle, WorkflowStatus.WAITING)
    clock.now += HOUR

    with pytest.raises(WorkflowTimedOut):
        await handle.result(timeout=20)


async def test_it_is_not_forgotten_by_a_restart(engine, clock):
    """Another process begins it, also if its time came while nobody ran."""
    first = await engine(workflows=[at_once], clock=clock, config=WATCHFUL)
    handle = await first.client.start_workflow(at_once, start_at=SOON)
    await first.shutdown()
    clock.now += 2 * HOUR
    second = await engine(workflows=[at_once], clock=clock, config=WATCHFUL)

    assert "done" == await second.client.workflow(handle.id).result(timeout=20)


async def test_a_workflow_id_is_in_use_before_the_start(engine, clock):
    """Another start finds the one that waits."""
    running = await engine(workflows=[at_once], clock=clock, config=WATCHFUL)
    first = await running.client.start_workflow(at_once, workflow_id="w", start_at=SOON)
    second = await running.client.start_workflow(at_once, workflow_id="w")

    assert (first.id, False) == (second.id, second.created)


@pytest.mark.parametrize("start_at", [datetime(2030, 1, 1), 1_900_000_000, "2030-01-01T00:00:00Z"])  # noqa: DTZ001
async def test_what_is_no_instant_is_refused(engine, database_url, start_at):
    """Without a time zone, or no datetime at all: typed, naming the field; nothing is started."""
    client = (await engine(workflows=[at_once])).client
    before = dump(database_url)

    with pytest.raises(InvalidRequest) as refused:
        await client.start_workflow(at_once, start_at=start_at)
    assert "start_at" == refused.value.field
    with pytest.raises(InvalidRequest):
        await client.signal_with_start_workflow("w", at_once, signal_name="s", start_at=start_at)
    assert before == dump(database_url)


async def test_many_begin_together(engine, clock):
    """A hundred at the same instant: all begin."""
    running = await engine(workflows=[at_once], clock=clock, config=WATCHFUL)
    handles = [await running.client.start_workflow(at_once, start_at=SOON) for _ in range(100)]
    clock.now += HOUR
    await running.recover()

    async def all_done():
        return {WorkflowStatus.COMPLETED: 100} == await running.client.count_workflows()

    await until(all_done)
    assert 100 == len(handles)
