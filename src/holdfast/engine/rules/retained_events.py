"""Waits that look back: which of the kept events each of them may have.

The kept events of a key are gone through once for all waits of a batch, the oldest first, and only as far as somebody
wants more. A wait whose filter demands an equality is asked only about events that meet it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from holdfast.expressions import Filter, compile_filter, equality_key
from holdfast.expressions.lookups import path_text, reader
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.messages import PublishedRow
from holdfast.model.shapes import misfit
from holdfast.model.values import Payload
from holdfast.store.protocol import LoadPlan, LookBackKey

RequiredEquality = tuple[str, str]
BYTES_PER_STEP = 16
"""How much of a payload is compared with a shape in the time that a filter takes for a step, about."""


class LookBackQuery(msgspec.Struct, frozen=True):
    """What a wait wants to know of the past. Waits that ask the same are answered together."""

    where: str | None
    since_at: int
    after: int
    skip: tuple[int, ...] = ()

    def admits(self, event_id: int, published_at: int) -> bool:
        """Whether an event is of the right time; what it says is another matter."""
        return event_id > self.after and published_at >= self.since_at and event_id not in self.skip


def required_equality_of(where: str | None) -> RequiredEquality | None:
    """An equality that the filter demands, to search by: the path and the value as texts."""
    if where is None:
        return None
    for equality in compile_filter(where).required_equalities():
        text = equality_key(equality.value)
        if text is not None:
            return path_text(equality.path), text
    return None


class PayloadMatcher:
    """Asks filters and shapes about one payload. It is decoded once, when the first filter wants to see it."""

    __slots__ = ("_data", "_payload", "_shapes", "steps", "value_at")

    def __init__(self, data: Payload) -> None:
        self.steps = 0
        """What the answers have cost so far."""
        self._data = data
        self._shapes: dict[bytes, bool] = {}
        self._payload: list[object] = []
        self.value_at = reader(data)

    def satisfies(self, where: str | None) -> bool:
        return where is None or self.matches(compile_filter(where))

    def matches(self, condition: Filter) -> bool:
        if not self._payload:
            self._payload.append(msgspec.json.decode(self._data))
        verdict = condition.evaluate(self._payload[0])
        self.steps += verdict.steps
        return verdict.matched

    def has_shape(self, shape: Payload) -> bool:
        asked = bytes(shape)
        if asked not in self._shapes:
            self._shapes[asked] = misfit(shape, self._data) is None
            self.steps += 1 + len(bytes(self._data)) // BYTES_PER_STEP
        return self._shapes[asked]


class FreshEvents:
    """Events of one key that were kept by this very batch, found by what they say."""

    __slots__ = ("_all", "_by_path")

    def __init__(self) -> None:
        self._all: list[tuple[PublishedRow, PayloadMatcher]] = []
        self._by_path: dict[str, dict[str | None, list[tuple[PublishedRow, PayloadMatcher]]]] = {}

    def add(self, event: PublishedRow) -> None:
        found = (event, PayloadMatcher(event.data))
        self._all.append(found)
        for path, by_value in self._by_path.items():
            by_value.setdefault(found[1].value_at(path), []).append(found)

    def about(self, demand: RequiredEquality | None) -> list[tuple[PublishedRow, PayloadMatcher]]:
        """Those that meet the demand, the oldest first."""
        if demand is None:
            return self._all
        path, value = demand
        by_value = self._by_path.get(path)
        if by_value is None:
            by_value = self._by_path[path] = {}
            for found in self._all:
                by_value.setdefault(found[1].value_at(path), []).append(found)
        return by_value.get(value, [])


class LookBackSearch:
    """`store.protocol.LookBack`: what the waits of one batch ask about the kept events of one key."""

    __slots__ = ("_queries",)

    def __init__(self) -> None:
        self._queries: dict[LookBackQuery, int] = {}

    def ask(self, question: LookBackQuery) -> None:
        self._queries[question] = self._queries.get(question, 0) + 1

    @property
    def after(self) -> int:
        return min(question.after for question in self._queries)

    @property
    def since_at(self) -> int:
        return min(question.since_at for question in self._queries)

    def choose(self, events: Iterator[PublishedRow], spare: int) -> dict[LookBackQuery, list[PublishedRow]]:
        # Any wait of this key may take what another one has found, so that each needs as many as there are waits.
        spare += sum(self._queries.values())
        search = _Search(dict.fromkeys(self._queries, spare))
        for event in events:
            search.consider(event)
            if search.over:
                break
        return search.found


class _Search:
    """Questions that still want events: those that demand a value are found by it."""

    def __init__(self, wanted: dict[LookBackQuery, int]) -> None:
        self.found: dict[LookBackQuery, list[PublishedRow]] = {question: [] for question in wanted}
        self._wanted = wanted
        self._open: dict[str | None, dict[str, dict[LookBackQuery, None]]] = {}
        self._demands = {question: required_equality_of(question.where) or (None, "") for question in wanted}
        for question, (path, value) in self._demands.items():
            self._open.setdefault(path, {}).setdefault(value, {})[question] = None

    @property
    def over(self) -> bool:
        return not self._open

    def consider(self, event: PublishedRow) -> None:
        matcher = PayloadMatcher(event.data)
        for path, by_value in list(self._open.items()):
            value = "" if path is None else matcher.value_at(path)
            asking = by_value.get(value) if value is not None else None
            for question in list(asking or ()):
                if question.admits(event.id, event.published_at) and matcher.satisfies(question.where):
                    self._give(question, event)

    def _give(self, question: LookBackQuery, event: PublishedRow) -> None:
        self.found[question].append(event)
        # Whether an execution is old enough for it is not known yet: such an event may not be the last.
        if event.created_before:
            return
        self._wanted[question] -= 1
        if self._wanted[question] <= 0:
            path, value = self._demands[question]
            del self._open[path][value][question]
            if not self._open[path][value]:
                del self._open[path][value]
            if not self._open[path]:
                del self._open[path]


def look_back_query_of(wait: e.WaitStarted | c.StartWait) -> LookBackQuery:
    return LookBackQuery(wait.where, wait.since_at or 0, wait.after_event_id, wait.skip)


def key_of(org: str, wait: e.WaitStarted | c.StartWait) -> LookBackKey:
    return org, wait.key, wait.correlation


def plan_look_back(plan: LoadPlan, org: str, wait: e.WaitStarted | c.StartWait) -> None:
    """What a wait that looks back wants to see."""
    at = key_of(org, wait)
    asked = plan.look_backs.get(at)
    if not isinstance(asked, LookBackSearch):
        asked = plan.look_backs[at] = LookBackSearch()
    asked.ask(look_back_query_of(wait))
    plan.event_keys.add((org, wait.key))
