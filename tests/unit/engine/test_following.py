"""Following a history: every event once and in order, as it is committed, until the end."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import WorkflowContext, workflow
from holdfast.contract.history import StreamHistory
from holdfast.errors import ExecutionNotFound


@workflow
async def listens(ctx: WorkflowContext, count: int) -> int:
    for _ in range(count):
        await ctx.wait_for_signal("word")
    return count


async def followed(client, execution_id, after=0):
    request = StreamHistory(org=client.org, workflow_execution_id=execution_id, after=after)
    return [entry.event async for entries in client.api.stream(request) for entry in entries]


async def test_events_come_as_they_are_committed_until_the_end(engine):
    """What is there, what comes, and nothing after the last one."""
    client = (await engine(workflows=[listens])).client
    handle = await client.start_workflow(listens, 3)
    following = asyncio.create_task(followed(client, handle.id))
    for _ in range(3):
        await handle.signal("word", 1)

    seen = await asyncio.wait_for(following, 20)
    assert seen == await handle.history()
    assert seen[-1].body.TERMINAL


async def test_following_begins_after_a_number(engine):
    """Of one that is closed, what follows it; after the last one nothing."""
    client = (await engine(workflows=[listens])).client
    handle = await client.start_workflow(listens, 0)
    await handle.result()
    history = await handle.history()

    assert history[1:] == await followed(client, handle.id, 1)
    assert [] == await followed(client, handle.id, history[-1].seq)


async def test_what_another_process_commits_is_told_too(engine):
    here, there = await engine(), await engine(workflows=[listens])
    handle = await here.client.start_workflow("listens", 1)
    following = asyncio.create_task(followed(here.client, handle.id))
    await there.client.workflow(handle.id).signal("word", 1)

    assert "WORKFLOW_COMPLETED" == (await asyncio.wait_for(following, 20))[-1].type


async def test_an_unknown_execution_is_refused(engine):
    client = (await engine(workflows=[listens])).client
    with pytest.raises(ExecutionNotFound):
        await followed(client, "0190ffff-0000-7000-8000-000000000000")
