"""A database that turns everybody away for longer than calls wait: a password is rotated, a database is restored and
swapped in, a COMMIT is never answered. Nothing that was done is lost, and everything goes on when it is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from holdfast import Engine, EngineConfig, StoreConfig, TaskContext, WorkerConfig, WorkflowContext, task, workflow
from holdfast.errors import AccessDenied, OutcomeUnknown, StorageBusy
from holdfast.services.due_work import DueWorkService
from tests.conftest import until

IMPATIENT = EngineConfig(
    store=StoreConfig(busy_deadline_s=0.5),
    worker=WorkerConfig(lease_s=2.0, shutdown_grace_s=0.5),
)

RUNS: list[str] = []
GATES: dict[str, asyncio.Event] = {}


async def _through_the_gate(name: str) -> str:
    RUNS.append(name)
    await GATES[name].wait()
    return name


@workflow
async def long_step(ctx: WorkflowContext) -> str:
    return await ctx.run(_through_the_gate, "step")


@task
async def long_task(ctx: TaskContext) -> str:
    return await _through_the_gate("task")


@workflow
async def with_task(ctx: WorkflowContext) -> str:
    return await ctx.task(long_task)


@workflow
async def nap(ctx: WorkflowContext, seconds: float) -> str:
    await ctx.sleep(seconds)
    return "woke"


@pytest.fixture(autouse=True)
async def gates() -> None:
    RUNS.clear()
    GATES.update(step=asyncio.Event(), task=asyncio.Event())


class Guest:
    """A role that may be turned away, and whoever may do so."""

    def __init__(self, url: str, admin: Any) -> None:
        self.url, self._admin = url, admin

    async def turn_away(self) -> None:
        await self._admin.execute("ALTER ROLE guest NOLOGIN")
        await self._admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guest'")

    async def let_in(self) -> None:
        await self._admin.execute("ALTER ROLE guest LOGIN")


@asynccontextmanager
async def a_guest(url: str) -> AsyncIterator[Guest]:
    admin = await asyncpg.connect(url)
    try:
        await admin.execute("DROP ROLE IF EXISTS guest")
        await admin.execute("CREATE ROLE guest LOGIN SUPERUSER")
        parts = urlsplit(url)
        yield Guest(urlunsplit(parts._replace(netloc=f"guest@{parts.netloc.rpartition('@')[2]}")), admin)
    finally:
        await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guest'")
        await admin.execute("DROP OWNED BY guest CASCADE")
        await admin.execute("DROP ROLE guest")
        await admin.close()


async def test_work_done_meanwhile_is_recorded_and_timers_fire(postgres_url, caplog):
    """Neither a step nor a task is run twice, no execution is parked, no service ends."""
    async with (
        a_guest(postgres_url) as guest,
        Engine(guest.url, workflows=[long_step, with_task, nap], tasks=[long_task], config=IMPATIENT) as engine,
    ):
        client = engine.client
        waiting = [await client.start_workflow(flow) for flow in (long_step, with_task)]
        waiting.append(await client.start_workflow(nap, 0.5))
        await until(lambda: sorted(RUNS) == ["step", "task"])

        await guest.turn_away()
        for gate in GATES.values():
            gate.set()
        await until(lambda: _said(caplog, "holdfast-due-work waits"))
        await until(lambda: _said(caplog, "wait for the database"))
        await guest.let_in()

        assert ["step", "task", "woke"] == [await handle.result(timeout=60) for handle in waiting]
        assert "woke" == await (await client.start_workflow(nap, 0.1)).result(timeout=60)
        assert ["step", "task"] == sorted(RUNS)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def _said(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return any(text in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("error", [OutcomeUnknown("nobody has answered"), RuntimeError("a bug")])
async def test_a_service_continues_after_whatever_happens_to_it(postgres_url, monkeypatch, error):
    """Also after what nobody has thought of: a node whose timers do not fire is worse than one that is down."""
    broken = 2
    once: Callable[[DueWorkService], Any] = DueWorkService.once

    async def breaks_twice(self: DueWorkService) -> None:
        nonlocal broken
        if broken:
            broken -= 1
            raise error
        await once(self)

    monkeypatch.setattr(DueWorkService, "once", breaks_twice)
    async with Engine(postgres_url, workflows=[nap], config=IMPATIENT) as engine:
        assert "woke" == await (await engine.client.start_workflow(nap, 0.1)).result(timeout=60)
    assert 0 == broken


async def test_a_call_waits_as_long_as_a_call_may_whoever_it_shares_a_batch_with(postgres_url):
    """Calls of different ages, and a report that is older than all of them: each has a deadline of its own."""
    config = EngineConfig(store=StoreConfig(busy_deadline_s=1.5), worker=IMPATIENT.worker)
    async with (
        a_guest(postgres_url) as guest,
        Engine(guest.url, workflows=[long_step, nap], config=config) as engine,
    ):
        client, loop = engine.client, asyncio.get_running_loop()
        handle = await client.start_workflow(long_step)
        await until(lambda: RUNS)
        await guest.turn_away()
        GATES["step"].set()
        waited: list[float] = []

        async def call(after_s: float) -> None:
            await asyncio.sleep(after_s)
            began = loop.time()
            with pytest.raises((StorageBusy, AccessDenied)):
                await client.start_workflow(nap, 0.1)
            waited.append(loop.time() - began)

        await asyncio.gather(*(call(number * 0.4) for number in range(8)))
        await guest.let_in()

        assert "step" == await handle.result(timeout=60)
        assert ["step"] == RUNS
    assert min(waited) >= 1.4, waited
