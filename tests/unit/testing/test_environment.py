"""The environment: the real engine on time that the test moves."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import (
    Engine,
    EngineConfig,
    NonRetryable,
    RetryPolicy,
    TaskContext,
    WorkerConfig,
    WorkflowContext,
    WorkflowStatus,
    task,
    workflow,
)
from holdfast import errors as err
from holdfast.testing import WorkflowEnvironment

pytestmark = pytest.mark.usefixtures("on_the_tests_store")

T0 = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class Order:
    name: str
    price: int


@task
async def charge(order: Order) -> str:
    raise AssertionError("the real body must not run")


@task(retry=RetryPolicy(initial_interval_s=100.0, backoff=2.0, max_interval_s=1000.0, jitter=False))
async def flaky(calls: list[str]) -> str:
    raise AssertionError("the real body must not run")


@workflow
async def paying(ctx: WorkflowContext, order: Order) -> str:
    return await ctx.task(charge, order)


@workflow
async def month(ctx: WorkflowContext) -> list[str]:
    """Wakes up daily, and notes the days on which a letter was there."""
    days = []
    for _ in range(30):
        await ctx.sleep(DAY)
        if ctx.has_signal("letter"):
            days.append(f"{await ctx.wait_for_signal('letter', str)} {ctx.now():%m-%d}")
    return days


@workflow
async def patient(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("go", str)


# --- time ---------------------------------------------------------------------------------------------------------


async def test_thirty_days_pass_with_their_timers_and_signals():
    """Timers fire at their instants, signals come at the test's, the clock ends where it was sent."""
    async with WorkflowEnvironment(workflows=[month]) as env:
        handle = await env.client.start_workflow(month)
        await env.advance(days=2, hours=12)
        await handle.signal("letter", "a")
        await env.advance(timedelta(days=10))
        await handle.signal("letter", "b")
        await env.advance(days=17, hours=11)
        assert WorkflowStatus.WAITING == await handle.status()

        await env.advance_to(T0 + 30 * DAY)

        assert ["a 01-04", "b 01-14"] == await handle.result()
        assert T0 + 30 * DAY == env.now()


@pytest.mark.parametrize(
    "where",
    [pytest.param("memory", marks=pytest.mark.sqlite_only("only SQLite has databases in memory")), "database"],
)
async def test_what_is_due_happens_in_the_order_of_time(where, database_url):
    """Timers of several executions interleave by instant, not by execution; in a database as in memory."""
    woken: list[int] = []

    def note(second: int) -> None:
        woken.append(second)

    @workflow
    async def every(ctx: WorkflowContext, seconds: int) -> None:
        for _ in range(60 // seconds):
            await ctx.sleep(seconds)
            await ctx.run(note, (ctx.now() - T0).seconds)

    url = "sqlite://" if where == "memory" else database_url
    async with WorkflowEnvironment(workflows=[every], url=url) as env:
        for seconds in (20, 15, 7):
            await env.client.start_workflow(every, seconds)
        await env.advance(minutes=1)

        assert sorted(woken) == woken
        assert 3 + 4 + 8 == len(woken)


async def test_idle_does_what_is_due_now_and_lets_no_time_pass():
    """A sleep of nothing is over at once; the next one waits."""

    @workflow
    async def dozing(ctx: WorkflowContext) -> None:
        await ctx.sleep(0)
        await ctx.sleep(1)

    async with WorkflowEnvironment(workflows=[dozing]) as env:
        handle = await env.client.start_workflow(dozing)
        await env.idle()

        (timer,) = await handle.pending_timers()
        assert 2 == timer.timer_no
        assert T0 == env.now()


async def test_loop_that_sleeps_for_no_time_is_found():
    """It would keep the clock where it is for ever."""

    @workflow
    async def spinning(ctx: WorkflowContext) -> None:
        while True:
            await ctx.sleep(0)

    async with WorkflowEnvironment(workflows=[spinning], wait_s=0.1) as env:
        await env.client.start_workflow(spinning)
        with pytest.raises(err.NeverSettled, match="sleeps for no time"):
            await env.advance(days=1)


async def test_time_stands_still_while_nobody_moves_it():
    """Real time is no time: a sleep of a millisecond does not end by itself."""

    @workflow
    async def blink(ctx: WorkflowContext) -> None:
        await ctx.sleep(0.001)

    async with WorkflowEnvironment(workflows=[blink]) as env:
        handle = await env.client.start_workflow(blink)
        await env.idle()
        with pytest.raises(TimeoutError):
            await handle.result(timeout=0.02)


async def test_start_is_what_the_clock_shows_first():
    """The workflow's time is the environment's."""

    @workflow
    async def today(ctx: WorkflowContext) -> str:
        return ctx.now().isoformat()

    async with WorkflowEnvironment(workflows=[today], start=datetime(1999, 12, 31, tzinfo=UTC)) as env:
        assert "1999-12-31T00:00:00+00:00" == await env.run(today)


async def test_ten_years_cost_no_session(caplog):
    """The environment's own worker does not look dead after a long jump, and takes up new work."""
    async with WorkflowEnvironment(workflows=[patient]) as env:
        assert env.engine.worker is not None
        session = env.engine.worker.session
        await env.advance(days=3650)
        handle = await env.client.start_workflow(patient)
        await handle.signal("go", "on")

        assert "on" == await env.result(handle)
        assert session == env.engine.worker.session
        assert [] == caplog.messages


@pytest.mark.parametrize(
    ("call", "error", "field"),
    [
        (lambda env: env.advance(seconds=-1), err.InvalidDuration, "duration"),
        (lambda env: env.advance(5), err.InvalidDuration, "duration"),
        (lambda env: env.advance_to(T0 - DAY), err.InvalidRequest, "when"),
        (lambda env: env.advance_to(datetime(2031, 1, 1)), err.InvalidRequest, "when"),  # noqa: DTZ001 - on purpose
    ],
)
async def test_time_that_makes_no_sense_is_refused(call, error, field):
    """Backwards, without a unit, without a zone: refused by name, and the clock stays."""
    async with WorkflowEnvironment() as env:
        with pytest.raises(error) as raised:
            await call(env)

        assert field == raised.value.field
        assert T0 == env.now()


async def test_request_ids_are_forgotten_in_virtual_time():
    """What housekeeping does every ten minutes is done when ten virtual minutes have passed."""
    async with WorkflowEnvironment(workflows=[patient]) as env:
        first = await env.client.start_workflow(patient, request_id="r")
        again = await env.client.start_workflow(patient, request_id="r")
        await first.terminate()
        await env.advance(days=2)
        fresh = await env.client.start_workflow(patient, request_id="r")

        assert first.id == again.id != fresh.id


async def test_another_engine_on_the_same_database_is_noticed(database_url):
    """What a second environment commits reaches the first when it comes to rest."""
    url = database_url
    async with WorkflowEnvironment(workflows=[patient], url=url) as env, WorkflowEnvironment(url=url) as other:
        started = await other.client.start_workflow(patient)
        await env.idle()
        await other.client.signal_workflow(started.id, "go", "there")

        assert "there" == await env.result(env.client.workflow(started.id))


# --- retries and time-outs ----------------------------------------------------------------------------------------


async def test_retries_of_a_task_wait_in_virtual_time():
    """Attempts follow one another at the policy's distances, exactly."""
    attempts = []

    @workflow
    async def stubborn(ctx: WorkflowContext) -> str:
        return await ctx.task(flaky, [])

    def fail_thrice(_: list[str]) -> str:
        attempts.append((env.now() - T0).total_seconds())
        if len(attempts) < 4:
            raise ConnectionError
        return "done"

    async with WorkflowEnvironment(workflows=[stubborn], tasks=[flaky]) as env:
        env.fake(flaky, fn=fail_thrice)

        assert "done" == await env.run(stubborn)
        assert [0, 100, 300, 700] == attempts


async def test_retries_of_a_step_wait_in_virtual_time():
    """So do a step's, though they wait in the worker and not in the database."""
    attempts = []

    async def fetch() -> str:
        attempts.append((env.now() - T0).total_seconds())
        if len(attempts) < 3:
            raise ConnectionError
        return "page"

    @workflow
    async def fetching(ctx: WorkflowContext) -> str:
        policy = RetryPolicy(initial_interval_s=3600, max_interval_s=7200, jitter=False)
        return await ctx.run(fetch, retry=policy)

    async with WorkflowEnvironment(workflows=[fetching]) as env:
        handle = await env.client.start_workflow(fetching)
        await env.advance(minutes=59)
        assert [0] == attempts
        await env.advance(minutes=1)
        assert [0, 3600] == attempts

        assert "page" == await env.result(handle)
        assert [0, 3600, 3600 + 7200] == attempts


async def test_start_to_close_passes_over_a_body_that_never_ends():
    """With wait_for_bodies=False time goes on without the body, and its limit comes."""

    @task(start_to_close=60, retry=RetryPolicy(max_attempts=2, initial_interval_s=10, jitter=False))
    async def endless() -> None:
        await asyncio.Event().wait()

    @workflow
    async def bounded(ctx: WorkflowContext) -> str:
        try:
            await ctx.task(endless)
        except err.TaskTimedOut as late:
            return f"{late.attempts} attempts, {(ctx.now() - T0).seconds} s"
        return "ended"

    async with WorkflowEnvironment(workflows=[bounded], tasks=[endless]) as env:
        handle = await env.client.start_workflow(bounded)
        await env.advance(minutes=5, wait_for_bodies=False)

        assert "2 attempts, 130 s" == await handle.result()


async def test_silent_body_loses_its_heartbeat():
    """A body that stops reporting is given up after its limit, counted from its last sign of life."""

    async def beats_twice(ctx: TaskContext) -> None:
        for _ in range(2):
            await env.sleep(20)
            ctx.heartbeat("alive")
        await asyncio.Event().wait()

    @workflow
    async def watched(ctx: WorkflowContext) -> str:
        try:
            await ctx.task("work", heartbeat_timeout=30, retry=RetryPolicy(max_attempts=1))
        except err.TaskTimedOut:
            return f"{(ctx.now() - T0).seconds} s"
        return "ended"

    async with WorkflowEnvironment(workflows=[watched]) as env:
        env.fake("work", fn=beats_twice)

        assert "70 s" == await env.run(watched, wait_for_bodies=False)


async def test_body_that_reports_in_time_lives_on():
    """An hour of work in virtual time, with a sign of life every 20 seconds, passes a limit of 30."""

    async def beats(ctx: TaskContext) -> str:
        for number in range(180):
            await env.sleep(20)
            ctx.heartbeat(number)
        return "done"

    @workflow
    async def watched(ctx: WorkflowContext) -> str:
        result = await ctx.task("work", heartbeat_timeout=30, retry=RetryPolicy(max_attempts=1))
        return f"{result} after {(ctx.now() - T0).seconds} s"

    async with WorkflowEnvironment(workflows=[watched]) as env:
        env.fake("work", fn=beats)

        assert "done after 3600 s" == await env.run(watched)


async def test_bodies_that_really_run_are_waited_for():
    """A body in a thread takes its real time; the clock does not move over it."""

    @task(start_to_close=60)
    def slow() -> str:
        time.sleep(0.1)
        return "slow but sure"

    @workflow
    async def steady(ctx: WorkflowContext) -> str:
        return await ctx.task(slow)

    async with WorkflowEnvironment(workflows=[steady], tasks=[slow]) as env:
        handle = await env.client.start_workflow(steady)
        await env.advance(days=1)

        assert "slow but sure" == await handle.result()


async def test_body_that_does_not_end_is_named():
    """Waited for in vain, the environment says for whom, and what to do."""
    gate = threading.Event()

    @workflow
    async def steady(ctx: WorkflowContext) -> None:
        await ctx.run(gate.wait, name="gate")

    async with WorkflowEnvironment(workflows=[steady], wait_s=0.05) as env:
        await env.client.start_workflow(steady)
        with pytest.raises(err.BodiesStillRunning, match=r"step 'gate'.*wait_for_bodies=False"):
            await env.advance(days=1)

        assert T0 == env.now()
        gate.set()
        await env.idle()


# --- results ------------------------------------------------------------------------------------------------------


async def test_run_skips_time_until_the_result():
    """The clock stands at the last instant that mattered."""
    async with WorkflowEnvironment(workflows=[month]) as env:
        assert [] == await env.run(month)
        assert T0 + 30 * DAY == env.now()


async def test_run_raises_what_the_workflow_ended_with():
    """As handle.result() does."""

    @workflow
    async def failing(ctx: WorkflowContext) -> None:
        await ctx.sleep(5)
        raise ValueError("no")

    async with WorkflowEnvironment(workflows=[failing]) as env:
        with pytest.raises(err.WorkflowFailed, match="ValueError: no"):
            await env.run(failing)


async def test_wait_that_nothing_can_end_is_named_with_its_line():
    """Nothing is due any more: which wait it is, and where in the code."""
    async with WorkflowEnvironment(workflows=[patient]) as env:
        with pytest.raises(err.NeverSettled, match=r"signal 'go' at .*test_environment.py:\d+"):
            await env.run(patient)


async def test_task_that_no_worker_knows_is_named():
    """A forgotten entry in tasks=[...] is found at once."""
    async with WorkflowEnvironment(workflows=[paying]) as env:
        with pytest.raises(err.NeverSettled, match=r"task 'charge': no worker knows it; pass it in tasks"):
            await env.run(paying, Order("o", 1))


async def test_endless_retries_are_named_with_their_failure():
    """A task that fails for ever by its policy does not hang the test."""
    async with WorkflowEnvironment(workflows=[paying], wait_s=0.2) as env:
        env.fake(charge, error=ConnectionError("down"))
        with pytest.raises(err.NeverSettled, match=r"task 'charge': \d+ attempt\(s\).*ConnectionError: down"):
            await env.run(paying, Order("o", 1))


async def test_stuck_execution_fails_the_test():
    """Code that can't be driven is not discovered by a hanging test."""

    @workflow
    async def lost(ctx: WorkflowContext) -> None:
        await asyncio.Event().wait()

    async with WorkflowEnvironment(workflows=[lost]) as env:
        await env.client.start_workflow(lost)
        with pytest.raises(err.StuckExecution, match="is stuck: nothing the workflow awaits"):
            await env.idle()


async def test_stuck_execution_may_be_allowed():
    """For tests of just that."""

    @workflow
    async def lost(ctx: WorkflowContext) -> None:
        await asyncio.Event().wait()

    async with WorkflowEnvironment(workflows=[lost], allow_stuck=True) as env:
        handle = await env.client.start_workflow(lost)
        await env.advance(hours=1)

        assert WorkflowStatus.STUCK == await handle.status()


# --- fakes --------------------------------------------------------------------------------------------------------


async def test_fake_result_stands_for_the_body():
    """The arguments arrive typed, and are kept."""
    async with WorkflowEnvironment(workflows=[paying], tasks=[charge]) as env:
        fake = env.fake(charge, result="paid")

        assert "paid" == await env.run(paying, Order("book", 12))
        assert [(Order("book", 12),)] == fake.calls


async def test_fake_error_goes_the_way_of_every_failure():
    """One that is not to be retried reaches the workflow."""

    class Declined(NonRetryable):
        pass

    async with WorkflowEnvironment(workflows=[paying], tasks=[charge]) as env:
        env.fake(charge, error=Declined("no money"))
        with pytest.raises(err.WorkflowFailed, match="Declined: no money"):
            await env.run(paying, Order("book", 12))


async def test_fake_gives_way_after_its_times():
    """Two failures, then what was there before: the fake below it."""
    async with WorkflowEnvironment(workflows=[paying]) as env:
        below = env.fake(charge, result="paid")
        above = env.fake(charge, error=ConnectionError, times=2)

        assert "paid" == await env.run(paying, Order("book", 12))
        assert (2, 1) == (len(above.calls), len(below.calls))


@pytest.mark.parametrize("target", ["charge", charge])
async def test_fake_of_an_unregistered_task_may_come_late(target):
    """A kind that nobody knew gets a worker when its fake arrives, whether the task waits already or not."""
    async with WorkflowEnvironment(workflows=[paying]) as env:
        handle = await env.client.start_workflow(paying, Order("book", 12))
        await env.idle()
        env.fake(target, fn=lambda order: f"paid {order['price'] if isinstance(order, dict) else order.price}")

        assert "paid 12" == await env.result(handle)


async def test_fake_before_the_start_counts():
    """An environment can be furnished before it is entered."""
    env = WorkflowEnvironment(workflows=[paying])
    env.fake("charge", result="paid")
    async with env:
        assert "paid" == await env.run(paying, Order("book", 12))


async def test_steps_are_faked_by_their_function():
    """A step's function is replaced for this environment, an async fake is awaited, the name in history stays."""

    def fetch(url: str) -> str:
        raise AssertionError("the real body must not run")

    async def page(url: str) -> str:
        return f"page of {url}"

    @workflow
    async def reading(ctx: WorkflowContext) -> str:
        return await ctx.run(fetch, "a.html")

    async with WorkflowEnvironment(workflows=[reading]) as env:
        env.fake(fetch, fn=page)

        assert "page of a.html" == await env.run(reading)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "fake"),
        ({"result": 1, "error": ValueError}, "fake"),
        ({"error": "text"}, "error"),
        ({"fn": 5}, "fn"),
        ({"result": 1, "times": 0}, "times"),
    ],
)
def test_fake_that_makes_no_sense_is_refused(options: dict[str, Any], field: str):
    """Exactly one way to answer, and a sensible number of times."""
    env = WorkflowEnvironment()
    with pytest.raises(err.InvalidRequest) as raised:
        env.fake("charge", **options)

    assert field == raised.value.field


# --- replay -------------------------------------------------------------------------------------------------------


async def test_replay_all_goes_through_every_history():
    """One report for each execution, those that still wait included."""
    async with WorkflowEnvironment(workflows=[month, patient]) as env:
        await env.run(month)
        await env.client.start_workflow(patient)
        await env.idle()

        reports = await env.replay_all()

        assert {("month", True), ("patient", False)} == {(report.kind, report.ended) for report in reports}


async def test_replay_all_finds_code_that_differs_from_run_to_run(monkeypatch):
    """What depends on more than the history is found without a crash."""
    monkeypatch.delenv("HOLDFAST_REPLAY_ALWAYS", raising=False)
    calls = []

    @workflow
    async def moody(ctx: WorkflowContext) -> None:
        calls.append(1)
        await ctx.sleep(len(calls))
        if len(calls) > 1:
            await ctx.sleep(1)

    async with WorkflowEnvironment(workflows=[moody]) as env:
        await env.run(moody)
        with pytest.raises(err.DeterminismError, match="timer 2"):
            await env.replay_all()


async def test_replay_always_finds_it_while_it_runs():
    """The switch rebuilds the program at every wait, so its second life meets the history of its first."""
    calls = []

    @workflow
    async def moody(ctx: WorkflowContext) -> None:
        calls.append(1)
        if len(calls) > 1:
            await ctx.task("something else")
        await ctx.sleep(10)
        await ctx.sleep(10)

    async with WorkflowEnvironment(workflows=[moody], replay_always=True) as env:
        with pytest.raises(err.StuckExecution, match="event 2 records: timer 1"):
            await env.run(moody)


@pytest.mark.parametrize("switch", ["config", "environment variable"])
async def test_replay_always_rebuilds_the_program_after_each_commit(monkeypatch, switch):
    """Started once live and once more for every wait, with the same result."""
    starts = []

    @workflow
    async def counted(ctx: WorkflowContext) -> int:
        starts.append(1)
        for number in range(3):
            await ctx.sleep(60)
            await ctx.run(abs, number)
        return 3

    if switch == "environment variable":
        monkeypatch.setenv("HOLDFAST_REPLAY_ALWAYS", "1")
    config = EngineConfig(worker=WorkerConfig(replay_always=switch == "config"))
    async with WorkflowEnvironment(workflows=[counted], config=config) as env:
        assert 3 == await env.run(counted)
        assert len(starts) > 3


async def test_without_the_switch_a_live_program_continues(monkeypatch):
    """The contrast: started once."""
    starts = []

    @workflow
    async def counted(ctx: WorkflowContext) -> None:
        starts.append(1)
        for _ in range(3):
            await ctx.sleep(60)

    monkeypatch.delenv("HOLDFAST_REPLAY_ALWAYS", raising=False)
    async with WorkflowEnvironment(workflows=[counted]) as env:
        await env.run(counted)

        assert [1] == starts


async def test_exported_history_replays_elsewhere(tmp_path):
    """From the environment to a file, from the file against the code."""
    from holdfast.testing import replay

    async with WorkflowEnvironment(workflows=[month]) as env:
        handle = await env.client.start_workflow(month)
        await env.result(handle)
        (tmp_path / "month.json").write_text(await env.export(handle), "utf-8")

    report = replay([month, patient], tmp_path / "month.json")

    assert (handle.id, "month", 30 + 1, True) == (report.execution_id, report.kind, report.commands, report.ended)


async def test_it_is_the_real_engine():
    """Not a simulation: Engine's own methods, store and client."""
    async with WorkflowEnvironment(workflows=[patient]) as env:
        assert isinstance(env.engine, Engine)
        execution_id = await env.engine.start(patient)
        await env.idle()

        assert WorkflowStatus.WAITING == await env.engine.query_status(execution_id)
        assert env.client is env.engine.client
