"""Deliveries: what is on its way to many, page by page."""

from __future__ import annotations

from msgspec import Raw

from holdfast.model.executions import RequestRow
from holdfast.model.messages import (
    SubscriptionKind,
)
from holdfast.model.values import NULL
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.messages import a_delivery, a_kept_event, a_match, a_wait, numbered
from verification.stores.records import ORG, OTHER_ORG, an_execution, an_id
from verification.stores.writing import plain

BROADCAST, EVENT, MESSAGE = SubscriptionKind.BROADCAST, SubscriptionKind.EVENT, SubscriptionKind.MESSAGE
_DATA = Raw(b'{"a": [1, 2.50, null], "\xc3\xbc": "x"}')


class Deliveries:
    async def test_a_delivery_is_stored_whole(self, open_store: OpenStore) -> None:
        """Every field; afterwards how far it has come, how many got it and when it was done."""
        bench = await Bench.opened(open_store)
        full = a_delivery(
            9, kind=MESSAGE, key="paid", data=_DATA, correlation="c", consume=True, kept=True, idempotency_key="k"
        )
        await bench.write(deliveries={9: full})
        assert plain(await bench.store.delivery(ORG, 9)) == plain(full)

        full.cursor, full.delivered, full.done_at = 5, 3, START + 1
        await bench.write(deliveries={9: full})

        assert plain(await bench.store.delivery(None, 9)) == plain(full)
        assert await bench.store.delivery(OTHER_ORG, 9) is None
        assert await bench.store.delivery(ORG, 8) is None

    async def test_the_next_page_is_loaded(self, open_store: OpenStore) -> None:
        """After the cursor and below the bound, with the executions; `more` says that the page is full."""
        bench = await Bench.opened(open_store)
        waits = [a_wait(number, number) for number in (1, 2, 3, 4, 5, 9)]
        await bench.write(
            new_executions=[an_execution(number) for number in (1, 2, 3, 4, 5, 9)],
            new_subscriptions=numbered(*waits),
            deliveries={6: a_delivery(6, cursor=1)},
        )

        ((delivery, page, more),) = (await bench.load(deliveries=3)).deliveries
        assert (delivery.id, page, more) == (6, [2, 3, 4], True)
        loaded = await bench.load(deliveries=10)
        ((_, page, more),) = loaded.deliveries
        assert (page, more) == ([2, 3, 4, 5], False)
        assert sorted(loaded.executions) == [an_id(number) for number in (2, 3, 4, 5)]

    async def test_the_oldest_of_each_key_goes_first(self, open_store: OpenStore) -> None:
        """A later one of the same key waits; other keys have their share of the page; done ones are left alone."""
        bench = await Bench.opened(open_store)
        waits = [*(a_wait(number) for number in (1, 2, 3)), *(a_wait(number, key="stop") for number in (4, 5, 6))]
        deliveries = [
            a_delivery(10, done_at=START),
            a_delivery(11),
            a_delivery(12),
            a_delivery(13, key="stop"),
            a_delivery(14, kind=EVENT, data=NULL),
        ]
        await bench.write(
            new_subscriptions=numbered(*waits), deliveries={delivery.id: delivery for delivery in deliveries}
        )

        loaded = await bench.load(deliveries=6)

        found = [(delivery.id, page, more) for delivery, page, more in loaded.deliveries]
        assert found == [(11, [1, 2], True), (13, [4, 5], True), (14, [], False)]

    async def test_a_match_tells_what_is_on_its_way(self, open_store: OpenStore) -> None:
        """To its own org, kind and key: what is sent now must not overtake it."""
        bench = await Bench.opened(open_store)
        deliveries = [
            a_delivery(1, done_at=START),
            a_delivery(2),
            a_delivery(3),
            a_delivery(4, org=OTHER_ORG),
            a_delivery(5, key="stop", done_at=START),
        ]
        await bench.write(deliveries={delivery.id: delivery for delivery in deliveries})

        loaded = await bench.load(matches=[a_match(), a_match(key="stop"), a_match(EVENT)])

        assert loaded.under_way == {(ORG, BROADCAST, "go"): {2, 3}}

    async def test_a_delivery_brings_what_was_kept_of_it(self, open_store: OpenStore) -> None:
        """An event that is on its way and kept for those who look back: one number, two rows."""
        bench = await Bench.opened(open_store)
        await bench.write(
            published={7: a_kept_event(7)}, deliveries={7: a_delivery(7, kind=EVENT, key="paid", kept=True)}
        )

        assert list((await bench.load(deliveries=5)).published) == [7]

    async def test_a_delivery_is_due_until_it_is_done(self, open_store: OpenStore) -> None:
        """Whoever asks what is due next is told: its process may be gone."""
        bench = await Bench.opened(open_store)
        await bench.write(deliveries={1: a_delivery(1, sent_at=START - 5)})
        assert await bench.store.next_due_at(START) == START - 5
        await bench.write(deliveries={1: a_delivery(1, sent_at=START - 5, done_at=START)})
        assert await bench.store.next_due_at(START) is None

    async def test_a_delivery_is_forgotten_when_nobody_can_ask_for_it(self, open_store: OpenStore) -> None:
        """A day after it was done, unless the idempotency key it was sent with still counts."""
        bench = await Bench.opened(open_store)
        day = 24 * 3600 * 1_000_000
        request = RequestRow(org=ORG, request_id="k", fingerprint="f", answer=b"{}", created_at=START)
        deliveries = [
            a_delivery(1, done_at=START),
            a_delivery(2, done_at=START, idempotency_key="k"),
            a_delivery(3, done_at=START, idempotency_key="forgotten"),
            a_delivery(4, done_at=START + 9),
            a_delivery(5),
        ]
        await bench.write(deliveries={delivery.id: delivery for delivery in deliveries}, requests=[request])

        await bench.write(forget_messages_before=START + day + 1)

        found = [number for number in range(1, 6) if await bench.store.delivery(ORG, number) is not None]
        assert found == [2, 4, 5]
