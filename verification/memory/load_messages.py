"""Answers the part of a plan that is about promises, subscriptions, published events and deliveries."""

from __future__ import annotations

from collections import Counter

from holdfast.expressions.lookups import reader
from holdfast.model.messages import DeliveryRow, PromiseState, PublishedRow, SubscriptionKind, SubscriptionRow
from holdfast.store.protocol import EventMatch, Loaded, LoadPlan
from verification.memory.database import MemoryDatabase, copied

_KEPT_KINDS = (SubscriptionKind.EVENT, SubscriptionKind.MESSAGE)
_DELIVERIES = 100


def load_messages(
    database: MemoryDatabase,
    plan: LoadPlan,
    loaded: Loaded,
    *,
    executions: set[str],
    tasks: set[tuple[str, int]],
    promises: set[tuple[str, str]],
) -> None:
    """`executions` and `tasks` are what the whole load wants, and grow here."""
    _MessageLoad(database, plan, loaded, executions=executions, tasks=tasks, promises=promises).run()


class _MessageLoad:
    def __init__(
        self,
        database: MemoryDatabase,
        plan: LoadPlan,
        loaded: Loaded,
        *,
        executions: set[str],
        tasks: set[tuple[str, int]],
        promises: set[tuple[str, str]],
    ) -> None:
        self.database = database
        self.plan = plan
        self.loaded = loaded
        self.executions = executions
        self.tasks = tasks
        self.promises = promises

    def run(self) -> None:
        plan, loaded = self.plan, self.loaded
        if plan.tokens:
            self._tokens()
        if plan.waits:
            self._keep_waits(plan.waits)
        for match in plan.matches:
            loaded.matches.append(self._match(match))
        if plan.deliveries and self.database.deliveries:
            self._deliveries()
        if self.promises or plan.named_promises:
            self._promises()
        if plan.look_backs or plan.published or plan.dead_events or loaded.deliveries:
            self._events()
        if plan.expired_events:
            over = sorted(
                (row.expires_at, key) for key, row in self.database.published.items() if row.expires_at <= loaded.now
            )
            loaded.expired_events = [self._published(key) for _, key in over[: plan.expired_events]]
        if plan.event_keys or plan.matches or loaded.published or loaded.deliveries:
            self._keys()
        if plan.numbering:
            loaded.last_id = self.database.last_id

    def _tokens(self) -> None:
        for key in self.plan.tokens:
            token = self.database.tokens.get(key)
            if token is None:
                continue
            self.loaded.tokens[key] = token
            self.executions.add(token.execution_id)
            if token.task_no is not None:
                self.tasks.add((token.execution_id, token.task_no))
            if token.promise is not None:
                self.promises.add((token.execution_id, token.promise))

    def _keep_waits(self, wanted: set[tuple[str, int]]) -> None:
        for wait in list(self.database.subscriptions.values()):
            if (wait.execution_id, wait.wait_no) in wanted:
                self._keep(wait)

    def _keep(self, wait: SubscriptionRow) -> int:
        self.loaded.subscriptions[wait.id] = wait
        self.loaded.waits[wait.execution_id, wait.wait_no] = wait.id
        self.executions.add(wait.execution_id)
        if wait.promise is not None:
            self.promises.add((wait.execution_id, wait.promise))
        return wait.id

    def _match(self, match: EventMatch) -> list[int]:
        """Candidates in the order of waiting: those without a demand, and those whose demand the event meets."""
        found = [
            wait
            for wait in self.database.subscriptions.values()
            if wait.key == match.key
            and wait.kind is match.kind
            and wait.org == match.org
            and wait.id > match.after
            and (match.bound is None or wait.id < match.bound)
            and (wait.eq_path is None or match.value_at(wait.eq_path) == wait.eq_value)
        ]
        return [self._keep(wait) for wait in sorted(found, key=_id)[: match.limit]]

    def _deliveries(self) -> None:
        """A page for the oldest one of each key: a later one must not overtake it. Keys get equal shares."""
        oldest: dict[tuple[str, str, str], DeliveryRow] = {}
        for _, row in sorted(self.database.deliveries.items()):
            if row.done_at is None:
                oldest.setdefault((row.org, row.kind, row.key), row)
        found = list(oldest.values())[: min(_DELIVERIES, self.plan.deliveries)]
        share = self.plan.deliveries // len(found) if found else 0
        for row in found:
            page = self._match(_match_of(row, share))
            self.loaded.deliveries.append((copied(row), page, len(page) >= share))

    def _promises(self) -> None:
        """A pending one that an event may settle brings its subscription along."""
        loaded = self.loaded
        for org, workflow_id, name in self.plan.named_promises:
            self.promises.add((loaded.workflow_keys.get((org, workflow_id), workflow_id), name))
        waits = set()
        for key in sorted(self.promises):
            row = self.database.promises.get(key)
            if row is not None:
                loaded.promises[key] = copied(row)
                if row.event_key is not None and row.state is PromiseState.PENDING:
                    waits.add((row.execution_id, -row.promise_no))
            self.executions.add(key[0])
        if waits:
            self._keep_waits(waits)

    def _published(self, key: int) -> PublishedRow:
        found = self.loaded.published.get(key)
        if found is None:
            found = self.loaded.published[key] = copied(self.database.published[key])
        return found

    def _events(self) -> None:
        plan, loaded, published = self.plan, self.loaded, self.database.published
        spare = len(plan.matches) + len(plan.published)
        for (org, key, correlation), back in plan.look_backs.items():
            kept = (
                loaded.published.get(number) or copied(row)
                for number, row in sorted(published.items())
                if (row.org, row.key, row.correlation) == (org, key, correlation)
                and number > back.after
                and row.published_at >= back.since_at
                and row.expires_at > loaded.now
            )
            chosen = loaded.look_backs[org, key, correlation] = back.choose(kept, spare)
            loaded.published.update({event.id: event for events in chosen.values() for event in events})
        for number in plan.published.union(delivery.id for delivery, _, _ in loaded.deliveries):
            if number in published:
                self._published(number)
        for number in plan.dead_events:
            if number in self.database.dead_events:
                loaded.dead_events[number] = self.database.dead_events[number]

    def _keys(self) -> None:
        """How many events each key keeps, what it starts and what is on its way to it; and the oldest of its events, as
        many as this batch could push out."""
        plan, loaded, database = self.plan, self.loaded, self.database
        keys = plan.event_keys.union((event.org, event.key) for event in loaded.published.values())
        keys.update((delivery.org, delivery.key) for delivery, _, _ in loaded.deliveries)
        for key in sorted(keys):
            if key in database.event_keys:
                loaded.event_keys[key] = copied(database.event_keys[key])
        for trigger in database.triggers.values():
            if (trigger.org, trigger.key) in keys:
                loaded.triggers.setdefault((trigger.org, trigger.key), []).append(trigger)
        self._under_way(keys)
        for at, count in Counter((match.org, match.key) for match in plan.matches).items():
            kept = loaded.event_keys.get(at)
            excess = 0 if kept is None else kept.retained + count - plan.retained_per_key
            if excess > 0:
                numbers = sorted(number for number, row in database.published.items() if (row.org, row.key) == at)
                loaded.oldest[at] = [self._published(number) for number in numbers[:excess]]

    def _under_way(self, keys: set[tuple[str, str]]) -> None:
        wanted = {(org, kind, key) for org, key in keys for kind in _KEPT_KINDS}
        wanted.update((match.org, match.kind, match.key) for match in self.plan.matches)
        for row in self.database.deliveries.values():
            if row.done_at is None and (row.org, row.kind, row.key) in wanted:
                self.loaded.under_way.setdefault((row.org, row.kind, row.key), set()).add(row.id)


def _id(row: SubscriptionRow) -> int:
    return row.id


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
