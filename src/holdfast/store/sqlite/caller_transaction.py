"""Runs a batch inside a transaction that belongs to the application, on the application's own connection.

Owns: the checks whether there is a transaction to join on the right database, and the savepoint around what is
written. Promises: the transaction stays open, and its end decides; what fails or is refused leaves it as it was. The
connection keeps its settings, but for `wal_autocheckpoint`: see `connections.py` for why no connection that writes to
the file may checkpoint by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

from holdfast.errors import InvalidRequest, StorageBusy
from holdfast.store.protocol import Batch
from holdfast.store.sqlite.cache import Cache
from holdfast.store.sqlite.connections import Database
from holdfast.store.sqlite.driver_errors import is_busy
from holdfast.store.sqlite.load import load
from holdfast.store.sqlite.statements import statement
from holdfast.store.sqlite.write import write

_TAKE_LOCK: Final = statement("requests", "take_lock")
_FIELD: Final = "using"


def run_on(database: Database, connection: Any, batch: Batch) -> Awaitable[None] | None:
    """At once, in the calling thread, on a connection of `sqlite3`; on one of aiosqlite, in that one's thread: then the
    answer is to be awaited."""
    if isinstance(connection, sqlite3.Connection):
        _Joined(database, connection).run(batch)
        return None
    execute = getattr(connection, "_execute", None)
    if execute is None or not type(connection).__module__.startswith("aiosqlite"):
        raise InvalidRequest(
            f"using= takes the open connection of sqlite3 or aiosqlite, not {type(connection).__name__}: frameworks "
            "give it as the driver's connection (Django: connection.connection; SQLAlchemy: "
            "session.connection().connection.driver_connection)",
            field=_FIELD,
        )
    return _run_in_its_thread(database, connection, batch)


async def _run_in_its_thread(database: Database, connection: Any, batch: Batch) -> None:
    """aiosqlite runs everything for a connection in one thread, in order; this is how its own methods get there."""

    def run() -> None:
        _Joined(database, connection._conn).run(batch)  # noqa: SLF001 - aiosqlite has no public way

    try:
        await connection._execute(run)  # noqa: SLF001 - as above
    except ValueError as error:
        raise _unusable(error) from error


class _Joined:
    """One visit to a connection."""

    def __init__(self, database: Database, connection: sqlite3.Connection) -> None:
        self._database = database
        self._connection = connection

    def run(self, batch: Batch) -> None:
        try:
            with self._undisturbed():
                self._check_database()
                with self._transaction():
                    self._do(batch)
        except sqlite3.ProgrammingError as error:  # closed, or another thread's
            raise _unusable(error) from error
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """What loading and writing need of a connection. Rows are plain tuples, whatever the application prefers."""
        cursor = sqlite3.Connection.cursor(self._connection)
        cursor.row_factory = None
        return cursor.execute(sql, parameters)

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """The application's way to read text is put aside for a moment."""
        self.execute("SELECT 1").close()  # before anything is changed: fails if this thread may not use it
        text_factory = self._connection.text_factory
        self._connection.text_factory = str
        try:
            yield
        finally:
            with suppress(sqlite3.Error):
                self._connection.text_factory = text_factory

    def _check_database(self) -> None:
        path = self._database.path
        if path is None:
            raise InvalidRequest(
                "a database in memory is seen by the engine alone, so no transaction can be joined: open the engine on "
                "a file (sqlite:///path/to/file.db)",
                field=_FIELD,
            )
        found = next((row[2] for row in self.execute("PRAGMA database_list").fetchall() if row[1] == "main"), "")
        if not found or not Path(found).exists() or not path.samefile(found):
            raise InvalidRequest(
                f"the connection is open on {found or 'a database in memory'}, the engine on {path}: only a connection "
                "whose main database is the same file can be joined",
                field=_FIELD,
                found=found,
                expected=str(path),
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """The application's transaction, with a savepoint; begun here where the driver would begin one at its next
        write, too."""
        begun_here = not self._connection.in_transaction
        if begun_here:
            self._check_begins_by_itself()
            self.execute("BEGIN IMMEDIATE")
        else:
            self.execute("SAVEPOINT holdfast")
        try:
            yield
            if not begun_here:
                self.execute("RELEASE holdfast")
        except BaseException:
            # After some errors SQLite has rolled everything back already.
            if self._connection.in_transaction:
                self.execute("ROLLBACK" if begun_here else "ROLLBACK TO holdfast")
                if not begun_here:
                    self.execute("RELEASE holdfast")
            raise

    def _check_begins_by_itself(self) -> None:
        legacy = getattr(sqlite3, "LEGACY_TRANSACTION_CONTROL", -1)
        commits_by_itself = getattr(self._connection, "autocommit", legacy) is True
        if commits_by_itself or self._connection.isolation_level is None:
            raise InvalidRequest(
                "the connection commits every statement by itself and has no open transaction to join: execute "
                "BEGIN IMMEDIATE first (Django: use transaction.atomic())",
                field=_FIELD,
            )

    def _do(self, batch: Batch) -> None:
        # First the lock: what is read from here on can't change until the application's transaction ends.
        self.execute(_TAKE_LOCK)
        self.execute("PRAGMA wal_autocheckpoint = 0")
        connection = cast(sqlite3.Connection, self)
        # A cache of its own: what is read here is not committed, and may never be.
        loaded = load(connection, batch.plan(), Cache(), self._database.clock())
        write(connection, batch.decide(loaded), loaded.now)

    def _explained(self, error: sqlite3.Error) -> Exception:
        if is_busy(error):
            busy = StorageBusy(
                f"{self._database.name} is being written by somebody else, and your transaction could not get the "
                f"write lock ({error}); nothing was written: begin it with BEGIN IMMEDIATE and a busy timeout, or roll "
                "back and try again",
                path=self._database.name,
            )
            busy.__cause__ = error
            return busy
        return self._database.explain(error)


def _unusable(error: Exception) -> InvalidRequest:
    return InvalidRequest(f"the connection can't be used here: {error}", field=_FIELD)
