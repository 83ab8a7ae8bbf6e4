"""Replay recreates the recorded turns: what a program saw live is what it sees again, wherever its history was cut."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from holdfast import EngineConfig, RetryPolicy, WorkerConfig, WorkflowContext, task, workflow
from holdfast.errors import BlockedForever, DeterminismError, StepFailed, TaskFailed
from holdfast.model import events as e
from holdfast.model.commands import CancelTask, CompleteWorkflow, ScheduleTask, StartTimer
from tests.conftest import QUICK, until
from tests.replay.recording import (
    Commits,
    check_cuts,
    check_invariants,
    check_whole,
    machine_for,
    replayed,
    rows_of,
    turns_of,
)

# --- histories of real runs -------------------------------------------------------------------------------------------


class Stage:
    """One engine whose tasks and steps can signal the execution they belong to."""

    client: Any


STAGE = Stage()


@task
async def reply(execution_id: str, text: str, signals: list[str]) -> str:
    """Answers; meanwhile the signals arrive."""
    for name in signals:
        await STAGE.client.signal_workflow(execution_id, name, f"{name} during {text}")
    return text.upper()


@task(retry=RetryPolicy(initial_interval_s=0.0, max_attempts=2))
async def fail(text: str) -> None:
    raise ValueError(text)


async def send(execution_id: str, *names: str) -> int:
    """A step during which signals arrive."""
    for name in names:
        await STAGE.client.signal_workflow(execution_id, name, f"{name} during a step")
    return len(names)


def refuse() -> None:
    raise LookupError("no")


@workflow
async def steered_conversation(ctx: WorkflowContext) -> list[object]:
    """Every decision is taken by looking at the queue."""
    seen: list[object] = []
    me = ctx.info.workflow_execution_id
    while "end" not in str(seen):
        seen.append([ctx.has_signal("message"), ctx.pending_signal_count("aside"), str(ctx.now())])
        first = await ctx.wait_for_signal("message")
        rest = await ctx.drain_signals("message")
        seen += [first, rest]
        if ctx.has_signal("aside"):
            seen.append(await ctx.drain_signals("aside"))
            seen.append(await ctx.task(reply, me, f"aside {len(seen)}", ["message"]))
        elif len(rest) % 2:
            seen.append(await ctx.task(reply, me, "odd", ["aside", "message"]))
        else:
            seen.append(await ctx.task(reply, me, f"even {ctx.random.random()}", []))
    return seen


@workflow
async def everything_at_once(ctx: WorkflowContext) -> list[object]:
    """Tasks, timers and signals mixed, some cancelled, some failing."""
    me = ctx.info.workflow_execution_id
    seen: list[object] = []

    async def listen() -> None:
        while True:
            seen.append([await ctx.wait_for_signal("message"), ctx.pending_signal_count("message"), str(ctx.now())])

    listener = asyncio.create_task(listen())
    seen.append(
        await asyncio.gather(ctx.task(reply, me, "a", ["message"]), ctx.sleep(0.002), ctx.task(reply, me, "b", []))
    )
    try:
        await asyncio.wait_for(ctx.wait_for_signal("never"), 0.003)
    except TimeoutError:
        seen.append(ctx.has_signal("message"))
    try:
        await ctx.task(fail, "no")
    except TaskFailed as error:
        seen.append(error.attempts)
    racing: list[asyncio.Future[Any]] = [
        ctx.task(reply, me, "c", ["message", "message"]),
        ctx.sleep(60),
        ctx.task("nobody knows it"),
    ]
    winner, losers = await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
    for each in losers:
        each.cancel()
    seen.append([each.result() for each in winner])
    try:
        seen.append(await ctx.wait_for_signal("late", timeout=0.002))
    except TimeoutError:
        seen.append(await ctx.wait_for_signal("last"))
    listener.cancel()
    return seen


@workflow
async def steps_and_signals(ctx: WorkflowContext) -> list[object]:
    """Steps during which signals arrive, alone and several at a time, some failing."""
    me = ctx.info.workflow_execution_id
    seen: list[object] = [await ctx.run(send, me, "a", "b")]
    seen.append([ctx.has_signal("a"), ctx.pending_signal_count("b"), str(ctx.now())])
    seen.append(await asyncio.gather(ctx.run(send, me, "a"), ctx.run(abs, -3), ctx.run(send, me, "b", "b")))
    seen.append([await ctx.drain_signals("a"), ctx.pending_signal_count("b")])
    try:
        await ctx.run(refuse, retry=RetryPolicy(max_attempts=1))
    except StepFailed as error:
        seen.append([error.error_type, ctx.pending_signal_count("b")])
    job = ctx.run(send, me, "c", "c")
    first = await ctx.wait_for_signal("c")
    seen += [first, ctx.has_signal("c"), await job, ctx.pending_signal_count("c")]
    seen.append(await ctx.task(reply, me, "task", ["a"]))
    for _ in range(5):
        seen.append([await ctx.run(send, me, "a"), await ctx.drain_signals("a")])
    return seen


async def converse(handle: Any) -> None:
    for value in ("one", "two", "three"):
        await handle.signal("message", value)
    await handle.signal("aside", "psst")
    await handle.signal("message", "end")


async def interrupt(handle: Any) -> None:
    for value in range(3):
        await handle.signal("message", value)
    await handle.signal("last", "at last")


async def leave_alone(handle: Any) -> None:
    """Its own steps send all it needs."""


PROGRAMS = [
    (steered_conversation, converse),
    (everything_at_once, interrupt),
    (steps_and_signals, leave_alone),
]
CACHES = {"cached": 10_000, "rebuilt at every wait": 0}


@pytest.mark.parametrize(("fn", "drive"), PROGRAMS, ids=[fn.__name__ for fn, _ in PROGRAMS])
@pytest.mark.parametrize("cached", CACHES.values(), ids=CACHES)
async def test_cut_anywhere_the_next_move_is_the_recorded_one(engine, fn, drive, cached):
    """Ten runs of each program, cut at every place where a crash could cut them, make the same commands again."""
    config = EngineConfig(store=QUICK.store, worker=WorkerConfig(cached_executions=cached, shutdown_grace_s=0.2))
    running = await engine(workflows=[fn], tasks=[reply, fail], config=config)
    STAGE.client = running.client
    commits = Commits(running)
    compared = 0
    handles = [await running.client.start_workflow(fn) for _ in range(10)]
    await asyncio.gather(*map(drive, handles))
    for handle in handles:
        await handle.result(timeout=20)
        history = await handle.history()
        check_invariants(history)
        check_whole(fn, history, handle.id)
        compared += check_cuts(fn, history, handle.id, commits.cuts(handle.id, len(history)))

    assert compared > 10 * 5


async def test_a_two_turn_conversation_steered_by_has_signal(engine):
    """The first turn sees one message, the second both that came meanwhile: live, and replayed after every event."""

    @workflow
    async def two_turns(ctx: WorkflowContext) -> list[object]:
        me = ctx.info.workflow_execution_id
        first = await ctx.wait_for_signal("message")
        more = ctx.has_signal("message")
        await ctx.task(reply, me, f"{first} {more}", ["message", "message"])
        return [first, more, ctx.has_signal("message"), await ctx.drain_signals("message")]

    running = await engine(workflows=[two_turns], tasks=[reply])
    STAGE.client = running.client
    commits = Commits(running)
    answer = await running.client.signal_with_start_workflow(
        "w", two_turns, signal_name="message", signal_value="hello"
    )
    handle = running.client.workflow(answer.workflow_execution_id)
    result = await handle.result(timeout=10)
    history = await handle.history()

    assert ["hello", False, True, ["message during hello False"] * 2] == result
    cuts = commits.cuts(handle.id, len(history))
    check_whole(two_turns, history, handle.id)
    assert check_cuts(two_turns, history, handle.id, cuts)


# --- histories by hand ------------------------------------------------------------------------------------------------


def history_of(*bodies: e.EventBody) -> list[e.HistoryEvent]:
    """These events, numbered, one second apart."""
    return [e.HistoryEvent(seq, seq * 1_000_000, body) for seq, body in enumerate(bodies, 1)]


def started() -> e.WorkflowStarted:
    return e.WorkflowStarted(kind="k", workflow_id="w")


def signal(name: str, value: str = "null") -> e.SignalReceived:
    return e.SignalReceived(signal_name=name, signal_value=Raw(value.encode()))


def scheduled(number: int, kind: str, up_to: int, line: str = "old.py:1 in f") -> e.TaskScheduled:
    return e.TaskScheduled(task_no=number, kind=kind, up_to=up_to, input=Raw(b"[]"), line=line)


def completed(number: int, result: str = "null") -> e.TaskCompleted:
    return e.TaskCompleted(task_no=number, result=Raw(result.encode()))


def turn(up_to: int) -> e.TurnCompleted:
    return e.TurnCompleted(up_to=up_to)


def test_a_turn_sees_the_signals_up_to_its_number_and_no_others():
    """A signal recorded before the turn's rows, but after what it saw, belongs to the next turn."""
    seen: list[object] = []

    @workflow
    async def look(ctx: WorkflowContext) -> None:
        seen.append(ctx.pending_signal_count("m"))
        await ctx.task("a")
        seen.append(ctx.pending_signal_count("m"))
        await ctx.task("b")
        seen.append(ctx.pending_signal_count("m"))

    history = history_of(
        started(),
        signal("m"),
        signal("m"),  # came while the turn up to 2 ran
        scheduled(1, "a", up_to=2),
        signal("m"),
        completed(1),
        signal("m"),  # came while the turn up to 6 ran
        scheduled(2, "b", up_to=6),
    )
    machine = replayed(look, history)
    machine.feed(e.HistoryEvent(9, 9_000_000, completed(2)))
    machine.turn()

    assert [1, 3, 4] == seen


def test_the_first_turn_delivers_signals_of_the_start():
    """They are visible before the program's first line."""
    seen: list[object] = []

    @workflow
    async def look(ctx: WorkflowContext) -> None:
        seen.append(ctx.pending_signal_count("m"))
        await ctx.sleep(1)

    machine = machine_for(look)
    for event in history_of(started(), signal("m"), signal("m")):
        machine.feed(event)
    machine.turn()

    assert [2] == seen


def test_a_waiter_gets_its_signal_at_the_signals_own_position():
    """Of a task and a signal in one turn, the one recorded first is delivered first."""
    order: list[str] = []

    @workflow
    async def both(ctx: WorkflowContext) -> None:
        async def wait(name: str, what: Any) -> None:
            await what
            order.append(name)

        await asyncio.gather(wait("signal", ctx.wait_for_signal("m")), wait("task", ctx.task("t")))

    for outcome in ([completed(1), signal("m")], [signal("m"), completed(1)]):
        machine = machine_for(both)
        first, *later = history_of(started(), *outcome)
        machine.feed(first)
        machine.turn()
        for event in later:
            machine.feed(event)
        machine.turn()

    assert ["task", "signal", "signal", "task"] == order


def test_now_is_the_time_of_the_event_being_delivered():
    """Several events of one turn are delivered one after another, each with its own time; it never goes back."""
    times: list[float] = []

    @workflow
    async def watch(ctx: WorkflowContext) -> None:
        times.append(ctx.now().timestamp())
        jobs = [ctx.task("t") for _ in range(3)]
        for job in jobs:
            await job
            times.append(ctx.now().timestamp())

    machine = machine_for(watch)
    machine.feed(e.HistoryEvent(1, 1_000_000, started()))
    machine.turn()
    for seq, at, number in ((5, 2_000_000, 1), (6, 3_000_000, 2), (7, 2_500_000, 3)):  # the clock went back
        machine.feed(e.HistoryEvent(seq, at, completed(number)))
    machine.turn()

    assert [1.0, 2.0, 3.0, 3.0] == times


def test_the_same_history_gives_the_same_commands():
    """Exact commands for exact events: kinds, numbers, arguments, time."""

    @workflow
    async def program(ctx: WorkflowContext) -> str:
        first = await ctx.task("a", 1, "x")
        await ctx.sleep(2)
        return f"{first}!"

    machine = machine_for(program)
    answers: list[list[Any]] = []
    for body in (started(), completed(1, '"done"'), e.TimerFired(timer_no=1)):
        machine.feed(e.HistoryEvent(len(answers) + 1, (len(answers) + 1) * 1_000_000, body))
        answers.append(machine.turn().commands)
    (task_command,), (timer_command,), (end,) = answers

    assert isinstance(task_command, ScheduleTask)
    assert (1, "a", b'[1,"x"]') == (task_command.task_no, task_command.kind, bytes(task_command.input))
    assert isinstance(timer_command, StartTimer)
    assert (1, 4_000_000) == (timer_command.timer_no, timer_command.fire_at)
    assert isinstance(end, CompleteWorkflow)
    assert b'"done!"' == bytes(end.result)
    assert machine.ended


def test_an_outcome_of_what_was_cancelled_is_ignored():
    """A task that finished while its cancellation was on its way changes nothing."""

    @workflow
    async def program(ctx: WorkflowContext) -> str:
        job = ctx.task("a")
        await ctx.wait_for_signal("enough")
        job.cancel()
        await ctx.wait_for_signal("end")
        return "ended"

    history = history_of(
        started(),
        scheduled(1, "a", up_to=1),
        turn(1),
        signal("enough"),
        completed(1),
        e.TaskCancelRequested(task_no=1, up_to=4),
        turn(5),
    )
    machine = replayed(program, history)
    machine.feed(e.HistoryEvent(8, 8_000_000, signal("end")))
    (end,) = machine.turn().commands

    assert isinstance(end, CompleteWorkflow)
    assert b'"ended"' == bytes(end.result)


def test_unread_signals_are_known():
    """The numbers of signals that were seen but never taken, for the dead letters."""

    @workflow
    async def program(ctx: WorkflowContext) -> None:
        await ctx.wait_for_signal("a")

    machine = machine_for(program)
    for event in history_of(started(), signal("b"), signal("a"), signal("a"), signal("b")):
        machine.feed(event)
    machine.turn()

    assert (2, 4, 5) == machine.unread()


def test_a_program_that_waits_for_nothing_is_told():
    """Nothing durable can ever settle it: the error says where it stands."""

    @workflow
    async def program(ctx: WorkflowContext) -> None:
        await asyncio.Event().wait()

    machine = machine_for(program)
    machine.feed(history_of(started())[0])
    with pytest.raises(BlockedForever, match=r"test_turns\.py:\d+ in .*program"):
        machine.turn()


# --- programs that have changed ---------------------------------------------------------------------------------------


@workflow
async def two_tasks(ctx: WorkflowContext) -> None:
    await ctx.task("a")
    await ctx.task("b")


@workflow
async def other_task(ctx: WorkflowContext) -> None:
    await ctx.task("a")
    await ctx.task("c")


@workflow
async def reordered(ctx: WorkflowContext) -> None:
    await ctx.task("b")
    await ctx.task("a")


@workflow
async def extra_task(ctx: WorkflowContext) -> None:
    await asyncio.gather(ctx.task("a"), ctx.task("x"))
    await ctx.task("b")


@workflow
async def missing_task(ctx: WorkflowContext) -> None:
    await ctx.task("a")
    await ctx.wait_for_signal("instead")


@workflow
async def timer_instead(ctx: WorkflowContext) -> None:
    await ctx.task("a")
    await ctx.sleep(1)


@workflow
async def ends_early(ctx: WorkflowContext) -> None:
    await ctx.task("a")


@workflow
async def goes_on(ctx: WorkflowContext) -> None:
    await two_tasks(ctx)
    await ctx.task("c")


TWO_TASKS = history_of(
    started(),
    scheduled(1, "a", up_to=1, line="old.py:10 in two_tasks"),
    turn(1),
    completed(1),
    scheduled(2, "b", up_to=4, line="old.py:11 in two_tasks"),
    turn(4),
    completed(2),
    e.WorkflowCompleted(up_to=7),
)

# the changed program, the event at odds, what it records, what is asked for now, the function the new line is in
CHANGES: list[tuple[Callable[..., Any], int, str, str, str]] = [
    (other_task, 5, "task 2 'b'", "task 2 'c'", "other_task"),
    (reordered, 2, "task 1 'a'", "task 1 'b'", "reordered"),
    (timer_instead, 5, "task 2 'b'", "timer 1", "timer_instead"),
    (extra_task, 1, "nothing more in this turn", "task 2 'x'", "extra_task"),
    (missing_task, 5, "task 2 'b'", "nothing more in this turn", ""),
    (ends_early, 5, "task 2 'b'", "complete the workflow", ""),
    (goes_on, 8, "complete the workflow", "task 3 'c'", "goes_on"),
]


def test_the_unchanged_program_is_fine():
    """The history these tests change the program of is a sound one."""
    assert replayed(two_tasks, TWO_TASKS).ended


@pytest.mark.parametrize(
    ("fn", "event_seq", "recorded", "attempted", "where"), CHANGES, ids=[c[0].__name__ for c in CHANGES]
)
def test_a_changed_program_is_found_out(fn, event_seq, recorded, attempted, where):
    """The error carries the event's number, both commands and the line of each; its message says all of it."""
    with pytest.raises(DeterminismError) as found:
        replayed(fn, TWO_TASKS)
    error = found.value

    assert "nondeterminism" == error.code
    assert (event_seq, recorded, attempted) == (error.event_seq, error.recorded, error.attempted)
    if recorded.startswith("task"):
        assert error.recorded_line.startswith("old.py:1")
    if where:
        assert error.attempted_line.startswith("test_turns.py:")
        assert error.attempted_line.endswith(f" in {where}")
    for part in (f"event {event_seq} ", recorded, attempted, error.recorded_line, error.attempted_line):
        assert part in str(error)


def step(number: int, name: str, up_to: int) -> e.StepCompleted:
    return e.StepCompleted(step_no=number, name=name, up_to=up_to, line=f"old.py:{number} in f")


ONE_STEP = history_of(started(), turn(1), step(1, "charge", up_to=1), turn(3))


def test_a_step_under_another_name_is_found_out():
    """With both names and both lines."""

    @workflow
    async def renamed(ctx: WorkflowContext) -> None:
        await ctx.run(abs, 1, name="refund")
        await ctx.wait_for_signal("end")

    with pytest.raises(DeterminismError) as found:
        replayed(renamed, ONE_STEP)
    error = found.value

    assert (3, "step 1 'charge'", "step 1 'refund'") == (error.event_seq, error.recorded, error.attempted)
    assert "old.py:1 in f" == error.recorded_line
    assert error.attempted_line.startswith("test_turns.py:")
    assert error.attempted_line in str(error)


def test_a_step_that_is_gone_is_found_out():
    """A recorded outcome of a step that the program never asked for."""

    @workflow
    async def without(ctx: WorkflowContext) -> None:
        await ctx.wait_for_signal("end")

    with pytest.raises(DeterminismError) as found:
        replayed(without, ONE_STEP)

    assert (3, "step 1 'charge'") == (found.value.event_seq, found.value.recorded)
    assert "old.py:1 in f" == found.value.recorded_line


def test_a_task_in_place_of_a_step_is_found_out():
    """The recorded turn asked for no task."""

    @workflow
    async def task_instead(ctx: WorkflowContext) -> None:
        await ctx.task("charge")

    with pytest.raises(DeterminismError) as found:
        replayed(task_instead, ONE_STEP)

    assert "task 1 'charge'" == found.value.attempted
    assert found.value.attempted_line.startswith("test_turns.py:")


def test_a_users_handler_can_not_hide_it():
    """`except Exception` around the changed part does not swallow the error, nor does the program go on."""
    went_on: list[str] = []

    @workflow
    async def hiding(ctx: WorkflowContext) -> None:
        try:
            await ctx.task("something else")
        except Exception:
            went_on.append("caught")
        went_on.append("after")

    with pytest.raises(DeterminismError):
        replayed(hiding, TWO_TASKS)
    assert [] == went_on


def test_other_arguments_are_no_difference():
    """A fix may change what is passed on: commands are matched by kind and order, not by content."""

    @workflow
    async def corrected(ctx: WorkflowContext) -> None:
        await ctx.task("a", "corrected", priority=5)
        await ctx.task("b")

    assert replayed(corrected, TWO_TASKS).ended


async def test_a_changed_program_parks_its_execution(engine):
    """The running engine shows event number, both sides and both lines; the old code takes it up again."""
    from holdfast import WorkflowStatus

    def version(*kinds):
        @workflow(kind="changing")
        async def changing(ctx: WorkflowContext) -> str:
            for kind in kinds:
                await ctx.task(kind)
                await ctx.wait_for_signal("next")
            return " ".join(kinds)

        return changing

    # The build of a definition is that of its source text, and these have the same: say that they differ.
    def rebuilt(fn, build):
        object.__setattr__(fn.__holdfast_workflow__, "build", build)
        return fn

    @task
    async def a() -> None: ...

    @task
    async def b() -> None: ...

    async def status_is(handle, status):
        return await handle.status() is status

    old = await engine(workflows=[rebuilt(version("a", "b"), "old")], tasks=[a, b])
    handle = await old.client.start_workflow("changing")
    await until(lambda: is_past(handle, "TASK_COMPLETED"))
    await until(lambda: status_is(handle, WorkflowStatus.WAITING))
    await old.shutdown()
    new = await engine(workflows=[rebuilt(version("b", "a"), "new")], tasks=[a, b])
    handle = new.client.workflow(handle.id)
    await handle.signal("next")
    await until(lambda: status_is(handle, WorkflowStatus.STUCK))
    reason = (await handle.describe()).stuck
    before = await handle.history()
    await new.shutdown()

    assert ("nondeterminism", 2, "task 1 'a'", "task 1 'b'") == (
        reason.code,
        reason.event_seq,
        reason.recorded,
        reason.attempted,
    )
    assert "test_turns.py" in reason.recorded_line
    assert "test_turns.py" in reason.attempted_line
    assert "new" == reason.build
    assert "SIGNAL_RECEIVED" == before[-1].type
    again = await engine(workflows=[rebuilt(version("a", "b"), "old")], tasks=[a, b])
    await again.client.signal_workflow(handle.id, "next")
    assert "a b" == await again.client.workflow(handle.id).result(timeout=10)


async def is_past(handle, kind):
    return kind in [event.type for event in await handle.history()]


def test_turns_and_rows_are_read_from_a_history():
    """The tools of these tests see what is there."""
    assert [1, 4, 7] == turns_of(TWO_TASKS)
    assert 1 == len(rows_of(TWO_TASKS, 4))


def test_a_cancel_from_outside_names_the_line_that_asked():
    """What is taken back by a cancel or a time-out carries the workflow's line, never one of the program around it."""

    @workflow
    async def program(ctx: WorkflowContext) -> None:
        try:
            async with asyncio.timeout(1):
                await ctx.task("a")
        finally:
            await ctx.task("b")

    def lines(*bodies: e.EventBody) -> list[str]:
        machine = machine_for(program)
        commands = []
        for seq, body in enumerate((started(), *bodies), 1):
            machine.feed(e.HistoryEvent(seq, seq * 1_000_000, body))
            commands += machine.turn().commands
        machine.close()
        return [command.line for command in commands if isinstance(command, CancelTask)]

    by_cancel = lines(e.CancelRequested())
    by_time_out = lines(e.TimerFired(timer_no=1))

    assert 1 == len(by_cancel) == len(by_time_out)
    assert all(line.endswith("<locals>.program") for line in by_cancel + by_time_out)
