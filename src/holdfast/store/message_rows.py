"""Rows to records and back: promises, subscriptions, published events, deliveries."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from holdfast.model.messages import (
    DeliveryRow,
    PromiseRow,
    PromiseState,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
)
from holdfast.model.values import Failure, Settlement
from holdfast.store.rows import Row

_encode = msgspec.json.Encoder().encode
_decode_failure = msgspec.json.Decoder(Failure).decode
_decode_settlement = msgspec.json.Decoder(Settlement).decode

_PROMISE: Final = PromiseRow.__struct_fields__
_KINDS: Final = {str(kind): kind for kind in SubscriptionKind}
_SUBSCRIPTION: Final = SubscriptionRow.__struct_fields__
_PUBLISHED: Final = PublishedRow.__struct_fields__
_DELIVERY: Final = DeliveryRow.__struct_fields__


def _text(payload: Raw) -> str:
    return bytes(payload).decode()


def _json(value: Any) -> str | None:
    return None if value is None else _encode(value).decode()


def promise_to_row(p: PromiseRow) -> Row:
    return (
        p.execution_id,
        p.name,
        p.org,
        p.promise_no,
        str(p.state),
        p.created_at,
        _text(p.value),
        _json(p.failure),
        p.settled_at,
        _json(p.settled_by),
        p.event_key,
        p.timer_no,
        p.expires_at,
        _text(p.shape),
    )


def row_to_promise(row: Row) -> PromiseRow:
    fields = dict(zip(_PROMISE, row, strict=True))
    fields["state"] = PromiseState(fields["state"])
    fields["value"] = Raw(fields["value"])
    fields["shape"] = Raw(fields["shape"])
    if fields["failure"] is not None:
        fields["failure"] = _decode_failure(fields["failure"])
    if fields["settled_by"] is not None:
        fields["settled_by"] = _decode_settlement(fields["settled_by"])
    return PromiseRow(**fields)


def subscription_to_row(s: SubscriptionRow) -> Row:
    return (
        s.id,
        s.execution_id,
        s.wait_no,
        s.org,
        str(s.kind),
        s.key,
        s.created_at,
        s.eq_path,
        s.eq_value,
        s.where,
        int(s.consume),
        s.promise,
        s.joins,
    )


def row_to_subscription(row: Row) -> SubscriptionRow:
    fields = dict(zip(_SUBSCRIPTION, row, strict=True))
    fields["kind"] = _KINDS[fields["kind"]]
    fields["consume"] = fields["consume"] == 1
    return SubscriptionRow(**fields)


def published_to_row(p: PublishedRow) -> Row:
    return (
        p.id,
        p.org,
        p.key,
        _text(p.data),
        p.published_at,
        p.expires_at,
        p.correlation,
        int(p.created_before),
        int(p.consume),
        p.delivered,
    )


def row_to_published(row: Row) -> PublishedRow:
    fields = dict(zip(_PUBLISHED, row, strict=True))
    fields["data"] = Raw(fields["data"])
    fields["created_before"] = fields["created_before"] == 1
    fields["consume"] = fields["consume"] == 1
    return PublishedRow(**fields)


def delivery_to_row(d: DeliveryRow) -> Row:
    return (
        d.id,
        d.org,
        str(d.kind),
        d.key,
        _text(d.data),
        d.sent_at,
        d.cursor,
        d.bound,
        d.delivered,
        d.correlation,
        int(d.consume),
        int(d.kept),
        d.idempotency_key,
        d.done_at,
    )


def row_to_delivery(row: Row) -> DeliveryRow:
    fields = dict(zip(_DELIVERY, row, strict=True))
    fields["kind"] = SubscriptionKind(fields["kind"])
    fields["data"] = Raw(fields["data"])
    fields["consume"] = fields["consume"] == 1
    fields["kept"] = fields["kept"] == 1
    return DeliveryRow(**fields)
