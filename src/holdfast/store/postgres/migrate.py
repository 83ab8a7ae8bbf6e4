"""Brings a database to this program's schema: numbered files, each applied once, each in a transaction of its own.

Many processes may do this at the same time: whoever holds the lock of the table of versions works, the others wait and
find nothing left to do. A lock on a table that is in use is asked for again and again for a short time each, because
everybody else would have to queue behind one who waits long.

The first lines of a file may say:
    -- compatible from: 3     programs that know the schema up to version 3 can go on working with this one
    -- no transaction         every statement is run alone: in a transaction of its own, or in none (CREATE INDEX
                              CONCURRENTLY); all of them can be run again after one was interrupted
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from random import uniform
from typing import Any, Final, NamedTuple, TypeVar

import asyncpg

from holdfast.errors import SchemaTooNew, StorageBusy, StorageError
from holdfast.store.postgres.driver_errors import CANCELLED, is_transient, sqlstate

T = TypeVar("T")
Connect = Callable[[], AbstractAsyncContextManager[Any]]

LOCK_TIMEOUT_S: Final = 2.0
_LONGEST_PAUSE_S: Final = 0.5
# Whatever the server or the role has for a default. With a snapshot for the whole transaction, whoever keeps others
# away would be waited for by the index that is made meanwhile, and would not see what was applied before it got the
# lock.
_ISOLATION: Final = "read_committed"

# In the schema where it is found, else in the first of the search path.
_FIND: Final = "SELECT to_regclass('holdfast_schema_version') IS NOT NULL"
_SCHEMA_VERSION: Final = """
CREATE TABLE IF NOT EXISTS holdfast_schema_version (
    version         integer NOT NULL PRIMARY KEY,
    name            text    COLLATE "C" NOT NULL,
    checksum        text    COLLATE "C" NOT NULL,
    applied_at      bigint  NOT NULL,
    compatible_from integer NOT NULL
)
"""
_LOCK: Final = "LOCK TABLE holdfast_schema_version IN SHARE ROW EXCLUSIVE MODE"
# A default of the server or the role may be too short for a big table; it is the lock that must not be waited for long.
_LIMITS: Final = (
    f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S:g}s'; SET LOCAL statement_timeout = 0; "
    "SET LOCAL idle_in_transaction_session_timeout = 0"
)
# Outside a transaction. An index that is made concurrently is in nobody's way while it waits for older transactions to
# end, and what it has done so far is lost when it gives up: it may wait as long as there is patience at all.
_SESSION_LIMITS: Final = "SET statement_timeout = 0; SET lock_timeout = '{lock_timeout_s:g}s'"
_APPLIED: Final = "SELECT version, name, checksum, compatible_from FROM holdfast_schema_version ORDER BY version"
_RECORD: Final = """
INSERT INTO holdfast_schema_version (version, name, checksum, applied_at, compatible_from)
VALUES ($1::integer, $2::text, $3::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $4::integer)
"""
_INVALID: Final = "SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass($1::text) AND NOT indisvalid"
# Two who create the same table at the same time: one of them fails like this, and the table is there.
_CREATED_TWICE: Final = frozenset({"23505", "42P07", "42710", "XX000"})

_COMPATIBLE: Final = re.compile(r"^-- compatible from: (\d+)$", re.MULTILINE)
_NO_TRANSACTION: Final = re.compile(r"^-- no transaction$", re.MULTILINE)
_CONCURRENTLY: Final = re.compile(
    r"CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(IF NOT EXISTS\s+)?(\w+)", re.IGNORECASE
)
_TOKEN: Final = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$|;|[^-/'\"$;]+|.", re.DOTALL
)


class Migration(NamedTuple):
    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def compatible_from(self) -> int:
        """The oldest version whose programs can work with this one; without a word, only its own can."""
        said = _COMPATIBLE.search(self._opening)
        return int(said[1]) if said else self.version

    @property
    def in_transaction(self) -> bool:
        return _NO_TRANSACTION.search(self._opening) is None

    @property
    def _opening(self) -> str:
        lines = self.text.splitlines()
        return "\n".join(lines[: next((n for n, line in enumerate(lines) if not line.startswith("--")), len(lines))])


class Applied(NamedTuple):
    version: int
    name: str
    checksum: str
    compatible_from: int


def read_folder(folder: Traversable) -> tuple[Migration, ...]:
    """The migrations in a folder, in order."""
    found = (entry for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(
        Migration(int(entry.name[:4]), entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8"))
        for entry in sorted(found, key=lambda entry: entry.name)
    )


@cache
def migrations() -> tuple[Migration, ...]:
    """Those this program knows, in order."""
    return read_folder(files(__package__).joinpath("migrations"))


async def missing(connection: Any, name: str, known: Sequence[Migration] | None = None) -> list[Migration]:
    """What is left to do. Raises if the database is too new for this program, or was made by another one."""
    known = migrations() if known is None else known
    applied = await _applied(connection)
    _check(applied, {migration.version: migration for migration in known}, name)
    return [migration for migration in known if migration.version not in applied]


async def apply(
    connect: Connect,
    name: str,
    known: Sequence[Migration] | None = None,
    deadline_s: float = 30.0,
    *,
    sessions: bool = True,
) -> list[Migration]:
    """Apply what is missing; what this call has applied.

    Waits for others, and for locks on tables in use, until `deadline_s` have passed without any progress. `connect`
    gives connections whose statements may take long. `sessions`: what is set for a session stays in it, and reaches
    nobody else's; not so behind a transaction pooler.
    """
    done: list[Migration] = []
    waits_s = deadline_s if sessions else None
    while True:
        migration, applied = await _patiently(lambda: _step(connect, name, known, waits_s), deadline_s, name)
        if migration is None:
            return done
        if applied:
            done.append(migration)


async def _step(
    connect: Connect, name: str, known: Sequence[Migration] | None, waits_s: float | None
) -> tuple[Migration | None, bool]:
    """Apply the next one that is missing, unless somebody else has done so meanwhile."""
    async with connect() as connection:
        left = await missing(connection, name, known)
        if not left:
            return None, False
        await _make_version_table(connection)
        if left[0].in_transaction:
            return left[0], await _apply_whole(connection, left[0])
        return left[0], await _apply_one_by_one(connection, connect, left[0], waits_s)


async def _make_version_table(connection: Any) -> None:
    while not await connection.fetchval(_FIND):
        try:
            await connection.execute(_SCHEMA_VERSION)
        except asyncpg.PostgresError as error:
            if sqlstate(error) not in _CREATED_TWICE:
                raise


async def _apply_whole(connection: Any, migration: Migration) -> bool:
    async with connection.transaction(isolation=_ISOLATION):
        if not await _locked_and_needed(connection, migration):
            return False
        await connection.execute(migration.text)
        await _record(connection, migration)
    return True


async def _apply_one_by_one(holder: Any, connect: Connect, migration: Migration, waits_s: float | None) -> bool:
    """One connection keeps others away, a second one works: it must not be inside a transaction."""
    async with holder.transaction(isolation=_ISOLATION):
        if not await _locked_and_needed(holder, migration):
            return False
        async with connect() as worker:
            for sql in statements(migration.text):
                await _apply_alone(worker, sql, migration, waits_s)
        await _record(holder, migration)
    return True


async def _apply_alone(connection: Any, sql: str, migration: Migration, waits_s: float | None) -> None:
    if "CONCURRENTLY" in sql.upper():
        # Waits for whoever has an older snapshot, and nobody waits behind it.
        if waits_s is not None:
            await connection.execute(_SESSION_LIMITS.format(lock_timeout_s=waits_s))
        await _drop_unfinished(connection, sql, migration)
        await connection.execute(sql)
        return
    async with connection.transaction(isolation=_ISOLATION):
        await connection.execute(_LIMITS)
        await connection.execute(sql)


async def _locked_and_needed(connection: Any, migration: Migration) -> bool:
    # As text, in one go: after a prepared statement the driver would leave a snapshot open until the transaction ends,
    # and CREATE INDEX CONCURRENTLY waits for everybody who has an older one.
    there = f"SELECT 1 FROM holdfast_schema_version WHERE version = {int(migration.version)}"  # noqa: S608 - a number
    return bool(await connection.execute(f"{_LIMITS}; {_LOCK}; {there}") == "SELECT 0")


async def _drop_unfinished(connection: Any, sql: str, migration: Migration) -> None:
    # An index whose making was interrupted stays behind and is never used: IF NOT EXISTS would be content with it.
    index = _CONCURRENTLY.match(sql)
    if index is None:
        return
    if index[1] is None:
        raise StorageError(f"migration {migration.name}: write CREATE INDEX CONCURRENTLY IF NOT EXISTS {index[2]}")
    if await connection.fetchval(_INVALID, index[2]):
        await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index[2]}")


async def _record(connection: Any, migration: Migration) -> None:
    row = (migration.version, migration.name, migration.checksum, migration.compatible_from)
    await connection.execute(_RECORD, *row)


async def _applied(connection: Any) -> dict[int, Applied]:
    if not await connection.fetchval(_FIND):
        return {}
    return {row[0]: Applied(*row) for row in await connection.fetch(_APPLIED)}


def _check(applied: Mapping[int, Applied], known: Mapping[int, Migration], name: str) -> None:
    newest_known = max(known)
    for row in applied.values():
        if row.version > newest_known:
            _check_newer(row, newest_known, name)
        elif row.version not in known or known[row.version].checksum != row.checksum:
            raise StorageError(
                f"{name} was made by another program: its schema version {row.version} is not the one known here; "
                "run the Holdfast that made it, or name another database, or a schema of its own (?search_path=NAME)",
                path=name,
                version=row.version,
            )
    left_out = [version for version in known if version not in applied and version < max(applied, default=0)]
    if left_out:
        raise StorageError(
            f"{name} has schema version {max(applied)}, but not version {left_out[0]}: it was made by another program; "
            "run the Holdfast that made it, or name another database, or a schema of its own (?search_path=NAME)",
            path=name,
            version=left_out[0],
        )


def _check_newer(row: Applied, newest_known: int, name: str) -> None:
    if row.compatible_from > newest_known:
        raise SchemaTooNew(
            f"{name} has schema version {row.version}, for programs that know at least {row.compatible_from}; "
            f"this one knows {newest_known}: upgrade this program",
            path=name,
            found=row.version,
            known=newest_known,
        )


def statements(text: str) -> Iterator[str]:
    """The statements of a file, one by one: no semicolon inside quotes or comments ends one."""
    pending = ""
    for token in _TOKEN.finditer(text):
        if token[0] == ";":
            if pending.strip():
                yield pending.strip()
            pending = ""
        elif not token[0].startswith(("--", "/*")):
            pending += token[0]
    if pending.strip():
        yield pending.strip()


async def _patiently(action: Callable[[], Awaitable[T]], deadline_s: float, name: str) -> T:
    """Repeat what fails because others are at work on the same tables."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + deadline_s
    pause_s = 0.02
    while True:
        try:
            return await action()
        except Exception as error:
            if not is_transient(error):
                raise
            if sqlstate(error) == CANCELLED:
                raise StorageBusy(
                    f"{name} could not be migrated: the server ended a statement that was at work ({error}): if that "
                    "was a statement_timeout, migrate past the pooler, or as a role that has none (ALTER ROLE … SET "
                    "statement_timeout = 0)",
                    path=name,
                ) from error
            if loop.time() >= give_up_at:
                raise StorageBusy(
                    f"{name} could not be migrated: its tables stayed locked by others beyond the deadline ({error})",
                    path=name,
                ) from error
        await asyncio.sleep(uniform(0.5, 1.0) * pause_s)  # noqa: S311 - jitter, not a secret
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
