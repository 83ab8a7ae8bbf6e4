"""Broadcasts: everybody who waits for a name when it is thrown, each exactly once, in the order of throwing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import BroadcastResult, Engine, WorkflowContext, WorkflowHandle, WorkflowStatus, errors, task, workflow
from holdfast.model import events as e
from holdfast.model.messages import SubscriptionKind
from tests.conftest import OpenEngine, until
from tests.database_access import change
from tests.replay.recording import check_whole
from verification import invariants


@workflow
async def waits(ctx: WorkflowContext, name: str) -> str:
    (got,) = await ctx.all(ctx.wait_for_broadcast(name))
    return f"got {got}"


@workflow
async def waits_twice_at_once(ctx: WorkflowContext, name: str) -> int:
    both = await asyncio.gather(ctx.wait_for_broadcast(name), ctx.wait_for_broadcast(name))
    return len(both)


@workflow
async def waits_one_after_another(ctx: WorkflowContext, count: int) -> int:
    for _ in range(count):
        await ctx.wait_for_broadcast("next")
    return count


@workflow
async def throws(ctx: WorkflowContext, name: str) -> str:
    ctx.broadcast(name)
    return await ctx.run(_after)


def _after() -> str:
    return "went on"


@workflow
async def throws_to_itself(ctx: WorkflowContext) -> str:
    waiting = ctx.wait_for_broadcast("self")
    ctx.broadcast("self")
    await waiting
    return "heard itself"


@workflow
async def throws_then_waits(ctx: WorkflowContext) -> str:
    """In one turn: what the turn waits for is there when its throw takes effect, wherever it stands."""
    ctx.broadcast("self")
    await ctx.wait_for_broadcast("self", timeout=30)
    return "heard itself"


@workflow
async def breaks_when_woken(ctx: WorkflowContext) -> None:
    await ctx.wait_for_broadcast("go")
    raise ValueError("not now")


@task
async def forever() -> None:
    await asyncio.Event().wait()


@workflow
async def is_interrupted(ctx: WorkflowContext) -> str:
    """What a boundary event does: the host is left as soon as the broadcast comes."""
    won = await ctx.race(ctx.task(forever), ctx.wait_for_broadcast("stop"), ctx.sleep(3600))
    return ["task", "broadcast", "timer"][won.index]


@workflow
async def has_a_host_that_ends(ctx: WorkflowContext) -> str:
    won = await ctx.race(ctx.run(_after), ctx.wait_for_broadcast("stop"))
    await ctx.wait_for_signal("end")
    return str(won.result)


@workflow
async def is_busy(ctx: WorkflowContext, gate: str) -> str:
    """Held by its worker all the time: a step runs while the broadcast comes."""
    work = ctx.run(_until_there, gate)
    await ctx.wait_for_broadcast("go")
    await ctx.run(_touch, gate)
    return await work


async def _until_there(gate: str) -> str:
    while not Path(gate).exists():
        await asyncio.sleep(0.002)
    return "worked"


def _touch(gate: str) -> None:
    Path(gate).touch()


async def waiting(*handles: WorkflowHandle) -> None:
    """Until each of them has gone to rest."""
    for handle in handles:
        await until(lambda: _is_waiting(handle))  # noqa: B023 - awaited here


async def _is_waiting(handle: WorkflowHandle) -> bool:
    return await handle.status() is WorkflowStatus.WAITING


async def start(engine: Engine, kind: Callable[..., Any], *inputs: Any) -> list[WorkflowHandle]:
    handles = [await engine.client.start_workflow(kind, given) for given in inputs]
    await waiting(*handles)
    return handles


async def received(handle: WorkflowHandle) -> list[int]:
    """The broadcasts it has got."""
    bodies = [event.body for event in await handle.history()]
    return [body.broadcast_id for body in bodies if isinstance(body, e.BroadcastReceived)]


async def check_all(engine: Engine) -> None:
    assert [] == [str(wrong) for wrong in invariants.check(await invariants.read(engine.storage))]


# --- who gets it --------------------------------------------------------------------------------------------------


async def test_one_throw_wakes_every_waiting_workflow(engine: OpenEngine):
    """001-01, 001-08, 001-10, 001-22, 001-43, 001-46: all subscribers of a name get it, and are counted."""
    opened = await engine(workflows=[waits])
    handles = await start(opened, waits, *["go"] * 5)

    thrown = await opened.client.broadcast("go")

    assert isinstance(thrown, BroadcastResult)
    assert (5, 5) == (thrown, thrown.delivered)
    assert ["got None"] * 5 == [await handle.result(timeout=10) for handle in handles]
    assert [[thrown.broadcast_id]] * 5 == [await received(handle) for handle in handles]
    await check_all(opened)
    check_whole(waits, await handles[0].history(), handles[0].id)


async def test_a_name_is_for_itself(engine: OpenEngine):
    """001-07, 001-28: a broadcast is known by its name alone; who waits for another name sleeps on."""
    opened = await engine(workflows=[waits])
    one, other, cased = await start(opened, waits, "one", "other", "One")

    assert 1 == await opened.client.broadcast("one")

    await one.result(timeout=10)
    assert [WorkflowStatus.WAITING] * 2 == [await handle.status() for handle in (other, cased)]
    assert [[], []] == [await received(handle) for handle in (other, cased)]


async def test_a_broadcast_of_another_org_is_none_of_ours(engine: OpenEngine):
    """Everything is scoped by org: the same name elsewhere is another name."""
    ours = await engine(workflows=[waits], org="ours")
    theirs = await engine(org="theirs")
    (handle,) = await start(ours, waits, "go")

    assert 0 == await theirs.client.broadcast("go")
    assert await _is_waiting(handle)
    assert 1 == await ours.client.broadcast("go")


async def test_nobody_listens(engine: OpenEngine):
    """001-42, H10: zero, and no error; H11: nothing is kept for those who come later."""
    opened = await engine(workflows=[waits])

    assert 0 == await opened.client.broadcast("go")

    (handle,) = await start(opened, waits, "go")
    assert [] == await received(handle)
    assert 1 == await opened.client.broadcast("go")


async def test_a_wait_is_known_by_execution_and_number(engine: OpenEngine):
    """001-09, 001-17, 001-18, H8: two waits of one execution for one name are two subscriptions, and both are woken."""
    opened = await engine(workflows=[waits_twice_at_once])
    (handle,) = await start(opened, waits_twice_at_once, "go")
    rows = await opened.client.messages.waits("default", handle.id)
    assert [(handle.id, 1), (handle.id, 2)] == [(row.execution_id, row.wait_no) for row in rows]
    assert {(SubscriptionKind.BROADCAST, "go")} == {(row.kind, row.key) for row in rows}

    assert 2 == await opened.client.broadcast("go")

    assert 2 == await handle.result(timeout=10)
    await check_all(opened)


async def test_a_broadcast_carries_nothing(engine: OpenEngine):
    """001-11, 001-12: no payload, no correlation, no filter; the wait gives None."""
    opened = await engine(workflows=[waits])
    (handle,) = await start(opened, waits, "go")
    (row,) = await opened.client.messages.waits("default", handle.id)
    assert (None, None, None, False) == (row.eq_path, row.eq_value, row.where, row.consume)

    await opened.client.broadcast("go")

    assert "got None" == await handle.result(timeout=10)
    (body,) = [event.body for event in await handle.history() if isinstance(event.body, e.BroadcastReceived)]
    assert ("wait_no", "name", "broadcast_id") == body.__struct_fields__


async def test_one_wait_gets_one_broadcast(engine: OpenEngine):
    """001-24: the subscription is gone with the delivery; the next broadcast finds the next wait."""
    opened = await engine(workflows=[waits_one_after_another])
    (handle,) = await start(opened, waits_one_after_another, 3)
    thrown = []
    for count in (1, 2, 3):
        thrown.append(await opened.client.broadcast("next"))
        await until(lambda: _has(handle, count))  # noqa: B023 - awaited here

    assert 3 == await handle.result(timeout=10)
    assert [1, 1, 1] == thrown
    assert [one.broadcast_id for one in thrown] == await received(handle)
    await check_all(opened)


async def _has(handle: WorkflowHandle, count: int) -> bool:
    """Whether it has got that many, and waits for the next or is over."""
    status = await handle.status()
    return len(await received(handle)) == count and (status is WorkflowStatus.WAITING or not status.is_open)


async def test_a_name_must_be_one(engine: OpenEngine):
    """Bad input is refused with the field, and changes nothing."""
    opened = await engine()
    for name in ("", "x" * 2_000, 7):
        with pytest.raises(errors.InvalidRequest) as refused:
            await opened.client.broadcast(name)  # type: ignore[arg-type]
        assert "name" == refused.value.details["field"]


# --- waits come and go --------------------------------------------------------------------------------------------


async def test_subscriptions_outlive_the_process(engine: OpenEngine):
    """001-20, 001-42: they are rows; another engine on the same file finds them."""
    first = await engine(workflows=[waits])
    (handle,) = await start(first, waits, "go")
    await first.shutdown()

    second = await engine(workflows=[waits])

    assert 1 == await second.client.broadcast("go")
    assert "got None" == await second.client.workflow(handle.id).result(timeout=10)
    await check_all(second)


async def test_a_loser_of_a_race_is_unsubscribed(engine: OpenEngine):
    """001-21, 001-49: once its host is over a broadcast finds nobody, and the row is gone."""
    opened = await engine(workflows=[has_a_host_that_ends])
    handle = await opened.client.start_workflow(has_a_host_that_ends)
    await until(lambda: _waits_for(handle, "signal"))
    assert [] == await opened.client.messages.waits("default", handle.id)

    assert 0 == await opened.client.broadcast("stop")

    await handle.signal("end")
    assert "went on" == await handle.result(timeout=10)
    types = [event.type for event in await handle.history()]
    assert ("WAIT_CANCELLED" in types, "BROADCAST_RECEIVED" in types) == (True, False)
    await check_all(opened)


async def _waits_for(handle: WorkflowHandle, kind: str) -> bool:
    found = await handle.describe()
    return found.status is WorkflowStatus.WAITING and [kind] == [wait.kind for wait in found.waiting_for]


@pytest.mark.parametrize("end", ["cancel", "terminate"])
async def test_a_closed_execution_waits_no_more(engine: OpenEngine, end: str):
    """001-21: whatever ends it, its subscriptions go with it."""
    opened = await engine(workflows=[waits])
    (handle,) = await start(opened, waits, "go")
    await (handle.cancel() if end == "cancel" else handle.terminate())
    with pytest.raises(errors.HoldfastError):
        await handle.result(timeout=10)

    assert 0 == await opened.client.broadcast("go")
    assert [] == await opened.client.messages.waits("default", handle.id)
    await check_all(opened)


async def test_a_broadcast_interrupts(engine: OpenEngine):
    """001-29: it wins a race like anything else, and in the same turn task and timer are given up."""
    opened = await engine(workflows=[is_interrupted], tasks=[forever])
    handle = await opened.client.start_workflow(is_interrupted)
    await waiting(handle)

    assert 1 == await opened.client.broadcast("stop")

    assert "broadcast" == await handle.result(timeout=10)
    types = [event.type for event in await handle.history()]
    assert {"TASK_CANCEL_REQUESTED", "TIMER_CANCELLED"} <= set(types)
    await check_all(opened)
    check_whole(is_interrupted, await handle.history(), handle.id)


async def test_a_wait_can_time_out(engine: OpenEngine):
    """A wait that took too long is no subscription any more."""

    @workflow
    async def waits_briefly(ctx: WorkflowContext) -> str:
        try:
            await ctx.wait_for_broadcast("go", timeout=0.05)
        except errors.EventTimeout:
            await ctx.wait_for_signal("end")
            return "late"
        return "in time"

    opened = await engine(workflows=[waits_briefly])
    handle = await opened.client.start_workflow(waits_briefly)
    await until(lambda: _waits_for(handle, "signal"))
    assert 0 == await opened.client.broadcast("go")
    await handle.signal("end")
    assert "late" == await handle.result(timeout=10)
    await check_all(opened)


# --- workflows that throw -----------------------------------------------------------------------------------------


async def test_a_workflow_throws_and_others_catch(engine: OpenEngine):
    """001-19, 001-44, 001-50: ctx.broadcast wakes the others; the one who threw goes on at once."""
    opened = await engine(workflows=[waits, throws])
    handles = await start(opened, waits, "go", "go")

    thrower = await opened.client.start_workflow(throws, "go")

    assert "went on" == await thrower.result(timeout=10)
    assert ["got None"] * 2 == [await handle.result(timeout=10) for handle in handles]
    (thrown,) = [event.body for event in await thrower.history() if isinstance(event.body, e.BroadcastThrown)]
    assert [[thrown.broadcast_id]] * 2 == [await received(handle) for handle in handles]
    await check_all(opened)
    check_whole(throws, await thrower.history(), thrower.id)


@pytest.mark.parametrize("kind", [throws_to_itself, throws_then_waits])
async def test_a_workflow_hears_itself(engine: OpenEngine, kind: Any):
    """001-27, 001-45, H11: no deadlock; a wait of the same turn is there before the throw takes effect."""
    opened = await engine(workflows=[kind])

    handle = await opened.client.start_workflow(kind)

    assert "heard itself" == await handle.result(timeout=10)
    assert 1 == len(await received(handle))
    await check_all(opened)
    check_whole(kind, await handle.history(), handle.id)


async def test_a_busy_workflow_gets_it_at_once(engine: OpenEngine, tmp_path: Path):
    """001-26: delivery does not wait for the turn or step that its worker is at."""
    opened = await engine(workflows=[is_busy])
    handle = await opened.client.start_workflow(is_busy, str(tmp_path / "gate"))
    await until(lambda: opened.client.messages.waits("default", handle.id))
    assert await handle.status() is WorkflowStatus.RUNNING

    assert 1 == await opened.client.broadcast("go")

    assert "worked" == await handle.result(timeout=10)
    await check_all(opened)


async def test_one_who_fails_stops_nobody(engine: OpenEngine):
    """001-23: subscribers that break when they are woken are their own problem."""
    opened = await engine(workflows=[waits, breaks_when_woken])
    bad = [await opened.client.start_workflow(breaks_when_woken) for _ in range(2)]
    good = [await opened.client.start_workflow(waits, "go") for _ in range(2)]
    await waiting(*bad, *good)

    assert 4 == await opened.client.broadcast("go")

    for handle in bad:
        with pytest.raises(errors.WorkflowFailed):
            await handle.result(timeout=10)
    assert ["got None"] * 2 == [await handle.result(timeout=10) for handle in good]
    await check_all(opened)


async def test_a_subscription_whose_execution_is_gone_stops_nobody(engine: OpenEngine, database_url: str):
    """001-23: rows that were damaged by hand are passed over."""
    opened = await engine(workflows=[waits])
    lost, miscounted, sound = await start(opened, waits, "go", "go", "go")
    await opened.shutdown()
    await change(database_url, "DELETE FROM holdfast_executions WHERE id = ?", lost.id)
    await change(database_url, "UPDATE holdfast_executions SET open_waits = 0 WHERE id = ?", miscounted.id)

    again = await engine(workflows=[waits])

    assert 2 == await again.client.broadcast("go")
    for handle in (miscounted, sound):
        assert "got None" == await again.client.workflow(handle.id).result(timeout=10)


# --- idempotency --------------------------------------------------------------------------------------------------


async def test_the_same_key_is_the_same_broadcast(engine: OpenEngine):
    """A repeated call gets the first answer, and wakes nobody who came meanwhile."""
    opened = await engine(workflows=[waits])
    await start(opened, waits, "go", "go")
    first = await opened.client.broadcast("go", idempotency_key="k")
    (late,) = await start(opened, waits, "go")

    again = await opened.client.broadcast("go", idempotency_key="k")

    assert (2, first.broadcast_id) == (again.delivered, again.broadcast_id)
    assert await _is_waiting(late)
    with pytest.raises(errors.RequestMismatch):
        await opened.client.broadcast("other", idempotency_key="k")
