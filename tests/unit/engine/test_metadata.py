"""Executions are found by their tags, as they are now."""

import pytest

from holdfast import WorkflowContext, WorkflowStatus, workflow
from holdfast.errors import InvalidCursor, InvalidRequest
from tests.unit.engine.records import waiting


@workflow
async def tagged(ctx: WorkflowContext) -> None:
    await ctx.wait_for_signal("go")
    ctx.set_metadata(stage="second")
    await ctx.wait_for_signal("go")


@workflow
async def other(ctx: WorkflowContext) -> None:
    await ctx.wait_for_signal("go")


MANY = {str(number): "x" for number in range(51)}


async def found(client, **filters):
    return [view.workflow_id async for view in client.iter_workflows(**filters)]


async def test_all_pairs_must_match(engine):
    """One pair, several, with other filters, and none."""
    client = (await engine(workflows=[tagged, other])).client
    await client.start_workflow(tagged, workflow_id="a", metadata={"customer": "42", "region": "eu"})
    await client.start_workflow(tagged, workflow_id="b", metadata={"customer": "42", "region": "us"})
    await client.start_workflow(other, workflow_id="c", metadata={"customer": "42", "region": "eu"})
    await client.start_workflow(other, workflow_id="d")

    assert ["c", "b", "a"] == await found(client, metadata={"customer": "42"})
    assert ["c", "a"] == await found(client, metadata={"region": "eu", "customer": "42"})
    assert ["a"] == await found(client, metadata={"region": "eu"}, kind="tagged")
    assert [] == await found(client, metadata={"customer": "4"})
    assert ["d", "c", "b", "a"] == await found(client, metadata={})


async def test_tags_that_change_are_found_as_they_are(engine):
    """`ctx.set_metadata` moves an execution from one tag to another."""
    client = (await engine(workflows=[tagged])).client
    handle = await client.start_workflow(tagged, workflow_id="a", metadata={"stage": "first", "team": "blue"})
    await waiting(handle)
    assert ["a"] == await found(client, metadata={"stage": "first"})
    await handle.signal("go")
    await waiting(handle)

    assert [] == await found(client, metadata={"stage": "first"})
    assert ["a"] == await found(client, metadata={"stage": "second", "team": "blue"})
    assert {"stage": "second", "team": "blue"} == (await handle.describe()).metadata


async def test_pages(engine):
    """A cursor belongs to its filter; pages follow each other; statuses narrow."""
    client = (await engine(workflows=[other])).client
    handles = [await client.start_workflow(other, metadata={"n": str(number % 2)}) for number in range(10)]
    await handles[0].terminate()

    page = await client.list_workflows(metadata={"n": "0"}, limit=3)
    assert page.next_cursor is not None
    rest = await client.list_workflows(metadata={"n": "0"}, limit=3, cursor=page.next_cursor)
    ids = [view.workflow_execution_id for view in (*page.items, *rest.items)]
    assert [handle.id for handle in reversed(handles[::2])] == ids
    with pytest.raises(InvalidCursor):
        await client.list_workflows(metadata={"n": "1"}, limit=3, cursor=page.next_cursor)
    (ended,) = (await client.list_workflows(metadata={"n": "0"}, status=WorkflowStatus.TERMINATED)).items
    assert handles[0].id == ended.workflow_execution_id


@pytest.mark.parametrize("metadata", [{"a": 1}, {1: "a"}, "a=b", ["a"], {"a": "\ud800"}, MANY])
async def test_what_is_no_tag_is_refused(engine, metadata):
    """Typed, naming the field."""
    client = (await engine(workflows=[other])).client

    with pytest.raises(InvalidRequest) as refused:
        await client.list_workflows(metadata=metadata)
    assert "metadata" == refused.value.field
