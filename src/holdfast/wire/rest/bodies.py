"""What a request may carry: its body, or its query. Fields nobody knows are refused, never ignored.

Names are those of the contract and of the source documents. `request_id` and `idempotency_key` mean the same; so does
the header `Idempotency-Key`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from holdfast.model.messages import SubscriptionKind
from holdfast.model.values import NULL, Delivery

# What only documents is checked by the engine, which says it in the same words wherever a call comes from.
Name = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 255})]
PromiseId = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 292})]
Number = Annotated[int, Meta(gt=-(2**62), lt=2**62, extra_json_schema={"minimum": 1})]
Seconds = Annotated[float, Meta(extra_json_schema={"exclusiveMinimum": 0})]
Priority = Annotated[int, Meta(extra_json_schema={"minimum": -(2**31), "maximum": 2**31 - 1})]
Instant = Annotated[datetime, Meta(tz=True)]
Limit = Annotated[int, Meta(gt=-(2**62), lt=2**62, extra_json_schema={"minimum": 1, "maximum": 1000})]
Wait = Annotated[float, Meta(ge=0, le=30)]
"""How long to wait for something that has not happened yet, in seconds."""


def null() -> Raw:
    """The default of a payload. A function, because a JSON schema can't show a raw value."""
    return NULL


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all of them share."""


class NoBody(Body, frozen=True, kw_only=True):
    """Nothing: an empty object, or no body at all."""


# --- executions ---------------------------------------------------------------------------------------------------


class ReasonBody(Body, frozen=True, kw_only=True):
    reason: str = ""


class OutputQuery(Body, frozen=True, kw_only=True):
    """The next page is `after` the last one's sequence."""

    after: Annotated[int, Meta(ge=0, lt=2**62)] = 0
    limit: Limit = 100


class StreamQuery(Body, frozen=True, kw_only=True):
    """The header `Last-Event-ID` counts more than `after`."""

    after: Annotated[int, Meta(ge=0, lt=2**62)] = 0


class WaitQuery(Body, frozen=True, kw_only=True):
    wait: Wait = 0


# --- promises, events, broadcasts, messages -----------------------------------------------------------------------


class Rejection(Body, frozen=True, kw_only=True):
    """An error in its durable form; a text alone may stand for it."""

    type: Name = "PromiseRejected"
    message: str = ""
    traceback: str = ""
    code: str = ""
    non_retryable: bool = False
    cause: Rejection | None = None


class ResolveBody(Body, frozen=True, kw_only=True):
    promise_id: PromiseId
    value: Raw = msgspec.field(default_factory=null)
    allow_early: bool = False
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class RejectBody(Body, frozen=True, kw_only=True):
    promise_id: PromiseId
    error: str | Rejection
    allow_early: bool = False
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class CompleteBody(Body, frozen=True, kw_only=True):
    """By token, or by the hash of it. With an `error` the promise is rejected, or the task's attempt fails."""

    token: Name | None = None
    token_hash: Name | None = None
    result: Raw = msgspec.field(default_factory=null)
    error: str | Rejection | None = None
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class CompleteNamedBody(Body, frozen=True, kw_only=True):
    """By workflow id and name, which are in the path."""

    result: Raw = msgspec.field(default_factory=null)
    error: str | Rejection | None = None
    allow_early: bool = False
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class PublishBody(Body, frozen=True, kw_only=True):
    key: Name
    data: Raw = msgspec.field(default_factory=null)
    expire_after_seconds: Seconds | None = None
    delivery: Delivery = Delivery.WAITERS_AND_FUTURE
    consume_on_read: bool = False
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class MessageBody(Body, frozen=True, kw_only=True):
    """A message goes to exactly one: who has waited longest for this name and correlation key."""

    name: Name
    correlation_key: Name
    data: Raw = msgspec.field(default_factory=null)
    expire_after_seconds: Seconds | None = None
    delivery: Delivery = Delivery.WAITERS_AND_FUTURE
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class BroadcastBody(Body, frozen=True, kw_only=True):
    """One of the two spellings of the name."""

    SignalName: Name | None = None
    signal_name: Name | None = None
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class EventsQuery(Body, frozen=True, kw_only=True):
    """The next page is `before` the last one's id."""

    key: Name | None = None
    before: Number | None = None
    limit: Limit = 100


class WaitsQuery(Body, frozen=True, kw_only=True):
    kind: SubscriptionKind = SubscriptionKind.EVENT
    limit: Limit = 100
