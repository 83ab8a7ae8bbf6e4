"""Which past a connection leads to: a node that comes to another one forgets what it remembers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from holdfast import EngineConfig, StoreConfig, WorkerConfig, WorkflowContext, workflow
from holdfast.store.postgres.failover import DatabaseIdentity, FailoverDetector
from tests.conftest import SECRET, OpenEngine
from verification.postgres import LocalPostgres

# No heartbeat comes in between: the first to write after the connection was lost is the program's report.
CALM = EngineConfig(
    store=StoreConfig(synchronous="normal"), worker=WorkerConfig(lease_s=60.0, shutdown_grace_s=0.2), secret_key=SECRET
)
HERE = DatabaseIdentity("00000001", "7", "16384")
ELSEWHERE = DatabaseIdentity("0000000A", "7", "16384")


@pytest.mark.parametrize(
    ("before", "now", "moved"),
    [
        (HERE, HERE, False),
        (HERE, HERE._replace(timeline="00000002"), True),
        (HERE, HERE._replace(system="8"), True),
        (HERE, HERE._replace(database="16385"), True),
        (HERE, DatabaseIdentity(), False),
        (DatabaseIdentity(), HERE, False),
        (HERE._replace(system=None), HERE, False),
        (HERE._replace(system=None), HERE._replace(timeline="00000002"), True),
    ],
)
def test_only_what_is_known_is_compared(before: DatabaseIdentity, now: DatabaseIdentity, moved: bool) -> None:
    timelines = FailoverDetector()

    assert not timelines.moved_to(before)
    assert moved == timelines.moved_to(now)
    assert not timelines.moved_to(now)


def test_what_was_known_is_not_forgotten_while_nobody_can_be_asked() -> None:
    timelines = FailoverDetector()
    timelines.moved_to(HERE)
    timelines.moved_to(DatabaseIdentity())

    assert timelines.moved_to(HERE._replace(timeline="00000002"))


# --- asking ---


@pytest.fixture
async def ordinary(postgres_url: str) -> AsyncIterator[tuple[Any, Any]]:
    """A connection of a role without any rights, and one of the database's owner."""
    owner = await asyncpg.connect(postgres_url)
    role = f"ordinary_{postgres_url.rpartition('_')[2]}"
    await owner.execute(f"CREATE ROLE {role} LOGIN")
    connection = await asyncpg.connect(postgres_url.replace("//holdfast@", f"//{role}@"))
    yield connection, owner
    await connection.close()
    await owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    await owner.close()


class Counting:
    """A connection, and how often it was asked."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.asked = 0

    async def fetchrow(self, query: str) -> Any:
        self.asked += 1
        return await self._connection.fetchrow(query)


async def test_an_ordinary_role_is_told(ordinary: tuple[Any, Any]) -> None:
    """Without any right that would have to be granted, by one statement."""
    connection, owner = Counting(ordinary[0]), ordinary[1]
    system = await owner.fetchval("SELECT system_identifier::text FROM pg_control_system()")
    database = await owner.fetchval("SELECT oid::text FROM pg_database WHERE datname = current_database()")

    assert DatabaseIdentity("00000001", system, database) == await FailoverDetector().ask(connection)
    assert 1 == connection.asked


@pytest.mark.parametrize(
    ("refused", "known"), [("pg_control_system", (True, False)), ("pg_current_wal_lsn", (False, False))]
)
async def test_a_server_that_does_not_tell_is_asked_once(
    ordinary: tuple[Any, Any], refused: str, known: tuple[bool, bool]
) -> None:
    """Then it is asked for less, and nobody is disturbed."""
    connection, owner = ordinary
    await owner.execute(f"REVOKE EXECUTE ON FUNCTION {refused} FROM PUBLIC")
    timelines, again = FailoverDetector(), Counting(connection)
    first = await timelines.ask(connection)

    assert (*known, True) == tuple(part is not None for part in first)
    assert first == await timelines.ask(again)
    assert 1 == again.asked


class Refusing:
    """Stands in for a connection to a service that has no WAL of its own."""

    async def fetchrow(self, _: str) -> None:
        raise asyncpg.ObjectNotInPrerequisiteStateError("wal_level must be set to 'logical'")


async def test_a_service_that_tells_nothing_can_be_used() -> None:
    assert DatabaseIdentity() == await FailoverDetector().ask(Refusing())


# --- what follows ---


class Steps:
    """How often the step below was begun, and when it may end."""

    def __init__(self) -> None:
        self.begun = 0
        self.first = asyncio.Event()
        self.go_on = asyncio.Event()


steps = Steps()


async def long_step() -> None:
    steps.begun += 1
    steps.first.set()
    await steps.go_on.wait()


@workflow
async def with_a_long_step(ctx: WorkflowContext) -> str:
    await ctx.run(long_step)
    return "done"


async def _cut_while_a_step_runs(node: Any, known: DatabaseIdentity | None) -> str:
    """The node's writer is cut off while a program runs, and believes to have come from another past if one is
    given. What becomes of the execution."""
    handle = await node.client.start_workflow(with_a_long_step)
    await steps.first.wait()
    writer = node.storage._writer.transactions
    if known is not None:
        writer._failover._known = known
    writer._connection.terminate()
    steps.go_on.set()
    return str(await handle.result(timeout=30))


async def test_what_was_made_from_another_past_is_not_recorded(
    postgres_url: str, engine: OpenEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even the report by which it was noticed: the program is built anew, and runs its step again."""
    monkeypatch.setattr(f"{__name__}.steps", Steps())
    node = await engine(url=postgres_url, config=CALM, workflows=[with_a_long_step])

    assert "done" == await _cut_while_a_step_runs(node, ELSEWHERE)
    assert 2 == steps.begun
    assert "goes on from another past than before" in caplog.text


async def test_a_connection_to_the_same_past_changes_nothing(
    postgres_url: str, engine: OpenEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.steps", Steps())
    node = await engine(url=postgres_url, config=CALM, workflows=[with_a_long_step])

    assert "done" == await _cut_while_a_step_runs(node, None)
    assert 1 == steps.begun
    assert "another past" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fast", "immediate", "killed"])
async def test_a_server_that_was_only_restarted_has_the_same_past(how: str) -> None:
    """Also when it had to recover."""
    with LocalPostgres(durable=True) as server:

        async def identity() -> DatabaseIdentity:
            connection = await asyncpg.connect(server.url)
            try:
                return await FailoverDetector().ask(connection)
            finally:
                await connection.close()

        before = await identity()
        if how == "killed":
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        else:
            await asyncio.to_thread(server.restart, how)  # type: ignore[arg-type]  # one of its words

        assert None not in before
        assert before == await identity()
