"""The caller's own transaction: what is asked for with `using=` commits or vanishes with the application's rows."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from holdfast import SyncEngine, WorkflowContext, errors, workflow
from holdfast.engine.rules.messages import PAGE
from tests.conftest import QUICK, until

pytestmark = pytest.mark.sqlite_only("connections of sqlite3; test_using_postgres.py is the same for PostgreSQL")


@workflow
async def echo(ctx: WorkflowContext, text: str) -> str:
    return text


@workflow
async def listener(ctx: WorkflowContext) -> list[str]:
    heard: list[str] = []
    while "end" not in heard:
        heard.append(await ctx.wait_for_signal("word", str))
    return heard


WORKFLOWS: list[Callable[..., Any]] = [echo, listener]


def connect(path: Path, **options: Any) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5, **options)
    connection.execute("CREATE TABLE IF NOT EXISTS orders (name TEXT UNIQUE)")
    connection.commit()
    return connection


@pytest.fixture
def app(database: Path) -> Iterator[sqlite3.Connection]:
    """The application's connection, in Python's legacy mode: a write begins a transaction."""
    connection = connect(database)
    yield connection
    connection.close()


def orders(database: Path) -> list[str]:
    connection = sqlite3.connect(database)
    try:
        return [name for (name,) in connection.execute("SELECT name FROM orders ORDER BY name")]
    finally:
        connection.close()


def insert(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("INSERT INTO orders VALUES (?)", (name,))


# --- both or neither ----------------------------------------------------------------------------------------------


async def test_commit_starts_the_workflow_with_the_row(engine, app, database):
    client = (await engine(workflows=WORKFLOWS)).client

    insert(app, "o1")
    handle = await client.start_workflow(echo, "hi", workflow_id="o1", using=app)
    assert app.in_transaction
    app.commit()

    assert handle.created
    assert await handle.result(timeout=20) == "hi"
    assert orders(database) == ["o1"]


async def test_rollback_leaves_neither(engine, app, database):
    client = (await engine(workflows=WORKFLOWS)).client

    insert(app, "o1")
    handle = await client.start_workflow(echo, "hi", workflow_id="o1", using=app)
    app.rollback()

    with pytest.raises(errors.ExecutionNotFound):
        await handle.describe()
    with pytest.raises(errors.ExecutionNotFound):
        await client.find_workflow("o1")
    assert orders(database) == []
    again = await client.start_workflow(echo, "again", workflow_id="o1")
    assert again.created
    assert await again.result(timeout=20) == "again"


async def test_nothing_is_seen_or_run_before_the_commit(engine, app):
    running = await engine(workflows=WORKFLOWS)

    handle = await running.client.start_workflow(echo, "hi", using=app)

    with pytest.raises(errors.ExecutionNotFound):
        await handle.status()
    app.commit()
    assert await handle.result(timeout=20) == "hi"


async def test_signal_reaches_a_workflow_that_waits(engine, app):
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await client.start_workflow(listener)
    await until(lambda: _waits(handle))

    await handle.signal("word", "vanished", using=app)
    app.rollback()
    answer = await handle.signal("word", "end", using=app)
    app.commit()

    assert answer.signal_delivered
    assert await handle.result(timeout=20) == ["end"]


async def _waits(handle: Any) -> bool:
    return str(await handle.status()) == "WAITING"


async def test_signal_reaches_a_workflow_that_is_running(engine, app):
    """A holder in this very process is told through the database, once there is a commit."""
    running, go_on = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        running.set()
        await go_on.wait()

    @workflow
    async def busy(ctx: WorkflowContext) -> str:
        step = ctx.run(hold)
        word = await ctx.wait_for_signal("word", str)
        go_on.set()
        await step
        return word

    client = (await engine(workflows=[busy])).client
    handle = await client.start_workflow(busy)
    await running.wait()

    await handle.signal("word", "now", using=app)
    app.commit()

    assert await handle.result(timeout=20) == "now"


async def test_signal_with_start_joins_once_for_start_and_once_for_signal(engine, app):
    client = (await engine(workflows=WORKFLOWS)).client

    first = await client.signal_with_start_workflow("talk", listener, signal_name="word", signal_value="one", using=app)
    second = await client.signal_with_start_workflow(
        "talk", listener, signal_name="word", signal_value="end", using=app
    )
    app.commit()

    assert (first.workflow_created, second.workflow_created) == (True, False)
    assert first.workflow_execution_id == second.workflow_execution_id
    assert await client.workflow(first.workflow_execution_id).result(timeout=20) == ["one", "end"]


async def test_an_execution_started_in_the_transaction_can_be_signalled_in_it(engine, app):
    client = (await engine(workflows=WORKFLOWS)).client

    handle = await client.start_workflow(listener, using=app)
    await handle.signal("word", "end", using=app)
    app.commit()

    assert await handle.result(timeout=20) == ["end"]


@workflow
async def promised(ctx: WorkflowContext) -> str:
    answer: str = await ctx.promise("answer", str)
    return answer


async def test_a_promise_is_resolved_with_the_row(engine, app, database):
    client = (await engine(workflows=[promised])).client
    handle = await client.start_workflow(promised, workflow_id="p")
    await until(lambda: _waits(handle))

    insert(app, "o1")
    vanished = await client.resolve_promise(f"{handle.id}:answer", "vanished", using=app)
    app.rollback()
    insert(app, "o2")
    kept = await client.resolve_promise_by_name("p", "answer", "kept", using=app)
    late = await client.resolve_promise(f"{handle.id}:answer", "late", using=app)
    app.commit()

    assert (vanished.already_resolved, kept.already_resolved, late.already_resolved) == (False, False, True)
    assert await handle.result(timeout=20) == "kept"
    assert orders(database) == ["o2"]


async def test_a_promise_is_completed_by_its_token_with_the_row(engine, app):
    tokens: list[str] = []

    @workflow
    async def tokened(ctx: WorkflowContext) -> str:
        promise = ctx.promise("answer", str)
        tokens.append(promise.token)
        answer: str = await promise
        return answer

    client = (await engine(workflows=[tokened])).client
    handle = await client.start_workflow(tokened)
    await until(lambda: _waits(handle))

    await client.complete_promise(tokens[0], "vanished", using=app)
    app.rollback()
    await client.complete_promise(tokens[0], "kept", using=app)
    app.commit()

    assert await handle.result(timeout=20) == "kept"


@workflow
async def waiting(ctx: WorkflowContext, wanted: str) -> Any:
    return await ctx.wait_for_event("paid", where=f"input.order == '{wanted}'")


async def test_an_event_is_published_with_the_row(engine, app, database):
    client = (await engine(workflows=[waiting])).client
    handles = [await client.start_workflow(waiting, name) for name in ("a", "b")]
    for handle in handles:
        await until(partial(_waits, handle))

    insert(app, "o1")
    vanished = await client.publish_event("paid", {"order": "a"}, using=app)
    app.rollback()
    insert(app, "o2")
    published = await client.publish_event("paid", {"order": "b"}, using=app)
    app.commit()

    assert (vanished.delivered, published.delivered) == (1, 1)
    await handles[1].result(timeout=20)
    assert await handles[0].status() == "WAITING"
    assert orders(database) == ["o2"]


async def test_an_event_that_many_wait_for_reaches_them_all(engine, app):
    """More than one transaction should reach: the rest is delivered after the commit, by the services."""
    client = (await engine(workflows=[waiting])).client
    many = PAGE + 5
    await asyncio.gather(*(client.start_workflow(waiting, "x") for _ in range(many)))

    async def counted(status: str) -> bool:
        return await client.count_workflows() == {status: many}

    await until(lambda: counted("WAITING"))

    published = await client.publish_event("paid", {"order": "x"}, using=app)
    app.commit()

    assert not published.done
    await until(lambda: counted("COMPLETED"))


async def test_a_delayed_start_starts_in_time(engine, app):
    """Its instant becomes known to the services of this process by the commit."""
    client = (await engine(workflows=WORKFLOWS)).client

    soon = datetime.now(UTC) + timedelta(seconds=0.3)
    handle = await client.start_workflow(echo, "late", start_at=soon, using=app)
    app.commit()

    assert await handle.result(timeout=5) == "late"


# --- refusals -----------------------------------------------------------------------------------------------------


async def test_a_refusal_leaves_the_transaction_as_it_was(engine, app, database):
    client = (await engine(workflows=WORKFLOWS)).client
    done = await client.start_workflow(echo, "x")
    await done.result(timeout=20)

    insert(app, "before")
    with pytest.raises(errors.ExecutionClosed):
        await done.signal("word", "late", using=app)
    with pytest.raises(errors.UnknownWorkflowKind):
        await client.start_workflow("nobody-knows-it", using=app)
    insert(app, "after")
    app.commit()

    assert orders(database) == ["after", "before"]


async def test_a_refusal_without_a_transaction_starts_none(engine, app):
    client = (await engine(workflows=WORKFLOWS)).client

    with pytest.raises(errors.UnknownWorkflowKind):
        await client.start_workflow("nobody-knows-it", using=app)

    assert not app.in_transaction


async def test_a_failing_write_leaves_the_transaction_as_it_was(engine, app, database):
    """Also one that the database refuses, half-way through what is written."""
    client = (await engine(workflows=WORKFLOWS)).client
    app.execute(
        "CREATE TRIGGER no_signals BEFORE INSERT ON holdfast_events WHEN NEW.type = 'SIGNAL_RECEIVED' "
        "BEGIN SELECT RAISE(ABORT, 'not today'); END"
    )
    app.commit()

    insert(app, "o1")
    with pytest.raises(errors.StorageError, match="not today"):
        await client.signal_with_start_workflow("talk", listener, signal_name="word", signal_value="x", using=app)
    app.commit()

    assert orders(database) == ["o1"]
    with pytest.raises(errors.ExecutionNotFound):
        await client.find_workflow("talk")


async def test_the_caller_may_roll_back_to_a_savepoint_of_its_own(engine, app, database):
    client = (await engine(workflows=WORKFLOWS)).client

    app.execute("BEGIN IMMEDIATE")
    insert(app, "kept")
    app.execute("SAVEPOINT mine")
    await client.start_workflow(echo, "x", workflow_id="gone", using=app)
    app.execute("ROLLBACK TO mine")
    app.commit()

    assert orders(database) == ["kept"]
    with pytest.raises(errors.ExecutionNotFound):
        await client.find_workflow("gone")


# --- idempotency and company --------------------------------------------------------------------------------------


async def test_a_request_id_is_remembered_with_the_commit_only(engine, app):
    client = (await engine(workflows=WORKFLOWS)).client

    lost = await client.start_workflow(listener, request_id="r1", using=app)
    app.rollback()
    first = await client.start_workflow(listener, request_id="r1", using=app)
    within = await client.start_workflow(listener, request_id="r1", using=app)
    app.commit()
    after = await client.start_workflow(listener, request_id="r1")

    assert lost.id != first.id
    assert first.id == within.id == after.id
    with pytest.raises(errors.RequestMismatch):
        await client.start_workflow(echo, "other", request_id="r1", using=app)


async def test_joined_and_ordinary_operations_do_not_disturb_each_other(engine, database):
    """Many of both at once, each transaction short: every signal arrives exactly once."""
    client = (await engine(workflows=WORKFLOWS)).client
    handle = await client.start_workflow(listener)

    async def ordinary(number: int) -> None:
        await handle.signal("word", f"o{number}")

    def joined() -> None:
        connection = connect(database)
        try:
            for number in range(30):
                insert(connection, f"j{number:02}")
                coroutine = handle.signal("word", f"j{number:02}", using=connection)
                with pytest.raises(StopIteration):
                    coroutine.send(None)
                connection.rollback() if number % 3 == 0 else connection.commit()
        finally:
            connection.close()

    await asyncio.gather(asyncio.to_thread(joined), *(ordinary(number) for number in range(30)))
    await handle.signal("word", "end")
    heard = await handle.result(timeout=20)

    committed = [f"j{number:02}" for number in range(30) if number % 3]
    assert orders(database) == committed
    assert [word for word in heard if word.startswith("j")] == committed
    assert sorted(word for word in heard if word.startswith("o")) == sorted(f"o{number}" for number in range(30))


async def test_operations_wait_while_the_transaction_is_open(engine, app):
    """The write lock is the application's until it commits; nothing fails, nothing is lost."""
    client = (await engine(workflows=WORKFLOWS)).client

    joined = await client.start_workflow(echo, "first", using=app)
    waiting = asyncio.ensure_future(client.start_workflow(echo, "second"))
    await asyncio.sleep(0)
    app.commit()

    second = await waiting
    assert await joined.result(timeout=20) == "first"
    assert await second.result(timeout=20) == "second"


async def test_an_end_that_is_waited_for_is_heard_of(engine, app):
    """A start that replaces the open execution closes it in the application's transaction."""
    client = (await engine(workflows=WORKFLOWS)).client
    old = await client.start_workflow(listener, workflow_id="w")
    waiting = asyncio.ensure_future(old.result(timeout=20))
    await until(lambda: _waits(old))

    new = await client.start_workflow(listener, workflow_id="w", if_running="terminate", using=app)
    app.commit()

    with pytest.raises(errors.WorkflowTerminated):
        await waiting
    assert new.created


# --- connections --------------------------------------------------------------------------------------------------


async def test_settings_of_the_connection_make_no_difference_and_stay(engine, database):
    client = (await engine(workflows=WORKFLOWS)).client
    app = connect(database, detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES)
    app.execute("PRAGMA foreign_keys = ON")
    app.row_factory = sqlite3.Row
    app.text_factory = bytes

    handle = await client.start_workflow(listener, workflow_id="w", using=app)
    await handle.signal("word", "end", using=app)

    assert app.row_factory is sqlite3.Row
    assert app.text_factory is bytes
    assert app.execute("SELECT 'x' AS x").fetchone()["x"] == b"x"
    app.commit()
    app.close()
    assert await handle.result(timeout=20) == ["end"]


async def test_a_deferred_transaction_that_has_read_nothing_yet_gets_the_lock(engine, database):
    client = (await engine(workflows=WORKFLOWS)).client
    app = connect(database, isolation_level=None)
    app.execute("BEGIN")
    await client.start_workflow(listener)  # somebody else has written since

    handle = await client.start_workflow(echo, "x", using=app)
    app.execute("COMMIT")
    app.close()

    assert await handle.result(timeout=20) == "x"


async def test_a_transaction_that_read_an_older_state_is_refused(engine, database):
    client = (await engine(workflows=WORKFLOWS)).client
    app = connect(database, isolation_level=None)
    app.execute("BEGIN")
    assert app.execute("SELECT count(*) FROM orders").fetchone() == (0,)
    await client.start_workflow(listener)

    with pytest.raises(errors.StorageBusy, match="BEGIN IMMEDIATE"):
        await client.start_workflow(echo, "x", using=app)

    assert app.in_transaction
    app.close()


async def test_a_connection_that_commits_by_itself_is_refused(engine, database):
    client = (await engine(workflows=WORKFLOWS)).client
    app = connect(database, isolation_level=None)

    with pytest.raises(errors.InvalidRequest, match="BEGIN IMMEDIATE") as refused:
        await client.start_workflow(echo, "x", workflow_id="w", using=app)

    assert refused.value.field == "using"
    assert not app.in_transaction
    app.close()
    with pytest.raises(errors.ExecutionNotFound):
        await client.find_workflow("w")


@pytest.mark.skipif(not hasattr(sqlite3, "LEGACY_TRANSACTION_CONTROL"), reason="Python 3.12 has the attribute first")
async def test_the_autocommit_attribute_counts(engine, database):
    client = (await engine(workflows=WORKFLOWS)).client
    with_one: Any = {"autocommit": False}
    without: Any = {"autocommit": True}
    app, other = connect(database, **with_one), connect(database, **without)

    handle = await client.start_workflow(echo, "x", using=app)
    app.commit()
    assert await handle.result(timeout=20) == "x"
    with pytest.raises(errors.InvalidRequest, match="BEGIN IMMEDIATE"):
        await client.start_workflow(echo, "x", using=other)
    app.close()
    other.close()


async def test_a_connection_to_another_file_is_refused(engine, tmp_path):
    client = (await engine(workflows=WORKFLOWS)).client
    for place in (tmp_path / "other.db", ":memory:"):
        other = connect(place)  # type: ignore[arg-type]
        with pytest.raises(errors.InvalidRequest, match="the same file") as refused:
            await client.start_workflow(echo, "x", using=other)
        assert refused.value.field == "using"
        other.close()


async def test_the_same_file_by_another_name_will_do(engine, database, tmp_path):
    client = (await engine(workflows=WORKFLOWS)).client
    (tmp_path / "link.db").symlink_to(database)
    app = connect(tmp_path / "link.db")

    handle = await client.start_workflow(echo, "x", using=app)
    app.commit()
    app.close()

    assert await handle.result(timeout=20) == "x"


async def test_an_engine_in_memory_refuses(engine, app):
    client = (await engine(workflows=WORKFLOWS, url="sqlite://")).client

    with pytest.raises(errors.InvalidRequest, match="in memory"):
        await client.start_workflow(echo, "x", using=app)


async def test_a_closed_connection_is_refused(engine, database):
    client = (await engine(workflows=WORKFLOWS)).client
    app = connect(database)
    app.close()

    with pytest.raises(errors.InvalidRequest, match="closed"):
        await client.start_workflow(echo, "x", using=app)


async def test_a_connection_of_another_thread_is_refused(engine, database):
    client = (await engine(workflows=WORKFLOWS)).client
    with ThreadPoolExecutor(1) as thread:
        app = thread.submit(connect, database).result()

        with pytest.raises(errors.InvalidRequest, match="thread"):
            await client.start_workflow(echo, "x", using=app)
        thread.submit(app.close).result()


async def test_what_is_no_connection_is_refused(engine):
    client = (await engine(workflows=WORKFLOWS)).client

    with pytest.raises(errors.InvalidRequest, match="not object"):
        await client.start_workflow(echo, "x", using=object())


async def test_a_stopped_engine_refuses(engine, app):
    running = await engine(workflows=WORKFLOWS)
    await running.shutdown()

    with pytest.raises(errors.EngineStopped):
        await running.client.start_workflow(echo, "x", using=app)


# --- aiosqlite and threads ----------------------------------------------------------------------------------------


async def test_aiosqlite(engine, app, database):
    client = (await engine(workflows=WORKFLOWS)).client
    async with aiosqlite.connect(database) as mine:
        await mine.execute("INSERT INTO orders VALUES ('lost')")
        lost = await client.start_workflow(echo, "x", using=mine)
        await mine.rollback()
        await mine.execute("INSERT INTO orders VALUES ('o1')")
        handle = await client.start_workflow(listener, workflow_id="o1", using=mine)
        await handle.signal("word", "end", using=mine)
        await mine.commit()

        with pytest.raises(errors.ExecutionNotFound):
            await lost.status()
        assert await handle.result(timeout=20) == ["end"]
        assert orders(database) == ["o1"]
        with pytest.raises(errors.ExecutionClosed):
            await handle.signal("word", "late", using=mine)
    with pytest.raises(errors.InvalidRequest, match="can't be used"):
        await client.start_workflow(echo, "x", using=mine)


def test_the_blocking_client_stays_in_the_callers_thread(database):
    with SyncEngine(f"sqlite:///{database}", workflows=WORKFLOWS, config=QUICK) as engine:
        app = connect(database)
        insert(app, "o1")
        handle = engine.client.start_workflow(echo, "hi", using=app)
        talk = engine.client.signal_with_start_workflow(
            "talk", listener, signal_name="word", signal_value="one", using=app
        )
        engine.client.signal_workflow(talk.workflow_execution_id, "word", "end", using=app)
        app.commit()

        assert handle.result(timeout=20) == "hi"
        assert engine.client.workflow(talk.workflow_execution_id).result(timeout=20) == ["one", "end"]

        insert(app, "o2")
        gone = engine.client.start_workflow(echo, "hi", using=app)
        app.rollback()
        with pytest.raises(errors.ExecutionNotFound):
            gone.status()
        assert orders(database) == ["o1"]
        app.close()


def test_many_threads_each_with_its_own_connection(database):
    with SyncEngine(f"sqlite:///{database}", workflows=WORKFLOWS, config=QUICK) as engine:
        talk = engine.client.start_workflow(listener)

        def work(number: int) -> None:
            app = connect(database)
            for each in range(10):
                app.execute("BEGIN IMMEDIATE")
                insert(app, f"{number}-{each}")
                talk.signal("word", f"{number}-{each}", using=app)
                app.commit()
            app.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        talk.signal("word", "end")
        heard = talk.result(timeout=20)

    assert sorted(heard) == sorted([*orders(database), "end"])
    assert len(heard) == 41


def test_the_blocking_client_refuses_an_async_connection(database):
    with SyncEngine(f"sqlite:///{database}", workflows=WORKFLOWS, config=QUICK) as engine:
        mine = aiosqlite.connect(database)
        with pytest.raises(errors.InvalidRequest, match="async code"):
            engine.client.start_workflow(echo, "x", using=mine)


async def test_the_connection_no_longer_checkpoints_by_itself(engine, app):
    """Below SQLite 3.51.3 that could damage the file; the engine writes the log back instead."""
    client = (await engine(workflows=WORKFLOWS)).client

    await client.start_workflow(echo, "x", using=app)
    app.commit()

    assert app.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
