"""What a start means when its workflow id is in use, or was."""

import asyncio
from contextlib import suppress

import pytest

from holdfast import WorkflowContext, WorkflowStatus, workflow
from holdfast.errors import (
    ExecutionOutcome,
    InvalidRequest,
    WorkflowAlreadyRunning,
    WorkflowIdUsed,
    WorkflowTerminated,
)
from holdfast.model.values import IfClosed, IfRunning
from tests.unit.engine.records import check_all, dump, waiting


@workflow
async def wait_for_go(ctx: WorkflowContext, answer: str = "none") -> str:
    await ctx.wait_for_signal("go")
    return answer


@workflow
async def end_as(ctx: WorkflowContext, how: str) -> str:
    if how == "failed":
        raise ValueError("as told")
    if how == "completed":
        return how
    await ctx.wait_for_signal("never")
    return "never"


async def ended(client, how):
    """An execution with workflow id w that has ended in this way."""
    handle = await client.start_workflow(end_as, how, workflow_id="w")
    if how == "cancelled":
        await handle.cancel()
    if how == "terminated":
        await handle.terminate()
    with suppress(ExecutionOutcome):
        await handle.result(timeout=20)
    return handle


# --- while one is open ------------------------------------------------------------------------------------------------


async def test_use_existing_is_the_default(engine):
    """The open execution is found; nothing is started."""
    client = (await engine(workflows=[wait_for_go])).client
    first = await client.start_workflow(wait_for_go, workflow_id="w")
    for options in ({}, {"if_running": "use_existing"}, {"if_running": IfRunning.USE_EXISTING}):
        again = await client.start_workflow(wait_for_go, workflow_id="w", **options)
        assert (first.id, False) == (again.id, again.created)


async def test_fail_refuses_and_names_the_open_one(engine, database_url):
    """A typed error with the execution's id; nothing changes."""
    running = await engine(workflows=[wait_for_go])
    first = await running.client.start_workflow(wait_for_go, workflow_id="w", if_running="fail")
    assert first.created
    await waiting(first)
    before = dump(database_url)

    with pytest.raises(WorkflowAlreadyRunning) as refused:
        await running.client.start_workflow(wait_for_go, workflow_id="w", if_running="fail")
    assert first.id == refused.value.details["execution_id"]
    assert "w" == refused.value.details["workflow_id"]
    assert before == dump(database_url)


async def test_of_fifty_that_start_at_once_one_wins(engine):
    """The others are refused, and all name the winner."""
    client = (await engine(workflows=[wait_for_go])).client
    answers = await asyncio.gather(
        *(client.start_workflow(wait_for_go, workflow_id="w", if_running="fail") for _ in range(50)),
        return_exceptions=True,
    )

    winners = [answer for answer in answers if not isinstance(answer, BaseException)]
    refusals = [answer for answer in answers if isinstance(answer, WorkflowAlreadyRunning)]
    assert (1, 49) == (len(winners), len(refusals))
    assert {winners[0].id} == {refusal.details["execution_id"] for refusal in refusals}
    assert 1 == len((await client.list_workflows()).items)


async def test_of_two_processes_that_start_one_wins(engine):
    """Two engines on one file, fifty starts at once, twenty workflow ids: one execution each."""
    clients = [(await engine(workflows=[wait_for_go])).client for _ in range(2)]
    answers = await asyncio.gather(
        *(
            clients[number % 2].start_workflow(wait_for_go, workflow_id=f"w-{number // 4}", if_running="fail")
            for number in range(80)
        ),
        return_exceptions=True,
    )

    winners = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert 60 == sum(isinstance(answer, WorkflowAlreadyRunning) for answer in answers)
    assert 20 == len({winner.workflow_id for winner in winners}) == len(winners)


async def test_terminate_ends_the_open_one_and_starts_another(engine):
    """In one step: the old one says by whom it was replaced, and has no successor."""
    running = await engine(workflows=[wait_for_go])
    client = running.client
    first = await client.start_workflow(wait_for_go, "one", workflow_id="w")
    await waiting(first)
    second = await client.start_workflow(wait_for_go, "two", workflow_id="w", if_running="terminate")

    assert second.created
    with pytest.raises(WorkflowTerminated, match=second.id):
        await first.result(timeout=20)
    assert (await first.describe()).successor is None
    assert second.id == (await client.find_workflow("w")).id
    await second.signal("go")
    assert "two" == await second.result(timeout=20)
    await check_all(running)


async def test_many_that_terminate_each_other_leave_one(engine):
    """Twenty at once: all start, one stays open."""
    running = await engine(workflows=[wait_for_go])
    handles = await asyncio.gather(
        *(running.client.start_workflow(wait_for_go, workflow_id="w", if_running="terminate") for _ in range(20))
    )

    assert 20 == len({handle.id for handle in handles})
    statuses = [await handle.status() for handle in handles]
    assert 19 == statuses.count(WorkflowStatus.TERMINATED)
    await check_all(running)


async def test_without_a_workflow_id_no_policy_matters(engine):
    """Every start is another execution."""
    client = (await engine(workflows=[wait_for_go])).client
    handles = [await client.start_workflow(wait_for_go, if_running="fail", if_closed="reject") for _ in range(3)]

    assert 3 == len({handle.id for handle in handles})


async def test_a_repeated_request_is_not_refused_by_its_own_effect(engine):
    """A retry with the same request id gets the first answer, whatever the policy."""
    client = (await engine(workflows=[wait_for_go])).client
    first = await client.start_workflow(wait_for_go, workflow_id="w", if_running="fail", request_id="r")
    again = await client.start_workflow(wait_for_go, workflow_id="w", if_running="fail", request_id="r")

    assert (first.id, True) == (again.id, again.created)


# --- when the last one is closed --------------------------------------------------------------------------------------

ENDS = ("completed", "failed", "cancelled", "terminated")


@pytest.mark.parametrize("how", ENDS)
async def test_allow_is_the_default(engine, how):
    """Whatever became of the last one, a fresh one is started."""
    client = (await engine(workflows=[end_as])).client
    last = await ended(client, how)
    again = await client.start_workflow(end_as, "completed", workflow_id="w")

    assert again.created
    assert last.id != again.id


@pytest.mark.parametrize("how", ENDS)
async def test_allow_if_failed(engine, database_url, how):
    """After one that completed it is refused; after any other end it is allowed."""
    client = (await engine(workflows=[end_as])).client
    last = await ended(client, how)
    before = dump(database_url)

    if how != "completed":
        assert (await client.start_workflow(end_as, how, workflow_id="w", if_closed="allow_if_failed")).created
        return
    with pytest.raises(WorkflowIdUsed) as refused:
        await client.start_workflow(end_as, how, workflow_id="w", if_closed="allow_if_failed")
    assert (last.id, "COMPLETED") == (refused.value.details["execution_id"], refused.value.details["status"])
    assert before == dump(database_url)


@pytest.mark.parametrize("how", ENDS)
async def test_reject_allows_a_workflow_id_once(engine, database_url, how):
    """The first start is allowed; after its end no other is. Signal-with-start knows the policy as well."""
    client = (await engine(workflows=[end_as])).client
    last = await ended(client, how)
    before = dump(database_url)

    with pytest.raises(WorkflowIdUsed) as refused:
        await client.start_workflow(end_as, how, workflow_id="w", if_closed=IfClosed.REJECT)
    assert (last.id, how.upper()) == (refused.value.details["execution_id"], refused.value.details["status"])
    with pytest.raises(WorkflowIdUsed):
        await client.signal_with_start_workflow("w", end_as, how, signal_name="s", if_closed="reject")
    assert before == dump(database_url)


async def test_signal_with_start_finds_the_open_one_under_any_policy(engine):
    """`if_closed` is for the start: an open execution simply gets the signal."""
    client = (await engine(workflows=[wait_for_go])).client
    first = await client.signal_with_start_workflow(
        "w", wait_for_go, "a", signal_name="other", if_closed="reject", execution_timeout=60
    )
    second = await client.signal_with_start_workflow("w", wait_for_go, "a", signal_name="go", if_closed="reject")

    assert (True, False) == (first.workflow_created, second.workflow_created)
    assert "a" == await client.workflow(first.workflow_execution_id).result(timeout=20)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "known"),
    [
        ("if_running", "replace", "'use_existing', 'fail', 'terminate'"),
        ("if_running", None, "'use_existing', 'fail', 'terminate'"),
        ("if_closed", "FAIL", "'allow', 'allow_if_failed', 'reject'"),
        ("if_closed", 1, "'allow', 'allow_if_failed', 'reject'"),
    ],
)
async def test_unknown_words_are_refused(engine, database_url, field, value, known):
    """The error names the field and the words that are known; nothing is started."""
    client = (await engine(workflows=[wait_for_go])).client
    before = dump(database_url)

    with pytest.raises(InvalidRequest, match=known) as refused:
        await client.start_workflow(wait_for_go, workflow_id="w", **{field: value})
    assert field == refused.value.field
    assert before == dump(database_url)


async def test_the_dump_sees_every_table(engine, database_url):
    """What the tests compare is what there is."""
    client = (await engine(workflows=[wait_for_go])).client
    handle = await client.start_workflow(wait_for_go, workflow_id="w")
    found = dump(database_url)

    assert len(found) > 15
    assert [("default", "w", handle.id)] == found["holdfast_workflow_keys"]
