"""Writes what a batch has changed of promises, subscriptions, published events and deliveries."""

from __future__ import annotations

import sqlite3

from holdfast.store.message_rows import (
    dead_to_row,
    delivery_to_row,
    promise_to_row,
    published_to_row,
    subscription_to_row,
    token_to_row,
)
from holdfast.store.protocol import Changes
from holdfast.store.sqlite.statements import rows, statement

_UPSERT_PROMISES = rows("promises", "upsert")
_INSERT_TOKENS = rows("promises", "insert_tokens")
_FORGET_PROMISES = statement("promises", "forget")
_INSERT_SUBSCRIPTIONS = rows("subscriptions", "insert")
_DELETE_SUBSCRIPTIONS = rows("subscriptions", "delete")
_PURGE_SUBSCRIPTIONS = rows("subscriptions", "purge")
_SET_LAST_ID = statement("subscriptions", "set_last_id")
_UPSERT_PUBLISHED = rows("published", "upsert")
_DELETE_PUBLISHED = rows("published", "delete")
_UPSERT_KEYS = rows("published", "upsert_keys")
_DEAD_LETTER = rows("published", "dead_letter")
_REPLAY_DEAD = rows("published", "replay_dead")
_FORGET_DEAD = statement("published", "forget_dead")
_DELETE_TRIGGERS = rows("published", "delete_triggers")
_UPSERT_TRIGGERS = rows("published", "upsert_triggers")
_UPSERT_DELIVERIES = rows("deliveries", "upsert")
_FORGET_DELIVERIES = statement("deliveries", "forget")


def write_messages(connection: sqlite3.Connection, changes: Changes) -> None:
    """Deletes come after inserts, as everywhere."""
    if changes.last_id is not None:
        connection.execute(_SET_LAST_ID, (changes.last_id,))
    _UPSERT_PROMISES.execute(connection, [promise_to_row(promise) for promise in changes.promises.values()])
    _INSERT_TOKENS.execute(connection, [token_to_row(token) for token in changes.tokens])
    _INSERT_SUBSCRIPTIONS.execute(connection, [subscription_to_row(row) for row in changes.new_subscriptions.values()])
    _DELETE_SUBSCRIPTIONS.delete(connection, [(number,) for number in changes.deleted_subscriptions])
    _PURGE_SUBSCRIPTIONS.delete(connection, [(execution_id,) for execution_id in changes.purge_waits])
    _UPSERT_PUBLISHED.execute(connection, [published_to_row(event) for event in changes.published.values()])
    _DELETE_PUBLISHED.delete(connection, [(number,) for number in changes.deleted_published])
    _UPSERT_KEYS.execute(connection, [(k.org, k.key, k.retained, k.dropped) for k in changes.event_keys.values()])
    _DEAD_LETTER.execute(connection, [dead_to_row(event) for event in changes.dead_events])
    _REPLAY_DEAD.delete(connection, [(number,) for number in changes.replayed_dead_events])
    _DELETE_TRIGGERS.delete(connection, sorted(changes.untriggered))
    triggers = [(t.org, t.key, t.kind, t.version, t.queue, t.where) for t in changes.triggers]
    _UPSERT_TRIGGERS.execute(connection, triggers)
    _UPSERT_DELIVERIES.execute(connection, [delivery_to_row(delivery) for delivery in changes.deliveries.values()])
    if changes.forget_dead_before is not None:
        connection.execute(_FORGET_DEAD, (changes.forget_dead_before, _PAGE))
    if changes.forget_messages_before is not None:
        connection.execute(_FORGET_PROMISES, (changes.forget_messages_before,))
        connection.execute(_FORGET_DELIVERIES, (changes.forget_messages_before - _KEEP_DELIVERIES,))


_PAGE = 10_000
_KEEP_DELIVERIES = 24 * 3600 * 1_000_000
