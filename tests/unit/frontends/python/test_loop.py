"""The deterministic loop: asyncio as workflows use it, on virtual time, with the same order in every run."""

import asyncio
import contextvars
import gc
import inspect
import os
import random
import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest

from holdfast.errors import Evicted, NotDurableError
from holdfast.frontends.python import loop as loop_module
from holdfast.frontends.python.loop import BusyLoop, DeterministicLoop, foreign_wait

pytestmark = pytest.mark.filterwarnings("error")


class VirtualTime:
    """A TimerSeam on which time passes when the test says so, and which remembers what was asked of it."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.pending: dict[int, tuple[float, Callable[[], None]]] = {}
        self.log: list[str] = []
        self.started = 0

    def now(self) -> float:
        return self.at

    def start(self, when: float, fire: Callable[[], None]) -> Callable[[], None]:
        self.started = number = self.started + 1
        self.pending[number] = (when, fire)
        self.log.append(f"start {when - 1000:g}")

        def cancel() -> None:
            del self.pending[number]
            self.log.append(f"cancel {when - 1000:g}")

        return cancel

    def pass_on(self) -> None:
        """Let time pass to the next timer and fire it."""
        number = min(self.pending, key=lambda each: (self.pending[each][0], each))
        self.at, fire = self.pending.pop(number)
        self.log.append(f"fire {self.at - 1000:g}")
        fire()


class Workflow:
    """A program on a loop of its own, started and run until it waits."""

    def __init__(self, main: Coroutine[Any, Any, Any]) -> None:
        self.time = VirtualTime()
        self.loop = DeterministicLoop(self.time)
        self.task = self.loop.create_task(main)
        self.loop.drain()

    def finish(self) -> Any:
        """Fire timers in order until the program is done."""
        while not self.task.done():
            assert self.time.pending, self.loop.blocked_on()
            self.time.pass_on()
            self.loop.drain()
        return self.task.result()


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return Workflow(main).finish()


async def later(delay: float, value: Any = None) -> Any:
    await asyncio.sleep(delay)
    return value


# --- asyncio, on durable time -----------------------------------------------------------------------------------------


def test_sleep_lasts_as_long_as_the_seam_says():
    """A sleep starts one durable timer, ends when it fires, and cancels nothing afterwards."""

    async def main() -> tuple[float, str]:
        before = asyncio.get_running_loop().time()
        value = await asyncio.sleep(3600, "slept")
        return asyncio.get_running_loop().time() - before, value

    workflow = Workflow(main())

    assert (3600.0, "slept") == workflow.finish()
    assert ["start 3600", "fire 3600"] == workflow.time.log


def test_sleep_of_nothing_starts_no_timer():
    """`asyncio.sleep(0)` and below only lets others run."""

    async def main() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(-5)

    workflow = Workflow(main())

    assert workflow.task.done()
    assert [] == workflow.time.log


def test_sleep_for_ever_starts_no_timer():
    """An infinite delay is no durable timer: nothing would ever fire it."""
    workflow = Workflow(asyncio.sleep(float("inf")))

    assert not workflow.task.done()
    assert [] == workflow.time.log
    workflow.loop.close()


def test_a_timer_at_no_number_is_refused():
    """NaN is no time; it would sort before, after and beside every other."""
    with pytest.raises(ValueError, match="NaN"):
        DeterministicLoop(VirtualTime()).call_at(float("nan"), print)


def test_call_later_without_delay_is_call_soon():
    """Delays of zero and below run in the order of the calls, without a timer; the handle still cancels."""
    workflow = Workflow(asyncio.sleep(0))
    seen: list[int] = []
    workflow.loop.call_later(0, seen.append, 1)
    cancelled = workflow.loop.call_later(0, seen.append, 2)
    workflow.loop.call_later(-1, seen.append, 3)
    workflow.loop.call_at(5, seen.append, 4)
    workflow.loop.call_soon(seen.append, 5)
    cancelled.cancel()
    workflow.loop.drain()

    assert [1, 3, 4, 5] == seen
    assert [] == workflow.time.log
    assert cancelled.cancelled()


def test_cancelling_a_timer_cancels_the_durable_one_once():
    """However often the handle is cancelled, the seam hears of it once."""
    workflow = Workflow(asyncio.sleep(0))
    handle = workflow.loop.call_later(10, pytest.fail, "ran")
    handle.cancel()
    handle.cancel()

    assert ["start 10", "cancel 10"] == workflow.time.log
    assert 1010.0 == handle.when()


def test_a_timer_cancelled_between_firing_and_running_does_not_run():
    """As in asyncio: what is cancelled before its turn has no turn, and the seam is left alone."""
    workflow = Workflow(asyncio.sleep(0))
    handle = workflow.loop.call_later(10, pytest.fail, "ran")
    workflow.time.pass_on()
    handle.cancel()
    workflow.loop.drain()

    assert ["start 10", "fire 10"] == workflow.time.log


def test_a_callback_cancelled_before_its_turn_does_not_run():
    """`call_soon` gives a handle that cancels."""
    loop = DeterministicLoop(VirtualTime())
    handle = loop.call_soon(pytest.fail, "ran")
    handle.cancel()
    loop.drain()

    assert handle.cancelled()


def test_wait_for_in_time_cancels_its_timer():
    """A wait that succeeds leaves no durable timer behind."""
    workflow = Workflow(asyncio.wait_for(later(1, "in time"), 5))

    assert "in time" == workflow.finish()
    assert {"start 1", "start 5", "fire 1", "cancel 5"} == set(workflow.time.log)
    assert {} == workflow.time.pending


def test_wait_for_too_long_fires_and_cancels_the_inner_timer():
    """A wait that fails does so when its durable timer fires, and what it waited for is cancelled."""
    workflow = Workflow(asyncio.wait_for(later(60), 5))

    with pytest.raises(TimeoutError):
        workflow.finish()
    assert {"start 60", "start 5", "fire 5", "cancel 60"} == set(workflow.time.log)
    assert {} == workflow.time.pending


def test_timeout_fires_through_the_seam():
    """`asyncio.timeout` is durable, may be moved, and cancels its timer when it is left in time."""

    async def main() -> str:
        async with asyncio.timeout(100):
            pass
        async with asyncio.timeout(100) as limit:
            limit.reschedule(asyncio.get_running_loop().time() + 7)
            try:
                await asyncio.sleep(50)
            except asyncio.CancelledError:
                raise
        return "unreachable"

    workflow = Workflow(main())

    with pytest.raises(TimeoutError):
        workflow.finish()
    expected = ["start 100", "cancel 100", "start 100", "cancel 100", "start 7", "start 50", "fire 7", "cancel 50"]
    assert expected == workflow.time.log


def test_timeout_in_the_past_fires_at_once():
    """A deadline that has passed cancels at the next await, without a timer of its own."""

    async def main() -> None:
        async with asyncio.timeout_at(1):
            await asyncio.sleep(50)

    workflow = Workflow(main())

    assert isinstance(workflow.task.exception(), TimeoutError)
    assert {} == workflow.time.pending


def test_gather_keeps_the_order_of_its_arguments():
    """Results come in the order asked for, whatever finished first."""

    async def main() -> list[str]:
        return await asyncio.gather(later(3, "a"), later(1, "b"), later(2, "c"))

    assert ["a", "b", "c"] == run(main())


def test_gather_hands_out_the_first_failure():
    """A failure of one goes to who awaits all; asyncio reports nothing of it elsewhere."""

    async def fails() -> None:
        await asyncio.sleep(1)
        raise LookupError("one of them")

    async def main() -> None:
        await asyncio.gather(later(3), fails())

    workflow = Workflow(main())

    with pytest.raises(LookupError, match="one of them"):
        workflow.finish()
    workflow.loop.close()
    assert workflow.loop.unhandled is None


def test_wait_for_the_first_leaves_the_others_running():
    """`asyncio.wait` returns with what is done at the moment of the first."""

    async def main() -> tuple[list[str], list[str]]:
        tasks = [asyncio.create_task(later(delay), name=f"t{delay}") for delay in (3, 1, 2)]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return [task.get_name() for task in done], [task.get_name() for task in pending]

    workflow = Workflow(main())

    assert (["t1"], ["t3", "t2"]) == workflow.finish()
    workflow.loop.close()


def test_task_group_cancels_the_others_when_one_fails():
    """The failure of one comes out as a group once all have stopped."""
    stopped: list[str] = []

    async def patient(name: str) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            stopped.append(name)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(patient(name))
            await asyncio.sleep(1)
            raise KeyError("mine")

    workflow = Workflow(main())
    with pytest.raises(ExceptionGroup) as caught:
        workflow.finish()

    assert ["a", "b", "c"] == stopped
    assert caught.group_contains(KeyError)
    assert {} == workflow.time.pending


def test_shield_keeps_the_inner_task_going():
    """Cancelling a shield leaves what it shields alone."""

    async def main() -> str:
        inner = asyncio.create_task(later(10, "finished"))
        shield = asyncio.shield(inner)
        await asyncio.sleep(1)
        shield.cancel()
        return await inner

    assert "finished" == run(main())


def test_events_queues_and_locks_work():
    """asyncio's own primitives need nothing but futures of the running loop."""
    seen: list[str] = []

    async def worker(name: str, queue: asyncio.Queue[int], lock: asyncio.Lock, go: asyncio.Event) -> None:
        await go.wait()
        while (item := await queue.get()) >= 0:
            async with lock:
                await asyncio.sleep(1)
                seen.append(f"{name}{item}")

    async def main() -> None:
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)
        lock, go = asyncio.Lock(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for name in "ab":
                group.create_task(worker(name, queue, lock, go))
            go.set()
            for item in (1, 2, 3, -1, -1):
                await queue.put(item)

    run(main())
    assert ["a1", "b2", "a3"] == seen


def test_semaphores_and_conditions_work():
    """Two at a time, and a condition wakes who waits for it."""
    seen: list[str] = []

    async def limited(name: str, semaphore: asyncio.Semaphore) -> None:
        async with semaphore:
            await asyncio.sleep(10)
            seen.append(f"{name}@{asyncio.get_running_loop().time():g}")

    async def main() -> None:
        semaphore, condition = asyncio.Semaphore(2), asyncio.Condition()

        async def waits() -> None:
            async with condition:
                await condition.wait()
                seen.append("woken")

        waiting = asyncio.create_task(waits())
        await asyncio.gather(*(limited(name, semaphore) for name in "abc"))
        async with condition:
            condition.notify_all()
        await waiting

    run(main())
    assert ["a@1010", "b@1010", "c@1020", "woken"] == seen


# --- inside another loop ----------------------------------------------------------------------------------------------


async def test_inside_a_running_loop_the_workflow_sees_its_own():
    """`drain` is called from a task of the worker's loop; each sees its own loop and its own current task."""
    seen: list[object] = []

    async def main() -> None:
        await asyncio.sleep(1)
        seen.extend([asyncio.get_running_loop(), asyncio.get_event_loop(), asyncio.current_task()])
        seen.append(asyncio.get_running_loop().is_running())

    outer, outer_task = asyncio.get_running_loop(), asyncio.current_task()
    workflow = Workflow(main())
    workflow.finish()

    assert [workflow.loop, workflow.loop, workflow.task, True] == seen
    assert (outer, outer_task) == (asyncio.get_running_loop(), asyncio.current_task())
    assert not workflow.loop.is_running()


async def test_the_workers_loop_gets_none_of_the_workflows_tasks():
    """Shutting the worker's loop down must neither see nor cancel the tasks of workflows."""
    workflow = Workflow(asyncio.sleep(1))

    assert {asyncio.current_task()} == asyncio.all_tasks()
    workflow.loop.close()


async def test_async_generators_do_not_reach_the_workers_loop():
    """A generator dropped half-way ends at once and inside the workflow; the worker's hooks are back afterwards."""
    seen: list[object] = []
    hooks = sys.get_asyncgen_hooks()

    async def numbers():
        try:
            yield 1
            yield 2
        finally:
            seen.append(asyncio.get_running_loop())

    async def main() -> None:
        async for number in numbers():
            seen.append(number)
            break
        seen.append("after")

    workflow = Workflow(main())

    assert [1, workflow.loop, "after"] == seen
    assert hooks == sys.get_asyncgen_hooks()


def test_an_abandoned_async_generator_that_awaits_in_finally_is_dropped_there():
    """Its `finally` runs up to the first await; the durable timer it began is cancelled again."""
    seen: list[str] = []

    async def numbers():
        try:
            yield 1
        finally:
            seen.append("cleaning")
            await asyncio.sleep(60)
            seen.append("never")

    async def main() -> None:
        async for _ in numbers():
            break
        await asyncio.sleep(1)

    workflow = Workflow(main())
    workflow.finish()

    assert ["cleaning"] == seen
    assert ["start 60", "cancel 60", "start 1", "fire 1"] == workflow.time.log
    assert workflow.loop.unhandled is None


def test_an_abandoned_async_generator_that_fails_is_reported():
    """Nobody awaits it, so its failure is collected."""

    async def numbers():
        try:
            yield 1
        finally:
            raise LookupError("while closing")

    async def main() -> None:
        async for _ in numbers():
            break

    workflow = Workflow(main())
    workflow.finish()

    assert ["while closing"] == [str(each["exception"]) for each in workflow.loop.unhandled or []]


def test_context_variables_belong_to_the_task():
    """A task sees the values of where it was made, and what it sets stays with it."""
    variable = contextvars.ContextVar("variable", default="outer")

    async def child() -> str:
        before = variable.get()
        variable.set("child")
        await asyncio.sleep(1)
        return f"{before}, {variable.get()}"

    async def main() -> tuple[str, str]:
        variable.set("main")
        return await asyncio.create_task(child()), variable.get()

    assert ("main, child", "main") == run(main())
    assert "outer" == variable.get()


# --- one order in every run -------------------------------------------------------------------------------------------


def test_tasks_are_named_by_their_place_in_the_workflow():
    """Names start at 1 in every loop; a task with a name of its own counts too."""

    async def main() -> list[str]:
        tasks = [
            asyncio.create_task(later(0)),
            asyncio.create_task(later(0), name="mine"),
            asyncio.create_task(later(0)),
        ]
        await asyncio.wait(tasks)
        current = asyncio.current_task()
        assert current is not None
        return [task.get_name() for task in (current, *tasks)]

    assert ["Task-1", "Task-2", "mine", "Task-4"] == run(main()) == run(main())


def test_names_continue_after_the_shared_ones():
    """The hundredth task is named like the first."""

    async def main() -> str:
        tasks = [asyncio.create_task(later(0)) for _ in range(150)]
        await asyncio.wait(tasks)
        return tasks[-1].get_name()

    assert "Task-151" == run(main())


def test_hashes_are_ordinals_and_equality_is_identity():
    """Two loops give equal hashes to things made at the same point, and nothing but itself is equal to a future."""
    first, second = DeterministicLoop(VirtualTime()), DeterministicLoop(VirtualTime())
    futures = [loop.create_future() for loop in (first, second, first, second)]

    assert [1, 1, 2, 2] == [hash(future) for future in futures]
    assert futures[0] != futures[1]
    assert 4 == len(set(futures))


def test_tasks_stay_out_of_the_set_of_all_tasks():
    """The first tasks of all workflows have the same hash; none of them stays in asyncio's set of all tasks."""
    everybodys = vars(asyncio.tasks)["_all_tasks" if sys.version_info < (3, 12) else "_scheduled_tasks"]
    before = len(everybodys)
    workflows = [Workflow(asyncio.sleep(1)) for _ in range(100)]

    assert before == len(everybodys)
    for workflow in workflows:
        workflow.loop.close()


def test_as_completed_over_coroutines_is_refused():
    """It would start them in the order of their addresses: the error says so and none of them is started."""

    async def main() -> None:
        for next_done in asyncio.as_completed([later(1), later(2)]):
            await next_done

    with pytest.raises(NotDurableError, match=r"random order.*create_task.*gather") as caught:
        run(main())
    assert "asyncio.as_completed" == caught.value.call


def test_as_completed_over_awaitables_is_refused():
    """What is not a future would be wrapped in a coroutine, and started in the order of a set."""

    class Awaitable:
        def __await__(self) -> Generator[None, None, None]:
            yield

    async def main() -> None:
        for next_done in asyncio.as_completed([Awaitable()]):
            await next_done

    with pytest.raises(NotDurableError, match="random order"):
        run(main())


def test_as_completed_over_tasks_works():
    """Tasks have started already, and come in the order in which they are done."""

    async def main() -> list[str]:
        tasks = [asyncio.create_task(later(delay, name)) for delay, name in ((3, "a"), (1, "b"), (2, "c"))]
        return [await next_done for next_done in asyncio.as_completed(tasks)]

    assert ["b", "c", "a"] == run(main())


def test_gather_and_ensure_future_inside_a_consumer_of_as_completed_are_allowed():
    """Only as_completed itself is refused, not what is awaited while walking it."""

    async def main() -> list[int]:
        results = []
        for next_done in asyncio.as_completed([asyncio.create_task(later(1, 1))]):
            results.append(await next_done)
            results.extend(await asyncio.gather(later(1, 2), asyncio.ensure_future(later(1, 3))))
        return results

    assert [1, 2, 3] == run(main())


async def unordered() -> list[str]:
    """A program that would do things in another order in every run on asyncio's own loop."""
    seen: list[str] = []

    async def child(name: str, delay: float) -> str:
        try:
            await asyncio.sleep(delay)
        finally:
            seen.append(name)
        return name

    tasks = {asyncio.create_task(child(f"wait{n}", n % 3), name=f"wait{n}") for n in range(40)}
    while tasks:
        done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        seen.extend(task.get_name() for task in done)
    gathers = {asyncio.gather(child(f"gather{n}", 1), return_exceptions=True) for n in range(20)}
    done_gathers, _ = await asyncio.wait(gathers)
    seen.extend(str(gather.result()) for gather in done_gathers)
    finished = [asyncio.create_task(child(f"done{n}", 0)) for n in range(20)]
    await asyncio.sleep(1)
    seen.extend([await next_done for next_done in asyncio.as_completed(finished)])
    try:
        async with asyncio.TaskGroup() as group:
            for n in range(40):
                group.create_task(child(f"group{n}", 5))
            await asyncio.sleep(1)
            raise LookupError
    except* LookupError:
        seen.append("aborted")
    seen.extend(str(future.result()) for future in await settled_futures())
    return seen


async def settled_futures() -> set[asyncio.Future[int]]:
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in range(20)]
    for number, future in enumerate(futures):
        future.set_result(number)
    done, _ = await asyncio.wait(futures)
    return done


@pytest.mark.slow
def test_twenty_processes_do_everything_in_the_same_order():
    """Neither the hash seed nor the addresses of objects change what wait, as_completed and TaskGroup do."""
    running = [
        subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(20)
    ]
    printed = [process.communicate()[0] for process in running]

    assert {0} == {process.returncode for process in running}
    assert 200 < len(printed[0].split())
    assert {printed[0]} == set(printed)


# --- nothing reaches outside ------------------------------------------------------------------------------------------

ANSWERED = {
    "call_at",
    "call_exception_handler",
    "call_later",
    "call_soon",
    "close",
    "create_future",
    "create_task",
    "default_exception_handler",
    "get_debug",
    "get_exception_handler",
    "get_task_factory",
    "is_closed",
    "is_running",
    "set_debug",
    "time",
}
REFUSED = sorted(name for name in vars(asyncio.AbstractEventLoop) if name[0] != "_" and name not in ANSWERED)


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_reaches_outside_is_refused_and_named(name):
    """Every method of an event loop is either answered or refused with its name and what to do instead."""

    async def main() -> None:
        answer = getattr(asyncio.get_running_loop(), name)()
        if inspect.isawaitable(answer):
            await answer

    with pytest.raises(NotDurableError, match=rf"^loop\.{name}\(\) .*(ctx\.run|the engine drives)") as caught:
        run(main())
    assert f"loop.{name}" == caught.value.call


@pytest.mark.parametrize(
    ("reach", "call"),
    [
        (lambda: asyncio.to_thread(print), "asyncio.to_thread"),
        (lambda: asyncio.open_connection("localhost", 1), "asyncio.open_connection"),
        (lambda: asyncio.start_server(print, "localhost", 1), "asyncio.start_server"),
        (lambda: asyncio.create_subprocess_exec("true"), "asyncio.create_subprocess_exec"),
        (lambda: asyncio.create_subprocess_shell("true"), "asyncio.create_subprocess_shell"),
    ],
)
def test_the_error_names_the_function_that_the_workflow_called(reach, call):
    """A user looks for `asyncio.to_thread` in the code, not for the loop's method behind it."""

    async def main() -> None:
        await reach()

    with pytest.raises(NotDurableError) as caught:
        run(main())
    assert call == caught.value.call
    assert caught.value.message.startswith(f"{call}() (by loop.")


def test_a_coroutine_given_to_a_refused_call_is_closed():
    """One error is enough: Python does not warn about the coroutine as well."""

    async def main() -> None:
        asyncio.get_running_loop().run_until_complete(later(1))

    with pytest.raises(NotDurableError, match="run_until_complete"):
        run(main())
    gc.collect()


async def test_awaiting_a_future_of_another_loop_names_it():
    """asyncio's RuntimeError becomes an error that says what was awaited and what to do."""
    foreign: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def main() -> None:
        await foreign

    error = Workflow(main()).task.exception()
    assert error is not None
    converted = foreign_wait(error)

    assert converted is not None
    assert repr(foreign).split()[0] in converted.call
    assert "ctx.run" in converted.message
    assert error is converted.__cause__


async def test_waiting_for_a_lock_of_another_loop_names_it():
    """A primitive that the worker's loop has waited on belongs to that loop."""
    lock = asyncio.Lock()
    await lock.acquire()
    waiting = asyncio.create_task(lock.acquire())
    await asyncio.sleep(0)

    async def main() -> None:
        async with lock:
            pass

    converted = foreign_wait(Workflow(main()).task.exception() or LookupError())

    assert converted is not None
    assert "asyncio.locks.Lock" in converted.call
    waiting.cancel()


async def test_gathering_a_future_of_another_loop_is_recognised():
    """`ensure_future` says it in other words, as a ValueError."""
    foreign: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    own = asyncio.Event()

    async def main() -> None:
        await asyncio.gather(own.wait(), foreign)

    workflow = Workflow(main())
    assert foreign_wait(workflow.task.exception() or LookupError()) is not None
    workflow.loop.close()


def test_awaiting_something_that_is_no_future_names_it():
    """Another framework's await yields what asyncio does not know."""

    class Alien:
        def __await__(self) -> Generator[str, None, None]:
            yield "an alien thing"

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait_for_alien())

    async def wait_for_alien() -> None:
        await Alien()

    converted = foreign_wait(Workflow(main()).task.exception() or LookupError())

    assert converted is not None
    assert "'an alien thing'" == converted.call


@pytest.mark.parametrize(
    "error", [RuntimeError("no"), ValueError("bad yield"), KeyError("loop"), ExceptionGroup("", [OSError()])]
)
def test_other_errors_are_not_taken_for_foreign_waits(error):
    """A workflow's own failures stay what they are."""
    assert foreign_wait(error) is None


# --- trouble ----------------------------------------------------------------------------------------------------------


def test_a_program_that_spins_is_stopped(monkeypatch):
    """A bound on the callbacks of one drain, and an error that says where the program turns."""
    monkeypatch.setattr(loop_module, "MAX_CALLBACKS", 1000)

    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(BusyLoop, match=r"1,000 callbacks.*test_loop\.py:\d+ in .*spins") as caught:
        Workflow(spins())
    assert "not_durable" == caught.value.code


def test_a_failing_callback_is_collected_and_the_next_one_runs():
    """Nothing is printed: who drives the loop decides what to log."""
    loop = DeterministicLoop(VirtualTime())
    seen: list[str] = []

    loop.call_soon(lambda: 1 / 0)
    loop.call_soon(seen.append, "next")
    loop.drain()

    assert ["next"] == seen
    assert [ZeroDivisionError] == [type(each["exception"]) for each in loop.unhandled or []]


def test_a_failed_task_that_nobody_awaits_is_collected_on_close():
    """asyncio's "exception was never retrieved" goes to the caller, not to a log."""

    async def fails() -> None:
        raise LookupError("in the background")

    async def main() -> None:
        asyncio.get_running_loop().create_task(fails())
        await asyncio.sleep(1)

    workflow = Workflow(main())
    workflow.finish()
    workflow.loop.close()

    assert ["in the background"] == [str(each["exception"]) for each in workflow.loop.unhandled or []]


def test_what_is_collected_is_bounded():
    """A program that fails in a loop fills no memory."""
    loop = DeterministicLoop(VirtualTime())
    for _ in range(500):
        loop.call_exception_handler({"message": "again"})

    assert 100 == len(loop.unhandled or [])


def test_exit_in_a_workflow_fails_the_task_only():
    """`sys.exit()` must not take the worker with it, nor stop the other tasks."""

    async def main() -> str:
        leaving = asyncio.create_task(leave())
        await asyncio.wait([leaving])
        return repr(leaving.exception())

    async def leave() -> None:
        sys.exit(3)

    workflow = Workflow(main())

    assert "SystemExit(3)" == workflow.finish()
    assert workflow.loop.unhandled is None


def test_a_keyboard_interrupt_goes_through():
    """Ctrl-C is for the worker."""

    async def main() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Workflow(main())


def test_finished_tasks_are_forgotten():
    """A workflow that makes tasks for ever keeps only those that live."""

    async def main() -> None:
        for _ in range(1000):
            await asyncio.create_task(later(0))
        await asyncio.sleep(1)

    workflow = Workflow(main())

    assert len(workflow.loop._tasks) < 20
    workflow.finish()


def test_debug_mode_stays_off():
    """Debug mode measures with the clock."""
    loop = DeterministicLoop(VirtualTime())
    loop.set_debug(True)

    assert loop.get_debug() is False


# --- where it stands --------------------------------------------------------------------------------------------------


def test_blocked_on_names_the_users_line_and_what_it_awaits():
    """The innermost frame that is not asyncio's, and the thing it called."""

    async def inner() -> None:
        await asyncio.sleep(5)

    async def main() -> None:
        await inner()

    workflow = Workflow(main())
    line = inner.__code__.co_firstlineno + 1

    assert [f"test_loop.py:{line} in {inner.__qualname__}: awaiting sleep()"] == workflow.loop.blocked_on()
    workflow.finish()
    assert [] == workflow.loop.blocked_on()


def test_blocked_on_names_tasks_futures_and_gathers():
    """One line per unfinished task, in the order in which they were made."""
    loop = DeterministicLoop(VirtualTime())
    signal, nameless = loop.create_future(), loop.create_future()
    signal.about = "signal 'message'"

    async def generator():
        yield await nameless

    async def walks() -> None:
        async for _ in generator():
            pass

    async def waits_for(thing: Any) -> None:
        await thing

    async def main() -> None:
        await asyncio.gather(waits_for(asyncio.create_task(walks())), waits_for(signal))

    loop.create_task(main())
    loop.drain()
    never_run = loop.create_task(later(0))
    blocked = [line.partition(" in ")[2].rpartition("<locals>.")[2] for line in loop.blocked_on()]

    assert [
        "main: awaiting gather()",
        "generator: awaiting a future",
        "waits_for: awaiting task Task-2",
        "waits_for: awaiting signal 'message'",
        "later: ready to run",
    ] == blocked
    never_run.cancel()
    loop.close()


# --- eviction ---------------------------------------------------------------------------------------------------------


def test_close_of_a_suspended_program_is_silent(capfd, recwarn):
    """`finally` blocks that await again neither hang, nor print, nor warn, and no durable timer is touched."""
    seen: list[str] = []

    async def child() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            seen.append("child")
            await asyncio.sleep(20)
            seen.append("never")

    async def main() -> None:
        future = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.TaskGroup() as group, asyncio.timeout(99):
                group.create_task(child())
                await future
        finally:
            seen.append("main")
            await asyncio.shield(future)
            seen.append("never")

    workflow = Workflow(main())
    before = list(workflow.time.log)
    workflow.loop.create_task(child())
    workflow.loop.close()
    log = list(workflow.time.log)
    del workflow
    gc.collect()

    assert before == log
    assert ["main", "child"] == seen
    assert ("", "") == capfd.readouterr()
    assert [] == list(recwarn)


def test_code_that_catches_the_eviction_is_told_again():
    """Catching BaseException and waiting on is answered until the code ends."""
    told: list[str] = []

    async def main() -> None:
        future = asyncio.get_running_loop().create_future()
        for _ in range(10):
            try:
                await future
            except BaseException as error:
                told.append(type(error).__name__)

    workflow = Workflow(main())
    workflow.loop.close()

    assert ["Evicted"] * 10 == told
    assert workflow.loop.unhandled is None


@pytest.mark.parametrize("wait", [lambda: asyncio.sleep(1), lambda: asyncio.create_task(later(1)), lambda: later(0)])
def test_code_that_catches_everything_for_ever_is_left_where_it_stands(capfd, wait):
    """The bare `except` in an endless loop: close comes back, says who it was, and nothing runs that code again."""
    told: list[BaseException] = []

    async def main() -> None:
        while True:
            try:
                await wait()
                await asyncio.sleep(1)
            except BaseException as error:
                told.append(error)

    workflow = Workflow(main())
    workflow.loop.close()
    message = (workflow.loop.unhandled or [])[0]["message"]
    rounds = len(told)
    del workflow
    gc.collect()

    assert "stays in memory: test_loop.py:" in message
    assert rounds == len(told)
    assert ("", "") == capfd.readouterr()


def test_after_close_every_call_raises_evicted():
    """Whoever still holds the loop is told to stop; closing again does nothing."""
    workflow = Workflow(asyncio.sleep(1))
    loop = workflow.loop
    loop.close()
    loop.close()

    assert loop.is_closed()
    calls: list[Callable[[], Any]] = [
        loop.drain,
        loop.create_future,
        loop.time,
        loop.stop,
        loop.refuse_if_closed,
        lambda: loop.create_task(later(1)),
        lambda: loop.call_soon(print),
        lambda: loop.call_later(1, print),
        lambda: loop.call_at(1, print),
    ]
    for call in calls:
        with pytest.raises(Evicted):
            call()
    assert [] == loop.blocked_on()


def test_a_timer_that_fires_after_close_is_ignored_by_the_program():
    """The durable timer lives on in the history; the evicted program hears nothing of it."""
    workflow = Workflow(asyncio.sleep(1))
    workflow.loop.close()

    assert ["start 1"] == workflow.time.log
    assert 1 == len(workflow.time.pending)


async def test_close_keeps_the_workers_loop_and_context_clean():
    """`finally` blocks run with the workflow's loop as the running one and in a context of their own."""
    variable = contextvars.ContextVar("variable", default="worker")
    seen: list[object] = []

    async def main() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            seen.append(asyncio.get_running_loop())
            variable.set("workflow")

    workflow = Workflow(main())
    outer = asyncio.get_running_loop()
    workflow.loop.close()

    assert [workflow.loop] == seen
    assert "worker" == variable.get()
    assert outer is asyncio.get_running_loop()


def test_close_while_running_stops_the_program_at_its_next_call():
    """A turn may be given up half-way, from inside."""
    seen: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().create_task(later(0))
        asyncio.get_running_loop().close()
        try:
            await asyncio.sleep(1)
        except Evicted:
            seen.append("evicted")
            raise

    workflow = Workflow(main())

    assert ["evicted"] == seen
    assert isinstance(workflow.task.exception(), Evicted)


def test_a_task_that_never_ran_is_closed_without_a_warning():
    """Python would warn of a coroutine that was never awaited."""
    loop = DeterministicLoop(VirtualTime())
    loop.create_task(later(1))
    loop.close()
    gc.collect()


def test_async_generators_of_an_evicted_program_are_dropped_silently(capfd):
    """Suspended at a yield they get their `finally`, up to the first await, which raises Evicted."""
    seen: list[str] = []

    async def numbers():
        try:
            yield 1
        finally:
            seen.append("cleaning")
            await asyncio.sleep(60)

    async def main() -> None:
        async for _ in numbers():
            await asyncio.sleep(1)

    workflow = Workflow(main())
    workflow.loop.close()
    del workflow
    gc.collect()

    assert ["cleaning"] == seen
    assert ("", "") == capfd.readouterr()


if __name__ == "__main__":  # one of the twenty processes
    padding = [bytearray(random.randrange(1, 5000)) for _ in range(random.randrange(5000))]  # moves all addresses
    del padding[:: random.randrange(2, 5)]
    print(*run(unordered()))
