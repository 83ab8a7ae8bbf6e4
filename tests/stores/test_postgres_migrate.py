"""Schemas of PostgreSQL databases: applied once, by many at a time, by programs of different age, under load."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from holdfast.config import StoreConfig
from holdfast.errors import SchemaTooNew, StorageBusy, StorageError
from holdfast.store.postgres import migrate
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.migrate import Migration, apply, migrations, missing, read_folder, statements
from tests.conftest import until

FIRST = Migration(1, "0001_first", "CREATE TABLE first (id integer PRIMARY KEY);")
SECOND = Migration(2, "0002_second", "-- compatible from: 1\nALTER TABLE first ADD COLUMN note text;")
BREAKING = Migration(2, "0002_breaking", "ALTER TABLE first RENAME TO other;")
INDEX = Migration(
    2,
    "0002_index",
    "-- Finds them by their note.\n-- no transaction\n-- compatible from: 1\n"
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS first_again ON first ((id + 1));\n"
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS first_twice ON first ((id + 2));",
)


@pytest.fixture
def connect(postgres_url):
    @asynccontextmanager
    async def connected():
        connection = await asyncpg.connect(postgres_url)
        try:
            yield connection
        finally:
            await connection.close()

    return connected


async def versions(connect) -> list[int]:
    async with connect() as connection:
        return [row[0] for row in await connection.fetch("SELECT version FROM holdfast_schema_version ORDER BY 1")]


# --- files ---


def test_the_headers_of_a_file_are_read(tmp_path: Path):
    """Anywhere in the comment it begins with, and nowhere else."""
    (tmp_path / "0001_one.sql").write_text("-- Why.\n-- no transaction\n-- compatible from: 1\nSELECT 1;")
    (tmp_path / "0002_two.sql").write_text("SELECT 1;\n-- no transaction\n-- compatible from: 1\n")
    (tmp_path / "notes.txt").write_text("nothing")
    one, two = read_folder(tmp_path)

    assert (1, "0001_one", False, 1) == (one.version, one.name, one.in_transaction, one.compatible_from)
    assert (2, "0002_two", True, 2) == (two.version, two.name, two.in_transaction, two.compatible_from)


def test_versions_are_numbered_without_gaps():
    """Those that ship."""
    assert [*range(1, len(migrations()) + 1)] == [migration.version for migration in migrations()]


def test_a_file_is_split_where_its_statements_end():
    """Not at a semicolon inside a string, a name, a comment or a body."""
    text = """
    -- one; two
    SELECT ';' AS "a;b"; /* three; */ SELECT 'it''s;';
    CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $x$ BEGIN PERFORM 1; END $x$;
    SELECT $$;$$, 1 - 2, 4 / 2
    """

    assert [
        "SELECT ';' AS \"a;b\"",
        "SELECT 'it''s;'",
        "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $x$ BEGIN PERFORM 1; END $x$",
        "SELECT $$;$$, 1 - 2, 4 / 2",
    ] == [*statements(text)]


# --- applying ---


async def test_what_is_missing_is_applied_once(connect):
    """In order; what was there is left alone."""
    assert [FIRST] == await apply(connect, "db", [FIRST])
    assert [SECOND] == await apply(connect, "db", [FIRST, SECOND])
    assert [] == await apply(connect, "db", [FIRST, SECOND])
    async with connect() as connection:
        assert [(1, "0001_first", FIRST.checksum, 1), (2, "0002_second", SECOND.checksum, 1)] == [
            tuple(row)
            for row in await connection.fetch(
                "SELECT version, name, checksum, compatible_from FROM holdfast_schema_version ORDER BY version"
            )
        ]
        assert await connection.fetchval(
            "SELECT bool_and(abs(applied_at / 1000000 - extract(epoch FROM now())) < 600) FROM holdfast_schema_version"
        )


async def test_a_migration_that_fails_changes_nothing(connect):
    """Neither the tables nor the list of versions; what was applied before it stays."""
    bad = Migration(2, "0002_bad", "CREATE TABLE half (id integer); SELECT 1 / 0;")

    with pytest.raises(asyncpg.DivisionByZeroError):
        await apply(connect, "db", [FIRST, bad])
    async with connect() as connection:
        assert await connection.fetchval("SELECT to_regclass('half')") is None
    assert [1] == await versions(connect)


async def test_many_may_come_at_once_to_an_empty_database(connect):
    """All come up, each migration is applied by one of them, and the schema is whole."""
    known = [FIRST, SECOND, Migration(3, "0003_more", "CREATE TABLE more (id integer);")]
    applied = await asyncio.gather(*(apply(connect, "db", known) for _ in range(8)))

    assert known == sorted((migration for done in applied for migration in done), key=lambda done: done.version)
    assert [1, 2, 3] == await versions(connect)


@pytest.mark.slow
async def test_processes_that_start_at_once_on_an_empty_database_all_come_up(postgres_url):
    """With the schema that ships."""
    program = (
        "import asyncio, sys\n"
        "from holdfast.config import StoreConfig\n"
        "from holdfast.store.postgres.connections import Database\n"
        "async def main():\n"
        "    connection = await Database(sys.argv[1], StoreConfig(), lambda: 0).connect_writer()\n"
        "    print(await connection.fetchval('SELECT count(*) FROM holdfast_executions'))\n"
        "    await connection.close()\n"
        "asyncio.run(main())\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, postgres_url], stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]

    assert ["0\n"] * 8 == [(await asyncio.to_thread(child.communicate))[0] for child in children]


async def test_an_index_can_be_made_while_the_table_is_written(connect):
    """Outside a transaction, statement by statement, recorded at the end."""
    await apply(connect, "db", [FIRST])
    async with connect() as writer:
        transaction = writer.transaction()
        await transaction.start()
        await writer.execute("INSERT INTO first VALUES (1)")
        applying = asyncio.create_task(apply(connect, "db", [FIRST, INDEX]))
        async with connect() as other:
            await until(lambda: other.fetchval("SELECT count(*) FROM pg_class WHERE relname = 'first_again'"))
            await other.execute("INSERT INTO first VALUES (2)")  # is not held up
            assert [1] == await versions(connect)
        await transaction.commit()

        assert [INDEX] == await applying
        assert 2 == await writer.fetchval(
            "SELECT count(*) FROM pg_index WHERE indexrelid::regclass::text LIKE 'first_%' AND indisvalid "
            "AND NOT indisprimary"
        )


async def test_an_index_whose_making_was_interrupted_is_made_again(connect):
    """What is left of it would never be used."""
    await apply(connect, "db", [FIRST])
    async with connect() as connection:
        await connection.execute("INSERT INTO first VALUES (1), (2)")
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute("CREATE UNIQUE INDEX CONCURRENTLY first_again ON first ((id / 100))")
        valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'first_again'::regclass"
        assert False is await connection.fetchval(valid)
        await apply(connect, "db", [FIRST, INDEX])

        assert True is await connection.fetchval(valid)


async def test_many_may_make_an_index_at_once(connect):
    """One makes it; nobody takes its unfinished work for something left behind."""
    applied = await asyncio.gather(*(apply(connect, "db", [FIRST, INDEX]) for _ in range(4)))

    assert [FIRST, INDEX] == sorted((m for done in applied for m in done), key=lambda m: m.version)


SLOW_INDEX = Migration(
    2,
    "0002_slow_index",
    "-- no transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS first_slowly ON first (slowly(id));",
)


@pytest.fixture
async def hurried(connect, postgres_url):
    """Connections of somebody whose statements may not take long, and a table whose index takes longer."""
    await apply(connect, "db", [FIRST])
    async with connect() as connection:
        await connection.execute(
            "CREATE FUNCTION slowly(id integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql "
            "AS $$ BEGIN PERFORM pg_sleep(0.2); RETURN id; END $$; INSERT INTO first VALUES (1)"
        )

    @asynccontextmanager
    async def connected():
        limits = {"statement_timeout": "100", "lock_timeout": "100"}
        connection = await asyncpg.connect(postgres_url, server_settings=limits)
        try:
            yield connection
        finally:
            await connection.close()

    return connected


async def test_an_index_may_take_longer_than_the_role_allows_statements(hurried, connect):
    """Whatever limits a role or a server has: they are for others."""
    assert [SLOW_INDEX] == await apply(hurried, "db", [FIRST, SLOW_INDEX])
    async with connect() as connection:
        assert await connection.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid = 'first_slowly'::regclass")


async def test_an_index_waits_for_older_transactions_longer_than_for_a_lock(hurried, connect):
    """It is in nobody's way meanwhile, and would have to begin anew."""
    async with connect() as writer:
        transaction = writer.transaction()
        await transaction.start()
        await writer.execute("INSERT INTO first VALUES (2)")
        applying = asyncio.create_task(apply(hurried, "db", [FIRST, SLOW_INDEX]))
        who_waits = "SELECT min(pid) FROM pg_locks WHERE NOT granted AND locktype = 'virtualxid'"
        async with connect() as other:
            await until(lambda: other.fetchval(who_waits))
            first = await other.fetchval(who_waits)
            await other.execute("SELECT pg_sleep(0.3)")
            assert first == await other.fetchval(who_waits)
        await transaction.commit()

        assert [SLOW_INDEX] == await applying


async def test_a_statement_that_the_server_ends_is_not_called_locked(hurried):
    """Behind a pooler nothing can be set for a session: the message says what to do, at once."""
    with pytest.raises(StorageBusy, match=r"db could not be migrated: the server ended.*statement_timeout = 0"):
        await apply(hurried, "db", [FIRST, SLOW_INDEX], deadline_s=600, sessions=False)


async def test_a_migration_outside_a_transaction_must_be_repeatable(connect):
    """CREATE INDEX CONCURRENTLY without IF NOT EXISTS is not."""
    once = Migration(2, "0002_once", "-- no transaction\nCREATE INDEX CONCURRENTLY once ON first (id);")

    with pytest.raises(StorageError, match="IF NOT EXISTS once"):
        await apply(connect, "db", [FIRST, once])


async def test_a_rule_is_asked_for_again_and_again_too(connect, monkeypatch):
    """Statement by statement, each with the short patience of a whole migration."""
    rule = Migration(
        2,
        "0002_rule",
        "-- no transaction\n"
        "ALTER TABLE first DROP CONSTRAINT IF EXISTS positive, ADD CONSTRAINT positive CHECK (id > 0) NOT VALID;\n"
        "ALTER TABLE first VALIDATE CONSTRAINT positive;",
    )
    monkeypatch.setattr(migrate, "_LIMITS", "SET LOCAL lock_timeout = '20ms'")
    await apply(connect, "db", [FIRST])
    async with connect() as user:
        transaction = user.transaction()
        await transaction.start()
        await user.execute("INSERT INTO first VALUES (1)")
        applying = asyncio.create_task(apply(connect, "db", [FIRST, rule]))
        async with connect() as other:
            await until(lambda: other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))
            await other.execute("INSERT INTO first VALUES (2)")  # behind the one who waits, but not for long
        assert not applying.done()
        await transaction.commit()
        assert [rule] == await applying
        with pytest.raises(asyncpg.CheckViolationError):
            await user.execute("INSERT INTO first VALUES (0)")


async def test_those_that_ship_can_be_applied_again_after_they_were_interrupted(connect):
    """Outside a transaction, what was done stays done: all of their statements find it there."""
    await apply(connect, "db")
    again = [migration for migration in migrations() if not migration.in_transaction]
    assert again
    async with connect() as connection:
        sql = "DELETE FROM holdfast_schema_version WHERE version >= $1"
        await connection.execute(sql, again[0].version)
        await connection.execute("DROP INDEX holdfast_executions_closed")
    assert list(migrations()[again[0].version - 1 :]) == await apply(connect, "db")


async def test_a_table_in_use_is_asked_for_again_and_again(connect, monkeypatch):
    """Whoever works with it is held up for a short time only, and the migration is applied in the end."""
    monkeypatch.setattr(migrate, "_LIMITS", "SET LOCAL lock_timeout = '20ms'")
    await apply(connect, "db", [FIRST])
    async with connect() as user:
        transaction = user.transaction()
        await transaction.start()
        await user.execute("INSERT INTO first VALUES (1)")
        applying = asyncio.create_task(apply(connect, "db", [FIRST, SECOND]))
        async with connect() as other:
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            await until(lambda: other.fetchval(waits))
            await other.execute("INSERT INTO first VALUES (2)")  # behind the one who waits, but not for long
        assert not applying.done()
        await transaction.commit()

        assert [SECOND] == await applying


async def test_a_table_that_stays_locked_is_said_to_be_busy(connect, monkeypatch):
    """At the deadline; nothing was changed."""
    monkeypatch.setattr(migrate, "_LIMITS", "SET LOCAL lock_timeout = '10ms'")
    await apply(connect, "db", [FIRST])
    async with connect() as user, user.transaction():
        await user.execute("INSERT INTO first VALUES (1)")

        with pytest.raises(StorageBusy, match=r"db could not be migrated.*locked"):
            await apply(connect, "db", [FIRST, SECOND], deadline_s=0.1)
    assert [1] == await versions(connect)


async def test_a_lost_connection_is_replaced(connect):
    """The migration begins again from its beginning."""
    await apply(connect, "db", [FIRST])
    slow = Migration(2, "0002_slow", "CREATE TABLE second (id integer); SELECT pg_sleep(0.2);")
    applying = asyncio.create_task(apply(connect, "db", [FIRST, slow]))
    async with connect() as other:
        kill = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE query LIKE '%pg_sleep(0.2)%' AND pid <> pg_backend_pid() AND datname = current_database()"
        )
        await until(lambda: other.fetchval(kill))

    assert [slow] == await applying


# --- programs of different age ---


async def test_a_schema_made_by_another_program_is_refused(connect):
    """Same number, other content; or a number left out."""
    await apply(connect, "db", [FIRST, SECOND])
    async with connect() as connection:
        with pytest.raises(StorageError, match=r"made by another program.*version 2.*name another database") as refused:
            await missing(connection, "db", [FIRST, BREAKING])
        await connection.execute("DELETE FROM holdfast_schema_version WHERE version = 1")
        with pytest.raises(StorageError, match=r"not version 1.*name another database"):
            await missing(connection, "db", [FIRST, SECOND])

    assert 2 == refused.value.details["version"]


async def test_an_older_program_continues_with_a_schema_that_is_compatible(connect):
    """Two versions run side by side while one replaces the other."""
    later = Migration(3, "0003_later", "-- compatible from: 1\nCREATE TABLE later (id integer);")
    await apply(connect, "db", [FIRST, SECOND, later])
    async with connect() as connection:
        assert [] == await missing(connection, "db", [FIRST])
    assert [] == await apply(connect, "db", [FIRST])


async def test_an_older_program_refuses_a_schema_that_is_too_new_for_it(connect):
    """Whichever of the newer versions says so."""
    after = Migration(3, "0003_after", "-- compatible from: 2\nCREATE TABLE after (id integer);")
    await apply(connect, "db", [FIRST, BREAKING, after])
    async with connect() as connection:
        with pytest.raises(SchemaTooNew, match="upgrade this program") as refused:
            await missing(connection, "db", [FIRST])

        assert (2, 1) == (refused.value.details["found"], refused.value.details["known"])
        assert [] == await missing(connection, "db", [FIRST, BREAKING])


async def test_a_schema_further_down_the_search_path_is_found(postgres_url):
    """And no second one is made in the first schema of the path."""
    await Database(postgres_url, StoreConfig(), lambda: 0).migrate()
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("CREATE SCHEMA mine")

    assert [] == await Database(f"{postgres_url}?search_path=mine,public", StoreConfig(), lambda: 0).migrate()
    assert 1 <= len(await Database(f"{postgres_url}?search_path=mine", StoreConfig(), lambda: 0).migrate())
    await connection.close()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_the_default_isolation_of_a_role_is_no_obstacle(postgres_url, level):
    """Whoever keeps others away has no snapshot that the index, made meanwhile, would wait for in vain."""
    isolation = level.replace(" ", "%5C%20")
    url = f"{postgres_url}?options=-c%20default_transaction_isolation%3D{isolation}"
    database = Database(url, StoreConfig(busy_deadline_s=2), lambda: 0)

    assert [migration.name for migration in migrations()] == [done.name for done in await database.migrate()]
