"""Signals as a mailbox: what is unread can be counted and looked at; what is dead can be redelivered, once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import EngineConfig, Limits, SyncEngine, WorkflowContext, errors, query, signal, workflow
from holdfast.contract.executions import TerminateExecution
from holdfast.contract.mailboxes import BuryUnread
from holdfast.engine.executions.bury_unread import Bury
from holdfast.model import events as e
from holdfast.store.reads import History
from tests.conftest import QUICK, until


@workflow
async def picky(ctx: WorkflowContext) -> str:
    """Reads what is called `read`, and nothing else, until it is told to end."""
    while (word := await ctx.wait_for_signal("read", str)) != "end":
        pass
    return word


@workflow
async def reader(ctx: WorkflowContext) -> list[Any]:
    heard = [await ctx.wait_for_signal("note")]
    while ctx.has_signal("note"):
        heard.append(await ctx.wait_for_signal("note"))
    return heard


WORKFLOWS = [picky, reader]


async def _seen(handle: Any, signals: int) -> bool:
    """Whether it waits, and has seen so many signals."""
    view = await handle.describe()
    return view.status == "WAITING" and view.signal_count == signals


async def _closed_with_letters(client: Any, *values: Any, workflow_id: str = "w") -> Any:
    """A closed execution that has left these notes unread."""
    handle = await client.start_workflow(picky, workflow_id=workflow_id)
    for value in values:
        await handle.signal("note", value)
    await handle.signal("read", "end")
    await handle.result(timeout=20)
    return handle


# --- looking ------------------------------------------------------------------------------------------------------


async def test_mailbox_shows_what_the_program_has_not_read(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await client.start_workflow(picky)
    before = datetime.now(UTC) - timedelta(seconds=1)
    await handle.signal("read", "on")
    first = await handle.signal("note", {"text": "one"})
    await handle.signal("other")
    second = await handle.signal("note", "two")
    await until(lambda: _seen(handle, 4))

    mailbox = await handle.mailbox()

    assert mailbox.complete
    assert [(entry.signal_name, entry.value) for entry in mailbox] == [
        ("note", {"text": "one"}),
        ("other", None),
        ("note", "two"),
    ]
    assert (mailbox[0].seq, mailbox[2].seq) == (first.signal_event_sequence, second.signal_event_sequence)
    assert [entry.size for entry in mailbox] == [len('{"text":"one"}'), len("null"), len('"two"')]
    assert all(before < entry.received_at < datetime.now(UTC) for entry in mailbox)
    assert all(timedelta(0) <= entry.age < timedelta(minutes=1) for entry in mailbox)
    assert mailbox.counts == await handle.pending_signals() == {"note": 2, "other": 1}
    assert await handle.status() == "WAITING", "looking changes nothing"


async def test_mailbox_gives_the_oldest_and_counts_all(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await client.start_workflow(picky)
    for number in range(30):
        await handle.signal("note", number)
    await until(lambda: _seen(handle, 30))

    mailbox = await handle.mailbox(limit=3)

    assert [entry.value for entry in mailbox] == [0, 1, 2]
    assert (len(mailbox), mailbox.total) == (3, 30)
    with pytest.raises(errors.InvalidRequest, match="limit"):
        await handle.mailbox(limit=0)


async def test_mailbox_of_a_workflow_that_has_read_everything_is_empty(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await client.start_workflow(picky)
    await handle.signal("read", "on")
    await until(lambda: _seen(handle, 1))

    mailbox = await handle.mailbox()

    assert (list(mailbox), mailbox.total, mailbox.complete) == ([], 0, True)


async def test_without_a_worker_the_mailbox_shows_what_no_turn_has_seen(engine):
    """And says that it may not be all."""
    working = await engine(workflows=WORKFLOWS)
    handle = await working.client.start_workflow(picky)
    await handle.signal("note", "seen")
    await until(lambda: _seen(handle, 1))
    await working.shutdown()
    client = (await engine()).client
    await client.signal_workflow(handle.id, "note", "unseen")

    mailbox = await client.workflow(handle.id).mailbox()

    assert not mailbox.complete
    assert [entry.value for entry in mailbox] == ["unseen"]
    assert mailbox.counts == {"note": 1}


async def test_mailbox_of_a_closed_execution_is_its_dead_letters(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await _closed_with_letters(client, "one", "two")

    mailbox = await handle.mailbox()

    assert [(entry.value, entry.reason) for entry in mailbox] == [
        ("one", "closed_before_read"),
        ("two", "closed_before_read"),
    ]
    with pytest.raises(errors.ExecutionNotFound):
        await client.workflow("nobody").mailbox()


async def test_the_name_of_the_query_is_kept_for_it():
    with pytest.raises(errors.InvalidDefinition, match="__mailbox__"):

        @workflow
        class Taken:
            async def run(self, ctx: WorkflowContext) -> None: ...

            @query(name="__mailbox__")
            def mailbox(self) -> int:
                return 0


# --- dead letters -------------------------------------------------------------------------------------------------


async def test_dead_letters_tell_what_they_were(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await _closed_with_letters(client, {"order": 7})

    (letter,) = await client.dead_letters(handle.id)

    assert (letter.execution_id, letter.signal_name, letter.value) == (handle.id, "note", {"order": 7})
    assert letter.size == len('{"order":7}')
    assert letter.received_at <= letter.buried_at <= datetime.now(UTC)
    assert timedelta(0) <= letter.age < timedelta(minutes=1)


async def test_redelivered_to_the_open_execution_of_the_same_workflow_id(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    closed = await _closed_with_letters(client, "late")
    (letter,) = await client.dead_letters()
    open_one = await client.start_workflow(reader, workflow_id="w")

    answer = await client.redeliver(letter)

    assert answer.workflow_execution_id == open_one.id
    assert await open_one.result(timeout=20) == ["late"]
    assert await client.dead_letters() == []
    event = (await open_one.history())[answer.signal_event_sequence - 1]
    assert isinstance(event.body, e.SignalReceived)
    assert (event.body.carried_from, event.body.redelivered_from) == (letter.seq, closed.id)


async def test_redelivered_to_another_by_execution_id_or_workflow_id(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    await _closed_with_letters(client, "one", "two")
    two, one = await client.dead_letters()
    by_id = await client.start_workflow(reader)
    by_workflow_id = await client.start_workflow(reader, workflow_id="other")

    await client.redeliver(one, to=by_id.id)
    await client.redeliver(two, "other")

    assert await by_id.result(timeout=20) == ["one"]
    assert await by_workflow_id.result(timeout=20) == ["two"]


async def test_a_refused_redelivery_changes_nothing(engine):
    config = EngineConfig(store=QUICK.store, worker=QUICK.worker, limits=Limits(signals_per_execution=2))
    client = (await engine(workflows=WORKFLOWS, config=config)).client
    await _closed_with_letters(client, "late")
    (letter,) = await client.dead_letters()
    full = await client.start_workflow(picky)
    await full.signal("note")
    await full.signal("note")

    with pytest.raises(errors.ExecutionClosed):
        await client.redeliver(letter)
    with pytest.raises(errors.SignalLimitReached):
        await client.redeliver(letter, to=full.id)
    with pytest.raises(errors.ExecutionNotFound):
        await client.redeliver(letter, to="nobody")
    with pytest.raises(errors.InvalidRequest, match="dead_letters"):
        await client.redeliver("w")

    assert [found.seq for found in await client.dead_letters()] == [letter.seq]
    assert (await full.describe()).signal_count == 2


async def test_of_many_who_redeliver_one_does(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    await _closed_with_letters(client, "once")
    (letter,) = await client.dead_letters()
    target = await client.start_workflow(picky, workflow_id="w")

    answers = await asyncio.gather(*(client.redeliver(letter) for _ in range(10)), return_exceptions=True)

    refused = [answer for answer in answers if isinstance(answer, errors.DeadLetterNotFound)]
    assert len(refused) == 9
    await until(lambda: _seen(target, 1))
    assert await target.pending_signals() == {"note": 1}


async def test_a_removed_letter_is_gone(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await _closed_with_letters(client, "one", "two")
    _, one = await client.dead_letters()

    await client.remove_dead_letter(one)

    assert [letter.value for letter in await client.dead_letters(handle.id)] == ["two"]
    with pytest.raises(errors.DeadLetterNotFound, match="removed"):
        await client.remove_dead_letter(one)
    with pytest.raises(errors.DeadLetterNotFound):
        await client.redeliver(one, to=(await client.start_workflow(picky)).id)


async def test_a_letter_that_a_handler_refused_goes_back_to_its_own_execution(engine):
    """After a fix, for example: the execution is still open."""

    @dataclass
    class Order:
        number: int

    @workflow
    class Shop:
        def __init__(self) -> None:
            self.orders: list[int] = []

        async def run(self, ctx: WorkflowContext) -> list[int]:
            await ctx.wait_for_signal("close")
            return self.orders

        @signal
        def order(self, order: Order) -> None:
            self.orders.append(order.number)

    client = (await engine(workflows=[Shop])).client
    shop = await client.start_workflow(Shop)
    await shop.signal("order", "no order")
    (letter,) = await until(client.dead_letters)

    answer = await client.redeliver(letter)

    assert answer.workflow_execution_id == shop.id
    (again,) = await until(client.dead_letters)
    assert again.seq == answer.signal_event_sequence
    assert again.value == "no order"


# --- closed from outside ------------------------------------------------------------------------------------------


async def test_what_a_terminated_execution_had_not_seen_becomes_dead_letters(engine):
    client = (await engine()).client
    working = await engine(workflows=WORKFLOWS)
    await working.shutdown()  # the kind is known, and nobody runs it
    handle = await client.start_workflow(picky)
    await handle.signal("note", "one")
    await handle.signal("note", "two")

    await handle.terminate("enough")

    letters = await client.dead_letters(handle.id)
    assert [(letter.value, letter.reason) for letter in letters] == [
        ("two", "closed_before_read"),
        ("one", "closed_before_read"),
    ]


async def test_what_a_terminated_execution_had_seen_and_not_read_is_buried_on_request(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await client.start_workflow(picky, workflow_id="w")
    await handle.signal("read", "on")
    await handle.signal("note", "left")
    await until(lambda: _seen(handle, 2))
    with pytest.raises(errors.ExecutionOpen):
        await client.bury_unread(handle.id)
    await handle.terminate()

    assert await client.bury_unread(handle.id, reason="operator") == 1
    assert await client.bury_unread(handle.id) == 0
    (letter,) = await client.dead_letters(handle.id)
    assert (letter.value, letter.reason) == ("left", "operator")
    again = await client.start_workflow(reader, workflow_id="w")
    await client.redeliver(letter)
    assert await again.result(timeout=20) == ["left"]
    assert await client.bury_unread(handle.id) == 0, "what was redelivered can't come back"
    assert await client.dead_letters() == []


async def test_a_reset_takes_along_what_was_unread_before_its_point(engine):
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await client.start_workflow(picky, workflow_id="w")
    await handle.signal("note", "early")
    await handle.signal("read", "on")
    await until(lambda: _seen(handle, 2))
    point = (await handle.history())[-1].seq
    await handle.signal("read", "end")
    await handle.result(timeout=20)
    (letter,) = await client.dead_letters()

    fresh = await handle.reset(point, reapply_signals=False)

    await until(lambda: _seen(fresh, 2))
    assert await fresh.pending_signals() == {"note": 1}
    assert await client.dead_letters() == []
    with pytest.raises(errors.DeadLetterNotFound):
        await client.redeliver(letter)


async def test_a_reset_takes_letters_along_once(engine):
    """The new execution receives them again; as dead letters of the old one they would be received twice."""
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await client.start_workflow(picky, workflow_id="w")
    await handle.signal("read", "on")
    await until(lambda: _seen(handle, 1))
    point = (await handle.history())[-1].seq
    await handle.signal("note", "late")
    await handle.signal("read", "end")
    await handle.result(timeout=20)
    assert len(await client.dead_letters()) == 1

    fresh = await handle.reset(point)

    await fresh.result(timeout=20)
    assert [letter.execution_id for letter in await client.dead_letters()] == [fresh.id]


async def test_a_reset_that_leaves_signals_out_does_not_drop_them_in_silence(engine):
    """Of an open execution: what no turn had seen is a dead letter. What it finds in its queues is none."""
    running = await engine(workflows=WORKFLOWS)
    client = running.client
    await client.pause_queue("default")
    handle = await client.start_workflow(picky, workflow_id="w")
    await handle.signal("note", "before")
    point = (await handle.history())[-1].seq
    await handle.signal("note", "after")

    fresh = await handle.reset(point, reapply_signals=False)

    (letter,) = await client.dead_letters()
    assert ("after", "closed_before_read", handle.id) == (letter.value, letter.reason, letter.execution_id)
    assert {"note": 1} == await fresh.pending_signals()
    await client.redeliver(letter)
    assert {"note": 2} == await fresh.pending_signals()


async def test_what_a_reset_has_taken_along_is_not_buried(engine):
    """Nor by somebody who has asked the program before the reset, and buries after it."""
    running = await engine(workflows=WORKFLOWS)
    client = running.client
    handle = await client.start_workflow(picky, workflow_id="w")
    left = await handle.signal("note", "left")
    await until(lambda: _seen(handle, 1))
    await handle.terminate()
    await handle.retry()

    late = Bury(BuryUnread(org="default", workflow_execution_id=handle.id, reason="late"), [left.signal_event_sequence])
    assert 0 == await running._local.queue.submit(late)
    assert [] == await client.dead_letters()


@pytest.mark.parametrize("reapply", [True, False])
async def test_a_reset_takes_letters_along_that_are_just_being_made(engine, monkeypatch, reapply):
    """Terminated and reset in one transaction: what the new one has received is no dead letter of the old one."""
    running = await engine(workflows=WORKFLOWS)
    client, local = running.client, running._local
    await client.pause_queue("default")
    handle = await client.start_workflow(picky)
    await handle.signal("note", "before")
    await handle.signal("note", "after")
    wake, read = local.store.wake, local.store.read

    async def terminated_meanwhile(query):
        """The writer hears of both calls at once."""
        found = await read(query)
        if not isinstance(query, History):
            return found
        monkeypatch.setattr(local.store, "wake", lambda: None)
        asyncio.get_running_loop().call_later(0.05, resume)
        local.api.call(TerminateExecution(org="default", workflow_execution_id=handle.id))
        return found

    def resume():
        monkeypatch.setattr(local.store, "wake", wake)
        wake()

    monkeypatch.setattr(local.store, "read", terminated_meanwhile)
    again = await handle.reset(2, reapply_signals=reapply)
    monkeypatch.setattr(local.store, "read", read)

    first, second = await client.history(handle.id), await client.history(again.id)
    assert [first[-1].at] == [event.at for event in second if event.type == "WORKFLOW_RESET"], "one transaction"
    assert ([] if reapply else ["after"]) == [letter.value for letter in await client.dead_letters()]
    assert {"note": 2 if reapply else 1} == await again.pending_signals()


def test_the_blocking_face(database_url):
    with SyncEngine(database_url, workflows=WORKFLOWS, config=QUICK) as engine:
        handle = engine.client.start_workflow(picky, workflow_id="w")
        handle.signal("note", "one")
        assert handle.pending_signals() == {"note": 1}
        assert [entry.value for entry in handle.mailbox()] == ["one"]
        handle.signal("read", "end")
        handle.result(timeout=20)
        (letter,) = engine.client.dead_letters()
        fresh = engine.client.start_workflow(reader, workflow_id="w")
        engine.client.redeliver(letter)
        assert fresh.result(timeout=20) == ["one"]
