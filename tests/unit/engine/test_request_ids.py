"""Request ids: a retried call has one effect and one answer, also across restarts."""

import asyncio

import pytest
from msgspec.structs import replace

from holdfast import EngineConfig, Limits, WorkflowContext, WorkflowStatus, workflow
from holdfast.errors import ExecutionClosed, RequestMismatch, SignalLimitReached, UnknownWorkflowKind
from tests.conftest import QUICK, until


@workflow
async def collect(ctx: WorkflowContext, wanted: int) -> list[object]:
    return [await ctx.wait_for_signal("item") for _ in range(wanted)]


@workflow
async def later(ctx: WorkflowContext) -> None:
    """A kind that the first engine of a test does not know."""


async def values(handle):
    return [bytes(event.body.signal_value) for event in await handle.history() if event.type == "SIGNAL_RECEIVED"]


async def test_a_repeated_start_answers_as_the_first(engine):
    """Without any workflow id: the same request id gives the same execution, and only one is started."""
    client = (await engine(workflows=[collect])).client
    first = await client.start_workflow(collect, 1, request_id="r")
    again = await client.start_workflow(collect, 1, request_id="r")

    assert (first.id, first.workflow_id, True) == (again.id, again.workflow_id, again.created)
    assert 1 == len((await client.list_workflows()).items)


async def test_a_repeated_signal_is_one_signal(engine):
    """The same request id appends once; both calls answer with the same number."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect, 2)
    first = await handle.signal("item", 1, request_id="r")
    again = await handle.signal("item", 1, request_id="r")
    await handle.signal("item", 2)

    assert first == again
    assert [1, 2] == await handle.result(timeout=10)


async def test_a_repeated_signal_with_start_is_one_of_each(engine):
    """The repeated call says again that it created the execution: the answer is the first one's, not a new look."""
    client = (await engine(workflows=[collect])).client

    async def call():
        return await client.signal_with_start_workflow(
            "w", collect, 2, signal_name="item", signal_value=1, request_id="r"
        )

    first, again = await call(), await call()

    assert first == replace(again, idempotency_key_new=True)
    assert again.workflow_created
    assert [b"1"] == await values(client.workflow(first.workflow_execution_id))


async def test_repeats_that_arrive_together_are_one(engine):
    """Fifty concurrent copies of a call end up in one transaction and still have one effect."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect, 2)
    answers = await asyncio.gather(*(handle.signal("item", 1, request_id="r") for _ in range(50)))

    assert 1 == len(set(answers))
    assert [b"1"] == await values(handle)


async def test_the_answer_survives_a_restart(engine):
    """The id is stored with the effect: another process on the same file answers as the first did."""
    old = await engine(workflows=[collect])
    started = await old.client.start_workflow(collect, 2, request_id="start")
    signalled = await started.signal("item", 1, request_id="signal")
    await old.shutdown()
    client = (await engine(workflows=[collect])).client

    assert started.id == (await client.start_workflow(collect, 2, request_id="start")).id
    assert signalled == await client.signal_workflow(started.id, "item", 1, request_id="signal")
    assert [b"1"] == await values(client.workflow(started.id))


async def test_a_repeat_is_answered_even_when_the_execution_has_closed(engine):
    """A retry of a signal that closed the execution gets its answer, not a refusal."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect, 1)
    first = await handle.signal("item", 1, request_id="r")
    await handle.result(timeout=10)

    assert first == await handle.signal("item", 1, request_id="r")
    with pytest.raises(ExecutionClosed):
        await handle.signal("item", 1, request_id="another")


@pytest.mark.parametrize("other", ["value", "name", "operation"])
async def test_other_content_under_the_same_id_is_refused(engine, other):
    """Another value, name or operation: nothing happens, and the error names the id."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect, 2)
    await handle.signal("item", 1, request_id="r")
    calls = {
        "value": lambda: handle.signal("item", 2, request_id="r"),
        "name": lambda: handle.signal("other", 1, request_id="r"),
        "operation": lambda: client.start_workflow(collect, 1, request_id="r"),
    }
    with pytest.raises(RequestMismatch, match="'r'") as refused:
        await calls[other]()

    assert ("request_mismatch", {"request_id": "r"}) == (refused.value.code, refused.value.details)
    assert [b"1"] == await values(handle)
    assert 1 == len((await client.list_workflows()).items)


async def test_a_refused_call_may_be_repeated_under_its_id(engine):
    """A refusal is not remembered: once the cause is gone the same request goes through."""
    client = (await engine(workflows=[collect])).client
    with pytest.raises(UnknownWorkflowKind):
        await client.start_workflow("later", request_id="r")
    await engine(workflows=[later])

    assert (await client.start_workflow("later", request_id="r")).created


async def test_a_repeat_does_not_count_against_the_limit(engine):
    """An execution that is full still answers for the signals it has taken."""
    config = EngineConfig(store=QUICK.store, worker=QUICK.worker, limits=Limits(signals_per_execution=1))
    client = (await engine(workflows=[collect], config=config)).client
    handle = await client.start_workflow(collect, 2)
    first = await handle.signal("item", 1, request_id="r")

    assert first == await handle.signal("item", 1, request_id="r")
    with pytest.raises(SignalLimitReached):
        await handle.signal("item", 1, request_id="s")


async def test_orgs_have_ids_of_their_own(engine):
    """The same request id in another org is another request."""
    blue = (await engine(workflows=[collect], org="blue")).client
    red = (await engine(workflows=[collect], org="red")).client
    one = await blue.start_workflow(collect, 1, request_id="r")
    two = await red.start_workflow(collect, 2, request_id="r")

    assert two.created
    assert one.id != two.id


async def test_an_id_is_forgotten_after_its_time(engine):
    """Beyond the time to live the same id is a new request: for a start, that begins when its execution has closed."""
    config = EngineConfig(store=QUICK.store, worker=QUICK.worker, request_ttl_s=0.0)
    running = await engine(workflows=[collect], config=config)
    first = await running.client.start_workflow(collect, 1, request_id="r")
    await until(lambda: is_waiting(first))
    await running._local.upkeep.prune()
    again = await running.client.start_workflow(collect, 1, request_id="r")
    await first.terminate()
    await running._local.upkeep.prune()
    anew = await running.client.start_workflow(collect, 1, request_id="r")

    assert first.id == again.id
    assert first.id != anew.id


async def is_waiting(handle):
    return await handle.status() is WorkflowStatus.WAITING
