"""Queries for callers about promises, waits, published events and deliveries."""

from __future__ import annotations

from typing import Final

from holdfast.model.messages import (
    DeadEvent,
    DeliveryRow,
    EventKeyRow,
    PromiseRow,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
)
from holdfast.store.message_rows import (
    row_to_dead,
    row_to_delivery,
    row_to_promise,
    row_to_published,
    row_to_subscription,
)
from holdfast.store.postgres.read_session import index_only
from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.rows import Row

_PROMISES = statement("promises", "of_execution")
_WAITS = statement("subscriptions", "of_execution")
_WAITS_OF_KEY = statement("subscriptions", "page")
_PUBLISHED = statement("published", "page")
_PUBLISHED_OF_KEY = statement("published", "page_of_key")
_DEAD = statement("published", "dead")
_DEAD_OF_KEY = statement("published", "dead_of_key")
_KEY = statement("published", "key")
_DELIVERY = statement("deliveries", "by_id")
_AFTER_ALL: Final = 2**62


async def promises(connection: Connection, org: str, execution_id: str) -> list[PromiseRow]:
    return [row_to_promise(row) for row in await connection.fetch(_PROMISES, org, execution_id)]


@index_only
async def waits(connection: Connection, org: str, execution_id: str) -> list[SubscriptionRow]:
    return [row_to_subscription(row) for row in await connection.fetch(_WAITS, org, execution_id)]


@index_only
async def waits_of_key(
    connection: Connection, org: str, kind: SubscriptionKind, key: str, limit: int
) -> list[SubscriptionRow]:
    return [row_to_subscription(row) for row in await connection.fetch(_WAITS_OF_KEY, org, str(kind), key, limit)]


@index_only
async def published(
    connection: Connection, org: str, key: str | None, before: int | None, limit: int
) -> list[PublishedRow]:
    values = _page(org, key, before, limit)
    found = await connection.fetch(_PUBLISHED if key is None else _PUBLISHED_OF_KEY, *values)
    return [row_to_published(row) for row in found]


@index_only
async def dead_events(
    connection: Connection, org: str, key: str | None, before: int | None, limit: int
) -> list[DeadEvent]:
    values = _page(org, key, before, limit)
    found = await connection.fetch(_DEAD if key is None else _DEAD_OF_KEY, *values)
    return [row_to_dead(row) for row in found]


async def event_key(connection: Connection, org: str, key: str) -> EventKeyRow:
    row = await connection.fetchrow(_KEY, org, key)
    if row is None:
        return EventKeyRow(org=org, key=key)
    return EventKeyRow(org=org, key=key, retained=row[0], dropped=row[1])


async def delivery(connection: Connection, org: str | None, number: int) -> DeliveryRow | None:
    row = await connection.fetchrow(_DELIVERY, number)
    if row is None:
        return None
    found = row_to_delivery(row)
    return found if org is None or found.org == org else None


def _page(org: str, key: str | None, before: int | None, limit: int) -> Row:
    values = (org, _AFTER_ALL if before is None else before, limit)
    return values if key is None else (*values, key)
