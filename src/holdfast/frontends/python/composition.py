"""`all`, `any`, `race`, `n_of`, `settled`: waiting for several things at once.

Items may be anything a workflow can await: what `ctx` gives, coroutines, asyncio tasks, other compositions. A
composition is a future of the workflow's loop itself, so it nests. What decides it is the order of the history, never
the order of the list; when it is decided, the items still open are cancelled in the same turn. Cancelling it cancels
its items.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.errors import AllFailed, InvalidRequest, TooFewSucceeded
from holdfast.frontends.python.futures import DurableFuture
from holdfast.frontends.python.loop import DeterministicLoop, WorkflowFuture


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one item ended. `index` is its place in the list, `item_id` the `id` of what `ctx` gave for it."""

    index: int
    item_id: str
    status: Literal["completed", "failed", "cancelled"]
    result: Any = None
    error: BaseException | None = None


class Composition(WorkflowFuture[Any]):
    """Several items as one future. The subclasses say when it is decided, and how."""

    __slots__ = ("_left", "_places", "items")

    def __init__(self, loop: DeterministicLoop, name: str, items: Iterable[Any]) -> None:
        super().__init__(loop=loop)
        self.ordinal = loop.next_ordinal()
        self.about = name
        self.items: list[asyncio.Future[Any]] = [asyncio.ensure_future(item, loop=loop) for item in items]
        self._left = len(self.items)
        self._places: dict[asyncio.Future[Any], list[int]] = {}
        for index, item in enumerate(self.items):
            # The same future may stand in the list twice.
            self._places.setdefault(item, []).append(index)
        for item in self._places:
            item.add_done_callback(self._item_done)
        if not self.items:
            self._nothing()

    @property
    def id(self) -> str:
        return f"{self.about}:{self.ordinal}"

    def cancel(self, msg: Any | None = None) -> bool:
        if not self.done():
            self._cancel_open(msg)
        return super().cancel(msg)

    def _cancel_open(self, msg: Any | None = None) -> None:
        for item in self.items:
            if not item.done():
                item.cancel(msg)

    def _item_done(self, item: asyncio.Future[Any]) -> None:
        if self.done():
            if not item.cancelled():
                item.exception()  # looked at: nobody else will
            return
        for index in self._places[item]:
            self._left -= 1
            if not self.done():
                self._one_done(outcome_of(index, item))
        if self.done():
            self._cancel_open()

    def _one_done(self, outcome: Outcome) -> None:
        raise NotImplementedError

    def _nothing(self) -> None:
        """What an empty list means."""
        raise InvalidRequest(f"ctx.{self.about} needs at least one item", field="items")


class AllOf(Composition):
    """Results in the order of the list; the first failure of the history ends it."""

    __slots__ = ()

    def _one_done(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            self.set_exception(outcome.error)
        elif outcome.status == "cancelled":
            super(Composition, self).cancel()
        elif not self._left:
            self.set_result([item.result() for item in self.items])

    def _nothing(self) -> None:
        self.set_result([])


class AnyOf(Composition):
    """The first success; failures are ignored until nothing else is left."""

    __slots__ = ()

    def _one_done(self, outcome: Outcome) -> None:
        if outcome.status == "completed":
            self.set_result(outcome)
        elif not self._left:
            outcomes = tuple(outcome_of(index, item) for index, item in enumerate(self.items))
            reasons = "; ".join(f"{found.item_id}: {found.error or found.status}" for found in outcomes)
            self.set_exception(AllFailed(f"none of {len(outcomes)} succeeded: {reasons}", outcomes=outcomes))


class RaceOf(Composition):
    """The first to end, well or badly."""

    __slots__ = ()

    def _one_done(self, outcome: Outcome) -> None:
        self.set_result(outcome)


class NOf(Composition):
    """The first `n` successes, in the order in which they came; over when they can't come any more."""

    __slots__ = ("_needed", "_succeeded")

    def __init__(self, loop: DeterministicLoop, needed: int, items: Iterable[Any]) -> None:
        self._needed = needed
        self._succeeded: list[Outcome] = []
        super().__init__(loop, "n_of", items)
        if needed > len(self.items):
            self._cancel_open()
            raise InvalidRequest(f"n_of needs {needed} of {len(self.items)} items", field="n")

    def _one_done(self, outcome: Outcome) -> None:
        if outcome.status == "completed":
            self._succeeded.append(outcome)
            if len(self._succeeded) == self._needed:
                self.set_result(self._succeeded)
        elif len(self._succeeded) + self._left < self._needed:
            done = [outcome_of(index, item) for index, item in enumerate(self.items) if item.done()]
            self.set_exception(
                TooFewSucceeded(f"{self._needed} successes can't be reached any more", outcomes=tuple(done))
            )


class SettledOf(Composition):
    """All outcomes in the order of the list, whatever they are."""

    __slots__ = ()

    def _one_done(self, outcome: Outcome) -> None:
        if not self._left:
            self.set_result([outcome_of(index, item) for index, item in enumerate(self.items)])

    def _nothing(self) -> None:
        self.set_result([])


def outcome_of(index: int, item: asyncio.Future[Any]) -> Outcome:
    """How a finished item ended."""
    item_id = item.id if isinstance(item, DurableFuture | Composition) else f"item:{index}"
    if item.cancelled():
        return Outcome(index, item_id, "cancelled")
    error = item.exception()
    if error is not None:
        return Outcome(index, item_id, "failed", None, error)
    return Outcome(index, item_id, "completed", item.result())


def listed(items: tuple[Any, ...]) -> list[Any]:
    """`ctx.all(a, b)` and `ctx.all([a, b])` mean the same."""
    if len(items) == 1 and not isinstance(items[0], Awaitable):
        if not isinstance(items[0], Iterable):
            raise InvalidRequest(f"{items[0]!r:.100} can't be awaited", field="items")
        items = tuple(items[0])
    for index, item in enumerate(items):
        if not isinstance(item, Awaitable):
            raise InvalidRequest(f"item {index} can't be awaited: {item!r:.100}", field="items")
    return list(items)
