"""The SQLite store: puts the writer and the readers together behind the `Store` protocol."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar, cast

from holdfast.config import StoreConfig
from holdfast.errors import EngineStopped
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Execution
from holdfast.store import reads
from holdfast.store.looks import Vitals
from holdfast.store.protocol import Batch, BatchSource, Clock
from holdfast.store.reads import Query
from holdfast.store.sqlite import deletions, joining, pages, plain, read, read_messages
from holdfast.store.sqlite.connections import Database
from holdfast.store.sqlite.places import OPEN_FILES
from holdfast.store.sqlite.readers import Coalesced, Readers, Reads
from holdfast.store.sqlite.writer import Writer

T = TypeVar("T")

ANSWERS: Final[dict[type[Any], Callable[..., Any]]] = {
    reads.Row: plain.row,
    reads.Select: plain.select,
    reads.ExecutionByWorkflowId: read.execution_by_workflow_id,
    reads.ListExecutions: pages.list_executions,
    reads.CountExecutions: read.count_executions,
    reads.History: read.history,
    reads.EventsOf: read.events_of,
    reads.ClosedExecutions: deletions.closed_page,
    reads.DeadLetters: read.dead_letters,
    reads.Tasks: read.tasks,
    reads.TasksOf: read.tasks_of,
    reads.Task: read.task,
    reads.TaskOutput: read.task_output,
    reads.Timers: read.timers,
    reads.Promises: read_messages.promises,
    reads.Waits: read_messages.waits,
    reads.WaitsOfKey: read_messages.waits_of_key,
    reads.Published: read_messages.published,
    reads.Delivery: read_messages.delivery,
    reads.KeyByHash: read.key_by_hash,
    reads.Definitions: read.definitions,
    reads.HoldsAny: deletions.holds_any,
    reads.HasRemains: deletions.has_remains,
    reads.NextDueAt: read.next_due_at,
    reads.NewsFor: read.news_for,
    reads.Backlogs: read.backlog,
    reads.Inconsistencies: read.inconsistencies,
}
"""Which function answers a question, but for those that are asked together."""


class SqliteStore:
    """One SQLite file, or a database of its own in memory when `path` is None."""

    writes_on_loop: ClassVar[bool] = False

    def __init__(self, path: str | Path | None, config: StoreConfig, clock: Clock) -> None:
        self.clock = clock
        self._path = Path(path) if path is not None else None
        self._database = Database(self._path, config, clock)
        self._writer = Writer(self._database)
        # What is in memory is seen by the writer's connection alone.
        self._readers = Readers(self._database) if path is not None else None
        self._open: _Open | None = None

    @property
    def in_company(self) -> bool:
        """Others may be at work, but SQLite tells them of nothing in time: what is left to them waits too long."""
        return False

    async def open(self, source: BatchSource) -> None:
        if self._path is not None:
            OPEN_FILES.opened(self._path)
        try:
            await self._writer.start(source)
        except BaseException:
            if self._path is not None:
                OPEN_FILES.closed(self._path)
            raise
        post = self._writer.post
        if self._readers is not None:
            self._readers.start()
            post = self._readers.post
        self._open = _Open(Reads(self._database, post, asyncio.get_running_loop()))

    async def close(self) -> None:
        was_open, self._open = self._open is not None, None
        if was_open and self._readers is not None:
            await self._readers.stop()
        await self._writer.stop()
        if was_open and self._path is not None:
            OPEN_FILES.closed(self._path)

    def wake(self) -> None:
        self._writer.wake()

    def run_on(self, connection: Any, batch: Batch) -> Awaitable[None] | None:
        _ = self._opened
        return joining.run_on(self._database, connection, batch)

    def renew(self, worker: str, lease_s: float) -> bool:
        """The writer has a thread of its own."""
        return False

    async def read(self, query: Query[T]) -> T:
        """Point reads that wait together become one query."""
        opened, asked = self._opened, cast(Any, query)
        found: Awaitable[Any]
        match asked:
            case reads.Executions():
                found = opened.executions.get(asked.org, asked.ids)
            case reads.LastEvents():
                found = opened.last_events.get(asked.org, asked.ids)
            case _:
                answer, arguments = ANSWERS[type(query)], query.arguments
                found = self._read(lambda connection: answer(connection, **arguments))
        return cast(T, await found)

    def vitals(self) -> Vitals:
        return Vitals(readers=self._database.config.readers, reads=self._open.reads.running if self._open else 0)

    async def changed_elsewhere(self) -> bool:
        if self._readers is None:
            return False
        # The writer's connection is asked: to any other, our own commits would look like somebody else's.
        return await self._opened.reads.run(self._writer.changed_elsewhere, self._writer.post)

    async def until_changed(self, patience_s: float) -> None:
        """SQLite tells nobody."""
        await asyncio.sleep(patience_s)

    @property
    def _opened(self) -> _Open:
        if self._open is None:
            raise EngineStopped("the store is not open")
        return self._open

    async def _read(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        return await self._opened.reads.run(work)


class _Open:
    """What exists only between `open` and `close`."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self.executions: Coalesced[Execution] = reads.coalesced(read.executions)
        self.last_events: Coalesced[HistoryEvent] = reads.coalesced(read.last_events)
