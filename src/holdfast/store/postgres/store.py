"""The PostgreSQL store: puts the writer, the readers and the hints together behind the `Store` protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, ClassVar, TypeVar

from holdfast.config import StoreConfig
from holdfast.errors import EngineStopped, HoldfastError
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
from holdfast.store.postgres import definitions, deletions, keys, pages, pauses, read, read_messages
from holdfast.store.postgres.backlog import backlog
from holdfast.store.postgres.caller_transaction import Joining
from holdfast.store.postgres.clocks import DatabaseClock
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.histories import Histories
from holdfast.store.postgres.leases import renew
from holdfast.store.postgres.notifications import Notifications
from holdfast.store.postgres.readers import QUEUE_S, Coalesced, Reads
from holdfast.store.postgres.settings import Settings, settings
from holdfast.store.postgres.statements import Connection
from holdfast.store.postgres.writer import Writer
from holdfast.store.protocol import Batch, BatchSource, Clock
from holdfast.store.queries import Backlog, ExecutionQuery, Inconsistency, Vitals

T = TypeVar("T")
_log = logging.getLogger("holdfast.store")


class PostgresStore:
    """One database on a PostgreSQL server, which any number of nodes may share.

    `clock` replaces the database's own, for tests that own the time.
    """

    writes_on_loop: ClassVar[bool] = True

    def __init__(self, url: str, config: StoreConfig, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or DatabaseClock()
        self._database = Database(url, config, self.clock)
        self._notifications = Notifications(self._database)
        self._writer = Writer(self._database, self.clock, self._notifications.notify_peers)
        self._caller_transactions = Joining(self._database, self._writer.transactions, self._notifications)
        self._open: _Open | None = None

    @property
    def has_peers(self) -> bool:
        return self._notifications.has_peers

    async def open(self, source: BatchSource) -> None:
        async with AsyncExitStack() as undo:
            await self._writer.start(source)
            undo.push_async_callback(self._writer.stop)
            reads = Reads(self._database, await self._database.open_pool(self._database.config.readers))
            undo.push_async_callback(reads.stop)
            own = Reads(self._database, await self._database.open_pool(1))
            undo.push_async_callback(own.stop)
            undo.push_async_callback(self._notifications.stop)
            await self._notifications.start()
            common = await own.run(settings)
            self._open = _Open(reads, own, common)
            self._caller_transactions.start(own, common.identity)
            undo.pop_all()

    async def close(self) -> None:
        opened, self._open = self._open, None
        await self._caller_transactions.stop()
        await self._writer.stop()
        await self._notifications.stop()
        if opened is not None:
            await opened.own.stop()
            await opened.reads.stop()

    def wake(self) -> None:
        self._writer.wake()

    def run_on(self, connection: Any, batch: Batch) -> Awaitable[None] | None:
        _ = self._opened
        return self._caller_transactions.run_on(connection, batch)

    def renew(self, worker: str, lease_s: float) -> bool:
        """On a connection and a loop for this moment: the writer's own may be blocked by what runs beside it."""
        try:
            return asyncio.run(renew(self._database, worker, lease_s))
        except HoldfastError as error:
            _log.warning("the lease of worker %s could not be kept: %s", worker, error)
            return False

    @property
    def shared_secret(self) -> bytes:
        """What the nodes of this database make their tokens from, unless they are given something else."""
        return self._opened.settings.secret

    async def executions(self, org: str, ids: Sequence[str]) -> dict[str, Execution]:
        return await self._opened.executions.get(org, ids)

    async def last_events(self, org: str, ids: Sequence[str]) -> dict[str, HistoryEvent]:
        return await self._opened.last_events.get(org, ids)

    async def execution_by_workflow_id(self, org: str, workflow_id: str) -> Execution | None:
        return await self._read(lambda connection: read.execution_by_workflow_id(connection, org, workflow_id))

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None, types: Sequence[str] = ()
    ) -> list[HistoryEvent]:
        if limit is None and not types:
            return await self._opened.histories.get(org, execution_id, after)
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
        return await self._read_own(lambda connection: keys.key_by_hash(connection, key_hash))

    async def key(self, org: str, key_id: str) -> ApiKey | None:
        return await self._read(lambda connection: keys.key(connection, org, key_id))

    async def keys(self, org: str, before: str | None, limit: int) -> list[ApiKey]:
        return await self._read(lambda connection: keys.keys(connection, org, before, limit))

    async def any_keys(self) -> bool:
        return await self._read_own(keys.any_keys)

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
        return await self._read_own(pauses.pauses)

    async def next_due_at(self, after: int) -> int | None:
        due_cursor = self._writer.transactions.due_cursor
        return await self._read_own(lambda connection: due_cursor.next_due_at(connection, after, self.clock()))

    @property
    def due_from(self) -> int:
        """Where passes over due work begin; 0 unless there are dead rows in front."""
        return self._writer.transactions.due_cursor.at

    async def pending_events_for(self, worker: str) -> list[tuple[str, int]]:
        return await self._read_own(lambda connection: read.pending_events_for(connection, worker))

    async def backlog(self, now: int, most: int) -> Backlog:
        return await self._read(lambda connection: backlog(connection, now, most))

    def vitals(self) -> Vitals:
        return Vitals(
            readers=self._database.config.readers,
            reads=self._open.reads.running if self._open is not None else 0,
            notifications_healthy=self._notifications.healthy if self._notifications.enabled else None,
        )

    async def inconsistencies(self, org: str, limit: int) -> list[Inconsistency]:
        return await self._read(lambda connection: read.inconsistencies(connection, org, limit))

    async def changed_elsewhere(self) -> bool:
        _ = self._opened
        return self._notifications.take_changed()

    async def until_changed(self, wait_s: float) -> None:
        await self._notifications.wait(wait_s)

    @property
    def _opened(self) -> _Open:
        if self._open is None:
            raise EngineStopped("the store is not open")
        return self._open

    async def _read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._opened.reads.run(work, QUEUE_S)

    async def _read_own(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._opened.own.run(work)


class _Open:
    """What exists only between `open` and `close`. `own` is for what everything else waits for: timers, programs that
    are rebuilt, news of other nodes, keys. Short reads all of them, however long the lists that callers ask for."""

    def __init__(self, reads: Reads, own: Reads, common: Settings) -> None:
        self.reads = reads
        self.own = own
        self.settings = common
        self.executions: Coalesced[Execution] = reads.coalesced(read.executions)
        self.last_events: Coalesced[HistoryEvent] = reads.coalesced(read.last_events)
        self.histories = Histories(own)
