"""Reads on a small pool of connections, on the loop of whoever asks.

A read changes nothing, so one that fails because the server was away for a moment, or let nobody in, is simply run
again, until a deadline. One that finds all connections at work waits for a short time only, if it was asked to: a few
slow reads must not keep every caller waiting. Point reads that wait at the same time become one query (`Coalesced`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from random import uniform
from typing import Any, Final, Generic, TypeVar

import asyncpg

from holdfast.errors import EngineStopped, HoldfastError, InvalidRequest, StorageBusy
from holdfast.store.postgres.connections import DRIVER_ERRORS, Database, Unconnected
from holdfast.store.postgres.driver_errors import CANCELLED, is_transient, sqlstate
from holdfast.store.postgres.statements import Connection

T = TypeVar("T")
Work = Callable[[Connection], Awaitable[T]]
Fetch = Callable[[Connection, Sequence[str]], Awaitable[Iterable[tuple[str, str, T]]]]
_Call = tuple[str, Sequence[str], "asyncio.Future[dict[str, T]]"]

_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 1.0
_STOP_S: Final = 5.0
_RELEASE_S: Final = 1.0
_IDS_AT_ONCE: Final = 5_000
# How long a caller waits for others who read.
QUEUE_S: Final = 2.0
# Text that PostgreSQL can't hold: with U+0000 in it, or half a character.
_NOT_TEXT: Final = frozenset({"22021", "22000"})


class Reads:
    """Runs reads on connections of a pool. Used from one loop."""

    def __init__(self, database: Database, pool: asyncpg.Pool[Any]) -> None:
        self._database = database
        self._pool = pool
        self._size = pool.get_max_size()
        self._free = asyncio.Semaphore(self._size)
        self._at_work = 0
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopped = False

    @property
    def running(self) -> int:
        """Reads that run or wait for a connection."""
        return self._running

    async def run(self, work: Work[T], queue_s: float | None = None) -> T:
        """What `work` returns, on a connection of its own for so long. It may be run more than once.

        Raises StorageBusy when the database did not answer before the deadline, or when others were still at work on
        all connections after `queue_s`. What keeps us from connecting is raised as what it is, at the deadline.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._database.config.busy_deadline_s
        pause_s = _FIRST_PAUSE_S
        refused: Unconnected | None = None
        async with self._counted():
            while True:
                try:
                    return await self._attempt(work, give_up_at, queue_s)
                except (Unconnected, *DRIVER_ERRORS) as error:
                    if self._stopped:
                        raise EngineStopped("the store was closed while this was read") from error
                    if isinstance(error, Unconnected):
                        refused = error
                    if not _is_worth_repeating(error) or loop.time() + pause_s >= give_up_at:
                        # The deadline may have cut short one more attempt to connect: that says less.
                        known = refused if refused is not None and isinstance(error, TimeoutError) else error
                        raise self._explain(known) from error
                await asyncio.sleep(uniform(0.5, 1.0) * pause_s)  # noqa: S311 - jitter, not a secret
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def coalesced(self, fetch: Fetch[T]) -> Coalesced[T]:
        return Coalesced(self, fetch)

    async def stop(self) -> None:
        """Let what is running end, for a while; then close the pool."""
        self._stopped = True
        try:
            async with asyncio.timeout(_STOP_S):
                await self._idle.wait()
                await self._pool.close()
        except (TimeoutError, *DRIVER_ERRORS):
            self._pool.terminate()

    async def _attempt(self, work: Work[T], give_up_at: float, queue_s: float | None) -> T:
        async with asyncio.timeout_at(give_up_at), self._turn(queue_s), self._connection() as connection:
            self._at_work += 1
            try:
                return await work(connection)
            finally:
                self._at_work -= 1

    @asynccontextmanager
    async def _turn(self, queue_s: float | None) -> AsyncIterator[None]:
        """One of as many as there are connections."""
        while True:
            try:
                async with asyncio.timeout(queue_s):
                    await self._free.acquire()
            except TimeoutError:
                # Whoever is still connecting is in nobody's way: it is the server that all are waiting for.
                if self._at_work >= self._size:
                    raise self._crowded() from None
            else:
                break
        try:
            yield
        finally:
            self._free.release()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        try:
            connection = await self._pool.acquire()
        except (HoldfastError, *DRIVER_ERRORS) as error:
            raise Unconnected(error) from error
        try:
            yield connection
        finally:
            # A server that does not answer does not say either that it has cancelled what is given up here.
            await self._pool.release(connection, timeout=_RELEASE_S)

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        if self._stopped:
            raise EngineStopped("the store is not open")
        self._running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    def _explain(self, error: Exception) -> Exception:
        name = self._database.name
        if isinstance(error, Unconnected):
            return self._database.explain(error.error)
        if sqlstate(error) in _NOT_TEXT:
            return InvalidRequest(f"this text can't be in {name}, nor asked for: {error}")
        if sqlstate(error) == CANCELLED:
            return StorageBusy(
                f"{name} ended a read that took too long ({error}): ask for less at once, or raise statement_timeout_s",
                path=name,
            )
        return self._database.explain(error)

    def _crowded(self) -> StorageBusy:
        name = self._database.name
        return StorageBusy(
            f"all connections that read from {name} are taken by other reads, {self._size} at a time: try again in a "
            "moment, or raise StoreConfig.readers",
            path=name,
            readers=self._size,
        )


def _is_worth_repeating(error: BaseException) -> bool:
    """Not what has taken too long: it would again."""
    return isinstance(error, Unconnected) or (is_transient(error) and sqlstate(error) != CANCELLED)


class Coalesced(Generic[T]):
    """Rows by execution id. Calls that come while a query is running share the next one: it begins after them, so that
    each sees what was committed before it asked."""

    def __init__(self, reads: Reads, fetch: Fetch[T]) -> None:
        self._reads = reads
        self._fetch = fetch
        self._waiting: list[_Call[T]] = []
        self._task: asyncio.Task[None] | None = None

    async def get(self, org: str, ids: Sequence[str]) -> dict[str, T]:
        """Those of `ids` that exist in this org."""
        if not ids:
            return {}
        future: asyncio.Future[dict[str, T]] = asyncio.get_running_loop().create_future()
        self._waiting.append((org, ids, future))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="holdfast-reads")
        return await future

    async def _run(self) -> None:
        calls: list[_Call[T]] = []
        try:
            while self._waiting:
                # Whoever has been cancelled meanwhile does not want to know any more.
                calls, self._waiting = [call for call in self._waiting if not call[2].done()], []
                await self._answer(calls)
        finally:
            # Only a loop that is going down ends this early: then nobody is left to answer.
            for _, _, future in (*calls, *self._waiting):
                future.cancel()
            self._waiting, self._task = [], None

    async def _answer(self, calls: Sequence[_Call[T]]) -> None:
        wanted = [one for one in dict.fromkeys(one for _, ids, _ in calls for one in ids) if _may_exist(one)]
        try:
            found = await self._found(wanted)
        except Exception as error:  # noqa: BLE001 - belongs to whoever asked
            for _, _, future in calls:
                if not future.done():
                    future.set_exception(error)
            return
        for org, ids, future in calls:
            if not future.done():
                future.set_result(_scoped(found, org, ids))

    async def _found(self, wanted: Sequence[str]) -> dict[str, tuple[str, T]]:
        found: dict[str, tuple[str, T]] = {}
        for start in range(0, len(wanted), _IDS_AT_ONCE):
            rows = await self._rows(wanted[start : start + _IDS_AT_ONCE])
            found.update({execution_id: (org, record) for execution_id, org, record in rows})
        return found

    async def _rows(self, ids: Sequence[str]) -> Iterable[tuple[str, str, T]]:
        return await self._reads.run(lambda connection: self._fetch(connection, ids))


def _may_exist(execution_id: str) -> bool:
    """Whether it can be asked for at all: one that can't must not spoil the query of all others."""
    try:
        return b"\0" not in execution_id.encode()
    except UnicodeEncodeError:
        return False


def _scoped(found: dict[str, tuple[str, T]], org: str, ids: Sequence[str]) -> dict[str, T]:
    """What one caller asked for, and nothing of another org."""
    answer = {}
    for execution_id in ids:
        row = found.get(execution_id)
        if row is not None and row[0] == org:
            answer[execution_id] = row[1]
    return answer
