"""Reset beside others: children, parents, signals to other workflows, updates, continue-as-new."""

import asyncio

import pytest

from holdfast import Status, WorkflowContext, signal, update, workflow
from holdfast.engine.rules.rebuilding import points
from holdfast.model import events as e
from holdfast.store import reads
from tests.conftest import until
from tests.replay.recording import check_whole
from tests.unit.engine.records import check_all, reached, types, waiting, waiting_for


@workflow
async def child(ctx: WorkflowContext, name: str = "go") -> str:
    return await ctx.wait_for_signal(name, str)


@workflow
async def quick(ctx: WorkflowContext, number: int) -> int:
    return 2 * number


@workflow
async def failing(ctx: WorkflowContext) -> None:
    raise ValueError("no")


@workflow
async def parent(ctx: WorkflowContext) -> list[str]:
    born = ctx.child(child, workflow_id="the-child")
    own = await ctx.wait_for_signal("own", str)
    return [own, await born]


@workflow
async def listener(ctx: WorkflowContext) -> int:
    count = 0
    while await ctx.wait_for_signal("ping", str) != "end":
        count += 1
    return count


@workflow
async def busy_parent(ctx: WorkflowContext) -> list:
    """Children that end and fail, a child that was refused, signals that are delivered and not."""
    seen: list = [await ctx.child(quick, 3)]
    for lost in (ctx.child(failing), ctx.child("unknown-kind")):
        try:
            await lost
        except Exception as error:
            seen.append(type(error).__name__)
    await ctx.signal_external_workflow("listener", "ping", "one")
    await ctx.sleep(0.001)
    try:
        await ctx.signal_external_workflow("nobody", "ping", "two")
    except Exception as error:
        seen.append(type(error).__name__)
    both = await asyncio.gather(ctx.child(quick, 4), ctx.signal_external_workflow("listener", "ping", "three"))
    seen.append(both[0])
    seen.append(await ctx.wait_for_signal("own", str))
    return seen


async def open_parent(client):
    handle = await client.start_workflow(parent, workflow_id="the-parent")
    await waiting(handle)
    born = await client.find_workflow("the-child")
    await waiting(born)
    return handle, born


async def test_busy_parent_at_every_valid_event(engine):
    """Outcomes of the past are taken over: no child of it is started twice, no signal sent twice; the result stays."""
    running = await engine(workflows=[busy_parent, quick, failing, listener])
    client = running.client
    ears = await client.start_workflow(listener, workflow_id="listener")
    handle = await client.start_workflow(busy_parent)
    await waiting_for(handle, "signal")
    await handle.signal("own", "own")
    result = await handle.result(timeout=20)
    history = await handle.history()
    sent = [event.seq for event in history if isinstance(event.body, e.ExternalSignalInitiated)]
    delivered = [event for event in history if isinstance(event.body, e.ExternalSignalDelivered)]
    assert (3, 2) == (len(sent), len(delivered))
    heard = 2

    for seq in points(history):
        again = await handle.reset(to_event=seq)
        assert result == await again.result(timeout=20), seq
        new = await again.history()
        check_whole(busy_parent, new, again.id)
        # "nobody" is never delivered: of what was asked for after the cut, one or two signals go out again.
        answers = [event for event in new[seq:] if isinstance(event.body, e.ExternalSignalDelivered)]
        asked = {event.body.signal_no for event in new[seq:] if isinstance(event.body, e.ExternalSignalInitiated)}
        heard += sum(event.body.signal_no in asked for event in answers)
        started = [event.body.child_no for event in new if isinstance(event.body, e.ChildStarted)]
        assert [1, 2, 3, 4] == started
    await ears.signal("ping", "end")
    assert heard == await ears.result(timeout=20)
    await check_all(running)


async def test_an_open_child_gets_its_new_parent(engine):
    """It goes on undisturbed, and its end is told to the execution that goes on."""
    running = await engine(workflows=[parent, child])
    handle, born = await open_parent(running.client)
    again = await handle.reset(to_event=(await handle.history())[-1].seq)

    assert Status.TERMINATED == await handle.status()
    assert again.id == (await born.describe()).parent_execution_id
    await running.recover()
    assert (await born.status()).is_open
    assert not (await running.client.workflow(born.id).describe()).cancel_requested
    await born.signal("go", "grown")
    await again.signal("own", "own")
    assert ["own", "grown"] == await again.result(timeout=20)
    assert not [event for event in await handle.history() if isinstance(event.body, e.ChildCompleted)]
    await check_all(running)


async def test_its_fate_hangs_on_the_new_parent(engine):
    """When that one is terminated the child is asked to cancel, as it would have been before."""
    running = await engine(workflows=[parent, child])
    handle, born = await open_parent(running.client)
    again = await handle.reset(to_event=(await handle.history())[-1].seq)
    await again.terminate()

    await reached(born, Status.CANCELLED)
    heads = [await running.client.workflow(one.id).describe() for one in (handle, again)]
    assert [0, 0] == [head.open_children for head in heads]
    await check_all(running)


@workflow
async def leaving(ctx: WorkflowContext) -> str:
    """Ends before its child, which then lives on: nobody has said otherwise."""
    ctx.child(child, workflow_id="the-child")
    return await ctx.wait_for_signal("own", str)


async def test_its_fate_hangs_on_the_new_parent_though_the_old_one_had_left_it_alone(engine):
    """What the first parent's good end has made of it does not count for the second one's bad end."""
    running = await engine(workflows=[leaving, child])
    handle = await running.client.start_workflow(leaving)
    await waiting(handle)
    born = await running.client.find_workflow("the-child")
    seq = (await handle.history())[-1].seq
    await handle.signal("own", "own")
    await handle.result(timeout=20)
    await running.recover()
    assert (await born.status()).is_open
    again = await handle.reset(to_event=seq, reapply_signals=False)
    await again.terminate()

    await reached(born, Status.CANCELLED)
    await check_all(running)


async def test_a_child_of_the_part_that_is_undone_is_cancelled(engine):
    """Its parent has never asked for it any more; the new one asks for another."""
    running = await engine(workflows=[parent, child])
    handle, born = await open_parent(running.client)
    again = await handle.reset(to_event=1)

    await reached(born, Status.CANCELLED)
    await again.terminate()
    await check_all(running)


async def test_a_child_that_has_ended_since_brings_its_outcome(engine):
    """Whether its first parent has heard of it, or was closed by then."""
    running = await engine(workflows=[parent, child])
    handle, born = await open_parent(running.client)
    seq = (await handle.history())[-1].seq
    await born.signal("go", "grown")
    await born.result(timeout=20)
    await until(lambda: has(handle, "CHILD_COMPLETED"))
    again = await handle.reset(to_event=seq)
    await again.signal("own", "own")
    assert ["own", "grown"] == await again.result(timeout=20)

    other, young = await open_parent(running.client)
    seq = (await other.history())[-1].seq
    await other.terminate()
    await reached(young, Status.CANCELLED)
    retried = await other.reset(to_event=seq)
    assert "CHILD_FAILED" in await types(retried)
    await retried.terminate()
    await check_all(running)


async def has(handle, event_type):
    return event_type in await types(handle)


async def test_children_that_end_while_their_parent_is_reset(engine):
    """Many families, each reset at the moment its child ends: the end is told once, to the execution that goes on."""

    @workflow
    async def family(ctx: WorkflowContext) -> int:
        born = ctx.child(child)
        return await ctx.wait_for_signal("own", int) + len(await born)

    running = await engine(workflows=[family, child])
    client = running.client
    handles = [await client.start_workflow(family) for _ in range(30)]
    for handle in handles:
        await waiting(handle)
    kids = {}
    for view in (await client.list_workflows(kind="child")).items:
        kids[view.parent_execution_id] = client.workflow(view.workflow_execution_id)

    async def both(handle):
        seq = (await handle.history())[-1].seq
        _, again = await asyncio.gather(kids[handle.id].signal("go", "xyz"), handle.reset(to_event=seq))
        await again.signal("own", 4)
        return await again.result(timeout=30)

    assert [7] * 30 == await asyncio.gather(*map(both, handles))
    await check_all(running)


async def test_a_reset_child_answers_its_parent(engine):
    """The parent hears nothing of the reset, and gets the result of the execution that goes on."""
    running = await engine(workflows=[parent, child])
    handle, born = await open_parent(running.client)
    again = await born.reset(to_event=1)
    assert handle.id == (await again.describe()).parent_execution_id
    await running.recover()
    assert "CHILD_FAILED" not in await types(handle)
    await again.signal("go", "at last")
    await handle.signal("own", "own")

    assert ["own", "at last"] == await handle.result(timeout=20)
    (told,) = [event.body for event in await handle.history() if isinstance(event.body, e.ChildCompleted)]
    assert again.id == told.child_execution_id
    await check_all(running)


async def test_parent_and_child_reset_one_after_the_other(engine):
    """In either order."""
    running = await engine(workflows=[parent, child])
    for child_first in (True, False):
        handle, born = await open_parent(running.client)
        seq = (await handle.history())[-1].seq
        if child_first:
            young = await born.reset(to_event=1)
            old = await handle.reset(to_event=seq)
        else:
            old = await handle.reset(to_event=seq)
            young = await born.reset(to_event=1)
        assert old.id == (await young.describe()).parent_execution_id
        await young.signal("go", "grown")
        await old.signal("own", "own")
        assert ["own", "grown"] == await old.result(timeout=20)
    await check_all(running)


@workflow
class Account:
    def __init__(self) -> None:
        self.total = 0
        self.open = True

    async def run(self, ctx: WorkflowContext) -> int:
        await ctx.sleep(0.001)
        await ctx.wait_until(lambda: not self.open)
        return self.total

    @update
    def deposit(self, amount: int) -> int:
        self.total += amount
        return self.total

    @deposit.validator
    def positive(self, amount: int) -> None:
        if amount < 0:
            raise ValueError("negative")

    @signal
    def stop(self) -> None:
        self.open = False


async def test_updates_that_came_later_are_received_again(engine):
    """Those that were accepted; one that was rejected stays so."""
    running = await engine(workflows=[Account])
    handle = await running.client.start_workflow(Account)
    assert 5 == await handle.update("deposit", 5, timeout=20)
    with pytest.raises(Exception, match="negative"):
        await handle.update("deposit", -1, timeout=20)
    assert 12 == await handle.update("deposit", 7, timeout=20)
    again = await handle.reset(to_event=1)
    await again.signal("stop")

    assert 12 == await again.result(timeout=20)
    carried = [event.body for event in await again.history() if isinstance(event.body, e.UpdateRequested)]
    assert 2 == len(carried)
    assert all(body.carried_from is not None for body in carried)
    bare = await again.reset(to_event=1, reapply_signals=False)
    await bare.signal("stop")
    assert 0 == await bare.result(timeout=20)
    await check_all(running)


async def test_an_update_that_is_refused_while_its_execution_is_reset_stays_refused(engine):
    """Between the reading of the history and the reset: its caller was told, so it must not be done after all."""

    @workflow
    class Picky:
        async def run(self, ctx: WorkflowContext) -> None:
            await ctx.wait_for_signal("stop")

        @update
        async def add(self, ctx: WorkflowContext, number: int) -> int:
            return number

        @add.validator
        def positive(self, number: int) -> None:
            if number < 0:
                raise ValueError("negative")

    running = await engine(workflows=[Picky])
    client = running.client
    await client.pause_queue("default")
    handle = await client.start_workflow(Picky)
    asked = asyncio.ensure_future(handle.update("add", -1, timeout=20))
    await until(lambda: has(handle, "UPDATE_REQUESTED"))
    local = running._local.rebuilds
    store = local._store

    class Slow:
        """The first history that is read is an old one by the time it is used."""

        def __getattr__(self, name):
            return getattr(store, name)

        async def read(self, query):
            found = await store.read(query)
            if not isinstance(query, reads.History):
                return found
            local._store = store
            await client.resume_queue("default")
            await until(lambda: has(handle, "UPDATE_REJECTED"))
            return found

    local._store = Slow()
    again = await handle.reset(to_event=1)

    with pytest.raises(Exception, match="negative"):
        await asked
    assert "UPDATE_REQUESTED" not in await types(again)
    await again.signal("stop")
    await again.result(timeout=20)
    await check_all(running)


@workflow
async def runs_on(ctx: WorkflowContext, left: int) -> str:
    value = await ctx.wait_for_signal("next", str)
    if left:
        ctx.continue_as_new(left - 1)
    return value


async def test_handles_follow_continue_as_new_and_reset_alike(engine):
    """Signals through the first handle reach the last run, and so does its result."""
    running = await engine(workflows=[runs_on])
    client = running.client
    handle = await client.start_workflow(runs_on, 2, workflow_id="w")
    await handle.signal("next", "a")
    await until(lambda: has(handle, "WORKFLOW_CONTINUED_AS_NEW"))
    second = await client.find_workflow("w")
    third = await second.reset(to_event=1)
    await handle.signal("next", "b")
    await until(lambda: has(third, "WORKFLOW_CONTINUED_AS_NEW"))
    await handle.signal("next", "c")

    assert "c" == await handle.result(timeout=20)
    assert "c" == await running.query_result(handle.id)
    await check_all(running)


async def test_a_run_that_continued_can_be_taken_back_once_its_successors_are_closed(engine):
    """While one of them is open the workflow id is in use."""
    running = await engine(workflows=[runs_on])
    handle = await running.client.start_workflow(runs_on, 1, workflow_id="w")
    await handle.signal("next", "a")
    await handle.signal("next", "b")
    assert "b" == await handle.result(timeout=20)
    again = await handle.reset(to_event=1, reapply_signals=False)
    await again.signal("next", "c")
    await again.signal("next", "d")

    assert "d" == await again.result(timeout=20)
    await check_all(running)
