"""`ctx.state` as others see it: folded from the history, without the code, at any event."""

import pytest

from holdfast import WorkflowContext, WorkflowStatus, workflow
from holdfast.errors import ExecutionNotFound, InvalidRequest
from tests.conftest import until


@workflow
async def order(ctx: WorkflowContext) -> str:
    ctx.state["phase"] = "open"
    ctx.state["items"] = []
    while (item := await ctx.wait_for_signal("item")) is not None:
        ctx.state["items"] = [*ctx.state["items"], item]
    del ctx.state["items"]
    ctx.state["phase"] = "closed"
    return "done"


@workflow
async def silent(ctx: WorkflowContext) -> None:
    await ctx.wait_for_signal("end")


async def has_status(handle, status):
    return await handle.status() is status


async def items_are(handle, expected):
    return (await handle.state()).get("items") == expected


async def test_state_is_seen_when_the_turn_is_recorded(engine):
    """All that a turn has set, at once."""
    client = (await engine(workflows=[order])).client
    handle = await client.start_workflow(order)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))

    assert {"phase": "open", "items": []} == await handle.state()
    await handle.signal("item", {"sku": 7})
    await until(lambda: items_are(handle, [{"sku": 7}]))


async def test_state_is_seen_after_the_end_and_without_the_code(engine):
    """What was deleted is gone; the rest stays readable by anybody who has the file."""
    first = await engine(workflows=[order])
    handle = await first.client.start_workflow(order)
    await handle.signal("item", 1)
    await handle.signal("item", None)
    await handle.result(timeout=10)
    await first.shutdown()
    client = (await engine()).client

    assert {"phase": "closed"} == await client.workflow(handle.id).state()


async def test_state_as_of_an_event(engine):
    """What had been shown by then, and only that."""
    client = (await engine(workflows=[order])).client
    handle = await client.start_workflow(order)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    await handle.signal("item", 1)
    await until(lambda: items_are(handle, [1]))
    await handle.signal("item", None)
    await handle.result(timeout=10)
    history = await handle.history()
    changes = [event.seq for event in history if event.type == "STATE_CHANGED"]
    shown = [await handle.state(as_of=event.seq) for event in history]

    assert {} == shown[0]
    assert 3 == len(changes)
    expected = [{"phase": "open", "items": []}, {"phase": "open", "items": [1]}, {"phase": "closed"}]
    assert expected == [shown[seq - 1] for seq in changes]
    assert expected[:2] == [shown[seq - 2] for seq in changes[1:]]


async def test_a_workflow_that_shows_nothing_has_an_empty_state(engine):
    client = (await engine(workflows=[silent])).client
    handle = await client.start_workflow(silent)

    assert {} == await handle.state()


async def test_state_of_nothing_is_refused(engine):
    """An unknown execution, and a moment outside the history."""
    client = (await engine(workflows=[silent])).client
    with pytest.raises(ExecutionNotFound):
        await client.workflow("nobody").state()
    handle = await client.start_workflow(silent)
    with pytest.raises(InvalidRequest, match="as_of"):
        await handle.state(as_of=99)
