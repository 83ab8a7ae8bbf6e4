"""The PostgreSQL store: puts the writer, the readers and the hints together behind the `Store` protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Final, TypeVar, cast

from holdfast.config import StoreConfig
from holdfast.errors import EngineStopped, HoldfastError
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Execution
from holdfast.model.keys import ApiKey
from holdfast.model.pauses import Pause
from holdfast.store import reads
from holdfast.store.looks import Vitals
from holdfast.store.postgres import deletions, pages, plain, read, read_messages
from holdfast.store.postgres.clocks import DatabaseClock
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.hints import Hints
from holdfast.store.postgres.histories import Histories
from holdfast.store.postgres.joining import Joining
from holdfast.store.postgres.leases import renew
from holdfast.store.postgres.readers import QUEUE_S, Coalesced, Reads
from holdfast.store.postgres.settings import Settings, settings
from holdfast.store.postgres.statements import Connection
from holdfast.store.postgres.writer import Writer
from holdfast.store.protocol import Batch, BatchSource, Clock
from holdfast.store.reads import Query

T = TypeVar("T")
_log = logging.getLogger("holdfast.store")

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
    reads.NewsFor: read.news_for,
    reads.Backlogs: read.backlog,
    reads.Inconsistencies: read.inconsistencies,
}
"""Which function answers a question, but for those that are asked together, and for when something is due."""

_URGENT: Final = frozenset({reads.KeyByHash, reads.NewsFor, Pause, ApiKey})
"""Questions that the engine waits for, and records that it asks for."""


class PostgresStore:
    """One database on a PostgreSQL server, which any number of nodes may share.

    `clock` replaces the database's own, for tests that own the time.
    """

    writes_on_loop: ClassVar[bool] = True

    def __init__(self, url: str, config: StoreConfig, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or DatabaseClock()
        self._database = Database(url, config, self.clock)
        self._hints = Hints(self._database)
        self._writer = Writer(self._database, self.clock, self._hints.tell)
        self._joining = Joining(self._database, self._writer.transactions, self._hints)
        self._open: _Open | None = None

    @property
    def in_company(self) -> bool:
        return self._hints.in_company

    async def open(self, source: BatchSource) -> None:
        async with AsyncExitStack() as undo:
            await self._writer.start(source)
            undo.push_async_callback(self._writer.stop)
            reads = Reads(self._database, await self._database.open_pool(self._database.config.readers))
            undo.push_async_callback(reads.stop)
            own = Reads(self._database, await self._database.open_pool(1))
            undo.push_async_callback(own.stop)
            undo.push_async_callback(self._hints.stop)
            await self._hints.start()
            common = await own.run(settings)
            self._open = _Open(reads, own, common)
            self._joining.start(own, common.identity)
            undo.pop_all()

    async def close(self) -> None:
        opened, self._open = self._open, None
        await self._joining.stop()
        await self._writer.stop()
        await self._hints.stop()
        if opened is not None:
            await opened.own.stop()
            await opened.reads.stop()

    def wake(self) -> None:
        self._writer.wake()

    def run_on(self, connection: Any, batch: Batch) -> Awaitable[None] | None:
        _ = self._opened
        return self._joining.run_on(connection, batch)

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

    async def read(self, query: Query[T]) -> T:
        """Reads that wait together become one query; those that the engine waits for have a connection of their own."""
        opened, asked = self._opened, cast(Any, query)
        found: Awaitable[Any]
        match asked:
            case reads.Executions():
                found = opened.executions.get(asked.org, asked.ids)
            case reads.LastEvents():
                found = opened.last_events.get(asked.org, asked.ids)
            case reads.History(limit=None) if not asked.types:
                found = opened.histories.get(asked.org, asked.execution_id, asked.after)
            case reads.NextDueAt():
                floor = self._writer.transactions.floor
                found = self._read_own(lambda connection: floor.next_due_at(connection, asked.after, self.clock()))
            case _:
                answer, arguments = ANSWERS[type(query)], query.arguments
                run = self._read_own if _is_urgent(query) else self._read
                found = run(lambda connection: answer(connection, **arguments))
        return cast(T, await found)

    @property
    def due_from(self) -> int:
        """Where passes over due work begin; 0 unless there are dead rows in front."""
        return self._writer.transactions.floor.at

    def vitals(self) -> Vitals:
        return Vitals(
            readers=self._database.config.readers,
            reads=self._open.reads.running if self._open is not None else 0,
            hints_healthy=self._hints.healthy if self._hints.enabled else None,
        )

    async def changed_elsewhere(self) -> bool:
        _ = self._opened
        return self._hints.take_changed()

    async def until_changed(self, patience_s: float) -> None:
        await self._hints.wait(patience_s)

    @property
    def _opened(self) -> _Open:
        if self._open is None:
            raise EngineStopped("the store is not open")
        return self._open

    async def _read(self, work: Callable[[Connection], Awaitable[Any]]) -> Any:
        return await self._opened.reads.run(work, QUEUE_S)

    async def _read_own(self, work: Callable[[Connection], Awaitable[Any]]) -> Any:
        return await self._opened.own.run(work)


def _is_urgent(query: Query[Any]) -> bool:
    return type(query) in _URGENT or getattr(query, "record", None) in _URGENT


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
