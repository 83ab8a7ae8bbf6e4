"""Standalone tasks in a `WorkflowEnvironment`: on virtual time, with fakes."""

import pytest

from holdfast import RetryPolicy, WorkflowStatus, task
from holdfast.testing import WorkflowEnvironment

pytestmark = pytest.mark.usefixtures("on_the_tests_store")


@task(retry=RetryPolicy(initial_interval_s=3600, max_interval_s=3600, jitter=False, max_attempts=3))
async def call_the_bank(number: int) -> int:
    raise ConnectionError("not in a test")


async def test_retries_take_virtual_time():
    """Two failures an hour apart, then a result: the test does not wait."""
    async with WorkflowEnvironment(tasks=[call_the_bank]) as env:
        env.fake(call_the_bank, result=42)
        env.fake(call_the_bank, error=ConnectionError("no answer"), times=2)
        handle = await env.client.start_task(call_the_bank, 7)
        await env.advance(hours=1)
        view = await handle.view()
        await env.advance(hours=1)

        assert view.last_failure is not None
        assert (WorkflowStatus.PENDING, 2, "no answer") == (view.status, view.attempt, view.last_failure.message)
        assert 42 == await handle.result()


async def test_a_fake_is_enough():
    """Of a task whose code is elsewhere, started as soon as it is there."""
    async with WorkflowEnvironment() as env:
        fake = env.fake("resize", fn=lambda width: width // 2)
        handle = await env.client.start_task("resize", 10)

        assert 5 == await handle.result()
        assert [(10,)] == fake.calls


async def test_a_task_out_of_time():
    """Its limit also holds while nobody serves its queue."""
    async with WorkflowEnvironment(tasks=[call_the_bank]) as env:
        handle = await env.client.start_task(call_the_bank, 7, queue="night", schedule_to_close=3600)
        await env.advance(seconds=3599)
        before = await handle.status()
        await env.advance(seconds=1)

        assert (WorkflowStatus.PENDING, WorkflowStatus.TIMED_OUT) == (before, await handle.status())
