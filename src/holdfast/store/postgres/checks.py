"""What a server must be like before anything is written to it."""

from __future__ import annotations

from typing import Any, Final

from holdfast.config import StoreConfig
from holdfast.errors import AccessDenied, ServerNotSupported, ServerReadOnly, StorageCorrupt, StorageError
from holdfast.store.postgres.durability import check_durability
from holdfast.store.postgres.migrate import migrations
from holdfast.store.tables import indexes_made_by, lost, made_by

OLDEST: Final = 14
# Sent as they are, without parameters: nothing here is prepared, so a pooler has nothing to mix up.
_SERVER: Final = """
SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
    (SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()),
    pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', current_setting('synchronous_commit'),
    current_user::text, current_schema()::text, to_regclass('holdfast_executions') IS NOT NULL,
    to_regclass('holdfast_schema_version') IS NOT NULL, current_setting('array_nulls') = 'on'
"""
_READ_ONLY: Final = """
SELECT source, current_database()::text FROM pg_settings WHERE name = 'default_transaction_read_only' AND setting = 'on'
"""
# Where a setting comes from, as pg_settings says it, and what takes it away.
_RESETS: Final = {
    "user": 'run ALTER ROLE "{user}" RESET default_transaction_read_only',
    "database": 'run ALTER DATABASE "{database}" RESET default_transaction_read_only',
    "database user": 'run ALTER ROLE "{user}" IN DATABASE "{database}" RESET default_transaction_read_only',
    "global": "run ALTER ROLE ALL RESET default_transaction_read_only",
    "client": "take it out of the URL's options, or out of PGOPTIONS",
}
_RESET_SERVER: Final = (
    "run ALTER SYSTEM RESET default_transaction_read_only, or take it out of the server's configuration, and reload "
    "that; some providers set it while the disk is full"
)
_MAY_CREATE: Final = "SELECT has_schema_privilege(current_schema(), 'CREATE')"
# PostgreSQL passes over those that the user may not use, as if they were not there: tables in one of them are not seen,
# and would be made again in the next.
_NOT_USABLE: Final = """
SELECT nspname::text, EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = 'holdfast_schema_version')
FROM pg_namespace n
WHERE NOT has_schema_privilege(oid, 'USAGE') AND nspname = ANY (
    SELECT CASE WHEN found[1] = '"$user"' THEN current_user::text
        WHEN starts_with(found[1], '"') THEN replace(substr(found[1], 2, length(found[1]) - 2), '""', '"')
        ELSE lower(found[1]) END
    FROM regexp_matches(current_setting('search_path'), '("(?:[^"]|"")*"|[^", ]+)', 'g') AS found)
ORDER BY 2 DESC, 1 LIMIT 1
"""
_REFUSED: Final = """
SELECT c.relname, c.relnamespace::regnamespace::text FROM pg_class c
WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('holdfast_schema_version'))
AND c.relkind IN ('r', 'S') AND starts_with(c.relname, 'holdfast_') AND NOT CASE WHEN c.relkind = 'S'
    THEN has_sequence_privilege(c.oid, 'USAGE, UPDATE')
    ELSE has_table_privilege(c.oid, 'SELECT') AND (c.relname = 'holdfast_schema_version' OR (
        has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
        AND has_table_privilege(c.oid, 'DELETE'))) END
ORDER BY 1
"""
_APPLIED: Final = "SELECT version FROM holdfast_schema_version"
_MISSING: Final = "SELECT name FROM unnest(string_to_array('{names}', ' ')) AS name WHERE to_regclass(name) IS NULL"
_UNFIT_INDEXES: Final = """
SELECT name, to_regclass(name) IS NOT NULL FROM unnest(string_to_array('{names}', ' ')) AS name
WHERE to_regclass(name) IS NULL OR EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(name) AND NOT indisvalid)
"""


async def unfit_indexes(connection: Any) -> dict[str, str]:
    """Indexes that were dropped, or whose making was interrupted, by name; with the statement that mends each."""
    applied = {row[0] for row in await connection.fetch(_APPLIED)}
    there = indexes_made_by(migration.text for migration in migrations() if migration.version in applied)
    rows = await connection.fetch(_UNFIT_INDEXES.format(names=" ".join(sorted(there))))
    return {
        name: f"REINDEX INDEX CONCURRENTLY {name}" if exists else there[name].statement(concurrently=True)
        for name, exists in rows
    }


async def check(connection: Any, name: str, config: StoreConfig) -> None:
    """Raise if the server, the database or the user's rights are not enough; warn if it may lose what it promised."""
    row = await connection.fetchrow(_SERVER)
    version_num, version, encoding, standby, read_only, synchronous, user, schema, in_use, there, nulls = row
    _check_server(name, version_num, version, encoding, nulls=nulls)
    if standby:
        raise ServerReadOnly(f"{name} is a standby and does not accept writes: name the primary in the URL", path=name)
    if read_only:
        raise await _read_only(connection, name, user)
    if there:
        await _check_rights(connection, name, user)
        await _check_tables(connection, name, in_use=in_use)
    elif in_use:
        raise StorageCorrupt(lost(name, ["holdfast_schema_version"]), path=name)
    else:
        await _check_schema(connection, name, user, schema)
    await check_durability(connection, name, config, synchronous)


def _check_server(name: str, version_num: int, version: str, encoding: str, *, nulls: bool) -> None:
    if version_num < OLDEST * 10_000:
        raise ServerNotSupported(
            f"{name} is PostgreSQL {version}; Holdfast needs {OLDEST} or newer: upgrade the server",
            path=name,
            found=version,
        )
    if encoding != "UTF8":
        raise ServerNotSupported(
            f"{name} is encoded in {encoding}, where not every text can be stored: create the database with "
            "ENCODING 'UTF8' TEMPLATE template0",
            path=name,
            found=encoding,
        )
    if not nulls:
        raise ServerNotSupported(
            f"{name} has array_nulls = off, and would take an absent value for the word NULL: set it to on, the "
            "default, for the user of the URL",
            path=name,
            found="array_nulls = off",
        )


async def _check_schema(connection: Any, name: str, user: str, schema: str | None) -> None:
    hidden = await connection.fetchrow(_NOT_USABLE)
    if hidden is not None and (schema is None or hidden[1]):
        raise AccessDenied(
            f'the user "{user}" may not use the schema "{hidden[0]}" of {name}: as its owner, run '
            f"GRANT USAGE ON SCHEMA {_quoted(hidden[0])} TO {_quoted(user)}",
            path=name,
            user=user,
            schema=hidden[0],
        )
    if schema is None:
        raise StorageError(
            f"{name} has no schema in its search_path where tables could be created: create one, or set search_path",
            path=name,
        )
    if not await connection.fetchval(_MAY_CREATE):
        raise AccessDenied(
            f'the user "{user}" may not create tables in the schema "{schema}" of {name}: as its owner, run '
            f'GRANT USAGE, CREATE ON SCHEMA "{schema}" TO "{user}", or run `holdfast migrate URL` as another user',
            path=name,
            user=user,
            schema=schema,
        )


async def _read_only(connection: Any, name: str, user: str) -> ServerReadOnly:
    """A primary that was told to refuse writes: whoever looks for another server looks in vain."""
    found = await connection.fetchrow(_READ_ONLY)
    if found is None:
        return ServerReadOnly(f"{name} does not accept writes: name the primary in the URL", path=name)
    source, database = found
    reset = _RESETS.get(source, _RESET_SERVER).format(user=user, database=database)
    return ServerReadOnly(
        f"{name} is no standby, but does not accept writes (default_transaction_read_only = on, set by: {source}): "
        f"{reset}",
        path=name,
        source=source,
    )


async def _check_tables(connection: Any, name: str, *, in_use: bool) -> None:
    applied = {row[0] for row in await connection.fetch(_APPLIED)}
    if in_use and not applied:
        raise StorageCorrupt(
            f"{name} has Holdfast's tables, but holdfast_schema_version is empty: emptied, or left out when a backup "
            "was restored (pg_dump --schema-only leaves all rows out); restore a whole backup, or drop the tables",
            path=name,
        )
    known = {migration.version: migration.text for migration in migrations()}
    if applied - known.keys():
        return  # what a newer program has done without, nobody here can know
    names = " ".join(sorted(made_by(known[version] for version in sorted(applied))))
    missing = [row[0] for row in await connection.fetch(_MISSING.format(names=names))]
    if missing:
        raise StorageCorrupt(lost(name, missing), path=name, tables=missing)


async def _check_rights(connection: Any, name: str, user: str) -> None:
    rows = await connection.fetch(_REFUSED)
    if rows:
        refused, schema = [row[0] for row in rows], rows[0][1]
        shown = ", ".join(refused[:3]) + (f" and {len(refused) - 3} more" if len(refused) > 3 else "")
        raise AccessDenied(
            f'the user "{user}" may not use {shown} in {name}: as their owner, run GRANT SELECT, INSERT, UPDATE, '
            f'DELETE ON ALL TABLES IN SCHEMA {schema} TO "{user}", and GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} '
            f'TO "{user}"',
            path=name,
            user=user,
            tables=refused,
        )


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
