"""Promises, published events, broadcasts and messages as JSON, and back."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Raw

from holdfast.contract import messages as ms
from holdfast.model.messages import (
    DeadEvent,
    EventKeyRow,
    PromiseRow,
    PromiseState,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
)
from holdfast.model.values import Settlement
from holdfast.transport.rest.bodies import null
from holdfast.transport.rest.reading import read_failure
from holdfast.transport.rest.times import instant, instant_or_none, micros, micros_or_none
from holdfast.transport.rest.views import FailureView, View, failure_view


class SettledView(View, frozen=True, kw_only=True):
    """How a promise is settled. `already_resolved`: somebody else was first, and the rest is theirs."""

    promise_id: str
    state: PromiseState
    already_resolved: bool
    value: Raw = msgspec.field(default_factory=null)
    failure: FailureView | None = None
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class SettlementView(View, frozen=True, kw_only=True):
    """What has settled a promise: by its id, name or token, or by an event."""

    by: str
    idempotency_key: str | None = None
    event_id: int | None = None


class PromiseView(View, frozen=True, kw_only=True):
    """A promise of an execution. `shape` is what a value must look like; null for anything."""

    promise_id: str
    workflow_execution_id: str
    name: str
    number: int
    state: PromiseState
    created_at: datetime
    value: Raw = msgspec.field(default_factory=null)
    failure: FailureView | None = None
    event_key: str | None = None
    settled_at: datetime | None = None
    settled_by: SettlementView | None = None
    expires_at: datetime | None = None
    shape: Raw = msgspec.field(default_factory=null)


class PromiseList(View, frozen=True, kw_only=True):
    promises: tuple[PromiseView, ...]


class SubscriptionView(View, frozen=True, kw_only=True):
    """A wait that an event, message or broadcast may settle. `subscription_id` grows in the order of waiting."""

    subscription_id: int
    workflow_execution_id: str
    wait_number: int
    kind: SubscriptionKind
    key: str
    since: datetime
    where: str | None = None
    correlation_key: str | None = None
    consume_on_read: bool = False
    promise: str | None = None


class SubscriptionList(View, frozen=True, kw_only=True):
    """The longest waiting first."""

    waits: tuple[SubscriptionView, ...]


class PublishedView(View, frozen=True, kw_only=True):
    """What became of an event. It is still on its way to more while `done` is false."""

    event_id: int
    delivered: int
    retained: bool
    started: tuple[str, ...] = ()
    done: bool = True
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class BroadcastView(View, frozen=True, kw_only=True):
    """How many waits were woken, in both spellings."""

    DeliveredCount: int
    delivered_count: int
    broadcast_id: int
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class KeptEventView(View, frozen=True, kw_only=True):
    """A published event. `status`: kept for those who look back, or dead, with the reason."""

    event_id: int
    key: str
    status: str
    data: Raw = msgspec.field(default_factory=null)
    published_at: datetime
    expires_at: datetime | None = None
    delivered: int = 0
    correlation_key: str | None = None
    created_before: bool = False
    consume_on_read: bool = False
    reason: str | None = None
    dead_at: datetime | None = None


class KeptEventList(View, frozen=True, kw_only=True):
    """The newest first. The next page is `before` the last one's `event_id`."""

    events: tuple[KeptEventView, ...]


class EventKeyView(View, frozen=True, kw_only=True):
    """How many events of a key are kept, and how many were dropped because they were too many."""

    key: str
    retained: int
    dropped: int


# --- from the contract --------------------------------------------------------------------------------------------


def settled_view(answer: ms.SettleAnswer) -> SettledView:
    return SettledView(
        promise_id=answer.promise_id,
        state=answer.state,
        already_resolved=answer.already_resolved,
        value=answer.value,
        failure=failure_view(answer.failure),
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


def promise_view(row: PromiseRow) -> PromiseView:
    by = row.settled_by
    return PromiseView(
        promise_id=row.id,
        workflow_execution_id=row.execution_id,
        name=row.name,
        number=row.promise_no,
        state=row.state,
        created_at=instant(row.created_at),
        value=row.value,
        failure=failure_view(row.failure),
        event_key=row.event_key,
        settled_at=instant_or_none(row.settled_at),
        settled_by=None
        if by is None
        else SettlementView(by=by.by, idempotency_key=by.idempotency_key, event_id=by.event_id),
        expires_at=instant_or_none(row.expires_at),
        shape=row.shape,
    )


def subscription_view(row: SubscriptionRow) -> SubscriptionView:
    return SubscriptionView(
        subscription_id=row.id,
        workflow_execution_id=row.execution_id,
        wait_number=row.wait_no,
        kind=row.kind,
        key=row.key,
        since=instant(row.created_at),
        where=row.where,
        correlation_key=row.eq_value if row.kind is SubscriptionKind.MESSAGE else None,
        consume_on_read=row.consume,
        promise=row.promise,
    )


def published_view(answer: ms.PublishAnswer) -> PublishedView:
    return PublishedView(
        event_id=answer.event_id,
        delivered=answer.delivered,
        retained=answer.retained,
        started=answer.started,
        done=answer.done,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


def broadcast_view(answer: ms.BroadcastAnswer) -> BroadcastView:
    return BroadcastView(
        DeliveredCount=answer.delivered,
        delivered_count=answer.delivered,
        broadcast_id=answer.broadcast_id,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


def kept_event_view(row: PublishedRow | DeadEvent) -> KeptEventView:
    if isinstance(row, DeadEvent):
        return KeptEventView(
            event_id=row.id,
            key=row.key,
            status="dead",
            data=row.data,
            published_at=instant(row.published_at),
            correlation_key=row.correlation,
            reason=row.reason,
            dead_at=instant(row.at),
        )
    return KeptEventView(
        event_id=row.id,
        key=row.key,
        status="kept",
        data=row.data,
        published_at=instant(row.published_at),
        expires_at=instant(row.expires_at),
        delivered=row.delivered,
        correlation_key=row.correlation,
        created_before=row.created_before,
        consume_on_read=row.consume,
    )


def event_key_view(row: EventKeyRow) -> EventKeyView:
    return EventKeyView(key=row.key, retained=row.retained, dropped=row.dropped)


# --- and back, for the client -------------------------------------------------------------------------------------


def read_settled(view: SettledView) -> ms.SettleAnswer:
    return ms.SettleAnswer(
        promise_id=view.promise_id,
        state=view.state,
        already_resolved=view.already_resolved,
        value=view.value,
        failure=read_failure(view.failure),
        idempotency_key_used=view.idempotency_key_used,
        idempotency_key_new=view.idempotency_key_new,
    )


def read_promise(view: PromiseView, org: str) -> PromiseRow:
    by = view.settled_by
    return PromiseRow(
        execution_id=view.workflow_execution_id,
        name=view.name,
        org=org,
        promise_no=view.number,
        state=view.state,
        created_at=micros(view.created_at),
        value=view.value,
        failure=read_failure(view.failure),
        settled_at=micros_or_none(view.settled_at),
        settled_by=None
        if by is None
        else Settlement(by=by.by, idempotency_key=by.idempotency_key, event_id=by.event_id),
        event_key=view.event_key,
        expires_at=micros_or_none(view.expires_at),
        shape=view.shape,
    )


def read_subscription(view: SubscriptionView, org: str) -> SubscriptionRow:
    return SubscriptionRow(
        id=view.subscription_id,
        execution_id=view.workflow_execution_id,
        wait_no=view.wait_number,
        org=org,
        kind=view.kind,
        key=view.key,
        created_at=micros(view.since),
        eq_path="" if view.kind is SubscriptionKind.MESSAGE else None,
        eq_value=view.correlation_key,
        where=view.where,
        consume=view.consume_on_read,
        promise=view.promise,
    )


def read_published(view: PublishedView) -> ms.PublishAnswer:
    return ms.PublishAnswer(
        event_id=view.event_id,
        delivered=view.delivered,
        retained=view.retained,
        started=view.started,
        done=view.done,
        idempotency_key_used=view.idempotency_key_used,
        idempotency_key_new=view.idempotency_key_new,
    )


def read_broadcast(view: BroadcastView) -> ms.BroadcastAnswer:
    return ms.BroadcastAnswer(
        broadcast_id=view.broadcast_id,
        delivered=view.delivered_count,
        idempotency_key_used=view.idempotency_key_used,
        idempotency_key_new=view.idempotency_key_new,
    )


def read_kept_event(view: KeptEventView, org: str) -> PublishedRow | DeadEvent:
    if view.status == "dead":
        return DeadEvent(
            id=view.event_id,
            org=org,
            key=view.key,
            data=view.data,
            published_at=micros(view.published_at),
            correlation=view.correlation_key,
            reason=view.reason or "",
            at=micros_or_none(view.dead_at) or 0,
        )
    return PublishedRow(
        id=view.event_id,
        org=org,
        key=view.key,
        data=view.data,
        published_at=micros(view.published_at),
        expires_at=micros_or_none(view.expires_at) or 0,
        correlation=view.correlation_key,
        created_before=view.created_before,
        consume=view.consume_on_read,
        delivered=view.delivered,
    )
