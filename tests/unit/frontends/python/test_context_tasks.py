"""`ctx.task`: work on a queue, with retries, time-outs and heartbeats."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec
import pydantic
import pytest

from holdfast import (
    EngineConfig,
    NonRetryable,
    RetryPolicy,
    Status,
    TaskContext,
    WorkerConfig,
    WorkflowContext,
    task,
    workflow,
)
from holdfast.contract.instants import micros
from holdfast.errors import PayloadNotDecodable, TaskFailed, TaskTimedOut, WorkflowFailed
from tests.conftest import QUICK, until

AT_ONCE = RetryPolicy(initial_interval_s=0, max_attempts=3)
NEVER = RetryPolicy(max_attempts=1)


@dataclass
class Receipt:
    number: int
    lines: list[str]


class Point(msgspec.Struct):
    x: int


class Order(pydantic.BaseModel):
    placed_at: datetime


async def start(engine, fn, *arguments, tasks=(), **options):
    client = (await engine(workflows=[fn], tasks=tasks, **options)).client
    return await client.start_workflow(fn, *arguments)


async def events(handle, kind):
    return [event.body for event in await handle.history() if event.type == kind]


async def has_status(handle, status):
    return await handle.status() is status


# --- the plain case ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
async def test_a_task_runs_and_answers(engine, plain):
    """`async def` on the event loop, `def` in a thread; the result arrives at the await."""
    threads = []

    @task(kind="work")
    async def work_async(a: int, b: int = 10) -> int:
        threads.append(threading.current_thread())
        return a + b

    @task(kind="work")
    def work_plain(a: int, b: int = 10) -> int:
        threads.append(threading.current_thread())
        return a + b

    work = work_plain if plain else work_async

    @workflow
    async def parent(ctx: WorkflowContext) -> list[int]:
        return [await ctx.task(work, 1), await ctx.task(work, 1, 2), await ctx.task("work", 3)]

    handle = await start(engine, parent, tasks=[work])

    assert [11, 3, 13] == await handle.result(timeout=10)
    assert plain is (threading.current_thread() not in threads)


async def test_what_is_recorded(engine):
    """TASK_SCHEDULED with everything that was asked for, TASK_COMPLETED with result, attempt and worker."""

    @task(kind="work")
    async def work(value: int) -> str:
        return f"did {value}"

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        return await ctx.task(
            work,
            7,
            retry=AT_ONCE,
            priority=3,
            start_to_close=60,
            schedule_to_close=timedelta(hours=1),
            heartbeat_timeout=30,
        )

    running = await engine(workflows=[parent], tasks=[work])
    handle = await running.client.start_workflow(parent)
    await handle.result(timeout=10)
    (asked,) = await events(handle, "TASK_SCHEDULED")
    (done,) = await events(handle, "TASK_COMPLETED")

    assert (1, "work", b"[7]", "default", 3, AT_ONCE) == (
        asked.task_no,
        asked.kind,
        bytes(asked.input),
        asked.queue,
        asked.priority,
        asked.retry,
    )
    limits = asked.timeouts
    assert (60, 3600, 30) == (limits.start_to_close_s, limits.schedule_to_close_s, limits.heartbeat_s)
    assert "test_context_tasks.py" in asked.line
    assert (1, b'"did 7"', 1, running.worker.session) == (done.task_no, bytes(done.result), done.attempt, done.worker)


async def test_options_of_the_decorator_count_where_the_call_has_none(engine):
    """What stands at @task is the default; what is given to ctx.task goes before it."""

    @task(retry=RetryPolicy(max_attempts=7), start_to_close=5, heartbeat_timeout=4)
    async def work() -> None: ...

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await ctx.task(work)
        await ctx.task(work, retry=NEVER, start_to_close=50)

    handle = await start(engine, parent, tasks=[work])
    await handle.result(timeout=10)
    first, second = await events(handle, "TASK_SCHEDULED")

    assert (7, 5, 4) == (first.retry.max_attempts, first.timeouts.start_to_close_s, first.timeouts.heartbeat_s)
    assert (1, 50, 4) == (second.retry.max_attempts, second.timeouts.start_to_close_s, second.timeouts.heartbeat_s)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Receipt, Receipt(1, ["a"])),
        (Point, Point(3)),
        (Order, Order(placed_at=datetime(2026, 1, 2, tzinfo=UTC))),
        (list[Receipt], [Receipt(1, []), Receipt(2, ["b"])]),
        (dict[str, Point], {"a": Point(1)}),
    ],
)
async def test_arguments_and_results_keep_their_type(engine, hint, value):
    """By the annotations of the task, in both directions."""
    seen = []

    async def work(argument):
        seen.append(argument)
        return argument

    work.__annotations__.update({"argument": hint, "return": hint})
    task(work)

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        seen.append(await ctx.task(work, value))

    handle = await start(engine, parent, tasks=[work])
    await handle.result(timeout=10)

    assert [value, value] == seen
    assert all(type(value) is type(each) for each in seen)


async def test_a_kind_gives_plain_values_unless_hinted(engine):
    """By kind alone nobody knows the result's type; `type_hint` says it."""

    @task
    async def work() -> Point:
        return Point(1)

    @workflow
    async def parent(ctx: WorkflowContext) -> list[object]:
        plain = await ctx.task("work")
        typed = await ctx.task("work", type_hint=Point)
        return [plain, typed.x]

    handle = await start(engine, parent, tasks=[work])

    assert [{"x": 1}, 1] == await handle.result(timeout=10)


async def test_arguments_that_do_not_fit(engine):
    """The task fails at once, without retries: every attempt would end the same way."""

    @task
    async def work(number: int) -> None: ...

    @workflow
    async def parent(ctx: WorkflowContext) -> list[object]:
        caught: list[object] = []
        for arguments in (("text",), (1, 2), ()):
            try:
                await ctx.task("work", *arguments)
            except TaskFailed as failed:
                caught.append((failed.error_type, failed.attempts))
        return caught

    handle = await start(engine, parent, tasks=[work])

    wrong = ["PayloadNotDecodable", 1]
    too_few = (await handle.result(timeout=10))[2]
    assert [wrong, wrong, too_few] == await handle.result(timeout=10)
    assert 1 == too_few[1]


async def test_a_result_without_durable_form(engine):
    """Fails at once and says where."""

    @task
    async def work() -> object:
        return [print]

    @workflow
    async def parent(ctx: WorkflowContext) -> list[object]:
        try:
            await ctx.task(work)
        except TaskFailed as failed:
            return [failed.error_type, failed.attempts, str(failed)]
        return []

    kind, attempts, message = await (await start(engine, parent, tasks=[work])).result(timeout=10)

    assert ("PayloadNotEncodable", 1) == (kind, attempts)
    assert "work[0]" in message


async def test_a_result_that_does_not_fit_its_annotation(engine):
    """An error at the await that names the task."""

    @task
    async def work() -> int:
        return "text"  # type: ignore[return-value]  # that is the point

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        try:
            await ctx.task(work)
        except PayloadNotDecodable as error:
            return error.field
        return ""

    assert "work" == await (await start(engine, parent, tasks=[work])).result(timeout=10)


# --- queues -----------------------------------------------------------------------------------------------------------


def on_queues(*queues):
    return EngineConfig(store=QUICK.store, worker=WorkerConfig(shutdown_grace_s=0.2, queues=queues))


async def test_a_task_goes_to_the_worker_of_its_queue(engine):
    """Only a worker that serves the queue gets it."""
    served = []

    def serving(name):
        @task(kind="work")
        async def work() -> str:
            served.append(name)
            return name

        return work

    @workflow
    async def parent(ctx: WorkflowContext) -> list[str]:
        return [await ctx.task("work"), await ctx.task("work", queue="gpu"), await ctx.task("work", queue="cpu")]

    client = (await engine(workflows=[parent], tasks=[serving("default")])).client
    await engine(tasks=[serving("both")], config=on_queues("gpu", "cpu"))
    handle = await client.start_workflow(parent)

    assert ["default", "both", "both"] == await handle.result(timeout=20) == served


async def test_a_task_waits_for_a_worker_that_knows_its_kind(engine):
    """It stays on its queue, visibly, until one comes."""

    @task
    async def later() -> str:
        return "done"

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        return await ctx.task("later")

    handle = await start(engine, parent)
    (row,) = await until(handle.pending_tasks)

    assert ("later", "default", 0, None) == (row.kind, row.queue, row.attempt, row.worker)
    await engine(tasks=[later])
    assert "done" == await handle.result(timeout=20)


async def test_a_workflow_keeps_its_tasks_on_its_own_queue(engine):
    """Without a queue of its own a task goes where its workflow runs."""

    @task
    async def work() -> None: ...

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await ctx.task(work)

    client = (await engine(workflows=[parent], tasks=[work], config=on_queues("apart"))).client
    handle = await client.start_workflow(parent, queue="apart")
    await handle.result(timeout=10)

    assert ["apart"] == [body.queue for body in await events(handle, "TASK_SCHEDULED")]


async def test_higher_priority_first(engine):
    """With one slot, of the tasks that wait the one with the highest priority is next."""
    order = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    @task
    async def first() -> None:
        begun.set()
        await go_on.wait()

    @task
    async def work(name: str) -> None:
        order.append(name)

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await asyncio.gather(
            ctx.task(first),
            *(ctx.task(work, f"{priority}", priority=priority) for priority in (0, 5, -1, 9)),
        )

    config = EngineConfig(store=QUICK.store, worker=WorkerConfig(task_slots=1, shutdown_grace_s=0.2))
    handle = await start(engine, parent, tasks=[first, work], config=config)
    await begun.wait()
    go_on.set()
    await handle.result(timeout=10)

    assert ["9", "5", "0", "-1"] == order


# --- retries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
async def test_a_failing_task_is_tried_again(engine, plain):
    """Attempts are numbered from 1, with the same idempotency key each time."""
    tries = []

    def attempt(ctx: TaskContext) -> str:
        tries.append((ctx.info.attempt, ctx.info.idempotency_key))
        if ctx.info.attempt < 3:
            raise ConnectionError("not yet")
        return "at last"

    @task(kind="flaky")
    def flaky_plain(ctx: TaskContext) -> str:
        return attempt(ctx)

    @task(kind="flaky")
    async def flaky_async(ctx: TaskContext) -> str:
        return attempt(ctx)

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        return await ctx.task("flaky", retry=AT_ONCE)

    handle = await start(engine, parent, tasks=[flaky_plain if plain else flaky_async])

    assert "at last" == await handle.result(timeout=10)
    assert [(1, f"{handle.id}/1"), (2, f"{handle.id}/1"), (3, f"{handle.id}/1")] == tries
    assert [3] == [body.attempt for body in await events(handle, "TASK_COMPLETED")]


async def test_retries_wait_longer_each_time(engine):
    """The row shows when the next attempt is due: the interval, then twice of it, and so on."""
    now = [1_700_000_000_000_000]

    @task
    async def broken() -> None:
        raise ConnectionError("no")

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await ctx.task(broken, retry=RetryPolicy(initial_interval_s=10, backoff=3, max_interval_s=60, jitter=False))

    config = EngineConfig(store=QUICK.store, worker=WorkerConfig(lease_s=1e9, shutdown_grace_s=0.2))
    running = await engine(workflows=[parent], tasks=[broken], config=config, clock=lambda: now[0])
    handle = await running.client.start_workflow(parent)
    delays = []
    for attempt in range(1, 5):
        (row,) = await until(partial(resting, handle, attempt))
        next_at = micros(row.not_before)
        delays.append((next_at - now[0]) / 1_000_000)
        now[0] = next_at
        await running.recover()

    assert [10, 30, 60, 60] == delays


async def resting(handle, attempt):
    return [row for row in await handle.pending_tasks() if row.attempt == attempt and row.worker is None]


async def test_a_task_that_keeps_failing_raises_at_the_await(engine):
    """TaskFailed with type, number of attempts and the failure of the last one; TASK_FAILED is recorded once."""

    @task
    async def broken() -> None:
        raise ConnectionError("no route")

    @workflow
    async def parent(ctx: WorkflowContext) -> list[object]:
        try:
            await ctx.task(broken, retry=AT_ONCE)
        except TaskFailed as failed:
            failure = failed.details["failure"]
            return [failed.code, failed.error_type, failed.attempts, str(failed), "broken" in failure.traceback]
        return []

    handle = await start(engine, parent, tasks=[broken])
    code, kind, attempts, message, traced = await handle.result(timeout=10)

    assert ("task_failed", "ConnectionError", 3, True) == (code, kind, attempts, traced)
    assert "no route" in message
    assert [3] == [body.attempt for body in await events(handle, "TASK_FAILED")]


@pytest.mark.parametrize("how", ["raised", "named"])
async def test_what_is_not_retryable_fails_at_once(engine, how):
    """NonRetryable and its subclasses, and the types the policy names."""

    class Declined(NonRetryable):
        pass

    @task
    async def decline() -> None:
        raise Declined("no") if how == "raised" else LookupError("no")

    @workflow
    async def parent(ctx: WorkflowContext) -> list[object]:
        policy = RetryPolicy(initial_interval_s=0, non_retryable=("LookupError",))
        try:
            await ctx.task(decline, retry=policy)
        except TaskFailed as failed:
            return [failed.error_type, failed.attempts]
        return []

    handle = await start(engine, parent, tasks=[decline])

    assert ["Declined" if how == "raised" else "LookupError", 1] == await handle.result(timeout=10)


async def test_an_uncaught_task_failure_fails_the_workflow(engine):
    """With the task's failure told in the message."""

    @task
    async def broken() -> None:
        raise ConnectionError("no route")

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await ctx.task(broken, retry=NEVER)

    handle = await start(engine, parent, tasks=[broken])
    with pytest.raises(WorkflowFailed, match="no route") as failed:
        await handle.result(timeout=10)
    assert "TaskFailed" == failed.value.error_type


UNUSUAL = [asyncio.CancelledError("by itself"), StopIteration("empty"), SystemExit(3)]


@pytest.mark.parametrize("error", UNUSUAL, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("plain", [False, True])
async def test_whatever_a_task_raises_is_its_failure(engine, error, plain):
    """Also what asyncio and Python treat in a special way: the workflow gets TaskFailed and the worker lives on."""

    @task(kind="raise_it")
    def raise_it() -> None:
        raise error

    @task(kind="raise_it")
    async def raise_it_async() -> None:
        raise error

    @task
    async def well() -> str:
        return "well"

    @workflow
    async def parent(ctx: WorkflowContext) -> list[str]:
        try:
            await ctx.task("raise_it", retry=NEVER)
        except TaskFailed as failed:
            return [failed.error_type, await ctx.task(well)]
        return []

    handle = await start(engine, parent, tasks=[raise_it if plain else raise_it_async, well])
    kind, after = await handle.result(timeout=3)

    # Python itself turns a StopIteration that leaves a coroutine into a RuntimeError.
    assert kind in {type(error).__name__, "RuntimeError" if isinstance(error, StopIteration) else ""}
    assert "well" == after


# --- time-outs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["start_to_close", "schedule_to_close", "heartbeat_timeout"])
async def test_a_body_that_takes_too_long_is_stopped(engine, limit):
    """TaskTimedOut, which is a TaskFailed; the event names the limit that was passed, and the body is cancelled."""
    stopped = asyncio.Event()

    @task
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @workflow
    async def parent(ctx: WorkflowContext) -> list[object]:
        try:
            await ctx.task(endless, retry=NEVER, **{limit: 0.3})
        except TaskTimedOut as late:
            return [late.code, late.error_type, late.attempts, str(late)]
        return []

    handle = await start(engine, parent, tasks=[endless])
    code, kind, attempts, message = await handle.result(timeout=10)
    await asyncio.wait_for(stopped.wait(), 10)
    name = limit.removesuffix("_timeout")

    assert ("task_timed_out", "TimeoutError", 1) == (code, kind, attempts)
    assert name in message
    assert [name] == [body.timeout for body in await events(handle, "TASK_FAILED")]


@pytest.mark.parametrize("limit", ["start_to_close", "heartbeat_timeout"])
async def test_a_timed_out_attempt_is_tried_again(engine, limit):
    """These limits are per attempt."""

    @task
    async def slow_once(ctx: TaskContext) -> int:
        if ctx.info.attempt == 1:
            await asyncio.Event().wait()
        return ctx.info.attempt

    @workflow
    async def parent(ctx: WorkflowContext) -> int:
        return await ctx.task(slow_once, retry=RetryPolicy(initial_interval_s=0), **{limit: 0.1})

    handle = await start(engine, parent, tasks=[slow_once])

    assert 2 <= await handle.result(timeout=10)


async def test_schedule_to_close_ends_all_attempts(engine):
    """A retry that could only begin after the limit is not waited for."""
    tries = []

    @task
    async def broken() -> None:
        tries.append(1)
        raise ConnectionError("no")

    @workflow
    async def parent(ctx: WorkflowContext) -> list[object]:
        try:
            await ctx.task(
                broken, retry=RetryPolicy(initial_interval_s=3600, max_interval_s=3600), schedule_to_close=60
            )
        except TaskFailed as failed:
            return [type(failed).__name__, failed.attempts]
        return []

    handle = await start(engine, parent, tasks=[broken])
    kind, attempts = await handle.result(timeout=10)

    assert kind in {"TaskFailed", "TaskTimedOut"}
    assert 1 == attempts == len(tries)


async def test_schedule_to_close_counts_while_nobody_takes_the_task(engine):
    """A task on a queue that no worker serves ends at its limit."""

    @workflow
    async def parent(ctx: WorkflowContext) -> list[object]:
        try:
            await ctx.task("nobody knows it", schedule_to_close=0.05)
        except TaskTimedOut as late:
            return [late.attempts, str(late)]
        return []

    attempts, message = await (await start(engine, parent)).result(timeout=10)

    assert 0 == attempts
    assert "schedule_to_close" in message


async def test_a_late_report_of_a_body_in_a_thread_is_not_recorded(engine):
    """A thread can't be stopped; what it returns after its time-out is refused, and only the retry counts."""
    go_on = threading.Event()
    flags = []

    @task
    def stubborn(ctx: TaskContext) -> int:
        if ctx.info.attempt == 1:
            go_on.wait(20)
            flags.append((ctx.is_cancelled, ctx.stop_reason))
        return ctx.info.attempt

    @workflow
    async def parent(ctx: WorkflowContext) -> int:
        return await ctx.task(stubborn, retry=RetryPolicy(initial_interval_s=0), start_to_close=0.1)

    handle = await start(engine, parent, tasks=[stubborn])
    result = await handle.result(timeout=10)
    go_on.set()
    await until(lambda: flags)

    assert 2 <= result
    assert [(True, "timed_out")] == flags
    assert [result] == [body.attempt for body in await events(handle, "TASK_COMPLETED")]


# --- heartbeats -------------------------------------------------------------------------------------------------------


async def test_heartbeats_keep_a_long_body_alive(engine):
    """A body that reports more often than its heartbeat limit may take as long as it likes."""

    @task
    async def long(ctx: TaskContext) -> int:
        beats = 0
        while beats < 30:
            ctx.heartbeat()
            beats += 1
            await asyncio.sleep(0.05)
        return beats

    @workflow
    async def parent(ctx: WorkflowContext) -> int:
        return await ctx.task(long, retry=NEVER, heartbeat_timeout=1)

    handle = await start(engine, parent, tasks=[long])

    assert 30 == await handle.result(timeout=20)


async def test_details_reach_the_next_attempt(engine):
    """What the last heartbeat carried is there when the task is tried again, in the asked type."""
    seen = []

    @task
    async def resumable(ctx: TaskContext) -> int:
        last = ctx.last_details(Receipt)
        seen.append(last)
        if last is None:
            ctx.heartbeat(Receipt(1, []))
            ctx.heartbeat(Receipt(7, ["a"]), progress=0.5)
            await asyncio.Event().wait()
        return last.number

    @workflow
    async def parent(ctx: WorkflowContext) -> int:
        return await ctx.task(resumable, retry=AT_ONCE, heartbeat_timeout=0.6)

    handle = await start(engine, parent, tasks=[resumable])

    assert 7 == await handle.result(timeout=20)
    assert [None, Receipt(7, ["a"])] == seen


async def test_details_of_a_failing_attempt_reach_the_next_one(engine):
    """Also when the body fails right after its heartbeat, before the session has passed it on."""

    @task
    async def resumable(ctx: TaskContext) -> object:
        if ctx.info.attempt == 1:
            ctx.heartbeat({"done": 3})
            raise ConnectionError("lost")
        return ctx.last_details()

    @workflow
    async def parent(ctx: WorkflowContext) -> object:
        return await ctx.task(resumable, retry=AT_ONCE)

    handle = await start(engine, parent, tasks=[resumable])

    assert {"done": 3} == await handle.result(timeout=10)


async def test_progress_is_visible(engine):
    """`pending_tasks` shows attempt, worker, details and progress of what runs."""
    go_on = asyncio.Event()

    @task
    async def long(ctx: TaskContext) -> None:
        ctx.heartbeat({"page": 3}, progress=0.25)
        await go_on.wait()

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await ctx.task(long, heartbeat_timeout=1)

    running = await engine(workflows=[parent], tasks=[long])
    handle = await running.client.start_workflow(parent)
    (row,) = await until(lambda: with_progress(handle))
    go_on.set()
    await handle.result(timeout=10)

    assert ("long", 1, running.worker.session, 0.25) == (row.kind, row.attempt, row.worker, row.progress)
    assert {"page": 3} == row.details
    assert row.heartbeat_at >= row.started_at >= row.scheduled_at


async def with_progress(handle):
    return [row for row in await handle.pending_tasks() if row.progress is not None]


async def test_the_context_says_which_attempt_of_which_task_this_is(engine):
    """Org, execution, number, kind, attempt and times."""
    infos = []

    @task
    async def look(ctx: TaskContext) -> None:
        infos.append(ctx.info)

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await ctx.task(look)
        await ctx.task(look)

    before = datetime.now(UTC)
    handle = await start(engine, parent, tasks=[look])
    await handle.result(timeout=10)

    assert [("default", handle.id, 1, "look", 1), ("default", handle.id, 2, "look", 1)] == [
        (info.org, info.workflow_execution_id, info.task_no, info.kind, info.attempt) for info in infos
    ]
    assert all(before <= info.scheduled_at <= info.started_at <= datetime.now(UTC) for info in infos)


# --- no longer wanted -------------------------------------------------------------------------------------------------


async def test_cancelling_the_await_stops_the_body(engine):
    """TASK_CANCEL_REQUESTED is recorded, the row is gone, the body gets CancelledError and the workflow goes on."""
    begun, stopped = asyncio.Event(), asyncio.Event()
    contexts = []

    @task
    async def endless(ctx: TaskContext) -> None:
        contexts.append(ctx)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        job = ctx.task(endless)
        await ctx.wait_for_signal("enough")
        job.cancel()
        try:
            await job
        except asyncio.CancelledError:
            await ctx.wait_for_signal("end")
            return "cancelled"
        return ""

    handle = await start(engine, parent, tasks=[endless])
    await begun.wait()
    await handle.signal("enough")
    await asyncio.wait_for(stopped.wait(), 10)

    assert (True, "cancelled") == (contexts[0].is_cancelled, contexts[0].stop_reason)
    assert [] == await handle.pending_tasks()
    await handle.signal("end")
    assert "cancelled" == await handle.result(timeout=10)
    (asked,) = await events(handle, "TASK_CANCEL_REQUESTED")
    assert (1, True) == (asked.task_no, "test_context_tasks.py" in asked.line)
    assert [] == await events(handle, "TASK_COMPLETED") + await events(handle, "TASK_FAILED")


async def test_cancelling_a_task_nobody_has_taken(engine):
    """It leaves the queue."""

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        job = ctx.task("nobody knows it")
        await ctx.wait_for_signal("enough")
        job.cancel()
        await ctx.wait_for_signal("end")

    handle = await start(engine, parent)
    await until(handle.pending_tasks)
    await handle.signal("enough")
    await until(lambda: has_none(handle))
    await handle.signal("end")
    await handle.result(timeout=10)


async def has_none(handle):
    return not await handle.pending_tasks()


async def test_a_task_left_behind_is_stopped(engine):
    """A workflow that ends while a task it has waited for is still at work takes it with it."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    @task
    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        await asyncio.wait([ctx.task(endless), ctx.wait_for_signal("go")], return_when=asyncio.FIRST_COMPLETED)
        return "left"

    handle = await start(engine, parent, tasks=[endless])
    await begun.wait()
    await handle.signal("go")

    assert "left" == await handle.result(timeout=10)
    await asyncio.wait_for(stopped.wait(), 5)
    assert [] == await handle.pending_tasks()


async def test_a_task_survives_a_restart_of_its_worker(engine):
    """A body that was interrupted by a shutdown runs again elsewhere, without an attempt being counted."""
    begun = asyncio.Event()
    attempts = []

    @task
    async def patient(ctx: TaskContext) -> str:
        attempts.append(ctx.info.attempt)
        if len(attempts) == 1:
            begun.set()
            await asyncio.Event().wait()
        return "done"

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        return await ctx.task(patient, retry=NEVER)

    one = await engine(workflows=[parent], tasks=[patient])
    handle = await one.client.start_workflow(parent)
    await begun.wait()
    await one.shutdown()
    two = await engine(workflows=[parent], tasks=[patient])

    assert "done" == await two.client.workflow(handle.id).result(timeout=10)
    assert [1, 1] == attempts


async def test_a_waiting_workflow_shows_the_task_it_waits_for(engine):
    """Kind, number and line."""

    @workflow
    async def parent(ctx: WorkflowContext) -> None:
        await ctx.task("nobody knows it")

    handle = await start(engine, parent)
    await until(lambda: has_status(handle, Status.WAITING))
    (wait,) = (await handle.describe()).waiting_for

    assert ("task", "nobody knows it", 1) == (wait.kind, wait.name, wait.number)
    assert "test_context_tasks.py" in wait.line


async def test_a_heartbeat_of_an_attempt_that_is_over_does_not_stop_the_next(engine):
    """The session passes beats on a little later; by then they may belong to an attempt that has failed."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    @task
    async def work(ctx: TaskContext) -> int:
        if ctx.info.attempt == 1:
            ctx.heartbeat("last words")
            raise ConnectionError("lost")
        begun.set()
        await go_on.wait()
        return ctx.info.attempt

    @workflow
    async def parent(ctx: WorkflowContext) -> int:
        return await ctx.task(work, retry=AT_ONCE)

    config = EngineConfig(store=QUICK.store, worker=WorkerConfig(lease_s=0.6, shutdown_grace_s=0.2))
    running = await engine(workflows=[parent], tasks=[work], config=config)
    sent = []
    workers = running._local.workers
    heartbeat = workers.heartbeat

    def watched(request):
        sent.append(request)
        return heartbeat(request)

    workers.heartbeat = watched
    handle = await running.client.start_workflow(parent)
    await begun.wait()
    already = len(sent)
    await until(lambda: len(sent) > already + 2)
    go_on.set()

    assert 2 == await handle.result(timeout=10)
