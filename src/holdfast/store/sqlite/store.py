"""The SQLite store: puts the writer and the readers together behind the `Store` protocol."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from holdfast.config import StoreConfig
from holdfast.errors import EngineStopped
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import (
    DeadLetter,
    DefinitionRow,
    Execution,
    OutputRow,
    TaskRow,
    TimerRow,
    WorkerRow,
    WorkflowStatus,
)
from holdfast.model.keys import ApiKey, AuditRow, Org
from holdfast.model.messages import (
    DeadEvent,
    DeliveryRow,
    EventKeyRow,
    PromiseRow,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
)
from holdfast.model.pauses import Pause
from holdfast.store.closed_pages import ClosedPage
from holdfast.store.protocol import Batch, BatchSource, Clock
from holdfast.store.queries import Backlog, ExecutionQuery, Inconsistency, Vitals
from holdfast.store.sqlite import caller_transaction, definitions, deletions, keys, pages, pauses, read, read_messages
from holdfast.store.sqlite.backlog import backlog
from holdfast.store.sqlite.connections import Database
from holdfast.store.sqlite.open_files import OPEN_FILES
from holdfast.store.sqlite.readers import Coalesced, Readers, Reads
from holdfast.store.sqlite.writer import Writer

T = TypeVar("T")


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
    def has_peers(self) -> bool:
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
        return caller_transaction.run_on(self._database, connection, batch)

    def renew(self, worker: str, lease_s: float) -> bool:
        """The writer has a thread of its own."""
        return False

    async def executions(self, org: str, ids: Sequence[str]) -> dict[str, Execution]:
        return await self._opened.executions.get(org, ids)

    async def last_events(self, org: str, ids: Sequence[str]) -> dict[str, HistoryEvent]:
        return await self._opened.last_events.get(org, ids)

    async def execution_by_workflow_id(self, org: str, workflow_id: str) -> Execution | None:
        return await self._read(lambda connection: read.execution_by_workflow_id(connection, org, workflow_id))

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None, types: Sequence[str] = ()
    ) -> list[HistoryEvent]:
        return await self._read(
            lambda connection: read.history(connection, org, execution_id, after=after, limit=limit, types=types)
        )

    async def events_of(self, org: str, ids: Sequence[str], types: Sequence[str]) -> dict[str, list[HistoryEvent]]:
        return await self._read(lambda connection: read.events_of(connection, org, ids, types))

    async def list_executions(self, query: ExecutionQuery) -> list[Execution]:
        return await self._read(lambda connection: pages.list_executions(connection, query))

    async def count_executions(self, org: str) -> dict[WorkflowStatus, int]:
        return await self._read(lambda connection: read.count_executions(connection, org))

    async def tasks(self, org: str, execution_id: str) -> list[TaskRow]:
        return await self._read(lambda connection: read.tasks(connection, org, execution_id))

    async def tasks_of(self, org: str, ids: Sequence[str]) -> dict[str, list[TaskRow]]:
        return await self._read(lambda connection: read.tasks_of(connection, org, ids))

    async def task(self, org: str, execution_id: str, task_no: int) -> TaskRow | None:
        return await self._read(lambda connection: read.task(connection, org, execution_id, task_no))

    async def task_output(self, org: str, execution_id: str, task_no: int, after: int, limit: int) -> list[OutputRow]:
        return await self._read(
            lambda connection: read.task_output(connection, org, execution_id, task_no, after=after, limit=limit)
        )

    async def timers(self, org: str, execution_id: str) -> list[TimerRow]:
        return await self._read(lambda connection: read.timers(connection, org, execution_id))

    async def dead_letters(self, org: str, execution_id: str | None = None, limit: int = 100) -> list[DeadLetter]:
        return await self._read(lambda connection: read.dead_letters(connection, org, execution_id, limit))

    async def promises(self, org: str, execution_id: str) -> list[PromiseRow]:
        return await self._read(lambda connection: read_messages.promises(connection, org, execution_id))

    async def waits(self, org: str, execution_id: str) -> list[SubscriptionRow]:
        return await self._read(lambda connection: read_messages.waits(connection, org, execution_id))

    async def waits_of_key(self, org: str, kind: SubscriptionKind, key: str, limit: int) -> list[SubscriptionRow]:
        return await self._read(lambda connection: read_messages.waits_of_key(connection, org, kind, key, limit))

    async def published(self, org: str, key: str | None, before: int | None, limit: int) -> list[PublishedRow]:
        return await self._read(lambda connection: read_messages.published(connection, org, key, before, limit))

    async def dead_events(self, org: str, key: str | None, before: int | None, limit: int) -> list[DeadEvent]:
        return await self._read(lambda connection: read_messages.dead_events(connection, org, key, before, limit))

    async def event_key(self, org: str, key: str) -> EventKeyRow:
        return await self._read(lambda connection: read_messages.event_key(connection, org, key))

    async def delivery(self, org: str | None, number: int) -> DeliveryRow | None:
        return await self._read(lambda connection: read_messages.delivery(connection, org, number))

    async def key_by_hash(self, key_hash: str) -> tuple[ApiKey, Org] | None:
        return await self._read(lambda connection: keys.key_by_hash(connection, key_hash))

    async def key(self, org: str, key_id: str) -> ApiKey | None:
        return await self._read(lambda connection: keys.key(connection, org, key_id))

    async def keys(self, org: str, before: str | None, limit: int) -> list[ApiKey]:
        return await self._read(lambda connection: keys.keys(connection, org, before, limit))

    async def any_keys(self) -> bool:
        return await self._read(keys.any_keys)

    async def org(self, slug: str) -> Org | None:
        return await self._read(lambda connection: keys.org(connection, slug))

    async def orgs(self, after: str, limit: int) -> list[Org]:
        return await self._read(lambda connection: keys.orgs(connection, after, limit))

    async def audit(self, org: str, before: int | None, limit: int) -> list[AuditRow]:
        return await self._read(lambda connection: keys.audit(connection, org, before, limit))

    async def definitions(self, org: str, limit: int) -> list[DefinitionRow]:
        return await self._read(lambda connection: definitions.definitions(connection, org, limit))

    async def workers(self, org: str, limit: int) -> list[WorkerRow]:
        return await self._read(lambda connection: definitions.workers(connection, org, limit))

    async def deletions(self) -> list[tuple[str, int]]:
        return await self._read(deletions.deletions)

    async def holds_any(self, org: str) -> bool:
        return await self._read(lambda connection: deletions.holds_any(connection, org))

    async def closed_page(self, before: int, after: str, limit: int) -> ClosedPage:
        return await self._read(lambda connection: deletions.closed_page(connection, before, after, limit))

    async def has_remains(self) -> bool:
        return await self._read(deletions.has_remains)

    async def pauses(self) -> list[Pause]:
        return await self._read(pauses.pauses)

    async def next_due_at(self, after: int) -> int | None:
        return await self._read(lambda connection: read.next_due_at(connection, after))

    async def pending_events_for(self, worker: str) -> list[tuple[str, int]]:
        return await self._read(lambda connection: read.pending_events_for(connection, worker))

    async def backlog(self, now: int, most: int) -> Backlog:
        return await self._read(lambda connection: backlog(connection, now, most))

    def vitals(self) -> Vitals:
        return Vitals(readers=self._database.config.readers, reads=self._open.reads.running if self._open else 0)

    async def inconsistencies(self, org: str, limit: int) -> list[Inconsistency]:
        return await self._read(lambda connection: read.inconsistencies(connection, org, limit))

    async def changed_elsewhere(self) -> bool:
        if self._readers is None:
            return False
        # The writer's connection is asked: to any other, our own commits would look like somebody else's.
        return await self._opened.reads.run(self._writer.changed_elsewhere, self._writer.post)

    async def until_changed(self, wait_s: float) -> None:
        """SQLite tells nobody."""
        await asyncio.sleep(wait_s)

    @property
    def _opened(self) -> _Open:
        if self._open is None:
            raise EngineStopped("the store is not open")
        return self._open

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._opened.reads.run(work)


class _Open:
    """What exists only between `open` and `close`."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self.executions: Coalesced[Execution] = reads.coalesced(read.executions)
        self.last_events: Coalesced[HistoryEvent] = reads.coalesced(read.last_events)
