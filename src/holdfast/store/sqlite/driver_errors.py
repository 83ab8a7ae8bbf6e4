"""What a driver's error means for a batch or a read."""

from __future__ import annotations

import sqlite3
from typing import Final

from holdfast.errors import HoldfastError, StorageBusy, StorageCorrupt, StorageError, StorageFull

_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_CORRUPT: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
# The disk, the file or its name, not the rows: no member of a batch is to blame.
_SURROUNDINGS: Final = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_AUTH}
)
_IOERR_CORRUPT: Final = frozenset({sqlite3.SQLITE_IOERR_CORRUPTFS, 8202})  # 8202: SQLITE_IOERR_DATA, not in Python 3.11
_IOERR_READ: Final = frozenset({sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ})


def _code(error: BaseException) -> int:
    code = getattr(error, "sqlite_errorcode", None)
    return code if isinstance(code, int) else -1


def is_busy(error: BaseException) -> bool:
    """Whether the same thing may work in a moment."""
    return isinstance(error, sqlite3.Error) and _code(error) & 0xFF in _BUSY


def translate(error: sqlite3.Error, path: str) -> HoldfastError | None:
    """The error for callers when the surroundings are at fault; None when the content of the statement is."""
    code = _code(error)
    primary = code & 0xFF if code >= 0 else -1
    found: HoldfastError | None = None
    if primary in _BUSY:
        found = StorageBusy(f"{path} stayed locked by another process beyond the deadline", path=path)
    elif primary in _CORRUPT or code in _IOERR_CORRUPT:
        found = StorageCorrupt(f"{path} is damaged ({error}): stop, copy the files, and restore a backup", path=path)
    elif primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and code not in _IOERR_READ):
        found = StorageFull(
            f"{path} can't be written ({error}): reads go on, writes resume by themselves when there is space",
            path=path,
        )
    elif primary == sqlite3.SQLITE_IOERR or primary in _SURROUNDINGS:
        found = StorageError(
            f"{path} can't be used ({error}): check the file, its folder and their permissions", path=path
        )
    if found is not None:
        found.__cause__ = error
    return found
