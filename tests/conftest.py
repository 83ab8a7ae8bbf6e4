"""What the tests share: engines on databases of their own, a way to wait for a condition, hypothesis' settings.

HOLDFAST_TEST_STORE=postgres runs every test of the engine on PostgreSQL instead of SQLite, except those marked
`sqlite_only`; see `tests.both_stores`.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from itertools import count
from pathlib import Path
from shutil import copy
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pytest
from hypothesis import settings

from holdfast import Engine, EngineConfig, StoreConfig, WorkerConfig
from holdfast.assembly import open_store
from holdfast.testing import WorkflowEnvironment
from tests import both_stores

if TYPE_CHECKING:
    from tests.earlier_version import Tree
    from verification.postgres import LocalPostgres
    from verification.postgres_databases import SpareDatabases

settings.register_profile("holdfast", deadline=None, print_blob=True)
settings.load_profile("holdfast")

PATIENCE_S = 20.0
STORE = both_stores.STORE

# An fsync per commit proves nothing here, and a body that never ends must not hold up the end of its test.
# The secret is known, so that a replay gives the same tokens.
SECRET = "the secret of all tests"
QUICK = EngineConfig(
    store=StoreConfig(synchronous="normal"), worker=WorkerConfig(shutdown_grace_s=0.2), secret_key=SECRET
)

# For tests that move the clock: what has become due, and a session that is over, is noticed soon.
WATCHFUL = EngineConfig(
    store=StoreConfig(synchronous="normal"), worker=WorkerConfig(lease_s=0.6, shutdown_grace_s=0.2), secret_key=SECRET
)

NewDatabase = Callable[[], AbstractContextManager[str]]


class OpenEngine(Protocol):
    """The `engine` fixture. Every call opens another Engine; those of one test share a database unless told else."""

    async def __call__(
        self,
        *,
        workflows: Iterable[Callable[..., Any]] = (),
        tasks: Iterable[Callable[..., Any]] = (),
        config: EngineConfig = QUICK,
        url: str | None = None,
        **options: Any,
    ) -> Engine: ...


class OpenEnvironment(Protocol):
    """The `environment` fixture. Its arguments are those of `WorkflowEnvironment`."""

    async def __call__(self, **options: Any) -> WorkflowEnvironment: ...


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Again on PostgreSQL: only what has a database and was not there before, without what is about SQLite."""
    if STORE not in {"sqlite", "postgres"}:
        raise pytest.UsageError(f"HOLDFAST_TEST_STORE is sqlite or postgres, not {STORE!r}")
    reasons = {item: both_stores.why_sqlite_only(item) for item in items}
    if STORE == "postgres":
        again = [item for item in items if reasons[item] or both_stores.runs_on_both(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(again)])
        items[:] = again
        for item in items:
            if reason := reasons[item]:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_configure(config: pytest.Config) -> None:
    patches = pytest.MonkeyPatch()
    both_stores.watch(patches)
    config.add_cleanup(patches.undo)


def pytest_runtest_setup() -> None:
    both_stores.opened_sqlite.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    yield
    wrong = both_stores.complaint(
        STORE,
        both_stores.opened_sqlite,
        on_both=both_stores.runs_on_both(item),
        why_not=both_stores.why_sqlite_only(item),
    )
    if wrong is not None:
        pytest.fail(wrong, pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many scenarios were simulated, and how fast; what happened in the chaos run."""
    for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")):
        for name, lines in report.user_properties:
            for line in lines if name == "chaos" else ():
                terminalreporter.write_line(line)
    reports = terminalreporter.getreports("passed")
    parts = [value for report in reports for name, value in report.user_properties if name == "simulated"]
    if parts:
        scenarios, busy_s, took_s = (sum(part[index] for part in parts) for index in range(3))
        processes = getattr(terminalreporter.config.option, "numprocesses", None) or 1
        rates = (
            f"{scenarios / took_s:.0f}/s in each process, {processes * scenarios / took_s:.0f}/s in all {processes}, "
            f"{scenarios / busy_s:.0f}/s of processor time"
        )
        terminalreporter.write_line(f"simulation: {scenarios} scenarios, {rates}")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The file that the engines of this test use."""
    if STORE != "sqlite":
        raise pytest.UsageError("there is no file: take `database_url`, or mark the test `sqlite_only`")
    return tmp_path / "holdfast.db"


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The database that the engines of this test use."""
    if STORE == "sqlite":
        database: Path = request.getfixturevalue("database")
        copy(request.getfixturevalue("migrated_file"), database)
        yield f"sqlite:///{database}"
    else:
        with request.getfixturevalue("new_database")() as url:
            yield url


@pytest.fixture
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> NewDatabase:
    """Gives databases, for tests that need several of them."""
    if STORE == "sqlite":
        files = (tmp_path / f"{number}.db" for number in count(1))
        empty: Path = request.getfixturevalue("migrated_file")
        return lambda: nullcontext(f"sqlite:///{copy(empty, next(files))}")
    migrated: SpareDatabases = request.getfixturevalue("migrated_databases")
    return migrated.one


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database with the engine's tables, all of them empty: making them takes longer than most tests."""
    file = tmp_path_factory.mktemp("migrated") / "empty.db"
    _run_aside(_migrate(f"sqlite:///{file}"))
    return file


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[OpenEngine]:
    """Opens engines, and shuts down at the end what the test has left open."""
    async with AsyncExitStack() as opened:

        async def open_engine(
            *,
            workflows: Iterable[Callable[..., Any]] = (),
            tasks: Iterable[Callable[..., Any]] = (),
            config: EngineConfig = QUICK,
            url: str | None = None,
            **options: Any,
        ) -> Engine:
            where = url if url is not None else database_url
            return await opened.enter_async_context(
                Engine(where, workflows=workflows, tasks=tasks, config=config, **options)
            )

        yield open_engine


@pytest.fixture
async def environment(database_url: str) -> AsyncIterator[OpenEnvironment]:
    """Opens engines whose time the test moves, on the test's database, and shuts them down at the end."""
    async with AsyncExitStack() as opened:

        async def open_environment(**options: Any) -> WorkflowEnvironment:
            return await opened.enter_async_context(WorkflowEnvironment(url=database_url, **options))

        yield open_environment


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[LocalPostgres]:
    """A PostgreSQL server of this process. Who stops it starts it again, or better takes a server of their own."""
    from verification.postgres import LocalPostgres

    with LocalPostgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_databases(request: pytest.FixtureRequest) -> Iterator[SpareDatabases]:
    """Empty databases, on the server that HOLDFAST_TEST_POSTGRES_URL names or else on one of our own."""
    from verification.postgres_databases import SpareDatabases

    named = os.environ.get("HOLDFAST_TEST_POSTGRES_URL")
    databases = SpareDatabases(named or request.getfixturevalue("postgres_server").url)
    yield databases
    databases.close(drop=named is not None)


@pytest.fixture(scope="session")
def migrated_databases(request: pytest.FixtureRequest) -> Iterator[SpareDatabases]:
    """Databases with the engine's tables, all of them empty."""
    from verification.postgres_databases import SpareDatabases, create_database, drop_database

    named = os.environ.get("HOLDFAST_TEST_POSTGRES_URL")
    server = named or request.getfixturevalue("postgres_server").url
    template = f"holdfast_migrated_{uuid4().hex[:12]}"
    url = create_database(server, template)
    _run_aside(_migrate(url))
    databases = SpareDatabases(server, template=template)
    yield databases
    databases.close(drop=named is not None)
    if named is not None:
        drop_database(server, template)


def _run_aside(work: Coroutine[Any, Any, None]) -> None:
    """In a thread: the test's own may have a running loop."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


async def _migrate(url: str) -> None:
    store = open_store(url, QUICK)
    await store.open(NOTHING)
    await store.close()


class _Nothing:
    """A source for a store that is only read."""

    def take(self) -> None:
        return None

    def writer_idle(self, *, writing: bool) -> None:
        """Nobody has anything else to do."""

    def data_loss_detected(self) -> None:
        """Nobody here remembers anything."""

    def refuse_late(self, before: float, error: Exception) -> None:
        """Nobody here has a deadline."""


NOTHING = _Nothing()


@pytest.fixture
def postgres_url(postgres_databases: SpareDatabases) -> Iterator[str]:
    """An empty PostgreSQL database of this test alone."""
    with postgres_databases.one() as url:
        yield url


@pytest.fixture(scope="session")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The version before this one."""
    from tests.earlier_version import unpack, why_missing

    reason = why_missing()
    if reason is not None:
        pytest.skip(reason)
    return unpack(tmp_path_factory.mktemp("earlier"))


async def until(condition: Callable[[], Any], *, timeout: float = PATIENCE_S) -> Any:
    """Wait until `condition()`, plain or async, gives something true; that is the answer."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"still not so after {timeout} s: {_text_of(condition)}")
        await asyncio.sleep(0.002)


def _text_of(condition: Callable[[], Any]) -> str:
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)
