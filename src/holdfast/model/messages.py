"""What comes from outside and is no signal: promises, subscriptions, published events, broadcasts under way."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Raw

from holdfast.model.records import table
from holdfast.model.values import NULL, Failure, Settlement


class PromiseState(StrEnum):
    PENDING = "PENDING"
    RESOLVED = "RESOLVED"
    REJECTED = "REJECTED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"


class PromiseRow(msgspec.Struct, kw_only=True):
    """One promise of an execution, kept after it is settled: the first settlement is the answer to all later ones.

    One that was settled before its workflow has created it has `promise_no` 0 and, at `expires_at`, is forgotten.
    `shape` is what a value must look like, see `model.shapes`; `null` for anything.
    """

    execution_id: str
    name: str
    org: str
    promise_no: int
    state: PromiseState
    created_at: int
    value: Raw = NULL
    failure: Failure | None = None
    settled_at: int | None = None
    settled_by: Settlement | None = None
    event_key: str | None = None
    timer_no: int | None = None
    expires_at: int | None = None
    shape: Raw = NULL

    @property
    def id(self) -> str:
        return f"{self.execution_id}:{self.name}"


@table("holdfast_tokens", key=("token_hash",), owner="execution_id", on_conflict="keep")
class TokenRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a completion token stands for: a promise by its name, or an attempt of a task. Only its hash is kept."""

    token_hash: str
    org: str
    execution_id: str
    promise: str | None = None
    task_no: int | None = None
    attempt: int | None = None


class SubscriptionKind(StrEnum):
    EVENT = "event"
    MESSAGE = "message"
    BROADCAST = "broadcast"


class SubscriptionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A wait of an execution that an event, message or broadcast may settle. Ids grow in the order of waiting.

    `eq_path` and `eq_value` are an equality that the filter demands: what is searched by. A message's correlation key
    is one with an empty path. `promise` names the promise that is settled instead of a wait. `joins` is an event that
    was on its way when the wait looked back: it may have that one and later ones, although it is younger.
    """

    id: int
    execution_id: str
    wait_no: int
    org: str
    kind: SubscriptionKind
    key: str
    created_at: int
    eq_path: str | None = None
    eq_value: str | None = None
    where: str | None = None
    consume: bool = False
    promise: str | None = None
    joins: int | None = None


class PublishedRow(msgspec.Struct, kw_only=True):
    """A published event that is kept for those who look back."""

    id: int
    org: str
    key: str
    data: Raw = NULL
    published_at: int
    expires_at: int
    correlation: str | None = None
    created_before: bool = False
    consume: bool = False
    delivered: int = 0


@table("holdfast_event_keys", key=("org", "key"), owner="org")
class EventKeyRow(msgspec.Struct, kw_only=True):
    """How many events of a key are kept, and how many were dropped because they were too many."""

    org: str
    key: str
    retained: int = 0
    dropped: int = 0


class DeliveryRow(msgspec.Struct, kw_only=True):
    """An event, message or broadcast on its way: `cursor` is the last subscription it has come to, and only those with
    numbers below `bound` were there when it was sent. `kept` says that it was kept as well, for those who look back.
    Done when `done_at` is set."""

    id: int
    org: str
    kind: SubscriptionKind
    key: str
    data: Raw = NULL
    sent_at: int
    cursor: int = 0
    bound: int = 0
    delivered: int = 0
    correlation: str | None = None
    consume: bool = False
    kept: bool = False
    idempotency_key: str | None = None
    done_at: int | None = None


@table("holdfast_dead_events", key=("id",), owner="org", on_conflict="keep", age="at")
class DeadEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A published event that nobody ever got, and why: it expired, or there were too many of its key."""

    id: int
    org: str
    key: str
    data: Raw = NULL
    published_at: int
    correlation: str | None = None
    reason: str
    at: int


@table("holdfast_event_triggers", key=("org", "key", "kind"), owner="org", columns={"where": "filter"})
class TriggerRow(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a key start this workflow, if they satisfy the filter."""

    org: str
    key: str
    kind: str
    version: str
    queue: str
    where: str | None = None
