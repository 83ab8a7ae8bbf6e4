"""Runs a batch inside a transaction that belongs to the application, on the application's own connection.

Owns: the checks whether there is a transaction to join on the right database, and the savepoint around what is written.
Promises: the transaction stays open, and its end decides; what fails or is refused leaves it as it was, and what is set
for the work is set back. `external_connection.py` knows the drivers, `caller_commits.py` waits for the end of the
transaction.

The application holds the locks of what it has touched until its transaction ends: others who want the same execution
wait for it. It may take them in any order, so that it can meet somebody in a circle; PostgreSQL then ends one of the
waits. Where that was ours it is worth another try, since the engine's own transactions never wait for long.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

from holdfast.errors import AccessDenied, HoldfastError, InvalidRequest, StorageBusy, StorageError
from holdfast.store.postgres import settings as common
from holdfast.store.postgres.caller_commits import CallerCommitWatcher
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.driver_errors import (
    LOCK_NOT_AVAILABLE,
    PERMISSION_DENIED,
    READ_ONLY,
    is_connection_lost,
    reason,
    sqlstate,
)
from holdfast.store.postgres.external_connection import (
    FIELD,
    ExternalConnection,
    PsycopgExternal,
    failed_transaction,
    no_transaction,
    wrap_connection,
)
from holdfast.store.postgres.load import Raced, load
from holdfast.store.postgres.notifications import Notifications
from holdfast.store.postgres.readers import Reads
from holdfast.store.postgres.statements import statement
from holdfast.store.postgres.transactions import Transactions
from holdfast.store.postgres.write import Seen, write
from holdfast.store.protocol import Batch

# As in the engine's own transactions: rows are found by keys. The application's values come back afterwards.
_SETTINGS: Final = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit", "lock_timeout")
_CHECK: Final = statement("settings", "joined")
_RACES: Final = 20
_DEADLOCKS: Final = 5
_DEADLOCK: Final = "40P01"
_NO_SUCH_TABLE: Final = frozenset({"42P01", "3F000"})
_NO_TRANSACTION: Final = "25P01"
_FAILED_TRANSACTION: Final = "25P02"
_CANCELLED: Final = "57014"  # by a statement_timeout of the application's


class Joining:
    """`start` and `stop` on the engine's loop; `run_on` on any thread."""

    def __init__(self, database: Database, transactions: Transactions, notifications: Notifications) -> None:
        self._database = database
        self._transactions = transactions
        self._notifications = notifications
        self._turns = _Turns()
        self._identity = ""
        self._reads: Reads | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine_thread: int | None = None
        self._watch: CallerCommitWatcher | None = None

    def start(self, reads: Reads, identity: str) -> None:
        """`identity` is what the database is known by, whatever a connection calls it."""
        self._identity = identity
        self._reads = reads
        self._loop = asyncio.get_running_loop()
        self._engine_thread = threading.get_ident()
        self._watch = CallerCommitWatcher(reads, self._notifications)

    async def stop(self) -> None:
        self._engine_thread = None
        self._reads = None
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.stop()

    def run_on(self, connection: Any, batch: Batch) -> Awaitable[None] | None:
        """At once, in the calling thread, on a plain connection of psycopg; else the answer is to be awaited.

        In the thread of the engine's loop, what blocks is given to another thread: the writer could never let go of
        what we wait for.
        """
        visited = wrap_connection(connection)
        if not isinstance(visited, PsycopgExternal):
            return self._run_when_free(connection, visited, batch)
        if threading.get_ident() == self._engine_thread:
            return _in_a_thread(self._run_blocking, connection, visited, batch)
        self._run_blocking(connection, visited, batch)
        return None

    def _run_blocking(self, connection: Any, visited: ExternalConnection, batch: Batch) -> None:
        with self._turns.blocking(connection):
            _drive(self._run(visited, batch))

    async def _run_when_free(self, connection: Any, visited: ExternalConnection, batch: Batch) -> None:
        async with self._turns.awaited(connection):
            await self._run(visited, batch)

    async def _run(self, visited: ExternalConnection, batch: Batch) -> None:
        begun_here = visited.begin()
        try:
            xid = await self._join(visited, batch)
        except BaseException as error:
            if begun_here:
                with suppress(Exception):
                    await visited.roll_back()
            if isinstance(error, visited.driver_errors):
                raise self._explained(error) from error
            raise
        watch = self._watch
        if watch is not None:
            watch.add(xid, batch)

    async def _join(self, visited: ExternalConnection, batch: Batch) -> str:
        """The number of the transaction."""
        await visited.execute("SAVEPOINT holdfast")
        try:
            xid, settings = await self._check(visited)
            await self._until_done(visited, batch, settings)
        except BaseException:
            # A connection that was lost has lost its transaction, too: the first error says more.
            with suppress(Exception):
                await visited.execute("ROLLBACK TO SAVEPOINT holdfast; RELEASE SAVEPOINT holdfast")
            raise
        restore = "; ".join(f"SET LOCAL {name} = {_quoted(value)}" for name, value in settings.items())
        await visited.execute(f"{restore}; RELEASE SAVEPOINT holdfast")
        return xid

    async def _check(self, visited: ExternalConnection) -> tuple[str, dict[str, str]]:
        """The transaction's number and settings."""
        try:
            identity, isolation, xid, *settings = await visited.fetchrow(_CHECK)
        except visited.driver_errors as error:
            if sqlstate(error) in _NO_SUCH_TABLE:
                raise self._elsewhere() from error
            raise
        if identity != self._identity and identity != await self._asked_again(visited):
            raise self._elsewhere()
        if isolation != "read committed":
            raise InvalidRequest(
                f"the transaction is {isolation}: only a transaction that is read committed, PostgreSQL's default, "
                "sees what it has waited for, and can be joined",
                field=FIELD,
                isolation=isolation,
            )
        return xid, dict(zip(_SETTINGS, settings, strict=True))

    async def _asked_again(self, visited: ExternalConnection) -> str:
        """What the engine's database is known by now: a copy may have been put in its place, and the engine went on."""
        reads, loop = self._reads, self._loop
        if reads is None or loop is None:
            return self._identity
        asked = asyncio.run_coroutine_threadsafe(reads.run(common.identity), loop)
        # What blocks is never run in the thread of the loop.
        blocking = isinstance(visited, PsycopgExternal)
        self._identity = asked.result() if blocking else await asyncio.wrap_future(asked)
        return self._identity

    async def _until_done(self, visited: ExternalConnection, batch: Batch, settings: dict[str, str]) -> None:
        wait = settings["lock_timeout"]
        if wait == "0":
            wait = f"{max(1, int(self._database.config.busy_deadline_s * 1000))}ms"
        set_up = "; ".join(f"SET LOCAL {name} = off" for name in _SETTINGS[:-1])
        set_up += f"; SET LOCAL lock_timeout = {_quoted(wait)}"
        races = deadlocks = 0
        while True:
            await visited.execute(set_up)
            try:
                return await self._do(visited, batch)
            except Raced as race:
                races += 1
                if races >= _RACES:
                    raise self._busy("others were faster, again and again") from race
            except visited.driver_errors as error:
                deadlocks += 1
                if sqlstate(error) != _DEADLOCK or deadlocks >= _DEADLOCKS:
                    raise
            await visited.execute("ROLLBACK TO SAVEPOINT holdfast")

    async def _do(self, visited: ExternalConnection, batch: Batch) -> None:
        now = await self._transactions.now(visited)
        loaded = await load(visited, batch.plan(), now)
        seen = Seen(loaded)
        await write(visited, batch.decide(loaded), seen, now)

    def _elsewhere(self) -> InvalidRequest:
        name = self._database.name
        return InvalidRequest(
            f"the connection does not see the tables of {name}: only a connection to the same database can be joined, "
            "and its search_path must find them first",
            field=FIELD,
            expected=name,
        )

    def _busy(self, why: object) -> StorageBusy:
        name = self._database.name
        return StorageBusy(
            f"{name}: somebody else holds what this call needs ({why}); nothing of it was written, and your "
            "transaction is as it was: try again, or roll back and begin anew",
            path=name,
        )

    def _explained(self, error: Exception) -> Exception:
        if isinstance(error, HoldfastError):
            return error
        code = sqlstate(error)
        if code == _NO_TRANSACTION:
            return no_transaction()
        if code == _FAILED_TRANSACTION:
            return failed_transaction()
        if code == READ_ONLY:
            return InvalidRequest(f"the transaction is read-only, so nothing can join it: {error}", field=FIELD)
        if code in {LOCK_NOT_AVAILABLE, _DEADLOCK, _CANCELLED}:
            return self._busy(error)
        if code == PERMISSION_DENIED:
            return AccessDenied(
                f"the user of the connection given as using= may not do this in {self._database.name} "
                f"({reason(error)}): grant it what the engine's user has",
                path=self._database.name,
            )
        if code and is_connection_lost(error):
            return StorageBusy(
                f"the connection given as using= was lost ({reason(error)}), and its transaction with it: connect and "
                "begin anew",
                path=self._database.name,
            )
        if not code:
            return StorageError(f"the connection given as using= failed ({type(error).__name__}): {error}")
        return self._database.explain(error)


class _Turns:
    """One call at a time on a connection: savepoints of two would undo each other."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[int, tuple[Any, int]] = {}

    @asynccontextmanager
    async def awaited(self, connection: Any) -> AsyncIterator[None]:
        lock: asyncio.Lock = self._enter(id(connection), asyncio.Lock)
        try:
            async with lock:
                yield
        finally:
            self._leave(id(connection))

    @contextmanager
    def blocking(self, connection: Any) -> Iterator[None]:
        lock: threading.Lock = self._enter(id(connection), threading.Lock)
        try:
            with lock:
                yield
        finally:
            self._leave(id(connection))

    def _enter(self, key: int, make: Any) -> Any:
        with self._guard:
            lock, users = self._locks.get(key) or (make(), 0)
            self._locks[key] = (lock, users + 1)
            return lock

    def _leave(self, key: int) -> None:
        with self._guard:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = (lock, users - 1)


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _drive(work: Coroutine[Any, Any, None]) -> None:
    """To its end, in one go: it awaits only what never waits."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise AssertionError("a connection that blocks has nothing to wait for")


async def _in_a_thread(run: Any, *args: Any) -> None:
    """Not left behind when the caller is cancelled: the connection is the caller's, who may use it next."""
    running = asyncio.ensure_future(asyncio.to_thread(run, *args))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()
        raise cancelled
    await running
