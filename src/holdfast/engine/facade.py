"""The engine's face: the contract's protocols, each method one line to its operation or read.

`LocalEngine` owns the queue of operations, the desk of local sessions and the outcomes waited for. It promises that a
caller is answered after the commit, and that everything a commit means for this process (work, news, ends) is passed
on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from holdfast.config import EngineConfig
from holdfast.contract import workers as wk
from holdfast.contract.metrics import Metrics
from holdfast.contract.upkeep import DueWork
from holdfast.engine.api import LocalApi
from holdfast.engine.calls import Calls
from holdfast.engine.cursors import Cursors
from holdfast.engine.deleting import Deleting
from holdfast.engine.desk import Desk
from holdfast.engine.execution_reads import ExecutionReads
from holdfast.engine.explanations import Explanations
from holdfast.engine.feeds import LocalFeeds
from holdfast.engine.joining import Joins
from holdfast.engine.keys import Keys
from holdfast.engine.leftovers import Portions
from holdfast.engine.mailboxes import Mailboxes
from holdfast.engine.messages.broadcast import Broadcasts
from holdfast.engine.messages.reads import Messages
from holdfast.engine.operation import Operation
from holdfast.engine.outcomes import Outcomes
from holdfast.engine.promises.settle import Promises
from holdfast.engine.queries import Queries
from holdfast.engine.queues import Queues
from holdfast.engine.rebuilds import Rebuilds
from holdfast.engine.retention import Retention
from holdfast.engine.rules.workspace import Outcome
from holdfast.engine.standalone_tasks import StandaloneTasks
from holdfast.engine.starts import Starts
from holdfast.engine.system import System
from holdfast.engine.unit_of_work import Effects, OperationQueue
from holdfast.engine.updates import Updates
from holdfast.engine.upkeep.forget import Forget
from holdfast.engine.upkeep.run_due import RunDue
from holdfast.engine.worker_facade import LocalWorkers
from holdfast.engine.workers.claim import Claim
from holdfast.engine.workers.unregister import Unregister, UnregisterWorker
from holdfast.errors import EngineStopped, InvalidRequest, SessionLost
from holdfast.model.tokens import REPLAY_KEY
from holdfast.store import reads
from holdfast.store.protocol import Store
from holdfast.telemetry.traces import Tracing

Answer = TypeVar("Answer")


def _generator() -> Callable[[], int]:
    return partial(random.Random().getrandbits, 64)  # noqa: S311 - see its use


class LocalEngine:
    """Engine over a store, in this process. `api`, `workers` and `upkeep` are the contract's protocols.

    `secret` gives what tokens are made from; without, an execution that begins with another one's past has promises
    that no token settles.
    """

    def __init__(
        self,
        store: Store,
        config: EngineConfig,
        entropy: Callable[[], int] | None = None,
        *,
        secret: Callable[[], bytes] = lambda: REPLAY_KEY,
    ) -> None:
        self.store = store
        self.config = config
        self.secret = secret
        self.cursors = Cursors(secret)
        self.desk = Desk(lambda: store.in_company, suspect_from=config.suspect_from)
        self.outcomes = Outcomes()
        self.updates = Updates(store)
        self.feeds = LocalFeeds(store)
        self.retention = Retention(self)
        # Ids and nonces must be unique, not secret: a generator seeded by the system is enough, and 20 times cheaper.
        self.queue = OperationQueue(config, self.desk, entropy or _generator(), self)
        self.queries = Queries(self.desk, self.queue.entropy)
        self.reads = ExecutionReads(store, self.outcomes, self.feeds, self.cursors)
        self.workers = LocalWorkers(self)
        self.messages = Messages(store, self.queue, self.reads.row)
        self.promises = Promises(self.run)
        self.broadcasts = Broadcasts(store, self.queue)
        self.keys = Keys(store, self.queue, secret)
        self.deleting = Deleting(store, self.queue, lambda: self.keys.chain)
        self.tasks = StandaloneTasks(
            store,
            self.run,
            config.limits,
            outcome=self.reads.outcome,
            cursors=lambda: self.cursors,
            tracing=lambda: self.tracing,
            feeds=self.feeds.tasks,
        )
        self.joins = Joins(self)
        self.upkeep = LocalUpkeep(self)
        self.queues = Queues(store, self.queue, self.desk, lambda: self.keys.chain, self.upkeep.claim)
        self.rebuilds = Rebuilds(store, self.queue, secret)
        self.system = System(store, self.queue, config.limits, self.upkeep.claim, lambda: self.metrics)
        self.api: LocalApi = LocalApi(self.run, config.limits, self._nouns())
        self.loop: asyncio.AbstractEventLoop | None = None
        self.tracing: Tracing | None = None
        self.metrics: Metrics | None = None

    def _nouns(self) -> tuple[object, ...]:
        """What answers the operations that are no decisions."""
        store, queue, queries, limits = self.store, self.queue, self.queries, self.config.limits
        return (
            self.reads,
            Starts(self.run, limits, lambda: self.tracing),
            self.rebuilds,
            Calls(self.reads, queue, queries, self.updates),
            Mailboxes(store, queue, queries, self.reads, limits),
            self.queues,
            self.keys,
            self.tasks,
            self.feeds.tasks,
            self.messages,
            self.promises,
            self.broadcasts,
            Explanations(lambda: self.api, store.clock),
            self.system,
        )

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        await self.store.open(self.queue)
        self.queue.start(self.loop, self.store.wake, on_loop=self.store.writes_on_loop)
        await self.queues.refresh()
        self.feeds.start()

    async def stop(self) -> None:
        """Write what is waiting, then refuse everything."""
        await self.joins.stop()
        await self.store.close()
        self.queue.stop()
        self.outcomes.stop(EngineStopped())
        await self.broadcasts.stop()
        self.updates.stop(EngineStopped())
        self.feeds.stop(EngineStopped())
        self.queries.stop()
        for session in list(self.desk.sessions):
            self.desk.close(session, EngineStopped())

    def run(self, operation: Operation[Any, Answer], using: Any = None) -> Awaitable[Answer]:
        """Decide and commit an operation; with the application's own connection, in its transaction."""
        return self.queue.submit(operation) if using is None else self.joins.run(operation, using)

    # --- what a commit means for this process: `unit_of_work.Audience` ---

    @property
    def doubts(self) -> int:
        return self.outcomes.doubts

    def opened(self, executions: Sequence[tuple[str, str]], doubts: int) -> None:
        self.outcomes.opened(executions, doubts)

    def committed(self, effects: Effects, portion: int) -> Portions:
        for session in effects.expired:
            self.desk.close(session, SessionLost(f"worker session {session} had expired"))
            self.queries.lost(session)
        for first in range(0, len(effects.closed), portion):
            self.outcomes.closed(effects.closed[first : first + portion])
            yield
        self.updates.committed(effects.appended)
        self.feeds.committed(effects.appended, effects.orgs)
        self.feeds.tasks.committed(effects.changes)
        if effects.delivered:
            self.broadcasts.deliveries.done(effects.delivered)
        self.upkeep.after_commit(effects.due_at)

    def went_back(self) -> None:
        """Workers of this process may hold what the database does not know of, and not know what they hold: all of them
        begin anew."""
        self.outcomes.doubt()
        for session in list(self.desk.sessions.values()):
            lost = SessionLost(f"worker session {session.id} is over: the database has gone back to an earlier state")
            self.desk.close(session.id, lost)
            self.queries.lost(session.id)
            # What it holds is free at once; if this fails, when its lease is over.
            left = self.queue.submit(Unregister(UnregisterWorker(session.request.org, session.id)))
            left.add_done_callback(lambda done: done.cancelled() or done.exception())


class LocalUpkeep:
    """`contract.upkeep.Upkeep`, in process."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._watchers: list[Callable[[int], None]] = []
        self._claiming: asyncio.Future[None] | None = None
        self._looking = False

    def now(self) -> int:
        return self._engine.store.clock()

    def watch_due(self, callback: Callable[[int], None]) -> None:
        self._watchers.append(callback)

    def run_due(self) -> asyncio.Future[DueWork]:
        return self._engine.queue.submit(RunDue(None))

    def forget(self) -> asyncio.Future[bool]:
        return self._engine.queue.submit(Forget(None))

    async def remove_closed(self) -> bool:
        return await self._engine.retention.page()

    async def delete_orgs(self) -> bool:
        return await self._engine.deleting.page()

    async def next_due_at(self, after: int) -> int | None:
        return await self._engine.store.read(reads.NextDueAt(after))

    def claim(self) -> Awaitable[None]:
        """Asked for when it is called, not when it is awaited: with whatever is asked for in the same breath."""
        if not self._engine.desk.sessions:
            return asyncio.sleep(0)
        return self._engine.queue.submit(Claim(self._engine.desk))

    def tell_due(self, due_at: int | None) -> None:
        if due_at is not None:
            for watcher in self._watchers:
                watcher(due_at)

    def after_commit(self, due_at: int | None) -> None:
        """Tell the services of new instants; look at once for work that was passed over while there was room."""
        self.tell_due(due_at)
        if self._claiming is not None and not self._claiming.done():
            return
        for session in self._engine.desk.sessions.values():
            if session.could_take_more:
                self._claiming = self._engine.queue.submit(Claim(self._engine.desk))
                return

    async def look_around(self) -> bool:
        if not await self._engine.store.changed_elsewhere() and not self._looking:
            return False
        # A change is told once: a look that fails half-way has to be taken again.
        self._looking = True
        self._engine.outcomes.doubt()
        # What is to be run comes first: those who only look can wait that long.
        await asyncio.gather(self._pass_on_news(), self._engine.queues.look_around())
        await self.claim()
        await self._check_outcomes()
        await self._engine.updates.look_around()
        await self._engine.feeds.look_around()
        await self._engine.broadcasts.look_around()
        self._looking = False
        return True

    async def until_changed(self, patience_s: float) -> None:
        await self._engine.store.until_changed(patience_s)

    def work_done(self) -> int:
        return self._engine.queue.taken

    async def _pass_on_news(self) -> None:
        for session_id in list(self._engine.desk.sessions):
            news = await self._engine.store.read(reads.NewsFor(session_id))
            self._engine.desk.deliver([(session_id, wk.News(execution_id, seq)) for execution_id, seq in news])

    async def _check_outcomes(self) -> None:
        """Executions closed by other processes while somebody here waits for them."""
        store, outcomes = self._engine.store, self._engine.outcomes
        for org in {org for org, _ in outcomes.awaited}:
            found = await store.read(reads.Executions(org, [key[1] for key in outcomes.awaited if key[0] == org]))
            closed = [execution for execution in found.values() if not execution.is_open]
            last = await store.read(reads.LastEvents(org, [execution.id for execution in closed]))
            outcomes.closed(
                ((org, execution.id), Outcome(execution.status, last[execution.id])) for execution in closed
            )
