"""What a server must be like before anything is written to it."""

from __future__ import annotations

from typing import Any, Final

from holdfast.config import StoreConfig
from holdfast.errors import AccessDenied, ServerNotSupported, ServerReadOnly, StorageError
from holdfast.store.postgres.standbys import check_standbys

OLDEST: Final = 14
# Sent as they are, without parameters: nothing here is prepared, so a pooler has nothing to mix up.
_SERVER: Final = """
SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
    (SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()),
    pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', current_setting('synchronous_commit'),
    current_user::text, current_schema()::text, to_regclass('holdfast_schema_version') IS NOT NULL
"""
_MAY_CREATE: Final = "SELECT has_schema_privilege(current_schema(), 'CREATE')"
_TABLES: Final = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('holdfast_schema_version'))
AND c.relkind = 'r' AND starts_with(c.relname, 'holdfast_') AND NOT (
    has_table_privilege(c.oid, 'SELECT') AND (c.relname = 'holdfast_schema_version' OR (
        has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
        AND has_table_privilege(c.oid, 'DELETE'))))
ORDER BY 1
"""


async def check(connection: Any, name: str, config: StoreConfig) -> None:
    """Raise if the server, the database or the user's rights are not enough; warn if it may lose what it promised."""
    row = await connection.fetchrow(_SERVER)
    version_num, version, encoding, standby, read_only, synchronous, user, schema, there = row
    _check_server(name, version_num, version, encoding)
    if standby or read_only:
        what = "is a standby" if standby else "is set to be read-only (default_transaction_read_only)"
        raise ServerReadOnly(f"{name} {what} and does not accept writes: name the primary in the URL", path=name)
    if there:
        await _check_tables(connection, name, user)
    else:
        await _check_schema(connection, name, user, schema)
    await check_standbys(connection, name, config, synchronous)


def _check_server(name: str, version_num: int, version: str, encoding: str) -> None:
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


async def _check_schema(connection: Any, name: str, user: str, schema: str | None) -> None:
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


async def _check_tables(connection: Any, name: str, user: str) -> None:
    refused = [row[0] for row in await connection.fetch(_TABLES)]
    if refused:
        shown = ", ".join(refused[:3]) + (f" and {len(refused) - 3} more" if len(refused) > 3 else "")
        raise AccessDenied(
            f'the user "{user}" may not use {shown} in {name}: as their owner, run GRANT SELECT, INSERT, UPDATE, '
            f'DELETE ON ALL TABLES IN SCHEMA … TO "{user}", and GRANT USAGE ON ALL SEQUENCES IN SCHEMA … TO "{user}"',
            path=name,
            user=user,
            tables=refused,
        )
