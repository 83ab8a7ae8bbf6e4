"""Wake everybody who waits for a name now.

A broadcast to many is delivered page by page. Its caller is answered when the last page is done: `Broadcasts` waits for
that, whichever process delivers it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec
from msgspec import structs

from holdfast.contract.messages import BroadcastResult, ThrowBroadcast
from holdfast.engine.api import answers
from holdfast.engine.messages.deliver import Deliver
from holdfast.engine.messages.matching import plan_sending
from holdfast.engine.operation import Operation
from holdfast.engine.rules.messages import Sending, send
from holdfast.engine.rules.workspace import Workspace
from holdfast.engine.unit_of_work import OperationQueue
from holdfast.errors import EngineStopped, HoldfastError, InvalidRequest
from holdfast.model.messages import DeliveryRow, SubscriptionKind
from holdfast.store import reads
from holdfast.store.protocol import LoadPlan, Store


class BroadcastAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How far it got in its own transaction. Stored with its idempotency key."""

    broadcast_id: int
    delivered: int
    done: bool = True
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class Broadcast(Operation[ThrowBroadcast, BroadcastAnswer]):
    __slots__ = ("_match",)
    ANSWER = BroadcastAnswer

    def plan(self, plan: LoadPlan) -> None:
        self._match = len(plan.matches)
        plan_sending(plan, self.request.org, self.request)

    def decide(self, ws: Workspace) -> BroadcastAnswer:
        request = self.request
        sending = Sending(
            org=request.org, kind=SubscriptionKind.BROADCAST, key=request.name or "", idempotency_key=request.request_id
        )
        sent = send(ws, sending, ws.loaded.matches[self._match])
        return BroadcastAnswer(
            broadcast_id=sent.id,
            delivered=sent.delivered,
            done=sent.done,
            idempotency_key_used=request.request_id is not None,
            idempotency_key_new=request.request_id is not None,
        )

    def subject(self, answer: BroadcastAnswer) -> tuple[str | None, str | None]:
        return None, f"broadcast {answer.broadcast_id}"


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


class Broadcasts:
    """Broadcasts, answered when they are done."""

    def __init__(self, store: Store, queue: OperationQueue) -> None:
        self._store = store
        self._submit = queue.submit
        self.deliveries = Deliveries()
        self._paging: asyncio.Task[None] | None = None

    @answers(ThrowBroadcast)
    async def throw(self, request: ThrowBroadcast) -> BroadcastResult:
        request = _spelled(request)
        answer = await self._submit(Broadcast(request))
        delivered = answer.delivered
        if not answer.done:
            delivery = await self._delivered(request.org, answer.broadcast_id)
            delivered = delivered if delivery is None else delivery.delivered
        return BroadcastResult(
            broadcast_id=answer.broadcast_id,
            delivered=delivered,
            delivered_count=delivered,
            idempotency_key_used=answer.idempotency_key_used,
            idempotency_key_new=answer.idempotency_key_new,
        )

    async def _delivered(self, org: str, number: int) -> DeliveryRow | None:
        """The delivery when it is done, whoever does it. None if that was so long ago that its row is gone."""
        # Wait first, look second: an end between the two is then seen by one of them.
        waiter = self.deliveries.wait(number, asyncio.get_running_loop())
        try:
            found = await self._store.read(reads.Delivery(org, number))
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
                    await self.look_around()

    async def look_around(self) -> None:
        """Deliveries that another process has ended."""
        for number in self.deliveries.awaited:
            found = await self._store.read(reads.Delivery(None, number))
            if found is None:
                self.deliveries.gone(number)
            elif found.done_at is not None:
                self.deliveries.done([found])

    async def stop(self) -> None:
        self.deliveries.stop(EngineStopped)
        if self._paging is not None:
            self._paging.cancel()
            await asyncio.gather(self._paging, return_exceptions=True)


def _spelled(request: ThrowBroadcast) -> ThrowBroadcast:
    """The request with its name in the one spelling that counts for its idempotency key."""
    names = {name for name in (request.name, request.signal_name) if name is not None}
    if len(names) != 1:
        raise InvalidRequest("give the name of the broadcast in SignalName", field="SignalName")
    return structs.replace(request, name=names.pop(), signal_name=None)
