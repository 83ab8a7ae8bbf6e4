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
from holdfast.model.executions import Status
from holdfast.model.values import NULL

# What only documents is checked by the engine, which says it in the same words wherever a call comes from.
Name = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 255})]
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

    status: tuple[Status, ...] = ()
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

    status: tuple[Status, ...] = ()
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
