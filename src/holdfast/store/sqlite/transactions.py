"""Runs one batch as one transaction: begin, load, decide, write, commit.

Promises: no transaction is left open; a batch is told `committed` only after its commit and `failed` only if nothing of
it was written; a batch that fails because of its content is split, so that only the guilty member fails.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from holdfast.store.claim_cursors import ClaimCursors
from holdfast.store.protocol import Batch, Changes
from holdfast.store.sqlite.cache import Cache
from holdfast.store.sqlite.connections import Database, begin
from holdfast.store.sqlite.driver_errors import is_busy, translate
from holdfast.store.sqlite.load import load
from holdfast.store.sqlite.write import write

_log = logging.getLogger("holdfast.store")

_PEERS_S: Final = 1.0


class Transactions:
    """The writer's connection and what it knows of the database. Belongs to the writer thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = None
        self._cache = Cache()
        self._claim_cursors = ClaimCursors()
        self._has_peers_until = 0.0
        self._seen_version = -1

    @property
    def connection(self) -> sqlite3.Connection:
        """Opened when needed: a connection that could not even roll back has been thrown away."""
        if self._connection is None:
            self._connection = self._database.open_writer()
            self._cache.clear()
            self._seen_version = -1
        return self._connection

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def has_peers(self) -> bool:
        """Whether another process has been writing lately."""
        return time.monotonic() < self._has_peers_until

    def run(self, batch: Batch) -> None:
        """One transaction, or several if it has to be split. Returns when the batch knows how it ended."""
        give_up_at = time.monotonic() + self._database.config.busy_deadline_s
        while True:
            try:
                changes = self._transact(batch, give_up_at)
                break
            except Exception as error:  # noqa: BLE001 - whatever a rule raises belongs to the batch, not to the writer
                self._roll_back()
                if is_busy(error) and time.monotonic() < give_up_at:
                    continue
                self._settle(batch, error)
                return
        self._absorb(changes)
        self._claim_cursors.wrote(changes)
        _notify(batch.committed)

    def changed_elsewhere(self) -> bool:
        """Whether another connection has committed since the last call."""
        version = self._data_version(self.connection)
        told, self._seen_version = self._seen_version, version
        return told != version

    def close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _transact(self, batch: Batch, give_up_at: float) -> Changes:
        connection = self.connection
        begin(connection, give_up_at)
        if self._cache.confirm(self._data_version(connection)):
            self._has_peers_until = time.monotonic() + _PEERS_S
        loaded = load(connection, batch.plan(), self._cache, self._database.clock(), self._claim_cursors)
        changes = batch.decide(loaded)
        write(connection, changes, loaded.now)
        connection.execute("COMMIT")
        return changes

    @staticmethod
    def _data_version(connection: sqlite3.Connection) -> int:
        version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def _absorb(self, changes: Changes) -> None:
        try:
            self._cache.absorb(changes)
        except Exception:  # noqa: BLE001 - the commit stands, whatever happens to its copy
            _log.exception("cache of %s dropped", self._database.name)
            self._cache.clear()

    def _settle(self, batch: Batch, error: Exception) -> None:
        known = translate(error, self._database.name) if isinstance(error, sqlite3.Error) else None
        if known is not None:
            _notify(batch.failed, known)
            return
        members = batch.split()
        if len(members) <= 1:
            _notify(batch.failed, error)
            return
        for member in members:
            self.run(member)

    def _roll_back(self) -> None:
        # The decision has changed what was lent to it: nobody knows what the cached records are now.
        self._cache.clear()
        if self._connection is None:
            return
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            _log.exception("could not roll back, opening %s again", self._database.name)
            self.close()


def _notify(listener: Callable[..., None], *arguments: object) -> None:
    """A listener that fails must not keep the others from hearing how their batch ended."""
    try:
        listener(*arguments)
    except Exception:  # noqa: BLE001 - as above
        _log.exception("a batch could not take its result")
