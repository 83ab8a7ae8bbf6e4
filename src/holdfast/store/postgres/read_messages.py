"""Queries for callers about promises, waits, published events and deliveries."""

from __future__ import annotations

from typing import Final

from holdfast.model.messages import (
    DeliveryRow,
    PromiseRow,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
)
from holdfast.store.message_rows import DELIVERIES, PROMISES, PUBLISHED, SUBSCRIPTIONS
from holdfast.store.postgres.planning import by_keys
from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.rows import Row

_PROMISES = statement("promises", "of_execution")
_WAITS = statement("subscriptions", "of_execution")
_WAITS_OF_KEY = statement("subscriptions", "page")
_PUBLISHED = statement("published", "page")
_PUBLISHED_OF_KEY = statement("published", "page_of_key")
_DELIVERY = statement("deliveries", "by_id")
_AFTER_ALL: Final = 2**62


async def promises(connection: Connection, org: str, execution_id: str) -> list[PromiseRow]:
    return [PROMISES.from_row(row) for row in await connection.fetch(_PROMISES, org, execution_id)]


@by_keys
async def waits(connection: Connection, org: str, execution_id: str) -> list[SubscriptionRow]:
    return [SUBSCRIPTIONS.from_row(row) for row in await connection.fetch(_WAITS, org, execution_id)]


@by_keys
async def waits_of_key(
    connection: Connection, org: str, kind: SubscriptionKind, key: str, limit: int
) -> list[SubscriptionRow]:
    return [SUBSCRIPTIONS.from_row(row) for row in await connection.fetch(_WAITS_OF_KEY, org, str(kind), key, limit)]


@by_keys
async def published(
    connection: Connection, org: str, key: str | None, before: int | None, limit: int
) -> list[PublishedRow]:
    values = _page(org, key, before, limit)
    found = await connection.fetch(_PUBLISHED if key is None else _PUBLISHED_OF_KEY, *values)
    return [PUBLISHED.from_row(row) for row in found]


async def delivery(connection: Connection, org: str | None, number: int) -> DeliveryRow | None:
    row = await connection.fetchrow(_DELIVERY, number)
    if row is None:
        return None
    found = DELIVERIES.from_row(row)
    return found if org is None or found.org == org else None


def _page(org: str, key: str | None, before: int | None, limit: int) -> Row:
    values = (org, _AFTER_ALL if before is None else before, limit)
    return values if key is None else (*values, key)
