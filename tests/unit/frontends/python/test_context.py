"""What a workflow is and what it gets: input, result, time, chance, identity, logging, failures."""

import asyncio
import logging
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pydantic
import pytest

from holdfast import EngineConfig, WorkerConfig, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.errors import WorkflowFailed
from tests.conftest import QUICK, until


@dataclass
class Order:
    number: int
    lines: list[str]


class Point(msgspec.Struct):
    x: int


class Invoice(pydantic.BaseModel):
    due_at: datetime


async def start(engine, fn, *arguments, **definitions):
    client = (await engine(workflows=[fn], **definitions)).client
    return await client.start_workflow(fn, *arguments)


async def result(engine, fn, *arguments, **definitions):
    return await (await start(engine, fn, *arguments, **definitions)).result(timeout=10)


async def has_status(handle, status):
    return await handle.status() is status


async def types(handle):
    return [event.type for event in await handle.history()]


# --- input and result -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Order, Order(7, ["a"])),
        (Point, Point(3)),
        (Invoice, Invoice(due_at=datetime(2026, 1, 2, tzinfo=UTC))),
        (list[Order], [Order(1, [])]),
        (Order | None, None),
        (int, 7),
        (dict[str, list[Point]], {"a": [Point(1)]}),
    ],
)
async def test_input_and_result_keep_their_type(engine, hint, value):
    """By the function's annotations: dataclasses, msgspec structs, pydantic models and what they are part of."""
    seen = []

    async def echo(ctx, value):
        seen.append(value)
        return value

    echo.__annotations__.update({"value": hint, "return": hint})
    workflow(echo)

    answer = await result(engine, echo, value)

    assert (value, value) == (seen[-1], answer)
    assert type(value) is type(seen[-1]) is type(answer)


async def test_the_result_type_may_be_told_at_the_handle(engine):
    """A handle made from an id gives plain values; with the workflow or a `type_hint`, its type."""

    @workflow
    async def make(ctx: WorkflowContext) -> Point:
        return Point(1)

    running = await engine(workflows=[make])
    started = await running.client.start_workflow(make)
    await started.result(timeout=10)
    client = running.client

    assert {"x": 1} == await client.workflow(started.id).result(timeout=10)
    assert Point(1) == await client.workflow(started.id, make).result(timeout=10)
    assert Point(1) == await client.workflow(started.id).result(timeout=10, type_hint=Point)
    assert Point(1) == await running.query_result(started.id, Point)


async def test_a_workflow_without_input(engine):
    """`async def fn(ctx)`; what a caller gives all the same is recorded and ignored."""

    @workflow
    async def bare(ctx: WorkflowContext) -> str:
        return "done"

    assert "done" == await result(engine, bare)
    assert "done" == await result(engine, bare, {"not": "taken"})


async def test_a_default_input(engine):
    """Used when the caller gives none."""

    @workflow
    async def greet(ctx: WorkflowContext, name: str = "you") -> str:
        return f"hello {name}"

    assert "hello you" == await result(engine, greet)
    assert "hello me" == await result(engine, greet, "me")


async def test_an_input_that_does_not_fit_fails_the_workflow(engine):
    """Before any of its code runs; the failure says where and why."""
    ran = []

    @workflow
    async def strict(ctx: WorkflowContext, order: Order) -> None:
        ran.append(order)

    handle = await start(engine, strict, {"number": "seven", "lines": []})
    with pytest.raises(WorkflowFailed, match=r"input\.number") as failed:
        await handle.result(timeout=10)

    assert "PayloadNotDecodable" == failed.value.error_type
    assert [] == ran


@pytest.mark.parametrize("fails", [False, True])
async def test_a_plain_function_may_be_a_workflow(engine, fails):
    """Where it needs no waiting: it can look, start things and return."""

    @workflow
    def plain(ctx: WorkflowContext, number: int) -> list[object]:
        if fails:
            raise ValueError("no")
        return [number, ctx.has_signal("x"), ctx.info.kind]

    handle = await start(engine, plain, 7)
    if fails:
        with pytest.raises(WorkflowFailed, match="ValueError: no"):
            await handle.result(timeout=10)
    else:
        assert [7, False, "plain"] == await handle.result(timeout=10)


async def test_result_waits_no_longer_than_asked(engine):
    """TimeoutError, and the execution goes on; the same handle can wait again."""

    @workflow
    async def wait(ctx: WorkflowContext) -> object:
        return await ctx.wait_for_signal("go")

    handle = await start(engine, wait)
    with pytest.raises(TimeoutError):
        await handle.result(timeout=0.01)
    await handle.signal("go", 1)

    assert 1 == await handle.result(timeout=10)


# --- failure ----------------------------------------------------------------------------------------------------------


class OutOfStockError(Exception):
    """An application's own error."""


async def test_an_exception_fails_the_workflow(engine):
    """FAILED, with type, message, traceback and cause in the last event and in the error the caller gets."""

    @workflow
    async def broken(ctx: WorkflowContext) -> None:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise OutOfStockError("no more of 7") from error

    handle = await start(engine, broken)
    with pytest.raises(WorkflowFailed, match="OutOfStockError: no more of 7") as failed:
        await handle.result(timeout=10)
    failure = (await handle.history())[-1].body.failure

    assert ("workflow_failed", "OutOfStockError") == (failed.value.code, failed.value.error_type)
    assert "test_context.py" in failed.value.traceback
    assert "in broken" in failed.value.traceback
    assert ("OutOfStockError", "no more of 7") == (failure.type, failure.message)
    assert ("KeyError", "'inner'") == (failure.cause.type, failure.cause.message)
    assert failed.value.details["failure"] == failure
    assert WorkflowStatus.FAILED == await handle.status()


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), GeneratorExit(), RecursionError("deep"), MemoryError(), StopAsyncIteration()],
    ids=lambda error: type(error).__name__,
)
async def test_no_exception_of_a_workflow_harms_the_worker(engine, error):
    """Whatever a program raises fails that program; the others go on."""

    @workflow
    async def broken(ctx: WorkflowContext) -> None:
        raise error

    @workflow
    async def well(ctx: WorkflowContext) -> str:
        return "well"

    client = (await engine(workflows=[broken, well])).client
    handle = await client.start_workflow(broken)
    with pytest.raises(WorkflowFailed) as failed:
        await handle.result(timeout=10)

    assert type(error).__name__ == failed.value.error_type
    assert "well" == await (await client.start_workflow(well)).result(timeout=10)


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("error", [ValueError("\ud800"), ValueError("x" * 1_000_000), UnprintableError()])
async def test_an_exception_with_odd_text_is_still_recorded(engine, error):
    """Lone surrogates, huge messages, a `__str__` that raises: nothing keeps a failure from being recorded."""

    @workflow
    async def broken(ctx: WorkflowContext) -> None:
        raise error

    with pytest.raises(WorkflowFailed) as failed:
        await (await start(engine, broken)).result(timeout=3)
    assert type(error).__name__ == failed.value.error_type


async def test_recursion_without_end_fails_the_workflow(engine):
    """RecursionError, like any other exception."""

    def dive(depth: int) -> int:
        return dive(depth + 1)

    @workflow
    async def deep(ctx: WorkflowContext) -> int:
        return dive(0)

    with pytest.raises(WorkflowFailed) as failed:
        await result(engine, deep)
    assert "RecursionError" == failed.value.error_type


# --- time -------------------------------------------------------------------------------------------------------------


async def test_sleep_is_a_recorded_timer(engine):
    """TIMER_STARTED says when, TIMER_FIRED that it was; the workflow's clock has moved on by at least that much."""

    @workflow
    async def sleeper(ctx: WorkflowContext) -> float:
        before = ctx.now()
        await ctx.sleep(0.02)
        return (ctx.now() - before).total_seconds()

    handle = await start(engine, sleeper)

    assert await handle.result(timeout=10) >= 0.02
    history = await handle.history()
    started = next(event for event in history if event.type == "TIMER_STARTED")
    fired = next(event for event in history if event.type == "TIMER_FIRED")
    assert (1, history[0].at + 20_000) == (started.body.timer_no, started.body.fire_at)
    assert 1 == fired.body.timer_no
    assert fired.at >= started.body.fire_at


@pytest.mark.parametrize("duration", [0, 0.0, 0.01, timedelta(milliseconds=5), timedelta()])
async def test_durations_are_seconds_or_timedeltas(engine, duration):
    """From nothing on."""

    @workflow
    async def sleeper(ctx: WorkflowContext) -> str:
        await ctx.sleep(duration)
        return "woke"

    assert "woke" == await result(engine, sleeper)


async def test_long_sleeps_end_at_their_time(engine):
    """Thirty days on a clock the test turns: not a moment before, at once when it is due."""
    now = [1_700_000_000_000_000]
    day = 86_400 * 1_000_000

    @workflow
    async def sleeper(ctx: WorkflowContext) -> str:
        before = ctx.now()
        await ctx.sleep(timedelta(days=30))
        return str(ctx.now() - before)

    config = EngineConfig(store=QUICK.store, worker=WorkerConfig(lease_s=1e9, shutdown_grace_s=0.2))
    running = await engine(workflows=[sleeper], config=config, clock=lambda: now[0])
    handle = await running.client.start_workflow(sleeper)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    now[0] += 30 * day - 1
    assert 0 == (await running.recover()).timers_fired
    now[0] += 1
    await running.recover()

    assert "30 days, 0:00:00" == await handle.result(timeout=10)


async def test_sleep_until(engine):
    """An instant with a zone, any zone; one that has passed is over at once."""

    @workflow
    async def sleeper(ctx: WorkflowContext) -> bool:
        await ctx.sleep_until(datetime(2000, 1, 1, tzinfo=UTC))
        wanted = (ctx.now() + timedelta(milliseconds=20)).astimezone(datetime.now().astimezone().tzinfo)
        await ctx.sleep_until(wanted)
        return ctx.now() >= wanted

    assert await result(engine, sleeper)


async def test_now_is_the_time_of_the_event(engine):
    """Not the machine's clock: it moves only with the history, and never back."""

    @workflow
    async def look(ctx: WorkflowContext) -> list[datetime]:
        times = [ctx.info.started_at, ctx.now()]
        await ctx.wait_for_signal("go")
        times += [ctx.now(), ctx.now()]
        await ctx.run(int)
        return [*times, ctx.now()]

    handle = await start(engine, look)
    await handle.signal("go")
    started, first, second, again, last = await handle.result(timeout=10)
    at = {event.type: event.at for event in await handle.history()}
    instants = [datetime.fromtimestamp(at[kind] / 1_000_000, UTC) for kind in ("WORKFLOW_STARTED", "SIGNAL_RECEIVED")]

    assert instants == [started, second]
    assert first == started
    assert second == again <= last


# --- the same on every replay -----------------------------------------------------------------------------------------


async def test_now_random_uuid_and_info_are_the_same_on_replay(engine):
    """A program rebuilt from its history in another engine sees exactly what it saw before."""
    runs = []

    @workflow
    async def observe(ctx: WorkflowContext) -> None:
        seen = [ctx.now(), ctx.random.random(), ctx.uuid4(), ctx.info, asyncio.get_running_loop().time()]
        runs.append(seen)
        for _ in range(2):
            await ctx.wait_for_signal("go")
            seen += [ctx.now(), ctx.random.randint(0, 10**9), ctx.uuid4(), ctx.random.sample(range(100), 5)]

    first = await engine(workflows=[observe])
    handle = await first.client.start_workflow(observe)
    await handle.signal("go")
    await until(lambda: len(runs[-1]) == 9)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    await first.shutdown()
    live = runs.pop()
    second = await engine(workflows=[observe])
    await second.client.signal_workflow(handle.id, "go")
    await second.client.workflow(handle.id).result(timeout=10)

    assert 9 == len(live)
    assert live == runs[-1][:9]
    assert 13 == len(runs[-1])


async def test_chance_differs_between_executions(engine):
    """Two executions of the same workflow draw different numbers and ids."""

    @workflow
    async def draw(ctx: WorkflowContext) -> list[object]:
        return [ctx.random.random(), ctx.uuid4()]

    client = (await engine(workflows=[draw])).client
    one, two = [await (await client.start_workflow(draw)).result(timeout=10) for _ in range(2)]

    assert one[0] != two[0]
    assert one[1] != two[1]
    assert 4 == UUID(one[1]).version


async def test_the_workflows_chance_is_its_own(engine):
    """Drawing does not touch Python's global generator, nor is it touched by it."""

    @workflow
    async def draw(ctx: WorkflowContext) -> None:
        random.seed(1)
        ctx.random.random()

    state = random.getstate()
    try:
        random.seed(99)
        expected = random.Random(1).random()
        await result(engine, draw)
        assert expected == random.random()
    finally:
        random.setstate(state)


async def test_info_tells_which_execution_this_is(engine):
    """Org, ids, kind, version, queue, start and metadata."""

    @workflow(kind="the-kind", version="7")
    async def look(ctx: WorkflowContext) -> dict[str, object]:
        info = ctx.info
        return {
            name: getattr(info, name) for name in ("org", "workflow_id", "kind", "version", "queue", "metadata")
        } | {
            "id": info.workflow_execution_id,
            "started": info.started_at == ctx.now(),
        }

    client = (await engine(workflows=[look], org="blue")).client
    handle = await client.start_workflow(look, workflow_id="w", metadata={"a": "b"})

    assert {
        "org": "blue",
        "workflow_id": "w",
        "kind": "the-kind",
        "version": "7",
        "queue": "default",
        "metadata": {"a": "b"},
        "id": handle.id,
        "started": True,
    } == await handle.result(timeout=10)


async def test_the_logger_speaks_once(engine, caplog):
    """Live turns are logged with the execution's name; a replay says nothing."""

    @workflow
    async def talk(ctx: WorkflowContext) -> None:
        ctx.logger.info("one %s", "began")
        await ctx.wait_for_signal("go")
        ctx.logger.warning("two")

    caplog.set_level(logging.INFO, "holdfast.workflow")
    first = await engine(workflows=[talk])
    handle = await first.client.start_workflow(talk, workflow_id="w")
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    await first.shutdown()
    second = await engine(workflows=[talk])
    await second.client.signal_workflow(handle.id, "go")
    await second.client.workflow(handle.id).result(timeout=10)
    records = [record for record in caplog.records if record.name == "holdfast.workflow"]

    assert ["[talk w] one began", "[talk w] two"] == [record.getMessage() for record in records]
    assert {handle.id} == {record.workflow_execution_id for record in records}
    assert {"talk"} == {record.workflow_kind for record in records}


# --- programs that can't go on ----------------------------------------------------------------------------------------


async def stuck(engine, fn, tasks=()):
    handle = await start(engine, fn, tasks=tasks)
    await until(lambda: has_status(handle, WorkflowStatus.STUCK))
    return handle, (await handle.describe()).stuck


async def foreign_future(ctx):
    await FOREIGN[0]


async def thread(ctx):
    await asyncio.to_thread(print)


async def executor(ctx):
    await asyncio.get_running_loop().run_in_executor(None, print)


async def connection(ctx):
    await asyncio.open_connection("localhost", 1)


async def process(ctx):
    await asyncio.create_subprocess_exec("true")


async def foreign_future_in_a_gather(ctx):
    await asyncio.gather(ctx.sleep(60), FOREIGN[0])


async def foreign_future_in_a_group(ctx):
    async with asyncio.TaskGroup() as group:
        group.create_task(foreign_future(ctx))
        await ctx.sleep(60)


FOREIGN: list["asyncio.Future[None]"] = []
NOT_DURABLE = [
    (thread, "asyncio.to_thread"),
    (executor, "run_in_executor"),
    (connection, "asyncio.open_connection"),
    (process, "asyncio.create_subprocess_exec"),
    (foreign_future, "Future"),
    (foreign_future_in_a_gather, "a future of another event loop"),
    (foreign_future_in_a_group, "Future"),
]


@pytest.mark.parametrize(("body", "named"), NOT_DURABLE, ids=lambda value: getattr(value, "__name__", ""))
async def test_awaiting_what_is_not_durable_parks_the_execution(engine, body, named):
    """STUCK with code not_durable, and the message names what was awaited and says what to do."""
    FOREIGN[:] = [asyncio.get_running_loop().create_future()]

    @workflow
    async def reaching_out(ctx: WorkflowContext) -> None:
        await body(ctx)

    handle, reason = await stuck(engine, reaching_out)

    assert "not_durable" == reason.code
    assert named in reason.message
    assert "ctx.run" in reason.message
    assert (True, True) == (bool(reason.worker), bool(reason.build))
    assert ["WORKFLOW_STARTED"] == await types(handle)


@pytest.mark.parametrize(
    ("name", "wait"),
    [
        ("event", lambda ctx: asyncio.Event().wait()),
        ("queue", lambda ctx: asyncio.Queue().get()),
        ("future", lambda ctx: asyncio.get_running_loop().create_future()),
        ("forever", lambda ctx: asyncio.sleep(float("inf"))),
    ],
)
async def test_waiting_for_nothing_parks_the_execution(engine, name, wait):
    """STUCK with code blocked_forever, and the message says where the program stands."""

    @workflow
    async def blocked(ctx: WorkflowContext) -> None:
        await wait(ctx)

    _, reason = await stuck(engine, blocked)

    assert "blocked_forever" == reason.code
    assert "test_context.py" in reason.message
    assert "in test_waiting_for_nothing_parks_the_execution.<locals>.blocked" in reason.message


async def test_a_program_that_spins_is_parked(engine, monkeypatch):
    """A loop that never waits for anything durable is found and named; the worker goes on with others."""
    monkeypatch.setattr("holdfast.frontends.python.loop.MAX_CALLBACKS", 10_000)  # a hundredth: the same, sooner

    @workflow
    async def spinning(ctx: WorkflowContext) -> None:
        while True:
            await asyncio.sleep(0)

    @workflow
    async def well(ctx: WorkflowContext) -> str:
        return "well"

    client = (await engine(workflows=[spinning, well])).client
    handle = await client.start_workflow(spinning)
    await until(lambda: has_status(handle, WorkflowStatus.STUCK))
    reason = (await handle.describe()).stuck

    assert "not_durable" == reason.code
    assert "without waiting for anything durable" in reason.message
    assert "well" == await (await client.start_workflow(well)).result(timeout=10)


async def test_a_stuck_execution_keeps_its_signals_and_continues_after_a_fix(engine):
    """Not failed: the next deploy takes it up at once, with everything that was sent meanwhile."""

    @workflow(kind="fixable")
    async def broken(ctx: WorkflowContext) -> None:
        await asyncio.to_thread(print)

    @workflow(kind="fixable")
    async def fixed(ctx: WorkflowContext) -> object:
        return await ctx.wait_for_signal("item")

    first = await engine(workflows=[broken])
    handle = await first.client.start_workflow(broken)
    await until(lambda: has_status(handle, WorkflowStatus.STUCK))
    await handle.signal("item", "kept")
    assert WorkflowStatus.STUCK == await handle.status()
    await first.shutdown()
    second = await engine(workflows=[fixed])
    handle = second.client.workflow(handle.id)

    assert "kept" == await handle.result(timeout=10)
    assert (await handle.describe()).stuck is None


async def test_a_stuck_execution_can_be_tried_again_by_hand(engine):
    """`resume` says whether there was anything to resume; the same code gets stuck again."""
    switch: list[int] = []

    @workflow
    async def moody(ctx: WorkflowContext) -> str:
        if not switch:
            await asyncio.to_thread(print)
        return "went"

    handle, _ = await stuck(engine, moody)
    assert await handle.resume()
    await until(lambda: has_status(handle, WorkflowStatus.STUCK))
    switch.append(1)
    assert await handle.resume()

    assert "went" == await handle.result(timeout=10)
    assert not await handle.resume()


async def test_a_stuck_execution_can_be_ended(engine):
    """Terminated at once; a cancel is kept for when it moves again."""

    @workflow
    async def blocked(ctx: WorkflowContext) -> None:
        await asyncio.Event().wait()

    handle, _ = await stuck(engine, blocked)

    assert await handle.cancel()
    assert WorkflowStatus.STUCK == await handle.status()
    assert await handle.terminate()
    assert WorkflowStatus.TERMINATED == await handle.status()


async def test_what_was_asked_for_before_the_stop_is_not_done(engine):
    """A turn that can't be finished leaves nothing: its tasks and timers are not scheduled."""

    @task
    async def work() -> None: ...

    @workflow
    async def half_way(ctx: WorkflowContext) -> None:
        ctx.task(work)
        ctx.sleep(1)
        await asyncio.to_thread(print)

    handle, _ = await stuck(engine, half_way, tasks=[work])

    assert ["WORKFLOW_STARTED"] == await types(handle)
    assert [] == await handle.pending_tasks()
