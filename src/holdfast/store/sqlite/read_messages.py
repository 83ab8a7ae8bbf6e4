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
from holdfast.store.message_rows import DELIVERIES, PROMISES, PUBLISHED, SUBSCRIPTIONS
from holdfast.store.sqlite.statements import rows, statement

_PROMISES = statement("promises", "of_execution")
_WAITS = statement("subscriptions", "of_execution")
_WAITS_OF_KEY = statement("subscriptions", "page")
_PUBLISHED = statement("published", "page")
_DELIVERY = rows("deliveries", "by_id")
_AFTER_ALL = 2**62


def promises(connection: sqlite3.Connection, org: str, execution_id: str) -> list[PromiseRow]:
    return [PROMISES.from_row(row) for row in connection.execute(_PROMISES, (execution_id, org)).fetchall()]


def waits(connection: sqlite3.Connection, org: str, execution_id: str) -> list[SubscriptionRow]:
    return [SUBSCRIPTIONS.from_row(row) for row in connection.execute(_WAITS, (execution_id, org)).fetchall()]


def waits_of_key(
    connection: sqlite3.Connection, org: str, kind: SubscriptionKind, key: str, limit: int
) -> list[SubscriptionRow]:
    found = connection.execute(_WAITS_OF_KEY, (org, str(kind), key, limit)).fetchall()
    return [SUBSCRIPTIONS.from_row(row) for row in found]


def published(
    connection: sqlite3.Connection, org: str, key: str | None, before: int | None, limit: int
) -> list[PublishedRow]:
    values = (org, key, _AFTER_ALL if before is None else before, limit)
    return [PUBLISHED.from_row(row) for row in connection.execute(_PUBLISHED, values).fetchall()]


def delivery(connection: sqlite3.Connection, org: str | None, number: int) -> DeliveryRow | None:
    for row in _DELIVERY.fetch(connection, [(number,)]):
        found = DELIVERIES.from_row(row)
        return found if org is None or found.org == org else None
    return None
