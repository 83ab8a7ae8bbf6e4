"""Opens the database: checks the place, sets the pragmas, brings the schema up to date.

Below SQLite 3.51.3 a checkpoint that runs while another connection resets the WAL can damage the file
(https://www.sqlite.org/wal.html#walresetbug). Therefore nothing checkpoints by itself here: readers are read-only,
`wal_autocheckpoint` is off, and `checkpoints.py` holds the write lock while it works.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import uniform
from typing import Final, TypeVar

from holdfast.config import StoreConfig
from holdfast.errors import InvalidDatabaseUrl, InvalidRequest, SchemaTooOld, StorageError
from holdfast.store.protocol import Clock
from holdfast.store.sqlite import migrate
from holdfast.store.sqlite.driver_errors import is_busy, translate
from holdfast.store.sqlite.open_files import network_file_system

T = TypeVar("T")

OLDEST: Final = (3, 38, 0)
_CACHED_STATEMENTS: Final = 1_024
_FIRST_PAUSE_S: Final = 0.000_2
_LONGEST_PAUSE_S: Final = 0.005
_READER_TIMEOUT_S: Final = 5.0
_SYNCHRONOUS: Final = {"full": "FULL", "normal": "NORMAL"}

_making = threading.Lock()


class Database:
    """One database: a file, or memory when there is no path."""

    def __init__(self, path: Path | None, config: StoreConfig, clock: Clock) -> None:
        if config.synchronous not in _SYNCHRONOUS:
            raise InvalidRequest(f"synchronous is 'full' or 'normal', not {config.synchronous!r}", field="synchronous")
        self.path = path
        self.config = config
        self.clock = clock
        self.name = str(path) if path is not None else "the database in memory"
        self.wal_path = Path(f"{path}-wal") if path is not None else None

    def open_writer(self) -> sqlite3.Connection:
        """The connection that writes, on a database whose schema is up to date."""
        _check_library()
        if self.path is not None:
            _check_place(self.path)
        try:
            connection = self._connect()
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise self.explain(error) from error
        return connection

    def open_checkpointer(self) -> sqlite3.Connection:
        """A second connection, for checkpoints alone."""
        connection = self._connect()
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def open_reader(self) -> sqlite3.Connection:
        assert self.path is not None
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode=ro",
            uri=True,
            timeout=_READER_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_CACHED_STATEMENTS,
        )

    def explain(self, error: sqlite3.Error) -> Exception:
        """The error for callers; naming the database is the least that can be done for an unknown one."""
        known = translate(error, self.name)
        return known if known is not None else StorageError(f"{self.name}: {error}", path=self.name)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path if self.path is not None else ":memory:",
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_CACHED_STATEMENTS,
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        deadline_s = self.config.busy_deadline_s
        if self.path is not None:
            patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone(), deadline_s)
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self.config.synchronous]}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        # A WAL that has been written back starts again at its beginning; this cuts off what a long reader made it grow.
        connection.execute(f"PRAGMA journal_size_limit = {int(self.config.checkpoint_wal_bytes)}")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA temp_store = MEMORY")
        left = patiently(lambda: migrate.missing(connection, self.name), deadline_s)
        if left and not self.config.migrate and self.path is not None:
            raise SchemaTooOld(
                f"the schema of {self.name} lacks {left[0].name}, and this program was told not to change it "
                "(migrate=False): run `holdfast migrate URL` first",
                path=self.name,
                missing=[migration.name for migration in left],
            )
        if left:
            begin(connection, time.monotonic() + deadline_s)
            try:
                migrate.apply(connection, self.name, self.clock())
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise


def begin(connection: sqlite3.Connection, give_up_at: float) -> None:
    """Take the write lock, waiting for other processes until `give_up_at` (monotonic).

    Not SQLite's own busy timeout: its sleeps grow to 100 ms, in which the lock may have been free a hundred times.
    """
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= give_up_at:
                raise
        time.sleep(uniform(0.5, 1.0) * pause_s)  # noqa: S311 - jitter, not a secret
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def patiently(action: Callable[[], T], deadline_s: float) -> T:
    """Repeat what fails because the database is locked."""
    give_up_at = time.monotonic() + deadline_s
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= give_up_at:
                raise
        time.sleep(uniform(0.5, 1.0) * _LONGEST_PAUSE_S)  # noqa: S311 - jitter, not a secret


def _check_library() -> None:
    if sqlite3.sqlite_version_info < OLDEST:
        raise StorageError(
            f"Python is linked with SQLite {sqlite3.sqlite_version}; "
            f"Holdfast needs {'.'.join(map(str, OLDEST))} or newer: upgrade SQLite",
            found=sqlite3.sqlite_version,
        )


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise StorageError(f"{path} is a folder: name a file in it", path=str(path))
    remote = network_file_system(path)
    if remote is not None:
        raise StorageError(
            f"{path} lies on a network file system ({remote}), where SQLite can damage it: put it on a local disk",
            path=str(path),
        )
    # The WAL is looked for first: another process that is making both makes the database first.
    if Path(f"{path}-wal").exists() and not path.exists():
        raise StorageError(
            f"{path} is missing, but its write-ahead log {path}-wal is there: "
            "restore the database file, or move the log away",
            path=str(path),
        )
    try:
        _make_file(path)
    except FileNotFoundError as error:
        raise InvalidDatabaseUrl(f"the folder {path.parent} does not exist: create it first", path=str(path)) from error
    except OSError as error:
        raise StorageError(f"{path} can't be created: {error.strerror}", path=str(path)) from error


def _make_file(path: Path) -> None:
    """Readable by its owner alone; SQLite gives the same mode to the files next to it.

    A file that exists is never opened here, and the lock keeps other stores of this process from opening a new one
    before it is closed: closing a descriptor drops all the locks that SQLite holds on the file in this process.
    """
    with _making, suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
