from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

import holdfast
from holdfast import EngineConfig, TelemetryConfig, WorkflowContext
from holdfast.contract.upkeep import DueWork
from holdfast.engine.group_commit import OperationBatch, PendingOperation
from holdfast.engine.instrumentation import CommitMeters
from holdfast.engine.metrics_page import MetricsPage
from holdfast.engine.upkeep.run_due import RunDue
from holdfast.errors import StaleClaim, StorageBusy, WorkflowFailed
from holdfast.store.protocol import Loaded, Store
from holdfast.store.queries import Backlog, QueueDepth, Vitals
from tests.conftest import QUICK, until

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "observe.md"
MEASURED = replace(QUICK, telemetry=TelemetryConfig(metrics=True))


@holdfast.task
async def double(number: int) -> int:
    return 2 * number


@holdfast.task(retry=holdfast.RetryPolicy(max_attempts=2, initial_interval_s=0.001))
async def broken() -> None:
    raise ValueError("no")


@holdfast.workflow
async def busy(ctx: WorkflowContext, number: int) -> int:
    await ctx.run(lambda: 1, name="one")
    await ctx.task(double, number)
    return await ctx.wait_for_signal("go", int)


@holdfast.workflow
async def failing(ctx: WorkflowContext) -> None:
    await ctx.task(broken)


@holdfast.workflow
async def lonely(ctx: WorkflowContext) -> None:
    await ctx.task("nobody-knows-it", queue="empty")


def value(page: str, series: str) -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", page, re.MULTILINE)
    assert found, f"there is no {series}"
    return float(found[1])


async def test_what_an_engine_does_is_counted(engine):
    """Starts, ends, turns, tasks, steps, signals, and how long things took."""
    running = await engine(workflows=[busy, failing], tasks=[double, broken], config=MEASURED)
    handle = await running.client.start_workflow(busy, 1)
    await handle.signal("go", 3)
    await handle.result()
    with pytest.raises(WorkflowFailed):
        await (await running.client.start_workflow(failing)).result()

    page = await running.metrics.page()
    expected = {
        "holdfast_executions_started_total": 2,
        'holdfast_executions_closed_total{status="COMPLETED"}': 1,
        'holdfast_executions_closed_total{status="FAILED"}': 1,
        'holdfast_tasks_total{outcome="completed"}': 1,
        'holdfast_tasks_total{outcome="failed"}': 1,
        'holdfast_task_attempts_total{outcome="completed"}': 1,
        'holdfast_task_attempts_total{outcome="failed"}': 2,
        'holdfast_steps_total{outcome="completed"}': 1,
        "holdfast_signals_total": 1,
        "holdfast_signal_reaction_seconds_count": 1,
        "holdfast_task_run_seconds_count": 3,
        "holdfast_task_schedule_to_start_seconds_count": 2,
        "holdfast_step_run_seconds_count": 1,
        "holdfast_execution_seconds_count": 2,
        'holdfast_history_events_total{type="SIGNAL_RECEIVED"}': 1,
        "holdfast_store_up": 1,
        "holdfast_sessions": 1,
    }
    assert {series: value(page, series) for series in expected} == expected
    assert value(page, "holdfast_turns_total") >= 4
    assert value(page, "holdfast_turn_schedule_to_start_seconds_count") >= 3
    transactions = value(page, "holdfast_transactions_total")
    for stage in ("load", "decide", "write"):
        assert value(page, f'holdfast_transaction_seconds_count{{stage="{stage}"}}') == transactions


async def test_what_waits_for_a_worker_is_read_from_the_database(engine):
    """A task that nobody takes is seen with its queue and its age."""
    running = await engine(workflows=[lonely], config=MEASURED)
    handle = await running.client.start_workflow(lonely)

    async def scheduled():
        return await running.storage.tasks("default", handle.id)

    await until(scheduled)

    page = await running.metrics.page()
    assert value(page, 'holdfast_queue_depth{org="default",queue="empty",of="task"}') == 1
    assert value(page, 'holdfast_queue_age_seconds{org="default",queue="empty",of="task"}') >= 0
    assert "empty" not in await running.metrics.page("another")


async def test_refusals_are_counted_by_code(engine):
    """A worker that has lost its lease is told so, and the operator sees it."""
    from holdfast.contract.workers import ParkTurn
    from holdfast.model.executions import StuckReason
    from holdfast.model.values import Token

    running = await engine(workflows=[busy], tasks=[double], config=MEASURED)
    handle = await running.client.start_workflow(busy, 1)
    stale = ParkTurn(
        org="default", execution_id=handle.id, token=Token(99, 0), reason=StuckReason(code="x", message="y")
    )
    with pytest.raises(StaleClaim):
        await running._local.workers.park_turn(stale)

    assert value(await running.metrics.page(), 'holdfast_operations_refused_total{code="stale_claim"}') == 1


async def test_an_engine_without_metrics_makes_plain_batches(engine):
    """Nothing of it is paid for where it is off."""
    running = await engine(workflows=[busy], tasks=[double])

    assert running.metrics is None
    assert running._local.queue.make_batch is OperationBatch


def test_a_server_has_metrics_unless_told_otherwise():
    """Where there is a door to ask at, they are on."""
    assert holdfast.assembly.Server("sqlite://").engine.metrics is not None
    off = EngineConfig(telemetry=TelemetryConfig(metrics=False))
    assert holdfast.assembly.Server("sqlite://", config=off).engine.metrics is None


class StubStore:
    def __init__(self) -> None:
        self.backlogs: list[Backlog | Exception] = []
        self.asked = 0

    def clock(self) -> int:
        return 10_000_000

    async def backlog(self, now: int, most: int) -> Backlog:
        self.asked += 1
        found = self.backlogs.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def vitals(self) -> Vitals:
        return Vitals(readers=1)


def _page_of(store: StubStore, refresh_s: float, most: int) -> MetricsPage:
    return MetricsPage(cast(Store, store), refresh_s, most)


async def test_the_database_is_not_asked_by_every_scrape():
    """Many scrapes within a second share one read."""
    store = StubStore()
    store.backlogs = [Backlog(turns=[QueueDepth("o", "q", 3, 4_000_000)], tasks=[], stuck={"o": 1})]
    page = _page_of(store, 0.0, 200)

    pages = await asyncio.gather(*(page.page() for _ in range(5)))
    assert store.asked == 1
    assert value(pages[-1], 'holdfast_queue_age_seconds{org="o",queue="q",of="turn"}') == 6


async def test_a_queue_that_has_emptied_is_gone_and_a_repaired_org_is_zero():
    """Old figures do not outlive what they were read from; an alert on stuck executions sees the 0."""
    store = StubStore()
    store.backlogs = [
        Backlog(turns=[QueueDepth("o", "q", 3, 0)], tasks=[], stuck={"o": 1}),
        Backlog(turns=[], tasks=[], stuck={}),
    ]
    page = _page_of(store, 1.0, 200)
    assert 'holdfast_executions_stuck{org="o"} 1' in await page.page()
    page._fresh_until = 0.0

    shown = await page.page()
    assert "holdfast_queue_depth{" not in shown
    assert 'holdfast_executions_stuck{org="o"} 0' in shown


async def test_a_database_that_does_not_answer_is_told():
    """Everything else is still there."""
    store = StubStore()
    store.backlogs = [StorageBusy("no")]

    shown = await _page_of(store, 1.0, 200).page()
    assert value(shown, "holdfast_store_up") == 0
    assert value(shown, "holdfast_executions_started_total") == 0


async def test_the_page_on_observing_lists_every_metric(engine):
    """Names and types are those of the code."""
    running = await engine(config=MEASURED)
    families = {name: family.kind for name, family in running.metrics.meters.registry.families.items()}
    rows = dict(re.findall(r"^\| `(holdfast_\w+)` \| (\w+) \|", PAGE.read_text("utf-8"), re.MULTILINE))

    assert families | {"holdfast_hints_healthy": "gauge"} == rows


async def test_transactions_that_had_to_be_repeated_split_or_given_up_are_counted(engine):
    """As the store tells its batch: begun twice, in two halves, failed, not known."""
    running = await engine(config=MEASURED)
    queue, meters = running._local.queue, running.metrics.meters

    repeated = queue.make_batch(queue, [])
    for _ in range(3):
        repeated.plan()
        repeated.decide(Loaded(now=1))
    repeated.committed()
    members = [PendingOperation(RunDue(None), asyncio.get_running_loop().create_future()) for _ in range(2)]
    halves = queue.make_batch(queue, members).split()
    halves[0].failed(StorageBusy("no"))
    halves[1].commit_in_doubt(StorageBusy("who knows"))

    await until(lambda: meters.commit_in_doubt.value and meters.retried.value)
    assert isinstance(members[0].future.exception(), StorageBusy)
    assert isinstance(members[1].future.exception(), StorageBusy)
    assert (meters.retried.value, meters.split.value, meters.failed.of("storage_busy").value) == (2, 1, 1)


async def test_lost_leases_are_counted(engine):
    """What a session held that stopped reporting, turns and tasks apart."""
    running = await engine(config=MEASURED)
    meters = running.metrics.meters
    member = PendingOperation(RunDue(None), asyncio.get_running_loop().create_future())
    member.answer = DueWork(timers_fired=1, tasks_timed_out=2, sessions_expired=3, turns_reclaimed=4, tasks_reclaimed=5)
    fired, timed_out = meters.timers.value, meters.timed_out.value

    CommitMeters(meters)._count_member(member)
    assert (meters.timers.value - fired, meters.timed_out.value - timed_out) == (1, 2)
    assert meters.sessions_expired.value == 3
    assert (meters.leases_lost.of("turn").value, meters.leases_lost.of("task").value) == (4, 5)
