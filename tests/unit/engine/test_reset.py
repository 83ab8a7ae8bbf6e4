"""Reset: an execution goes on from an earlier event, in a new execution with the same workflow id."""

import asyncio
from datetime import timedelta

import pytest

from holdfast import Engine, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.engine.rules.resets import points, spans
from holdfast.errors import ExecutionNotFound, InvalidRequest, InvalidResetPoint, WorkflowAlreadyRunning
from holdfast.model import events as e
from tests.conftest import until
from tests.replay.recording import check_whole
from tests.unit.engine.records import check_all, dump, types, waiting, waiting_for

RAN: list[str] = []


@task
async def double(number: int) -> int:
    RAN.append(f"task {number}")
    return 2 * number


def note(what: str) -> str:
    RAN.append(what)
    return what


@workflow
async def busy(ctx: WorkflowContext, base: int) -> list:
    """Steps, tasks, timers and signals, alone and side by side."""
    ctx.set_metadata(stage="begun")
    seen = [await ctx.run(note, "first"), await ctx.task(double, base)]
    seen += await asyncio.gather(ctx.task(double, base + 1), ctx.run(note, "beside"), ctx.sleep(0.01))
    seen.append(await ctx.wait_for_signal("one", str))
    ctx.set_metadata(stage="middle")
    seen.append(ctx.random.randrange(10**9))
    late = ctx.task(double, base + 2)
    seen.append(await ctx.wait_for_signal("two", str))
    seen.append(await late)
    won = await ctx.race([ctx.sleep(3600), ctx.wait_for_signal("three", str)])
    seen.append(won.result)
    seen.append(await ctx.run(note, "last"))
    return seen


async def run_busy(client, workflow_id="w"):
    handle = await client.start_workflow(busy, 10, workflow_id=workflow_id, metadata={"team": "blue"})
    for name in ("one", "two", "three"):
        await waiting(handle)
        await handle.signal(name, name.upper())
    return handle, await handle.result(timeout=20)


def of_type(history, cls):
    return [event for event in history if isinstance(event.body, cls)]


# --- where ------------------------------------------------------------------------------------------------------------


async def test_at_every_valid_event_the_result_is_the_same(engine):
    """A busy workflow, reset to every event where a turn ends: signals are received again, the result is the same, and
    the new history can be replayed."""
    running = await engine(workflows=[busy], tasks=[double])
    handle, result = await run_busy(running.client)
    history = await handle.history()
    valid = points(history)
    assert len(valid) > 15

    for seq in valid:
        again = await handle.reset(to_event=seq)
        assert result == await again.result(timeout=20), seq
        new = await again.history()
        copied = [(event.seq, event.at, event.body) for event in history[1:seq]]
        assert copied == [(event.seq, event.at, event.body) for event in new[1:seq]]
        assert (
            e.WorkflowReset(from_execution_id=handle.id, event_seq=seq, workflow_id=again.workflow_id or "")
            == new[seq].body
        )
        check_whole(busy, new, again.id)
    await check_all(running)


async def test_every_other_event_is_refused_and_nothing_changes(engine, database_url):
    """An event inside a turn's rows: the error names the turn and the nearest events that will do."""
    running = await engine(workflows=[busy], tasks=[double])
    handle, _ = await run_busy(running.client)
    history = await handle.history()
    valid = points(history)
    before = dump(database_url)

    inside = [seq for seq in range(1, len(history)) if seq not in valid]
    assert inside
    for seq in inside:
        with pytest.raises(InvalidResetPoint) as refused:
            await handle.reset(to_event=seq)
        details = refused.value.details
        span = next(span for span in spans(history) if span.first <= seq < span.last)
        assert (span.first, span.last) == (details["turn_first"], details["turn_last"])
        assert span.first - 1 == details["before"] in valid
        assert f"from {span.first} to {span.last}" in str(refused.value)
        if details["after"] is not None:
            assert details["after"] in valid
    assert before == dump(database_url)


@pytest.mark.parametrize("seq", [0, -1, 10_000])
async def test_a_number_that_is_no_event_is_refused(engine, database_url, seq):
    """Typed, naming the field and the numbers that exist; nothing changes."""
    running = await engine(workflows=[busy], tasks=[double])
    handle, _ = await run_busy(running.client)
    before = dump(database_url)

    with pytest.raises(InvalidResetPoint, match="to_event must be") as refused:
        await handle.reset(to_event=seq)
    assert ("to_event", 1) == (refused.value.field, refused.value.details["first_valid"])
    assert before == dump(database_url)


@pytest.mark.parametrize("seq", [2**70, 1.5, "3", True, None])
async def test_what_is_no_number_of_an_event_at_all_is_refused(engine, database_url, seq):
    """By the engine or, over HTTP, by the door already; nothing changes."""
    running = await engine(workflows=[busy], tasks=[double])
    handle, _ = await run_busy(running.client)
    before = dump(database_url)

    with pytest.raises(InvalidRequest, match="to_event") as refused:
        await handle.reset(to_event=seq)
    assert "to_event" == refused.value.field
    assert before == dump(database_url)


async def test_the_end_itself_can_not_be_kept(engine):
    """The last event of a closed history is no place to go on from."""
    running = await engine(workflows=[busy], tasks=[double])
    handle, _ = await run_busy(running.client)
    last = len(await handle.history())

    with pytest.raises(InvalidResetPoint, match="WORKFLOW_COMPLETED"):
        await handle.reset(to_event=last)


async def test_bad_names_and_unknown_executions(engine, database_url):
    """Refused with their own errors."""
    running = await engine(workflows=[busy], tasks=[double])
    handle, _ = await run_busy(running.client)
    before = dump(database_url)

    with pytest.raises(ExecutionNotFound):
        await running.client.reset_workflow("nobody", to_event=1)
    with pytest.raises(InvalidRequest) as refused:
        await handle.reset(to_event=1, reason=5)
    assert "reason" == refused.value.field
    assert before == dump(database_url)


# --- what -------------------------------------------------------------------------------------------------------------


async def test_an_open_execution_makes_way(engine):
    """It is terminated with the reason and names its successor; the new one has its workflow id, tags and random
    numbers, and is what the workflow id finds."""
    running = await engine(workflows=[busy], tasks=[double])
    client = running.client
    handle = await client.start_workflow(busy, 1, workflow_id="w", metadata={"team": "blue"}, priority=3)
    await waiting(handle)
    seq = (await handle.history())[-1].seq
    await handle.signal("one", "x")
    await waiting(handle)
    again = await handle.reset(to_event=seq, reason="try that again", reapply_signals=False)

    old = await handle.describe()
    assert (WorkflowStatus.TERMINATED, again.id) == (old.status, old.successor)
    end = (await handle.history())[-1].body
    assert e.WorkflowTerminated(reason="try that again", successor=again.id) == end
    new = await again.describe()
    assert ("w", "busy", 3) == (new.workflow_id, new.kind, new.priority)
    assert {"team": "blue", "stage": "begun"} == new.metadata
    assert again.id == (await client.find_workflow("w")).id
    assert handle.id == (await again.history())[0].body.seed
    assert [] == await handle.pending_tasks() == await handle.pending_timers()
    await waiting(again)
    await again.signal("one", "y")
    for name in ("two", "three"):
        await waiting(again)
        await again.signal(name, name)
    assert "y" == (await again.result(timeout=20))[5]
    await check_all(running)


async def test_signals_that_came_later_are_received_again_in_order(engine):
    """Each with the number it had; without, they are gone."""

    @workflow
    async def collect(ctx: WorkflowContext, wanted: int) -> list[str]:
        return [await ctx.wait_for_signal("item", str) for _ in range(wanted)]

    running = await engine(workflows=[collect])
    handle = await running.client.start_workflow(collect, 6)
    for value in "abcd":
        await waiting(handle)
        await handle.signal("item", value, request_id=f"r-{value}")
    await waiting(handle)
    history = await handle.history()
    second = of_type(history, e.SignalReceived)[1]
    point = max(seq for seq in points(history) if seq < second.seq)

    again = await handle.reset(to_event=point)
    carried = of_type((await again.history())[point:], e.SignalReceived)
    numbers = [event.seq for event in of_type(history, e.SignalReceived)[1:]]
    assert numbers == [event.body.carried_from for event in carried]
    await again.signal("item", "e")
    await again.signal("item", "f")
    assert list("abcdef") == await again.result(timeout=20)

    bare = await again.reset(to_event=point, reapply_signals=False)
    assert 1 == (await bare.describe()).signal_count
    for value in "vwxyz":
        await bare.signal("item", value)
    assert list("avwxyz") == await bare.result(timeout=20)
    await check_all(running)


async def test_signals_sent_while_it_is_reset_are_never_lost(engine):
    """Signals and a reset at once, again and again: through the first handle every value arrives, in order."""

    @workflow
    async def collect(ctx: WorkflowContext, wanted: int) -> list[int]:
        return [await ctx.wait_for_signal("item", int) for _ in range(wanted)]

    running = await engine(workflows=[collect])
    first = await running.client.start_workflow(collect, 200)

    async def send():
        for value in range(200):
            await first.signal("item", value)

    async def reset():
        handle = first
        for _ in range(20):
            handle = await handle.reset(to_event=1)
            await asyncio.sleep(0)
        return handle

    _, last = await asyncio.gather(send(), reset())
    assert list(range(200)) == await last.result(timeout=30)
    assert list(range(200)) == await first.result(timeout=30)
    await check_all(running)


async def test_open_work_of_the_past_is_run_again_and_finished_work_is_not(engine):
    """A task without outcome is put on its queue again, a timer keeps its time, a recorded step stays recorded."""
    gate = asyncio.Event()
    runs = []

    @task
    async def slow(name: str) -> str:
        runs.append(name)
        await gate.wait()
        return name

    @workflow
    async def both(ctx: WorkflowContext) -> list:
        done = await ctx.run(note, "step")
        late = ctx.task(slow, "late")
        timer = ctx.sleep(3600)
        await ctx.wait_for_signal("go")
        timer.cancel()
        return [done, await late]

    running = await engine(workflows=[both], tasks=[slow])
    handle = await running.client.start_workflow(both)
    await waiting(handle)
    await until(lambda: 1 == len(runs))
    (timer,) = await handle.pending_timers()
    RAN.clear()

    again = await handle.reset(to_event=(await handle.history())[-1].seq)
    await until(lambda: 2 == len(runs))
    (moved,) = await again.pending_timers()
    assert (timer.timer_no, timer.fire_at) == (moved.timer_no, moved.fire_at)
    assert [] == await handle.pending_timers()
    assert [1] == [row.attempt for row in await again.pending_tasks()]
    gate.set()
    await again.signal("go")
    assert ["step", "late"] == await again.result(timeout=20)
    assert [] == RAN
    await check_all(running)


async def test_a_stuck_execution_continues_with_new_code(engine):
    """New code that can't follow the history is parked; taken back to before the change, it completes."""

    @workflow(kind="changing")
    async def before(ctx: WorkflowContext) -> str:
        await ctx.task(double, 1)
        await ctx.sleep(0.001)
        await ctx.wait_for_signal("go")
        return "before"

    @workflow(kind="changing")
    async def after(ctx: WorkflowContext) -> str:
        await ctx.task(double, 1)
        await ctx.run(note, "instead of sleeping")
        return "after"

    first = await engine(workflows=[before], tasks=[double])
    handle = await first.client.start_workflow(before)
    await waiting_for(handle, "signal")
    history = await handle.history()
    await first.shutdown()
    second = await engine(workflows=[after], tasks=[double])
    handle = second.client.workflow(handle.id)
    await handle.signal("go")
    await until(lambda: is_stuck(handle))
    started = of_type(history, e.TimerStarted)[0].seq
    point = max(seq for seq in points(history) if seq < started)

    again = await handle.reset(to_event=point, reason="the code was changed")
    assert "after" == await again.result(timeout=20)
    await check_all(second)


async def is_stuck(handle):
    return await handle.status() is WorkflowStatus.STUCK


async def test_a_cancel_request_of_the_past_still_counts(engine):
    """One that came before the event is delivered; one that came after is not repeated."""
    running = await engine(workflows=[busy], tasks=[double])
    handle = await running.client.start_workflow(busy, 1)
    await waiting(handle)
    seq = (await handle.history())[-1].seq
    await handle.cancel("stop")
    await until(lambda: is_closed(handle))

    again = await handle.reset(to_event=seq)
    await waiting(again)
    assert not (await again.describe()).status.is_open or not of_type(await again.history(), e.CancelRequested)
    kept = await again.terminate()
    assert kept
    asked = of_type(await handle.history(), e.CancelRequested)[0].seq
    with_it = await handle.reset(to_event=asked)
    await until(lambda: is_closed(with_it))
    assert WorkflowStatus.CANCELLED == await with_it.status()
    await check_all(running)


async def is_closed(handle):
    return not (await handle.status()).is_open


# --- beside others ----------------------------------------------------------------------------------------------------


async def test_a_workflow_id_that_is_in_use_again_is_not_taken(engine, database_url):
    """The closed one can't come back while another open execution has its workflow id."""
    running = await engine(workflows=[busy], tasks=[double])
    handle, _ = await run_busy(running.client)
    other = await running.client.start_workflow(busy, 1, workflow_id="w")
    await waiting_for(other, "signal")
    before = dump(database_url)

    with pytest.raises(WorkflowAlreadyRunning) as refused:
        await handle.reset(to_event=1)
    assert other.id == refused.value.details["execution_id"]
    assert before == dump(database_url)


async def test_without_a_workflow_id_of_its_own_the_first_id_finds_it(engine):
    """The id of the first execution stands for its successors as it stood for itself."""
    running = await engine(workflows=[busy], tasks=[double])
    handle = await running.client.start_workflow(busy, 1)
    await waiting(handle)
    again = await handle.reset(to_event=1)

    assert handle.id == again.workflow_id
    assert again.id == (await running.client.find_workflow(handle.id)).id
    both = await running.client.list_workflows(workflow_id=handle.id)
    assert {handle.id, again.id} == {found.workflow_execution_id for found in both.items}


async def test_a_handle_follows(engine):
    """Signals, cancel, terminate and result through the first handle reach the last successor; its id stays."""
    running = await engine(workflows=[busy], tasks=[double])
    handle = await running.client.start_workflow(busy, 1)
    await waiting(handle)
    result = asyncio.ensure_future(handle.result(timeout=20))
    second = await handle.reset(to_event=1)
    third = await second.reset(to_event=1)
    for name in ("one", "two", "three"):
        await waiting(third)
        await handle.signal(name, name)

    assert await third.result(timeout=20) == await result
    assert handle.id != third.id
    assert not await handle.terminate()
    fourth = await third.reset(to_event=1)
    assert await handle.cancel()
    await until(lambda: is_closed(fourth))
    assert WorkflowStatus.CANCELLED == await fourth.status()
    fifth = await fourth.reset(to_event=1)
    assert await handle.terminate("enough")
    assert WorkflowStatus.TERMINATED == await fifth.status()
    await check_all(running)


async def test_a_repeated_request_answers_the_same(engine):
    """With a request id a retry of the call does not reset once more."""
    running = await engine(workflows=[busy], tasks=[double])
    handle = await running.client.start_workflow(busy, 1)
    await waiting(handle)

    first = await handle.reset(to_event=1, request_id="r")
    second = await handle.reset(to_event=1, request_id="r")
    assert first.id == second.id
    assert 2 == len((await running.client.list_workflows()).items)


async def test_resets_that_race_leave_one_open_execution(engine):
    """Ten at once: one execution is open in the end, and all others say how they ended."""
    running = await engine(workflows=[busy], tasks=[double])
    handle = await running.client.start_workflow(busy, 1, workflow_id="w")
    await waiting(handle)
    answers = await asyncio.gather(*(handle.reset(to_event=1) for _ in range(10)), return_exceptions=True)

    made = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert made
    assert all(isinstance(a, WorkflowAlreadyRunning) for a in answers if isinstance(a, BaseException))
    opened = [found for found in (await running.client.list_workflows()).items if found.status.is_open]
    assert 1 == len(opened)
    await check_all(running)


async def test_the_worker_that_held_it_can_record_nothing_more(engine):
    """A step that runs while its execution is reset ends in nothing; the new execution runs it again."""
    entered, go = asyncio.Event(), asyncio.Event()
    runs = []

    async def hold() -> int:
        runs.append(1)
        entered.set()
        await go.wait()
        return len(runs)

    @workflow
    async def holding(ctx: WorkflowContext) -> int:
        return await ctx.run(hold)

    running = await engine(workflows=[holding])
    handle = await running.client.start_workflow(holding)
    await entered.wait()
    again = await handle.reset(to_event=1)
    await until(lambda: 2 == len(runs))
    go.set()

    assert 2 == await again.result(timeout=20)
    assert ["WORKFLOW_STARTED", "WORKFLOW_TERMINATED"] == await types(handle)
    await check_all(running)


async def test_the_deadline_stays_while_it_lies_ahead(engine):
    """Of an open execution the new one has the same; of one whose time is over it gets as long again."""
    now = [1_800_000_000_000_000]
    running = await engine(workflows=[busy], tasks=[double], clock=lambda: now[0])
    handle = await running.client.start_workflow(busy, 1, execution_timeout=timedelta(hours=2))
    (first,) = await deadlines(running, handle)
    now[0] += 3600 * 10**6
    again = await handle.reset(to_event=1)
    assert [first.fire_at] == [row.fire_at for row in await deadlines(running, again)]

    now[0] += 2 * 3600 * 10**6
    await running.recover()
    await until(lambda: is_closed(again))
    assert WorkflowStatus.TIMED_OUT == await again.status()
    late = await again.reset(to_event=1)
    assert [now[0] + 2 * 3600 * 10**6] == [row.fire_at for row in await deadlines(running, late)]


async def deadlines(running: Engine, handle):
    return [row for row in await running.storage.timers("default", handle.id) if row.timer_no == 0]


async def test_its_past_is_lived_through_with_the_ids_it_had_then(engine):
    """Code that looks at its own ids goes the same way again; what comes after the reset sees the new ones."""

    async def told(text: str) -> str:
        return text

    @workflow
    async def looks(ctx: WorkflowContext) -> list[str]:
        seen = [ctx.info.workflow_execution_id]
        await ctx.run(told, "x", name=f"step of {ctx.info.workflow_execution_id}")
        await ctx.signal_external_workflow(ctx.info.workflow_id, "note", ctx.info.workflow_execution_id)
        await ctx.wait_for_signal("go")
        seen.append(ctx.info.workflow_execution_id)
        await ctx.run(told, "y", name=f"step of {ctx.info.workflow_execution_id}")
        await ctx.wait_for_signal("go")
        return [*seen, ctx.info.workflow_execution_id]

    running = await engine(workflows=[looks])
    first = await running.client.start_workflow(looks)
    await waiting_for(first, "signal")
    second = await first.reset(to_event=(await first.history())[-1].seq)
    await second.signal("go")
    await waiting_for(second, "signal")
    third = await second.fork(at_event=(await second.history())[-1].seq, workflow_id="another")
    await third.signal("go")
    assert [first.id, second.id, third.id] == await third.result(timeout=20)
    check_whole(looks, await third.history(), third.id)
