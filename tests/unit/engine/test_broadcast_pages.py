"""Broadcasts to more waits than one transaction should reach: page by page, resumable, in order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from holdfast import errors
from holdfast.assembly import SystemClock, open_store
from holdfast.contract.messages import BroadcastAnswer, PublishEvent, ThrowBroadcast
from holdfast.engine.facade import LocalEngine
from holdfast.engine.messages import deliver, matching
from holdfast.engine.rules import messages
from holdfast.engine.upkeep import run_due
from holdfast.model import events as e
from holdfast.model.messages import SubscriptionKind
from tests.conftest import QUICK, OpenEngine, OpenEnvironment
from tests.database_access import change
from tests.faults.waiting import NAME, write_waiting
from tests.unit.engine.test_broadcasts import check_all, received, start, throws, throws_then_waits, waits
from verification import invariants

PAGE = 4


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (messages, matching, run_due, deliver):
        monkeypatch.setattr(module, "PAGE", PAGE)


class Bare:
    """An engine without services, in which callers only wait: pages are delivered when the test says so."""

    def __init__(self, local: LocalEngine) -> None:
        self.local = local
        setattr(local.messages, "_page_on", asyncio.Event().wait)  # noqa: B010 - mypy does not like the plain one

    def throw(self, name: str = NAME, key: str | None = None) -> asyncio.Task[BroadcastAnswer]:
        request = ThrowBroadcast(org="default", name=name, request_id=key)
        return asyncio.create_task(self.local.messages.broadcast(request))

    async def page(self) -> bool:
        return (await self.local.upkeep.run_due()).more

    async def finish(self) -> None:
        while await self.page():
            pass

    async def settled(self) -> int:
        """How many have got theirs, by their own histories."""
        return sum(len(got) for got in (await self.received()).values())

    async def received(self) -> dict[str, list[int]]:
        records = await invariants.read(self.local.store)
        assert [] == [str(wrong) for wrong in invariants.check(records)]
        return {
            record.execution_row.id: [
                event.body.broadcast_id if isinstance(event.body, e.BroadcastReceived) else event.body.event_id
                for event in record.history
                if isinstance(event.body, e.BroadcastReceived | e.EventReceived)
            ]
            for record in records
        }


@pytest.fixture
async def bare(database_url: str) -> AsyncIterator[Callable[[], Any]]:
    async with AsyncExitStack() as stack:

        async def open_bare() -> Bare:
            local = LocalEngine(open_store(database_url, QUICK, SystemClock()), QUICK)
            await local.start()
            stack.push_async_callback(local.stop)
            return Bare(local)

        yield open_bare


async def submitted(bare: Bare) -> None:
    """Until what was asked for is in the database: whatever comes later goes through the same queue, in order."""
    await asyncio.sleep(0)
    await bare.local.upkeep.prune()


async def committed(bare: Bare, task: asyncio.Task[Any]) -> None:
    """Until the throw itself is in the database, though not all of it has arrived."""
    await submitted(bare)
    assert not task.done()


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("count", [PAGE - 1, PAGE, PAGE + 1, 5 * PAGE, 5 * PAGE + 1])
async def test_many_are_reached_page_by_page(bare: Any, database_url: str, count: int):
    """001-22: the snapshot is what counts; the caller is answered when the last page is out."""
    ids = await write_waiting(database_url, count)
    one = await bare()
    thrown = one.throw()
    if count >= PAGE:
        await committed(one, thrown)
        assert PAGE == await one.settled()
    await one.finish()

    answer = await thrown

    assert (count, True) == (answer.delivered, answer.done)
    assert {key: [answer.broadcast_id] for key in ids} == await one.received()


@pytest.mark.usefixtures("small_pages")
async def test_who_comes_between_two_pages_was_not_there(bare: Any, database_url: str):
    """001-22, H11: pages go no further than the moment of the throw."""
    await write_waiting(database_url, 2 * PAGE)
    one = await bare()
    thrown = one.throw()
    await committed(one, thrown)
    late = await write_waiting(database_url, 3)
    await one.finish()

    assert 2 * PAGE == (await thrown).delivered
    got = await one.received()
    assert [[]] * 3 == [got[key] for key in late]


@pytest.mark.usefixtures("small_pages")
async def test_a_later_broadcast_waits_for_the_earlier_one(bare: Any, database_url: str):
    """Two overlapping ones reach each subscriber in order: the second takes nobody who is still due the first."""
    early = await write_waiting(database_url, 3 * PAGE)
    one = await bare()
    first = one.throw()
    await committed(one, first)
    late = await write_waiting(database_url, 2)
    second, third = one.throw(), one.throw()
    await committed(one, second)
    assert PAGE == await one.settled()
    await one.finish()

    answers = [await thrown for thrown in (first, second, third)]

    assert [3 * PAGE, 2, 0] == [answer.delivered for answer in answers]
    got = await one.received()
    assert {(answers[0].broadcast_id,)} == {tuple(got[key]) for key in early}
    assert {(answers[1].broadcast_id,)} == {tuple(got[key]) for key in late}


@pytest.mark.usefixtures("small_pages")
async def test_broadcasts_of_one_batch_keep_their_order(bare: Any, database_url: str):
    """Thrown in one breath, they share a transaction: the first takes all, the second finds nobody."""
    await write_waiting(database_url, 2 * PAGE)
    one = await bare()
    thrown = [one.throw() for _ in range(3)]
    await committed(one, thrown[0])
    await one.finish()

    answers = [await task for task in thrown]

    assert [2 * PAGE, 0, 0] == [answer.delivered for answer in answers]
    assert {(answers[0].broadcast_id,)} == {tuple(got) for got in (await one.received()).values()}


@pytest.mark.usefixtures("small_pages")
async def test_a_later_event_waits_for_the_earlier_one(bare: Any, database_url: str):
    """The same for events that many wait for."""
    early = await write_waiting(database_url, 3 * PAGE, wait=SubscriptionKind.EVENT)
    one = await bare()
    first = await one.local.messages.publish(PublishEvent(org="default", key=NAME))
    assert (PAGE, False) == (first.delivered, first.done)
    late = await write_waiting(database_url, 2, wait=SubscriptionKind.EVENT)
    second = await one.local.messages.publish(PublishEvent(org="default", key=NAME))
    assert (0, False) == (second.delivered, second.done)

    await one.finish()

    got = await one.received()
    assert {(first.event_id,)} == {tuple(got[key]) for key in early}
    assert {(second.event_id,)} == {tuple(got[key]) for key in late}


@pytest.mark.usefixtures("small_pages")
async def test_names_do_not_wait_for_each_other(bare: Any, database_url: str):
    """Several on their way share the pages, so that a small one is not held up by a large one."""
    await write_waiting(database_url, 10 * PAGE, name="large")
    await write_waiting(database_url, PAGE + 1, name="small")
    one = await bare()
    large, small = one.throw("large"), one.throw("small")
    await committed(one, large)

    await one.page()

    assert PAGE + 1 == (await small).delivered
    assert not large.done()
    await one.finish()
    assert 10 * PAGE == (await large).delivered


@pytest.mark.usefixtures("small_pages")
async def test_two_processes_deliver_side_by_side(bare: Any, database_url: str):
    """Both page the same broadcast: nobody gets it twice, and the count is right."""
    ids = await write_waiting(database_url, 20 * PAGE)
    one, other = await bare(), await bare()
    thrown = one.throw()
    await committed(one, thrown)

    await asyncio.gather(one.finish(), other.finish())
    await one.local.upkeep.poll_changes()

    answer = await asyncio.wait_for(thrown, 10)
    assert 20 * PAGE == answer.delivered
    assert {key: [answer.broadcast_id] for key in ids} == await one.received()


@pytest.mark.usefixtures("small_pages")
async def test_the_caller_hears_of_pages_that_others_delivered(bare: Any, database_url: str):
    """Another process delivers some pages and ends; a third one the rest: the caller gets its count."""
    await write_waiting(database_url, 6 * PAGE)
    one, other, third = await bare(), await bare(), await bare()
    thrown = one.throw()
    await committed(one, thrown)
    assert await other.page()
    await other.local.stop()
    assert not thrown.done()

    await third.finish()
    assert not thrown.done()
    await one.local.upkeep.poll_changes()

    assert 6 * PAGE == (await asyncio.wait_for(thrown, 10)).delivered


@pytest.mark.usefixtures("small_pages")
async def test_one_that_was_left_half_done_is_due_at_once(bare: Any, database_url: str):
    """The thrower is gone: whoever looks at what is due next finds it, and who asks again with the key is told."""
    ids = await write_waiting(database_url, 3 * PAGE)
    one = await bare()
    thrown = one.throw(key="k")
    await committed(one, thrown)
    await one.local.stop()
    with pytest.raises(errors.EngineStopped):
        await thrown

    other = await bare()
    due_at = await other.local.store.next_due_at(0)
    assert due_at is not None
    assert due_at <= other.local.store.clock()
    again = other.throw(key="k")
    await committed(other, again)
    await other.finish()

    answer = await again
    assert (3 * PAGE, False) == (answer.delivered, answer.idempotency_key_new)
    assert {key: [answer.broadcast_id] for key in ids} == await other.received()
    assert await other.local.store.next_due_at(0) is None
    assert 3 * PAGE == (await other.throw(key="k")).delivered


@pytest.mark.usefixtures("small_pages")
async def test_a_caller_sees_to_its_own_broadcast(database_url: str):
    """Without any service it is delivered all the same, and several callers do not get into each other's way."""
    for name in ("one", "other"):
        await write_waiting(database_url, 3 * PAGE, name=name)
    local = LocalEngine(open_store(database_url, QUICK, SystemClock()), QUICK)
    await local.start()
    try:
        thrown = [ThrowBroadcast(org="default", name=name) for name in ("one", "other", "one", "nobody")]
        answers = await asyncio.gather(*(local.messages.broadcast(request) for request in thrown))
    finally:
        await local.stop()

    assert [3 * PAGE, 3 * PAGE, 0, 0] == [answer.delivered for answer in answers]


@pytest.mark.usefixtures("small_pages")
async def test_a_delivery_that_was_removed_by_hand_keeps_nobody_waiting(bare: Any, database_url: str):
    """The caller is told what is known: how many had it when the call was made."""
    await write_waiting(database_url, 3 * PAGE)
    one = await bare()
    thrown = one.throw()
    await committed(one, thrown)
    await change(database_url, "DELETE FROM holdfast_deliveries")

    await one.local.messages.poll_changes()

    assert PAGE == (await asyncio.wait_for(thrown, 10)).delivered


@pytest.mark.usefixtures("small_pages")
async def test_many_are_reached_in_virtual_time(environment: OpenEnvironment):
    """A test that waits for the answer gets it, although no service runs by itself."""
    env = await environment(workflows=[waits, throws])
    handles = [await env.client.start_workflow(waits, "go") for _ in range(3 * PAGE)]
    await env.idle()

    assert 3 * PAGE == await env.client.broadcast("go")

    assert {"got None"} == {await env.result(handle) for handle in handles}
    handles = [await env.client.start_workflow(waits, "go") for _ in range(3 * PAGE)]
    await env.idle()
    await env.run(throws, "go")
    assert {"got None"} == {await env.result(handle) for handle in handles}


@pytest.mark.usefixtures("small_pages")
async def test_services_deliver_the_pages(engine: OpenEngine):
    """With an engine as users have it: all of them come to their end."""
    opened = await engine(workflows=[waits, throws])
    handles = await start(opened, waits, *["go"] * (3 * PAGE))

    assert 3 * PAGE == await opened.client.broadcast("go")

    assert {"got None"} == {await handle.result(timeout=10) for handle in handles}
    handles = await start(opened, waits, *["go"] * (3 * PAGE))
    await (await opened.client.start_workflow(throws, "go")).result(timeout=10)
    assert {"got None"} == {await handle.result(timeout=10) for handle in handles}
    await check_all(opened)


@pytest.mark.usefixtures("small_pages")
async def test_a_turn_that_throws_to_many_is_heard_by_its_own_waits_too(engine: OpenEngine, database_url: str):
    """001-27: they are part of the snapshot, though more wait than fit into the transaction."""
    await write_waiting(database_url, 2 * PAGE, name="self")
    opened = await engine(workflows=[throws_then_waits])

    handle = await opened.client.start_workflow(throws_then_waits)

    assert "heard itself" == await handle.result(timeout=10)
    assert 1 == len(await received(handle))


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("seed", range(12))
async def test_pages_are_as_good_as_one_transaction(bare: Any, database_url: str, seed: int):
    """Whatever comes between the pages: each broadcast takes exactly those who waited when it was thrown."""
    chance = random.Random(seed)
    engines: list[Bare] = [await bare(), await bare()]
    waiting: dict[str, list[str]] = {"a": [], "b": []}
    expected: dict[str, list[str]] = {}
    counts: dict[str, tuple[str, int]] = {}
    thrown = []
    for number in range(30):
        name, which = chance.choice("ab"), chance.randrange(2)
        match chance.choice(("wait", "throw", "page", "page", "restart")):
            case "wait":
                waiting[name] += await write_waiting(database_url, chance.randrange(1, 3 * PAGE), name=name)
            case "throw":
                key = f"throw-{number}"
                thrown.append(engines[which].throw(name, key))
                await submitted(engines[which])
                counts[key] = (name, len(waiting[name]))
                expected.update({one: [key] for one in waiting[name]})
                waiting[name] = []
            case "page":
                await engines[which].page()
            case "restart":
                await engines[which].local.stop()
                engines[which] = await bare()
    await asyncio.gather(*(engine.finish() for engine in engines))
    for engine in engines:
        await engine.local.upkeep.poll_changes()
    await asyncio.gather(*thrown, return_exceptions=True)

    answers = {key: await engines[0].throw(name, key) for key, (name, _) in counts.items()}

    assert {key: count for key, (_, count) in counts.items()} == {key: got.delivered for key, got in answers.items()}
    keys = {got.broadcast_id: key for key, got in answers.items()}
    got = {one: [keys[number] for number in numbers] for one, numbers in (await engines[0].received()).items()}
    assert expected | {one: [] for left in waiting.values() for one in left} == got
