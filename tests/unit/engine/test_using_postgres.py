"""The caller's own transaction on PostgreSQL, with each driver that it can be open on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import asyncpg
import psycopg
import psycopg.rows
import pytest

from holdfast import Engine, SyncEngine, WorkflowContext, errors, workflow
from holdfast.engine.rules.messages import PAGE
from tests.conftest import QUICK, OpenEngine, until
from tests.unit.engine.test_using import WORKFLOWS, echo, listener, promised, waiting
from verification.postgres_databases import SpareDatabases

IMPATIENT = replace(QUICK, store=replace(QUICK.store, busy_deadline_s=0.8))
CREATE = "CREATE TABLE IF NOT EXISTS orders (name text UNIQUE)"


class AsyncpgApp:
    """An application whose transactions are begun by hand."""

    connection: Any

    async def open(self, url: str) -> None:
        self.connection = await asyncpg.connect(url)
        await self.connection.execute(CREATE)
        await self.connection.execute("BEGIN")

    async def execute(self, sql: str) -> None:
        await self.connection.execute(sql)

    async def fetchval(self, sql: str) -> Any:
        return await self.connection.fetchval(sql)

    async def commit(self) -> None:
        await self.connection.execute("COMMIT; BEGIN")

    async def rollback(self) -> None:
        await self.connection.execute("ROLLBACK; BEGIN")

    async def close(self) -> None:
        await self.connection.close()

    async def insert(self, name: str) -> None:
        await self.execute(f"INSERT INTO orders VALUES ('{name}')")


class PsycopgApp(AsyncpgApp):
    """psycopg begins a transaction with the first statement. Its settings are unusual, and must not matter."""

    async def open(self, url: str) -> None:
        self.connection = psycopg.connect(url, row_factory=psycopg.rows.dict_row, cursor_factory=psycopg.ClientCursor)
        self.connection.execute(CREATE)
        self.connection.commit()

    async def execute(self, sql: str) -> None:
        self.connection.execute(sql)

    async def fetchval(self, sql: str) -> Any:
        return next(iter(self.connection.execute(sql).fetchone().values()))

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def close(self) -> None:
        self.connection.close()


class AsyncPsycopgApp(AsyncpgApp):
    async def open(self, url: str) -> None:
        self.connection = await psycopg.AsyncConnection.connect(url, row_factory=psycopg.rows.dict_row)
        await self.connection.execute(CREATE)
        await self.connection.commit()

    async def fetchval(self, sql: str) -> Any:
        return next(iter((await (await self.connection.execute(sql)).fetchone()).values()))

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()


DRIVERS = {"asyncpg": AsyncpgApp, "psycopg": PsycopgApp, "psycopg-async": AsyncPsycopgApp}


@pytest.fixture
def postgres_url(migrated_databases: SpareDatabases) -> Iterator[str]:
    """With tables: one test needs less time than they do."""
    with migrated_databases.one() as url:
        yield url


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def app(driver: str, postgres_url: str) -> AsyncIterator[AsyncpgApp]:
    opened = DRIVERS[driver]()
    await opened.open(postgres_url)
    yield opened
    await opened.close()


@pytest.fixture
async def engine(postgres_url: str, engine: OpenEngine) -> OpenEngine:
    """As everywhere, but on the test's PostgreSQL database."""

    async def open_engine(**options: Any) -> Engine:
        return await engine(**{"url": postgres_url, "workflows": WORKFLOWS, **options})

    return open_engine


async def orders(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch("SELECT name FROM orders ORDER BY name")]
    finally:
        await connection.close()


async def _waits(handle: Any) -> bool:
    return str(await handle.status()) == "WAITING"


# --- both or neither ----------------------------------------------------------------------------------------------


async def test_commit_starts_the_workflow_with_the_row(engine, app, postgres_url):
    client = (await engine()).client

    await app.insert("o1")
    handle = await client.start_workflow(echo, "hi", workflow_id="o1", metadata={"a": "b"}, using=app.connection)
    with pytest.raises(errors.ExecutionNotFound):
        await handle.status()
    await app.commit()

    assert handle.created
    assert await handle.result(timeout=20) == "hi"
    assert await orders(postgres_url) == ["o1"]


async def test_rollback_leaves_neither(engine, app, postgres_url):
    client = (await engine()).client

    await app.insert("o1")
    handle = await client.start_workflow(echo, "hi", workflow_id="o1", using=app.connection)
    await app.rollback()

    with pytest.raises(errors.ExecutionNotFound):
        await handle.describe()
    assert await orders(postgres_url) == []
    again = await client.start_workflow(echo, "again", workflow_id="o1")
    assert again.created
    assert await again.result(timeout=20) == "again"


async def test_signal_reaches_a_workflow_that_waits(engine, app):
    client = (await engine()).client
    handle = await client.start_workflow(listener)
    await until(lambda: _waits(handle))

    await handle.signal("word", "vanished", using=app.connection)
    await app.rollback()
    answer = await handle.signal("word", "end", using=app.connection)
    await app.commit()

    assert answer.signal_delivered
    assert await handle.result(timeout=20) == ["end"]


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

    await handle.signal("word", "now", using=app.connection)
    await app.commit()

    assert await handle.result(timeout=20) == "now"


async def test_calls_in_one_transaction_see_each_other(engine, app):
    client = (await engine()).client

    first = await client.signal_with_start_workflow(
        "talk", listener, signal_name="word", signal_value="one", using=app.connection
    )
    second = await client.signal_with_start_workflow(
        "talk", listener, signal_name="word", signal_value="two", using=app.connection
    )
    await client.signal_workflow(first.workflow_execution_id, "word", "end", using=app.connection)
    await app.commit()

    assert (first.workflow_created, second.workflow_created) == (True, False)
    assert await client.workflow(first.workflow_execution_id).result(timeout=20) == ["one", "two", "end"]


async def test_a_promise_is_resolved_with_the_row(engine, app, postgres_url):
    client = (await engine(workflows=[promised])).client
    handle = await client.start_workflow(promised, workflow_id="p")
    await until(lambda: _waits(handle))

    await app.insert("o1")
    vanished = await client.resolve_promise(f"{handle.id}:answer", "vanished", using=app.connection)
    await app.rollback()
    await app.insert("o2")
    kept = await client.resolve_promise_by_name("p", "answer", "kept", using=app.connection)
    late = await client.resolve_promise(f"{handle.id}:answer", "late", using=app.connection)
    await app.commit()

    assert (vanished.already_resolved, kept.already_resolved, late.already_resolved) == (False, False, True)
    assert await handle.result(timeout=20) == "kept"
    assert await orders(postgres_url) == ["o2"]


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

    await client.complete_promise(tokens[0], "vanished", using=app.connection)
    await app.rollback()
    await client.complete_promise(tokens[0], "kept", using=app.connection)
    await app.commit()

    assert await handle.result(timeout=20) == "kept"


async def test_an_event_is_published_with_the_row(engine, app, postgres_url):
    client = (await engine(workflows=[waiting])).client
    handles = [await client.start_workflow(waiting, name) for name in ("a", "b")]
    for handle in handles:
        await until(partial(_waits, handle))

    vanished = await client.publish_event("paid", {"order": "a"}, using=app.connection)
    await app.rollback()
    await app.insert("o2")
    published = await client.publish_event("paid", {"order": "b"}, using=app.connection)
    await app.commit()

    assert (vanished.delivered, published.delivered) == (1, 1)
    await handles[1].result(timeout=20)
    assert await handles[0].status() == "WAITING"
    assert await orders(postgres_url) == ["o2"]


@pytest.mark.parametrize("driver", ["asyncpg"])
async def test_an_event_that_many_wait_for_reaches_them_all(engine, app):
    """More than one transaction should reach: the rest is delivered after the commit, by the services."""
    client = (await engine(workflows=[waiting])).client
    many = PAGE + 5
    await asyncio.gather(*(client.start_workflow(waiting, "x") for _ in range(many)))

    async def counted(status: str) -> bool:
        return await client.count_workflows() == {status: many}

    await until(lambda: counted("WAITING"))

    published = await client.publish_event("paid", {"order": "x"}, using=app.connection)
    await app.commit()

    assert not published.done
    await until(lambda: counted("COMPLETED"))


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_a_delayed_start_starts_when_its_instant_has_passed_before_the_commit(engine, app):
    """The services of this process look when it is due, and find nothing: the commit tells them again."""
    client = (await engine()).client

    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    handle = await client.start_workflow(echo, "late", start_at=soon, using=app.connection)
    await asyncio.sleep(0.4)  # the transaction is open for longer than that
    await app.commit()

    assert await handle.result(timeout=5) == "late"


@pytest.mark.parametrize("driver", ["asyncpg"])
async def test_another_node_hears_of_the_commit(engine, app):
    """The node that joined has no worker: the one that has is told by a hint, not found by chance."""
    await engine()
    without = await engine(workflows=[])

    handle = await without.client.start_workflow(echo, "hi", using=app.connection)
    await app.commit()

    assert await handle.result(timeout=20) == "hi"


async def test_an_end_that_is_waited_for_is_heard_of(engine, app):
    """A start that replaces the open execution closes it in the application's transaction."""
    client = (await engine()).client
    old = await client.start_workflow(listener, workflow_id="w")
    waiting_for_end = asyncio.ensure_future(old.result(timeout=20))
    await until(lambda: _waits(old))

    new = await client.start_workflow(listener, workflow_id="w", if_running="terminate", using=app.connection)
    await app.commit()

    with pytest.raises(errors.WorkflowTerminated):
        await waiting_for_end
    assert new.created


# --- refusals -----------------------------------------------------------------------------------------------------


async def test_a_refusal_leaves_the_transaction_as_it_was(engine, app, postgres_url):
    client = (await engine()).client
    done = await client.start_workflow(echo, "x")
    await done.result(timeout=20)

    await app.insert("before")
    with pytest.raises(errors.ExecutionClosed):
        await done.signal("word", "late", using=app.connection)
    with pytest.raises(errors.UnknownWorkflowKind):
        await client.start_workflow("nobody-knows-it", using=app.connection)
    await app.insert("after")
    await app.commit()

    assert await orders(postgres_url) == ["after", "before"]


@pytest.mark.parametrize("driver", ["psycopg", "psycopg-async"])
async def test_a_refusal_without_a_transaction_starts_none(engine, app):
    client = (await engine()).client

    with pytest.raises(errors.UnknownWorkflowKind):
        await client.start_workflow("nobody-knows-it", using=app.connection)

    assert app.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


async def test_a_failing_write_leaves_the_transaction_as_it_was(engine, app, postgres_url):
    """Also one that the database refuses, half-way through what is written."""
    client = (await engine()).client
    await app.execute("ALTER TABLE holdfast_events ADD CONSTRAINT not_today CHECK (type <> 'SIGNAL_RECEIVED')")
    await app.commit()

    await app.insert("o1")
    with pytest.raises(errors.StorageError, match="not_today"):
        await client.signal_with_start_workflow(
            "talk", listener, signal_name="word", signal_value="x", using=app.connection
        )
    await app.commit()

    assert await orders(postgres_url) == ["o1"]
    with pytest.raises(errors.ExecutionNotFound):
        await client.find_workflow("talk")


async def test_the_caller_may_roll_back_to_a_savepoint_of_its_own(engine, app, postgres_url):
    client = (await engine()).client

    await app.insert("kept")
    await app.execute("SAVEPOINT holdfast")  # the same name as ours does not matter
    await client.start_workflow(echo, "x", workflow_id="gone", using=app.connection)
    await app.execute("ROLLBACK TO holdfast")
    await app.commit()

    assert await orders(postgres_url) == ["kept"]
    with pytest.raises(errors.ExecutionNotFound):
        await client.find_workflow("gone")


async def test_settings_of_the_transaction_stay(engine, app):
    client = (await engine()).client
    settings = ("lock_timeout", "enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit")
    await app.execute("SET LOCAL lock_timeout = '7s'")
    before = [await app.fetchval(f"SHOW {name}") for name in settings]

    await client.start_workflow(echo, "x", using=app.connection)
    with pytest.raises(errors.UnknownWorkflowKind):
        await client.start_workflow("nobody-knows-it", using=app.connection)

    assert before == [await app.fetchval(f"SHOW {name}") for name in settings]
    assert before[0] == "7s"
    await app.commit()
    assert await app.fetchval("SHOW lock_timeout") == "0"


# --- idempotency and company --------------------------------------------------------------------------------------


async def test_a_request_id_is_remembered_with_the_commit_only(engine, app):
    client = (await engine()).client

    lost = await client.start_workflow(listener, request_id="r1", using=app.connection)
    await app.rollback()
    first = await client.start_workflow(listener, request_id="r1", using=app.connection)
    within = await client.start_workflow(listener, request_id="r1", using=app.connection)
    await app.commit()
    after = await client.start_workflow(listener, request_id="r1")

    assert lost.id != first.id
    assert first.id == within.id == after.id
    with pytest.raises(errors.RequestMismatch):
        await client.start_workflow(echo, "other", request_id="r1", using=app.connection)


async def test_two_who_use_the_same_key_meet_on_it(engine, app):
    """The second waits for the application's transaction, and sees what it has done."""
    client = (await engine()).client

    joined = await client.start_workflow(listener, workflow_id="w", using=app.connection)
    second = asyncio.ensure_future(client.start_workflow(listener, workflow_id="w", if_running="use_existing"))
    await asyncio.sleep(0.1)
    assert not second.done()
    await app.commit()

    assert (await second).id == joined.id
    assert not (await second).created


async def test_the_joined_one_comes_second(engine, app, postgres_url):
    """It waits for a transaction that has the same key, and then begins again with what that one has committed."""
    client = (await engine()).client
    other = await asyncpg.connect(postgres_url)
    await other.execute("BEGIN")
    first = await client.start_workflow(listener, workflow_id="w", using=other)

    second = asyncio.ensure_future(
        client.start_workflow(listener, workflow_id="w", if_running="use_existing", using=app.connection)
    )
    await until(partial(_is_waiting_for_a_lock, postgres_url))
    await other.execute("COMMIT")

    assert (await second).id == first.id
    await app.insert("o1")
    await app.commit()
    await other.close()
    assert await orders(postgres_url) == ["o1"]


async def _is_waiting_for_a_lock(url: str) -> bool:
    connection = await asyncpg.connect(url)
    try:
        return bool(await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
    finally:
        await connection.close()


async def test_joined_and_ordinary_operations_do_not_disturb_each_other(engine, driver, postgres_url):
    """Many of both at once on one execution: every signal arrives exactly once, and those of each in order."""
    client = (await engine()).client
    handle = await client.start_workflow(listener)

    async def ordinary() -> None:
        for number in range(20):
            await handle.signal("word", f"o{number:02}")

    async def joined(name: str, app: AsyncpgApp) -> None:
        for number in range(20):
            await app.insert(f"{name}{number:02}")
            await handle.signal("word", f"{name}{number:02}", using=app.connection)
            await (app.rollback() if number % 3 == 0 else app.commit())
        await app.close()

    apps = [DRIVERS[driver](), DRIVERS[driver]()]
    for app in apps:
        await app.open(postgres_url)
    await asyncio.gather(ordinary(), joined("a", apps[0]), joined("b", apps[1]))
    await handle.signal("word", "end")
    heard = await handle.result(timeout=20)

    for name in "ab":
        committed = [f"{name}{number:02}" for number in range(20) if number % 3]
        assert [word for word in heard if word.startswith(name)] == committed
    assert [word for word in heard if word.startswith("o")] == [f"o{number:02}" for number in range(20)]
    assert await orders(postgres_url) == sorted(word for word in heard if word[0] in "ab")


async def test_calls_at_the_same_time_on_one_connection_take_turns(engine, app):
    """Half of them are refused: what the others have written stays."""
    client = (await engine()).client

    calls = [
        client.start_workflow(
            echo if number % 2 else "nobody-knows-it", "x", workflow_id=f"w{number}", using=app.connection
        )
        for number in range(10)
    ]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    await app.commit()

    assert [isinstance(answer, errors.UnknownWorkflowKind) for answer in answers] == [True, False] * 5
    for number in range(1, 10, 2):
        assert await (await client.find_workflow(f"w{number}")).result(timeout=20) == "x"


async def test_a_transaction_that_holds_an_execution_keeps_nobody_else_waiting_for_long(engine, app):
    """Calls for other executions go on; that for the one it holds is done after its commit, and so is its worker."""
    client = (await engine()).client
    held, free = await client.start_workflow(listener), await client.start_workflow(listener)
    await until(lambda: _waits(held))

    await held.signal("word", "joined", using=app.connection)
    blocked = [asyncio.ensure_future(held.signal("word", f"late{number}")) for number in range(5)]
    for number in range(5):
        async with asyncio.timeout(5):
            await free.signal("word", str(number))
        blocked.append(asyncio.ensure_future(held.signal("word", f"later{number}")))
    assert await (await client.start_workflow(echo, "x")).result(timeout=5) == "x"
    assert not any(call.done() for call in blocked)
    await app.commit()

    await asyncio.gather(*blocked)
    await held.signal("word", "end")
    heard = await held.result(timeout=20)
    assert heard[0] == "joined"
    assert sorted(heard[1:-1]) == sorted([f"late{n}" for n in range(5)] + [f"later{n}" for n in range(5)])


@pytest.mark.parametrize("driver", ["asyncpg"])
async def test_a_call_for_an_execution_that_is_held_beyond_the_deadline(engine, app):
    client = (await engine(config=IMPATIENT)).client
    held = await client.start_workflow(listener)
    await until(lambda: _waits(held))

    await held.signal("word", "end", using=app.connection)
    with pytest.raises(errors.StorageBusy, match=r"somebody else held.*pg_blocking_pids"):
        await held.signal("word", "late")
    await app.commit()

    assert await held.result(timeout=20) == ["end"]


@pytest.mark.parametrize("driver", ["asyncpg"])
async def test_a_call_for_an_execution_that_is_held_when_the_engine_stops(engine, app):
    """It is told, and nothing of it is written."""
    running = await engine()
    held = await running.client.start_workflow(listener, workflow_id="w")
    await until(lambda: _waits(held))

    await held.signal("word", "end", using=app.connection)
    late = asyncio.ensure_future(held.signal("word", "late"))
    await until(lambda: running.storage._writer.transactions._lock_waiters)
    await running.shutdown()
    with pytest.raises(errors.StorageBusy, match="closed"):
        await late
    await app.commit()

    again = (await engine()).client
    assert await (await again.find_workflow("w")).result(timeout=20) == ["end"]


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_a_lock_that_is_held_for_too_long(engine, app, postgres_url):
    """The application's own lock_timeout counts; its transaction is as it was."""
    client = (await engine()).client
    handle = await client.start_workflow(listener)
    await until(lambda: _waits(handle))
    other = await asyncpg.connect(postgres_url)
    await other.execute("BEGIN")
    await handle.signal("word", "first", using=other)

    await app.insert("o1")
    await app.execute("SET LOCAL lock_timeout = '50ms'")
    with pytest.raises(errors.StorageBusy, match="your transaction is as it was"):
        await handle.signal("word", "second", using=app.connection)
    await app.commit()
    await other.execute("COMMIT")
    await other.close()

    assert await orders(postgres_url) == ["o1"]


async def test_a_circle_with_the_engine_itself_ends(engine, app):
    """The application holds one execution and wants a second one; the engine has the second and wants the first."""
    client = (await engine()).client
    handles = [await client.start_workflow(listener) for _ in range(6)]
    for handle in handles:
        await until(partial(_waits, handle))

    async def ordinary() -> None:
        for number in range(5):
            await asyncio.gather(*(handle.signal("word", f"o{number}") for handle in handles))

    async def joined() -> None:
        for number in range(5):
            for handle in reversed(handles):
                await handle.signal("word", f"j{number}", using=app.connection)
            await app.commit()

    await asyncio.gather(ordinary(), joined())
    await asyncio.gather(*(handle.signal("word", "end") for handle in handles))
    for handle in handles:
        heard = await handle.result(timeout=20)
        assert [word for word in heard if word[0] == "j"] == [f"j{number}" for number in range(5)]
        assert [word for word in heard if word[0] == "o"] == [f"o{number}" for number in range(5)]


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg", "psycopg-async"])
async def test_a_cancelled_call_leaves_the_transaction_as_it_was(engine, app, postgres_url):
    client = (await engine()).client
    handle = await client.start_workflow(listener)
    await until(lambda: _waits(handle))
    other = await asyncpg.connect(postgres_url)
    await other.execute("BEGIN")
    await handle.signal("word", "first", using=other)

    await app.insert("o1")
    await app.execute("SET LOCAL lock_timeout = '1s'")
    call = asyncio.ensure_future(handle.signal("word", "cancelled", using=app.connection))
    await until(partial(_is_waiting_for_a_lock, postgres_url))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await other.execute("COMMIT")
    await other.close()
    await handle.signal("word", "end", using=app.connection)
    await app.commit()

    assert await orders(postgres_url) == ["o1"]
    assert await handle.result(timeout=20) == ["first", "end"]


# --- connections --------------------------------------------------------------------------------------------------


async def test_a_connection_without_a_transaction_is_refused(engine, postgres_url):
    client = (await engine()).client
    plain = await asyncpg.connect(postgres_url)
    blocking = psycopg.connect(postgres_url, autocommit=True)
    awaited = await psycopg.AsyncConnection.connect(postgres_url, autocommit=True)

    for connection in (plain, blocking, awaited):
        with pytest.raises(errors.InvalidRequest, match="no open transaction") as refused:
            await client.start_workflow(echo, "x", using=connection)
        assert refused.value.field == "using"

    with blocking.transaction():
        first = await client.start_workflow(echo, "x", using=blocking)
    async with awaited.transaction():
        second = await client.start_workflow(echo, "y", using=awaited)
    assert (await first.result(timeout=20), await second.result(timeout=20)) == ("x", "y")
    blocking.close()
    await awaited.close()
    await plain.close()


async def test_a_transaction_that_has_failed_is_refused(engine, app):
    client = (await engine()).client
    with pytest.raises((asyncpg.PostgresError, psycopg.Error)):
        await app.execute("SELECT 1/0")

    with pytest.raises(errors.InvalidRequest, match="has failed already"):
        await client.start_workflow(echo, "x", using=app.connection)

    await app.rollback()
    handle = await client.start_workflow(echo, "x", using=app.connection)
    await app.commit()
    assert await handle.result(timeout=20) == "x"


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
async def test_a_transaction_with_a_snapshot_of_its_own_is_refused(engine, app, isolation):
    client = (await engine()).client
    await app.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")

    with pytest.raises(errors.InvalidRequest, match=isolation):
        await client.start_workflow(echo, "x", using=app.connection)

    await app.insert("still open")


async def test_a_read_only_transaction_is_refused(engine, app):
    client = (await engine()).client
    await app.execute("SET TRANSACTION READ ONLY")

    with pytest.raises(errors.InvalidRequest, match="read-only"):
        await client.start_workflow(echo, "x", using=app.connection)


async def test_a_user_without_rights_is_refused(engine, app, postgres_url):
    client = (await engine()).client
    await app.execute("CREATE ROLE nobody_in_particular")
    await app.execute("SET LOCAL ROLE nobody_in_particular")

    with pytest.raises(errors.AccessDenied, match=r"connection given as using=.*permission denied"):
        await client.start_workflow(echo, "x", using=app.connection)

    await app.rollback()


@pytest.mark.parametrize("tables", [False, True])
async def test_a_connection_to_another_database_is_refused(
    engine: OpenEngine,
    driver: str,
    tables: bool,
    postgres_databases: SpareDatabases,
    migrated_databases: SpareDatabases,
) -> None:
    """Without tables of ours; also if it is a copy of the engine's, made from the same template."""
    client = (await engine()).client
    with (migrated_databases if tables else postgres_databases).one() as elsewhere:
        app = DRIVERS[driver]()
        await app.open(elsewhere)
        await app.insert("o1")
        with pytest.raises(errors.InvalidRequest, match="same database") as refused:
            await client.start_workflow(echo, "x", using=app.connection)
        assert refused.value.field == "using"
        await app.commit()
        assert await orders(elsewhere) == ["o1"]
        await app.close()


async def test_a_copy_that_has_taken_the_place_of_the_database_is_joined(engine, driver, postgres_url):
    """The engine goes on with it, and so do the transactions of the application."""
    client = (await engine()).client
    name, maintenance = postgres_url.rpartition("/")[2], f"{postgres_url.rpartition('/')[0]}/postgres"
    admin = await asyncpg.connect(maintenance)
    # Who is connected while it is copied and renamed would be in the way.
    await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    await admin.fetch("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1", name)
    await admin.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name}")
    await admin.execute(f"ALTER DATABASE {name} RENAME TO {name}_old; ALTER DATABASE {name}_copy RENAME TO {name}")
    await admin.execute(f"DROP DATABASE {name}_old")
    await admin.close()

    app = DRIVERS[driver]()
    await app.open(postgres_url)
    handle = await client.start_workflow(echo, "x", using=app.connection)
    await app.commit()
    await app.close()
    assert await handle.result(timeout=20) == "x"


async def test_a_connection_that_was_lost_is_named(engine, app, postgres_url):
    """It is the application's own: trying again on it would be of no use."""
    client = (await engine()).client
    await client.start_workflow(echo, "x", workflow_id="w", using=app.connection)
    admin = await asyncpg.connect(postgres_url)
    await admin.fetchval("SELECT pg_terminate_backend($1, 5000)", await app.fetchval("SELECT pg_backend_pid()"))
    await admin.close()

    with pytest.raises(errors.HoldfastError, match=r"connection given as using= (was lost|failed)|it is closed"):
        await client.start_workflow(echo, "x", workflow_id="w", using=app.connection)
    assert not (await client.list_workflows(workflow_id="w")).items


async def test_the_search_path_decides_what_a_connection_sees(engine, app):
    client = (await engine()).client
    await app.execute("CREATE SCHEMA mine")
    await app.execute("SET LOCAL search_path = mine")
    with pytest.raises(errors.InvalidRequest, match="search_path"):
        await client.start_workflow(echo, "x", using=app.connection)

    await app.execute("SET LOCAL search_path = mine, public")
    handle = await client.start_workflow(echo, "x", using=app.connection)
    await app.commit()
    assert await handle.result(timeout=20) == "x"


async def test_a_closed_connection_is_refused(engine, app):
    client = (await engine()).client
    await app.close()

    with pytest.raises(errors.InvalidRequest, match="closed"):
        await client.start_workflow(echo, "x", using=app.connection)


async def test_connections_of_a_pool(engine, postgres_url):
    client = (await engine()).client
    async with asyncpg.create_pool(postgres_url, min_size=0, max_size=2) as pool:
        async with pool.acquire() as connection, connection.transaction():
            handle = await client.start_workflow(echo, "x", using=connection)
        assert await handle.result(timeout=20) == "x"
        with pytest.raises(errors.InvalidRequest, match="can't be used"):
            await client.start_workflow(echo, "x", using=connection)


async def test_what_is_no_connection_is_refused(engine):
    client = (await engine()).client

    with pytest.raises(errors.InvalidRequest, match="not object"):
        await client.start_workflow(echo, "x", using=object())


async def test_a_connection_of_another_loop_is_refused(engine, postgres_url):
    client = (await engine()).client
    ours = await asyncpg.connect(postgres_url)
    await ours.execute("BEGIN")

    async def elsewhere() -> None:
        with pytest.raises(errors.InvalidRequest, match="another event loop"):
            await client.start_workflow(echo, "x", using=ours)

    await asyncio.to_thread(asyncio.run, elsewhere())
    await ours.close()


async def test_a_stopped_engine_refuses(engine, app):
    running = await engine()
    await running.shutdown()

    with pytest.raises(errors.EngineStopped):
        await running.client.start_workflow(echo, "x", using=app.connection)


async def test_a_transaction_left_open_does_not_keep_the_engine_from_stopping(engine, app):
    running = await engine()
    await running.client.start_workflow(echo, "x", workflow_id="w", using=app.connection)
    await running.shutdown()
    await app.commit()

    later = await engine()
    assert await (await later.client.find_workflow("w")).result(timeout=20) == "x"


# --- threads ------------------------------------------------------------------------------------------------------


def test_the_blocking_client_stays_in_the_callers_thread(postgres_url):
    with SyncEngine(postgres_url, workflows=WORKFLOWS, config=QUICK) as engine:
        app = psycopg.connect(postgres_url)
        app.execute(CREATE)
        app.execute("INSERT INTO orders VALUES ('o1')")
        handle = engine.client.start_workflow(echo, "hi", using=app)
        talk = engine.client.signal_with_start_workflow(
            "talk", listener, signal_name="word", signal_value="one", using=app
        )
        engine.client.signal_workflow(talk.workflow_execution_id, "word", "end", using=app)
        app.commit()

        assert handle.result(timeout=20) == "hi"
        assert engine.client.workflow(talk.workflow_execution_id).result(timeout=20) == ["one", "end"]

        gone = engine.client.start_workflow(echo, "hi", using=app)
        app.rollback()
        with pytest.raises(errors.ExecutionNotFound):
            gone.status()
        app.close()


def test_many_threads_each_with_its_own_connection(postgres_url):
    with SyncEngine(postgres_url, workflows=WORKFLOWS, config=QUICK) as engine:
        talk = engine.client.start_workflow(listener)

        def work(number: int) -> None:
            with psycopg.connect(postgres_url) as app:
                for each in range(10):
                    talk.signal("word", f"{number}-{each}", using=app)
                    app.commit()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        talk.signal("word", "end")
        heard = talk.result(timeout=20)

    assert sorted(heard[:-1]) == sorted(f"{number}-{each}" for number in range(4) for each in range(10))


def test_the_blocking_client_refuses_an_async_connection(postgres_url):
    with SyncEngine(postgres_url, workflows=WORKFLOWS, config=QUICK) as engine:
        connection = asyncio.run(psycopg.AsyncConnection.connect(postgres_url))
        with pytest.raises(errors.InvalidRequest, match="async code"):
            engine.client.start_workflow(echo, "x", using=connection)
        asyncio.run(connection.close())
