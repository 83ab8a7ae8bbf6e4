"""Standalone tasks: a task run durably without a workflow, started, followed, completed and stopped by its id."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import NonRetryable, RetryPolicy, TaskContext, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.config import Limits
from holdfast.contract.workers import RegisterWorker
from holdfast.errors import (
    InvalidCursor,
    InvalidDefinition,
    InvalidDuration,
    InvalidRequest,
    PayloadTooLarge,
    RequestMismatch,
    StaleAttempt,
    TaskFailed,
    TaskNotDeferred,
    TaskNotFound,
    TaskTimedOut,
    UnknownTaskKind,
    WorkflowAlreadyRunning,
    WorkflowCancelled,
    WorkflowIdUsed,
    WorkflowTerminated,
)
from holdfast.frontends.python.standalone import RUN_TASK
from holdfast.testing.histories import replay_definitions
from tests.conftest import QUICK, until
from tests.unit.engine.records import check_all

SOON = RetryPolicy(initial_interval_s=0.001, backoff=1, jitter=False, max_attempts=3)
CALLS: list[Any] = []


@dataclass
class Sum:
    left: int
    right: int


@task
async def add(given: Sum, more: int = 0) -> Sum:
    return Sum(given.left + given.right, more)


@task(kind="echo.task")
def echo(value: Any = None) -> Any:
    return value


@task(retry=SOON)
async def failing(word: str) -> None:
    CALLS.append(word)
    raise ValueError(word)


@task(retry=RetryPolicy(initial_interval_s=60, jitter=False))
async def failing_slowly() -> None:
    raise ConnectionError("not now")


@task
async def blocking(context: TaskContext) -> None:
    context.heartbeat("half", progress=0.5)
    CALLS.append(context.info)
    try:
        await asyncio.Event().wait()
    finally:
        CALLS.append(context.stop_reason)


@task(retry=SOON)
async def deferred(context: TaskContext) -> Sum:  # type: ignore[return]  # somebody else gives it
    context.complete_later()
    CALLS.append(context.info.attempt)


@workflow
async def idle(ctx: WorkflowContext) -> None:
    await ctx.wait_for_signal("never")


TASKS: list[Any] = [add, echo, failing, failing_slowly, blocking, deferred]


@pytest.fixture(autouse=True)
def nothing_called():
    CALLS.clear()


@pytest.fixture
async def client(engine):
    return (await engine(workflows=[idle], tasks=TASKS)).client


async def status_of(handle, *statuses):
    async def so():
        return await handle.status() in statuses

    await until(so)
    return await handle.view()


async def left_to_others(client, task_id=None):
    handle = await client.start_task(deferred, task_id=task_id)
    return handle, await status_of(handle, WorkflowStatus.WAITING)


# --- running one ---


async def test_a_task_runs_without_a_workflow(client):
    """Its result has the type that the task declares; all there is to say about it is in its view."""
    handle = await client.start_task(add, Sum(1, 2), 7, task_id="sum:1", metadata={"for": "me"}, priority=3)
    result = await handle.result()
    view = await handle.view()

    assert (Sum(3, 7), {"left": 3, "right": 7}) == (result, await client.task("sum:1").result())
    assert (True, "sum:1", handle.workflow_execution_id) == (handle.created, view.task_id, view.workflow_execution_id)
    assert ("add", WorkflowStatus.COMPLETED, "default", 3, 1) == (
        view.kind,
        view.status,
        view.queue,
        view.priority,
        view.attempt,
    )
    assert (({"left": 1, "right": 2}, 7), {"for": "me"}, {"left": 3, "right": 7}) == (
        view.args,
        view.metadata,
        view.result,
    )
    assert view.worker is not None
    assert view.scheduled_at is not None
    assert view.closed_at is not None
    assert view.created_at <= view.scheduled_at <= view.closed_at


@pytest.mark.parametrize("value", [None, 2**53 + 1, 1e300, "ä\U0001f600", [1, [None]], {"a": {"b": 0.1}}])
async def test_values_come_back_as_they_were(client, value):
    """Arguments and result are passed on as they are. By its kind, as well as by its function."""
    handle = await client.start_task("echo.task", value)

    assert value == await handle.result()
    assert (handle.workflow_execution_id, (value,)) == (handle.task_id, (await handle.view()).args)


async def test_its_execution_is_one_like_any_other(engine):
    """It has a history, is in the lists, and its program makes the same moves again."""
    running = await engine(tasks=TASKS)
    handle = await running.client.start_task(echo, 1, task_id="e")
    await handle.result()
    history = await running.client.history(handle.workflow_execution_id)
    [listed] = (await running.client.list_workflows(workflow_id="e")).items

    assert ["WORKFLOW_STARTED", "TASK_SCHEDULED", "TASK_COMPLETED", "WORKFLOW_COMPLETED"] == [
        event.type for event in history if event.type != "WORKFLOW_TASK_COMPLETED"
    ]
    assert ("holdfast.task", "1") == (listed.kind, listed.version)
    assert replay_definitions([RUN_TASK], history, execution_id=handle.workflow_execution_id).ended
    await check_all(running)


async def test_it_runs_with_replay_at_every_wait(engine):
    """HOLDFAST_REPLAY_ALWAYS: its program is rebuilt before each turn."""
    config = replace(QUICK, worker=replace(QUICK.worker, replay_always=True))
    client = (await engine(tasks=TASKS, config=config)).client
    handle = await client.start_task(failing, "again")

    with pytest.raises(TaskFailed):
        await handle.result()
    assert 7 == await (await client.start_task(echo, 7)).result()


async def test_it_outlives_its_engine(engine):
    """A body that was interrupted is run again by the next worker, and one that nobody has taken is found."""
    first = await engine(tasks=TASKS)
    interrupted = await first.client.start_task(blocking, task_id="i")
    waiting = await first.client.start_task(echo, 5, queue="later")
    await until(lambda: CALLS)
    await first.shutdown()
    config = replace(QUICK, worker=replace(QUICK.worker, queues=("default", "later")))

    @task(kind="blocking")
    async def quick(context: TaskContext) -> str:
        return "done"

    client = (await engine(tasks=[quick, echo], config=config)).client
    assert "done" == await client.task(interrupted.task_id).result()
    assert 5 == await client.task(waiting.workflow_execution_id).result()


async def test_a_task_of_one_queue_is_run_by_workers_of_that_queue(engine):
    """Also its turns: a worker that has nothing but tasks of its own queue is enough."""
    await engine(tasks=[echo], config=replace(QUICK, worker=replace(QUICK.worker, queues=("gpu",))))
    other = await engine()
    handle = await other.client.start_task("echo.task", 3, queue="gpu")

    assert 3 == await handle.result()
    assert "gpu" == (await handle.view()).queue


async def test_it_may_begin_later(client):
    """Nobody takes it before its time."""
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    handle = await client.start_task(echo, start_at=at)
    view = await handle.view()

    assert (WorkflowStatus.PENDING, 0, at) == (view.status, view.attempt, view.next_attempt_at)


# --- failing, timing out, being stopped ---


async def test_a_task_that_fails_says_why(client):
    """Retries as at the task; the error is the task's own, in the handle and in the view."""
    handle = await client.start_task(failing, "out of paper")
    with pytest.raises(TaskFailed, match=r"'failing' failed after 3 attempt.*ValueError: out of paper") as caught:
        await handle.result()
    view = await handle.view()

    assert ("ValueError", 3, ["out of paper"] * 3) == (caught.value.error_type, caught.value.attempts, CALLS)
    assert (WorkflowStatus.FAILED, 3, "ValueError") == (view.status, view.attempt, view.last_failure.type)
    assert "raise ValueError" in view.last_failure.traceback


async def test_options_of_the_call_count_more(client):
    """Than those at the task."""
    handle = await client.start_task(failing, "once", retry=RetryPolicy(max_attempts=1), start_to_close=timedelta(1))
    with pytest.raises(TaskFailed):
        await handle.result()
    view = await handle.view()

    assert (1, 1, 86_400) == (view.attempt, view.retry.max_attempts, view.timeouts.start_to_close_s)


async def test_a_task_between_two_attempts_is_pending(client):
    """With its last failure and the time of its next attempt."""
    handle = await client.start_task(failing_slowly)

    async def failed_once():
        return (await handle.view()).last_failure

    failure = await until(failed_once)
    view = await handle.view()
    assert ("ConnectionError", WorkflowStatus.PENDING, 1) == (failure.type, view.status, view.attempt)
    assert view.next_attempt_at > view.created_at + timedelta(seconds=59)


async def test_a_running_task_is_seen_and_cancelled(client):
    """Worker, attempt and start are shown; its body is told to stop, and its result says so."""
    handle = await client.start_task(blocking)
    await until(lambda: CALLS)
    view = await handle.view()
    first = await handle.cancel("not wanted")
    second = await handle.cancel()

    assert (WorkflowStatus.RUNNING, 1) == (view.status, view.attempt)
    assert view.worker is not None
    assert view.started_at is not None
    assert (True, False) == (first, second)
    with pytest.raises(WorkflowCancelled, match="the task was cancelled: not wanted"):
        await handle.result()
    await until(lambda: "cancelled" in CALLS)
    ended = await handle.view()
    assert (WorkflowStatus.CANCELLED, True) == (ended.status, ended.cancel_requested)


async def test_a_terminated_task_says_so(client):
    """By way of its execution."""
    handle = await client.start_task(blocking)
    await client.terminate_workflow(handle.workflow_execution_id, "enough")

    with pytest.raises(WorkflowTerminated, match="the task was terminated: enough"):
        await handle.result()


async def test_an_attempt_that_takes_too_long_times_out(client):
    """As inside a workflow."""
    handle = await client.start_task(blocking, start_to_close=0.05, retry=RetryPolicy(max_attempts=1))

    with pytest.raises(TaskTimedOut, match="start_to_close"):
        await handle.result()
    assert WorkflowStatus.FAILED == await handle.status()


async def test_the_time_for_all_attempts_also_counts_without_a_worker(client):
    """It would be no limit if it only began when somebody had time for it."""
    handle = await client.start_task(echo, queue="nobody", schedule_to_close=0.05)

    with pytest.raises(TaskTimedOut, match=r"schedule_to_close of 0.05 s passed"):
        await handle.result()
    view = await handle.view()
    assert (WorkflowStatus.TIMED_OUT, "schedule_to_close_timeout", 0) == (
        view.status,
        view.last_failure.code,
        view.attempt,
    )


async def test_a_failed_task_can_be_tried_again(client):
    """As any execution: its task id then means the new one."""
    handle = await client.start_task(failing, "first", task_id="f")
    with pytest.raises(TaskFailed):
        await handle.result()
    again = await client.retry_workflow(handle.workflow_execution_id)
    with pytest.raises(TaskFailed):
        await client.task("f").result()

    assert again.id == (await client.task("f").view()).workflow_execution_id
    assert 6 == len(CALLS)


# --- completed by somebody else ---


async def test_a_task_is_completed_by_its_id(client):
    """Without its token. The first settlement wins."""
    handle, view = await left_to_others(client, "d")
    settled = await client.task("d").complete(Sum(1, 2))

    assert (WorkflowStatus.WAITING, True, 1, None) == (view.status, view.deferred, view.attempt, view.worker)
    assert (f"{handle.workflow_execution_id}:task:1", False) == (settled.promise_id, settled.already_resolved)
    assert Sum(1, 2) == await handle.result()
    for late in (handle.complete(1), handle.fail("no")):
        with pytest.raises(StaleAttempt):
            await late
    assert Sum(1, 2) == await handle.result()


async def test_a_task_is_failed_by_its_id(client):
    """It is tried again as its policy says; NonRetryable ends it."""
    handle, _ = await left_to_others(client)
    await handle.fail("try again")
    await until(lambda: CALLS == [1, 2])
    view = await status_of(handle, WorkflowStatus.WAITING)
    await handle.fail(NonRetryable("give up"))

    assert (2, "try again") == (view.attempt, view.last_failure.message)
    with pytest.raises(TaskFailed, match="give up"):
        await handle.result()


async def test_the_same_completion_twice_is_one(client):
    """With an idempotency key the second is answered as the first."""
    handle, _ = await left_to_others(client)
    first = await handle.complete(1, idempotency_key="k")
    second = await handle.complete(1, idempotency_key="k")

    assert (True, False) == (first.idempotency_key_new, second.idempotency_key_new)
    with pytest.raises(RequestMismatch):
        await handle.complete(2, idempotency_key="k")


async def test_only_what_was_deferred_is_completed(client):
    """Neither one that runs, nor one that nobody has begun."""
    running = await client.start_task(blocking)
    await until(lambda: CALLS)
    unbegun = await client.start_task(echo, queue="nobody")

    for handle, attempt in ((running, 1), (unbegun, 0)):
        with pytest.raises(TaskNotDeferred, match="complete_later") as caught:
            await handle.complete(1)
        assert attempt == caught.value.details["attempt"]
        with pytest.raises(TaskNotDeferred):
            await handle.fail("no")


# --- ids ---


async def test_one_open_task_has_an_id(client):
    """A second start finds it, or is refused, or ends it; once it is over, another may have the id."""
    first = await client.start_task(blocking, task_id="t")
    found = await client.start_task(echo, 5, task_id="t")
    with pytest.raises(WorkflowAlreadyRunning):
        await client.start_task(echo, task_id="t", if_running="fail")
    instead = await client.start_task(echo, 5, task_id="t", if_running="terminate")

    assert (first.workflow_execution_id, False) == (found.workflow_execution_id, found.created)
    assert (True, 5) == (instead.created, await instead.result())
    assert instead.workflow_execution_id == (await client.find_task("t", echo)).workflow_execution_id
    assert WorkflowStatus.TERMINATED == await first.status()
    with pytest.raises(WorkflowIdUsed):
        await client.start_task(echo, task_id="t", if_closed="reject")
    last = await client.start_task(echo, 6, task_id="t")
    assert 6 == await client.task("t").result()
    assert 5 == await client.task(instead.workflow_execution_id).result()
    assert last.created


async def test_the_same_start_twice_is_one(client):
    """With an idempotency key, also after it is over."""
    first = await client.start_task(echo, 5, idempotency_key="k")
    await first.result()
    second = await client.start_task(echo, 5, request_id="k")

    assert (True, False) == (first.idempotency_key_new, second.idempotency_key_new)
    assert first.workflow_execution_id == second.workflow_execution_id
    with pytest.raises(RequestMismatch):
        await client.start_task(echo, 6, idempotency_key="k")


async def test_a_workflow_is_no_task(client):
    """Its id is unknown to everything about tasks, and a task does not take its place."""
    other = await client.start_workflow(idle, workflow_id="w")

    for id_ in ("w", other.id, "nothing"):
        handle = client.task(id_)
        for call in (handle.result(), handle.status(), handle.view(), handle.cancel(), handle.complete(1)):
            with pytest.raises(TaskNotFound, match="no standalone task") as caught:
                await call
            assert id_ == caught.value.details["task_id"]
    for policy in ("use_existing", "fail", "terminate"):
        with pytest.raises(WorkflowAlreadyRunning):
            await client.start_task(echo, task_id="w", if_running=policy)
    assert (await other.status()).is_open


# --- lists ---


async def test_tasks_are_listed(client):
    """The newest first, by status, kind, queue and metadata; workflows are not among them."""
    await client.start_workflow(idle)
    done = await client.start_task(echo, 1, metadata={"customer": "a"})
    await done.result()
    running = await client.start_task(blocking)
    pending = await client.start_task(echo, 2, queue="nobody", metadata={"customer": "b"})
    waiting, _ = await left_to_others(client)
    await status_of(running, WorkflowStatus.RUNNING)

    async def listed(**filters):
        return [view.task_id async for view in client.iter_tasks(**filters)]

    made = [waiting.task_id, pending.task_id, running.task_id, done.task_id]
    assert made == await listed()
    assert made == await listed(limit=1)
    assert [pending.task_id, done.task_id] == await listed(kind="echo.task")
    assert [pending.task_id] == await listed(queue="nobody")
    assert [done.task_id] == await listed(metadata={"customer": "a"}, kind="echo.task")
    assert [done.task_id] == await listed(status="COMPLETED")
    assert [pending.task_id] == await listed(status="PENDING")
    assert [running.task_id] == await listed(status=WorkflowStatus.RUNNING, limit=1)
    assert [waiting.task_id] == await listed(status="WAITING")
    assert [waiting.task_id, done.task_id] == await listed(status=["WAITING", "COMPLETED"])
    assert [] == await listed(status="FAILED")
    first = await client.list_tasks(limit=3)
    with pytest.raises(InvalidCursor):
        await client.list_tasks(cursor=first.next_cursor, kind="add")
    with pytest.raises(InvalidRequest, match="limit"):
        await client.list_tasks(limit=0)


# --- refusals ---


async def test_an_unknown_kind_is_refused(client):
    """It would wait for ever; so is what is no task at all."""
    with pytest.raises(UnknownTaskKind, match="no worker has ever registered task kind 'ehco'"):
        await client.start_task("ehco")
    with pytest.raises(InvalidRequest, match="is not a task"):
        await client.start_task(idle)
    assert () == (await client.list_tasks()).items


@pytest.mark.parametrize(
    ("options", "field", "error"),
    [
        ({"task_id": ""}, "task_id", InvalidRequest),
        ({"task_id": "x" * 256}, "task_id", InvalidRequest),
        ({"queue": "a\nb"}, "queue", InvalidRequest),
        ({"request_id": ""}, "request_id", InvalidRequest),
        ({"metadata": {"holdfast.task_kind": "x"}}, "metadata", InvalidRequest),
        ({"metadata": {"a": 1}}, "metadata", InvalidRequest),
        ({"retry": 3}, "retry", InvalidRequest),
        ({"retry": RetryPolicy(max_interval_s=1e300)}, "max_interval_s", InvalidDuration),
        ({"retry": RetryPolicy(non_retryable=("a\0",))}, "non_retryable", InvalidRequest),
        ({"start_to_close": 0}, "start_to_close", InvalidDuration),
        ({"heartbeat_timeout": -1}, "heartbeat_timeout", InvalidDuration),
        ({"if_running": "maybe"}, "if_running", InvalidRequest),
    ],
)
async def test_bad_options_are_refused(client, options, field, error):
    """With the name of the field, and nothing is started."""
    with pytest.raises(error) as caught:
        await client.start_task(echo, **options)

    assert field == caught.value.details["field"]
    assert () == (await client.list_tasks()).items


async def test_too_large_arguments_are_refused(engine):
    """So is a result that is too large."""
    config = replace(QUICK, limits=Limits(payload_bytes=1000))
    client = (await engine(tasks=TASKS, config=config)).client
    with pytest.raises(PayloadTooLarge):
        await client.start_task(echo, "x" * 1000)
    handle, _ = await left_to_others(client)
    with pytest.raises(PayloadTooLarge):
        await handle.complete("x" * 1000)


async def test_the_engine_keeps_its_names(client):
    """Nobody else's workflow or task has such a kind, and its own is not started as a workflow."""
    for decorator in (workflow, task):
        with pytest.raises(InvalidDefinition, match=r"'holdfast\.' is the engine's own") as caught:
            decorator(kind="holdfast.mine")(lambda ctx: None)
        assert "kind" == caught.value.details["field"]
    for call in (
        client.start_workflow("holdfast.task", {"kind": "add"}),
        client.signal_with_start_workflow("w", "holdfast.task", signal_name="s"),
    ):
        with pytest.raises(InvalidRequest, match="start_task") as refused:
            await call
        assert "workflow_kind" == refused.value.details["field"]


async def test_the_engines_own_kinds_are_not_listed(engine):
    """Definitions are what was deployed."""
    running = await engine(workflows=[idle], tasks=TASKS)

    assert ["idle"] == [row.kind for row in await running.engine_api().deployments.definitions("default")]


async def test_a_worker_can_not_take_the_engines_names(engine):
    """Wherever it runs."""
    running = await engine()
    worker = RegisterWorker(
        org="default",
        session="s",
        host="h",
        pid=1,
        builds={},
        task_kinds=("holdfast.x",),
        turn_slots=1,
        task_slots=1,
        lease_s=5,
    )
    with pytest.raises(InvalidRequest, match="engine's own") as caught:
        await running.engine_api().workers.register(worker)
    assert "task_kinds" == caught.value.details["field"]
