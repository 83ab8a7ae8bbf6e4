"""Reset, fork and retry of what retention takes away meanwhile, and of those whose children it has taken away."""

import asyncio

import pytest

from holdfast import Status, WorkflowContext, workflow
from holdfast.engine.upkeep import remove_closed
from holdfast.engine.upkeep.remove_closed import Clear, Over, RemoveClosed
from holdfast.errors import ExecutionNotFound, InvalidResetPoint
from holdfast.store import reads
from tests.unit.engine.records import check_all, reached, waiting


@workflow
async def lasting(ctx: WorkflowContext, left: int = 1) -> str:
    """Goes on as another execution at every signal, and ends with the last."""
    value = await ctx.wait_for_signal("go", str)
    if left:
        ctx.continue_as_new(left - 1)
    return value


@workflow
async def parent(ctx: WorkflowContext) -> list[str]:
    born = ctx.child(lasting, on_parent_close="abandon")
    own = await ctx.wait_for_signal("own", str)
    return [own, await born]


@workflow
async def named(ctx: WorkflowContext) -> list[str]:
    """The same, and its child has a workflow id of its own."""
    born = ctx.child(lasting, workflow_id="the-child", on_parent_close="abandon")
    own = await ctx.wait_for_signal("own", str)
    return [own, await born]


@workflow
async def waits(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("go", str)


ALL = {"workflows": [lasting, parent, named, waits]}


async def remove(running, *ids):
    """What retention does with them when their time has come."""
    local = running._local
    gone = await local.queue.submit(RemoveClosed(Over(ids, local.store.clock() + 10**9)))
    assert len(ids) == gone


async def family(running, kind=parent):
    """A parent that waits, its child, and the run as which that has gone on; the child's first run is gone."""
    client = running.client
    handle = await client.start_workflow(kind)
    await waiting(handle)
    (born,) = [view for view in (await client.list_workflows(kind="lasting")).items if view.status.is_open]
    first = client.workflow(born.workflow_execution_id)
    await waiting(first)
    await first.signal("go", "on")
    await reached(first, Status.CONTINUED)
    second = client.workflow((await client.workflow(first.id).describe()).successor)
    await waiting(second)
    await remove(running, first.id)
    return handle, first, second


async def last_seq(handle):
    return (await handle.history())[-1].seq


@pytest.mark.parametrize("kind", [parent, named])
async def test_a_child_whose_first_run_is_gone_gets_its_new_parent(engine, kind):
    """It is still at work: the new execution waits for it, and is told of its end."""
    running = await engine(**ALL)
    handle, _, second = await family(running, kind)
    again = await handle.reset(to_event=await last_seq(handle))

    assert again.id == (await second.describe()).parent_execution_id
    await second.signal("go", "grown")
    await again.signal("own", "own")
    assert ["own", "grown"] == await again.result(timeout=20)
    await check_all(running)


async def test_a_fork_does_not_share_it(engine):
    """As if all its runs were there."""
    running = await engine(**ALL)
    handle, _, second = await family(running)
    with pytest.raises(InvalidResetPoint, match="can't share a child") as refused:
        await handle.fork(at_event=await last_seq(handle))
    assert second.id == refused.value.details["child_execution_id"]


@pytest.mark.parametrize("kind", [parent, named])
async def test_the_end_of_its_last_run_is_what_came_of_it(engine, kind):
    """Though the parent was closed by then, and the run that it had started is gone."""
    running = await engine(**ALL)
    handle, _, second = await family(running, kind)
    seq = await last_seq(handle)
    await handle.terminate()
    await second.signal("go", "grown")
    await second.result(timeout=20)
    again = await handle.reset(to_event=seq)
    await again.signal("own", "own")

    assert ["own", "grown"] == await again.result(timeout=20)
    await check_all(running)


async def orphaned(running, kind=parent):
    """A closed parent, none of whose child's runs is there any more: nobody knows how it has ended."""
    handle, first, second = await family(running, kind)
    seq = await last_seq(handle)
    await handle.terminate()
    await second.signal("go", "grown")
    await second.result(timeout=20)
    await remove(running, second.id)
    return handle, first, seq


async def test_a_child_whose_end_nobody_knows_is_no_past_to_go_on_from(engine):
    """It would be waited for in vain. The refusal says which child, why, and what can be done."""
    running = await engine(**ALL)
    handle, first, seq = await orphaned(running)
    for redo in (handle.reset(to_event=seq), handle.fork(at_event=seq), handle.retry()):
        with pytest.raises(InvalidResetPoint) as refused:
            await redo
        assert (1, first.id) == (refused.value.details["child_no"], refused.value.details["child_execution_id"])
        assert "retention" in str(refused.value)
        assert "before its start" in str(refused.value)
    assert (await handle.describe()).successor is None

    again = await handle.reset(to_event=1)
    await waiting(again)
    await check_all(running)


async def test_another_execution_with_its_workflow_id_is_not_the_child(engine):
    """Somebody else may have taken the id since."""
    running = await engine(**ALL)
    handle, _, seq = await orphaned(running, named)
    await running.client.start_workflow(lasting, workflow_id="the-child")
    with pytest.raises(InvalidResetPoint, match="retention"):
        await handle.reset(to_event=seq)


async def test_a_repeated_request_is_answered_though_the_child_is_gone_by_now(engine):
    """What was answered once is never refused."""
    running = await engine(**ALL)
    handle, _, second = await family(running)
    seq = await last_seq(handle)
    again = await handle.reset(to_event=seq, request_id="once")
    await again.terminate()
    await second.signal("go", "grown")
    await second.result(timeout=20)
    await remove(running, second.id)
    assert again.id == (await handle.reset(to_event=seq, request_id="once")).id


async def test_a_child_of_a_parent_that_is_gone_gets_a_new_one(engine):
    """The execution that had taken it over was removed: the older one takes it back."""
    running = await engine(**ALL)
    client = running.client
    handle = await client.start_workflow(named)
    await waiting(handle)
    born = await client.find_workflow("the-child")
    seq = await last_seq(handle)
    between = await handle.reset(to_event=seq)
    await between.terminate()
    await remove(running, between.id)
    again = await handle.reset(to_event=seq)

    assert again.id == (await born.describe()).parent_execution_id
    await again.terminate()
    await check_all(running)


# --- while it is read ---------------------------------------------------------------------------------------------


class Meddled:
    """A store in which something happens after the n-th read of a kind."""

    def __init__(self, running, kind, number, what):
        self._rebuilds, self._what = running._local.rebuilds, what
        self._kind, self._left = kind, number
        self.store, self._rebuilds._store = self._rebuilds._store, self

    def __getattr__(self, name):
        return getattr(self.store, name)

    async def read(self, query):
        answer = await self.store.read(query)
        if isinstance(query, self._kind):
            self._left -= 1
            if self._left == 0:
                await self._what()
        return answer


def redone(handle):
    return {
        "reset": lambda: handle.reset(to_event=2),
        "fork": lambda: handle.fork(at_event=2),
        "retry": handle.retry,
    }


async def closed(running):
    handle = await running.client.start_workflow(waits)
    await waiting(handle)
    for number in range(6):
        await handle.signal("other", number)
    await handle.terminate()
    return handle


@pytest.mark.parametrize("call", ["reset", "fork", "retry"])
@pytest.mark.parametrize("kind", [reads.Executions, reads.History])
async def test_an_execution_that_is_removed_while_it_is_read_is_not_found(engine, call, kind):
    """Its head was there, its history is gone; or the history was there, and then nothing is."""
    running = await engine(**ALL)
    handle = await closed(running)
    Meddled(running, kind, 1, lambda: remove(running, handle.id))
    with pytest.raises(ExecutionNotFound) as refused:
        await redone(handle)[call]()
    assert handle.id == refused.value.details["execution_id"]
    assert [] == list((await running.client.list_workflows()).items)


@pytest.mark.parametrize("call", ["reset", "fork", "retry"])
async def test_a_long_history_that_is_being_removed_is_none(engine, monkeypatch, call):
    """It goes page by page, after its head."""
    running = await engine(**ALL)
    handle = await closed(running)

    async def page():
        monkeypatch.setattr(remove_closed, "EVENTS_AT_ONCE", 3)
        await remove(running, handle.id)
        await running._local.queue.submit(Clear(None))

    Meddled(running, reads.Executions, 1, page)
    with pytest.raises(ExecutionNotFound):
        await redone(handle)[call]()
    assert [] == list((await running.client.list_workflows()).items)


@pytest.mark.parametrize("call", ["reset", "fork", "retry"])
@pytest.mark.parametrize("kept", [slice(1, None), slice(0, -1), slice(0, 3)])
async def test_a_history_with_a_hole_is_none(engine, monkeypatch, call, kept):
    """Whichever end is missing: an execution is never rebuilt from a part of what happened."""
    running = await engine(**ALL)
    handle = await closed(running)
    store = running._local.store
    whole = await store.read(reads.History("default", handle.id))

    read = store.read

    async def part(query):
        return whole[kept] if isinstance(query, reads.History) else await read(query)

    with monkeypatch.context() as patched:
        patched.setattr(store, "read", part)
        with pytest.raises(ExecutionNotFound):
            await redone(handle)[call]()
    assert [handle.id] == [view.workflow_execution_id for view in (await running.client.list_workflows()).items]


@pytest.mark.parametrize(("kind", "number"), [(reads.Executions, 2), (reads.LastEvents, 1)])
async def test_a_child_that_is_removed_while_its_parent_is_read(engine, kind, number):
    """Before its end was read, or afterwards: the past is read again, and then nobody knows the end."""
    running = await engine(**ALL)
    client = running.client
    handle = await client.start_workflow(named)
    await waiting(handle)
    born = await client.find_workflow("the-child")
    seq = await last_seq(handle)
    await handle.terminate()
    await born.terminate()
    Meddled(running, kind, number, lambda: remove(running, born.id))
    with pytest.raises(InvalidResetPoint, match="retention"):
        await handle.reset(to_event=seq)
    assert [handle.id] == [view.workflow_execution_id for view in (await client.list_workflows()).items]


async def test_a_child_that_goes_on_while_its_parent_is_read(engine):
    """The run that was read is removed before the reset is decided: the one that is at work is taken over."""
    running = await engine(**ALL)
    client = running.client
    handle = await client.start_workflow(named)
    await waiting(handle)
    born = await client.find_workflow("the-child")
    await waiting(born)
    seq = await last_seq(handle)

    async def go_on():
        await born.signal("go", "on")
        await reached(born, Status.CONTINUED)
        await remove(running, born.id)

    Meddled(running, reads.Executions, 2, go_on)
    again = await handle.reset(to_event=seq)
    await (await client.find_workflow("the-child")).signal("go", "grown")
    await again.signal("own", "own")
    assert ["own", "grown"] == await asyncio.wait_for(again.result(), 20)
    await check_all(running)
