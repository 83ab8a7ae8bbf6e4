"""What an error of the driver means: for a batch, for a read, for a connection, for a COMMIT.

The five characters of SQLSTATE decide wherever there are any: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

import re
import ssl
from typing import Final

import asyncpg

from holdfast.errors import (
    AccessDenied,
    EventTooNew,
    HoldfastError,
    InvalidDatabaseUrl,
    ServerReadOnly,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
)

DISK_FULL: Final = "53100"
READ_ONLY: Final = "25006"
LOCK_NOT_AVAILABLE: Final = "55P03"
PERMISSION_DENIED: Final = "42501"
TOO_MANY_CONNECTIONS: Final = "53300"
CANCELLED: Final = "57014"  # by a statement_timeout, or by somebody

# The server goes away, or has gone: the connection is of no use any more.
_GONE: Final = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"})
# Others were in the way, or there was no room for one more.
_IN_THE_WAY: Final = frozenset(
    {"40001", "40P01", LOCK_NOT_AVAILABLE, TOO_MANY_CONNECTIONS, "53200", "55006", CANCELLED, READ_ONLY}
)
_CORRUPT: Final = frozenset({"XX001", "XX002"})
# A prepared statement met another schema, or another session than its own: the driver has forgotten it meanwhile.
_STALE_STATEMENT: Final = frozenset({"26000", "42P05"})
_TRANSIENT: Final = (
    asyncpg.InvalidCachedStatementError,
    asyncpg.OutdatedSchemaCacheError,
    ServerReadOnly,  # until the primary that was lost has a successor
    StorageBusy,
)
_CLOSED: Final = ("connection is closed", "connection has been closed", "underlying connection is closed", "closing")


# The driver has no class of its own for it.
_NO_TLS: Final = "rejected SSL upgrade"
# What PgBouncer says; as a violation of the protocol, which is otherwise a connection that was lost.
_POOLER_REFUSES: Final = re.compile(r"unsupported startup parameter(?: in options)?: (\w+)")


def reason(error: BaseException) -> str:
    """What an error says, in one line; its kind if it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def sqlstate(error: BaseException) -> str:
    code = getattr(error, "sqlstate", None)
    return code if isinstance(code, str) else ""


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection is of no use any more."""
    code = sqlstate(error)
    if code:
        return code in _GONE or code.startswith("08")
    if isinstance(error, asyncpg.InterfaceError):
        return any(text in str(error) for text in _CLOSED)
    # A time-out of ours comes from a server that does not answer, whatever state the connection is in.
    return isinstance(error, OSError | TimeoutError | asyncpg.InternalClientError)


def is_transient(error: BaseException) -> bool:
    """Whether the same transaction, run again from its beginning, may work in a moment."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return False
    code = sqlstate(error)
    if code in _IN_THE_WAY or code in _STALE_STATEMENT or isinstance(error, _TRANSIENT):
        return True
    return is_connection_lost(error)


def is_lost_commit(error: BaseException) -> bool:
    """Whether nobody has said what became of a COMMIT that failed so: it may stand.

    An error that the server sent as its answer means that it rolled back. That it is shutting down it says to whoever
    is connected, also just after the commit was made.
    """
    code = sqlstate(error)
    return code in _GONE or code.startswith("08") or not code


def translate(error: BaseException, name: str) -> HoldfastError | None:
    """The error for callers when the surroundings are at fault; None when the content of the statement is."""
    if isinstance(error, EventTooNew):
        return None
    if isinstance(error, HoldfastError):
        return error
    found = _by_state(error, name) or _by_class(error, name)
    if found is not None:
        found.__cause__ = error
    return found


def _by_state(error: BaseException, name: str) -> HoldfastError | None:
    code = sqlstate(error)
    if code == DISK_FULL:
        return StorageFull(
            f"{name} can't be written ({reason(error)}): reads go on, writes resume by themselves when there is space",
            path=name,
        )
    if code == READ_ONLY:
        return ServerReadOnly(
            f"{name} does not accept writes ({reason(error)}): name the primary in the URL; if it is that one, "
            "`holdfast doctor` says what to reset",
            path=name,
        )
    if code == TOO_MANY_CONNECTIONS:
        return StorageBusy(
            f"{name} has no connection left ({reason(error)}): every node needs 3 + StoreConfig.readers of them, so 5 "
            "by default, one less with notify=off; run fewer nodes, or raise the server's max_connections, or the "
            "CONNECTION LIMIT of this role or database",
            path=name,
        )
    if code in _STALE_STATEMENT:
        # The driver's own advice, in the lines behind the first, is for whoever uses the driver.
        return StorageBusy(
            f"{name} has given our session to others, or theirs to us ({str(error).partition(chr(10))[0]}): behind a "
            "transaction pooler, write notify=off into the URL, or connect to the server itself",
            path=name,
        )
    if code in _CORRUPT:
        return StorageCorrupt(
            f"{name} is damaged ({reason(error)}): stop, copy the files, and restore a backup", path=name
        )
    return _by_rights(code, error, name)


def _by_rights(code: str, error: BaseException, name: str) -> HoldfastError | None:
    if code == PERMISSION_DENIED:
        return AccessDenied(f"{name} refuses ({reason(error)}): grant this right to the user of the URL", path=name)
    if code.startswith("28"):
        return AccessDenied(
            f"{name} lets nobody in with this user and password ({reason(error)}): check both, and the server's "
            "pg_hba.conf",
            path=name,
        )
    if code == "3D000":
        return StorageError(f"{name} is not there ({reason(error)}): create it with CREATE DATABASE", path=name)
    if code in {"42P01", "42703", "3F000"}:
        return StorageError(
            f"the schema of {name} is not complete ({reason(error)}): was something dropped, or is search_path another "
            "one? `holdfast migrate URL --check` says what is missing",
            path=name,
        )
    if found := _POOLER_REFUSES.search(str(error)):
        setting = found[1] if found[1] != "options" else "…"
        return InvalidDatabaseUrl(
            f"{name} is behind a pooler that passes on no {found[1]} from the URL: take it out, and set it for the "
            f"user instead (ALTER ROLE … SET {setting} = …), or connect to the server itself",
            field=found[1],
        )
    if code in {"42704", "22023"} and "configuration parameter" in str(error):
        return InvalidDatabaseUrl(
            f"{name} does not know a setting in the URL's options ({reason(error)})", field="options"
        )
    return None


def _by_class(error: BaseException, name: str) -> HoldfastError | None:
    if isinstance(error, ssl.SSLError):
        return StorageError(
            f"{name} can't be reached securely ({reason(error)}): check sslmode and sslrootcert", path=name
        )
    if isinstance(error, asyncpg.ClientConfigurationError):
        return InvalidDatabaseUrl(f"the driver does not understand the URL of {name}: {reason(error)}", field="url")
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return ServerReadOnly(
            f"none of {name} accepts writes: name the primary in the URL; if it is among them, its "
            "default_transaction_read_only is on",
            path=name,
        )
    if isinstance(error, ConnectionError) and _NO_TLS in str(error):
        return StorageError(
            f"{name} does not speak TLS, and the URL's sslmode insists on it: set ssl = on in the server, or write "
            "sslmode=prefer if the way to it is safe without",
            path=name,
        )
    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        return StorageBusy(
            f"{name} can't be reached ({reason(error)}): does the server run, and are host and port right?", path=name
        )
    if sqlstate(error) == LOCK_NOT_AVAILABLE:
        return StorageBusy(
            f"{name}: somebody else held what this call needs beyond the deadline ({reason(error)}); nothing of it was "
            "written: end the transaction that stays open, pg_blocking_pids() shows whose it is, and try again",
            path=name,
        )
    if is_transient(error):
        return StorageBusy(f"{name} did not do it before the deadline ({reason(error)}): try again", path=name)
    code = sqlstate(error)
    if code[:2] in {"53", "57", "58", "XX"} or code == "0A000":
        return StorageError(f"{name} can't be used ({reason(error)}): see the server's log", path=name)
    return None
