"""Published events, messages and broadcasts: sent, listed, replayed, removed, explained.

`Events` is the part of `Client` that has these calls.
"""

from __future__ import annotations

from typing import Any

from holdfast.client.options import choice
from holdfast.client.promises import ttl_of
from holdfast.contract.explanations import EventExplanation, ExplainEvent
from holdfast.contract.messages import (
    BroadcastResult,
    EventInfo,
    EventKeyInfo,
    GetEventKey,
    ListDeadEvents,
    ListEvents,
    PublishEvent,
    PublishResult,
    RemoveEvent,
    ReplayDeadEvent,
    SendMessage,
    SendResult,
    ThrowBroadcast,
)
from holdfast.contract.operation import Api
from holdfast.contract.records import plain
from holdfast.model.durations import Duration, time_limit_s
from holdfast.model.names import check_name
from holdfast.model.payloads import encode
from holdfast.model.values import Delivery


class Events:
    """See the module's text."""

    api: Api
    org: str
    _limit: int

    async def publish_event(
        self,
        key: str,
        data: Any = None,
        *,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
        expire_after: Duration | None = None,
        delivery: Delivery | str = Delivery.WAITERS_AND_FUTURE,
        consume_on_read: bool = False,
        using: Any = None,
    ) -> PublishResult:
        """Publish an event: to every wait for its key whose filter it satisfies, and to the workflows it starts.

        It is kept until `expire_after`, by default a week, has passed, for waits that look back; not at all with
        delivery="waiters", and with "created_before" for executions that had begun before it. With `consume_on_read`
        only one gets it: the one that has waited longest, or the first who looks back. The same `idempotency_key` again
        is the same event. `using`: as part of your own transaction, see `start_workflow`.
        """
        request = PublishEvent(
            org=self.org,
            key=key,
            data=encode(data, field="data", limit=self._limit),
            expire_after_s=_expiry(expire_after),
            delivery=choice(Delivery, delivery, "delivery"),
            consume=bool(consume_on_read),
            request_id=idempotency_key,
            ttl_s=ttl_of(idempotency_key_ttl),
        )
        return await self.api.call(request, using)

    async def list_events(
        self, key: str | None = None, *, before: int | None = None, limit: int = 100
    ) -> list[EventInfo]:
        """Events that are kept, the newest first; the next page is `before` the last one's id."""
        return list(plain(await self.api.call(ListEvents(org=self.org, key=key, before=before, limit=limit))).events)

    async def event_key(self, key: str) -> EventKeyInfo:
        """How many events of a key are kept, and how many were dropped because there were too many."""
        return await self.api.call(GetEventKey(org=self.org, key=key))

    async def dead_events(
        self, key: str | None = None, *, before: int | None = None, limit: int = 100
    ) -> list[EventInfo]:
        """Events that nobody ever got, the newest first: they expired, or were dropped."""
        request = ListDeadEvents(org=self.org, key=key, before=before, limit=limit)
        return list(plain(await self.api.call(request)).events)

    async def replay_event(self, event_id: int) -> PublishResult:
        """Publish a dead event again, with a new number. Raises EventNotFound if it is not dead (any more)."""
        return await self.api.call(ReplayDeadEvent(org=self.org, event_id=event_id))

    async def remove_event(self, event_id: int) -> None:
        """Remove an event, kept or dead: nobody will get it. Raises EventNotFound if there is none."""
        await self.api.call(RemoveEvent(org=self.org, event_id=event_id))

    async def explain_event(self, event_id: int) -> EventExplanation:
        """Why an event that is kept or dead went to whom it went: every open wait of its key, and what refused it."""
        return plain(await self.api.call(ExplainEvent(org=self.org, event_id=event_id)))

    async def send_message(
        self,
        name: str,
        correlation_key: str,
        data: Any = None,
        *,
        idempotency_key: str | None = None,
        expire_after: Duration | None = None,
    ) -> SendResult:
        """Give a message to the one who has waited longest for this name and correlation key.

        The answer is true if there was one. Else the message is kept for the first who asks, for as long as events are
        kept, or for `expire_after`.
        """
        request = SendMessage(
            org=self.org,
            key=name,
            correlation=correlation_key,
            data=encode(data, field="data", limit=self._limit),
            expire_after_s=_expiry(expire_after),
            request_id=idempotency_key,
        )
        return await self.api.call(request)

    async def broadcast(self, name: str, *, idempotency_key: str | None = None) -> BroadcastResult:
        """Wake everybody who waits for `name` now, and say how many that were, when all of them have got it.

        Nothing is kept for those who come later. With the same `idempotency_key` again it is the same broadcast, and
        the same answer: also after a crash on the way.
        """
        check_name(name, "name")
        return await self.api.call(ThrowBroadcast(org=self.org, name=name, request_id=idempotency_key))


def _expiry(expire_after: Duration | None) -> float | None:
    return None if expire_after is None else time_limit_s(expire_after, "expire_after")
