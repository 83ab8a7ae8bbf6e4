"""Promises, published events, broadcasts and messages: what comes from outside and is no signal."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from holdfast.model.messages import (
    DeadEvent,
    EventKeyRow,
    PromiseRow,
    PromiseState,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
)
from holdfast.model.values import NULL, DeliveryMode, Failure


class SettlePromise(msgspec.Struct, frozen=True, kw_only=True):
    """Resolve a promise, or reject it if there is a `failure`. Named by `promise_id`, by `workflow_id` and `name`, or
    by `token_hash`; a token may also stand for a task's attempt.

    With `allow_early` a promise that its workflow has not made yet is settled in advance (by id or name only).
    """

    org: str
    promise_id: str | None = None
    workflow_id: str | None = None
    name: str | None = None
    token_hash: str | None = None
    value: Raw = NULL
    failure: Failure | None = None
    allow_early: bool = False
    request_id: str | None = None
    ttl_s: float | None = None


class SettleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`already_resolved`: somebody else was first, and `state`, `value` and `failure` are theirs.
    `idempotency_key_new` is False when this very call had been made before."""

    promise_id: str
    state: PromiseState
    already_resolved: bool
    value: Raw = NULL
    failure: Failure | None = None
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class PublishEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event for whoever waits for its key; with a `correlation`, a message for exactly one of them."""

    org: str
    key: str
    data: Raw = NULL
    correlation: str | None = None
    expire_after_s: float | None = None
    delivery: DeliveryMode = DeliveryMode.WAITERS_AND_FUTURE
    consume: bool = False
    request_id: str | None = None
    ttl_s: float | None = None


class PublishAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`delivered` counts the waits that have got it so far; it is still under way to more while `done` is False."""

    event_id: int
    delivered: int
    retained: bool
    started: tuple[str, ...] = ()
    done: bool = True
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class ThrowBroadcast(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    name: str
    request_id: str | None = None
    ttl_s: float | None = None


class BroadcastAnswer(msgspec.Struct, frozen=True, kw_only=True):
    broadcast_id: int
    delivered: int
    done: bool = True
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class ReplayDeadEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Publish an event that nobody has got once more."""

    org: str
    event_id: int


class RemoveEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Remove an event, whether it is kept or dead."""

    org: str
    event_id: int


class Messages(Protocol):
    """`using`: see `contract.executions.Executions`."""

    def settle(self, request: SettlePromise, using: Any = None) -> Awaitable[SettleAnswer]: ...

    def publish(self, request: PublishEvent, using: Any = None) -> Awaitable[PublishAnswer]: ...

    def broadcast(self, request: ThrowBroadcast) -> Awaitable[BroadcastAnswer]:
        """Answers when everybody who was waiting has got it."""
        ...

    def promises(self, org: str, execution_id: str) -> Awaitable[list[PromiseRow]]: ...

    def waits(self, org: str, execution_id: str) -> Awaitable[list[SubscriptionRow]]: ...

    def waits_of_key(
        self, org: str, key: str, limit: int = 100, kind: SubscriptionKind = SubscriptionKind.EVENT
    ) -> Awaitable[list[SubscriptionRow]]: ...

    def events(
        self, org: str, key: str | None = None, before: int | None = None, limit: int = 100
    ) -> Awaitable[list[PublishedRow]]: ...

    def dead_events(
        self, org: str, key: str | None = None, before: int | None = None, limit: int = 100
    ) -> Awaitable[list[DeadEvent]]: ...

    def event(self, org: str, event_id: int) -> Awaitable[PublishedRow | DeadEvent]:
        """One that is kept or dead. Raises EventNotFound."""
        ...

    def event_key(self, org: str, key: str) -> Awaitable[EventKeyRow]: ...

    def replay_dead_event(self, request: ReplayDeadEvent) -> Awaitable[PublishAnswer]: ...

    def remove_event(self, request: RemoveEvent) -> Awaitable[None]: ...
