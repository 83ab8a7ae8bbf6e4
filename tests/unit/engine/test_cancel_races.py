"""Cancel against completion, resume and clean-up, in both orders: whichever commits first wins, and once."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import Any

import pytest

from holdfast import EngineConfig, StoreConfig, WorkerConfig, WorkflowContext, WorkflowStatus, errors, workflow
from holdfast.model import events as e
from tests.conftest import QUICK, OpenEngine, until
from tests.replay.recording import check_whole
from verification import invariants

ONCE_EVICTED = EngineConfig(
    store=StoreConfig(synchronous="normal"), worker=WorkerConfig(shutdown_grace_s=0.2, cached_executions=0)
)


async def note() -> None: ...


@workflow
async def waits(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("go", str)


def kinds(history: list[e.HistoryEvent]) -> list[str]:
    return [event.type for event in history]


@pytest.mark.parametrize("first", ["cancel", "signal"])
async def test_cancel_races_the_signal_that_completes(engine: OpenEngine, first: str):
    """F27: the history decides. The one that came first wins, live and on replay."""
    opened = await engine(workflows=[waits])
    for _ in range(30):
        handle = await opened.client.start_workflow(waits)
        calls: list[Any] = [handle.cancel("enough"), handle.signal("go", "on")]
        await asyncio.gather(*(calls if first == "cancel" else reversed(calls)), return_exceptions=True)
        with contextlib.suppress(errors.WorkflowCancelled):
            assert "on" == await handle.result()
        history = await handle.history()
        order = [kind for kind in kinds(history) if kind in {"CANCEL_REQUESTED", "SIGNAL_RECEIVED"}]
        ended = kinds(history)[-1]
        assert ended == ("WORKFLOW_CANCELLED" if order[0] == "CANCEL_REQUESTED" else "WORKFLOW_COMPLETED")
        check_whole(waits, history, handle.id)
    assert [] == invariants.check(await invariants.read(opened.storage))


async def test_completion_that_commits_first_wins(engine: OpenEngine):
    """The cancel that comes after it changes nothing and says so."""
    opened = await engine(workflows=[waits])
    handle = await opened.client.start_workflow(waits)
    await handle.signal("go", "on")
    assert "on" == await handle.result()
    assert not await handle.cancel()
    assert "CANCEL_REQUESTED" not in kinds(await handle.history())


async def test_a_cancel_that_comes_before_the_end_is_seen(engine: OpenEngine):
    """Held up between its last step and its commit, a workflow learns of the cancel before it may end."""
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def held_up() -> None:
        reached.set()
        await go_on.wait()

    @workflow
    async def ends(ctx: WorkflowContext) -> str:
        await ctx.run(held_up)
        return "done"

    opened = await engine(workflows=[ends])
    handle = await opened.client.start_workflow(ends)
    await reached.wait()
    assert await handle.cancel()
    go_on.set()
    with pytest.raises(errors.WorkflowCancelled):
        await handle.result()
    assert not await handle.cancel()


@pytest.mark.parametrize("cached", [True, False], ids=["live program", "rebuilt program"])
async def test_a_cancelled_workflow_never_resumes_from_its_timer(engine: OpenEngine, cached: bool):
    """004-47: the timer goes with the wait, even when both are due in the same moment."""

    @workflow
    async def sleeps(ctx: WorkflowContext) -> str:
        try:
            await ctx.sleep(0.05)
        except asyncio.CancelledError:
            await ctx.run(note)
            raise
        return "woken"

    opened = await engine(workflows=[sleeps], config=QUICK if cached else ONCE_EVICTED)
    for round_ in range(20):
        handle = await opened.client.start_workflow(sleeps)
        await until(functools.partial(is_waiting, handle))
        await asyncio.sleep(0.045 + 0.001 * (round_ % 10))
        cancelled = await handle.cancel()
        try:
            assert "woken" == await handle.result()
        except errors.WorkflowCancelled:
            assert cancelled
        history = await handle.history()
        if "WORKFLOW_CANCELLED" in kinds(history) and "TIMER_FIRED" in kinds(history):
            assert kinds(history).index("CANCEL_REQUESTED") < kinds(history).index("TIMER_FIRED")
        check_whole(sleeps, history, handle.id)
    assert [] == invariants.check(await invariants.read(opened.storage))


async def is_waiting(handle: Any) -> bool:
    return await handle.status() is not WorkflowStatus.PENDING


@workflow
async def stubborn(ctx: WorkflowContext) -> list[str]:
    """Catches every Exception it can, everywhere."""
    seen: list[str] = []
    for number in range(3):
        try:
            try:
                await ctx.sleep(0.01)
                await ctx.wait_for_signal("go")
            except Exception as error:
                seen.append(f"inner {number} {error!r}")
        except Exception as error:
            seen.append(f"outer {number} {error!r}")
    return seen


@pytest.mark.parametrize("cached", [True, False], ids=["live program", "rebuilt program"])
async def test_control_flow_can_not_be_eaten(engine: OpenEngine, cached: bool):
    """A workflow full of `except Exception` still suspends, is evicted, rebuilt, and cancels."""
    opened = await engine(workflows=[stubborn], config=QUICK if cached else ONCE_EVICTED)
    handle = await opened.client.start_workflow(stubborn)
    for _ in range(2):
        await handle.signal("go")
    await until(lambda: waits_for_signal(handle))
    assert await handle.cancel()
    with pytest.raises(errors.WorkflowCancelled):
        await handle.result()
    other = await opened.client.start_workflow(stubborn)
    for _ in range(3):
        await other.signal("go")
    assert [] == await other.result()


async def waits_for_signal(handle: Any) -> bool:
    """In its third round, which nobody has sent a signal for."""
    rounds = kinds(await handle.history()).count("TIMER_FIRED")
    return rounds == 3 and await handle.status() is WorkflowStatus.WAITING


async def test_clean_up_finishes_whatever_comes(engine: OpenEngine):
    """Signals, time-outs and a second cancel during clean-up do not cut it short; shielded work is awaited."""

    @workflow
    async def tidy(ctx: WorkflowContext) -> None:
        try:
            await ctx.wait_for_signal("go")
        finally:
            for number in range(3):
                await ctx.sleep(0.02)
                await asyncio.shield(ctx.run(note, name=f"clean {number}"))

    opened = await engine(workflows=[tidy])
    handle = await opened.client.start_workflow(tidy)
    await until(lambda: is_waiting(handle))
    assert await handle.cancel()
    assert not await handle.cancel()
    await handle.signal("noise")
    with pytest.raises(errors.WorkflowCancelled):
        await handle.result()
    names = [event.body.name for event in await handle.history() if isinstance(event.body, e.StepCompleted)]
    assert ["clean 0", "clean 1", "clean 2"] == names
