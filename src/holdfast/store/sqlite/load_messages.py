"""Answers the part of a batch's plan that is about promises, subscriptions, published events and deliveries.

Whatever it finds names executions, which are added to those that the batch wants.
"""

from __future__ import annotations

import sqlite3
from collections import Counter

from holdfast.model.messages import (
    EventKeyRow,
    PromiseState,
    SubscriptionKind,
    SubscriptionRow,
    TokenRow,
    TriggerRow,
)
from holdfast.store.matches import KEPT_KINDS, MOST_DELIVERIES, match_of
from holdfast.store.message_rows import DELIVERIES, PROMISES, PUBLISHED, SUBSCRIPTIONS
from holdfast.store.protocol import EventMatch, Loaded, LoadPlan
from holdfast.store.rows import Row
from holdfast.store.sqlite.plain import load_groups, load_rows
from holdfast.store.sqlite.statements import rows, statement

_PROMISES = rows("promises", "by_key")
_BY_WAIT = rows("subscriptions", "by_wait")
_PATHS = statement("subscriptions", "paths")
_UNFILTERED = statement("subscriptions", "unfiltered")
_WITH_VALUE = statement("subscriptions", "with_value")
_LAST_ID = statement("subscriptions", "last_id")
_LOOK_BACK = statement("published", "look_back")
_OLDEST = statement("published", "oldest")
_EXPIRED = statement("published", "expired")
_PUBLISHED = rows("published", "by_id")
_OPEN_DELIVERIES = statement("deliveries", "open")
_UNDER_WAY = rows("deliveries", "under_way")
_NO_BOUND = 2**62


class MessageLoad:
    """One load; see the module's text. `executions` and `tasks` are what the whole load wants, and grow here."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        plan: LoadPlan,
        loaded: Loaded,
        *,
        executions: set[str],
        tasks: set[tuple[str, int]],
        due_promises: set[tuple[str, str]],
    ) -> None:
        self.connection = connection
        self.plan = plan
        self.loaded = loaded
        self.executions = executions
        self.tasks = tasks
        self.promises = due_promises | plan.promises
        self._paths: dict[tuple[str, str, str], list[str]] = {}
        self._unfiltered: dict[tuple[object, ...], list[Row]] = {}

    def run(self) -> None:
        plan = self.plan
        self._follow_tokens()
        self._load_waits()
        if self.promises or plan.named_promises:
            self._load_promises()
        self._load_events()
        if plan.expired_events:
            self._load_expired()
        self._load_keys()
        if plan.numbering:
            found = self.connection.execute(_LAST_ID).fetchone()
            self.loaded.last_id = found[0] if found is not None else 0

    def _load_waits(self) -> None:
        for row in _BY_WAIT.fetch(self.connection, sorted(self.plan.waits)):
            self._keep(SUBSCRIPTIONS.from_row(row))
        self.loaded.matches.extend(self._match(match) for match in self.plan.matches)
        if self.plan.deliveries:
            self._load_deliveries()

    def _load_events(self) -> None:
        plan, loaded = self.plan, self.loaded
        spare = len(plan.matches) + len(plan.published)
        for (org, key, correlation), back in plan.look_backs.items():
            values = (org, key, back.after, back.since_at, loaded.now, correlation)
            found = self.connection.execute(_LOOK_BACK, values)
            events = (loaded.published.get(row[0]) or PUBLISHED.from_row(row) for row in found)
            chosen = loaded.look_backs[org, key, correlation] = back.choose(events, spare)
            found.close()
            loaded.published.update({event.id: event for events in chosen.values() for event in events})
        wanted = plan.published.union(delivery.id for delivery, _, _ in loaded.deliveries)
        for row in _PUBLISHED.fetch(self.connection, [(number,) for number in sorted(wanted)]):
            loaded.published.setdefault(row[0], PUBLISHED.from_row(row))

    def _keep(self, subscription: SubscriptionRow) -> int:
        self.loaded.subscriptions[subscription.id] = subscription
        self.loaded.waits[subscription.execution_id, subscription.wait_no] = subscription.id
        self.executions.add(subscription.execution_id)
        if subscription.promise is not None:
            self.promises.add((subscription.execution_id, subscription.promise))
        return subscription.id

    def _follow_tokens(self) -> None:
        for token in self.loaded.rows.get(TokenRow, {}).values():
            if token.task_no is not None:
                self.tasks.add((token.execution_id, token.task_no))
            if token.promise is not None:
                self.promises.add((token.execution_id, token.promise))
            self.executions.add(token.execution_id)

    def _load_promises(self) -> None:
        """A pending one that an event may settle brings its subscription along."""
        loaded = self.loaded
        for org, workflow_id, name in self.plan.named_promises:
            self.promises.add((loaded.workflow_keys.get((org, workflow_id), workflow_id), name))
        waits = []
        for row in _PROMISES.fetch(self.connection, sorted(self.promises)):
            promise = PROMISES.from_row(row)
            loaded.promises[promise.execution_id, promise.name] = promise
            if promise.event_key is not None and promise.state is PromiseState.PENDING:
                waits.append((promise.execution_id, -promise.promise_no))
        for row in _BY_WAIT.fetch(self.connection, waits):
            self._keep(SUBSCRIPTIONS.from_row(row))
        self.executions.update(execution_id for execution_id, _ in self.promises)

    def _match(self, match: EventMatch) -> list[int]:
        """Candidates in the order of waiting: those without a demand, and those whose demand the event meets."""
        at = (match.org, str(match.kind), match.key)
        bound = _NO_BOUND if match.bound is None else match.bound
        found = self._without_demand((*at, match.after, bound, match.limit))
        for path in self._paths_of(at):
            value = match.value_at(path)
            if value is not None:
                values = (*at, path, value, match.after, bound, match.limit)
                found = found + self.connection.execute(_WITH_VALUE, values).fetchall()
        return [self._keep(SUBSCRIPTIONS.from_row(row)) for row in sorted(found)[: match.limit]]

    def _without_demand(self, values: tuple[object, ...]) -> list[Row]:
        """The same for all events of a batch that go to the same key."""
        found = self._unfiltered.get(values)
        if found is None:
            found = self._unfiltered[values] = self.connection.execute(_UNFILTERED, values).fetchall()
        return found

    def _paths_of(self, at: tuple[str, str, str]) -> list[str]:
        paths = self._paths.get(at)
        if paths is None:
            paths = self._paths[at] = [path for (path,) in self.connection.execute(_PATHS, at).fetchall()]
        return paths

    def _load_keys(self) -> None:
        """How many events each key keeps, what it starts and what is on its way to it; and the oldest of its events, as
        many as this batch could push out."""
        plan, loaded = self.plan, self.loaded
        keys = plan.event_keys.union((event.org, event.key) for event in loaded.published.values())
        keys.update((delivery.org, delivery.key) for delivery, _, _ in loaded.deliveries)
        if not keys and not plan.matches:
            return
        counted = loaded.rows[EventKeyRow] = load_rows(self.connection, EventKeyRow, keys)
        loaded.groups[TriggerRow] = load_groups(self.connection, TriggerRow, keys)
        self._load_under_way(keys)
        sent = Counter((match.org, match.key) for match in plan.matches)
        for at, count in sent.items():
            kept = counted.get(at)
            excess = 0 if kept is None else kept.retained + count - plan.retained_per_key
            if excess > 0:
                oldest = self.connection.execute(_OLDEST, (*at, excess)).fetchall()
                loaded.oldest[at] = [loaded.published.setdefault(row[0], PUBLISHED.from_row(row)) for row in oldest]

    def _load_under_way(self, keys: set[tuple[str, str]]) -> None:
        wanted = {(org, str(kind), key) for org, key in keys for kind in KEPT_KINDS}
        wanted.update((match.org, str(match.kind), match.key) for match in self.plan.matches)
        for org, kind, key, number in _UNDER_WAY.fetch(self.connection, sorted(wanted)):
            self.loaded.under_way.setdefault((org, SubscriptionKind(kind), key), set()).add(number)

    def _load_expired(self) -> None:
        loaded = self.loaded
        for row in self.connection.execute(_EXPIRED, (loaded.now, self.plan.expired_events)).fetchall():
            loaded.expired_events.append(loaded.published.setdefault(row[0], PUBLISHED.from_row(row)))

    def _load_deliveries(self) -> None:
        """A page for the oldest one of each key: a later one must not overtake it. Keys get equal shares."""
        found = self.connection.execute(_OPEN_DELIVERIES, (min(MOST_DELIVERIES, self.plan.deliveries),)).fetchall()
        share = self.plan.deliveries // len(found) if found else 0
        for row in found:
            delivery = DELIVERIES.from_row(row)
            page = self._match(match_of(delivery, share))
            self.loaded.deliveries.append((delivery, page, len(page) >= share))
