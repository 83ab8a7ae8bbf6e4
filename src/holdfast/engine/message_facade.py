"""`contract.messages.Messages`, in process: promises, events, broadcasts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.contract import messages as ms
from holdfast.engine.checks import check_number, check_payload, check_timeout
from holdfast.engine.messages.broadcast import Broadcast
from holdfast.engine.messages.dead_events import Remove, ReplayDead, no_event
from holdfast.engine.messages.deliver import Deliver
from holdfast.engine.messages.publish import Publish
from holdfast.engine.promises.settle import Settle, check_target
from holdfast.errors import EngineStopped, ExecutionClosed, HoldfastError, InvalidRequest
from holdfast.model.messages import (
    DeadEvent,
    DeliveryRow,
    EventKeyRow,
    PromiseRow,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
)
from holdfast.model.validation import check_name

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine


MOST_RESETS = 1_000
"""How often a promise is looked for in the place of another: a loop, however made, must end."""


class Deliveries:
    """Who waits until an event or broadcast has reached everybody. On the event loop."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[asyncio.Future[DeliveryRow | None]]] = {}

    @property
    def awaited(self) -> list[int]:
        return list(self._waiting)

    def wait(self, number: int, loop: asyncio.AbstractEventLoop) -> asyncio.Future[DeliveryRow | None]:
        future: asyncio.Future[DeliveryRow | None] = loop.create_future()
        self._waiting.setdefault(number, []).append(future)
        return future

    def forget(self, number: int, future: asyncio.Future[DeliveryRow | None]) -> None:
        futures = self._waiting.get(number)
        if futures is not None and future in futures:
            futures.remove(future)
            if not futures:
                del self._waiting[number]

    def done(self, finished: Iterable[DeliveryRow]) -> None:
        for delivery in finished:
            self._end(delivery.id, delivery)

    def gone(self, number: int) -> None:
        """Its row was removed: nobody will ever know more of it."""
        self._end(number, None)

    def _end(self, number: int, delivery: DeliveryRow | None) -> None:
        for future in self._waiting.pop(number, ()):
            if not future.done():
                future.set_result(delivery)

    def stop(self, make_error: Callable[[], BaseException]) -> None:
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(make_error())
        self._waiting.clear()


class LocalMessages:
    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._submit = engine.queue.submit
        self._store = engine.store
        self._limits = engine.config.limits
        self.deliveries = Deliveries()
        self._paging: asyncio.Task[None] | None = None

    def settle(self, request: ms.SettlePromise, using: Any = None) -> Awaitable[ms.SettleAnswer]:
        """A promise whose execution was reset is settled where it goes on."""
        check_target(request)
        if request.request_id is not None:
            check_name(request.request_id, "idempotency_key")
        check_timeout(request.ttl_s, "idempotency_key_ttl")
        check_payload(request.value, "value", self._limits)
        return self._settled(request, using, self._engine.run(Settle(request), using))

    async def _settled(
        self, request: ms.SettlePromise, using: Any, answer: Awaitable[ms.SettleAnswer]
    ) -> ms.SettleAnswer:
        for _ in range(MOST_RESETS):
            try:
                return await answer
            except ExecutionClosed as refusal:
                successor, name = refusal.details.get("successor"), refusal.details.get("promise")
                if successor is None or name is None:
                    raise
                answer = self._engine.run(Settle(request, (successor, name)), using)
        return await answer

    def publish(self, request: ms.PublishEvent, using: Any = None) -> Awaitable[ms.PublishAnswer]:
        check_name(request.key, "key")
        if request.correlation is not None:
            check_name(request.correlation, "correlation")
        if request.request_id is not None:
            check_name(request.request_id, "idempotency_key")
        check_timeout(request.expire_after_s, "expire_after")
        check_timeout(request.ttl_s, "idempotency_key_ttl")
        check_payload(request.data, "data", self._limits)
        return self._engine.run(Publish(request), using)

    async def broadcast(self, request: ms.ThrowBroadcast) -> ms.BroadcastAnswer:
        check_name(request.name, "name")
        if request.request_id is not None:
            check_name(request.request_id, "idempotency_key")
        answer = await self._submit(Broadcast(request))
        if answer.done:
            return answer
        delivery = await self._delivered(request.org, answer.broadcast_id)
        return replace(answer, delivered=answer.delivered if delivery is None else delivery.delivered, done=True)

    async def _delivered(self, org: str, number: int) -> DeliveryRow | None:
        """The delivery when it is done, whoever does it. None if that was so long ago that its row is gone."""
        # Wait first, look second: an end between the two is then seen by one of them.
        waiter = self.deliveries.wait(number, asyncio.get_running_loop())
        try:
            found = await self._store.delivery(org, number)
            if found is None or found.done_at is not None:
                return found
            if self._paging is None or self._paging.done():
                self._paging = asyncio.get_running_loop().create_task(self._page_on(), name="holdfast-delivery")
            return await waiter
        finally:
            self.deliveries.forget(number, waiter)

    async def _page_on(self) -> None:
        """Deliver page after page while somebody here waits for the end of it. The services would do so as well, and do
        when this fails, but not at once."""
        with suppress(HoldfastError):
            while self.deliveries.awaited:
                if not await self._submit(Deliver(None)):
                    await self.poll_changes()

    async def poll_changes(self) -> None:
        """Deliveries that another process has ended."""
        for number in self.deliveries.awaited:
            found = await self._store.delivery(None, number)
            if found is None:
                self.deliveries.gone(number)
            elif found.done_at is not None:
                self.deliveries.done([found])

    async def stop(self) -> None:
        self.deliveries.stop(EngineStopped)
        if self._paging is not None:
            self._paging.cancel()
            await asyncio.gather(self._paging, return_exceptions=True)

    async def promises(self, org: str, execution_id: str) -> list[PromiseRow]:
        check_name(execution_id, "workflow_execution_id")
        return await self._store.promises(org, execution_id)

    async def waits(self, org: str, execution_id: str) -> list[SubscriptionRow]:
        check_name(execution_id, "workflow_execution_id")
        return await self._store.waits(org, execution_id)

    async def waits_of_key(
        self, org: str, key: str, limit: int = 100, kind: SubscriptionKind = SubscriptionKind.EVENT
    ) -> list[SubscriptionRow]:
        check_name(key, "key")
        return await self._store.waits_of_key(org, kind, key, self._page(limit))

    async def events(
        self, org: str, key: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[PublishedRow]:
        if key is not None:
            check_name(key, "key")
        if before is not None:
            check_number(before, "before")
        return await self._store.published(org, key, before, self._page(limit))

    async def dead_events(
        self, org: str, key: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[DeadEvent]:
        if key is not None:
            check_name(key, "key")
        if before is not None:
            check_number(before, "before")
        return await self._store.dead_events(org, key, before, self._page(limit))

    async def event(self, org: str, event_id: int) -> PublishedRow | DeadEvent:
        check_number(event_id, "event_id")
        found = await self._store.published(org, None, event_id + 1, 1)
        if not found or found[0].id != event_id:
            return await self._dead_event(org, event_id, "event")
        return found[0]

    async def _dead_event(self, org: str, event_id: int, what: str) -> DeadEvent:
        found = await self._store.dead_events(org, None, event_id + 1, 1)
        if not found or found[0].id != event_id:
            raise no_event(event_id, what)
        return found[0]

    async def event_key(self, org: str, key: str) -> EventKeyRow:
        check_name(key, "key")
        return await self._store.event_key(org, key)

    async def replay_dead_event(self, request: ms.ReplayDeadEvent) -> ms.PublishAnswer:
        check_number(request.event_id, "event_id")
        event = await self._dead_event(request.org, request.event_id, "dead event")
        return await self._submit(ReplayDead(request, event))

    def remove_event(self, request: ms.RemoveEvent) -> asyncio.Future[None]:
        check_number(request.event_id, "event_id")
        return self._submit(Remove(request))

    def _page(self, limit: int) -> int:
        if not 1 <= limit <= self._limits.page_size:
            raise InvalidRequest(f"limit must lie between 1 and {self._limits.page_size}", field="limit")
        return limit
