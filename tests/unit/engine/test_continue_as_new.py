"""Continue as new: the next run takes over the workflow id, the unread signals, the parent, the deadline."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from holdfast import WorkflowContext, WorkflowStatus, errors, workflow
from holdfast.model import events as e
from tests.conftest import OpenEngine, until
from tests.replay.recording import check_whole
from verification import invariants


@workflow
async def counts(ctx: WorkflowContext, number: int) -> int:
    """Goes on until it has counted to three."""
    await ctx.run(nothing)
    if number < 3:
        ctx.continue_as_new(number + 1)
    return number


async def nothing() -> None: ...


@workflow
async def collects(ctx: WorkflowContext, seen: list[int]) -> list[int]:
    """Takes two signals in each run, and ends with the one that says so."""
    for _ in range(2):
        value = await ctx.wait_for_signal("value", int)
        if value < 0:
            return seen
        seen.append(value)
    return ctx.continue_as_new(seen)


async def runs_of(client: Any, workflow_id: str) -> list[str]:
    return [found.workflow_execution_id async for found in client.iter_workflows(workflow_id=workflow_id)][::-1]


async def test_each_run_has_its_own_history(engine: OpenEngine):
    """The first run's handle gives the last run's result; every run replays."""
    opened = await engine(workflows=[counts])
    handle = await opened.client.start_workflow(counts, 1, workflow_id="c", metadata={"a": "b"})
    assert 3 == await handle.result()
    runs = await runs_of(opened.client, "c")
    assert handle.id == runs[0]
    assert 3 == len(runs)
    assert await handle.status() is WorkflowStatus.CONTINUED
    for before, after in itertools.pairwise(runs):
        end = (await opened.client.history(before))[-1].body
        begin = (await opened.client.history(after))[0].body
        assert isinstance(end, e.WorkflowContinued)
        assert isinstance(begin, e.WorkflowStarted)
        assert (after, before) == (end.new_execution_id, begin.continued_from)
        assert {"a": "b"} == begin.metadata
    for run in runs:
        check_whole(counts, await opened.client.history(run), run)
    assert runs[-1] == (await opened.client.find_workflow("c")).id
    assert [] == invariants.check(await invariants.read(opened.storage))


async def test_without_a_key_of_the_callers_it_is_found_by_the_first_id(engine: OpenEngine):
    opened = await engine(workflows=[counts])
    handle = await opened.client.start_workflow(counts, 1)
    assert 3 == await handle.result()
    assert handle.id != (await opened.client.find_workflow(handle.id)).id


async def test_unread_signals_arrive_in_order_in_the_next_run(engine: OpenEngine):
    """F24: more signals than a run takes, sent before it begins and while it runs."""
    opened = await engine(workflows=[collects])
    client = opened.client
    first = await client.signal_with_start_workflow("c", collects, [], signal_name="value", signal_value=0)
    for number in range(1, 25):
        await client.signal_with_start_workflow("c", collects, [], signal_name="value", signal_value=number)
    await client.signal_with_start_workflow("c", collects, [], signal_name="value", signal_value=-1)
    assert list(range(25)) == await client.workflow(first.workflow_execution_id).result()
    records = await invariants.read(opened.storage)
    assert [] == invariants.check(records)
    assert 13 == len(records)
    assert [] == await client.dead_letters()


async def test_a_steady_stream_of_signals_stops_neither_it_nor_completion(engine: OpenEngine):
    """F20, F21: a sender that never rests. Every signal is read once, in order, or told about."""

    @workflow
    async def rolls(ctx: WorkflowContext, heard: int) -> int:
        while True:
            await ctx.wait_for_signal("tick", int)
            heard += 1 + len(await ctx.drain_signals("tick"))
            if heard >= 600:
                return heard
            if heard % 3 == 0:
                ctx.continue_as_new(heard)

    opened = await engine(workflows=[rolls])
    client = opened.client
    sent = 0
    first = await client.signal_with_start_workflow("r", rolls, 0, signal_name="tick", signal_value=0)
    done = asyncio.ensure_future(client.workflow(first.workflow_execution_id).result(timeout=60))

    async def stream() -> None:
        nonlocal sent
        number = 1
        while not done.done():
            try:
                await (await client.find_workflow("r")).signal("tick", number)
            except errors.ExecutionClosed:
                return
            sent, number = sent + 1, number + 1

    streams = [asyncio.ensure_future(stream()) for _ in range(4)]
    heard = await done
    await asyncio.gather(*streams)
    assert heard >= 600
    assert sent + 1 == heard + len(await client.dead_letters(limit=1_000))
    assert len(await runs_of(client, "r")) > 2
    assert [] == invariants.check(await invariants.read(opened.storage))


async def test_control_flow_can_not_be_eaten(engine: OpenEngine):
    """Code that catches everything it can still goes on as new."""

    @workflow
    async def greedy(ctx: WorkflowContext, number: int) -> int:
        if number < 3:
            try:
                ctx.continue_as_new(number + 1)
            except BaseException:
                await ctx.run(nothing)
                return -1
        return number

    opened = await engine(workflows=[greedy])
    assert 3 == await (await opened.client.start_workflow(greedy, 1)).result()


async def test_another_workflow_takes_over(engine: OpenEngine):
    @workflow
    async def one(ctx: WorkflowContext) -> int:
        ctx.continue_as_new(3, workflow=counts)

    opened = await engine(workflows=[one, counts])
    assert 3 == await (await opened.client.start_workflow(one, workflow_id="x")).result()


async def test_an_unknown_workflow_can_not_take_over(engine: OpenEngine):
    """The run fails and says why; nothing has begun."""

    @workflow
    async def one(ctx: WorkflowContext) -> int:
        ctx.continue_as_new(3, workflow="nobody-knows")

    opened = await engine(workflows=[one])
    handle = await opened.client.start_workflow(one, workflow_id="x")
    with pytest.raises(errors.WorkflowFailed, match="nobody-knows"):
        await handle.result()
    assert 1 == len(await runs_of(opened.client, "x"))
    check_whole(one, await handle.history(), handle.id)


async def test_a_handle_follows(engine: OpenEngine):
    """Signals and cancels through the first run's handle reach the run that is open."""

    @workflow
    async def again(ctx: WorkflowContext, number: int) -> str:
        word = await ctx.wait_for_signal("word", str)
        if word == "again":
            ctx.continue_as_new(number + 1)
        return f"{word} {number}"

    opened = await engine(workflows=[again])
    handle = await opened.client.start_workflow(again, 1, workflow_id="x")
    for _ in range(3):
        await handle.signal("word", "again")
    await handle.signal("word", "done")
    assert "done 4" == await handle.result()
    other = await opened.client.start_workflow(again, 1, workflow_id="y")
    await other.signal("word", "again")
    await until(lambda: is_continued(other))
    assert await other.cancel("enough")
    with pytest.raises(errors.WorkflowCancelled):
        await other.result()


async def is_continued(handle: Any) -> bool:
    return await handle.status() is WorkflowStatus.CONTINUED


async def test_signals_are_counted_anew(engine: OpenEngine):
    """H6: the limit counts what a run has received, the carried ones included."""
    opened = await engine(workflows=[collects])
    client = opened.client
    started = await client.signal_with_start_workflow("c", collects, [], signal_name="value", signal_value=1)
    for number in range(2, 6):
        await client.signal_with_start_workflow("c", collects, [], signal_name="value", signal_value=number)
    await until(lambda: last_run_waits(client))
    assert 1 == (await (await client.find_workflow("c")).describe()).signal_count
    assert started.workflow_created


async def last_run_waits(client: Any) -> bool:
    found = await client.find_workflow("c")
    return await found.status() is WorkflowStatus.WAITING and len(await runs_of(client, "c")) == 3
