"""`ctx.saga`: what succeeded is undone, the last first, whatever happens meanwhile."""

import asyncio
from functools import partial

import pytest
from msgspec import Raw

from holdfast import RetryPolicy, WorkflowContext, task, workflow
from holdfast.errors import CompensationFailed, InvalidRequest, TaskFailed, WorkflowCancelled, WorkflowFailed
from holdfast.model import events as e
from holdfast.model.commands import CancelTask, ScheduleTask, StartTimer
from holdfast.model.values import Failure
from tests.conftest import until
from tests.replay.recording import Commits, check_cuts, check_invariants, check_whole, machine_for

ONCE = RetryPolicy(max_attempts=1)
DONE: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done():
    DONE.clear()


@task(retry=ONCE)
async def book(what: str) -> str:
    DONE.append(f"book {what}")
    return f"booked {what}"


@task(retry=ONCE)
async def cancel_booking(booking: str) -> str:
    DONE.append(f"undo {booking}")
    return f"undone {booking}"


@task(retry=ONCE)
async def fails(what: str) -> str:
    DONE.append(f"fail {what}")
    raise ValueError(what)


@task(retry=ONCE)
async def never() -> None:
    await asyncio.Event().wait()


TASKS = [book, cancel_booking, fails, never]


async def ended(engine, fn, *arguments):
    """The handle of a closed execution whose history survives a cut at every place."""
    running = await engine(workflows=[fn], tasks=TASKS)
    commits = Commits(running)
    handle = await running.client.start_workflow(fn, *arguments)
    return await replays(fn, handle, commits)


async def replays(fn, handle, commits):
    await until(lambda: is_closed(handle))
    history = await handle.history()
    check_invariants(history)
    check_whole(fn, history, handle.id)
    check_cuts(fn, history, handle.id, commits.cuts(handle.id, len(history)))
    return handle


async def is_closed(handle):
    return not (await handle.status()).is_open


async def waits_for(handle, *names):
    return set(names) <= {wait.name for wait in (await handle.describe()).waiting_for}


async def scheduled(handle):
    """The kinds of the recorded tasks, in order."""
    return [event.body.kind for event in await handle.history() if isinstance(event.body, e.TaskScheduled)]


def undone():
    return [line.removeprefix("undo booked ") for line in DONE if line.startswith("undo")]


# --- failures -----------------------------------------------------------------------------------------------------


@workflow
async def trip(ctx: WorkflowContext, fail_at: int) -> list[str]:
    bookings = []
    async with ctx.saga() as saga:
        for number in range(4):
            work = ctx.task(fails if number == fail_at else book, str(number))
            bookings.append(await saga.do(work, undo=lambda booking: ctx.task(cancel_booking, booking)))
    return bookings


async def test_nothing_is_undone_after_success(engine):
    """The block ends well: no compensation, no timer, only the work is in the record."""
    handle = await ended(engine, trip, -1)

    assert [f"booked {number}" for number in range(4)] == await handle.result()
    assert ["book"] * 4 == await scheduled(handle)
    assert [] == undone()


@pytest.mark.parametrize("fail_at", range(4))
async def test_failure_undoes_what_came_before_in_reverse(engine, fail_at):
    """At whichever place the work fails; the original error goes on."""
    handle = await ended(engine, trip, fail_at)

    with pytest.raises(WorkflowFailed, match=f"ValueError: {fail_at}") as caught:
        await handle.result()
    assert "TaskFailed" == caught.value.error_type
    assert [str(number) for number in reversed(range(fail_at))] == undone()
    assert ["book"] * fail_at + ["fails"] + ["cancel_booking"] * fail_at == await scheduled(handle)


async def test_any_exception_undoes(engine):
    """An error of the workflow's own code too, and what is registered by hand, plain functions among it."""

    @workflow
    async def mixed(ctx: WorkflowContext) -> list[str]:
        seen: list[str] = []

        async def emit_chunk(word: str) -> None:
            seen.append(await ctx.run(str.upper, word))

        try:
            async with ctx.saga() as saga:
                saga.undo(seen.append, "first")
                saga.undo(emit_chunk, "second")
                await saga.do(ctx.run(str, 3), undo=lambda: emit_chunk("third"))
                await saga.do(ctx.run(str, 4), undo=partial(ctx.task, cancel_booking))
                raise KeyError("mine")
        except KeyError:
            return seen
        return []

    handle = await ended(engine, mixed)

    assert ["THIRD", "SECOND", "first"] == await handle.result()
    assert ["undo 4"] == DONE


async def test_parameter_with_a_default_does_not_take_the_result(engine):
    """`lambda n=n: …`, the usual way to keep a loop's value, gets nothing."""

    @workflow
    async def keeps(ctx: WorkflowContext) -> None:
        async with ctx.saga() as saga:
            for word in ("a", "b"):
                await saga.do(ctx.task(book, "x"), undo=lambda word=word: ctx.task(cancel_booking, word))
            raise KeyError

    await ended(engine, keeps)

    assert ["undo b", "undo a"] == DONE[2:]


async def test_failed_compensation_does_not_stop_the_others(engine):
    """All run; then CompensationFailed carries every failure, the original error is its cause."""

    @workflow
    async def unlucky(ctx: WorkflowContext) -> list[object]:
        try:
            async with ctx.saga() as saga:
                await saga.do(ctx.task(book, "a"), undo=lambda b: ctx.task(cancel_booking, b))
                await saga.do(ctx.task(book, "b"), undo=lambda b: ctx.task(fails, b))
                await saga.do(ctx.task(book, "c"), undo=lambda b: ctx.task(cancel_booking, b))
                await saga.do(ctx.task(book, "d"), undo=lambda b: 17)
                await ctx.task(fails, "work")
        except CompensationFailed as error:
            kinds = [type(failure).__name__ for failure in error.failures]
            return [kinds, type(error.__cause__).__name__, str(error)]
        return []

    handle = await ended(engine, unlucky)

    kinds, cause, message = await handle.result()
    assert (["InvalidRequest", "TaskFailed"], "TaskFailed") == (kinds, cause)
    assert message.startswith("2 compensation(s) failed after TaskFailed")
    assert ["c", "a"] == undone()


async def test_uncaught_failed_compensation_fails_the_workflow_with_both_reasons(engine):
    """The record names the compensation's failure and what caused it all."""

    @workflow
    async def unlucky(ctx: WorkflowContext) -> None:
        async with ctx.saga() as saga:
            await saga.do(ctx.task(book, "a"), undo=lambda b: ctx.task(fails, b))
            raise KeyError("the reason")

    handle = await ended(engine, unlucky)

    with pytest.raises(WorkflowFailed) as caught:
        await handle.result()
    failure = caught.value.details["failure"]
    assert ("CompensationFailed", "compensation_failed", "KeyError") == (failure.type, failure.code, failure.cause.type)


async def test_parallel_compensations_run_together(engine):
    """All are scheduled in the turn in which the block fails, the last first; failures are collected as well."""

    @workflow
    async def together(ctx: WorkflowContext) -> int:
        try:
            async with ctx.saga(parallel=True) as saga:
                for word in ("a", "b", "c"):
                    await saga.do(ctx.task(book, word), undo=lambda b: ctx.task(cancel_booking, b))
                saga.undo(lambda: ctx.task(fails, "1"))
                saga.undo(lambda: ctx.task(fails, "2"))
                raise KeyError
        except CompensationFailed as error:
            return len(error.failures)
        return 0

    handle = await ended(engine, together)

    assert 2 == await handle.result()
    bodies = [event.body for event in await handle.history()]
    compensations = [body for body in bodies if isinstance(body, e.TaskScheduled)][3:]
    assert 1 == len({body.up_to for body in compensations})
    assert [b'["2"]', b'["1"]', b'["booked c"]'] == [bytes(body.input) for body in compensations[:3]]
    assert ["a", "b", "c"] == sorted(undone())


# --- work side by side --------------------------------------------------------------------------------------------


async def test_gathered_work_that_continues_is_given_up_and_what_succeeded_is_undone(engine):
    """`gather` leaves the others running when one fails: the saga takes them back before it undoes."""

    @workflow
    async def side_by_side(ctx: WorkflowContext) -> None:
        async with ctx.saga() as saga:
            both = saga.do(ctx.task(book, "a"), undo=lambda b: ctx.task(cancel_booking, b))
            await both
            await asyncio.gather(
                saga.do(ctx.task(never), undo=lambda: ctx.task(cancel_booking, "never")),
                saga.do(ctx.task(fails, "b"), undo=lambda: ctx.task(cancel_booking, "failed")),
            )

    handle = await ended(engine, side_by_side)

    with pytest.raises(WorkflowFailed, match="ValueError: b"):
        await handle.result()
    assert ["a"] == undone()
    assert [1] == [event.body.task_no - 1 for event in await handle.history() if type(event.body).TYPE == CANCEL_TASK]


CANCEL_TASK = e.TaskCancelRequested.TYPE


async def test_coroutines_and_task_groups(engine):
    """A coroutine is work like any other; a failing sibling cancels it, and what it had done itself is undone."""

    @workflow
    async def grouped(ctx: WorkflowContext) -> list[str]:
        order: list[str] = []
        waiting = asyncio.Event()

        async def two_parts() -> str:
            try:
                waiting.set()
                await ctx.task(never)
            finally:
                await ctx.task(book, "cleaned up")
                order.append("cleaned up")
            return "never"

        async def breaks() -> None:
            await waiting.wait()
            await ctx.task(fails, "sibling")

        async def note(word: str) -> None:
            order.append(word)

        try:
            async with ctx.saga() as saga:
                await saga.do(ctx.task(book, "a"), undo=lambda b: note(f"undo {b}"))
                async with asyncio.TaskGroup() as group:
                    group.create_task(saga.do(two_parts(), undo=lambda: note("must not be undone")))
                    group.create_task(breaks())
        except* TaskFailed:
            order.append("failed")
        return order

    handle = await ended(engine, grouped)

    assert ["cleaned up", "undo booked a", "failed"] == await handle.result()


# --- cancel and time-outs -----------------------------------------------------------------------------------------


@workflow
async def slow_trip(ctx: WorkflowContext) -> None:
    async with ctx.saga() as saga:
        for word in ("a", "b"):
            await saga.do(ctx.task(book, word), undo=lambda b: undo_on_signal(ctx, b))
        await saga.do(ctx.task(never), undo=lambda: ctx.task(cancel_booking, "never"))


async def undo_on_signal(ctx: WorkflowContext, booking: str) -> None:
    await ctx.wait_for_signal("go")
    await ctx.task(cancel_booking, booking)


async def test_cancel_during_work_and_again_during_compensation(engine):
    """The work under way is taken back, the rest undone; a second cancel answers False, and clean-up goes on."""
    running = await engine(workflows=[slow_trip], tasks=TASKS)
    commits = Commits(running)
    handle = await running.client.start_workflow(slow_trip)
    await until(lambda: waits_for(handle, "never"))

    assert await handle.cancel("changed my mind")
    await until(lambda: waits_for(handle, "go"))
    assert not await handle.cancel()
    assert [] == [row for row in await handle.pending_tasks() if row.kind == "never"]
    await handle.signal("go")
    await until(lambda: len(undone()) == 1)
    assert not await handle.cancel()
    await handle.signal("go")

    await replays(slow_trip, handle, commits)
    with pytest.raises(WorkflowCancelled, match="changed my mind"):
        await handle.result()
    assert ["b", "a"] == undone()


async def test_cancel_during_the_compensation_of_a_failure(engine):
    """Clean-up is finished, then the cancel counts: it is not lost."""

    @workflow
    async def fails_first(ctx: WorkflowContext) -> None:
        try:
            async with ctx.saga() as saga:
                await saga.do(ctx.task(book, "a"), undo=lambda b: undo_on_signal(ctx, b))
                raise KeyError("first")
        except KeyError:
            await ctx.wait_for_signal("for ever")

    running = await engine(workflows=[fails_first], tasks=TASKS)
    commits = Commits(running)
    handle = await running.client.start_workflow(fails_first)
    await until(lambda: waits_for(handle, "go"))
    assert await handle.cancel()
    await handle.signal("go")

    await replays(fails_first, handle, commits)
    with pytest.raises(WorkflowCancelled):
        await handle.result()
    assert ["a"] == undone()


@workflow
async def in_time(ctx: WorkflowContext, then: str) -> str:
    async def slowly(booking: str) -> None:
        await ctx.sleep(0.2)
        await ctx.task(cancel_booking, booking)

    try:
        async with asyncio.timeout(None) as limit, ctx.saga() as saga:
            await saga.do(ctx.task(book, "a"), undo=slowly)
            limit.reschedule(asyncio.get_running_loop().time() + 0.05)
            await (ctx.task(fails, "now") if then == "fail" else ctx.task(never))
    except TimeoutError:
        return "too late"
    return "?"


@pytest.mark.parametrize("then", ["fail", "hang"])
async def test_timeout_around_the_block(engine, then):
    """Passing during work it undoes; passing during compensation it can't cut that short."""
    assert "too late" == await (await ended(engine, in_time, then)).result()
    assert ["a"] == undone()


async def test_cancelled_work_caught_inside_the_block(engine):
    """A time-out around one piece of work, handled in the block: the saga goes on and ends well."""

    @workflow
    async def plan_b(ctx: WorkflowContext) -> str:
        async with ctx.saga() as saga:
            try:
                async with asyncio.timeout(0.05):
                    await saga.do(ctx.task(never), undo=lambda: ctx.task(cancel_booking, "never"))
            except TimeoutError:
                return await saga.do(ctx.task(book, "b"), undo=lambda b: ctx.task(cancel_booking, b))
        return "?"

    handle = await ended(engine, plan_b)

    assert "booked b" == await handle.result()
    assert [] == undone()


@workflow
async def part(ctx: WorkflowContext, stubborn: bool) -> str:
    try:
        await ctx.wait_for_signal("for ever")
    except asyncio.CancelledError:
        await ctx.task(book, "last words")
        if not stubborn:
            raise
    return "child"


@workflow
async def whole(ctx: WorkflowContext, stubborn: bool) -> None:
    async with ctx.saga() as saga:
        await saga.do(ctx.task(book, "a"), undo=lambda b: ctx.task(cancel_booking, b))
        await saga.do(ctx.child(part, stubborn), undo=lambda b: ctx.task(cancel_booking, f"booked {b}"))


@pytest.mark.parametrize(("stubborn", "expected"), [(False, ["a"]), (True, ["child", "a"])])
async def test_child_is_asked_to_stop_and_its_end_waited_for(engine, stubborn, expected):
    """It cleans up before anything is undone; one that ends well in spite of the cancel is undone, too."""
    running = await engine(workflows=[part, whole], tasks=TASKS)
    commits = Commits(running)
    handle = await running.client.start_workflow(whole, stubborn)
    await until(lambda: waits_for(handle, "part"))
    assert await handle.cancel()

    await replays(whole, handle, commits)
    with pytest.raises(WorkflowCancelled):
        await handle.result()
    assert ["book a", "book last words", *(f"undo booked {what}" for what in expected)] == DONE


# --- a result that races the cancel -------------------------------------------------------------------------------


def event(seq: int, body: e.EventBody) -> e.HistoryEvent:
    return e.HistoryEvent(seq=seq, at=seq, body=body)


def started() -> e.HistoryEvent:
    return event(1, e.WorkflowStarted(kind="racing", version="1", workflow_id="w", queue="default", input=Raw(b"null")))


@workflow
async def racing(ctx: WorkflowContext) -> None:
    async with ctx.saga() as saga:
        await saga.do(ctx.task(book, "a"), undo=lambda b: ctx.task(cancel_booking, b))


@pytest.mark.parametrize("later_turn", [False, True])
def test_result_recorded_before_the_work_was_taken_back_is_undone(later_turn):
    """Whichever is recorded first wins: the result came after the cancel, but before the task was taken back."""
    machine = machine_for(racing)
    machine.feed(started())
    machine.turn()
    machine.feed(event(3, e.CancelRequested(reason="")))
    result = event(4, e.TaskCompleted(task_no=1, attempt=1, result=Raw(b'"booked a"'), worker="w"))
    if not later_turn:
        machine.feed(result)
    commands = machine.turn().commands
    assert [CancelTask, StartTimer] == [type(command) for command in commands]
    if later_turn:
        machine.feed(result)
        assert [] == machine.turn().commands

    machine.feed(event(7, e.TimerFired(timer_no=1)))

    (undo,) = machine.turn().commands
    assert isinstance(undo, ScheduleTask)
    assert ("cancel_booking", b'["booked a"]') == (undo.kind, bytes(undo.input))
    machine.close()


@workflow
async def racing_step(ctx: WorkflowContext) -> None:
    async with ctx.saga() as saga:
        await saga.do(ctx.run(str, "a"), undo=lambda result: ctx.task(cancel_booking, result))


def test_recorded_result_of_a_dropped_step_is_undone():
    """A step that ended while the cancel was on its way is in the record: it counts as well."""
    machine = machine_for(racing_step)
    machine.feed(started())
    machine.turn()
    (step,) = machine.unstarted_steps()
    machine.feed(event(3, e.CancelRequested(reason="")))
    machine.feed(event(4, e.StepCompleted(up_to=1, step_no=step.step_no, name=step.name, result=Raw(b'"a"'))))
    turn = machine.turn()
    assert [step.step_no] == turn.dropped_steps

    machine.feed(event(7, e.TimerFired(timer_no=1)))

    assert ["ScheduleTask"] == [type(command).__name__ for command in machine.turn().commands]
    machine.close()


@pytest.mark.parametrize("failed", [False, True])
def test_work_that_was_taken_back_first_is_not_undone(failed):
    """No result, or a failure, by the time the timer fires: there is nothing to undo."""
    machine = machine_for(racing)
    machine.feed(started())
    machine.turn()
    machine.feed(event(3, e.CancelRequested(reason="")))
    machine.turn()
    if failed:
        failure = Failure(type="ValueError", message="no")
        machine.feed(event(4, e.TaskFailed(task_no=1, attempt=1, failure=failure, worker="w")))
    machine.feed(event(7, e.TimerFired(timer_no=1)))

    turn = machine.turn()

    assert turn.closing
    assert ["CancelWorkflow"] == [type(command).__name__ for command in turn.commands]
    machine.close()


# --- nesting ------------------------------------------------------------------------------------------------------


@workflow
async def nested(ctx: WorkflowContext, fail: str) -> list[str]:
    order: list[str] = []

    async def note(word: str) -> None:
        order.append(await ctx.run(str, word))

    try:
        async with ctx.saga() as outer:
            outer.undo(note, "outer 1")
            async with outer.nested() as inner:
                inner.undo(note, "joined 1")
                inner.undo(note, "joined 2")
                assert fail != "inner", "inner"
            async with ctx.saga() as alone:
                alone.undo(note, "alone")
                assert fail != "alone", "alone"
            outer.undo(note, "outer 2")
            assert fail != "outer", "outer"
    except AssertionError:
        order.append("failed")
    return order


@pytest.mark.parametrize(
    ("fail", "expected"),
    [
        ("nothing", []),
        ("inner", ["joined 2", "joined 1", "outer 1", "failed"]),
        ("alone", ["alone", "joined 2", "joined 1", "outer 1", "failed"]),
        ("outer", ["outer 2", "joined 2", "joined 1", "outer 1", "failed"]),
    ],
)
async def test_sagas_in_sagas(engine, fail, expected):
    """One made by `saga.nested()` hands its compensations over when it succeeds; one made by `ctx.saga()` is done."""
    assert expected == await (await ended(engine, nested, fail)).result()


async def test_failures_of_nested_compensations_are_reported_by_the_outer(engine):
    """They are the outer's own by then."""

    @workflow
    async def deep(ctx: WorkflowContext) -> list[str]:
        try:
            async with ctx.saga() as outer:
                async with outer.nested(parallel=True) as inner:
                    inner.undo(lambda: ctx.task(fails, "inner"))
                    inner.undo(lambda: ctx.task(cancel_booking, "inner"))
                outer.undo(lambda: ctx.task(fails, "outer"))
                raise KeyError
        except CompensationFailed as error:
            return [str(failure).rpartition(" ")[2] for failure in error.failures]
        return []

    handle = await ended(engine, deep)

    assert ["outer", "inner"] == await handle.result()
    assert ["undo inner"] == [line for line in DONE if line.startswith("undo")]


# --- programs at fault, and refusals ------------------------------------------------------------------------------


async def test_program_at_fault_undoes_nothing(engine):
    """It is stuck and goes on after a fixed deploy: its bookings must still be there then."""
    mended: list[bool] = []

    @workflow
    async def not_durable(ctx: WorkflowContext) -> str:
        async with ctx.saga() as saga:
            booking = await saga.do(ctx.task(book, "a"), undo=lambda b: ctx.task(cancel_booking, b))
            if not mended:
                await asyncio.get_running_loop().run_in_executor(None, str)
            return booking

    running = await engine(workflows=[not_durable], tasks=TASKS)
    handle = await running.client.start_workflow(not_durable)

    async def stuck() -> bool:
        return (await handle.describe()).stuck is not None

    await until(stuck)
    mended.append(True)
    await until(handle.resume)

    assert "booked a" == await handle.result(timeout=20)
    assert ["book a"] == DONE


async def test_eviction_runs_nothing(engine):
    """A program that is thrown away in its block leaves no trace; nothing is asked for."""
    machine = machine_for(racing)
    machine.feed(started())
    machine.turn()

    machine.close()

    assert [] == DONE


@task
async def plain() -> None: ...


REFUSED = {
    "work": lambda saga, ctx: saga.do(17, undo=lambda: None),
    "undo": lambda saga, ctx: saga.do(ctx.task(book, "a"), undo=plain()),
    "undo ": lambda saga, ctx: saga.do(ctx.task(book, "a"), undo=cancel_booking),
    "undo  ": lambda saga, ctx: saga.do(ctx.task(book, "a"), undo=lambda a, b: None),
    "undo   ": lambda saga, ctx: saga.do(plain(), undo=lambda *, a: None),
    "fn": lambda saga, ctx: saga.undo("no function"),
    "fn ": lambda saga, ctx: saga.undo(cancel_booking, "a"),
    "args": lambda saga, ctx: saga.undo(lambda a: None),
    "saga": lambda saga, ctx: saga.__aenter__(),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_refusals(engine, what):
    """Each names its field; what was started with it is taken back and nothing is registered."""

    @workflow
    async def wrong(ctx: WorkflowContext) -> str:
        async with ctx.saga() as saga:
            try:
                refused = REFUSED[what](saga, ctx)
                if refused is not None:
                    await refused
            except InvalidRequest as error:
                return error.field
        return "?"

    handle = await ended(engine, wrong)

    assert what.strip() == await handle.result()
    assert [] == DONE


async def test_outside_its_block(engine):
    """Before it is entered and after it is left, a saga takes nothing."""

    @workflow
    async def outside(ctx: WorkflowContext) -> list[str]:
        saga = ctx.saga()
        found = []
        for _ in range(2):
            for use in (lambda: saga.undo(list), saga.nested, lambda: saga.do(ctx.sleep(60), undo=list)):
                try:
                    used = use()
                    if asyncio.iscoroutine(used):
                        await used
                except InvalidRequest as error:
                    found.append(error.field)
            if len(found) == 3:
                async with saga:
                    pass
        return found

    assert ["saga"] * 6 == await (await ended(engine, outside)).result()
