"""Writes what a batch has changed of promises, subscriptions, published events and deliveries."""

from __future__ import annotations

import sqlite3

from holdfast.store.message_rows import DELIVERIES, PROMISES, PUBLISHED, SUBSCRIPTIONS
from holdfast.store.protocol import Changes
from holdfast.store.sqlite.statements import rows, statement

_UPSERT_PROMISES = rows("promises", "upsert")
_FORGET_PROMISES = statement("promises", "forget")
_INSERT_SUBSCRIPTIONS = rows("subscriptions", "insert")
_DELETE_SUBSCRIPTIONS = rows("subscriptions", "delete")
_PURGE_SUBSCRIPTIONS = rows("subscriptions", "purge")
_SET_LAST_ID = statement("subscriptions", "set_last_id")
_UPSERT_PUBLISHED = rows("published", "upsert")
_DELETE_PUBLISHED = rows("published", "delete")
_DELETE_TRIGGERS = rows("published", "delete_triggers")
_UPSERT_DELIVERIES = rows("deliveries", "upsert")
_FORGET_DELIVERIES = statement("deliveries", "forget")


def write_messages(connection: sqlite3.Connection, changes: Changes) -> None:
    """Deletes come after inserts, as everywhere. What is to be put in place of triggers comes later."""
    if changes.last_id is not None:
        connection.execute(_SET_LAST_ID, (changes.last_id,))
    _UPSERT_PROMISES.execute(connection, [PROMISES.to_row(promise) for promise in changes.promises.values()])
    _INSERT_SUBSCRIPTIONS.execute(connection, [SUBSCRIPTIONS.to_row(row) for row in changes.new_subscriptions.values()])
    _DELETE_SUBSCRIPTIONS.delete(connection, [(number,) for number in changes.deleted_subscriptions])
    _PURGE_SUBSCRIPTIONS.delete(connection, [(execution_id,) for execution_id in changes.purge_waits])
    _UPSERT_PUBLISHED.execute(connection, [PUBLISHED.to_row(event) for event in changes.published.values()])
    _DELETE_PUBLISHED.delete(connection, [(number,) for number in changes.deleted_published])
    _DELETE_TRIGGERS.delete(connection, sorted(changes.untriggered))
    _UPSERT_DELIVERIES.execute(connection, [DELIVERIES.to_row(delivery) for delivery in changes.deliveries.values()])
    if changes.forget_messages_before is not None:
        connection.execute(_FORGET_PROMISES, (changes.forget_messages_before,))
        connection.execute(_FORGET_DELIVERIES, (changes.forget_messages_before - _KEEP_DELIVERIES,))


_KEEP_DELIVERIES = 24 * 3600 * 1_000_000
