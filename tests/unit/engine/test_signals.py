"""Signals from outside: appended once, in order, to an open execution, or refused with nothing changed."""

import asyncio
from uuid import uuid4

import pytest

from holdfast import (
    EngineConfig,
    Limits,
    SignalResponse,
    SignalWithStartResponse,
    WorkflowContext,
    WorkflowStatus,
    workflow,
)
from holdfast.errors import ExecutionClosed, ExecutionNotFound, SignalLimitReached, UnknownWorkflowKind
from tests.conftest import QUICK, until

LIMITED = EngineConfig(store=QUICK.store, worker=QUICK.worker, limits=Limits(signals_per_execution=3))


@workflow
async def collect(ctx: WorkflowContext, wanted: int) -> list[object]:
    return [await ctx.wait_for_signal("item") for _ in range(wanted)]


@workflow
async def end_as_told(ctx: WorkflowContext) -> None:
    if await ctx.wait_for_signal("end") == "fail":
        raise ValueError("as told")


async def closed(client, how):
    """An execution that has ended this way."""
    handle = await client.start_workflow(end_as_told, workflow_id=f"closed by {how}")
    if how == "cancelled":
        await handle.cancel()
    elif how == "terminated":
        await handle.terminate()
    else:
        await handle.signal("end", "fail" if how == "failed" else "complete")
    await until(lambda: has_status(handle, WorkflowStatus[how.upper()]))
    return handle


async def has_status(handle, status):
    return await handle.status() is status


def signals(history):
    return [event for event in history if event.type == "SIGNAL_RECEIVED"]


# --- signal -----------------------------------------------------------------------------------------------------------


async def test_a_signal_is_one_event_with_its_own_number(engine):
    """The answer carries the number of the SIGNAL_RECEIVED event, which holds name and value."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect, 1)
    answer = await handle.signal("other", {"a": [1, "ü"]})
    event = signals(await handle.history())[0]

    assert SignalResponse(signal_event_sequence=event.seq, signal_delivered=True) == answer
    assert "other" == event.body.signal_name
    assert b'{"a":[1,"\xc3\xbc"]}' == bytes(event.body.signal_value)


async def test_equal_signals_are_several_events(engine):
    """There is no de-duplication: three calls with the same content are three signals."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect, 3)
    answers = [await handle.signal("item", "same") for _ in range(3)]

    assert ["same"] * 3 == await handle.result(timeout=10)
    assert 3 == len({answer.signal_event_sequence for answer in answers})


@pytest.mark.parametrize("name", ["a", "with space", "ünïcode", "__reserved__", "x" * 255])
async def test_any_text_is_a_signal_name(engine, name):
    """No prefix is reserved; up to 255 bytes."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect, 1)
    await handle.signal(name)

    assert [name] == [event.body.signal_name for event in signals(await handle.history())]


async def test_a_signal_wakes_a_waiting_execution(engine):
    """WAITING becomes PENDING or RUNNING, and the program goes on."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect, 2)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    await handle.signal("item", 1)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    await handle.signal("item", 2)

    assert [1, 2] == await handle.result(timeout=10)


async def test_a_signal_to_an_unknown_execution_is_refused(engine):
    """The error names the id."""
    client = (await engine(workflows=[collect])).client
    nobody = str(uuid4())
    with pytest.raises(ExecutionNotFound, match=nobody) as refused:
        await client.signal_workflow(nobody, "item", 1)

    assert "execution_not_found" == refused.value.code


@pytest.mark.parametrize("how", ["completed", "failed", "cancelled", "terminated"])
async def test_a_signal_to_a_closed_execution_is_refused(engine, how):
    """However it ended: the error says so, and the history stays as it is."""
    client = (await engine(workflows=[end_as_told])).client
    handle = await closed(client, how)
    before = await handle.history()
    with pytest.raises(ExecutionClosed, match=how.upper()) as refused:
        await handle.signal("end", "again")

    assert "execution_closed" == refused.value.code
    assert {"execution_id": handle.id, "status": how.upper()} == refused.value.details
    assert before == await handle.history()


async def test_signals_sent_at_once_get_growing_numbers(engine):
    """Three hundred concurrent signals to one execution: all recorded, in the order of their answers' numbers."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect, 300)
    answers = await asyncio.gather(*(handle.signal("item", n) for n in range(300)))
    by_number = [n for _, n in sorted((answer.signal_event_sequence, n) for n, answer in enumerate(answers))]

    assert by_number == await handle.result(timeout=20)
    assert sorted(by_number) == list(range(300))


# --- signal-with-start ------------------------------------------------------------------------------------------------


async def test_signal_with_start_starts_and_signals(engine):
    """With no execution there: WORKFLOW_STARTED is event 1 and the signal event 2, in one step."""
    client = (await engine(workflows=[collect])).client
    answer = await client.signal_with_start_workflow("w", collect, 1, signal_name="item", signal_value="hello")
    handle = client.workflow(answer.workflow_execution_id)

    assert SignalWithStartResponse(handle.id, workflow_created=True, signal_event_sequence=2) == answer
    assert answer.signal_delivered
    assert ["hello"] == await handle.result(timeout=10)
    assert ["WORKFLOW_STARTED", "SIGNAL_RECEIVED"] == [event.type for event in (await handle.history())[:2]]


async def test_signal_with_start_signals_the_open_execution(engine):
    """With one there: it gets the signal, nothing is created, and the start fields do not count."""
    client = (await engine(workflows=[collect])).client
    started = await client.start_workflow(collect, 2, workflow_id="w")
    await started.signal("item", 1)
    answer = await client.signal_with_start_workflow(
        "w", "no such kind", "other input", signal_name="item", signal_value=2, metadata={"not": "taken"}
    )

    assert (started.id, False) == (answer.workflow_execution_id, answer.workflow_created)
    assert [1, 2] == await started.result(timeout=10)
    assert {} == (await started.describe()).metadata


@pytest.mark.parametrize("how", ["completed", "failed", "cancelled", "terminated"])
async def test_signal_with_start_on_a_closed_id_starts_afresh(engine, how):
    """However the last execution of the workflow id ended, a new one begins, and the id belongs to it."""
    client = (await engine(workflows=[end_as_told, collect])).client
    old = await closed(client, how)
    before = await old.history()
    answer = await client.signal_with_start_workflow(
        old.workflow_id, collect, 1, signal_name="item", signal_value="fresh"
    )

    assert answer.workflow_created
    assert old.id != answer.workflow_execution_id
    assert ["fresh"] == await client.workflow(answer.workflow_execution_id).result(timeout=10)
    assert before == await old.history()
    assert answer.workflow_execution_id == (await client.find_workflow(old.workflow_id)).id


async def test_signal_with_start_of_an_unknown_kind_leaves_nothing(engine):
    """Neither the execution nor the signal nor the workflow id exists afterwards."""
    client = (await engine(workflows=[collect])).client
    with pytest.raises(UnknownWorkflowKind, match="'nothing'"):
        await client.signal_with_start_workflow("w", "nothing", signal_name="item")

    assert () == (await client.list_workflows()).items
    with pytest.raises(ExecutionNotFound):
        await client.find_workflow("w")


async def test_two_hundred_callers_meet_in_one_execution(engine):
    """200 concurrent signal-with-starts on one id: one execution, 200 signals, growing numbers, no gap."""
    client = (await engine(workflows=[collect])).client

    async def call(number):
        return await client.signal_with_start_workflow("w", collect, 200, signal_name="item", signal_value=number)

    answers = await asyncio.gather(*(asyncio.create_task(call(number)) for number in range(200)))
    handle = client.workflow(answers[0].workflow_execution_id)
    result = await handle.result(timeout=20)
    history = await handle.history()

    assert {handle.id} == {answer.workflow_execution_id for answer in answers}
    assert 1 == sum(answer.workflow_created for answer in answers)
    assert 1 == len((await client.list_workflows()).items)
    received = signals(history)
    assert 200 == len(received)
    assert sorted(answer.signal_event_sequence for answer in answers) == [event.seq for event in received]
    assert list(range(1, len(history) + 1)) == [event.seq for event in history]
    assert set(range(200)) == set(result)
    by_number = sorted(range(200), key=lambda number: answers[number].signal_event_sequence)
    assert by_number == result


async def test_callers_in_turn_get_growing_numbers(engine):
    """Each later signal has a larger number than the one before."""
    client = (await engine(workflows=[collect])).client
    numbers = [
        (await client.signal_with_start_workflow("w", collect, 20, signal_name="item")).signal_event_sequence
        for _ in range(20)
    ]

    assert numbers == sorted(set(numbers))


async def test_two_engines_on_one_file_never_make_two_executions(engine):
    """Racing callers in separate engines meet on the workflow id in the database."""
    one = (await engine(workflows=[collect])).client
    two = (await engine(workflows=[collect])).client
    answers = await asyncio.gather(
        *(
            (one if n % 2 else two).signal_with_start_workflow("w", collect, 40, signal_name="item", signal_value=n)
            for n in range(40)
        )
    )
    ids = {answer.workflow_execution_id for answer in answers}

    assert 1 == len(ids)
    assert 1 == sum(answer.workflow_created for answer in answers)
    assert set(range(40)) == set(await one.workflow(ids.pop()).result(timeout=20))


# --- the limit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_start", [False, True])
async def test_the_signal_beyond_the_limit_is_refused(engine, with_start):
    """Signals count for the whole life of the execution, read or not; nothing of the one too many is appended."""
    client = (await engine(workflows=[collect], config=LIMITED)).client
    handle = await client.start_workflow(collect, 4, workflow_id="w")
    for n in range(3):
        await handle.signal("item", n)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    before = await handle.history()
    if with_start:
        call = client.signal_with_start_workflow("w", collect, 4, signal_name="item")
    else:
        call = handle.signal("item", 3)
    with pytest.raises(SignalLimitReached, match=r"3 signals.*\(3\)") as refused:
        await call

    assert "signal_limit" == refused.value.code
    assert {"execution_id": handle.id, "limit": 3} == refused.value.details
    assert before == await handle.history()
    assert 3 == (await handle.describe()).signal_count


async def test_of_signals_sent_at_once_only_the_allowed_number_is_taken(engine):
    """The limit holds inside one transaction too: of ten at once, three are recorded and seven refused."""
    client = (await engine(workflows=[collect], config=LIMITED)).client
    handle = await client.start_workflow(collect, 3, workflow_id="w")
    answers = await asyncio.gather(*(handle.signal("other", n) for n in range(10)), return_exceptions=True)

    assert 3 == sum(isinstance(answer, SignalResponse) for answer in answers)
    assert 7 == sum(isinstance(answer, SignalLimitReached) for answer in answers)
    assert 3 == len(signals(await handle.history()))


async def test_a_refused_signal_does_not_spoil_its_batch(engine):
    """Signals to other executions that are committed together with the refused one are recorded."""
    client = (await engine(workflows=[collect], config=LIMITED)).client
    full = await client.start_workflow(collect, 9)
    others = [await client.start_workflow(collect, 1) for _ in range(5)]
    for _ in range(3):
        await full.signal("item")
    answers = await asyncio.gather(
        full.signal("item"), *(other.signal("item", 1) for other in others), return_exceptions=True
    )

    assert isinstance(answers[0], SignalLimitReached)
    assert [[1]] * 5 == [await other.result(timeout=10) for other in others]


async def test_a_fresh_execution_may_have_signals_again(engine):
    """The limit is per execution: after a close the same workflow id has its full number again."""
    client = (await engine(workflows=[collect], config=LIMITED)).client
    for _ in range(2):
        for _ in range(3):
            answer = await client.signal_with_start_workflow("w", collect, 3, signal_name="item")
        await client.workflow(answer.workflow_execution_id).result(timeout=10)

    assert 2 == len((await client.list_workflows()).items)


async def test_the_real_limit_is_ten_thousand(engine):
    """10,000 signals are taken and read in order; number 10,001 is refused either way and leaves no trace."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect, 10_001, workflow_id="w")
    for start in range(0, 10_000, 1_000):
        await asyncio.gather(*(handle.signal("item", n) for n in range(start, start + 1_000)))
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    before = await handle.describe()
    with pytest.raises(SignalLimitReached, match="10000 signals"):
        await handle.signal("item", 10_000)
    with pytest.raises(SignalLimitReached, match="10000 signals"):
        await client.signal_with_start_workflow("w", collect, 1, signal_name="item")

    assert 10_000 == before.signal_count
    assert before == await handle.describe()
    received = signals(await handle.history())
    assert list(range(10_000)) == [int(bytes(event.body.signal_value)) for event in received]
