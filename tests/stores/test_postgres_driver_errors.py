"""What errors of a PostgreSQL server mean."""

from __future__ import annotations

import asyncio
import ssl

import asyncpg
import pytest

from holdfast.errors import (
    AccessDenied,
    InvalidDatabaseUrl,
    ServerReadOnly,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
)
from holdfast.store.postgres.driver_errors import is_connection_lost, is_lost_commit, is_transient, translate


def error_of(state: str, message: str = "what the server said") -> asyncpg.PostgresError:
    return asyncpg.PostgresError.new({"C": state, "M": message})


TRANSIENT = [
    *map(error_of, ("40001", "40P01", "55P03", "57P01", "57P02", "57P03", "57014", "53300", "25P03", "25006")),
    *map(error_of, ("08000", "08001", "08003", "08006", "08P01", "26000")),
    asyncpg.InterfaceError("connection is closed"),
    asyncpg.InterfaceError("cannot call Connection.fetch(): connection has been closed"),
    asyncpg.InvalidCachedStatementError("cached statement plan is invalid"),
    asyncpg.TargetServerAttributeNotMatched("None of the hosts match"),
    ConnectionResetError("gone"),
    OSError("no route to host"),
    TimeoutError(),
]
BY_CONTENT = [*map(error_of, ("23505", "23514", "23502", "22001", "22012", "42601", "22P05", "54000"))]


@pytest.mark.parametrize("error", TRANSIENT, ids=repr)
def test_a_transaction_is_run_again_when_only_the_moment_was_wrong(error):
    """Others in the way, a server that goes away or comes back."""
    assert is_transient(error)
    assert isinstance(translate(error, "db"), StorageBusy | ServerReadOnly)


@pytest.mark.parametrize("error", BY_CONTENT, ids=repr)
def test_nobody_but_the_statement_is_to_blame_for_its_content(error):
    """The batch is split, and only the guilty member fails."""
    assert not is_transient(error)
    assert translate(error, "db") is None


@pytest.mark.parametrize(
    ("error", "kind", "next_step"),
    [
        (error_of("53100"), StorageFull, "space"),
        (error_of("42501"), AccessDenied, "grant"),
        (error_of("28P01"), AccessDenied, "check both"),
        (error_of("28000"), AccessDenied, r"pg_hba\.conf"),
        (error_of("3D000"), StorageError, "CREATE DATABASE"),
        (error_of("42P01"), StorageError, "holdfast migrate URL --check"),
        (error_of("XX001"), StorageCorrupt, "restore a backup"),
        (error_of("25006"), ServerReadOnly, "primary.*holdfast doctor"),
        (error_of("53300"), StorageBusy, r"3 \+ StoreConfig\.readers.*max_connections"),
        (
            error_of("42P05", "it exists\nHINT:  set statement_cache_size to 0"),
            StorageBusy,
            r"\(it exists\).*notify=off",
        ),
        (error_of("26000"), StorageBusy, "notify=off"),
        (
            error_of("08P01", "unsupported startup parameter: search_path"),
            InvalidDatabaseUrl,
            "ALTER ROLE … SET search_path",
        ),
        (error_of("08P01", "unsupported startup parameter: options"), InvalidDatabaseUrl, "ALTER ROLE … SET …"),
        (ConnectionError("server rejected SSL upgrade"), StorageError, "does not speak TLS"),
        (error_of("58030"), StorageError, "server's log"),
        (error_of("42704", 'unrecognized configuration parameter "x"'), InvalidDatabaseUrl, "options"),
        (ssl.SSLCertVerificationError("self-signed certificate"), StorageError, "sslrootcert"),
        (asyncpg.ClientConfigurationError("no"), InvalidDatabaseUrl, "understand the URL"),
        (ConnectionRefusedError("refused"), StorageBusy, "does the server run"),
    ],
    ids=repr,
)
def test_errors_of_the_surroundings_name_the_database_and_the_next_step(error, kind, next_step):
    """The driver's own error is the cause."""
    with pytest.raises(kind, match=next_step) as raised:
        raise translate(error, "localhost:5432/app") or AssertionError

    assert "localhost:5432/app" in str(raised.value)
    assert raised.value.__cause__ is error


def test_what_the_server_says_in_several_lines_is_told_in_one():
    """An error is one line, in a log and on a terminal."""
    error = error_of("42501", "permission denied")
    error.args = ("permission denied\nDETAIL:  Only owners may.",)

    assert "permission denied DETAIL: Only owners may." in str(translate(error, "localhost:5432/app"))


def test_an_error_of_holdfast_stays_what_it_is():
    """What was explained once is not explained again."""
    busy = StorageBusy("no")

    assert translate(busy, "db") is busy
    assert is_transient(busy)


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (error_of("40001"), False),
        (error_of("23505"), False),
        (error_of("57P01"), True),
        (error_of("08006"), True),
        (asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"), True),
        (asyncpg.InterfaceError("connection is closed"), True),
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (asyncio.CancelledError(), True),
    ],
    ids=repr,
)
def test_only_an_answer_of_the_server_says_that_a_commit_failed(error, lost):
    """Everything else leaves it open."""
    assert is_lost_commit(error) is lost


async def test_what_a_killed_connection_raises_is_known(postgres_url):
    """The driver's errors of a lost connection count as such, in the middle of a statement and after it."""
    victim, other = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    sleeping = asyncio.create_task(victim.execute("SELECT pg_sleep(60)"))
    await _until_busy(other, victim)
    await other.execute("SELECT pg_terminate_backend($1::integer)", victim.get_server_pid())

    with pytest.raises(asyncpg.PostgresError) as in_the_middle:
        await sleeping
    with pytest.raises(asyncpg.InterfaceError) as after:
        await victim.execute("SELECT 1")

    assert [True, True] == [is_connection_lost(raised.value) for raised in (in_the_middle, after)]
    await other.close()


async def _until_busy(watching: asyncpg.Connection, watched: asyncpg.Connection) -> None:
    active = "SELECT state = 'active' FROM pg_stat_activity WHERE pid = $1::integer"
    while not await watching.fetchval(active, watched.get_server_pid()):
        await asyncio.sleep(0.005)
