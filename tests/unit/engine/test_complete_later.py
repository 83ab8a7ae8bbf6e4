"""`TaskContext.complete_later()`: a task whose result comes from somebody else, by its token."""

import asyncio
from typing import Any

import pytest

from holdfast import NonRetryable, RetryPolicy, Status, TaskContext, WorkflowContext, task, workflow
from holdfast.errors import PromiseNotFound, StaleAttempt, TaskFailed, TaskTimedOut
from holdfast.testing import MockTaskContext
from tests.conftest import QUICK, until
from tests.unit.engine.records import check_all

TOKENS: list[str] = []
RETRY = RetryPolicy(initial_interval_s=1, backoff=1, jitter=False, max_attempts=3)


@task(retry=RETRY, start_to_close=100)
async def outsourced(ctx: TaskContext) -> Any:
    TOKENS.append(ctx.complete_later())


@task(retry=RETRY)
def outsourced_by_thread(ctx: TaskContext) -> Any:
    TOKENS.append(ctx.complete_later())
    assert TOKENS[-1] == ctx.complete_later()


@task(retry=RetryPolicy(max_attempts=1), start_to_close=100, heartbeat_timeout=5)
async def beating(ctx: TaskContext) -> Any:
    ctx.heartbeat("half", progress=0.5)
    TOKENS.append(ctx.complete_later())


@task(retry=RETRY)
async def failing(ctx: TaskContext) -> Any:
    TOKENS.append(ctx.complete_later())
    if ctx.info.attempt == 1:
        raise ValueError("after the token was handed out")


@task(retry=RETRY)
async def talkative(ctx: TaskContext) -> Any:
    TOKENS.append(ctx.complete_later())
    return "not the result"


@task
async def slow(ctx: TaskContext) -> Any:
    """Goes on after it has handed out its token."""
    TOKENS.append(ctx.complete_later())
    await asyncio.Event().wait()


@workflow
async def outsourcing(ctx: WorkflowContext, kind: str = "outsourced") -> object:
    try:
        return await ctx.task(BY_KIND[kind])
    except TaskTimedOut as error:
        return f"timed out after {error.attempts}: {error}"
    except TaskFailed as error:
        return f"{error.error_type} after {error.attempts}"


TASKS = [outsourced, outsourced_by_thread, beating, failing, talkative, slow]
BY_KIND = {one.__name__: one for one in TASKS}


@pytest.fixture(autouse=True)
def no_tokens():
    TOKENS.clear()


@pytest.fixture
async def env(environment):
    return await environment(workflows=[outsourcing], tasks=TASKS)


async def left_to_others(env, kind="outsourced"):
    handle = await env.client.start_workflow(outsourcing, kind)
    await env.idle()
    return handle


@pytest.mark.parametrize("kind", ["outsourced", "outsourced_by_thread"])
async def test_the_token_completes_the_task(env, kind):
    """003-05, 003-31: the body returns, the worker is free, the result comes by the token."""
    handle = await left_to_others(env, kind)
    [pending] = await handle.pending_tasks()
    settled = await env.client.complete_promise(TOKENS[0], {"done": True})

    assert TOKENS[0].startswith("ct_")
    assert (True, None, 1) == (pending.deferred, pending.worker, pending.attempt)
    assert (f"{handle.id}:task:1", False) == (settled.promise_id, settled.already_resolved)
    assert {"done": True} == await handle.result()
    assert [] == await handle.pending_tasks()


async def test_nobody_claims_it_meanwhile(env):
    """Not for days, not by another worker: it is not on the queue."""
    handle = await env.client.start_workflow(outsourcing)
    await env.idle()
    [pending] = await handle.pending_tasks()
    await env.advance(seconds=99)

    assert (True, None) == (pending.deferred, pending.not_before)
    assert 1 == len(TOKENS)


async def test_it_frees_its_slot(engine):
    """More tasks wait for others than the worker has slots."""
    from dataclasses import replace

    config = replace(QUICK, worker=replace(QUICK.worker, task_slots=1))
    client = (await engine(workflows=[outsourcing], tasks=TASKS, config=config)).client
    handles = [await client.start_workflow(outsourcing) for _ in range(5)]
    await until(lambda: len(TOKENS) == 5)
    for number, token in enumerate(TOKENS):
        await client.complete_promise(token, number)

    assert {0, 1, 2, 3, 4} == {await handle.result(timeout=10) for handle in handles}


async def test_an_attempt_that_nobody_completes_times_out(env):
    """`start_to_close` holds; the next attempt has another token, and the old one is stale."""
    handle = await left_to_others(env)
    await env.advance(seconds=102)
    with pytest.raises(StaleAttempt) as refused:
        await env.client.complete_promise(TOKENS[0], "late")
    await env.client.complete_promise(TOKENS[1], "in time")

    assert 2 == len(set(TOKENS))
    assert (handle.id, 1, 1) == tuple(refused.value.details[key] for key in ("execution_id", "task_no", "attempt"))
    assert "in time" == await handle.result()


async def test_all_attempts_time_out(env):
    """Its retry policy counts as for any other task."""
    handle = await left_to_others(env)
    await env.advance(seconds=400)

    assert 3 == len(TOKENS)
    assert "timed out after 3" in (result := str(await handle.result()))
    assert "start_to_close of 100.0 s passed" in result


async def test_heartbeats_are_not_expected(env):
    """Once the body has returned nobody is there to send them; what it has reported is kept."""
    handle = await left_to_others(env, "beating")
    await env.advance(seconds=99)
    [pending] = await handle.pending_tasks()

    assert "half" == pending.details
    await env.client.complete_promise(TOKENS[0], 1)
    assert 1 == await handle.result()


async def test_failing_by_token_is_a_failed_attempt(env):
    """It is tried again by its policy; NonRetryable is final."""
    handle = await left_to_others(env)
    await env.client.complete_promise(TOKENS[0], error=ValueError("try again"))
    [pending] = await handle.pending_tasks()
    await env.advance(seconds=1)
    await env.client.complete_promise(TOKENS[1], error=NonRetryable("never"))

    assert ("try again", False) == (pending.last_failure.message, pending.deferred)
    assert "NonRetryable after 2" == await handle.result()


async def test_a_body_that_raises_has_failed_token_or_not(env):
    """The token of that attempt is stale."""
    handle = await left_to_others(env, "failing")
    with pytest.raises(StaleAttempt):
        await env.client.complete_promise(TOKENS[0], 1)
    await env.advance(seconds=1)
    await env.client.complete_promise(TOKENS[1], 2)

    assert 2 == await handle.result()


async def test_what_the_body_returns_is_not_the_result(env, caplog):
    """And a warning says so."""
    handle = await left_to_others(env, "talkative")

    assert Status.WAITING == await handle.status()
    assert "complete_later" in caplog.text
    await env.client.complete_promise(TOKENS[0], "the result")
    assert "the result" == await handle.result()


async def test_the_answer_may_come_before_the_body_returns(engine):
    """Whoever gets the token may be faster: the token is known as soon as it is handed out."""
    client = (await engine(workflows=[outsourcing], tasks=TASKS)).client
    handle = await client.start_workflow(outsourcing, "slow")
    await until(lambda: TOKENS)
    await client.complete_promise(TOKENS[0], "fast")

    assert "fast" == await handle.result(timeout=10)


async def test_the_second_completion_is_stale(env):
    """With the same idempotency key it is the same completion."""
    handle = await left_to_others(env)
    first = await env.client.complete_promise(TOKENS[0], 1, idempotency_key="k")
    again = await env.client.complete_promise(TOKENS[0], 1, idempotency_key="k")
    with pytest.raises(StaleAttempt):
        await env.client.complete_promise(TOKENS[0], 2)

    assert (first.value, False) == (again.value, again.idempotency_key_new)
    assert 1 == await handle.result()


async def test_fifty_completions_at_once_are_one(env):
    """One of them counts, the others are told that the attempt is over."""
    handle = await left_to_others(env)
    answers = await asyncio.gather(
        *(env.client.complete_promise(TOKENS[0], number) for number in range(50)), return_exceptions=True
    )

    assert 49 == sum(isinstance(answer, StaleAttempt) for answer in answers)
    assert 1 == sum(event.type == "TASK_COMPLETED" for event in await handle.history())


async def test_a_token_of_a_closed_execution_is_stale(env):
    """The task went with its execution."""
    handle = await left_to_others(env)
    await handle.terminate()
    with pytest.raises(StaleAttempt):
        await env.client.complete_promise(TOKENS[0], 1)


async def test_another_org_can_not_complete_it(engine):
    """Its token is unknown there."""
    blue = (await engine(workflows=[outsourcing], tasks=TASKS, org="blue")).client
    red = (await engine(org="red")).client
    handle = await blue.start_workflow(outsourcing)
    await until(lambda: TOKENS)
    with pytest.raises(PromiseNotFound):
        await red.complete_promise(TOKENS[0], 1)
    await blue.complete_promise(TOKENS[0], 1)

    assert 1 == await handle.result(timeout=10)


async def test_it_survives_its_worker(engine):
    """The engine that ran the body is gone: nobody takes the task for orphaned, and its token still counts."""
    first = await engine(workflows=[outsourcing], tasks=TASKS)
    handle = await first.client.start_workflow(outsourcing)
    await until(lambda: is_deferred(handle))
    await first.shutdown()
    second = await engine(workflows=[outsourcing], tasks=TASKS)
    report = await second.recover()
    [pending] = await second.client.workflow(handle.id).pending_tasks()

    assert (0, 0) == (report.tasks_reclaimed, report.tasks_restored)
    assert (True, 1, 1) == (pending.deferred, pending.attempt, len(TOKENS))
    await check_all(second)
    await second.client.complete_promise(TOKENS[0], "after all")
    assert "after all" == await second.client.workflow(handle.id).result(timeout=10)


async def is_deferred(handle):
    tasks = await handle.pending_tasks()
    return bool(tasks) and tasks[0].deferred and tasks[0].worker is None


async def test_an_interrupted_body_that_has_handed_out_its_token_counts(engine):
    """Its worker shuts down: the next attempt has a token of its own, the one that was handed out is stale."""
    first = await engine(workflows=[outsourcing], tasks=TASKS)
    handle = await first.client.start_workflow(outsourcing, "slow")
    await until(lambda: TOKENS)
    await first.shutdown()
    client = (await engine(workflows=[outsourcing], tasks=TASKS)).client
    await until(lambda: len(TOKENS) == 2)
    with pytest.raises(StaleAttempt):
        await client.complete_promise(TOKENS[0], "old")
    await client.complete_promise(TOKENS[1], "new")

    assert "new" == await client.workflow(handle.id).result(timeout=10)


async def test_cancelling_the_workflow_cancels_it(env):
    """The row goes; a later completion is stale."""
    handle = await left_to_others(env)
    await handle.cancel()
    await env.idle()
    with pytest.raises(StaleAttempt):
        await env.client.complete_promise(TOKENS[0], 1)

    assert Status.CANCELLED == await handle.status()


async def test_a_mocked_context_gives_a_token():
    """A body can be tested by itself."""
    ctx = MockTaskContext(attempt=2)
    await outsourced(ctx)

    assert ctx.token == TOKENS[0]
    assert ctx.token.startswith("ct_")
    assert MockTaskContext().token is None
