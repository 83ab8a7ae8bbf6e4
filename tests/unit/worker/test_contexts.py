"""In which context bodies run: the one that the worker was started in, and nobody else's."""

from __future__ import annotations

from contextvars import ContextVar

import pytest

from holdfast import WorkflowContext, task, workflow
from tests.conftest import OpenEngine

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


async def step() -> str:
    seen = WHO.get()
    WHO.set("the step before")
    return seen


def plain_step() -> str:
    return WHO.get()


@task
async def chore() -> str:
    return WHO.get()


@workflow
async def asks(ctx: WorkflowContext) -> list[str]:
    return [await ctx.run(step), await ctx.run(step), await ctx.run(plain_step), await ctx.task(chore)]


@pytest.fixture
def who() -> str:
    return "whoever has started the worker"


async def test_bodies_see_what_was_set_when_the_worker_was_started(engine: OpenEngine, who: str):
    WHO.set(who)
    running = await engine(workflows=[asks], tasks=[chore])
    WHO.set("a caller")

    assert [who] * 4 == await (await running.client.start_workflow(asks)).result()


async def test_a_session_that_was_opened_anew_runs_bodies_in_the_same_context(engine: OpenEngine, who: str):
    """It is opened by whoever notices the loss: a thread, which has no context of anybody."""
    WHO.set(who)
    running = await engine(workflows=[asks], tasks=[chore])
    WHO.set("a caller")
    running._local.data_loss_detected()

    assert [who] * 4 == await (await running.client.start_workflow(asks)).result()
