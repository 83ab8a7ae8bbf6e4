"""One node's way to a `MemoryDatabase`: takes batches and runs each as one step, answers reads.

`Faults` is what stands between the node and the database. The plain one lets everything through at once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

from holdfast.errors import EngineStopped, InvalidRequest, OutcomeUnknown, StorageBusy
from holdfast.store.looks import Vitals
from holdfast.store.protocol import Batch, BatchSource, Changes, Clock, Loaded
from holdfast.store.reads import Query
from holdfast.testing.memory import read
from holdfast.testing.memory.database import MemoryDatabase
from holdfast.testing.memory.load import load
from holdfast.testing.memory.write import write

T = TypeVar("T")
_log = logging.getLogger("holdfast.store")
_TRIES = 100
_NOTHING = Changes()
_HINT_S = 0.05


@dataclass(frozen=True)
class Doubt:
    """The answer to a COMMIT is lost: whether it `stands`, and after how long the node finds out. Callers who can't
    wait that long are told after `told_after_s` that it is not known, if that comes first."""

    stands: bool
    lasts_s: float
    told_after_s: float


class Faults:
    """What happens around a node's transactions and reads. Override to make trouble."""

    def schedule(self, work: Callable[[], None], context: Context) -> None:
        """Run the next batch: by default as soon as the loop gets to it."""
        asyncio.get_running_loop().call_soon(work, context=context)

    def before_commit(self) -> None:
        """Raise to lose the transaction before its commit: nothing of it is written. StorageBusy is tried again at
        once, unless its details say that it is `final`."""

    def doubt(self) -> Doubt | None:
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
        self._told_commits = -1

    @property
    def database(self) -> MemoryDatabase:
        return self._database

    @property
    def in_company(self) -> bool:
        return len(self._database.listeners) > 1

    async def open(self, source: BatchSource) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        # Whoever wakes the store, its work is the node's own.
        self._context = copy_context()
        self._source = source
        self._changed: asyncio.Future[None] | None = None
        self._told_of: asyncio.Future[None] | None = None
        self._hears: asyncio.Future[None] | None = None
        self._database.listeners.append(self._heard)

    async def close(self) -> None:
        while self._waits:
            self._hears = self._loop.create_future()
            await self._hears
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

    def _tell(self, batch: Batch) -> None:
        """Now, or later: the next batch has to know what this one has handed out."""
        pause_s = self._faults.pause_s()
        if not pause_s:
            batch.committed()
            return
        self._wait(pause_s, batch, stands=True)

    def _wait(self, pause_s: float, batch: Batch, *, stands: bool) -> None:
        self._waits = True
        self._loop.call_later(pause_s, self._told, batch, stands, context=self._context)

    def _told(self, batch: Batch, stands: bool) -> None:
        """How a commit ended. One that does not stand is made again, from a fresh load."""
        self._waits = False
        if stands:
            batch.committed()
        else:
            self._run(batch)
        self._round()
        if self._hears is not None and not self._waits:
            _end(self._hears)

    def _ask(self, batch: Batch, doubt: Doubt) -> None:
        """As a node does that has lost its database while it committed: it asks until somebody answers."""
        if doubt.told_after_s < doubt.lasts_s:
            unknown = OutcomeUnknown("the database was lost while it committed: whether this call counts is not known")
            self._loop.call_later(doubt.told_after_s, batch.doubted, unknown, context=self._context)
        self._wait(doubt.lasts_s, batch, stands=doubt.stands)

    def _run(self, batch: Batch) -> None:
        """One transaction. If it has to be split, its parts are next."""
        for tries in range(_TRIES):
            try:
                doubt = self._transact(batch)
            except StorageBusy as error:
                if tries + 1 == _TRIES or getattr(error, "details", {}).get("final"):
                    batch.failed(error)
                    return
                continue
            except Exception as error:  # noqa: BLE001 - whatever a rule raises belongs to the batch
                self._settle(batch, error)
                return
            if doubt is None:
                self._tell(batch)
            else:
                self._ask(batch, doubt)
            return

    def _transact(self, batch: Batch) -> Doubt | None:
        loaded: Loaded = load(self._database, batch.plan(), self.clock())
        changes: Changes = batch.decide(loaded)
        if changes == _NOTHING:
            return None
        self._faults.before_commit()
        doubt = self._faults.doubt()
        if doubt is None or doubt.stands:
            write(self._database, changes, loaded.now)
            self._own_commits += 1
            for listener in self._database.listeners:
                listener(self)
            if self._database.watch is not None:
                self._database.watch()
        return doubt

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

    async def read(self, query: Query[T]) -> T:
        database = await self._open()
        return cast(T, read.ANSWERS[type(query)](database, **query.arguments))

    def vitals(self) -> Vitals:
        return Vitals(readers=1)

    async def changed_elsewhere(self) -> bool:
        commits = (await self._open()).commits - self._own_commits
        if not self._faults.hint():
            return False
        told, self._told_commits = self._told_commits, commits
        return told != commits

    async def until_changed(self, patience_s: float) -> None:
        self._changed = self._loop.create_future()
        waking = self._loop.call_later(patience_s, _end, self._changed)
        try:
            await self._changed
        finally:
            waking.cancel()

    def _heard(self, writer: object) -> None:
        changed = self._changed
        # One hint for whatever is written until it arrives.
        if writer is self or changed is None or changed is self._told_of or not self._faults.hint():
            return
        self._told_of = changed
        self._loop.call_later(_HINT_S, _end, changed, context=self._context)


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
