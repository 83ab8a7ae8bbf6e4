"""`recover()`: executions that wait for a subscription or a promise whose row is gone are found and mended."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Engine, WorkflowContext, WorkflowHandle, WorkflowStatus, errors, workflow
from tests.conftest import OpenEngine, until
from tests.database_access import change
from tests.faults.conftest import read_all, sound_records
from verification.invariants import check


@workflow
async def awaits_broadcast(ctx: WorkflowContext) -> str:
    await ctx.wait_for_broadcast("go")
    return "went"


@workflow
async def awaits_message(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_message("paid", "order-1", str)


@workflow
async def awaits_event(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_event("paid", str, where="input != 'no'")


@workflow
async def awaits_promise(ctx: WorkflowContext) -> str:
    return await ctx.promise("answer", str)


@workflow
async def awaits_promise_by_event(ctx: WorkflowContext) -> str:
    return await ctx.promise("answer", str, event_key="answered")


@workflow
async def awaits_promise_for_a_while(ctx: WorkflowContext) -> str:
    try:
        return await ctx.promise("answer", str, timeout=3600)
    except errors.PromiseTimeout:
        return "late"


WORKFLOWS = (
    awaits_broadcast,
    awaits_message,
    awaits_event,
    awaits_promise,
    awaits_promise_by_event,
    awaits_promise_for_a_while,
)


async def at_rest(opened: Engine, kind: Any) -> WorkflowHandle:
    handle = await opened.client.start_workflow(kind)

    async def waiting() -> bool:
        return await handle.status() is WorkflowStatus.WAITING

    await until(waiting)
    return handle


async def delete(database_url: str, table: str) -> int:
    """Delete all rows of a table by hand; how many there were."""
    return await change(database_url, f"DELETE FROM holdfast_{table}")


async def give(opened: Engine, handle: WorkflowHandle, kind: Any) -> None:
    if kind is awaits_broadcast:
        assert 1 == await opened.client.broadcast("go")
    elif kind is awaits_message:
        assert await opened.client.send_message("paid", "order-1", "much")
    elif kind is awaits_event:
        await opened.client.publish_event("paid", "no")
        await opened.client.publish_event("paid", "much")
    elif kind is awaits_promise_by_event:
        await opened.client.publish_event("answered", "much")
    else:
        await opened.client.resolve_promise(f"{handle.id}:answer", "much")


@pytest.mark.parametrize("kind", [awaits_broadcast, awaits_message, awaits_event])
async def test_a_deleted_subscription_is_made_again(engine: OpenEngine, database_url: str, kind: Any):
    """From the WAIT_STARTED of the history, with its key, correlation and filter; nothing is to be done twice."""
    opened = await engine(workflows=WORKFLOWS)
    handle = await at_rest(opened, kind)
    assert 0 == (await opened.recover()).repaired
    assert 1 == await delete(database_url, "subscriptions")
    assert ["I16", "I20"] == sorted({wrong.invariant for wrong in check(await read_all(database_url))})

    report = await opened.recover()

    assert (1, 1) == (report.repaired, report.waits_restored)
    await sound_records(database_url)
    assert 0 == (await opened.recover()).repaired
    await give(opened, handle, kind)
    assert ("went" if kind is awaits_broadcast else "much") == await handle.result(timeout=10)
    await sound_records(database_url)


@pytest.mark.parametrize("kind", [awaits_promise, awaits_promise_by_event, awaits_promise_for_a_while])
@pytest.mark.parametrize("table", ["promises", "subscriptions"])
async def test_a_deleted_promise_is_made_again(engine: OpenEngine, database_url: str, kind: Any, table: str):
    """Its row, or the subscription that may settle it; its timer, which is still there, goes on."""
    opened = await engine(workflows=WORKFLOWS)
    handle = await at_rest(opened, kind)
    if not await delete(database_url, table):
        return
    assert check(await read_all(database_url))

    report = await opened.recover()

    assert (1, 1) == (report.repaired, report.promises_restored)
    await sound_records(database_url)
    assert 0 == (await opened.recover()).repaired
    await give(opened, handle, kind)
    assert "much" == await handle.result(timeout=10)
    await sound_records(database_url)


async def test_a_promise_without_its_timer_counts_as_late(engine: OpenEngine, database_url: str):
    """As any other timer whose row is gone, it counts as fired."""
    opened = await engine(workflows=WORKFLOWS)
    handle = await at_rest(opened, awaits_promise_for_a_while)
    assert 1 == await delete(database_url, "timers")

    report = await opened.recover()

    assert (1, 1) == (report.repaired, report.promises_restored)
    assert "late" == await handle.result(timeout=10)
    # It did time out early, and the history can't hide it.
    assert ["I13"] == [wrong.invariant for wrong in check(await read_all(database_url))]


async def test_an_event_that_came_meanwhile_is_found(engine: OpenEngine, database_url: str):
    """The wait looks back as it did when it began: what was published while its row was gone is kept."""
    opened = await engine(workflows=WORKFLOWS)
    handle = await at_rest(opened, awaits_event)
    await delete(database_url, "subscriptions")
    await opened.client.publish_event("paid", "meanwhile")

    assert 1 == (await opened.recover()).waits_restored

    assert "meanwhile" == await handle.result(timeout=10)
    await sound_records(database_url)
