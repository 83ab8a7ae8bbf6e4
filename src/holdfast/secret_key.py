"""Where the secret of an installation lives, from which the tokens of its promises are made.

A setting or the environment variable HOLDFAST_SECRET_KEY; else a file next to the database, or a row in a database on a
server; in memory a new one each time. Whoever knows it can settle every promise. Workers of one database have to share
it, and a backup of the database needs it: without it, promises that are open give other tokens than before.
"""

from __future__ import annotations

import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path

from holdfast.errors import InvalidRequest

log = logging.getLogger("holdfast.secret_key")

VARIABLE = "HOLDFAST_SECRET_KEY"
MIN_LENGTH = 16
KEY_BYTES = 32


def secret_key(setting: str | None, database: Path | bytes | None) -> bytes:
    """The secret. `database` is the file it belongs to; None for one in memory; or what the nodes of a shared database
    have agreed upon in it."""
    for given, field in ((setting, "secret_key"), (os.environ.get(VARIABLE) or None, VARIABLE)):
        if given is not None:
            return _checked(given, field)
    if isinstance(database, bytes):
        return database
    if database is None:
        return secrets.token_bytes(KEY_BYTES)
    path = database.with_name(f"{database.name}.key")
    with suppress(FileNotFoundError):
        return _read(path)
    _create(path)
    return _read(path)


def _checked(given: object, field: str) -> bytes:
    if not isinstance(given, str) or len(given) < MIN_LENGTH:
        raise InvalidRequest(
            f"{field} must be text of at least {MIN_LENGTH} characters that nobody can guess: "
            'python -c "import secrets; print(secrets.token_hex(32))" gives one',
            field=field,
        )
    return given.encode()


def _read(path: Path) -> bytes:
    text = path.read_text(encoding="ascii", errors="replace").strip()
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) < KEY_BYTES:
        raise InvalidRequest(
            f"{path} is not a key file ({KEY_BYTES} bytes in hexadecimal): restore it from a backup, or remove it to "
            "get a new one; promises that are open then give other tokens than before",
            field="secret_key",
        )
    if os.name == "posix" and path.stat().st_mode & 0o077:
        log.warning("%s can be read by others, who could settle every promise: chmod 600 %s", path, path)
    return key


def _create(path: Path) -> None:
    """Whole or not at all: another process that starts now must not see half of a key, nor make another."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_hex(KEY_BYTES)}\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink()
