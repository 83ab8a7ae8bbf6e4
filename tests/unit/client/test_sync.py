"""`client.sync`: the client for threads that have no event loop."""

import asyncio
import contextvars
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import Engine, Status, SyncWorkflowHandle, WorkflowContext, task, workflow
from holdfast.client import portal
from holdfast.errors import (
    EngineStopped,
    ExecutionNotFound,
    HoldfastError,
    InvalidRequest,
    WorkflowFailed,
    WouldDeadlock,
)
from tests.conftest import until


@workflow
async def double(ctx: WorkflowContext, number: int) -> int:
    return 2 * number


@workflow
async def waits(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("word", str)


@workflow
async def breaks(ctx: WorkflowContext) -> None:
    raise KeyError("mine")


ALL = [double, waits, breaks]


async def test_calls_from_another_thread(engine):
    """Start, signal, look, wait: what the async client gives, with handles that block as well."""
    client = (await engine(workflows=ALL)).client

    def script() -> str:
        handle = client.sync.start_workflow(waits, workflow_id="one")
        assert isinstance(handle, SyncWorkflowHandle)
        assert (True, "one") == (handle.created, handle.workflow_id)
        assert Status.COMPLETED is not client.sync.workflow(handle.id).status()
        client.sync.find_workflow("one").signal("word", "hello")
        return handle.result(timeout=10)

    assert "hello" == await asyncio.to_thread(script)
    assert client.sync is client.sync
    assert "default" == client.sync.org
    assert "WorkflowHandle('x', workflow_id=None)" in repr(client.sync.workflow("x"))


async def test_async_iterator_becomes_a_plain_one(engine):
    """Item by item; one that is left half-way is closed on the loop."""
    client = (await engine(workflows=ALL)).client
    handles = [await client.start_workflow(double, number) for number in range(5)]

    def script() -> tuple[list[str], str]:
        every = [view.workflow_execution_id for view in client.sync.iter_workflows(limit=2)]
        for view in client.sync.iter_workflows(limit=2):
            return every, view.workflow_execution_id
        return every, ""

    every, first = await asyncio.to_thread(script)

    assert [handle.id for handle in reversed(handles)] == every
    assert handles[-1].id == first


async def test_many_threads_at_once(engine):
    """As under a threaded web server: every thread gets its own answers."""
    client = (await engine(workflows=ALL)).client

    def request(number: int) -> int:
        return client.sync.start_workflow(double, number).result(timeout=20)

    with ThreadPoolExecutor(32) as pool:
        answers = await asyncio.gather(*(asyncio.wrap_future(pool.submit(request, number)) for number in range(400)))

    assert [2 * number for number in range(400)] == answers


async def test_context_variables_go_along(engine):
    """What a request has set (a trace id, say) is set where its call runs."""
    client = (await engine(workflows=ALL)).client
    trace = contextvars.ContextVar("trace", default="")
    seen = []
    api = client.api
    call = api.call

    def watched(request, using=None):
        seen.append(trace.get())
        return call(request, using)

    api.call = watched

    def script() -> None:
        trace.set("mine")
        client.sync.start_workflow(double, 1)

    await asyncio.to_thread(script)

    assert ["mine"] == seen


# --- what goes wrong ----------------------------------------------------------------------------------------------


async def test_on_the_thread_of_the_loop(engine):
    """It would wait for itself: refused, and nothing is started."""
    client = (await engine(workflows=ALL)).client

    with pytest.raises(WouldDeadlock, match=r"start_workflow\(\).*await the async client"):
        client.sync.start_workflow(double, 1)
    with pytest.raises(WouldDeadlock):
        next(client.sync.iter_workflows())

    assert {} == {status: count for status, count in (await client.count_workflows()).items() if count}


async def test_inside_a_task_on_the_loop(engine):
    """An `async def` task runs on the loop's thread, a `def` task does not."""

    @task(retry=None)
    async def on_the_loop() -> str:
        try:
            running.client.sync.count_workflows()
        except WouldDeadlock as error:
            return error.code
        return "answered"

    @task
    def in_a_thread() -> int:
        return sum(running.client.sync.count_workflows().values())

    @workflow
    async def asks(ctx: WorkflowContext) -> list[object]:
        return [await ctx.task(on_the_loop), await ctx.task(in_a_thread)]

    running = await engine(workflows=[asks], tasks=[on_the_loop, in_a_thread])

    assert ["would_deadlock", 1] == await (await running.client.start_workflow(asks)).result(timeout=10)


async def test_exceptions_keep_their_type_and_traceback(engine):
    """The line of the caller and the line that raised are both in it."""
    client = (await engine(workflows=ALL)).client

    def ask_for_nothing() -> None:
        client.sync.workflow("nothing").describe()

    with pytest.raises(ExecutionNotFound) as caught:
        await asyncio.to_thread(ask_for_nothing)

    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "ask_for_nothing" in names
    assert ["describe", "get", "row"] == names[-3:]


async def test_errors_of_every_kind(engine):
    """Refused requests, failed workflows, time-outs: as from the async client."""
    client = (await engine(workflows=ALL)).client

    def raised(call, *arguments, **options) -> type[BaseException] | None:
        try:
            call(*arguments, **options)
        except Exception as error:
            return type(error)
        return None

    def script() -> list[type[BaseException] | None]:
        waiting = client.sync.start_workflow(waits)
        return [
            raised(client.sync.start_workflow, print),
            raised(client.sync.start_workflow(breaks).result, timeout=10),
            raised(waiting.result, timeout=0.05),
            raised(waiting.signal, "word", "late"),
            raised(waiting.result, timeout=10),
        ]

    assert [InvalidRequest, WorkflowFailed, TimeoutError, None, None] == await asyncio.to_thread(script)


async def waiting_thread(running: Engine) -> tuple[ThreadPoolExecutor, asyncio.Future]:
    """A thread that waits for a result that will not come."""
    handle = await running.client.start_workflow(waits)
    pool = ThreadPoolExecutor(1)
    answer = asyncio.wrap_future(pool.submit(running.client.sync.workflow(handle.id).result))
    await until(lambda: running._local.outcomes.awaited)
    return pool, answer


async def test_engine_shut_down_while_a_call_waits(engine):
    """The call ends with EngineStopped, and so does the next one."""
    running = await engine(workflows=ALL)
    pool, answer = await waiting_thread(running)

    await running.shutdown()

    with pool, pytest.raises(EngineStopped):
        await answer
    with pytest.raises(EngineStopped, match="not running"):
        running.client.sync.count_workflows()


async def test_call_that_nobody_answers_ends_with_the_engine(engine):
    """Even one that the engine itself forgets."""
    running = await engine(workflows=ALL)
    running._local.outcomes.stop = lambda error: None
    pool, answer = await waiting_thread(running)

    await running.shutdown()

    with pool, pytest.raises(EngineStopped, match="while result"):
        await answer


def test_loop_that_ends_without_a_shutdown(monkeypatch):
    """The loop is gone, the engine was never told: a waiting call ends all the same."""
    monkeypatch.setattr(portal, "LOOK_S", 0.01)
    loop = asyncio.new_event_loop()
    gate = portal.Portal()
    begun = threading.Event()
    errors = []

    async def never() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def open_gate() -> None:
        gate.open()

    def call() -> None:
        try:
            gate.call(never)
        except HoldfastError as error:
            errors.append(error.code)

    server = threading.Thread(target=lambda: (loop.run_until_complete(open_gate()), loop.run_forever()))
    caller = threading.Thread(target=call)
    server.start()
    while gate._loop is None:
        server.join(0.001)
    caller.start()
    begun.wait()
    loop.call_soon_threadsafe(loop.stop)
    server.join()
    loop.close()
    caller.join()

    assert ["engine_stopped"] == errors


def test_before_the_engine_runs(database_url):
    """There is no loop to answer."""
    with pytest.raises(EngineStopped, match="start_up"):
        Engine(database_url).client.sync.count_workflows()
