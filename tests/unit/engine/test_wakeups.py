"""Wake-ups are neither lost nor multiplied: whatever happens during a turn moves the workflow on, in few turns."""

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from holdfast import Engine, EngineConfig, WorkerConfig, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.engine.upkeep.run_due import RunDue
from holdfast.engine.workers.claim import Claim
from holdfast.services.due_work import DueWorkService
from tests.conftest import QUICK, until


@task
async def echo(value: int) -> int:
    return value


@task
def echo_in_a_thread(value: int) -> int:
    return value


@workflow
async def one_after_another(ctx: WorkflowContext, number: int) -> int:
    total = 0
    for value in range(number):
        total += await ctx.task(echo, value)
    return total


@workflow
async def all_at_once(ctx: WorkflowContext, number: int) -> int:
    return sum(await asyncio.gather(*(ctx.task(echo, value) for value in range(number))))


@workflow
async def all_at_once_in_threads(ctx: WorkflowContext, number: int) -> int:
    return sum(await asyncio.gather(*(ctx.task(echo_in_a_thread, value) for value in range(number))))


@workflow
async def steps_tasks_and_timers(ctx: WorkflowContext, number: int) -> int:
    values = await asyncio.gather(
        *(ctx.run(abs, -value) for value in range(number)),
        *(ctx.task(echo, value) for value in range(number)),
        *(ctx.sleep(0.001 * value) for value in range(number)),
    )
    return sum(value for value in values if value is not None)


WORKFLOWS = [one_after_another, all_at_once, all_at_once_in_threads, steps_tasks_and_timers]
TASKS = [echo, echo_in_a_thread]


def with_worker(**options):
    return EngineConfig(store=QUICK.store, worker=WorkerConfig(shutdown_grace_s=0.2, **options))


async def kinds(handle):
    return Counter(event.type for event in await handle.history())


@pytest.mark.parametrize("fn", WORKFLOWS)
async def test_tasks_without_an_await_always_move_their_workflow_on(engine, fn):
    """A hundred workflows of ten tasks that finish at once, during any moment of a turn: all end with their sum."""
    client = (await engine(workflows=WORKFLOWS, tasks=TASKS)).client
    handles = await asyncio.gather(*(client.start_workflow(fn, 10) for _ in range(100)))
    results = await asyncio.gather(*(handle.result(timeout=30) for handle in handles))

    expected = 45 if fn is not steps_tasks_and_timers else 90
    assert [expected] * 100 == results


async def test_a_thousand_completions_make_few_turns(engine):
    """1,000 tasks gathered by one workflow: every completion is recorded, but only a small part of them cost a turn."""
    client = (await engine(workflows=WORKFLOWS, tasks=TASKS)).client
    handle = await client.start_workflow(all_at_once, 1_000)

    assert sum(range(1_000)) == await handle.result(timeout=30)
    counted = await kinds(handle)
    assert 1_000 == counted["TASK_SCHEDULED"] == counted["TASK_COMPLETED"]
    assert counted["WORKFLOW_TASK_COMPLETED"] < 250


async def test_completions_that_come_while_nobody_runs_are_one_turn(engine):
    """Two hundred tasks done by an engine without the workflow's code: the next turn sees them all."""
    with_workflow = await engine(workflows=[all_at_once])
    handle = await with_workflow.client.start_workflow(all_at_once, 200)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    await with_workflow.shutdown()
    with_tasks = await engine(tasks=TASKS)
    await until(lambda: completed(with_tasks, handle.id, 200))
    again = await engine(workflows=[all_at_once])
    handle = again.client.workflow(handle.id)

    assert sum(range(200)) == await handle.result(timeout=30)
    # one turn that asked for the tasks, one that saw them all
    assert 1 == (await kinds(handle))["WORKFLOW_TASK_COMPLETED"]


async def completed(engine, execution_id, number):
    history = await engine.client.history(execution_id)
    return number == sum(event.type == "TASK_COMPLETED" for event in history)


async def has_status(handle, status):
    return await handle.status() is status


async def test_signals_during_turns_are_never_lost(engine):
    """A thousand signals to ten workflows while their turns and tasks run: each is read once, in order."""

    @workflow
    async def read(ctx: WorkflowContext, wanted: int) -> list[int]:
        seen = []
        for _ in range(wanted):
            value = await ctx.wait_for_signal("item", int)
            seen.append(await ctx.task(echo, value))
        return seen

    client = (await engine(workflows=[read], tasks=TASKS)).client
    handles = [await client.start_workflow(read, 100) for _ in range(10)]

    async def send(handle):
        for value in range(100):
            await handle.signal("item", value)

    await asyncio.gather(*map(send, handles))

    assert [list(range(100))] * 10 == await asyncio.gather(*(handle.result(timeout=30) for handle in handles))


async def test_more_work_than_slots(engine):
    """Two turn slots and two task slots: five hundred tasks of fifty workflows all get their turn."""
    client = (await engine(workflows=WORKFLOWS, tasks=TASKS, config=with_worker(turn_slots=2, task_slots=2))).client
    handles = await asyncio.gather(*(client.start_workflow(all_at_once, 10) for _ in range(50)))

    assert [45] * 50 == await asyncio.gather(*(handle.result(timeout=30) for handle in handles))


async def test_one_slot_is_enough(engine):
    """With a single slot of each kind everything is done one after another, but done."""
    client = (await engine(workflows=WORKFLOWS, tasks=TASKS, config=with_worker(turn_slots=1, task_slots=1))).client
    handles = await asyncio.gather(*(client.start_workflow(fn, 5) for fn in WORKFLOWS * 3))

    assert [10, 10, 10, 20] * 3 == await asyncio.gather(*(handle.result(timeout=30) for handle in handles))


@pytest.mark.parametrize("cached", [0, 1, 3])
async def test_a_small_cache_costs_time_not_results(engine, cached):
    """Programs that are thrown away at every opportunity are rebuilt from their history and end the same."""
    config = with_worker(cached_executions=cached)
    client = (await engine(workflows=WORKFLOWS, tasks=TASKS, config=config)).client
    handles = await asyncio.gather(*(client.start_workflow(fn, 8) for fn in WORKFLOWS * 5))
    results = await asyncio.gather(*(handle.result(timeout=15) for handle in handles))

    assert [28, 28, 28, 56] * 5 == results


async def test_the_slot_of_a_stale_report_is_free_again(engine):
    """Tasks that were cancelled while they ran give their slot back: others still run."""
    clients: list[Any] = []

    @task
    async def endless(execution_id: str) -> None:
        await clients[0].signal_workflow(execution_id, "begun")
        await asyncio.Event().wait()

    @workflow
    async def impatient(ctx: WorkflowContext) -> int:
        for _ in range(3):
            job = ctx.task(endless, ctx.info.workflow_execution_id)
            await ctx.wait_for_signal("begun")
            job.cancel()
        return await ctx.task(echo, 7)

    config = with_worker(task_slots=1)
    client = (await engine(workflows=[impatient], tasks=[endless, echo], config=config)).client
    clients.append(client)
    handle = await client.start_workflow(impatient)

    assert 7 == await handle.result(timeout=15)


async def test_a_blocking_body_does_not_hold_up_the_others(engine):
    """Plain `def` bodies run in threads: one that blocks leaves turns, signals and other tasks alone."""
    release = threading.Event()

    @task
    def blocking() -> str:
        release.wait(20)
        return "released"

    @workflow
    async def parent(ctx: WorkflowContext) -> str:
        return await ctx.task(blocking)

    client = (await engine(workflows=[parent, *WORKFLOWS], tasks=[blocking, *TASKS])).client
    blocked = await client.start_workflow(parent)
    other = await client.start_workflow(one_after_another, 5)

    assert 10 == await other.result(timeout=10)
    release.set()
    assert "released" == await blocked.result(timeout=10)


async def test_an_end_noticed_before_its_start_was_answered_is_not_waited_for(engine, monkeypatch):
    """Another process may run and close an execution before its beginner has come to the answer. Whoever asks for
    the result then reads it, instead of waiting for news that have passed."""
    beginner, runner = await engine(), await engine(workflows=WORKFLOWS, tasks=TASKS)
    local = beginner._local
    answer = local.opened

    def closed_meanwhile(executions, peer_writes):
        local.result_waiters.note_peer_write()
        answer(executions, peer_writes)

    monkeypatch.setattr(local, "opened", closed_meanwhile)
    handle = await beginner.client.start_workflow(one_after_another, 1)

    assert not local.result_waiters.known_open(("default", handle.id))
    assert 0 == await runner.client.workflow(handle.id).result() == await handle.result()


async def test_a_pass_over_due_work_and_the_claim_with_it_are_one_transaction(postgres_url):
    """A node at rest makes one of them every ten seconds: it is what its rest costs."""
    async with Engine(postgres_url, workflows=WORKFLOWS, tasks=TASKS, config=QUICK) as running:
        queue, batches = running._local.queue, []
        make = queue.make_batch

        def noted(queue, members):
            batches.append({type(member.operation) for member in members})
            return make(queue, members)

        queue.make_batch = noted
        await DueWorkService(running._local.upkeep, sessions_every_s=10.0, resolution_s=0.1).once()

    assert any({RunDue, Claim} <= batch for batch in batches), batches
