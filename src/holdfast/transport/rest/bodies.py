"""What a request may carry: its body, or its query. Fields nobody knows are refused, never ignored.

Names are those of the contract and of the source documents. `request_id` and `idempotency_key` mean the same; so does
the header `Idempotency-Key`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from holdfast.contract.calls import UpdateStatus
from holdfast.model.executions import WorkflowStatus
from holdfast.model.messages import SubscriptionKind
from holdfast.model.values import NULL, DeliveryMode, IfClosed, IfRunning

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


class StartBody(Body, frozen=True, kw_only=True):
    """Start an execution, or find the open one that has this workflow id."""

    workflow_kind: Name
    workflow_id: Name | None = None
    workflow_input: Raw = msgspec.field(default_factory=null)
    workflow_version: Name | None = None
    queue: Name = "default"
    priority_seconds: Priority = 0
    metadata: dict[str, str] | None = None
    execution_timeout_seconds: Seconds | None = None
    start_at: Instant | None = None
    if_running: IfRunning = IfRunning.USE_EXISTING
    if_closed: IfClosed = IfClosed.ALLOW
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class SignalWithStartBody(Body, frozen=True, kw_only=True):
    """Find the open execution of a workflow id or start it, and append the signal: one step."""

    workflow_id: Name
    workflow_kind: Name
    signal_name: Name
    signal_value: Raw = msgspec.field(default_factory=null)
    workflow_input: Raw = msgspec.field(default_factory=null)
    workflow_version: Name | None = None
    queue: Name = "default"
    priority_seconds: Priority = 0
    metadata: dict[str, str] | None = None
    execution_timeout_seconds: Seconds | None = None
    start_at: Instant | None = None
    if_closed: IfClosed = IfClosed.ALLOW
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class SignalBody(Body, frozen=True, kw_only=True):
    """`addressed_to` is the execution that the caller had named first, if this one goes on in its place."""

    signal_name: Name
    signal_value: Raw = msgspec.field(default_factory=null)
    addressed_to: Name | None = None
    idempotency_key: Name | None = None
    request_id: Name | None = None


class ReasonBody(Body, frozen=True, kw_only=True):
    reason: str = ""


class RetryBody(Body, frozen=True, kw_only=True):
    reason: str = ""
    idempotency_key: Name | None = None
    request_id: Name | None = None


class ResetBody(Body, frozen=True, kw_only=True):
    """Go on from an event where a turn ends, as if nothing after it had happened."""

    to_event: Number
    reason: str = ""
    reapply_signals: bool = True
    idempotency_key: Name | None = None
    request_id: Name | None = None


class ForkBody(Body, frozen=True, kw_only=True):
    """Begin a second execution with the past of this one."""

    at_event: Number
    workflow_id: Name | None = None
    reapply_signals: bool = False
    idempotency_key: Name | None = None
    request_id: Name | None = None


class QueryBody(Body, frozen=True, kw_only=True):
    """Leave `input` out for a query that takes none: null is a value."""

    query_name: Name
    input: Raw | msgspec.UnsetType = msgspec.UNSET
    as_of: Number | None = None


class UpdateBody(Body, frozen=True, kw_only=True):
    """`wait_for` says how far the update must have got before the answer; the same `update_id` is the same update."""

    update_name: Name
    input: Raw = msgspec.field(default_factory=null)
    update_id: Name | None = None
    wait_for: UpdateStatus = UpdateStatus.COMPLETED
    wait: Wait = 0
    idempotency_key: Name | None = None
    request_id: Name | None = None


class BuryBody(Body, frozen=True, kw_only=True):
    reason: Name = "left_unread"


class RedeliverBody(Body, frozen=True, kw_only=True):
    """To the open execution with the same workflow id, or to this execution or workflow id."""

    to: Name | None = None


class ListQuery(Body, frozen=True, kw_only=True):
    """`metadata` is `key=value`; all that are given must be there."""

    status: tuple[WorkflowStatus, ...] = ()
    workflow_kind: tuple[Name, ...] = ()
    workflow_id: Name | None = None
    queue: Name | None = None
    metadata: tuple[str, ...] = ()
    created_from: Instant | None = None
    created_before: Instant | None = None
    cursor: Name | None = None
    limit: Limit = 100


class ListStreamQuery(Body, frozen=True, kw_only=True):
    """As the list; what is among the newest `limit` is followed."""

    status: tuple[WorkflowStatus, ...] = ()
    workflow_kind: tuple[Name, ...] = ()
    workflow_id: Name | None = None
    queue: Name | None = None
    metadata: tuple[str, ...] = ()
    created_from: Instant | None = None
    created_before: Instant | None = None
    limit: Limit = 100


class HistoryQuery(Body, frozen=True, kw_only=True):
    """`wait`: answer when there is at least one event after `after`, or when so many seconds have passed."""

    after: Annotated[int, Meta(ge=0, lt=2**62)] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    type: tuple[Name, ...] = ()
    wait: Wait = 0


class OutputQuery(Body, frozen=True, kw_only=True):
    """The next page is `after` the last one's sequence."""

    after: Annotated[int, Meta(ge=0, lt=2**62)] = 0
    limit: Limit = 100


class StreamQuery(Body, frozen=True, kw_only=True):
    """The header `Last-Event-ID` counts more than `after`."""

    after: Annotated[int, Meta(ge=0, lt=2**62)] = 0


class StateQuery(Body, frozen=True, kw_only=True):
    as_of: Number | None = None


class WaitQuery(Body, frozen=True, kw_only=True):
    wait: Wait = 0


class UpdateQuery(Body, frozen=True, kw_only=True):
    """`sequence` is the number of the request in the history, if it is known: less has to be read."""

    wait_for: UpdateStatus = UpdateStatus.COMPLETED
    wait: Wait = 0
    sequence: Annotated[int, Meta(ge=0, lt=2**62)] = 0


class PageQuery(Body, frozen=True, kw_only=True):
    limit: Limit = 100


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
    delivery: DeliveryMode = DeliveryMode.WAITERS_AND_FUTURE
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
    delivery: DeliveryMode = DeliveryMode.WAITERS_AND_FUTURE
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
