"""Promises, tokens, subscriptions, published events and deliveries: written whole, found by every way there is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import SkipTest

from msgspec import Raw
from msgspec.structs import replace

from holdfast.model.messages import (
    DeadEvent,
    DeliveryRow,
    EventKeyRow,
    PromiseRow,
    PromiseState,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
    TokenRow,
    TriggerRow,
)
from holdfast.model.values import Failure, Settlement, Wait
from holdfast.store.protocol import Changes, EventMatch, Loaded, LoadPlan
from holdfast.store.queries import Inconsistency
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.records import ORG, OTHER_ORG, a_task, a_timer, an_execution, an_id
from verification.stores.writing import plain

BROADCAST, EVENT, MESSAGE = SubscriptionKind.BROADCAST, SubscriptionKind.EVENT, SubscriptionKind.MESSAGE
_DATA = Raw(b'{"a": [1, 2.50, null], "\xc3\xbc": "x"}')


def a_promise(number: int = 1, name: str = "answer", **fields: Any) -> PromiseRow:
    defaults: dict[str, Any] = {"promise_no": 1, "state": PromiseState.PENDING, "created_at": START}
    return PromiseRow(execution_id=an_id(number), name=name, org=ORG, **(defaults | fields))


def a_full_promise() -> PromiseRow:
    return a_promise(
        promise_no=4,
        state=PromiseState.REJECTED,
        value=_DATA,
        failure=Failure(type="ValueError", message="no", cause=Failure(type="KeyError")),
        settled_at=START + 5,
        settled_by=Settlement(by="token", idempotency_key="k", event_id=7),
        event_key="answered",
        timer_no=3,
        shape=Raw(b'{"is":"array","of":"int"}'),
    )


def a_wait(number: int, execution: int = 1, **fields: Any) -> SubscriptionRow:
    defaults: dict[str, Any] = {"wait_no": number, "org": ORG, "kind": BROADCAST, "key": "go", "created_at": START}
    return SubscriptionRow(id=number, execution_id=an_id(execution), **(defaults | fields))


def a_kept_event(number: int, **fields: Any) -> PublishedRow:
    defaults: dict[str, Any] = {"org": ORG, "key": "paid", "published_at": START, "expires_at": START + 100}
    return PublishedRow(id=number, **(defaults | fields))


def a_delivery(number: int, **fields: Any) -> DeliveryRow:
    defaults: dict[str, Any] = {"org": ORG, "kind": BROADCAST, "key": "go", "sent_at": START, "bound": number}
    return DeliveryRow(id=number, **(defaults | fields))


def a_dead_event(number: int, **fields: Any) -> DeadEvent:
    defaults: dict[str, Any] = {"org": ORG, "key": "paid", "published_at": START, "reason": "expired", "at": START}
    return DeadEvent(id=number, **(defaults | fields))


def numbered(*rows: SubscriptionRow) -> dict[int, SubscriptionRow]:
    return {row.id: row for row in rows}


def a_match(kind: SubscriptionKind = BROADCAST, key: str = "go", **fields: Any) -> EventMatch:
    values = fields.pop("values", {})
    return EventMatch(**({"org": ORG, "kind": kind, "key": key, "value_at": values.get, "limit": 10} | fields))


class Oldest:
    """A look back that takes the first `count` events, and counts how many it was shown."""

    def __init__(self, count: int, *, after: int = 0, since_at: int = 0) -> None:
        self.count = count
        self.after = after
        self.since_at = since_at
        self.shown = 0

    def choose(self, events: Iterator[PublishedRow], spare: int) -> dict[Any, list[PublishedRow]]:
        chosen = []
        for event in events:
            self.shown += 1
            chosen.append(event)
            if len(chosen) >= self.count + spare:
                break
        return {"all": chosen}


def _give(count: int, loaded: Loaded) -> Changes:
    return Changes(last_id=loaded.last_id + count)


class Promises:
    async def test_a_promise_is_stored_whole(self, open_store: OpenStore) -> None:
        """Every field, when it is made and when it is settled."""
        bench = await Bench.opened(open_store)
        key = (an_id(1), "answer")
        await bench.write(new_executions=[an_execution()], promises={key: a_promise()})
        assert plain((await bench.load(promises={key})).promises[key]) == plain(a_promise())

        await bench.write(promises={key: a_full_promise()})

        loaded = await bench.load(promises={key, (an_id(1), "other")})
        assert list(loaded.promises) == [key]
        assert plain(loaded.promises[key]) == plain(a_full_promise())
        early = a_promise(promise_no=0, state=PromiseState.RESOLVED, settled_at=START, expires_at=START + 9)
        await bench.write(promises={key: early})
        assert plain((await bench.load(promises={key})).promises[key]) == plain(early)
        assert loaded.executions == {an_id(1): an_execution()}

    async def test_promises_are_found_by_workflow_id(self, open_store: OpenStore) -> None:
        """The open execution of a key, or an execution id where a key is asked for."""
        bench = await Bench.opened(open_store)
        await bench.write(
            new_executions=[an_execution()],
            workflow_keys={(ORG, "order"): an_id(1)},
            promises={(an_id(1), "answer"): a_promise()},
        )

        for name in ("order", an_id(1)):
            loaded = await bench.load(workflow_keys={(ORG, name)}, named_promises={(ORG, name, "answer")})
            assert plain(loaded.promises[an_id(1), "answer"]) == plain(a_promise()), name
            assert an_id(1) in loaded.executions

    async def test_a_token_brings_what_it_stands_for(self, open_store: OpenStore) -> None:
        """A promise or an attempt of a task; written again it changes nothing."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        for_promise = TokenRow(token_hash="p", org=ORG, execution_id=execution.id, promise="answer")  # noqa: S106
        for_task = TokenRow(token_hash="t", org=ORG, execution_id=execution.id, task_no=1, attempt=2)  # noqa: S106
        await bench.write(
            new_executions=[execution],
            new_tasks=[a_task(execution)],
            promises={(execution.id, "answer"): a_promise()},
            tokens=[for_promise, for_task, for_promise],
        )

        loaded = await bench.load(tokens={"p"})
        assert loaded.tokens == {"p": for_promise}
        assert list(loaded.promises) == [(execution.id, "answer")]
        loaded = await bench.load(tokens={"t", "unknown"})
        assert loaded.tokens == {"t": for_task}
        assert list(loaded.tasks) == [(execution.id, 1)]
        assert list(loaded.executions) == [execution.id]

    async def test_a_due_timer_brings_its_promise(self, open_store: OpenStore) -> None:
        """And a pending promise that an event may settle its subscription: both end with it."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        timer = replace(a_timer(execution, 3, START), promise="answer")
        promise = a_promise(event_key="answered", timer_no=3)
        wait = a_wait(5, wait_no=-1, kind=EVENT, key="answered", promise="answer")
        await bench.write(
            new_executions=[execution],
            new_timers=[timer],
            promises={(execution.id, "answer"): promise},
            new_subscriptions=numbered(wait),
        )

        loaded = await bench.load(due_timers=10)

        assert loaded.due_timers == [timer]
        assert plain(loaded.promises[execution.id, "answer"]) == plain(promise)
        assert loaded.subscriptions == {5: wait}
        assert loaded.waits == {(execution.id, -1): 5}

    async def test_early_settlements_are_forgotten_in_time(self, open_store: OpenStore) -> None:
        """Those of promises that nobody has made; made ones stay."""
        bench = await Bench.opened(open_store)
        rows = [
            a_promise(name=name, promise_no=number, state=PromiseState.RESOLVED, settled_at=START, expires_at=at)
            for name, number, at in (("early", 0, START + 5), ("later", 0, START + 50), ("made", 1, None))
        ]
        await bench.write(new_executions=[an_execution()], promises={(row.execution_id, row.name): row for row in rows})

        await bench.write(forget_messages_before=START + 5)

        assert {row.name for row in await bench.store.promises(ORG, an_id(1))} == {"later", "made"}

    async def test_promises_of_an_execution_are_read_in_order(self, open_store: OpenStore) -> None:
        """Of this execution and org only."""
        bench = await Bench.opened(open_store)
        rows = [a_promise(name="b"), a_promise(name="a", promise_no=2), a_promise(2, "c")]
        await bench.write(promises={(row.execution_id, row.name): row for row in rows})

        assert [row.name for row in await bench.store.promises(ORG, an_id(1))] == ["b", "a"]
        assert await bench.store.promises(OTHER_ORG, an_id(1)) == []


class Subscriptions:
    shared = True

    async def test_a_subscription_is_stored_whole(self, open_store: OpenStore) -> None:
        """Every field; found by its execution and number, and gone when it is deleted."""
        bench = await Bench.opened(open_store)
        full = a_wait(
            3,
            wait_no=-2,
            kind=EVENT,
            key="größe \U0001f680",
            created_at=START + 1,
            eq_path="order.id",
            eq_value='"7"',
            where="input.order.id == '7'",
            consume=True,
            promise="answer",
            joins=2,
        )
        await bench.write(new_executions=[an_execution()], new_subscriptions=numbered(full))

        loaded = await bench.load(waits={(an_id(1), -2), (an_id(1), 9)})
        assert loaded.subscriptions == {3: full}
        assert loaded.waits == {(an_id(1), -2): 3}
        assert list(loaded.executions) == [an_id(1)]
        await bench.write(deleted_subscriptions=[3, 4])
        assert (await bench.load(waits={(an_id(1), -2)})).subscriptions == {}

    async def test_all_waits_of_an_execution_go_together(self, open_store: OpenStore) -> None:
        """When it is over; those of others stay."""
        bench = await Bench.opened(open_store)
        await bench.write(new_subscriptions=numbered(a_wait(1), a_wait(2), a_wait(3, 2)))

        await bench.write(purge_waits=[an_id(1)])

        assert await bench.store.waits(ORG, an_id(1)) == []
        assert await bench.store.waits(ORG, an_id(2)) == [a_wait(3, 2)]

    async def test_waits_are_matched_in_the_order_of_waiting(self, open_store: OpenStore) -> None:
        """Of one org, kind and key; above one number and below another; no more than asked for."""
        bench = await Bench.opened(open_store)
        cached = [a_wait(number) for number in (1, 2, 4, 5, 8)]
        others = [a_wait(3, key="stop"), a_wait(6, org=OTHER_ORG), a_wait(7, kind=EVENT)]
        await bench.write(new_executions=[an_execution(1)], new_subscriptions=numbered(*reversed(cached), *others))

        plans = [
            a_match(),
            a_match(limit=2),
            a_match(after=2),
            a_match(after=2, bound=8),
            a_match(bound=1),
            a_match(key="nobody"),
            a_match(EVENT),
        ]
        loaded = await bench.load(matches=plans)

        assert loaded.matches == [[1, 2, 4, 5, 8], [1, 2], [4, 5, 8], [4, 5], [], [], [7]]
        assert set(loaded.subscriptions) == {1, 2, 4, 5, 7, 8}
        assert list(loaded.executions) == [an_id(1)]
        assert loaded.under_way == {}

    async def test_waits_are_matched_by_what_they_demand(self, open_store: OpenStore) -> None:
        """Those without a demand always; others if the event has their value at their path. One order for all."""
        bench = await Bench.opened(open_store)

        def demanding(number: int, path: str | None, value: str | None) -> SubscriptionRow:
            return a_wait(number, kind=EVENT, key="paid", eq_path=path, eq_value=value)

        await bench.write(
            new_subscriptions=numbered(
                demanding(1, "id", "7"),
                demanding(2, None, None),
                demanding(3, "id", "8"),
                demanding(4, "who", "7"),
                demanding(5, "who.name", '"x"'),
                demanding(6, "id", "7"),
            )
        )

        async def matched(values: dict[str, str], **fields: Any) -> list[int]:
            return (await bench.load(matches=[a_match(EVENT, "paid", values=values, **fields)])).matches[0]

        assert await matched({}) == [2]
        assert await matched({"id": "7"}) == [1, 2, 6]
        assert await matched({"id": "7"}, limit=2) == [1, 2]
        assert await matched({"id": "7"}, after=1) == [2, 6]
        assert await matched({"id": "8", "who": "7", "who.name": '"x"'}) == [2, 3, 4, 5]

    async def test_messages_are_matched_by_correlation(self, open_store: OpenStore) -> None:
        """An equality with an empty path."""
        bench = await Bench.opened(open_store)
        rows = [
            a_wait(number, kind=MESSAGE, key="paid", eq_path="", eq_value=value)
            for number, value in ((1, "a"), (2, "b"), (3, "a"))
        ]
        await bench.write(new_subscriptions=numbered(*rows))

        loaded = await bench.load(matches=[a_match(MESSAGE, "paid", values={"": key}) for key in ("a", "b", "c")])

        assert loaded.matches == [[1, 3], [2], []]

    async def test_a_match_brings_the_promise_that_an_event_settles(self, open_store: OpenStore) -> None:
        """With its row, so that it can be settled in the same transaction."""
        bench = await Bench.opened(open_store)
        wait = a_wait(1, wait_no=-1, kind=EVENT, key="answered", promise="answer")
        await bench.write(
            new_executions=[an_execution()],
            new_subscriptions=numbered(wait),
            promises={(an_id(1), "answer"): a_promise(event_key="answered")},
        )

        loaded = await bench.load(matches=[a_match(EVENT, "answered")])

        assert loaded.matches == [[1]]
        assert list(loaded.promises) == [(an_id(1), "answer")]
        assert list(loaded.executions) == [an_id(1)]

    async def test_waits_are_read_for_people(self, open_store: OpenStore) -> None:
        """Of an execution, and of a key: the longest waiting first, up to a limit; of one org."""
        bench = await Bench.opened(open_store)
        rows = [a_wait(1), a_wait(2, 2), a_wait(3), a_wait(4, key="stop")]
        await bench.write(new_subscriptions=numbered(*rows))
        store = bench.store

        assert [row.id for row in await store.waits(ORG, an_id(1))] == [1, 3, 4]
        assert [row.id for row in await store.waits_of_key(ORG, BROADCAST, "go", 10)] == [1, 2, 3]
        assert [row.id for row in await store.waits_of_key(ORG, BROADCAST, "go", 2)] == [1, 2]
        assert await store.waits_of_key(ORG, EVENT, "go", 10) == []
        assert await store.waits(OTHER_ORG, an_id(1)) == []
        assert await store.waits_of_key(OTHER_ORG, BROADCAST, "go", 10) == []

    async def test_numbers_only_grow(self, open_store: OpenStore) -> None:
        """Whoever asks gets numbers that nobody has had: those after `last_id`."""
        bench = await Bench.opened(open_store)
        first = (await bench.load(numbering=True)).last_id
        given = first
        for count in (7, 2):
            loaded = await bench.run(LoadPlan(numbering=True), partial(_give, count))
            assert loaded.last_id >= given
            given = loaded.last_id + count
        assert (await bench.load(numbering=True)).last_id >= given > first
        assert (await bench.load()).last_id == 0

    async def test_two_stores_never_give_the_same_number(self, open_store: OpenStore) -> None:
        """Each transaction goes on after the other one's end."""
        if not self.shared:
            raise SkipTest("a database of this store has one owner")
        benches = [await Bench.opened(open_store) for _ in range(2)]
        given: list[int] = []

        def take(loaded: Loaded) -> Changes:
            given.append(loaded.last_id + 1)
            return Changes(last_id=loaded.last_id + 1)

        await asyncio.gather(*(bench.run(LoadPlan(numbering=True), take) for bench in benches * 25))

        last = (await benches[0].load(numbering=True)).last_id
        # A transaction that had to be repeated has decided twice; the numbers it gave first were never written.
        assert len(set(given)) >= 50
        assert max(given) <= last

    async def test_missing_waits_and_promises_are_found(self, open_store: OpenStore) -> None:
        """Of executions at rest: a wait without its subscription, a promise without its row, timer or subscription."""
        bench = await Bench.opened(open_store)
        waits = tuple(Wait(kind, number=number) for number, kind in enumerate(("event", "message", "broadcast"), 1))
        held = tuple(Wait("promise", number=number) for number in (1, 2, 3))
        lost, sound, promising = (
            an_execution(1, waiting_for=waits),
            an_execution(2, waiting_for=(*waits, Wait("promise", number=1))),
            an_execution(3, waiting_for=held),
        )
        rows = [a_wait(10 + number, 2, wait_no=number) for number in (1, 2, 3)]
        promises = [
            a_promise(2, timer_no=1, event_key="k"),
            a_promise(3, "timed", promise_no=1, timer_no=1),
            a_promise(3, "keyed", promise_no=2, event_key="k"),
        ]
        await bench.write(
            new_executions=[lost, sound, promising],
            new_subscriptions=numbered(
                a_wait(2, 1, wait_no=2), *rows, a_wait(20, 2, wait_no=-1, kind=EVENT, promise="answer")
            ),
            new_timers=[a_timer(sound)],
            promises={(row.execution_id, row.name): row for row in promises},
        )

        assert await bench.store.inconsistencies(ORG, 10) == [
            Inconsistency(execution_id=lost.id, missing_waits=(1, 3)),
            Inconsistency(execution_id=promising.id, missing_promises=(1, 2, 3)),
        ]


class PublishedEvents:
    async def test_a_kept_event_is_stored_whole(self, open_store: OpenStore) -> None:
        """Every field; afterwards only the count of those who got it changes."""
        bench = await Bench.opened(open_store)
        event = a_kept_event(
            3, data=_DATA, published_at=START + 1, correlation="c", created_before=True, consume=True, delivered=2
        )
        await bench.write(published={3: event})
        assert plain((await bench.load(published={3, 4})).published[3]) == plain(event)

        event.delivered = 5
        await bench.write(published={3: event})
        assert (await bench.load(published={3})).published[3].delivered == 5

        await bench.write(deleted_published=[3])
        assert (await bench.load(published={3})).published == {}

    async def test_a_look_back_sees_the_kept_events_of_its_key(self, open_store: OpenStore) -> None:
        """The oldest first; after a number, since a time, not expired, of its correlation; only as many as it wants."""
        bench = await Bench.opened(open_store)
        events = [
            a_kept_event(1, expires_at=START),
            a_kept_event(2),
            a_kept_event(3, correlation="c"),
            a_kept_event(4, key="billed"),
            a_kept_event(5, org=OTHER_ORG),
            a_kept_event(6, published_at=START + 2),
            a_kept_event(7, published_at=START + 3),
        ]
        await bench.write(published={event.id: event for event in events})

        async def seen(back: Oldest, correlation: str | None = None) -> list[int]:
            at = (ORG, "paid", correlation)
            loaded = await bench.load(look_backs={at: back})
            chosen = loaded.look_backs[at]["all"]
            assert all(loaded.published[event.id] is event for event in chosen)
            return [event.id for event in chosen]

        assert await seen(Oldest(9)) == [2, 6, 7]
        assert await seen(Oldest(9, after=2)) == [6, 7]
        assert await seen(Oldest(9, since_at=START + 3)) == [7]
        assert await seen(Oldest(9), "c") == [3]
        few = Oldest(1)
        assert await seen(few) == [2]
        assert few.shown == 1

    async def test_a_key_knows_how_many_it_keeps(self, open_store: OpenStore) -> None:
        """Its counts, what it starts, and the oldest events: as many as the batch could push out."""
        bench = await Bench.opened(open_store)
        counted = EventKeyRow(org=ORG, key="paid", retained=4, dropped=2)
        triggers = [
            TriggerRow(org=ORG, key="paid", kind="k", version="2", queue="q", where="input.a == 1"),
            TriggerRow(org=ORG, key="billed", kind="k", version="1", queue="default"),
        ]
        await bench.write(
            published={number: a_kept_event(number) for number in (1, 2, 3, 4)},
            event_keys={(ORG, "paid"): counted},
            triggers=triggers,
        )

        plan: dict[str, Any] = {"event_keys": {(ORG, "paid"), (ORG, "x")}, "matches": [a_match(EVENT, "paid")]}
        loaded = await bench.load(**plan, retained_per_key=3)

        assert loaded.event_keys == {(ORG, "paid"): counted}
        assert loaded.triggers == {(ORG, "paid"): [triggers[0]]}
        assert [event.id for event in loaded.oldest[ORG, "paid"]] == [1, 2]
        assert (await bench.load(**plan, retained_per_key=5)).oldest == {}
        assert await bench.store.event_key(ORG, "paid") == counted
        assert await bench.store.event_key(OTHER_ORG, "paid") == EventKeyRow(org=OTHER_ORG, key="paid")

    async def test_expired_events_come_with_their_key(self, open_store: OpenStore) -> None:
        """The earliest first, up to a page; whose time is over at this very moment."""
        bench = await Bench.opened(open_store)
        events = [a_kept_event(number, expires_at=START + at) for number, at in ((1, 9), (2, -1), (3, 0), (4, 1))]
        counted = EventKeyRow(org=ORG, key="paid", retained=4)
        await bench.write(published={event.id: event for event in events}, event_keys={(ORG, "paid"): counted})

        loaded = await bench.load(expired_events=10)

        assert [event.id for event in loaded.expired_events] == [2, 3]
        assert loaded.event_keys == {(ORG, "paid"): counted}
        assert [event.id for event in (await bench.load(expired_events=1)).expired_events] == [2]

    async def test_kept_and_dead_events_are_read_newest_first(self, open_store: OpenStore) -> None:
        """Of an org, of a key, below a number, up to a limit."""
        bench = await Bench.opened(open_store)
        keys = ("paid", "billed", "paid")
        await bench.write(
            published={number: a_kept_event(number, key=key) for number, key in enumerate(keys, 1)},
            dead_events=[a_dead_event(number, key=key, data=_DATA) for number, key in enumerate(keys, 1)],
        )

        for read in (bench.store.published, bench.store.dead_events):
            assert [found.id for found in await read(ORG, None, None, 10)] == [3, 2, 1]
            assert [found.id for found in await read(ORG, "paid", None, 10)] == [3, 1]
            assert [found.id for found in await read(ORG, None, 3, 1)] == [2]
            assert await read(OTHER_ORG, None, None, 10) == []

    async def test_a_dead_event_can_be_replayed(self, open_store: OpenStore) -> None:
        """Stored whole, found by number, and gone when it is published again."""
        bench = await Bench.opened(open_store)
        dead = a_dead_event(3, data=_DATA, correlation="c", reason="dropped", at=START + 4)
        await bench.write(dead_events=[dead, dead])
        assert plain((await bench.load(dead_events={3, 4})).dead_events[3]) == plain(dead)

        await bench.write(replayed_dead_events=[3])
        assert (await bench.load(dead_events={3})).dead_events == {}
