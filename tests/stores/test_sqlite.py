import asyncio
import re
import sqlite3
import stat
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from holdfast.config import StoreConfig
from holdfast.errors import (
    EngineStopped,
    InvalidDatabaseUrl,
    InvalidRequest,
    SchemaTooNew,
    StorageBusy,
    StorageError,
)
from holdfast.model.executions import Execution, TaskRow
from holdfast.store.protocol import BatchSource, Changes, Clock, Loaded, LoadPlan, Store
from holdfast.store.sqlite import migrate, statements
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.transactions import Transactions
from tests.conftest import until
from verification.stores import Bench, OpenStore, StoreConformance
from verification.stores.bench import Member
from verification.stores.records import ORG, an_execution, an_id

QUICK = StoreConfig(synchronous="normal")
HOT = {
    "deletions": ("closed_page", "last_events_of"),
    "events": ("page", "last", "unread", "given", "by_seq"),
    "executions": (
        "by_id",
        "by_workflow_id",
        "open_children",
        "orphans",
        "page_of_state",
        "page_of_kind",
        "page_of_ready",
        "page_of_workflow",
    ),
    "metadata": ("delete",),
    "ready": ("delete", "claimable", "from_cursor", "oldest_live", "held", "next_delayed", "news"),
    "requests": ("by_id", "expired", "delete"),
    "tasks": (
        "delete",
        "purge",
        "by_key",
        "of_execution",
        "claimable",
        "from_cursor",
        "oldest_live",
        "due",
        "held",
        "next_due",
        "next_delayed",
    ),
    "timers": ("delete", "purge", "by_key", "due", "of_execution", "next_due"),
    "workflow_keys": ("by_key",),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


@pytest.fixture
async def open_store(path: Path) -> AsyncIterator[OpenStore]:
    """Opens stores on one file, and closes them."""
    async with AsyncExitStack() as stack:

        async def open_(clock: Clock, source: BatchSource) -> Store:
            store = SqliteStore(path, QUICK, clock)
            await store.open(source)
            stack.push_async_callback(store.close)
            return store

        yield open_


class SqliteConformance(StoreConformance):
    def transient_error(self) -> Exception:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        return error


class TestFile(SqliteConformance):
    """The suite on a file."""


class TestMemory(SqliteConformance):
    """The suite in memory."""

    shared = False

    @pytest.fixture
    async def open_store(self) -> AsyncIterator[OpenStore]:
        async with AsyncExitStack() as stack:

            async def open_(clock: Clock, source: BatchSource) -> Store:
                store = SqliteStore(None, QUICK, clock)
                await store.open(source)
                stack.push_async_callback(store.close)
                return store

            yield open_


# --- opening -------------------------------------------------------------------------------------------------------


async def test_what_was_written_is_there_after_opening_again(path, open_store):
    """A closed store leaves one file that holds everything."""
    bench = await Bench.opened(open_store)
    await bench.write(new_executions=[an_execution()])
    await bench.store.close()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]

    again = await Bench.opened(open_store)
    assert await again.store.executions(ORG, [an_id(1)]) == {an_id(1): an_execution()}


async def test_two_databases_in_memory_know_nothing_of_each_other():
    """Each store without a path is a database of its own."""
    async with AsyncExitStack() as stack:
        stores = []
        for _ in range(2):
            bench = await Bench.opened(_in_memory)
            stack.push_async_callback(bench.store.close)
            stores.append(bench)
        await stores[0].write(new_executions=[an_execution()])

        assert await stores[1].store.executions(ORG, [an_id(1)]) == {}


async def test_file_is_readable_by_its_owner_alone(path, open_store):
    """Payloads may be secret: the file and those beside it have mode 0600."""
    bench = await Bench.opened(open_store)
    await bench.write(new_executions=[an_execution()])
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}

    assert modes == dict.fromkeys((path.name, f"{path.name}-wal", f"{path.name}-shm"), 0o600)


async def test_newer_schema_is_refused(path, open_store):
    """An old program must not write into a new database; the error names both versions."""
    await (await Bench.opened(open_store)).store.close()
    _edit(path, "INSERT INTO holdfast_schema_version VALUES (99, '0099_future', '', 0)")

    with pytest.raises(SchemaTooNew, match=f"version 99, .* knows {migrate.migrations()[-1].version}"):
        await Bench.opened(open_store)


async def test_foreign_schema_is_refused(path, open_store):
    """A migration that was changed after it had been applied is found by its checksum."""
    await (await Bench.opened(open_store)).store.close()
    _edit(path, "UPDATE holdfast_schema_version SET checksum = 'other'")

    with pytest.raises(StorageError, match=r"another program.*name another file"):
        await Bench.opened(open_store)


async def test_missing_folder_is_named(tmp_path):
    """A typing error in the path does not end in a database nobody finds again."""
    with pytest.raises(InvalidDatabaseUrl, match="nowhere does not exist") as raised:
        await _open(tmp_path / "nowhere" / "a.db")
    assert isinstance(raised.value.__cause__, FileNotFoundError)


async def test_folder_is_refused(tmp_path):
    """The error names the path."""
    with pytest.raises(StorageError, match=f"{tmp_path} is a folder"):
        await _open(tmp_path)


async def test_file_that_is_no_database_is_refused_and_kept(path):
    """Whatever it is, it is not ours to change."""
    path.write_text("a letter to my aunt, who is very patient" * 100)

    with pytest.raises(StorageError, match=str(path)):
        await _open(path)
    assert path.read_text().startswith("a letter")


async def test_log_without_its_database_is_refused(path):
    """A new database next to an old log would lose what is in the log."""
    Path(f"{path}-wal").write_bytes(b"x")

    with pytest.raises(StorageError, match="-wal is there"):
        await _open(path)


async def test_unknown_synchronous_setting_is_refused(path):
    """A misspelt setting must not mean less safety."""
    with pytest.raises(InvalidRequest, match="'of'"):
        SqliteStore(path, StoreConfig(synchronous="of"), lambda: 0)


async def test_closed_store_refuses_reads(open_store):
    """Instead of waiting for ever."""
    bench = await Bench.opened(open_store)
    await bench.store.close()

    with pytest.raises(EngineStopped):
        await bench.store.count_executions(ORG)


# --- schema and statements -----------------------------------------------------------------------------------------


@pytest.fixture
def schema() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in migrate.migrations():
            connection.executescript(migration.text)
        yield connection


def test_every_field_has_its_column(schema):
    """A field added to a record must be added to its table, in the same order."""
    columns = {
        table: tuple(row[1] for row in schema.execute(f"PRAGMA table_info(holdfast_{table})"))
        for table in ("executions", "heads", "tasks")
    }
    fields = Execution.__struct_fields__[:-1]

    assert Execution.__struct_fields__[-1] == "ready"
    # A later migration can add columns at the end only; the view has them in their order.
    assert set(columns["executions"]) == set(fields)
    assert columns["heads"][: len(fields)] == fields
    assert columns["tasks"] == TaskRow.__struct_fields__


async def test_promises_from_before_there_were_shapes_take_anything(path, open_store):
    """A database of an earlier schema, opened by this one."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        migrate.apply(connection, str(path), 0)
        connection.execute("DELETE FROM holdfast_schema_version WHERE version = 4")
        connection.execute("ALTER TABLE holdfast_promises DROP COLUMN shape")
        connection.execute(
            "INSERT INTO holdfast_promises (execution_id, name, org, promise_no, state, created_at, value) "
            "VALUES (?, 'old', ?, 1, 'PENDING', 0, 'null')",
            (an_id(1), ORG),
        )
        connection.execute("COMMIT")
    bench = await Bench.opened(open_store)

    [promise] = await bench.store.promises(ORG, an_id(1))
    assert ("old", b"null") == (promise.name, bytes(promise.shape))


async def test_the_tags_of_executions_are_kept_to_search_by(path, open_store):
    """A row for each tag an execution has now; those it had before are gone."""
    bench = await Bench.opened(open_store)
    await bench.write(new_executions=[an_execution(1, metadata={"a": "1", "b": "2"}), an_execution(2)])
    changed = an_execution(1, metadata={"a": "3"})
    await bench.write(
        changed_executions={changed.id: changed}, state_changed={changed.id}, metadata={changed.id: changed}
    )

    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT org, key, value, execution_id FROM holdfast_metadata").fetchall()
    assert rows == [(ORG, "a", "3", changed.id)]


@pytest.mark.parametrize(("table", "name"), [(table, name) for table, names in HOT.items() for name in names])
def test_statement_never_reads_a_whole_table(schema, table, name):
    """Everything on the hot path goes through an index and needs no sorting of more than its answer."""
    text = statements.statement(table, name)
    sql = statements.Rows(text).sql(4) if "/*row*/" in text else text
    plan = [row[3] for row in schema.execute(f"EXPLAIN QUERY PLAN {sql}", ["1"] * sql.count("?"))]

    small = r"\d+ CONSTANT|wanted|b$|json_each |p USING INDEX holdfast_executions_bereaved"
    assert [] == [step for step in plan if re.match(rf"SCAN (?!{small})", step)]
    assert name == "held" or "USE TEMP B-TREE FOR ORDER BY" not in plan


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO holdfast_events VALUES ('e', 0, 'T', 1, 0, '{}')",
        "UPDATE holdfast_executions SET state = 'LOST'",
        "UPDATE holdfast_executions SET state = 'COMPLETED'",
        "UPDATE holdfast_executions SET closed_at = 5",
        "UPDATE holdfast_executions SET seen_seq = last_seq + 1",
        "UPDATE holdfast_executions SET open_timers = -1",
        "UPDATE holdfast_executions SET open_children = -1",
        "UPDATE holdfast_executions SET last_seq = 'x'",
        "INSERT INTO holdfast_timers VALUES ('e', -1, 'o', 5, NULL)",
    ],
)
async def test_rows_that_break_the_rules_are_refused(path, open_store, sql):
    """By the database itself, whoever writes them."""
    bench = await Bench.opened(open_store)
    await bench.write(new_executions=[an_execution()])

    with pytest.raises(sqlite3.IntegrityError):
        _edit(path, sql)


# --- reads ---------------------------------------------------------------------------------------------------------


async def test_point_reads_that_wait_together_become_one_query(open_store):
    """A thousand callers who wait for results do not make a thousand queries."""
    bench = await Bench.opened(open_store)
    made = [an_execution(number) for number in range(1, 1_001)]
    await bench.write(new_executions=made)
    queries: list[int] = []
    assert isinstance(bench.store, SqliteStore)
    reads = bench.store._opened.executions
    fetch = reads._fetch

    def counting(connection: sqlite3.Connection, ids: Sequence[str]) -> Iterable[tuple[str, str, Execution]]:
        queries.append(len(ids))
        return fetch(connection, ids)

    reads._fetch = counting
    found = await asyncio.gather(*(bench.store.executions(ORG, [execution.id]) for execution in made))

    assert [list(answer.values()) for answer in found] == [[execution] for execution in made]
    assert sum(queries) == 1_000
    assert len(queries) < 50


# --- when things go wrong ------------------------------------------------------------------------------------------


async def test_batch_is_told_after_its_commit(path, open_store):
    """Whoever is told `committed` could be killed the next moment and would have been told the truth."""
    bench = await Bench.opened(open_store)
    found: list[tuple[str]] = []

    class Witness(Member):
        def committed(self) -> None:
            with closing(sqlite3.connect(path)) as connection:
                found.extend(connection.execute("SELECT id FROM holdfast_executions"))
            super().committed()

    witness = Witness(LoadPlan(), lambda _: Changes(new_executions=[an_execution()]))
    bench.source.waiting.append(witness)
    bench.store.wake()
    await witness.future

    assert found == [(an_id(1),)]


async def test_listener_that_fails_does_not_stop_the_writer(open_store, caplog):
    """A bug in whoever waits for a batch is logged, and the next batch is written."""
    bench = await Bench.opened(open_store)

    class Broken(Member):
        def committed(self) -> None:
            raise KeyError("bug")

    bench.source.waiting.append(Broken(LoadPlan(), lambda _: Changes()))
    await bench.write(new_executions=[an_execution()])

    assert "could not take its result" in caplog.text


async def test_lock_held_beyond_the_deadline_is_busy_and_passes(path):
    """The batch is refused, reads go on, and the next batch is written when the lock is free."""
    bench = await Bench.opened(lambda clock, source: _open(path, clock, source, busy_deadline_s=0.05))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusy, match=str(path)):
            await bench.write(new_executions=[an_execution()])
        assert await bench.store.executions(ORG, [an_id(1)]) == {}
        other.execute("ROLLBACK")

    await bench.write(new_executions=[an_execution()])
    await bench.store.close()


async def test_lock_held_for_a_moment_is_waited_for(path, open_store):
    """Nobody learns that another process was writing."""
    bench = await Bench.opened(open_store)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.ensure_future(bench.write(new_executions=[an_execution()]))
        await asyncio.sleep(0)
        await until(lambda: not bench.source.waiting)
        other.execute("ROLLBACK")
        await writing

    assert await bench.store.executions(ORG, [an_id(1)]) == {an_id(1): an_execution()}


async def test_lost_connection_is_opened_again(path, open_store):
    """A connection that can't even roll back is thrown away, and with it what it knew."""
    bench = await Bench.opened(open_store)
    await bench.write(new_executions=[an_execution()])

    def close(loaded: Loaded) -> Changes:
        writer_of(bench).connection.close()
        return Changes(new_executions=[an_execution(2)])

    (outcome,) = await bench.run_together([(LoadPlan(), close)])

    assert isinstance(outcome, sqlite3.Error)
    _edit(path, "UPDATE holdfast_executions SET last_seq = 5")
    loaded = await bench.load(executions={an_id(1), an_id(2)})
    assert loaded.executions == {an_id(1): an_execution(last_seq=5)}


def writer_of(bench: Bench) -> Transactions:
    """The inside of the writer, to break things there."""
    assert isinstance(bench.store, SqliteStore)
    return bench.store._writer._transactions


async def _in_memory(clock: Clock, source: BatchSource) -> Store:
    store = SqliteStore(None, QUICK, clock)
    await store.open(source)
    return store


async def _open(
    path: Path, clock: Clock = lambda: 0, source: BatchSource | None = None, busy_deadline_s: float = 30.0
) -> SqliteStore:
    store = SqliteStore(path, StoreConfig(synchronous="normal", busy_deadline_s=busy_deadline_s), clock)
    await store.open(source or Bench().source)
    return store


def _edit(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(sql)
