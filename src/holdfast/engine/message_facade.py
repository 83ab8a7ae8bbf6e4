"""`contract.messages.Messages`, in process: promises, events, broadcasts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.contract import messages as ms
from holdfast.engine.checks import check_payload
from holdfast.engine.messages.broadcast import Broadcast
from holdfast.engine.messages.dead_events import Exhume
from holdfast.engine.messages.publish import Publish
from holdfast.engine.promises.settle import Settle
from holdfast.errors import EngineStopped, InvalidRequest
from holdfast.model.messages import DeadEvent, DeliveryRow, PromiseRow, PublishedRow, SubscriptionKind, SubscriptionRow
from holdfast.model.names import check_name

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine


class Deliveries:
    """Who waits until an event or broadcast has reached everybody. On the event loop."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[asyncio.Future[DeliveryRow]]] = {}

    @property
    def awaited(self) -> list[int]:
        return list(self._waiting)

    def wait(self, number: int, loop: asyncio.AbstractEventLoop) -> asyncio.Future[DeliveryRow]:
        future: asyncio.Future[DeliveryRow] = loop.create_future()
        self._waiting.setdefault(number, []).append(future)
        return future

    def forget(self, number: int, future: asyncio.Future[DeliveryRow]) -> None:
        futures = self._waiting.get(number)
        if futures is not None and future in futures:
            futures.remove(future)
            if not futures:
                del self._waiting[number]

    def done(self, finished: Iterable[DeliveryRow]) -> None:
        for delivery in finished:
            for future in self._waiting.pop(delivery.id, ()):
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

    def settle(self, request: ms.SettlePromise) -> asyncio.Future[ms.SettleAnswer]:
        ways = [request.token_hash, request.promise_id, request.name]
        if sum(way is not None for way in ways) != 1 or (request.name is None) != (request.workflow_id is None):
            raise InvalidRequest(
                "name a promise by its id, by workflow id and name, or by a token: exactly one of them",
                field="promise_id",
            )
        if request.promise_id is not None and ":" not in request.promise_id:
            raise InvalidRequest(
                f"a promise id is an execution id, a colon and a name, not {request.promise_id!r:.100}",
                field="promise_id",
            )
        if request.request_id is not None:
            check_name(request.request_id, "idempotency_key")
        check_payload(request.value, "value", self._limits)
        return self._submit(Settle(request))

    def publish(self, request: ms.PublishEvent) -> asyncio.Future[ms.PublishAnswer]:
        check_name(request.key, "key")
        if request.correlation is not None:
            check_name(request.correlation, "correlation")
        if request.request_id is not None:
            check_name(request.request_id, "idempotency_key")
        check_payload(request.data, "data", self._limits)
        return self._submit(Publish(request))

    async def broadcast(self, request: ms.ThrowBroadcast) -> ms.BroadcastAnswer:
        check_name(request.name, "name")
        if request.request_id is not None:
            check_name(request.request_id, "idempotency_key")
        answer = await self._submit(Broadcast(request))
        if answer.done:
            return answer
        delivery = await self._delivered(request.org, answer.broadcast_id)
        return replace(answer, delivered=delivery.delivered, done=True)

    async def _delivered(self, org: str, number: int) -> DeliveryRow:
        # Wait first, look second: an end between the two is then seen by one of them.
        waiter = self.deliveries.wait(number, asyncio.get_running_loop())
        try:
            found = await self._store.delivery(org, number)
            if found is not None and found.done_at is not None:
                return found
            return await waiter
        finally:
            self.deliveries.forget(number, waiter)

    async def look_around(self) -> None:
        """Deliveries that another process has ended."""
        for number in self.deliveries.awaited:
            found = await self._store.delivery(None, number)
            if found is not None and found.done_at is not None:
                self.deliveries.done([found])

    def stop(self) -> None:
        self.deliveries.stop(EngineStopped)

    async def promises(self, org: str, execution_id: str) -> list[PromiseRow]:
        check_name(execution_id, "workflow_execution_id")
        return await self._store.promises(org, execution_id)

    async def waits(self, org: str, execution_id: str) -> list[SubscriptionRow]:
        check_name(execution_id, "workflow_execution_id")
        return await self._store.waits(org, execution_id)

    async def waits_of_key(self, org: str, key: str, limit: int = 100) -> list[SubscriptionRow]:
        check_name(key, "key")
        return await self._store.waits_of_key(org, SubscriptionKind.EVENT, key, self._page(limit))

    async def events(
        self, org: str, key: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[PublishedRow]:
        return await self._store.published(org, key, before, self._page(limit))

    async def dead_events(
        self, org: str, key: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[DeadEvent]:
        return await self._store.dead_events(org, key, before, self._page(limit))

    def replay_dead_event(self, request: ms.ReplayDeadEvent) -> asyncio.Future[ms.PublishAnswer | None]:
        return self._submit(Exhume(request))

    def _page(self, limit: int) -> int:
        if not 1 <= limit <= self._limits.page_size:
            raise InvalidRequest(f"limit must lie between 1 and {self._limits.page_size}", field="limit")
        return limit
