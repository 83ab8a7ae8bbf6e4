"""Writes what a batch has changed of promises, subscriptions, published events and deliveries."""

from __future__ import annotations

from typing import Final

from holdfast.errors import InvalidRequest
from holdfast.store.message_rows import (
    dead_to_row,
    delivery_to_row,
    promise_to_row,
    published_to_row,
    subscription_to_row,
    token_to_row,
)
from holdfast.store.postgres.load_messages import NUMBERS
from holdfast.store.postgres.statements import statement
from holdfast.store.postgres.writing import Writing
from holdfast.store.protocol import Changes

_UPSERT_PROMISES = statement("promises", "upsert")
_INSERT_TOKENS = statement("promises", "insert_tokens")
_FORGET_PROMISES = statement("promises", "forget")
_INSERT_SUBSCRIPTIONS = statement("subscriptions", "insert")
_DELETE_SUBSCRIPTIONS = statement("subscriptions", "delete")
_PURGE_SUBSCRIPTIONS = statement("subscriptions", "purge")
_UPSERT_PUBLISHED = statement("published", "upsert")
_DELETE_PUBLISHED = statement("published", "delete")
_UPSERT_KEYS = statement("published", "upsert_keys")
_DEAD_LETTER = statement("published", "dead_letter")
_REPLAY_DEAD = statement("published", "replay_dead")
_FORGET_DEAD = statement("published", "forget_dead")
_DELETE_TRIGGERS = statement("published", "delete_triggers")
_UPSERT_TRIGGERS = statement("published", "upsert_triggers")
_UPSERT_DELIVERIES = statement("deliveries", "upsert")
_FORGET_DELIVERIES = statement("deliveries", "forget")

_FORGET_WRITERS = statement("writers", "forget")

_PAGE: Final = 10_000
_DAY: Final = 24 * 3600 * 1_000_000


def write_messages(writing: Writing, changes: Changes, last_id: int) -> None:
    """`last_id` is the number before the block that this batch has drawn."""
    if changes.last_id is not None and changes.last_id > last_id + NUMBERS:
        raise InvalidRequest(f"one call can begin {NUMBERS:,} waits or send as many events, not more", field="waits")
    writing.rows(_UPSERT_PROMISES, [promise_to_row(promise) for promise in changes.promises.values()])
    writing.rows(_INSERT_TOKENS, [token_to_row(token) for token in changes.tokens])
    _write_waits(writing, changes)
    _write_events(writing, changes)
    writing.rows(_DELETE_TRIGGERS, sorted(changes.untriggered))
    triggers = {(t.org, t.key, t.kind): (t.org, t.key, t.kind, t.version, t.queue, t.where) for t in changes.triggers}
    writing.rows(_UPSERT_TRIGGERS, [triggers[key] for key in sorted(triggers)], after=True)
    writing.rows(_UPSERT_DELIVERIES, [delivery_to_row(delivery) for delivery in changes.deliveries.values()])
    if changes.forget_dead_before is not None:
        writing.add((_FORGET_DEAD, (changes.forget_dead_before, _PAGE)), after=True)
    if changes.forget_messages_before is not None:
        writing.add((_FORGET_PROMISES, (changes.forget_messages_before, _PAGE)), after=True)
        day_ago = changes.forget_messages_before - _DAY
        writing.add((_FORGET_DELIVERIES, (day_ago, _PAGE)), after=True)
        writing.add((_FORGET_WRITERS, (day_ago - 30 * _DAY,)), after=True)


def _write_waits(writing: Writing, changes: Changes) -> None:
    """A wait that begins and ends in the same batch is never written."""
    gone, purged = set(changes.deleted_subscriptions), set(changes.purge_waits)
    new = [
        subscription_to_row(row)
        for row in changes.new_subscriptions.values()
        if row.id not in gone and row.execution_id not in purged
    ]
    writing.rows(_INSERT_SUBSCRIPTIONS, new)
    writing.keys(_DELETE_SUBSCRIPTIONS, changes.deleted_subscriptions)
    writing.keys(_PURGE_SUBSCRIPTIONS, changes.purge_waits, after=bool(gone))


def _write_events(writing: Writing, changes: Changes) -> None:
    gone = set(changes.deleted_published)
    kept = [published_to_row(event) for event in changes.published.values() if event.id not in gone]
    writing.rows(_UPSERT_PUBLISHED, kept)
    writing.keys(_DELETE_PUBLISHED, changes.deleted_published)
    keys = sorted((k.org, k.key, k.retained, k.dropped) for k in changes.event_keys.values())
    writing.rows(_UPSERT_KEYS, keys)
    writing.rows(_DEAD_LETTER, [dead_to_row(event) for event in changes.dead_events])
    writing.keys(_REPLAY_DEAD, changes.replayed_dead_events, after=bool(changes.dead_events))
