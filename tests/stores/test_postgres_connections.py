"""URLs of PostgreSQL databases, and what a server must be like."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from urllib.parse import quote

import asyncpg
import pytest

from holdfast.config import StoreConfig
from holdfast.errors import (
    AccessDenied,
    InvalidDatabaseUrl,
    InvalidRequest,
    SchemaTooOld,
    ServerNotSupported,
    ServerReadOnly,
    StorageBusy,
    StorageCorrupt,
    StorageError,
)
from holdfast.store.postgres import checks, urls
from holdfast.store.postgres.connections import Database, close_quietly
from holdfast.store.postgres.urls import parse
from verification.postgres import LocalPostgres

QUICK = StoreConfig(synchronous="normal", connect_timeout_s=2.0)


def database_at(url: str, config: StoreConfig = QUICK) -> Database:
    return Database(url, config, lambda: 0)


# --- URLs ---


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch):
    for name in ("PGHOST", "PGPORT", "PGDATABASE", "PGUSER"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://u:p@db.example:6543/app", "db.example:6543/app"),
        ("postgres://db.example/app", "db.example:5432/app"),
        ("postgresql://u:p%40%2F%3A@h/app%2Fone", "h:5432/app/one"),
        ("postgresql://u@[::1]:6543/app", "[::1]:6543/app"),
        ("postgresql://u@a:1,b:2/app", "a:1,b:2/app"),
        ("postgresql://u@%2Frun%2Fpostgresql/app", "/run/postgresql:5432/app"),
        ("postgresql:///app?host=/run/postgresql", "/run/postgresql:5432/app"),
        ("postgresql:///?host=a,b&port=1,2&dbname=app&user=u&password=secret", "a:1,b:2/app"),
        ("postgresql:///app", "the local server/app"),
    ],
)
def test_the_name_for_messages_says_where_but_not_who(url, name):
    """Host, port and database; a password is nowhere in it."""
    assert name == parse(url).name


def test_a_password_is_not_shown(caplog):
    """Neither by the record of the place nor by the database's errors."""
    url = "postgresql://user:hush@127.0.0.1:1/app?sslpassword=hush"
    place = parse(url)

    assert "hush" not in repr(place)
    assert "hush" in place.dsn


@pytest.mark.parametrize(
    ("url", "field", "says"),
    [
        ("mysql://u:hush@h/app", "url", "mysql://"),
        ("postgresql+asyncpg://u:hush@h/app", "url", r"postgresql\+asyncpg://"),
        ("u:hush@h/app", "url", "scheme"),
        ("postgresql://u:hu@sh@h/app", "url", "%40"),
        ("postgresql://u:hu/sh@h/app", "url", "%2F"),
        ("postgresql://u:12/hush@h", "url", "%2F"),
        ("postgresql://u:12?hush=1@h/app", "url", "%3F"),
        ("postgresql://u:hush#@h/app", "url", "%23"),
        ("postgresql://u:hu:sh@h/app", "password", "%3A"),
        ("postgresql://u:hush%@h/app", "user or password", "%25"),
        ("postgresql://u:hush @h/app", "url", "blanks"),
        ("postgresql://u:hush@h", "database", "names no database"),
        ("postgresql://u:hush@h/a/b", "database", "slash"),
        ("postgresql://u:hush@h/app%00", "database", "NUL"),
        ("postgresql://u:hush@h:http/app", "port", "65535"),
        ("postgresql://u:hush@h:0/app", "port", "65535"),
        ("postgresql://u:hush@h:65536/app", "port", "65535"),
        ("postgresql://u:hush@a,,b/app", "host", "missing"),
        ("postgresql://u:hush@::1/app", "host", r"\[::1\]"),
        ("postgresql://u:hush@[::1/app", "host", r"\[::1\]"),
        ("postgresql://u:hush@a..b/app", "host", "host name"),
        ("postgresql://u:hush@h/app?host=other", "host", "ignored"),
        ("postgresql://u:hush@h/app?port=1", "port", "ignored"),
        ("postgresql://u:hush@h/app?dbname=other", "dbname", "ignored"),
        ("postgresql://u:hush@h/app?user=other", "user", "ignored"),
        ("postgresql://u:hush@h/app?password=other", "password", "ignored"),
        ("postgresql:///app?host=a,b&port=1", "port", "2 hosts and 1 ports"),
        ("postgresql://u:hush@h/app?sslmode", "sslmode", "no value"),
        ("postgresql://u:hush@h/app?sslmode=", "sslmode", "no value"),
        ("postgresql://u:hush@h/app?sslmode=always", "sslmode", "verify-full"),
        ("postgresql://u:hush@h/app?sslmode=require&sslmode=disable", "sslmode", "twice"),
        ("postgresql://u:hush@h/app?sslrootcert=/nowhere/root.crt", "sslrootcert", "not a file"),
        ("postgresql://u:hush@h/app?target_session_attrs=standby", "target_session_attrs", "standby can't be written"),
        ("postgresql://u:hush@h/app?connect_timeout=3", "connect_timeout", "connect_timeout_s"),
        ("postgresql://u:hush@h/app?channel_binding=require", "channel_binding", "leave it out"),
        ("postgresql://u:hush@h/app?pgbouncer=true", "pgbouncer", "notify=off"),
        ("postgresql://u:hush@h/app?work_mem=4MB", "work_mem", "options=-c%20work_mem"),
        ("postgresql://u:hush@h/app?notify=maybe", "notify", "on, off"),
        ("postgresql://u:hush@h/app?=1", "query", "name=value"),
        (7, "url", "int"),
    ],
)
def test_what_the_driver_would_drop_or_fail_on_is_refused(url, field, says):
    """The message names the part and what to write, and never shows a password."""
    with pytest.raises(InvalidDatabaseUrl, match=says) as refused:
        parse(url)

    assert field == refused.value.field
    assert "hush" not in str(refused.value)


def test_options_reach_the_driver_and_ours_do_not():
    """`notify` is for the store; the rest is passed on."""
    place = parse("postgresql://h/app?notify=off&sslmode=disable&options=-c%20work_mem%3D8MB")

    assert (False, "postgresql://h/app?sslmode=disable&options=-c%20work_mem%3D8MB") == (place.notify, place.dsn)


def test_of_several_hosts_the_one_that_can_be_written_is_taken():
    """A standby among them is not."""
    assert "read-write" == parse("postgresql://a,b/app").target_session_attrs
    assert parse("postgresql://a/app").target_session_attrs is None


@pytest.mark.parametrize(
    ("field", "config"),
    [
        ("connect_timeout_s", StoreConfig(connect_timeout_s=0)),
        ("statement_timeout_s", StoreConfig(statement_timeout_s=-1)),
        ("readers", StoreConfig(readers=0)),
    ],
)
def test_settings_that_can_not_work_are_refused(field, config):
    """Before anything is connected."""
    with pytest.raises(InvalidRequest, match=field) as refused:
        database_at("postgresql://h/app", config)

    assert field == refused.value.field


def test_without_the_driver_the_message_says_what_to_install():
    """In a process of its own, where asyncpg can't be imported."""
    program = (
        "import sys; sys.modules['asyncpg'] = None\n"
        "from holdfast.errors import DriverMissing\n"
        "try:\n    import holdfast.store.postgres.connections\n"
        "except DriverMissing as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert "pip install 'holdfast[postgres]'" in said


# --- connecting ---


async def test_the_first_connection_makes_the_schema(postgres_url):
    """And the second finds it."""
    for _ in range(2):
        connection = await database_at(postgres_url).connect_writer()
        assert 0 == await connection.fetchval("SELECT count(*) FROM holdfast_executions")
        await close_quietly(connection)


async def test_connections_say_whose_they_are_and_are_watched(postgres_url):
    """By their application name, unless the URL gives one; by the kernel, which tells when nobody is there any more."""
    connection = await database_at(postgres_url).connect_notifications()
    named = await database_at(f"{postgres_url}?application_name=billing").connect_notifications()
    found = connection._transport.get_extra_info("socket")  # type: ignore[attr-defined]

    assert "holdfast" == await connection.fetchval("SHOW application_name")
    assert "billing" == await named.fetchval("SHOW application_name")
    assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        assert 30_000 == found.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    await close_quietly(connection)
    await close_quietly(named)


async def test_a_socket_can_be_named(postgres_server, postgres_url):
    """In the query, as everywhere with PostgreSQL."""
    database = postgres_url.rpartition("/")[2]
    place = f"host={postgres_server.socket_directory}&port={postgres_server.port}&user=holdfast"
    connection = await database_at(f"postgresql:///{database}?{place}").connect_notifications()

    assert 1 == await connection.fetchval("SELECT 1")
    await close_quietly(connection)


async def test_without_notifications_no_statement_is_prepared(postgres_url):
    """A pooler would send the next one to another session."""
    for url, config in ((f"{postgres_url}?notify=off", QUICK), (postgres_url, StoreConfig(notify=False))):
        database = database_at(url, config)
        connection = await database.connect_notifications()
        await connection.fetchval("SELECT $1::integer", 1)

        assert not database.notify
        assert [] == await connection.fetch("SELECT name FROM pg_prepared_statements WHERE name <> ''")
        await close_quietly(connection)


async def test_nobody_there_is_said_after_a_while(caplog):
    """It is tried again for the time that connecting may take, and the first failure is logged at once."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        config = StoreConfig(connect_timeout_s=0.2)
        with caplog.at_level(logging.WARNING), pytest.raises(StorageBusy, match=f"127.0.0.1:{port}/app can't be"):
            await database_at(f"postgresql://u:hush@127.0.0.1:{port}/app", config).connect_writer()

    assert 1 == len(caplog.records)
    assert "hush" not in caplog.text


async def test_a_server_that_never_answers_is_given_up():
    """The connection is taken, and then nothing comes."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/app"
        with pytest.raises(StorageBusy):
            await database_at(url, StoreConfig(connect_timeout_s=0.1)).connect_notifications()


async def test_an_unknown_database_is_named(postgres_url):
    """With what to do about it."""
    url = f"{postgres_url.rpartition('/')[0]}/nowhere"

    with pytest.raises(StorageError, match=r"nowhere is not there.*CREATE DATABASE"):
        await database_at(url).connect_writer()


@pytest.mark.slow
async def test_a_server_that_is_just_starting_is_waited_for():
    """Engines and their database may start together."""
    with LocalPostgres() as server:
        await asyncio.to_thread(server.stop)
        connecting = asyncio.create_task(database_at(server.url, StoreConfig(connect_timeout_s=20)).connect_writer())
        await asyncio.sleep(0)
        await asyncio.to_thread(server.start)

        await close_quietly(await connecting)


@pytest.mark.slow
async def test_a_standby_is_refused_whoever_connects():
    """Also when it took the place of a primary that was checked before."""
    with LocalPostgres(durable=True) as server:
        database = database_at(server.url)
        await close_quietly(await database.connect_writer())
        pool = await database.open_pool(1)
        await asyncio.to_thread(server.stop)
        signal = next(server.directory.glob("**/PG_VERSION")).with_name("standby.signal")
        signal.touch()
        await asyncio.to_thread(server.start)

        with pytest.raises(ServerReadOnly, match="standby"):
            await database.connect_writer()
        with pytest.raises(ServerReadOnly, match="standby"):
            await pool.fetchval("SELECT 1")
        with pytest.raises(ServerReadOnly, match="standby"):
            await database_at(server.url).connect_writer()
        pool.terminate()


# --- what a server must be like ---


class Answering:
    """Stands in for a connection to a server that is hard to come by."""

    def __init__(self, **changes: object) -> None:
        answer = {
            "version_num": 150004,
            "version": "15.4",
            "encoding": "UTF8",
            "standby": False,
            "read_only": False,
            "synchronous_commit": "on",
            "user": "app",
            "schema": "public",
            "in_use": False,
            "there": False,
            "array_nulls": True,
        }
        self._row = (answer | changes).values()

    async def fetchrow(self, query: str) -> tuple[object, ...] | None:
        return tuple(self._row) if "server_version" in query else None

    async def fetchval(self, _: str) -> bool:
        return True


@pytest.mark.parametrize(
    ("changes", "kind", "says"),
    [
        ({"version_num": 130011, "version": "13.11"}, ServerNotSupported, r"PostgreSQL 13\.11.*needs 14"),
        ({"encoding": "LATIN1"}, ServerNotSupported, "LATIN1.*ENCODING 'UTF8'"),
        ({"standby": True}, ServerReadOnly, "standby.*primary"),
        ({"in_use": True}, StorageCorrupt, "holdfast_schema_version.*restore a whole backup"),
        ({"schema": None}, StorageError, "search_path"),
    ],
)
async def test_servers_that_can_not_be_used_are_refused(changes, kind, says):
    """Before anything is written."""
    with pytest.raises(kind, match=says):
        await checks.check(Answering(**changes), "db", StoreConfig())


async def test_a_database_in_another_encoding_is_refused(postgres_server):
    """A real one."""
    connection = await asyncpg.connect(postgres_server.url)
    await connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")

    with pytest.raises(ServerNotSupported, match="LATIN1"):
        await database_at(postgres_server.url_of("latin")).connect_writer()
    await connection.execute("DROP DATABASE latin WITH (FORCE)")
    await connection.close()


@pytest.fixture
async def poor_user(postgres_url):
    """The URL of a user without any rights in the test's database, and a connection of the owner."""
    owner = await asyncpg.connect(postgres_url)
    user = f"poor_{postgres_url.rpartition('_')[2]}"
    await owner.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'hush'; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    scheme, _, rest = postgres_url.partition("://")
    yield f"{scheme}://{user}:hush@{rest.rpartition('@')[2]}", owner, user
    await owner.execute(f"DROP OWNED BY {user}; DROP ROLE {user}")
    await owner.close()


async def test_a_database_that_is_read_only_is_refused(postgres_url):
    """It is no standby, and no other server is asked for: what is asked for is to take back what was set, there."""
    with pytest.raises(ServerReadOnly, match=r"no standby.*default_transaction_read_only.*out of the URL's options"):
        await database_at(f"{postgres_url}?options=-c%20default_transaction_read_only%3Don").connect_writer()


@pytest.mark.parametrize(
    "whose", ['DATABASE "{database}"', 'ROLE "{user}"', 'ROLE "{user}" IN DATABASE "{database}"'], ids=str.split
)
async def test_the_message_says_what_to_reset_where_writes_are_forbidden(poor_user, postgres_url, whose):
    """The statement works as it is written."""
    url, owner, user = poor_user
    await owner.execute(f"GRANT USAGE, CREATE ON SCHEMA public TO {user}")
    whose = whose.format(user=user, database=postgres_url.rpartition("/")[2])
    await owner.execute(f"ALTER {whose} SET default_transaction_read_only = on")
    with pytest.raises(ServerReadOnly) as refused:
        await database_at(url).connect_writer()
    statement = str(refused.value).partition("run ")[2]
    await owner.execute(f"SET default_transaction_read_only = off; {statement}")

    assert f"ALTER {whose} RESET default_transaction_read_only" == statement
    await close_quietly(await database_at(url).connect_writer())


async def test_a_server_without_tls_is_not_waited_for(postgres_url):
    """It would not learn it meanwhile; and that it does not run would be wrong."""
    with pytest.raises(StorageError, match=r"does not speak TLS.*sslmode") as refused:
        await database_at(f"{postgres_url}?sslmode=require", StoreConfig(connect_timeout_s=60)).connect_writer()

    assert not isinstance(refused.value, StorageBusy)


async def test_a_role_with_too_few_connections_is_told_how_many_are_needed(poor_user):
    """And which settings there are."""
    url, owner, user = poor_user
    await owner.execute(f"ALTER ROLE {user} CONNECTION LIMIT 0")
    with pytest.raises(StorageBusy, match=r"3 \+ StoreConfig\.readers.*max_connections.*CONNECTION LIMIT"):
        await database_at(url).connect_notifications()


async def test_a_schema_that_has_lost_a_table_is_refused(postgres_url):
    """It can't be made again: what was in it is gone. That of a newer program may do without it."""
    database = database_at(postgres_url)
    await close_quietly(await database.connect_writer())
    async with database.session() as connection:
        await connection.execute("DROP TABLE holdfast_timers; DROP SEQUENCE holdfast_numbers")

    with pytest.raises(StorageCorrupt, match=r"lacks holdfast_numbers, holdfast_timers.*restore a whole backup"):
        await database_at(postgres_url).connect_writer()
    async with database.session() as connection:
        await connection.execute("INSERT INTO holdfast_schema_version VALUES (9999, 'newer', '', 0, 1)")
    await close_quietly(await database_at(postgres_url).connect_writer())


@pytest.mark.parametrize(("synchronous", "warnings"), [("full", 1), ("normal", 0)])
async def test_a_server_that_answers_too_early_is_warned_about_once(postgres_url, caplog, synchronous, warnings):
    """Unless that is what was asked for."""
    url = f"{postgres_url}?options=-c%20synchronous_commit%3Doff"
    database = database_at(url, StoreConfig(synchronous=synchronous))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            await close_quietly(await database.connect_writer())

    assert warnings == sum("synchronous_commit = off" in record.getMessage() for record in caplog.records)


async def test_a_user_who_may_not_create_tables_is_told_what_to_grant(poor_user):
    """Granting just that is enough."""
    url, owner, user = poor_user
    with pytest.raises(AccessDenied, match=f'GRANT USAGE, CREATE ON SCHEMA "public" TO "{user}"'):
        await database_at(url).connect_writer()
    await owner.execute(f'GRANT USAGE, CREATE ON SCHEMA "public" TO "{user}"')

    await close_quietly(await database_at(url).connect_writer())


async def test_a_user_who_may_not_use_the_tables_is_told_what_to_grant(poor_user, postgres_url):
    """The schema was made by somebody else; the user needs no right to create anything."""
    url, owner, user = poor_user
    await close_quietly(await database_at(postgres_url).connect_writer())
    with pytest.raises(AccessDenied, match="GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO"):
        await database_at(url).connect_writer()
    await owner.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {user}")
    with pytest.raises(AccessDenied, match=r"holdfast_numbers.*GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO"):
        await database_at(url).connect_writer()
    await owner.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {user}")

    await close_quietly(await database_at(url).connect_writer())


@pytest.mark.parametrize("path", ["flows", '"Odd, ""one"""', "nowhere, flows", "flows, public"])
async def test_a_user_who_may_not_use_the_schema_is_told_what_to_grant(poor_user, postgres_url, path):
    """For PostgreSQL it is as if there were none; \"create one\" would be wrong."""
    url, owner, user = poor_user
    schema = path.removeprefix("nowhere, ").removesuffix(", public")
    await owner.execute(f"CREATE SCHEMA {schema}")
    option = f"?search_path={quote(path)}"
    await close_quietly(await database_at(f"{postgres_url}?search_path={quote(schema)}").connect_writer())
    with pytest.raises(AccessDenied, match="may not use the schema") as refused:
        await database_at(url + option).connect_writer()
    await owner.execute(str(refused.value).partition("run ")[2])

    assert str(refused.value).endswith(f'TO "{user}"')
    with pytest.raises(AccessDenied, match="GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"):
        await database_at(url + option).connect_writer()


async def test_a_schema_without_its_versions_is_refused(postgres_url):
    """As pg_dump --schema-only leaves it. It is not told to migrate, which would fail on tables that are there."""
    database = database_at(postgres_url)
    await close_quietly(await database.connect_writer())
    async with database.session() as connection:
        await connection.execute("DELETE FROM holdfast_schema_version")

    with pytest.raises(StorageCorrupt, match=r"holdfast_schema_version is empty.*restore a whole backup"):
        await database_at(postgres_url).connect_writer()


async def test_a_server_that_knows_no_nulls_in_arrays_is_refused(postgres_url):
    """Executions would get stuck on it, one after another."""
    with pytest.raises(ServerNotSupported, match="array_nulls"):
        await database_at(f"{postgres_url}?options=-c%20array_nulls%3Doff").connect_writer()


async def test_a_schema_that_is_behind_is_refused_when_it_may_not_be_changed(postgres_url):
    """With the command that changes it; nothing was created."""
    database = database_at(postgres_url, StoreConfig(migrate=False))
    with pytest.raises(SchemaTooOld, match=r"0001_heart.*holdfast migrate URL") as refused:
        await database.connect_writer()
    async with database.session() as connection:
        assert await connection.fetchval("SELECT to_regclass('holdfast_schema_version')") is None
    await database.migrate()

    assert "0001_heart" == refused.value.details["missing"][0]
    await close_quietly(await database.connect_writer())


# --- the pool ---


async def test_a_connection_that_comes_back_inside_a_transaction_is_not_used_again(postgres_url):
    """The next reader gets a new one, outside a transaction."""
    pool = await database_at(postgres_url, StoreConfig(readers=1)).open_pool(1)
    async with pool.acquire() as connection:
        await connection.execute("BEGIN")
        first = await connection.fetchval("SELECT pg_backend_pid()")
    async with pool.acquire() as connection:
        assert first != await connection.fetchval("SELECT pg_backend_pid()")
        assert not connection.is_in_transaction()
    await pool.close()


async def test_reading_costs_no_round_trip_beyond_the_read(postgres_url):
    """A connection of the pool has no state that would have to be reset."""
    pool = await database_at(postgres_url, StoreConfig(readers=1)).open_pool(1)
    queries: list[str] = []
    async with pool.acquire() as connection:
        connection.add_query_logger(lambda query: queries.append(query.query))
        await connection.fetchval("SELECT 1")
    async with pool.acquire() as connection:
        await connection.fetchval("SELECT 2")

    assert ["SELECT 1", "SELECT 2"] == queries
    await pool.close()


async def test_a_cancelled_read_leaves_the_pool_usable(postgres_url):
    """With one connection only, at any moment of the read."""
    pool = await database_at(postgres_url, StoreConfig(readers=1)).open_pool(1)

    async def read() -> None:
        async with pool.acquire() as connection, connection.transaction():
            await connection.fetchval("SELECT pg_sleep(0.01)")

    for pauses in range(12):
        reading = asyncio.create_task(read())
        for _ in range(pauses):
            await asyncio.sleep(0.001)
        reading.cancel()
        await asyncio.wait([reading])
        async with pool.acquire(timeout=5) as connection:
            assert not connection.is_in_transaction()
            assert 1 == await connection.fetchval("SELECT 1")
    await pool.close()


def test_every_option_that_is_refused_by_name_is_unknown():
    """What is said about an option is reached."""
    assert set() == set(urls._INSTEAD) & urls._KNOWN
