"""Queries for callers about promises, waits, published events and deliveries."""

from __future__ import annotations

import sqlite3

from holdfast.model.messages import (
    DeliveryRow,
    PromiseRow,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
)
from holdfast.store.message_rows import (
    row_to_delivery,
    row_to_promise,
    row_to_published,
    row_to_subscription,
)
from holdfast.store.sqlite.statements import rows, statement

_PROMISES = statement("promises", "of_execution")
_WAITS = statement("subscriptions", "of_execution")
_WAITS_OF_KEY = statement("subscriptions", "page")
_PUBLISHED = statement("published", "page")
_DELIVERY = rows("deliveries", "by_id")
_AFTER_ALL = 2**62


def promises(connection: sqlite3.Connection, org: str, execution_id: str) -> list[PromiseRow]:
    return [row_to_promise(row) for row in connection.execute(_PROMISES, (execution_id, org)).fetchall()]


def waits(connection: sqlite3.Connection, org: str, execution_id: str) -> list[SubscriptionRow]:
    return [row_to_subscription(row) for row in connection.execute(_WAITS, (execution_id, org)).fetchall()]


def waits_of_key(
    connection: sqlite3.Connection, org: str, kind: SubscriptionKind, key: str, limit: int
) -> list[SubscriptionRow]:
    found = connection.execute(_WAITS_OF_KEY, (org, str(kind), key, limit)).fetchall()
    return [row_to_subscription(row) for row in found]


def published(
    connection: sqlite3.Connection, org: str, key: str | None, before: int | None, limit: int
) -> list[PublishedRow]:
    values = (org, key, _AFTER_ALL if before is None else before, limit)
    return [row_to_published(row) for row in connection.execute(_PUBLISHED, values).fetchall()]


def delivery(connection: sqlite3.Connection, org: str | None, number: int) -> DeliveryRow | None:
    for row in _DELIVERY.fetch(connection, [(number,)]):
        found = row_to_delivery(row)
        return found if org is None or found.org == org else None
    return None
