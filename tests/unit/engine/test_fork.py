"""Fork: a second execution with the past of another one, which goes on undisturbed."""

import asyncio

import pytest

from holdfast import Status, WorkflowContext, task, workflow
from holdfast.engine.rules.rebuilding import points
from holdfast.errors import ExecutionNotFound, InvalidRequest, InvalidResetPoint, WorkflowAlreadyRunning
from holdfast.model import events as e
from tests.replay.recording import check_whole
from tests.unit.engine.records import check_all, dump, waiting, waiting_for


@task
async def double(number: int) -> int:
    return 2 * number


@workflow
async def asks(ctx: WorkflowContext, number: int) -> list:
    found = await ctx.task(double, number)
    ctx.set_metadata(found=str(found))
    luck = ctx.random.randrange(10**9)
    first = await ctx.wait_for_signal("first", str)
    await ctx.sleep(0.001)
    second = await ctx.wait_for_signal("second", str)
    return [found, luck, first, second]


@workflow
async def child(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("go", str)


@workflow
async def parent(ctx: WorkflowContext) -> list[str]:
    born = ctx.child(child, workflow_id="the-child")
    own = await ctx.wait_for_signal("own", str)
    return [own, await born]


async def run(client):
    handle = await client.start_workflow(asks, 21, workflow_id="w", metadata={"team": "blue"})
    for name in ("first", "second"):
        await waiting_for(handle, "signal")
        await handle.signal(name, name)
    return handle, await handle.result(timeout=20)


async def test_at_every_event_where_a_turn_ends(engine, database_url):
    """With the later signals received again each fork has the same result; the original's rows stay as they are."""
    running = await engine(workflows=[asks], tasks=[double])
    handle, result = await run(running.client)
    history = await handle.history()
    original = await running.client.workflow(handle.id).describe()

    for seq in points(history):
        fork = await handle.fork(at_event=seq, reapply_signals=True)
        assert result == await fork.result(timeout=20), seq
        assert fork.id == fork.workflow_id
        new = await fork.history()
        expected = e.WorkflowReset(
            from_execution_id=handle.id, event_seq=seq, workflow_id=fork.workflow_id or "", fork=True
        )
        assert expected == new[seq].body
        check_whole(asks, new, fork.id)
    assert original == await running.client.workflow(handle.id).describe()
    assert history == await handle.history()
    assert handle.id == (await running.client.find_workflow("w")).id
    await check_all(running)


async def test_two_ways_from_one_point(engine):
    """An open execution and its fork get other signals, and end otherwise; tags and luck are shared up to the fork."""
    running = await engine(workflows=[asks], tasks=[double])
    handle = await running.client.start_workflow(asks, 1, workflow_id="w", metadata={"team": "blue"})
    await waiting_for(handle, "signal")
    seq = (await handle.history())[-1].seq
    await handle.signal("first", "here")
    fork = await handle.fork(at_event=seq, workflow_id="v")

    assert ("v", {"team": "blue", "found": "2"}) == (fork.workflow_id, (await fork.describe()).metadata)
    began = (await fork.history())[0].body
    assert ("w", "v") == (began.workflow_id, (await fork.history())[seq].body.workflow_id)
    assert fork.id == (await running.client.find_workflow("v")).id
    await fork.signal("first", "there")
    for both in (handle, fork):
        await both.signal("second", "end")
    one, other = await handle.result(timeout=20), await fork.result(timeout=20)
    assert (["here", "end"], ["there", "end"]) == (one[2:], other[2:])
    assert one[:2] == other[:2]
    assert (await handle.describe()).successor is None
    await check_all(running)


async def test_a_workflow_id_in_use_is_refused(engine, database_url):
    """Also the original's own, while it is open; nothing changes. One that is free again will do."""
    running = await engine(workflows=[asks], tasks=[double])
    client = running.client
    handle = await client.start_workflow(asks, 1, workflow_id="w")
    other = await client.start_workflow(asks, 1, workflow_id="x")
    await waiting_for(handle, "signal")
    await waiting_for(other, "signal")
    before = dump(database_url)

    for taken, holder in (("w", handle), ("x", other)):
        with pytest.raises(WorkflowAlreadyRunning) as refused:
            await handle.fork(at_event=1, workflow_id=taken)
        assert holder.id == refused.value.details["execution_id"]
    assert before == dump(database_url)
    await other.terminate()
    assert "x" == (await handle.fork(at_event=1, workflow_id="x")).workflow_id


async def test_bad_input(engine, database_url):
    """No event, one inside a turn, no name, no such execution: typed, and nothing changes."""
    running = await engine(workflows=[asks], tasks=[double])
    handle, _ = await run(running.client)
    history = await handle.history()
    inside = next(seq for seq in range(1, len(history)) if seq not in points(history))
    before = dump(database_url)

    for seq in (0, -3, len(history), len(history) + 1, inside):
        with pytest.raises(InvalidResetPoint) as refused:
            await handle.fork(at_event=seq)
        assert "at_event" == refused.value.field
    for odd in ("1", None):
        with pytest.raises(InvalidRequest) as no_number:
            await handle.fork(at_event=odd)
        assert "at_event" == no_number.value.field
    for name in ("", "x" * 300, "a\nb", 5):
        with pytest.raises(InvalidRequest) as unnamed:
            await handle.fork(at_event=1, workflow_id=name)
        assert "workflow_id" == unnamed.value.field
    with pytest.raises(ExecutionNotFound):
        await running.client.fork_workflow("nobody", at_event=1)
    assert before == dump(database_url)


async def test_an_open_child_can_not_be_shared(engine, database_url):
    """The error says which; once it has ended its outcome is the fork's, too."""
    running = await engine(workflows=[parent, child])
    client = running.client
    handle = await client.start_workflow(parent)
    await waiting(handle)
    born = await client.find_workflow("the-child")
    await waiting(born)
    seq = (await handle.history())[-1].seq
    before = dump(database_url)

    with pytest.raises(InvalidResetPoint, match="the-child") as refused:
        await handle.fork(at_event=seq)
    assert (1, born.id) == (refused.value.details["child_no"], refused.value.details["child_execution_id"])
    assert before == dump(database_url)
    await born.signal("go", "grown")
    await born.result(timeout=20)
    fork = await handle.fork(at_event=seq)
    await fork.signal("own", "fork")
    await handle.signal("own", "first")
    assert ["fork", "grown"] == await fork.result(timeout=20)
    assert ["first", "grown"] == await handle.result(timeout=20)
    await check_all(running)


async def test_a_fork_of_a_child_has_no_parent(engine):
    """The parent hears of its own child alone."""
    running = await engine(workflows=[parent, child])
    client = running.client
    handle = await client.start_workflow(parent)
    await waiting(handle)
    born = await client.find_workflow("the-child")
    await waiting(born)
    fork = await born.fork(at_event=1)

    assert (await fork.describe()).parent_execution_id is None
    await fork.signal("go", "astray")
    assert "astray" == await fork.result(timeout=20)
    assert Status.WAITING == await handle.status()
    await born.signal("go", "home")
    await handle.signal("own", "own")
    assert ["own", "home"] == await handle.result(timeout=20)
    await check_all(running)


async def test_many_forks_at_once(engine):
    """Twenty of one point, without workflow id: twenty executions."""
    running = await engine(workflows=[asks], tasks=[double])
    handle, result = await run(running.client)
    forks = await asyncio.gather(*(handle.fork(at_event=1, reapply_signals=True) for _ in range(20)))

    assert 20 == len({fork.id for fork in forks})
    assert [result] * 20 == await asyncio.gather(*(fork.result(timeout=20) for fork in forks))
    await check_all(running)
