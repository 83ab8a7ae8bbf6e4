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

from msgspec import structs

from holdfast.config import EngineConfig
from holdfast.contract import calls
from holdfast.contract import executions as ex
from holdfast.contract import workers as wk
from holdfast.contract.metrics import Metrics
from holdfast.contract.upkeep import DueWork
from holdfast.engine.api import LocalApi
from holdfast.engine.checks import check_payload, check_tags
from holdfast.engine.cursors import Cursors
from holdfast.engine.deleting import Deleting
from holdfast.engine.desk import Desk
from holdfast.engine.executions.redeliver import Redeliver
from holdfast.engine.executions.remove_dead_letter import Remove
from holdfast.engine.executions.update import Update
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
from holdfast.engine.queries import Queries, check_as_of
from holdfast.engine.queues import Queues
from holdfast.engine.rebuilds import Rebuilds
from holdfast.engine.retention import Retention
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
from holdfast.errors import EngineStopped, ExecutionNotFound, InvalidRequest, SessionLost
from holdfast.model.events import HistoryEvent, StateChanged
from holdfast.model.executions import DEADLINE_NO, Execution, Status, TaskRow, TimerRow
from holdfast.model.names import check_name, check_text
from holdfast.model.tokens import REPLAY_KEY
from holdfast.model.values import Payload
from holdfast.store import reads
from holdfast.store.protocol import Store
from holdfast.telemetry.traces import Tracing

Answer = TypeVar("Answer")


def _generator() -> Callable[[], int]:
    return partial(random.Random().getrandbits, 64)  # noqa: S311 - see its use


class LocalEngine:
    """Engine over a store, in this process. `executions`, `workers` and `upkeep` are the contract's protocols.

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
        self.executions = LocalExecutions(self)
        self.workers = LocalWorkers(self)
        self.messages = Messages(store, self.queue, self.executions.get)
        self.promises = Promises(self.run)
        self.broadcasts = Broadcasts(store, self.queue)
        self.keys = Keys(store, self.queue, secret)
        self.deleting = Deleting(store, self.queue, lambda: self.keys.chain)
        self.tasks = StandaloneTasks(
            store,
            self.run,
            config.limits,
            outcome=self.executions.outcome,
            cursors=lambda: self.cursors,
            tracing=lambda: self.tracing,
            feeds=self.feeds.tasks,
        )
        self.joins = Joins(self)
        self.mailboxes = Mailboxes(self)
        self.upkeep = LocalUpkeep(self)
        self.queues = Queues(store, self.queue, self.desk, lambda: self.keys.chain, self.upkeep.claim)
        starts = Starts(self.run, config.limits, lambda: self.tracing)
        self.rebuilds = Rebuilds(store, self.queue, secret)
        self.system = System(store, self.queue, config.limits, self.upkeep.claim, lambda: self.metrics)
        nouns = (
            self.queues,
            self.keys,
            self.tasks,
            self.feeds.tasks,
            starts,
            self.rebuilds,
            self.messages,
            self.promises,
            self.broadcasts,
            self.system,
            Explanations(lambda: self.api),
        )
        self.api: LocalApi = LocalApi(self.run, config.limits, nouns)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.tracing: Tracing | None = None
        self.metrics: Metrics | None = None

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


class LocalExecutions:
    """`contract.executions.Executions`, in process."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._submit = engine.queue.submit
        self._store = engine.store
        self._limits = engine.config.limits

    async def request_update(self, request: calls.RequestUpdate) -> calls.UpdateTicket:
        check_name(request.workflow_execution_id, "workflow_execution_id")
        check_name(request.update_name, "update_name")
        check_payload(request.input, "input", self._limits)
        given = request.update_id if request.update_id is not None else request.request_id
        if given is None:
            made = f"{self._engine.queue.entropy():016x}"
            return await self._submit(Update(structs.replace(request, update_id=made, request_id=None)))
        check_name(given, "update_id")
        # A request id is forgotten after a while; the history is not.
        earlier = await self._engine.updates.requested(request, given)
        if earlier is not None:
            return earlier
        key = f"update:{request.workflow_execution_id}:{given}"
        return await self._submit(Update(structs.replace(request, update_id=given, request_id=key)))

    async def update_outcome(
        self, org: str, ticket: calls.UpdateTicket, wait_for: calls.UpdateStatus
    ) -> calls.UpdateOutcome:
        check_name(ticket.workflow_execution_id, "workflow_execution_id")
        check_name(ticket.update_id, "update_id")
        return await self._engine.updates.outcome(org, ticket, wait_for)

    async def query(self, request: calls.QueryExecution) -> Payload:
        check_name(request.query_name, "query_name")
        check_payload(request.input, "input", self._limits)
        execution = await self.get(request.org, request.workflow_execution_id)
        return await self._engine.queries.ask(request, execution)

    async def state(self, org: str, execution_id: str, as_of: int | None = None) -> dict[str, Payload]:
        execution = await self.get(org, execution_id)
        check_as_of(as_of, execution)
        state: dict[str, Payload] = {}
        for event in await self._store.read(reads.History(org, execution_id, types=(StateChanged.TYPE,))):
            if isinstance(event.body, StateChanged) and (as_of is None or event.seq <= as_of):
                state.update(event.body.values)
                for key in event.body.removed:
                    state.pop(key, None)
        return state

    async def get(self, org: str, execution_id: str) -> Execution:
        check_name(execution_id, "workflow_execution_id")
        found = await self._store.read(reads.Executions(org, [execution_id]))
        if execution_id not in found:
            raise ExecutionNotFound(
                f"no execution {execution_id!r} in org {org!r}: check the id; list_workflows() shows what there is",
                execution_id=execution_id,
            )
        return found[execution_id]

    async def find(self, org: str, workflow_id: str) -> Execution:
        check_name(workflow_id, "workflow_id")
        found = await self._store.read(reads.ExecutionByWorkflowId(org, workflow_id))
        if found is None:
            raise ExecutionNotFound(
                f"no execution has workflow id {workflow_id!r} in org {org!r}", workflow_id=workflow_id
            )
        return found

    async def count(self, org: str) -> dict[Status, int]:
        return await self._store.read(reads.CountExecutions(org))

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None, types: Sequence[str] = ()
    ) -> list[HistoryEvent]:
        check_name(execution_id, "workflow_execution_id")
        events = await self._store.read(reads.History(org, execution_id, after, limit, types))
        if not events and after == 0:
            await self.get(org, execution_id)
        return events

    async def tasks(self, org: str, execution_id: str) -> list[TaskRow]:
        check_name(execution_id, "workflow_execution_id")
        found = await self._store.read(reads.Tasks(org, execution_id))
        if not found:
            await self.get(org, execution_id)
        return found

    def follow(self, org: str, execution_id: str, after: int = 0) -> AsyncIterator[list[HistoryEvent]]:
        return self._engine.feeds.history(org, execution_id, after)

    async def timers(self, org: str, execution_id: str) -> list[TimerRow]:
        check_name(execution_id, "workflow_execution_id")
        found = await self._store.read(reads.Timers(org, execution_id))
        if not found:
            await self.get(org, execution_id)
        return [timer for timer in found if timer.timer_no != DEADLINE_NO]

    async def mailbox(self, org: str, execution_id: str, limit: int = 100) -> ex.MailboxAnswer:
        return await self._engine.mailboxes.look(await self.get(org, execution_id), self._page(limit))

    async def dead_letters(self, org: str, execution_id: str | None = None, limit: int = 100) -> ex.DeadLetters:
        if execution_id is not None:
            check_name(execution_id, "workflow_execution_id")
        letters = await self._store.read(reads.DeadLetters(org, execution_id, self._page(limit)))
        return ex.DeadLetters(letters=tuple(letters), now=self._store.clock())

    async def redeliver(self, request: ex.RedeliverSignal) -> ex.Redelivered:
        check_name(request.workflow_execution_id, "workflow_execution_id")
        if request.to is None:
            source = await self.get(request.org, request.workflow_execution_id)
            request = structs.replace(request, to=source.workflow_id)
        check_name(request.to, "to")
        return await self._submit(Redeliver(request))

    def remove_dead_letter(self, request: ex.RemoveDeadLetter) -> asyncio.Future[None]:
        check_name(request.workflow_execution_id, "workflow_execution_id")
        return self._submit(Remove(request))

    async def bury_unread(self, request: ex.BuryUnread) -> int:
        check_text(request.reason, "reason")
        execution = await self.get(request.org, request.workflow_execution_id)
        return await self._engine.mailboxes.bury(request, execution)

    async def outcome(self, org: str, execution_id: str) -> ex.Outcome:
        outcomes, key = self._engine.outcomes, (org, execution_id)
        known_open = outcomes.known_open(key)
        recent = None if known_open else outcomes.recent(key)
        if recent is not None:
            return recent
        # Wait first, look second: an end between the two is then seen by one of them.
        waiter = outcomes.wait(key, asyncio.get_running_loop())
        try:
            if not known_open:
                execution = await self.get(org, execution_id)
                if not execution.is_open:
                    last = await self._store.read(reads.LastEvents(org, [execution_id]))
                    return ex.Outcome(execution.status, last[execution_id])
            return await waiter
        finally:
            if not waiter.done() or waiter.cancelled():
                outcomes.forget(key, waiter)

    async def list(self, request: ex.ListExecutions) -> ex.ExecutionPage:
        self._page(request.limit)
        check_tags(request.metadata)
        for text in (request.workflow_id, request.queue, *request.kinds):
            if text is not None:
                check_text(text, "filter")
        found = await self._store.read(
            reads.ListExecutions(
                org=request.org,
                statuses=request.statuses,
                kinds=request.kinds,
                workflow_id=request.workflow_id,
                queue=request.queue,
                metadata=request.metadata,
                created_from=request.created_from,
                created_before=request.created_before,
                before=self._engine.cursors.read(request),
                limit=request.limit + 1,
            )
        )
        page, more = tuple(found[: request.limit]), len(found) > request.limit
        return ex.ExecutionPage(page, self._engine.cursors.make(request, page[-1].id) if more else None)

    def _page(self, limit: int) -> int:
        if not 1 <= limit <= self._limits.page_size:
            raise InvalidRequest(f"limit must lie between 1 and {self._limits.page_size}", field="limit")
        return limit


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
                ((org, execution.id), ex.Outcome(execution.status, last[execution.id])) for execution in closed
            )
