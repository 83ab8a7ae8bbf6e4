"""The world outside a mocked workflow: who settles its promises, what is published, what is broadcast.

One execution, so a far smaller world than the engine's; who gets what follows the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.errors import InvalidRequest
from holdfast.expressions import compile_filter
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.shapes import check_value, misfit
from holdfast.model.values import NULL, DeliveryMode, Failure, Payload, Settlement


class Published(msgspec.Struct, kw_only=True):
    """Something published, by the test or by the workflow itself."""

    id: int
    at: int
    key: str
    data: Payload = NULL
    correlation: str | None = None
    kept: bool = True
    consume: bool = False
    fed: bool = False
    received: int = 0

    def is_for(self, wait: c.StartWait) -> bool:
        if wait.kind == "broadcast" or (wait.key, wait.correlation) != (self.key, self.correlation):
            return False
        return wait.where is None or compile_filter(wait.where).matches(msgspec.json.decode(self.data))

    def is_seen_by(self, wait: c.StartWait) -> bool:
        """Whether the wait looks back as far as this."""
        if wait.since_at is None or not self.kept:
            return False
        return self.at >= wait.since_at and self.id > wait.after_event_id and self.id not in wait.skip


class Settling(msgspec.Struct):
    """How a promise was told to end, and when."""

    at: int
    value: Payload = NULL
    failure: Failure | None = None
    used: bool = False


class MockOutside:
    """What the workflow waits for and what there is for it. `now` tells the time."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._numbers = 0
        self._settlings: dict[str, Settling] = {}
        self._promises: dict[int, c.CreatePromise] = {}
        self._waits: dict[int, c.StartWait] = {}
        self._published: list[Published] = []
        self._broadcasts: dict[str, int] = {}

    @property
    def unused(self) -> dict[str, int]:
        """What was fed and never reached the workflow."""
        found = {name: 1 for name, settling in self._settlings.items() if not settling.used}
        for event in self._published:
            if event.fed and not event.received:
                found[event.key] = found.get(event.key, 0) + 1
        return found | {name: left for name, left in self._broadcasts.items() if left}

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    # --- promises ---

    def settle(self, name: str, settling: Settling) -> None:
        if name in self._settlings:
            raise InvalidRequest(f"promise {name!r} was settled already: only the first time counts", field="name")
        self._settlings[name] = settling

    def created(self, command: c.CreatePromise) -> Settling | None:
        """The promise is there. How and when it will be settled, if somebody has said so."""
        self._promises[command.promise_no] = command
        return self._settlings.get(command.name)

    def settled(self, number: int, settling: Settling) -> Iterable[e.EventBody]:
        command = self._promises.get(number)
        if command is not None:
            settling.used = True
            if settling.failure is None:
                check_value(command.name, command.shape, settling.value)
            del self._promises[number]
            facts: dict[str, Any] = {
                "promise_no": number,
                "name": command.name,
                "settled_by": Settlement(by="id"),
            }
            if settling.failure is not None:
                yield e.PromiseRejected(failure=settling.failure, **facts)
            else:
                yield e.PromiseResolved(value=settling.value, **facts)

    def timed_out(self, number: int) -> Iterable[e.EventBody]:
        command = self._promises.pop(number, None)
        if command is not None:
            yield e.PromiseTimedOut(promise_no=number, name=command.name)

    def cancelled(self, number: int) -> None:
        self._promises.pop(number, None)

    # --- events and messages ---

    def publish(self, event: Published) -> Iterable[e.EventBody]:
        """To all that wait for it, or to the first; kept for those who will look back."""
        event.at = self._now()
        self._published.append(event)
        if event.correlation is None:
            yield from self._to_promises(event)
        for number, wait in list(self._waits.items()):
            if event.is_for(wait):
                yield self._given(event, number, wait)
                if event not in self._published:
                    return

    def _to_promises(self, event: Published) -> Iterable[e.EventBody]:
        for number, promise in list(self._promises.items()):
            if promise.event_key == event.key and misfit(promise.shape, event.data) is None:
                del self._promises[number]
                event.received += 1
                by = Settlement(by="event", event_id=event.id)
                yield e.PromiseResolved(promise_no=number, name=promise.name, value=event.data, settled_by=by)

    def _given(self, event: Published, number: int, wait: c.StartWait) -> e.EventBody:
        del self._waits[number]
        event.received += 1
        if event.consume or wait.consume:
            self._published.remove(event)
        return e.EventReceived(
            wait_no=number, key=event.key, event_id=event.id, data=event.data, correlation=event.correlation
        )

    def waits(self, command: c.StartWait) -> None:
        self._waits[command.wait_no] = command

    def no_longer_waits(self, number: int) -> None:
        self._waits.pop(number, None)

    def at_once(self, number: int) -> Iterable[e.EventBody]:
        """What a wait that has begun just now finds."""
        wait = self._waits.get(number)
        if wait is None:
            return
        if wait.kind == "broadcast":
            if self._broadcasts.get(wait.key):
                self._broadcasts[wait.key] -= 1
                yield from self.throw(wait.key, self.next_number())
            return
        for event in self._published:
            if event.is_seen_by(wait) and event.is_for(wait):
                yield self._given(event, number, wait)
                return

    # --- broadcasts ---

    def promise_broadcast(self, name: str) -> None:
        """One that comes when the workflow waits for it."""
        self._broadcasts[name] = self._broadcasts.get(name, 0) + 1

    def throw(self, name: str, number: int) -> Iterable[e.EventBody]:
        for wait_no, wait in list(self._waits.items()):
            if (wait.kind, wait.key) == ("broadcast", name):
                del self._waits[wait_no]
                yield e.BroadcastReceived(wait_no=wait_no, name=name, broadcast_id=number)


def published_by(command: c.Publish, number: int) -> Published:
    return Published(
        id=number,
        at=0,
        key=command.key,
        data=command.data,
        correlation=command.correlation,
        kept=command.delivery != DeliveryMode.WAITERS,
        consume=command.consume or command.correlation is not None,
    )
