"""Plain asyncio inside a workflow: gather, wait, time-outs, groups, events, queues — all durable."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from holdfast import RetryPolicy, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.errors import TaskFailed
from tests.conftest import until


@task
async def echo(value: Any) -> Any:
    return value


@task(retry=RetryPolicy(max_attempts=1))
async def fail(message: str) -> None:
    raise ValueError(message)


TASKS = [echo, fail]


async def start(engine, fn, *arguments):
    client = (await engine(workflows=[fn], tasks=TASKS)).client
    return await client.start_workflow(fn, *arguments)


async def result(engine, fn, *arguments):
    return await (await start(engine, fn, *arguments)).result(timeout=15)


async def waiting(handle):
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))


async def has_status(handle, status):
    return await handle.status() is status


async def types(handle):
    return [event.type for event in await handle.history()]


async def test_gather_keeps_the_order_of_its_arguments(engine):
    """Steps, tasks, sleeps and coroutines, each result in its place."""

    @workflow
    async def everything(ctx: WorkflowContext) -> list[object]:
        async def both() -> list[object]:
            return [await ctx.task(echo, "inner"), await ctx.run(abs, -1)]

        return await asyncio.gather(ctx.task(echo, "a"), ctx.run(abs, -2), ctx.sleep(0.01), both(), ctx.task(echo, "z"))

    assert ["a", 2, None, ["inner", 1], "z"] == await result(engine, everything)


async def test_gather_raises_the_first_failure(engine):
    """The failure of one is raised; with `return_exceptions` all outcomes come back."""

    @workflow
    async def some_fail(ctx: WorkflowContext) -> list[str]:
        seen = []
        try:
            await asyncio.gather(ctx.task(echo, 1), ctx.task(fail, "one"))
        except TaskFailed as error:
            seen.append(str(error))
        found = await asyncio.gather(ctx.task(fail, "two"), ctx.task(echo, 1), return_exceptions=True)
        return seen + [type(each).__name__ for each in found]

    first, *rest = await result(engine, some_fail)

    assert "ValueError: one" in first
    assert ["TaskFailed", "int"] == rest


async def test_wait_for_the_first(engine):
    """asyncio.wait with FIRST_COMPLETED: done and pending are told apart, and the pending can be cancelled."""

    @workflow
    async def race(ctx: WorkflowContext) -> list[object]:
        fast: asyncio.Future[Any] = ctx.task(echo, "fast")
        slow: asyncio.Future[Any] = ctx.sleep(3600)
        done, pending = await asyncio.wait({fast, slow}, return_when=asyncio.FIRST_COMPLETED)
        for each in pending:
            each.cancel()
        return [[each.result() for each in done], len(pending), slow in pending]

    handle = await start(engine, race)

    assert [["fast"], 1, True] == await handle.result(timeout=15)
    assert "TIMER_CANCELLED" in await types(handle)


async def test_wait_for_gives_up_and_cancels(engine):
    """asyncio.wait_for raises TimeoutError by a durable timer and cancels what it waited for."""

    @workflow
    async def impatient(ctx: WorkflowContext) -> str:
        try:
            await asyncio.wait_for(ctx.wait_for_signal("never"), 0.02)
        except TimeoutError:
            await ctx.wait_for_signal("end")
            return "gave up"
        return ""

    handle = await start(engine, impatient)
    await until(lambda: waits_for(handle, "end"))
    await handle.signal("end")

    assert "gave up" == await handle.result(timeout=15)
    assert ["TIMER_STARTED", "TIMER_FIRED"] == [kind for kind in await types(handle) if kind.startswith("TIMER")]


async def waits_for(handle, name):
    return [name] == [wait.name for wait in (await handle.describe()).waiting_for]


async def test_wait_for_in_time(engine):
    """The result is passed on and the timer taken back."""

    @workflow
    async def patient(ctx: WorkflowContext) -> object:
        return await asyncio.wait_for(ctx.task(echo, 7), 3600)

    handle = await start(engine, patient)

    assert 7 == await handle.result(timeout=15)
    assert [] == await handle.pending_timers()


async def test_timeout_blocks(engine):
    """`asyncio.timeout` around several awaits; nested ones end with the nearer limit; rescheduling counts."""

    @workflow
    async def limits(ctx: WorkflowContext) -> list[str]:
        seen = []
        try:
            async with asyncio.timeout(3600):
                try:
                    async with asyncio.timeout(0.02):
                        await ctx.task(echo, 1)
                        await ctx.sleep(3600)
                except TimeoutError:
                    seen.append("inner")
                await ctx.task(echo, 2)
                seen.append("after")
        except TimeoutError:
            seen.append("outer")
        async with asyncio.timeout(0.01) as limit:
            limit.reschedule(asyncio.get_running_loop().time() + 3600)
            await ctx.sleep(0.03)
            seen.append("rescheduled")
        return seen

    handle = await start(engine, limits)

    assert ["inner", "after", "rescheduled"] == await handle.result(timeout=15)
    assert [] == await handle.pending_timers()


async def test_task_groups(engine):
    """A group waits for all its members; one failure cancels the others and comes out as a group of exceptions."""

    @workflow
    async def groups(ctx: WorkflowContext) -> list[object]:
        async with asyncio.TaskGroup() as group:
            one = group.create_task(twice(ctx, 1))
            two = group.create_task(twice(ctx, 2))
        seen = [one.result(), two.result()]
        cancelled = []

        async def patient() -> None:
            try:
                await ctx.sleep(3600)
            except asyncio.CancelledError:
                cancelled.append("patient")
                raise

        async def broken() -> None:
            await ctx.task(fail, "no")

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(patient())
                group.create_task(broken())
        except* TaskFailed as errors:
            seen.append(len(errors.exceptions))
        return seen + cancelled

    async def twice(ctx, value):
        return await ctx.task(echo, value) + await ctx.task(echo, value)

    handle = await start(engine, groups)

    assert [2, 4, 1, "patient"] == await handle.result(timeout=15)
    assert [] == await handle.pending_timers()


async def has_slept(handle):
    return "TIMER_STARTED" in await types(handle)


async def test_sleep_is_durable(engine):
    """asyncio.sleep is a recorded timer like ctx.sleep and survives a restart."""

    @workflow
    async def sleeper(ctx: WorkflowContext) -> object:
        await ctx.wait_for_signal("go")
        return await asyncio.sleep(0.05, "slept")

    first = await engine(workflows=[sleeper])
    handle = await first.client.start_workflow(sleeper)
    await handle.signal("go")
    await until(lambda: has_slept(handle))
    await first.shutdown()
    second = await engine(workflows=[sleeper])
    handle = second.client.workflow(handle.id)

    assert "slept" == await handle.result(timeout=15)
    assert ["TIMER_STARTED", "TIMER_FIRED"] == [kind for kind in await types(handle) if kind.startswith("TIMER")]


async def test_a_sleep_of_nothing_is_no_timer(engine):
    """`asyncio.sleep(0)` lets the others run and leaves no trace."""

    @workflow
    async def polite(ctx: WorkflowContext) -> list[str]:
        order = []

        async def other() -> None:
            order.append("other")

        job = asyncio.create_task(other())
        await asyncio.sleep(0)
        order.append("main")
        await job
        return order

    handle = await start(engine, polite)

    assert ["other", "main"] == await handle.result(timeout=15)
    assert ["WORKFLOW_STARTED", "WORKFLOW_COMPLETED"] == await types(handle)


async def test_events_locks_and_conditions(engine):
    """Parts of one program can wait for each other."""

    @workflow
    async def together(ctx: WorkflowContext) -> list[str]:
        order = []
        ready, lock, condition = asyncio.Event(), asyncio.Lock(), asyncio.Condition()

        async def producer() -> None:
            order.append(await ctx.task(echo, "produced"))
            ready.set()
            async with condition:
                condition.notify_all()

        async def consumer(name: str) -> None:
            await ready.wait()
            async with lock:
                order.append(f"{name} in")
                await ctx.task(echo, 1)
                order.append(f"{name} out")

        await asyncio.gather(consumer("a"), consumer("b"), producer())
        return order

    assert ["produced", "a in", "a out", "b in", "b out"] == await result(engine, together)


async def test_queues_and_semaphores(engine):
    """A pool of three inside a workflow works through ten items, never more than three at once."""

    @workflow
    async def pool(ctx: WorkflowContext) -> list[object]:
        todo: asyncio.Queue[int] = asyncio.Queue()
        done, at_once = [], [0, 0]
        for number in range(10):
            todo.put_nowait(number)

        async def worker() -> None:
            while not todo.empty():
                number = todo.get_nowait()
                at_once[0] += 1
                at_once[1] = max(at_once)
                done.append(await ctx.task(echo, number))
                at_once[0] -= 1
                todo.task_done()

        workers = [asyncio.create_task(worker()) for _ in range(3)]
        await todo.join()
        await asyncio.gather(*workers)
        return [sorted(done), at_once[1]]

    assert [list(range(10)), 3] == await result(engine, pool)


async def test_shield(engine):
    """What is shielded goes on when its waiter is cancelled, and can be awaited again."""

    @workflow
    async def protective(ctx: WorkflowContext) -> object:
        job = asyncio.ensure_future(ctx.wait_for_signal("late"))
        try:
            await asyncio.wait_for(asyncio.shield(job), 0.02)
        except TimeoutError:
            return ["timed out", await job]
        return []

    handle = await start(engine, protective)
    await until(lambda: fired(handle))
    await handle.signal("late", "but there")

    assert ["timed out", "but there"] == await handle.result(timeout=15)


async def fired(handle):
    return "TIMER_FIRED" in await types(handle) and await has_status(handle, WorkflowStatus.WAITING)


async def test_as_completed_over_tasks(engine):
    """In the order in which they finish, for tasks made beforehand."""

    @workflow
    async def collect(ctx: WorkflowContext) -> list[object]:
        jobs: list[asyncio.Future[Any]] = [ctx.wait_for_signal("a"), ctx.wait_for_signal("b")]
        return [await job for job in asyncio.as_completed(jobs)]

    handle = await start(engine, collect)
    await waiting(handle)
    await handle.signal("b", 2)
    await handle.signal("a", 1)

    assert [2, 1] == await handle.result(timeout=15)


async def test_background_tasks_and_generators(engine):
    """create_task, async generators and async context managers are ordinary Python."""

    @workflow
    async def ordinary(ctx: WorkflowContext) -> list[object]:
        @asynccontextmanager
        async def resource(name: str) -> AsyncIterator[str]:
            yield await ctx.task(echo, f"open {name}")
            seen.append(await ctx.task(echo, f"close {name}"))

        async def numbers() -> AsyncIterator[object]:
            for number in range(3):
                yield await ctx.task(echo, number)

        seen: list[object] = []
        job = asyncio.create_task(asyncio.sleep(0.01, "background"))
        async with resource("it") as opened:
            seen.append(opened)
            seen += [number async for number in numbers()]
        return [*seen, await job]

    assert ["open it", 0, 1, 2, "close it", "background"] == await result(engine, ordinary)


async def test_durable_futures_compose_without_being_awaited_in_order(engine):
    """Each method of ctx starts at once: two sleeps of the same length overlap, and may be awaited later."""

    @workflow
    async def overlapping(ctx: WorkflowContext) -> list[object]:
        first, second = ctx.task(echo, 1), ctx.task(echo, 2)
        timer = ctx.sleep(0.01)
        await timer
        return [await second, await first]

    handle = await start(engine, overlapping)

    assert [2, 1] == await handle.result(timeout=15)
    kinds = await types(handle)
    assert kinds.index("TIMER_STARTED") < kinds.index("TASK_COMPLETED")


async def test_awaiting_twice_is_awaiting_once(engine):
    """A settled future keeps its result."""

    @workflow
    async def again(ctx: WorkflowContext) -> list[object]:
        job = ctx.task(echo, 7)
        return [await job, await job, job.done(), job.result()]

    assert [7, 7, True, 7] == await result(engine, again)


async def test_cancelling_a_part_of_the_program(engine):
    """A cancelled asyncio task takes back what it waited for; the rest goes on."""

    @workflow
    async def partly(ctx: WorkflowContext) -> str:
        job = asyncio.create_task(ctx_sleep(ctx))
        await ctx.task(echo, 1)
        job.cancel()
        try:
            await job
        except asyncio.CancelledError:
            return await ctx.task(echo, "went on")
        return ""

    async def ctx_sleep(ctx):
        await ctx.sleep(3600)

    handle = await start(engine, partly)

    assert "went on" == await handle.result(timeout=15)
    assert ["TIMER_STARTED", "TIMER_CANCELLED"] == [kind for kind in await types(handle) if kind.startswith("TIMER")]


async def test_a_workflow_that_cancels_itself_has_failed(engine):
    """Nobody asked for it from outside: it is a failure, not a cancellation."""

    @workflow
    async def selfish(ctx: WorkflowContext) -> None:
        raise asyncio.CancelledError

    handle = await start(engine, selfish)
    await until(lambda: has_status(handle, WorkflowStatus.FAILED))


@pytest.mark.parametrize("rounds", [1, 2])
async def test_all_of_it_survives_losing_the_program(engine, rounds):
    """A program of all these parts, thrown away at each of its waits, ends with the same result."""

    @workflow
    async def everything(ctx: WorkflowContext) -> list[object]:
        queue: asyncio.Queue[object] = asyncio.Queue()

        async def feed() -> None:
            while (item := await ctx.wait_for_signal("item")) != "stop":
                await queue.put(await ctx.task(echo, item))
            await queue.put(None)

        seen = []
        async with asyncio.TaskGroup() as group:
            group.create_task(feed())
            while (item := await queue.get()) is not None:
                seen.append(item)
                async with asyncio.timeout(3600):
                    await asyncio.gather(ctx.run(abs, 1), asyncio.sleep(0.001))
        return seen

    running = await engine(workflows=[everything], tasks=TASKS)
    handle = await running.client.start_workflow(everything)
    for value in ("a", "b", "c", "stop"):
        for _ in range(rounds):
            await until(partial(no_news, running, handle.id))
            await running.shutdown()
            running = await engine(workflows=[everything], tasks=TASKS)
        await running.client.signal_workflow(handle.id, "item", value)

    assert ["a", "b", "c"] == await running.client.workflow(handle.id).result(timeout=15)


async def no_news(engine, execution_id):
    return await engine.query_status(execution_id) is WorkflowStatus.WAITING
