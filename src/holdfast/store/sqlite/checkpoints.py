"""Writes the WAL back into the database file, when it has grown or the writer has nothing else to do.

One connection holds the write lock while a second one copies (PASSIVE): no commit can happen meanwhile, which keeps
clear of SQLite's WAL-reset bug, and no reader is waited for. TRUNCATE would do both on one connection, but falls back
to copying without the lock when another process holds it. A WAL that is written back whole is reused from its start,
and cut to `checkpoint_wal_bytes` by `journal_size_limit`; overwriting a file is cheaper to sync than growing one, too.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import suppress
from typing import Final

from holdfast.store.sqlite.connections import Database, begin

_log = logging.getLogger("holdfast.store")

IDLE_S: Final = 1.0
_WAIT_S: Final = 0.25
_WARNING_FACTOR: Final = 8


class Checkpoints:
    """Belongs to the writer thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = None
        self._not_before = 0.0
        self._warned = False
        self.pending = False

    def after_commit(self, writer: sqlite3.Connection) -> None:
        """Something was committed: write back at once if the WAL is too long."""
        path = self._database.wal_path
        if path is None:
            return
        self.pending = True
        with suppress(OSError):
            size = path.stat().st_size
            if size > self._database.config.checkpoint_wal_bytes and time.monotonic() >= self._not_before:
                self.run(writer)
                self._warn(size)

    def run(self, writer: sqlite3.Connection) -> None:
        """Write back as much as readers allow. What fails or stays is tried again in a second at the earliest."""
        self._not_before = time.monotonic() + IDLE_S
        try:
            begin(writer, time.monotonic() + _WAIT_S)
            try:
                self.pending = not self._copy()
            finally:
                writer.execute("ROLLBACK")
        except sqlite3.Error as error:
            _log.info("checkpoint of %s put off: %s", self._database.name, error)
            self.close()
            return
        if not self.pending:
            self._not_before = 0.0

    def _copy(self) -> bool:
        if self._connection is None:
            self._connection = self._database.open_checkpointer()
        busy, in_wal, copied = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return bool(busy == 0 and in_wal == copied)

    def _warn(self, size: int) -> None:
        if not self.pending:
            self._warned = False
        elif size > _WARNING_FACTOR * self._database.config.checkpoint_wal_bytes and not self._warned:
            self._warned = True
            text = "the WAL of %s has %d bytes: a long-running reader keeps it from being reused"
            _log.warning(text, self._database.name, size)

    def close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
