"""Published events in the words of an application: sent, listed, replayed, removed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.client.options import choice
from holdfast.client.promises import ttl_of
from holdfast.client.views import instant
from holdfast.contract.messages import Messages, PublishAnswer, PublishEvent, RemoveEvent, ReplayDeadEvent
from holdfast.frontends.python.definitions import Duration, time_limit_s
from holdfast.model.messages import DeadEvent, PublishedRow, SubscriptionKind, SubscriptionRow
from holdfast.model.payloads import decode, encode
from holdfast.model.values import DeliveryMode


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishResult:
    """What became of an event: how many waits have got it, whether it is kept for those who look back, and the
    executions it has started.

    `done` is False while it is still on its way: more waited for it than one transaction should reach.
    `idempotency_key_new` is False if this very call had been made before; the rest is then as it was answered first.
    """

    event_id: int
    delivered: int
    retained: bool
    started: tuple[str, ...] = ()
    done: bool = True
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EventInfo:
    """A published event that is kept for those who look back. `delivered` counts those who have got it so far."""

    id: int
    key: str
    data: Any
    published_at: datetime
    expires_at: datetime
    delivered: int
    consume_on_read: bool = False
    created_before: bool = False
    correlation_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEventInfo:
    """A published event that nobody ever got. `reason`: it "expired", or it was "dropped" since there were too many of
    its key."""

    id: int
    key: str
    data: Any
    published_at: datetime
    reason: str
    at: datetime
    correlation_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventKeyInfo:
    """How many events of a key are kept, and how many were dropped so far because there were too many."""

    key: str
    retained: int
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitInfo:
    """What an execution waits for that may be published, sent or thrown: an "event", "message" or "broadcast". With
    `promise` it is the promise of this name that the event settles."""

    wait_no: int
    kind: str
    key: str
    since: datetime
    where: str | None = None
    correlation_key: str | None = None
    consume_on_read: bool = False
    promise: str | None = None


class Events:
    """What a client does about published events. See `Client`."""

    __slots__ = ("_limit", "_messages", "_org")

    def __init__(self, messages: Messages, org: str, payload_limit: int) -> None:
        self._messages = messages
        self._org = org
        self._limit = payload_limit

    async def publish(
        self,
        key: str,
        data: Any,
        *,
        idempotency_key: str | None,
        idempotency_key_ttl: Duration | None,
        expire_after: Duration | None,
        delivery: DeliveryMode | str,
        consume_on_read: bool,
        using: Any = None,
    ) -> PublishResult:
        request = PublishEvent(
            org=self._org,
            key=key,
            data=encode(data, field="data", limit=self._limit),
            expire_after_s=None if expire_after is None else time_limit_s(expire_after, "expire_after"),
            delivery=choice(DeliveryMode, delivery, "delivery"),
            consume=bool(consume_on_read),
            request_id=idempotency_key,
            ttl_s=ttl_of(idempotency_key_ttl),
        )
        return _published(await self._messages.publish(request, using))

    async def kept(self, key: str | None, before: int | None, limit: int) -> list[EventInfo]:
        return [event_view(row) for row in await self._messages.events(self._org, key, before, limit)]

    async def dead(self, key: str | None, before: int | None, limit: int) -> list[DeadEventInfo]:
        return [dead_view(row) for row in await self._messages.dead_events(self._org, key, before, limit)]

    async def key(self, key: str) -> EventKeyInfo:
        row = await self._messages.event_key(self._org, key)
        return EventKeyInfo(key=row.key, retained=row.retained, dropped=row.dropped)

    async def replay(self, event_id: int) -> PublishResult:
        return _published(await self._messages.replay_dead_event(ReplayDeadEvent(org=self._org, event_id=event_id)))

    async def remove(self, event_id: int) -> None:
        await self._messages.remove_event(RemoveEvent(org=self._org, event_id=event_id))

    async def waits(self, execution_id: str) -> list[WaitInfo]:
        return [wait_view(row) for row in await self._messages.waits(self._org, execution_id)]


def _published(answer: PublishAnswer) -> PublishResult:
    return PublishResult(
        event_id=answer.event_id,
        delivered=answer.delivered,
        retained=answer.retained,
        started=answer.started,
        done=answer.done,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


def event_view(row: PublishedRow) -> EventInfo:
    return EventInfo(
        id=row.id,
        key=row.key,
        data=decode(row.data, field="data"),
        published_at=instant(row.published_at),
        expires_at=instant(row.expires_at),
        delivered=row.delivered,
        consume_on_read=row.consume,
        created_before=row.created_before,
        correlation_key=row.correlation,
    )


def dead_view(row: DeadEvent) -> DeadEventInfo:
    return DeadEventInfo(
        id=row.id,
        key=row.key,
        data=decode(row.data, field="data"),
        published_at=instant(row.published_at),
        reason=row.reason,
        at=instant(row.at),
        correlation_key=row.correlation,
    )


def wait_view(row: SubscriptionRow) -> WaitInfo:
    return WaitInfo(
        wait_no=row.wait_no if row.promise is None else 0,
        kind=str(row.kind),
        key=row.key,
        since=instant(row.created_at),
        where=row.where,
        correlation_key=row.eq_value if row.kind is SubscriptionKind.MESSAGE else None,
        consume_on_read=row.consume,
        promise=row.promise,
    )
