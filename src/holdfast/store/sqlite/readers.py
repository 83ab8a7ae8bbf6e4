"""Reads off the event loop: a few threads with read-only connections, or the writer's thread for a database in memory.

Point reads that wait at the same time become one query (`Coalesced`); all its answers reach the loop in one call.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from holdfast.store.sqlite.connections import Database
from holdfast.store.sqlite.writer import Connect, Job

T = TypeVar("T")
Answer = tuple["asyncio.Future[Any]", Any]
Fetch = Callable[[sqlite3.Connection, Sequence[str]], Iterable[tuple[str, str, T]]]


class Readers:
    """Threads that run jobs, each on a connection of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        self._threads = [
            threading.Thread(target=self._run, name=f"holdfast-reader-{number}", daemon=True)
            for number in range(1, max(1, self._database.config.readers) + 1)
        ]
        for thread in self._threads:
            thread.start()

    def post(self, job: Job) -> None:
        self._jobs.put(job)

    async def stop(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None

        def connect() -> sqlite3.Connection:
            nonlocal connection
            if connection is None:
                connection = self._database.open_reader()
            return connection

        while (job := self._jobs.get()) is not None:
            job(connect)
        if connection is not None:
            connection.close()


class Reads:
    """Carries a read to a thread and its answer back to the loop. Used from the loop's thread alone."""

    def __init__(self, database: Database, post: Callable[[Job], None], loop: asyncio.AbstractEventLoop) -> None:
        self._database = database
        self._post = post
        self._loop = loop
        self.running = 0
        """Reads that run or wait for a thread, but for those that are asked together."""

    async def run(self, work: Callable[[sqlite3.Connection], T], post: Callable[[Job], None] | None = None) -> T:
        """What `work` returns, asked on another thread's connection."""
        future: asyncio.Future[T] = self._loop.create_future()

        def job(connect: Connect) -> None:
            self.deliver([(future, self.attempt(work, connect))])

        (post or self._post)(job)
        self.running += 1
        try:
            return await future
        finally:
            self.running -= 1

    def coalesced(self, fetch: Fetch[T]) -> Coalesced[T]:
        return Coalesced(self, fetch)

    def post(self, job: Job) -> None:
        self._post(job)

    def future(self) -> asyncio.Future[Any]:
        return self._loop.create_future()

    def attempt(self, work: Callable[[sqlite3.Connection], T], connect: Connect) -> T | Exception:
        """The answer, or the error in its place."""
        try:
            return work(connect())
        except sqlite3.Error as error:
            return self._database.explain(error)
        except Exception as error:  # noqa: BLE001 - belongs to whoever asked
            return error

    def deliver(self, answers: Sequence[Answer]) -> None:
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(_settle, answers)


class Coalesced(Generic[T]):
    """Rows by execution id. Calls that wait while the readers are busy share the next query."""

    def __init__(self, reads: Reads, fetch: Fetch[T]) -> None:
        self._reads = reads
        self._fetch = fetch
        self._waiting: deque[tuple[str, Sequence[str], asyncio.Future[dict[str, T]]]] = deque()
        self._posted = False

    async def get(self, org: str, ids: Sequence[str]) -> dict[str, T]:
        """Those of `ids` that exist in this org."""
        if not ids:
            return {}
        future: asyncio.Future[dict[str, T]] = self._reads.future()
        self._waiting.append((org, ids, future))
        if not self._posted:
            self._posted = True
            self._reads.post(self._run)
        return await future

    def _run(self, connect: Connect) -> None:
        # Before collecting: a call that comes later posts the next query.
        self._posted = False
        calls = []
        with suppress(IndexError):
            while True:
                calls.append(self._waiting.popleft())
        if not calls:
            return
        wanted = list(dict.fromkeys(execution_id for _, ids, _ in calls for execution_id in ids))
        found = self._reads.attempt(lambda connection: self._found(connection, wanted), connect)
        if isinstance(found, Exception):
            self._reads.deliver([(future, found) for _, _, future in calls])
            return
        self._reads.deliver([(future, _scoped(found, org, ids)) for org, ids, future in calls])

    def _found(self, connection: sqlite3.Connection, wanted: Sequence[str]) -> dict[str, tuple[str, T]]:
        return {execution_id: (org, record) for execution_id, org, record in self._fetch(connection, wanted)}


def _scoped(found: dict[str, tuple[str, T]], org: str, ids: Sequence[str]) -> dict[str, T]:
    """What one caller asked for, and nothing of another org."""
    answer = {}
    for execution_id in ids:
        row = found.get(execution_id)
        if row is not None and row[0] == org:
            answer[execution_id] = row[1]
    return answer


def _settle(answers: Sequence[Answer]) -> None:
    for future, answer in answers:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
