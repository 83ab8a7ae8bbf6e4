"""One node's way to a `MemoryDatabase`: takes batches and runs each as one step, answers reads.

`Faults` is what stands between the node and the database. The plain one lets everything through at once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.errors import EngineStopped, InvalidRequest, OutcomeUnknown, StorageBusy
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
from holdfast.model.standalone import is_reserved
from holdfast.store.closed_pages import ClosedPage, closed_after, page_of
from holdfast.store.protocol import Batch, BatchSource, Changes, Clock, Loaded
from holdfast.store.queries import Backlog, ExecutionQuery, Inconsistency, Vitals
from verification.memory import keys, read
from verification.memory.database import MemoryDatabase, copied
from verification.memory.deletions import holds_any
from verification.memory.load import load
from verification.memory.write import write

_log = logging.getLogger("holdfast.store")
_TRIES = 100
_NOTHING = Changes()
_HINT_S = 0.05


@dataclass(frozen=True)
class InDoubtCommit:
    """The answer to a COMMIT is lost: whether it `stands`, and after how long the node finds out. Callers who can't
    wait that long are told after `notified_after_s` that it is not known, if that comes first."""

    stands: bool
    lasts_s: float
    notified_after_s: float


class Faults:
    """What happens around a node's transactions and reads. Override to make trouble."""

    def schedule(self, work: Callable[[], None], context: Context) -> None:
        """Run the next batch: by default as soon as the loop gets to it."""
        asyncio.get_running_loop().call_soon(work, context=context)

    def before_commit(self) -> None:
        """Raise to lose the transaction before its commit: nothing of it is written. StorageBusy is tried again at
        once, unless its details say that it is `final`."""

    def in_doubt(self) -> InDoubtCommit | None:
        """Not None to lose the answer to a commit. The node does nothing else until it knows."""
        return None

    def pause_s(self) -> float:
        """How long the news of a commit takes to reach the node. Until then it does nothing else."""
        return 0.0

    def hint(self) -> bool:
        """Whether the node hears now that others have written; if not, it will when it asks again."""
        return True

    async def before_read(self) -> None:
        """Called before every read."""


class MemoryStore:
    """A `Store`. Used from one event loop; `wake` may be called from any thread."""

    writes_on_loop: ClassVar[bool] = False

    def __init__(self, database: MemoryDatabase, clock: Clock, faults: Faults | None = None) -> None:
        self.clock = clock
        self._database = database
        self._faults = faults or Faults()
        self._source: BatchSource | None = None
        self._parts: deque[Batch] = deque()
        """What a batch was split into, and has not run yet."""
        self._awake = False
        self._waits = False
        self._own_commits = 0
        self._seen_commits = -1

    @property
    def database(self) -> MemoryDatabase:
        return self._database

    @property
    def has_peers(self) -> bool:
        return len(self._database.listeners) > 1

    async def open(self, source: BatchSource) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        # Whoever wakes the store, its work is the node's own.
        self._context = copy_context()
        self._source = source
        self._changed: asyncio.Future[None] | None = None
        self._seen_of: asyncio.Future[None] | None = None
        self._hears_peers: asyncio.Future[None] | None = None
        self._database.listeners.append(self._heard)

    async def close(self) -> None:
        while self._waits:
            self._hears_peers = self._loop.create_future()
            await self._hears_peers
        if self._source is not None:
            self._work()
            self._source = None
            self._database.listeners.remove(self._heard)

    def wake(self) -> None:
        if self._awake:
            return
        self._awake = True
        if threading.get_ident() == self._thread:
            self._faults.schedule(self._round, self._context)
        else:
            self._loop.call_soon_threadsafe(self._round)

    def renew(self, worker: str, lease_s: float) -> bool:
        """Nothing here can be blocked without the heartbeat."""
        return False

    def run_on(self, connection: Any, batch: Batch) -> Awaitable[None] | None:
        raise InvalidRequest("a database in memory has no connections to join", field="using")

    # --- writing ---

    def _round(self) -> None:
        # Before looking: what is handed in from now on asks for another round.
        self._awake = False
        if self._source is None or self._waits:
            return
        try:
            self._work()
        except Exception:  # noqa: BLE001 - a bug in a batch must not end all writing
            _log.exception("the writer of a database in memory goes on after an error")

    def _work(self) -> None:
        while self._source is not None and not self._waits:
            batch = self._parts.popleft() if self._parts else self._source.take()
            if batch is None:
                return
            self._run(batch)

    def _notify(self, batch: Batch) -> None:
        """Now, or later: the next batch has to know what this one has handed out."""
        pause_s = self._faults.pause_s()
        if not pause_s:
            batch.committed()
            return
        self._wait(pause_s, batch, stands=True)

    def _wait(self, pause_s: float, batch: Batch, *, stands: bool) -> None:
        self._waits = True
        self._loop.call_later(pause_s, self._notified, batch, stands, context=self._context)

    def _notified(self, batch: Batch, stands: bool) -> None:
        """How a commit ended. One that does not stand is made again, from a fresh load."""
        self._waits = False
        if stands:
            batch.committed()
        else:
            self._run(batch)
        self._round()
        if self._hears_peers is not None and not self._waits:
            _end(self._hears_peers)

    def _ask(self, batch: Batch, in_doubt: InDoubtCommit) -> None:
        """As a node does that has lost its database while it committed: it asks until somebody answers."""
        if in_doubt.notified_after_s < in_doubt.lasts_s:
            unknown = OutcomeUnknown("the database was lost while it committed: whether this call counts is not known")
            self._loop.call_later(in_doubt.notified_after_s, batch.commit_in_doubt, unknown, context=self._context)
        self._wait(in_doubt.lasts_s, batch, stands=in_doubt.stands)

    def _run(self, batch: Batch) -> None:
        """One transaction. If it has to be split, its parts are next."""
        for tries in range(_TRIES):
            try:
                in_doubt = self._transact(batch)
            except StorageBusy as error:
                if tries + 1 == _TRIES or getattr(error, "details", {}).get("final"):
                    batch.failed(error)
                    return
                continue
            except Exception as error:  # noqa: BLE001 - whatever a rule raises belongs to the batch
                self._settle(batch, error)
                return
            if in_doubt is None:
                self._notify(batch)
            else:
                self._ask(batch, in_doubt)
            return

    def _transact(self, batch: Batch) -> InDoubtCommit | None:
        loaded: Loaded = load(self._database, batch.plan(), self.clock())
        changes: Changes = batch.decide(loaded)
        if changes == _NOTHING:
            return None
        self._faults.before_commit()
        in_doubt = self._faults.in_doubt()
        if in_doubt is None or in_doubt.stands:
            write(self._database, changes, loaded.now)
            self._own_commits += 1
            for listener in self._database.listeners:
                listener(self)
            if self._database.watch is not None:
                self._database.watch()
        return in_doubt

    def _settle(self, batch: Batch, error: Exception) -> None:
        members = batch.split()
        if len(members) <= 1:
            batch.failed(error)
            return
        self._parts.extendleft(reversed(members))

    # --- reading ---

    async def _open(self) -> MemoryDatabase:
        if self._source is None:
            raise EngineStopped("the store is not open")
        await self._faults.before_read()
        return self._database

    async def executions(self, org: str, ids: Sequence[str]) -> dict[str, Execution]:
        return read.executions(await self._open(), org, ids)

    async def execution_by_workflow_id(self, org: str, workflow_id: str) -> Execution | None:
        return read.execution_by_workflow_id(await self._open(), org, workflow_id)

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None, types: Sequence[str] = ()
    ) -> list[HistoryEvent]:
        return read.history(await self._open(), org, execution_id, after=after, limit=limit, types=types)

    async def last_events(self, org: str, ids: Sequence[str]) -> dict[str, HistoryEvent]:
        return read.last_events(await self._open(), org, ids)

    async def events_of(self, org: str, ids: Sequence[str], types: Sequence[str]) -> dict[str, list[HistoryEvent]]:
        database = await self._open()
        found = {key: read.history(database, org, key, after=0, limit=None, types=types) for key in ids}
        return {key: events for key, events in found.items() if events}

    async def list_executions(self, query: ExecutionQuery) -> list[Execution]:
        return read.list_executions(await self._open(), query)

    async def count_executions(self, org: str) -> dict[WorkflowStatus, int]:
        return read.count_executions(await self._open(), org)

    async def tasks(self, org: str, execution_id: str) -> list[TaskRow]:
        database = await self._open()
        return database.of_execution(database.tasks, org, execution_id)

    async def tasks_of(self, org: str, ids: Sequence[str]) -> dict[str, list[TaskRow]]:
        database = await self._open()
        found = {key: database.of_execution(database.tasks, org, key) for key in ids}
        return {key: tasks for key, tasks in found.items() if tasks}

    async def task(self, org: str, execution_id: str, task_no: int) -> TaskRow | None:
        found = (await self._open()).tasks.get((execution_id, task_no))
        return copied(found) if found is not None and found.org == org else None

    async def task_output(self, org: str, execution_id: str, task_no: int, after: int, limit: int) -> list[OutputRow]:
        return read.task_output(await self._open(), org, (execution_id, task_no), after, limit)

    async def timers(self, org: str, execution_id: str) -> list[TimerRow]:
        database = await self._open()
        return database.of_execution(database.timers, org, execution_id)

    async def dead_letters(self, org: str, execution_id: str | None = None, limit: int = 100) -> list[DeadLetter]:
        return read.dead_letters(await self._open(), org, execution_id, limit)

    async def promises(self, org: str, execution_id: str) -> list[PromiseRow]:
        database = await self._open()
        found: list[PromiseRow] = database.of_execution(database.promises, org, execution_id)
        return sorted(found, key=lambda row: (row.promise_no, row.name))

    async def waits(self, org: str, execution_id: str) -> list[SubscriptionRow]:
        database = await self._open()
        return database.of_execution(database.subscriptions, org, execution_id)

    async def waits_of_key(self, org: str, kind: SubscriptionKind, key: str, limit: int) -> list[SubscriptionRow]:
        rows = sorted((await self._open()).subscriptions.items())
        return [row for _, row in rows if (row.org, row.kind, row.key) == (org, kind, key)][:limit]

    async def published(self, org: str, key: str | None, before: int | None, limit: int) -> list[PublishedRow]:
        return _newest((await self._open()).published, org, key, before, limit)

    async def dead_events(self, org: str, key: str | None, before: int | None, limit: int) -> list[DeadEvent]:
        return _newest((await self._open()).dead_events, org, key, before, limit)

    async def event_key(self, org: str, key: str) -> EventKeyRow:
        return read.event_key(await self._open(), org, key)

    async def delivery(self, org: str | None, number: int) -> DeliveryRow | None:
        return read.delivery(await self._open(), org, number)

    async def key_by_hash(self, key_hash: str) -> tuple[ApiKey, Org] | None:
        return keys.key_by_hash(await self._open(), key_hash)

    async def key(self, org: str, key_id: str) -> ApiKey | None:
        return keys.key(await self._open(), org, key_id)

    async def keys(self, org: str, before: str | None, limit: int) -> list[ApiKey]:
        return keys.keys(await self._open(), org, before, limit)

    async def any_keys(self) -> bool:
        return bool((await self._open()).keys)

    async def org(self, slug: str) -> Org | None:
        return (await self._open()).orgs.get(slug)

    async def orgs(self, after: str, limit: int) -> list[Org]:
        return keys.orgs(await self._open(), after, limit)

    async def audit(self, org: str, before: int | None, limit: int) -> list[AuditRow]:
        return keys.audit(await self._open(), org, before, limit)

    async def definitions(self, org: str, limit: int) -> list[DefinitionRow]:
        known = (await self._open()).definitions.values()
        found = [row for row in known if row.org == org and not is_reserved(row.kind)]
        return sorted(found, key=lambda row: (row.kind, -row.registered_at, row.version))[:limit]

    async def workers(self, org: str, limit: int) -> list[WorkerRow]:
        found = [copied(row) for row in (await self._open()).workers.values() if row.org == org]
        return sorted(found, key=lambda row: (-row.started_at, row.id))[:limit]

    async def deletions(self) -> list[tuple[str, int]]:
        return sorted((await self._open()).deletions.items())

    async def holds_any(self, org: str) -> bool:
        return holds_any(await self._open(), org)

    async def closed_page(self, before: int, after: str, limit: int) -> ClosedPage:
        execution_rows = (await self._open()).execution_rows.values()
        places = {
            (execution_row.closed_at, execution_row.id): execution_row
            for execution_row in execution_rows
            if execution_row.closed_at is not None
        }
        found = sorted(place for place in places if place > closed_after(after) and place[0] < before)[:limit]
        rows = [(key, at, places[at, key].last_seq, places[at, key].open_children) for at, key in found]
        return page_of(rows, limit)

    async def has_remains(self) -> bool:
        return bool((await self._open()).remains)

    async def pauses(self) -> list[Pause]:
        return [pause for _, pause in sorted((await self._open()).pauses.items())]

    async def next_due_at(self, after: int) -> int | None:
        return read.next_due_at(await self._open(), after)

    async def backlog(self, now: int, most: int) -> Backlog:
        return read.backlog(await self._open(), now, most)

    def vitals(self) -> Vitals:
        return Vitals(readers=1)

    async def pending_events_for(self, worker: str) -> list[tuple[str, int]]:
        return read.pending_events_for(await self._open(), worker)

    async def inconsistencies(self, org: str, limit: int) -> list[Inconsistency]:
        return read.inconsistencies(await self._open(), org, limit)

    async def changed_elsewhere(self) -> bool:
        commits = (await self._open()).commits - self._own_commits
        if not self._faults.hint():
            return False
        told, self._seen_commits = self._seen_commits, commits
        return told != commits

    async def until_changed(self, wait_s: float) -> None:
        self._changed = self._loop.create_future()
        waking = self._loop.call_later(wait_s, _end, self._changed)
        try:
            await self._changed
        finally:
            waking.cancel()

    def _heard(self, writer: object) -> None:
        changed = self._changed
        # One hint for whatever is written until it arrives.
        if writer is self or changed is None or changed is self._seen_of or not self._faults.hint():
            return
        self._seen_of = changed
        self._loop.call_later(_HINT_S, _end, changed, context=self._context)


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def _newest(table: dict[int, Any], org: str, key: str | None, before: int | None, limit: int) -> list[Any]:
    found = [
        copied(row)
        for number, row in sorted(table.items(), reverse=True)
        if row.org == org and key in (None, row.key) and (before is None or number < before)
    ]
    return found[:limit]
