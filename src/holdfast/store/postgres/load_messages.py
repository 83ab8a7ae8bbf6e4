"""Answers the part of a batch's plan that is about promises, subscriptions, published events and deliveries.

Whoever publishes, throws or begins to wait holds the lock of his topic. Under it waits can end, because those belong to
their executions, but none can begin, and no event can come.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from holdfast.expressions.lookups import reader
from holdfast.model.messages import (
    DeliveryRow,
    EventKeyRow,
    PromiseState,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
)
from holdfast.store.message_rows import (
    row_to_dead,
    row_to_delivery,
    row_to_promise,
    row_to_published,
    row_to_subscription,
    row_to_token,
    row_to_trigger,
)
from holdfast.store.postgres.statements import Connection, columns, statement
from holdfast.store.protocol import EventMatch, Loaded, LoadPlan, LookBack, LookBackKey, TaskKey

_PROMISES = statement("promises", "by_key")
_TOKENS = statement("promises", "tokens")
_BY_WAIT = statement("subscriptions", "by_wait")
_STILL_THERE = statement("subscriptions", "still_there")
_PATHS = statement("subscriptions", "paths")
_UNFILTERED = statement("subscriptions", "unfiltered")
_WITH_VALUE = statement("subscriptions", "with_value")
_LOCK_TOPICS = statement("subscriptions", "lock_topics")
_NEXT_NUMBERS = statement("subscriptions", "next_numbers")
_LOOK_BACK = statement("published", "look_back")
_OLDEST = statement("published", "oldest")
_EXPIRED = statement("published", "expired")
_TOPICS = statement("published", "topics")
_PUBLISHED = statement("published", "by_id")
_DEAD = statement("published", "dead_by_id")
_KEYS = statement("published", "keys")
_TRIGGERS = statement("published", "triggers")
_OPEN_DELIVERIES = statement("deliveries", "open")
_UNDER_WAY = statement("deliveries", "under_way")

NUMBERS: Final = 65_536
"""How many numbers a transaction may give away: the step of the sequence."""

_NO_BOUND: Final = 2**62
_DELIVERIES: Final = 100
_TOPICS_COUNT: Final = 1_024
_GLANCE: Final = 256
_KEPT_KINDS: Final = (SubscriptionKind.EVENT, SubscriptionKind.MESSAGE)

Topic = tuple[str, str]


def lock_of(topic: Topic) -> int:
    """The lock that all nodes know a topic by."""
    return zlib.crc32("\n".join(topic).encode()) % _TOPICS_COUNT


class MessageLoad:
    """One load: `lock_topics`, `find`, then (with the heads locked) `have_waits_ended` and `load`."""

    def __init__(self, connection: Connection, plan: LoadPlan, loaded: Loaded) -> None:
        self.connection = connection
        self.plan = plan
        self.loaded = loaded
        self.executions: set[str] = set()
        self.tasks: set[TaskKey] = set()
        self._promises = set(plan.promises)
        self._expired: list[int] = []
        self._topics: set[Topic] = set()

    async def lock_topics(self, *, deliveries: bool) -> None:
        """All topics of the plan, and those of what it names by number."""
        plan = self.plan
        topics = self._topics
        topics |= plan.topics
        topics |= plan.event_keys
        topics.update((match.org, match.key) for match in plan.matches)
        topics.update((org, key) for org, key, _ in plan.look_backs)
        named = [*plan.published, *plan.dead_events]
        if named:
            topics.update((row[0], row[1]) for row in await self.connection.fetch(_TOPICS, named))
        if plan.expired_events:
            found = await self.connection.fetch(_EXPIRED, self.loaded.now, plan.expired_events)
            self._expired = [row[0] for row in found]
            topics.update((row[1], row[2]) for row in found)
        if deliveries:
            topics.update((delivery.org, delivery.key) for delivery in await self._open_deliveries())
        if topics:
            await self.connection.execute(_LOCK_TOPICS, sorted({lock_of(topic) for topic in topics}))
        if plan.numbering:
            self.loaded.last_id = await self.connection.fetchval(_NEXT_NUMBERS)
        self._deliveries = await self._open_deliveries() if deliveries else []

    async def _open_deliveries(self) -> list[DeliveryRow]:
        found = await self.connection.fetch(_OPEN_DELIVERIES, min(_DELIVERIES, self.plan.deliveries))
        return [row_to_delivery(row) for row in found]

    # --- before the heads are locked ---

    async def find(self) -> None:
        plan, loaded = self.plan, self.loaded
        if plan.tokens:
            await self._find_tokens()
        for org, workflow_id, name in plan.named_promises:
            self._promises.add((loaded.workflow_keys.get((org, workflow_id), workflow_id), name))
        self.executions.update(execution_id for execution_id, _ in self._promises)
        self.executions.update(execution_id for execution_id, _ in plan.waits)
        loaded.matches = await self._match(plan.matches)
        if self._deliveries:
            await self._find_deliveries()

    async def _find_tokens(self) -> None:
        for row in await self.connection.fetch(_TOKENS, sorted(self.plan.tokens)):
            token = self.loaded.tokens[row[0]] = row_to_token(row)
            if token.task_no is not None:
                self.tasks.add((token.execution_id, token.task_no))
            if token.promise is not None:
                self._promises.add((token.execution_id, token.promise))
            self.executions.add(token.execution_id)

    async def _find_deliveries(self) -> None:
        """A page for the oldest one of each key: a later one must not overtake it. Keys get equal shares. One that came
        after we chose our topics is left for the next time."""
        held = {lock_of(topic) for topic in self._topics}
        cached = [delivery for delivery in self._deliveries if lock_of((delivery.org, delivery.key)) in held]
        share = self.plan.deliveries // len(cached) if cached else 0
        pages = await self._match([_match_of(delivery, share) for delivery in cached])
        for delivery, page in zip(cached, pages, strict=True):
            self.loaded.deliveries.append((delivery, page, len(page) >= share))

    async def _match(self, matches: list[EventMatch]) -> list[list[int]]:
        """Candidates in the order of waiting: those without a demand, and those whose demand the event meets."""
        if not matches:
            return []
        found: list[dict[int, None]] = [{} for _ in matches]
        shared: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for number, match in enumerate(matches):
            shared[(*_at(match), match.after, _bound(match), match.limit)].append(number)
        asked = [(number, *key) for number, key in enumerate(shared)]
        groups = list(shared.values())
        for row in await self.connection.fetch(_UNFILTERED, *columns(asked, 7)):
            kept = self._keep(row_to_subscription(row[1:]))
            for number in groups[row[0]]:
                found[number][kept] = None
        demands = await self._demands(matches)
        if demands:
            for row in await self.connection.fetch(_WITH_VALUE, *columns(demands, 9)):
                found[row[0]][self._keep(row_to_subscription(row[1:]))] = None
        return [sorted(ids)[: match.limit] for ids, match in zip(found, matches, strict=True)]

    async def _demands(self, matches: list[EventMatch]) -> list[tuple[Any, ...]]:
        """What the events say at the paths that waits of their keys are searched by."""
        keys = {_at(match): number for number, match in enumerate(matches)}
        asked = [(number, *at) for at, number in keys.items()]
        paths: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for number, path in await self.connection.fetch(_PATHS, *columns(asked, 4)):
            paths[_at(matches[number])].append(path)
        demands = []
        for number, match in enumerate(matches):
            for path in paths.get(_at(match), ()):
                value = match.value_at(path)
                if value is not None:
                    demands.append((number, *_at(match), match.after, _bound(match), match.limit, path, value))
        return demands

    def _keep(self, subscription: SubscriptionRow) -> int:
        self.loaded.subscriptions[subscription.id] = subscription
        self.loaded.waits[subscription.execution_id, subscription.wait_no] = subscription.id
        self.executions.add(subscription.execution_id)
        if subscription.promise is not None:
            self._promises.add((subscription.execution_id, subscription.promise))
        return subscription.id

    # --- with the heads locked ---

    async def have_waits_ended(self) -> bool:
        """Forget those that have. True if a full page of candidates got shorter: who would come next is not known."""
        loaded = self.loaded
        if not loaded.subscriptions:
            return False
        found = await self.connection.fetch(_STILL_THERE, list(loaded.subscriptions))
        ended = loaded.subscriptions.keys() - {row[0] for row in found}
        if not ended:
            return False
        for number in ended:
            gone = loaded.subscriptions.pop(number)
            loaded.waits.pop((gone.execution_id, gone.wait_no), None)
        cut = any(
            len(page) >= match.limit and not ended.isdisjoint(page)
            for page, match in zip(loaded.matches, self.plan.matches, strict=True)
        )
        loaded.matches = [[number for number in page if number not in ended] for page in loaded.matches]
        loaded.deliveries = [
            (delivery, [number for number in page if number not in ended], more)
            for delivery, page, more in loaded.deliveries
        ]
        return cut

    async def load(self) -> None:
        plan, loaded = self.plan, self.loaded
        self._promises.update((t.execution_id, t.promise) for t in loaded.due_timers if t.promise is not None)
        if plan.waits:
            await self._load_waits(plan.waits)
        if self._promises:
            await self._load_promises()
        await self._load_look_backs()
        wanted = plan.published.union(delivery.id for delivery, _, _ in loaded.deliveries).union(self._expired)
        if wanted:
            for row in await self.connection.fetch(_PUBLISHED, list(wanted)):
                loaded.published.setdefault(row[0], row_to_published(row))
        loaded.expired_events = [loaded.published[number] for number in self._expired if number in loaded.published]
        if plan.dead_events:
            for row in await self.connection.fetch(_DEAD, list(plan.dead_events)):
                loaded.dead_events[row[0]] = row_to_dead(row)
        await self._load_keys()

    async def _load_waits(self, wanted: Iterable[TaskKey]) -> None:
        for row in await self.connection.fetch(_BY_WAIT, *columns(wanted, 2)):
            self._keep(row_to_subscription(row))

    async def _load_promises(self) -> None:
        """A pending one that an event may settle brings its subscription along."""
        waits = []
        for row in await self.connection.fetch(_PROMISES, *columns(self._promises, 2)):
            promise = row_to_promise(row)
            self.loaded.promises[promise.execution_id, promise.name] = promise
            if promise.event_key is not None and promise.state is PromiseState.PENDING:
                waits.append((promise.execution_id, -promise.promise_no))
        if waits:
            await self._load_waits(waits)

    async def _load_look_backs(self) -> None:
        """The first few events are enough for most who look back."""
        asked = list(self.plan.look_backs.items())
        if not asked:
            return
        first = await self._kept(asked, _GLANCE)
        for (at, back), rows in zip(asked, first, strict=True):
            chosen, hungry = self._choose(back, rows)
            if hungry and len(rows) >= _GLANCE:
                (all_rows,) = await self._kept([(at, back)], _NO_BOUND)
                chosen, _ = self._choose(back, all_rows)
            self.loaded.look_backs[at] = chosen
            for events in chosen.values():
                self.loaded.published.update({event.id: event for event in events})

    def _choose(self, back: LookBack, rows: list[Any]) -> tuple[dict[Any, list[PublishedRow]], bool]:
        """What the waits may have of these; and whether they would have looked at more."""
        hungry = False
        published = self.loaded.published

        def events() -> Iterator[PublishedRow]:
            nonlocal hungry
            for row in rows:
                yield published.get(row[0]) or row_to_published(row)
            hungry = True

        spare = len(self.plan.matches) + len(self.plan.published)
        return back.choose(events(), spare), hungry

    async def _kept(self, asked: list[tuple[LookBackKey, LookBack]], most: int) -> list[list[Any]]:
        wanted = [(number, *at, back.after, back.since_at) for number, (at, back) in enumerate(asked)]
        found: list[list[Any]] = [[] for _ in asked]
        for row in await self.connection.fetch(_LOOK_BACK, *columns(wanted, 6), self.loaded.now, most):
            found[row[0]].append(row[1:])
        return found

    async def _load_keys(self) -> None:
        """How many events each key keeps, what it starts and what is on its way to it; and the oldest of its events, as
        many as this batch could push out."""
        plan, loaded = self.plan, self.loaded
        keys = plan.event_keys.union((event.org, event.key) for event in loaded.published.values())
        keys.update((delivery.org, delivery.key) for delivery, _, _ in loaded.deliveries)
        keys.update((event.org, event.key) for event in loaded.dead_events.values())
        if not keys and not plan.matches:
            return
        asked = columns(keys, 2)
        for org, key, retained, dropped in await self.connection.fetch(_KEYS, *asked):
            loaded.event_keys[org, key] = EventKeyRow(org=org, key=key, retained=retained, dropped=dropped)
        for row in await self.connection.fetch(_TRIGGERS, *asked):
            trigger = row_to_trigger(row)
            loaded.triggers.setdefault((trigger.org, trigger.key), []).append(trigger)
        await self._load_under_way(keys)
        await self._load_oldest()

    async def _load_under_way(self, keys: set[Topic]) -> None:
        wanted = {(org, str(kind), key) for org, key in keys for kind in _KEPT_KINDS}
        wanted.update((match.org, str(match.kind), match.key) for match in self.plan.matches)
        for org, kind, key, number in await self.connection.fetch(_UNDER_WAY, *columns(wanted, 3)):
            self.loaded.under_way.setdefault((org, SubscriptionKind(kind), key), set()).add(number)

    async def _load_oldest(self) -> None:
        loaded = self.loaded
        asked: list[tuple[int, str, str, int]] = []
        for at, count in Counter((match.org, match.key) for match in self.plan.matches).items():
            kept = loaded.event_keys.get(at)
            excess = 0 if kept is None else kept.retained + count - self.plan.retained_per_key
            if excess > 0:
                asked.append((len(asked), *at, excess))
        if asked:
            for row in await self.connection.fetch(_OLDEST, *columns(asked, 4)):
                event = loaded.published.setdefault(row[1], row_to_published(row[1:]))
                loaded.oldest.setdefault((event.org, event.key), []).append(event)


def _at(match: EventMatch) -> tuple[str, str, str]:
    return match.org, str(match.kind), match.key


def _bound(match: EventMatch) -> int:
    return _NO_BOUND if match.bound is None else match.bound


def _match_of(delivery: DeliveryRow, limit: int) -> EventMatch:
    correlation = delivery.correlation
    return EventMatch(
        org=delivery.org,
        kind=delivery.kind,
        key=delivery.key,
        value_at=reader(delivery.data) if correlation is None else lambda _: correlation,
        after=delivery.cursor,
        # Younger ones may have joined; the rules know them.
        bound=delivery.bound if delivery.kind is SubscriptionKind.BROADCAST else None,
        limit=limit,
    )
