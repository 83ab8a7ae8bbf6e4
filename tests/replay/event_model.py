"""What should happen to events and waits, in the plainest words: the model that the engine is compared with.

Everything happens at once and in order: a published event goes to those who wait, and is kept; a wait looks at what is
kept. Numbers are drawn as the engine draws them, so that results can be compared one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MICRO = 1_000_000

FILTERS: dict[str | None, Callable[[Any], bool]] = {
    None: lambda _: True,
    "input.k == 1": lambda d: _get(d, "k") == 1,
    "input.k == 2 && input.v > 5": lambda d: _get(d, "k") == 2 and _get(d, "v") > 5,
    "input.v > 5": lambda d: isinstance(d, dict) and d["v"] > 5,
    "input == 7": lambda d: d == 7,
    "input.nothing == 1": lambda _: False,
    "input.v / 0 == 1": lambda _: False,
    "input.k == 1 || input.k == 3": lambda d: _get(d, "k") in {1, 3},
}
PAYLOADS: list[Any] = [{"k": k, "v": v} for k in (1, 2, 3) for v in (3, 8)] + [7]


def _get(data: Any, name: str) -> Any:
    return data[name] if isinstance(data, dict) else None


@dataclass
class Kept:
    id: int
    key: str
    data: Any
    published_at: int
    expires_at: int
    consume: bool
    created_before: bool
    delivered: int


@dataclass
class Waiting:
    id: int
    execution: str
    no: int
    key: str
    where: str | None
    consume: bool
    since_at: int | None
    after: int
    born: int


@dataclass
class Model:
    limit: int
    now: int
    last: int = 0
    open: dict[str, int] = field(default_factory=dict)
    """Open executions, with the last number there was when they began."""
    waits: dict[tuple[str, int], Waiting] = field(default_factory=dict)
    kept: dict[int, Kept] = field(default_factory=dict)
    dead: dict[int, Kept] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    received: list[tuple[str, int, int]] = field(default_factory=list)

    def number(self) -> int:
        self.last += 1
        return self.last

    def publish(self, number: int, key: str, data: Any, how: dict[str, Any]) -> None:
        """`how`: delivery, consume, expire_after_s."""
        delivered = 0
        for wait in sorted(self.waits.values(), key=lambda wait: wait.id):
            if wait.key != key or not FILTERS[wait.where](data) or not self._in_time(wait, number):
                continue
            self._give(wait, number)
            delivered += 1
            if how["consume"] or wait.consume:
                return
        if how["delivery"] == "waiters":
            return
        self.kept[number] = Kept(
            number,
            key,
            data,
            self.now,
            self.now + int(how["expire_after_s"] * MICRO),
            how["consume"],
            how["delivery"] == "created_before",
            delivered,
        )
        of_key = [event for event in self.kept.values() if event.key == key]
        while len(of_key) > self.limit:
            victim = of_key.pop(0)
            if victim.expires_at > self.now:
                self.dropped[key] += 1
            self._drop(victim)

    def _in_time(self, wait: Waiting, number: int) -> bool:
        if wait.id < number:
            return True
        return wait.since_at is not None and number > wait.after and self.now >= wait.since_at

    def _give(self, wait: Waiting, number: int) -> None:
        del self.waits[wait.execution, wait.no]
        self.received.append((wait.execution, wait.no, number))

    def _drop(self, event: Kept) -> None:
        del self.kept[event.id]
        if not event.delivered:
            self.dead[event.id] = event

    def wait(self, wait: Waiting) -> None:
        self.waits[wait.execution, wait.no] = wait

    def look_back(self, wait: Waiting) -> None:
        if self.waits.get((wait.execution, wait.no)) is not wait or wait.since_at is None:
            return
        for event in list(self.kept.values()):
            if event.key != wait.key or event.id <= wait.after or event.published_at < wait.since_at:
                continue
            if event.expires_at <= self.now or not FILTERS[wait.where](event.data):
                continue
            if event.created_before and event.id <= wait.born:
                continue
            event.delivered += 1
            self._give(wait, event.id)
            if wait.consume or event.consume:
                del self.kept[event.id]
            return

    def cancel(self, execution: str, no: int) -> None:
        self.waits.pop((execution, no), None)

    def close(self, execution: str) -> None:
        self.open.pop(execution, None)
        for key in [key for key in self.waits if key[0] == execution]:
            del self.waits[key]

    def expire(self) -> None:
        for event in [event for event in self.kept.values() if event.expires_at <= self.now]:
            self._drop(event)
