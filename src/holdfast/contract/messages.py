"""Promises, published events, messages and broadcasts: what comes from outside and is no signal.

A promise is settled once: the first settlement wins, a later one is answered with it. An event goes to every wait for
its key and is kept for waits that look back; a message goes to exactly one; a broadcast wakes all who wait now.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from holdfast.contract.failures import Rejection
from holdfast.contract.fields import NAME_SCHEMA, Key, KeyTtl, Limit, Name, Number, Payload, Seconds, named, null
from holdfast.contract.operation import (
    DELETE,
    EXECUTION,
    GET,
    ORG,
    POST,
    V1,
    Record,
    Request,
    operation,
    public_names,
)
from holdfast.model.keys import Role
from holdfast.model.messages import PromiseState, SubscriptionKind
from holdfast.model.values import Delivery, Failure

EVENTS: Final = f"{ORG}/events"
EVENT: Final = f"{EVENTS}/{{event_id}}"
PROMISES_TAG: Final = "promises"
EVENTS_TAG: Final = "events"
EXECUTIONS_TAG: Final = "workflow executions"
KEPT: Final = "kept"
DEAD: Final = "dead"

PromiseId = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 292})]
"""An execution id, a colon and a name. The engine checks both parts."""


# --- promises -----------------------------------------------------------------------------------------------------


class SettledPromise(Record, frozen=True, kw_only=True):
    """How a promise is settled, by this call or by one before it: then `already_resolved`, and `state`, `value` and
    `failure` are those of the one that was first.

    `idempotency_key_new` is False if the same key had been used for this very call before; the rest is then as it was
    answered first.
    """

    promise_id: str
    state: PromiseState
    already_resolved: bool
    value: Any = None
    failure: Failure | None = None
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


@operation(
    "resolve_promise",
    POST,
    f"{ORG}/promises/resolve",
    Role.WRITER,
    tag=PROMISES_TAG,
    payload=True,
    aliases=(f"{V1}/promises/resolve",),
    example={"promise_id": "0198…:approval", "value": {"approved": True}, "idempotency_key": "call-1"},
)
class ResolvePromise(Request[SettledPromise], frozen=True, kw_only=True):
    """Give a promise its value.

    With `allow_early` a promise that its workflow has not made yet is settled in advance.
    """

    promise_id: PromiseId
    value: Payload = msgspec.field(default_factory=null)
    allow_early: bool = False
    request_id: Key | None = None
    ttl_s: KeyTtl | None = None


@operation(
    "reject_promise",
    POST,
    f"{ORG}/promises/reject",
    Role.WRITER,
    tag=PROMISES_TAG,
    payload=True,
    aliases=(f"{V1}/promises/reject",),
    example={"promise_id": "0198…:approval", "error": "nobody has time"},
)
class RejectPromise(Request[SettledPromise], frozen=True, kw_only=True):
    """Reject a promise."""

    promise_id: PromiseId
    error: str | Rejection
    allow_early: bool = False
    request_id: Key | None = None
    ttl_s: KeyTtl | None = None


@operation(
    "complete_promise",
    POST,
    f"{ORG}/promises/complete",
    Role.WRITER,
    tag=PROMISES_TAG,
    payload=True,
    aliases=(f"{V1}/promises/complete",),
    example={"token": "ct_…", "request_id": "call-1", "result": {"approved": True}},
)
class CompletePromise(Request[SettledPromise], frozen=True, kw_only=True, rename=public_names(value="result")):
    """Settle what a token stands for: a promise, or an attempt of a task.

    By token, or by the hash of it. With an `error` the promise is rejected, or the task's attempt fails.
    """

    token: Name | None = None
    token_hash: Name | None = None
    value: Payload = msgspec.field(default_factory=null)
    error: str | Rejection | None = None
    request_id: Key | None = None
    ttl_s: KeyTtl | None = None


@operation(
    "complete_named_promise",
    POST,
    f"{ORG}/workflows/{{workflow_id}}/promises/{{promise_name}}/complete",
    Role.WRITER,
    tag=PROMISES_TAG,
    payload=True,
    aliases=(f"{V1}/workflows/{{workflow_id}}/promises/{{promise_name}}/complete",),
    example={"request_id": "call-1", "result": {"approved": True}},
)
class CompleteNamedPromise(
    Request[SettledPromise], frozen=True, kw_only=True, rename=public_names(name="promise_name", value="result")
):
    """Settle the promise of this name in the open execution of a workflow id, or in the last one."""

    workflow_id: Name
    name: Name
    value: Payload = msgspec.field(default_factory=null)
    error: str | Rejection | None = None
    allow_early: bool = False
    request_id: Key | None = None
    ttl_s: KeyTtl | None = None


# --- events, messages, broadcasts ---------------------------------------------------------------------------------


class PublishResult(Record, frozen=True, kw_only=True):
    """What became of an event: how many waits have got it so far, whether it is kept for those who look back, and the
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


class SendResult(PublishResult, frozen=True, kw_only=True):
    """What became of a message; true if somebody was waiting for it. Else it is kept for the first who asks."""

    def __bool__(self) -> bool:
        return self.delivered > 0


class BroadcastResult(
    Record,
    frozen=True,
    kw_only=True,
    rename=public_names(delivered="delivered_count", delivered_count="DeliveredCount"),
):
    """How many waits a broadcast has woken. JSON has the number in both spellings."""

    broadcast_id: int
    delivered: int
    delivered_count: int
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


@operation(
    "publish_event",
    POST,
    EVENTS,
    Role.WRITER,
    tag=EVENTS_TAG,
    payload=True,
    aliases=(f"{V1}/events",),
    example={"key": "payment.received", "data": {"order": 7, "amount": 12.5}, "idempotency_key": "payment-1"},
)
class PublishEvent(Request[PublishResult], frozen=True, kw_only=True, rename=public_names(consume="consume_on_read")):
    """Publish an event to whoever waits for its key, and to those who will look back."""

    key: Name
    data: Payload = msgspec.field(default_factory=null)
    expire_after_s: Seconds | None = None
    delivery: Delivery = Delivery.WAITERS_AND_FUTURE
    consume: bool = False
    request_id: Key | None = None
    ttl_s: KeyTtl | None = None


@operation(
    "send_message",
    POST,
    f"{ORG}/messages",
    Role.WRITER,
    tag=EVENTS_TAG,
    payload=True,
    example={"name": "invoice", "correlation_key": "order:7", "data": {"total": 12.5}},
)
class SendMessage(
    Request[SendResult], frozen=True, kw_only=True, rename=public_names(key="name", correlation="correlation_key")
):
    """Give a message to the one who has waited longest for this name and correlation key, or keep it for one."""

    key: Annotated[str, Meta(extra_json_schema=NAME_SCHEMA), named("name")]
    correlation: Annotated[str, Meta(extra_json_schema=NAME_SCHEMA), named("correlation_key")]
    data: Payload = msgspec.field(default_factory=null)
    expire_after_s: Seconds | None = None
    delivery: Delivery = Delivery.WAITERS_AND_FUTURE
    request_id: Key | None = None
    ttl_s: KeyTtl | None = None


@operation(
    "broadcast", POST, f"{ORG}/signal", Role.WRITER, tag=EVENTS_TAG, waits=True, example={"SignalName": "shop.closed"}
)
class ThrowBroadcast(
    Request[BroadcastResult],
    frozen=True,
    kw_only=True,
    rename=public_names(name="signal_name", signal_name="SignalName"),
):
    """Wake everybody who waits for a broadcast of this name now.

    The name is given in one of its two spellings. The answer comes when everybody who was waiting has got it.
    """

    name: Name | None = None
    signal_name: Annotated[str, Meta(extra_json_schema=NAME_SCHEMA), named("SignalName")] | None = None
    request_id: Key | None = None
    ttl_s: KeyTtl | None = None


# --- what there is ------------------------------------------------------------------------------------------------


class SettlementInfo(Record, frozen=True, kw_only=True):
    """What has settled a promise: by its id, name or token, or by an event."""

    by: str
    idempotency_key: str | None = None
    event_id: int | None = None


class PromiseInfo(Record, frozen=True, kw_only=True, rename=public_names(id="promise_id")):
    """A promise of an execution. `shape` is what a value must look like; None for anything. One that was settled before
    its workflow has made it has number 0, and is forgotten when it `expires_at`."""

    id: str
    workflow_execution_id: str
    name: str
    number: int
    state: PromiseState
    created_at: datetime
    value: Any = None
    failure: Failure | None = None
    event_key: str | None = None
    settled_at: datetime | None = None
    settled_by: SettlementInfo | None = None
    expires_at: datetime | None = None
    shape: Any = None


class PromiseList(Record, frozen=True, kw_only=True):
    """In the order in which they were made."""

    promises: tuple[PromiseInfo, ...]


class WaitInfo(Record, frozen=True, kw_only=True, rename=public_names(id="subscription_id", wait_no="wait_number")):
    """A wait of an execution that an event, message or broadcast may settle. `id` grows in the order of waiting. With
    `promise` it is the promise of this name that the event settles."""

    id: int
    workflow_execution_id: str
    wait_no: int
    kind: SubscriptionKind
    key: str
    since: datetime
    where: str | None = None
    correlation_key: str | None = None
    consume_on_read: bool = False
    promise: str | None = None


class WaitList(Record, frozen=True, kw_only=True):
    """The longest waiting first."""

    waits: tuple[WaitInfo, ...]


class EventInfo(Record, frozen=True, kw_only=True, rename=public_names(id="event_id")):
    """A published event. `status` is `kept`: for those who look back, until it `expires_at`; `delivered` have got it so
    far. Or it is `dead`: nobody ever got it, and the `reason` is that it "expired", or was "dropped" since there were
    too many of its key."""

    id: int
    key: str
    status: str
    published_at: datetime
    data: Any = None
    expires_at: datetime | None = None
    delivered: int = 0
    correlation_key: str | None = None
    created_before: bool = False
    consume_on_read: bool = False
    reason: str | None = None
    dead_at: datetime | None = None

    @property
    def dead(self) -> bool:
        return self.status == DEAD


class EventList(Record, frozen=True, kw_only=True):
    """The newest first. The next page is `before` the last one's id."""

    events: tuple[EventInfo, ...]


class EventKeyInfo(Record, frozen=True, kw_only=True):
    """How many events of a key are kept, and how many were dropped because they were too many."""

    key: str
    retained: int
    dropped: int


@operation("workflow_promises", GET, f"{EXECUTION}/promises", Role.READER, tag=EXECUTIONS_TAG)
class ListPromises(Request[PromiseList], frozen=True, kw_only=True):
    """Its promises."""

    workflow_execution_id: Name


@operation("workflow_waits", GET, f"{EXECUTION}/waits", Role.READER, tag=EXECUTIONS_TAG)
class ListWaits(Request[WaitList], frozen=True, kw_only=True):
    """The events, messages and broadcasts it waits for."""

    workflow_execution_id: Name


@operation("list_events", GET, EVENTS, Role.READER, tag=EVENTS_TAG)
class ListEvents(Request[EventList], frozen=True, kw_only=True):
    """Events that are kept, the newest first."""

    key: Name | None = None
    before: Number | None = None
    limit: Limit = 100


@operation("list_dead_events", GET, f"{ORG}/dead-events", Role.READER, tag=EVENTS_TAG)
class ListDeadEvents(Request[EventList], frozen=True, kw_only=True):
    """Events that nobody ever got, the newest first."""

    key: Name | None = None
    before: Number | None = None
    limit: Limit = 100


@operation("get_event", GET, EVENT, Role.READER, tag=EVENTS_TAG)
class GetEvent(Request[EventInfo], frozen=True, kw_only=True):
    """One event, kept or dead."""

    event_id: Number


@operation("remove_event", DELETE, EVENT, Role.WRITER, tag=EVENTS_TAG, status=204, repeatable=False)
class RemoveEvent(Request[None], frozen=True, kw_only=True):
    """Remove an event, kept or dead: nobody will get it."""

    event_id: Number


@operation("replay_event", POST, f"{EVENT}/replay", Role.WRITER, tag=EVENTS_TAG, repeatable=False)
class ReplayDeadEvent(Request[PublishResult], frozen=True, kw_only=True):
    """Publish a dead event again, with a new number."""

    event_id: Number


@operation("event_key", GET, f"{ORG}/event-keys/{{key}}", Role.READER, tag=EVENTS_TAG)
class GetEventKey(Request[EventKeyInfo], frozen=True, kw_only=True):
    """How many events of a key are kept."""

    key: Name


@operation("waits_of_key", GET, f"{ORG}/event-keys/{{key}}/waits", Role.READER, tag=EVENTS_TAG)
class ListWaitsOfKey(Request[WaitList], frozen=True, kw_only=True):
    """Who waits for a key, the longest waiting first."""

    key: Name
    kind: SubscriptionKind = SubscriptionKind.EVENT
    limit: Limit = 100
