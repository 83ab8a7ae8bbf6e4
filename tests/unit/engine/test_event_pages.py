"""Published events in great numbers: pages, filters that cost, many that are kept. Nothing happens but what the test
asks for: there is no service and no worker's loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from msgspec import Raw

from holdfast.assembly import open_store
from holdfast.contract.executions import StartWorkflow
from holdfast.contract.messages import PublishEvent
from holdfast.contract.workers import CompleteTurn, RegisterWorker
from holdfast.engine.executions.start import Start
from holdfast.engine.facade import LocalEngine
from holdfast.engine.group_commit import OperationBatch
from holdfast.engine.messages.publish import Publish
from holdfast.engine.operation import Operation
from holdfast.engine.turns.complete import Complete
from holdfast.engine.upkeep.prune import PAGE as FORGET_PAGE
from holdfast.engine.upkeep.prune import Prune
from holdfast.engine.upkeep.run_due import RunDue
from holdfast.errors import InvalidExpression, InvalidRequest
from holdfast.model import commands as c
from holdfast.model.events import EventReceived
from holdfast.model.values import Token
from holdfast.store.protocol import Changes, Loaded
from tests.conftest import QUICK
from tests.database_access import Row, rows

ORG = "default"
KIND = "w"


@dataclass(frozen=True)
class Received:
    execution_id: str
    wait_no: int
    event_id: int


class Counted(NamedTuple):
    subscriptions: int
    published: int


class Bench:
    """An engine without services and a worker that holds every execution for ever."""

    def __init__(self, url: str) -> None:
        self.now = 1_000_000_000_000
        self.loaded: list[Counted] = []
        """How many rows each transaction has read."""
        self.executions: list[str] = []
        self.local = LocalEngine(open_store(url, QUICK, lambda: self.now), QUICK)
        self._url = url
        bench = self

        class Watched(OperationBatch):
            def decide(self, loaded: Loaded) -> Changes:
                bench.loaded.append(Counted(len(loaded.subscriptions), len(loaded.published)))
                return super().decide(loaded)

        self.local.queue.make_batch = Watched

    async def open(self) -> None:
        await self.local.start()
        await self.local.workers.register(
            RegisterWorker(
                org=ORG,
                session="s",
                host="h",
                pid=1,
                builds={(KIND, "1"): "b"},
                turn_slots=10_000,
                task_slots=0,
                lease_s=1e6,
            )
        )

    async def run(self, *operations: Operation[Any, Any]) -> list[Any]:
        """Answers and refusals. As many in a transaction as the store takes: it is woken when all of them wait."""
        queue = self.local.queue
        wake, queue._wake = queue._wake, lambda: None
        submitted = [queue.submit(operation) for operation in operations]
        queue._wake = wake
        wake()
        return await asyncio.gather(*submitted, return_exceptions=True)

    async def start(self) -> str:
        (answer,) = await self.run(Start(StartWorkflow(org=ORG, kind=KIND, workflow_id=None)))
        self.executions.append(answer.workflow_execution_id)
        return str(answer.workflow_execution_id)

    async def turn(self, execution_id: str, *commands: c.Command) -> Complete:
        """What the worker reports of a turn. With commands only: it keeps the execution."""
        execution_row = (await self.local.store.executions(ORG, [execution_id]))[execution_id]
        return Complete(
            CompleteTurn(
                org=ORG,
                execution_id=execution_id,
                token=Token(execution_row.epoch, execution_row.nonce),
                base_seq=execution_row.last_seq,
                worker="s",
                turns=(c.Turn(up_to=execution_row.last_seq, commands=commands),),
            )
        )

    async def wait(self, execution_id: str, count: int, **options: Any) -> None:
        waits = [c.StartWait(wait_no=n + 1, kind="event", key="order", **options) for n in range(count)]
        await self.run(await self.turn(execution_id, *waits))

    async def crowd(self, count: int, **options: Any) -> str:
        """An execution with so many waits."""
        execution_id = await self.start()
        await self.wait(execution_id, count, **options)
        return execution_id

    async def deliver(self) -> int:
        """Page by page, until all is delivered; how many pages it took."""
        pages = 0
        while self.rows("SELECT 1 FROM holdfast_deliveries WHERE done_at IS NULL"):
            await self.run(RunDue(None))
            pages += 1
        return pages

    async def received(self) -> list[Received]:
        return [
            Received(execution_id, event.body.wait_no, event.body.event_id)
            for execution_id in self.executions
            for event in await self.local.store.history(ORG, execution_id)
            if isinstance(event.body, EventReceived)
        ]

    def rows(self, sql: str) -> list[Row]:
        return rows(self._url, sql)


@pytest.fixture
async def bench(database_url: str) -> AsyncIterator[Bench]:
    made = Bench(database_url)
    await made.open()
    yield made
    await made.local.stop()


def publish(data: object, **options: Any) -> Publish:
    given: dict[str, Any] = {"org": ORG, "key": "order", "data": Raw(json.dumps(data).encode())} | options
    return Publish(PublishEvent(**given))


async def test_more_waits_than_a_page_all_get_it_once(bench: Bench):
    """2,500 waits: the first page at once, the others in transactions of their own; nobody twice."""
    await bench.crowd(2_500)
    (answer,) = await bench.run(publish(1))
    assert (1_000, False, True) == (answer.delivered, answer.done, answer.retained)

    assert 2 <= await bench.deliver() <= 4
    assert list(range(1, 2_501)) == [each.wait_no for each in await bench.received()]
    assert [(0,)] == bench.rows("SELECT count(*) FROM holdfast_subscriptions")
    assert [(2_500,)] == bench.rows("SELECT delivered FROM holdfast_published")


async def test_an_event_for_one_is_found_its_one_beyond_the_first_page(bench: Bench):
    """1,500 waits that refuse it, then one that does not: it gets it, once, and the event is used up."""
    await bench.crowd(1_500, where="input.amount > 100")
    last = await bench.crowd(2)
    (answer,) = await bench.run(publish({"amount": 5}, consume=True))
    assert (0, False) == (answer.delivered, answer.done)
    await bench.deliver()

    assert [(last, 1)] == [(each.execution_id, each.wait_no) for each in await bench.received()]
    assert [] == bench.rows("SELECT id FROM holdfast_published")
    assert [(0,)] == bench.rows("SELECT retained FROM holdfast_event_keys")


async def test_a_later_event_does_not_overtake_one_that_is_on_its_way(bench: Bench):
    """The waits of the second page get the first event, as those of the first page do."""
    await bench.crowd(1_500)
    (first,) = await bench.run(publish(1))
    (second,) = await bench.run(publish(2))
    assert (0, False) == (second.delivered, second.done)
    await bench.deliver()

    received = await bench.received()
    assert {first.event_id} == {each.event_id for each in received}
    assert 1_500 == len(received)


async def test_costly_filters_are_spread_over_transactions(bench: Bench):
    """Each may take its budget, but not all of them in one transaction; whoever matches gets it once."""
    await bench.crowd(30, where="input.all(a, input.all(b, input.all(c, a + b + c >= 0)))")
    plain = await bench.crowd(1)
    (answer,) = await bench.run(publish(list(range(100))))
    assert (0, False) == (answer.delivered, answer.done)

    assert 2 <= await bench.deliver() <= 4
    assert [(plain, 1)] == [(each.execution_id, each.wait_no) for each in await bench.received()]


async def test_waits_are_found_by_the_equality_their_filter_demands(bench: Bench):
    """Of 10,000 waits with filters of their own the event sees one: the others are not even loaded."""
    execution = await bench.start()
    for start in range(0, 10_000, 1_000):
        waits = [
            c.StartWait(wait_no=n + 1, kind="event", key="order", where=f'input.order == "o{n}" && input.amount > 10')
            for n in range(start, start + 1_000)
        ]
        await bench.run(await bench.turn(execution, *waits))
    bench.loaded.clear()
    (answer,) = await bench.run(publish({"order": "o123", "amount": 11}))

    assert [1] == [loaded.subscriptions for loaded in bench.loaded]
    assert (1, [124]) == (answer.delivered, [each.wait_no for each in await bench.received()])


async def test_the_event_beyond_many_that_do_not_match_is_found(bench: Bench):
    """A wait that looks back goes through all that is kept, and only what it may have is loaded with its data."""
    published = await bench.run(*(publish({"n": n}, key="k") for n in range(5_000)))
    execution = await bench.start()
    wait = c.StartWait(wait_no=1, kind="event", key="k", where="input.n == 4321 && input.n > 0", since_at=0)
    turn = await bench.turn(execution, wait)
    bench.loaded.clear()
    await bench.run(turn)

    assert [1] == [loaded.published for loaded in bench.loaded]
    assert [published[4321].event_id] == [each.event_id for each in await bench.received()]


async def test_housekeeping_works_in_pages(bench: Bench):
    """Thousands of expired events take several transactions, and are all dead in the end."""
    count = 2 * FORGET_PAGE + 10
    for start in range(0, count, 500):
        await bench.run(*(publish(n, expire_after_s=1.0) for n in range(start, min(start + 500, count))))
    bench.now += 2_000_000

    assert [True, True, False] == [(await bench.run(Prune(None)))[0] for _ in range(3)]
    assert [(count,)] == bench.rows("SELECT count(*) FROM holdfast_dead_events")
    assert [(0, 0)] == bench.rows("SELECT retained, dropped FROM holdfast_event_keys")


@pytest.mark.parametrize(
    ("command", "error", "field"),
    [
        (c.StartWait(wait_no=1, kind="event", key="k", where="input.a =="), InvalidExpression, ""),
        (c.StartWait(wait_no=1, kind="event", key="k", where="'text'"), InvalidExpression, ""),
        (c.StartWait(wait_no=1, kind="event", key="k", where="input.a == 1 &&" * 400), InvalidExpression, ""),
        (c.StartWait(wait_no=1, kind="event", key="", where=None), InvalidRequest, "key"),
        (c.StartWait(wait_no=1, kind="event", key="x" * 300), InvalidRequest, "key"),
        (c.StartWait(wait_no=1, kind="nonsense", key="k"), InvalidRequest, "kind"),
        (c.StartWait(wait_no=1, kind="event", key="k", since_at=-1), InvalidRequest, "since_at"),
        (c.StartWait(wait_no=1, kind="event", key="k", since_at=0, after_event_id=2**70), InvalidRequest, "after"),
        (c.Publish(key=""), InvalidRequest, "key"),
        (c.Publish(key="k", delivery="nonsense"), InvalidRequest, "delivery"),
        (c.Publish(key="k", expire_after_s=float("nan")), InvalidRequest, "expire_after"),
        (c.ThrowBroadcast(name=""), InvalidRequest, "name"),
        (c.CreatePromise(promise_no=1, name="p", token_hash="t", event_key=""), InvalidRequest, "event_key"),
    ],
)
async def test_a_worker_cannot_break_the_engine_with_a_command_it_should_have_checked(
    bench: Bench, command: c.Command, error: type[Exception], field: str
):
    """The commit is refused with a typed error and nothing of it is recorded; others in the same transaction are not
    touched."""
    execution = await bench.start()
    before = bench.rows("SELECT count(*) FROM holdfast_events")
    good = c.StartWait(wait_no=7, kind="event", key="order")
    turn = await bench.turn(execution, good, command)
    bench.loaded.clear()
    refusal, answer = await bench.run(turn, publish(1))

    assert isinstance(refusal, error)
    assert field in getattr(refusal, "field", "")
    assert (0, True) == (answer.delivered, answer.retained)
    assert 1 == len(bench.loaded)
    assert before == bench.rows("SELECT count(*) FROM holdfast_events")
    assert [] == bench.rows("SELECT * FROM holdfast_subscriptions")
