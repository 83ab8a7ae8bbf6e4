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
from holdfast.contract.task_output import OutputPage, TaskFeedItem
from holdfast.contract.upkeep import DueWork, RecoveryReport
from holdfast.engine.caller_transaction import CallerTransactions
from holdfast.engine.checks import check_not_reserved, check_payload, check_tags, check_timeout
from holdfast.engine.cursors import Cursors
from holdfast.engine.deployments import LocalDeployments
from holdfast.engine.dispatcher import Dispatcher
from holdfast.engine.executions.cancel import Cancel
from holdfast.engine.executions.fork import Fork
from holdfast.engine.executions.rebuild import Rebuild
from holdfast.engine.executions.redeliver import Redeliver
from holdfast.engine.executions.remove_dead_letter import Remove
from holdfast.engine.executions.reset import Reset
from holdfast.engine.executions.resume import Resume
from holdfast.engine.executions.retry import Retry
from holdfast.engine.executions.signal import Signal
from holdfast.engine.executions.signal_with_start import SignalWithStartWorkflow
from holdfast.engine.executions.start import Start
from holdfast.engine.executions.terminate import Terminate
from holdfast.engine.executions.update import Update
from holdfast.engine.feeds import LocalFeeds
from holdfast.engine.group_commit import Effects, OperationQueue
from holdfast.engine.key_facade import LocalKeys
from holdfast.engine.mailboxes import Mailboxes
from holdfast.engine.message_facade import LocalMessages
from holdfast.engine.operation import Operation
from holdfast.engine.org_deletion import OrgDeletion
from holdfast.engine.pause_sync import PauseSync
from holdfast.engine.post_commit import Chunks
from holdfast.engine.queries import Queries, check_as_of
from holdfast.engine.recovery import recover
from holdfast.engine.reset_source import ChoosePoint, ResetSource, read_reset_source
from holdfast.engine.result_waiters import ResultWaiters
from holdfast.engine.retention import Retention
from holdfast.engine.rules.resets import check_point, retry_point
from holdfast.engine.task_facade import LocalTasks
from holdfast.engine.updates import Updates
from holdfast.engine.upkeep.prune import Prune
from holdfast.engine.upkeep.run_due import RunDue
from holdfast.engine.worker_facade import LocalWorkers
from holdfast.engine.workers.claim import Claim
from holdfast.engine.workers.unregister import Unregister, UnregisterWorker
from holdfast.errors import EngineStopped, ExecutionNotFound, InvalidRequest, SessionLost, Unavailable
from holdfast.model.events import HistoryEvent, StateChanged
from holdfast.model.executions import DEADLINE_NO, Execution, TaskRow, TimerRow, WorkflowStatus
from holdfast.model.tokens import REPLAY_KEY, execution_key, promise_token, token_hash
from holdfast.model.validation import check_name, check_priority, check_text
from holdfast.model.values import Payload
from holdfast.store.protocol import Store
from holdfast.store.queries import ExecutionQuery
from holdfast.telemetry.traces import Tracing, stamped

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
        self.dispatcher = Dispatcher(lambda: store.has_peers, suspect_from=config.suspect_from)
        self.result_waiters = ResultWaiters()
        self.updates = Updates(store)
        self.feeds = LocalFeeds(store)
        self.pause_sync = PauseSync(self)
        self.org_deletion = OrgDeletion(self)
        self.retention = Retention(self)
        self.deployments = LocalDeployments(store, config.limits, self.pause_sync)
        # Ids and nonces must be unique, not secret: a generator seeded by the system is enough, and 20 times cheaper.
        self.queue = OperationQueue(config, self.dispatcher, entropy or _generator(), self)
        self.queries = Queries(self.dispatcher, self.queue.entropy)
        self.executions = LocalExecutions(self)
        self.workers = LocalWorkers(self)
        self.messages = LocalMessages(self)
        self.tasks = LocalTasks(self)
        self.keys = LocalKeys(self)
        self.caller_transactions = CallerTransactions(self)
        self.mailboxes = Mailboxes(self)
        self.upkeep = LocalUpkeep(self)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.tracing: Tracing | None = None

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        await self.store.open(self.queue)
        self.queue.start(self.loop, self.store.wake, on_loop=self.store.writes_on_loop)
        await self.pause_sync.refresh()
        self.feeds.start()

    async def stop(self) -> None:
        """Write what is waiting, then refuse everything."""
        await self.caller_transactions.stop()
        await self.store.close()
        self.queue.stop()
        self.result_waiters.stop(EngineStopped())
        await self.messages.stop()
        self.updates.stop(EngineStopped())
        self.feeds.stop(EngineStopped())
        self.queries.stop()
        for session in list(self.dispatcher.sessions):
            self.dispatcher.close(session, EngineStopped())

    def run(self, operation: Operation[Any, Answer], using: Any = None) -> Awaitable[Answer]:
        """Decide and commit an operation; with the application's own connection, in its transaction."""
        return self.queue.submit(operation) if using is None else self.caller_transactions.run(operation, using)

    # --- what a commit means for this process: `unit_of_work.CommitListener` ---

    @property
    def peer_writes(self) -> int:
        return self.result_waiters.peer_writes

    def opened(self, executions: Sequence[tuple[str, str]], peer_writes: int) -> None:
        self.result_waiters.opened(executions, peer_writes)

    def committed(self, effects: Effects, chunk: int) -> Chunks:
        for session in effects.expired:
            self.dispatcher.close(session, SessionLost(f"worker session {session} had expired"))
            self.queries.lost(session)
        for first in range(0, len(effects.closed), chunk):
            self.result_waiters.closed(effects.closed[first : first + chunk])
            yield
        self.updates.committed(effects.appended)
        self.feeds.committed(effects.appended, effects.orgs)
        self.feeds.tasks.committed(effects.changes)
        if effects.delivered:
            self.messages.deliveries.done(effects.delivered)
        self.upkeep.after_commit(effects.due_at)

    def data_loss_detected(self) -> None:
        """Workers of this process may hold what the database does not know of, and not know what they hold: all of them
        begin anew."""
        self.result_waiters.note_peer_write()
        for session in list(self.dispatcher.sessions.values()):
            lost = SessionLost(f"worker session {session.id} is over: the database has gone back to an earlier state")
            self.dispatcher.close(session.id, lost)
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

    def start(self, request: ex.StartWorkflow, using: Any = None) -> Awaitable[ex.StartAnswer]:
        self._check_start(request)
        if self._engine.tracing is not None:
            request = stamped(request, self._engine.tracing)
        return self._engine.run(Start(request), using)

    def signal(self, request: ex.SignalWorkflow, using: Any = None) -> Awaitable[ex.SignalResponse]:
        check_name(request.workflow_execution_id, "workflow_execution_id")
        self._check_signal(request)
        return self._engine.run(Signal(request), using)

    def signal_with_start(
        self, request: ex.SignalWithStart, using: Any = None
    ) -> Awaitable[ex.SignalWithStartResponse]:
        self._check_start(request)
        self._check_signal(request)
        if self._engine.tracing is not None:
            request = stamped(request, self._engine.tracing)
        return self._engine.run(SignalWithStartWorkflow(request), using)

    def cancel(self, request: ex.CancelExecution) -> asyncio.Future[ex.Changed]:
        check_name(request.workflow_execution_id, "workflow_execution_id")
        check_text(request.reason, "reason")
        return self._submit(Cancel(request))

    def terminate(self, request: ex.TerminateExecution) -> asyncio.Future[ex.Changed]:
        check_name(request.workflow_execution_id, "workflow_execution_id")
        check_text(request.reason, "reason")
        return self._submit(Terminate(request))

    def resume(self, request: ex.ResumeExecution) -> asyncio.Future[ex.Changed]:
        check_name(request.workflow_execution_id, "workflow_execution_id")
        return self._submit(Resume(request))

    async def reset(self, request: ex.ResetExecution) -> ex.StartAnswer:
        def chosen(history: Sequence[HistoryEvent], _: Execution) -> int:
            check_point(history, request.to_event, "to_event")
            return request.to_event

        return await self._rebuild(Reset, request, chosen)

    async def retry(self, request: ex.RetryExecution) -> ex.StartAnswer:
        return await self._rebuild(Retry, request, retry_point)

    async def fork(self, request: ex.ForkExecution) -> ex.StartAnswer:
        def chosen(history: Sequence[HistoryEvent], _: Execution) -> int:
            check_point(history, request.at_event, "at_event")
            return request.at_event

        if request.workflow_id is not None:
            check_name(request.workflow_id, "workflow_id")
        return await self._rebuild(Fork, request, chosen)

    async def _rebuild(
        self,
        operation: Callable[[Any, ResetSource, Callable[[str, str], str]], Rebuild[Any]],
        request: ex.ResetExecution | ex.ForkExecution | ex.RetryExecution,
        choose: ChoosePoint,
    ) -> ex.StartAnswer:
        check_name(request.workflow_execution_id, "workflow_execution_id")
        check_text(getattr(request, "reason", ""), "reason")
        if request.request_id is not None:
            check_name(request.request_id, "request_id")
        while True:
            source = await read_reset_source(self._store, request.org, request.workflow_execution_id, choose)
            try:
                return await self._submit(operation(request, source, partial(self._token_hash, request.org)))
            except Unavailable as refusal:
                # Something came between reading and deciding: a child's end, a verdict on an update. There is one of
                # each, so this comes to an end.
                if "outdated" not in refusal.details:
                    raise

    def _token_hash(self, org: str, execution_id: str, name: str) -> str:
        key = execution_key(self._engine.secret(), org, execution_id)
        return token_hash(promise_token(key, org, execution_id, name))

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
        for event in await self._store.history(org, execution_id, types=(StateChanged.TYPE,)):
            if isinstance(event.body, StateChanged) and (as_of is None or event.seq <= as_of):
                state.update(event.body.values)
                for key in event.body.removed:
                    state.pop(key, None)
        return state

    async def get(self, org: str, execution_id: str) -> Execution:
        check_name(execution_id, "workflow_execution_id")
        found = await self._store.executions(org, [execution_id])
        if execution_id not in found:
            raise ExecutionNotFound(
                f"no execution {execution_id!r} in org {org!r}: check the id; list_workflows() shows what there is",
                execution_id=execution_id,
            )
        return found[execution_id]

    async def find(self, org: str, workflow_id: str) -> Execution:
        check_name(workflow_id, "workflow_id")
        found = await self._store.execution_by_workflow_id(org, workflow_id)
        if found is None:
            raise ExecutionNotFound(
                f"no execution has workflow id {workflow_id!r} in org {org!r}", workflow_id=workflow_id
            )
        return found

    async def count(self, org: str) -> dict[WorkflowStatus, int]:
        return await self._store.count_executions(org)

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None, types: Sequence[str] = ()
    ) -> list[HistoryEvent]:
        check_name(execution_id, "workflow_execution_id")
        events = await self._store.history(org, execution_id, after, limit, types)
        if not events and after == 0:
            await self.get(org, execution_id)
        return events

    async def tasks(self, org: str, execution_id: str) -> list[TaskRow]:
        check_name(execution_id, "workflow_execution_id")
        found = await self._store.tasks(org, execution_id)
        if not found:
            await self.get(org, execution_id)
        return found

    def follow(self, org: str, execution_id: str, after: int = 0) -> AsyncIterator[list[HistoryEvent]]:
        return self._engine.feeds.history(org, execution_id, after)

    async def task_output(
        self, org: str, execution_id: str, task_no: int, after: int = 0, limit: int = 100
    ) -> OutputPage:
        return await self._engine.feeds.tasks.page(org, execution_id, task_no, after, self._page(limit))

    def follow_task(
        self, org: str, execution_id: str, task_no: int, after: int = 0
    ) -> AsyncIterator[list[TaskFeedItem]]:
        return self._engine.feeds.tasks.follow(org, execution_id, task_no, after)

    async def timers(self, org: str, execution_id: str) -> list[TimerRow]:
        check_name(execution_id, "workflow_execution_id")
        found = await self._store.timers(org, execution_id)
        if not found:
            await self.get(org, execution_id)
        return [timer for timer in found if timer.timer_no != DEADLINE_NO]

    async def mailbox(self, org: str, execution_id: str, limit: int = 100) -> ex.MailboxAnswer:
        return await self._engine.mailboxes.read(await self.get(org, execution_id), self._page(limit))

    async def dead_letters(self, org: str, execution_id: str | None = None, limit: int = 100) -> ex.DeadLetters:
        if execution_id is not None:
            check_name(execution_id, "workflow_execution_id")
        letters = await self._store.dead_letters(org, execution_id, self._page(limit))
        return ex.DeadLetters(letters=tuple(letters), now=self._store.clock())

    async def redeliver(self, request: ex.RedeliverSignal) -> ex.RedeliverResult:
        check_name(request.workflow_execution_id, "workflow_execution_id")
        if request.to is None:
            source = await self.get(request.org, request.workflow_execution_id)
            request = structs.replace(request, to=source.workflow_id)
        check_name(request.to, "to")
        return await self._submit(Redeliver(request))

    def remove_dead_letter(self, request: ex.RemoveDeadLetter) -> asyncio.Future[None]:
        check_name(request.workflow_execution_id, "workflow_execution_id")
        return self._submit(Remove(request))

    async def dead_letter_unread(self, request: ex.DeadLetterUnread) -> int:
        check_text(request.reason, "reason")
        execution = await self.get(request.org, request.workflow_execution_id)
        return await self._engine.mailboxes.dead_letter(request, execution)

    async def outcome(self, org: str, execution_id: str) -> ex.Outcome:
        outcomes, key = self._engine.result_waiters, (org, execution_id)
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
                    last = await self._store.last_events(org, [execution_id])
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
        found = await self._store.list_executions(
            ExecutionQuery(
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

    def _check_start(self, request: ex.StartWorkflow | ex.SignalWithStart) -> None:
        check_name(request.kind, "workflow_kind")
        check_not_reserved(request.kind)
        check_name(request.queue, "queue")
        check_priority(request.priority)
        if request.workflow_id is not None:
            check_name(request.workflow_id, "workflow_id")
        if request.version is not None:
            check_name(request.version, "version")
        if request.request_id is not None:
            check_name(request.request_id, "request_id")
        if request.metadata:
            for key, value in request.metadata.items():
                check_text(key, "metadata")
                check_text(value, "metadata")
        if request.execution_timeout_s is not None:
            check_timeout(request.execution_timeout_s, "execution_timeout")
        if request.ttl_s is not None:
            check_timeout(request.ttl_s, "idempotency_key_ttl")
        check_payload(request.input, "input", self._limits)

    def _check_signal(self, request: ex.SignalWorkflow | ex.SignalWithStart) -> None:
        check_name(request.signal_name, "signal_name")
        if request.request_id is not None:
            check_name(request.request_id, "request_id")
        check_payload(request.signal_value, "signal_value", self._limits)


class LocalUpkeep:
    """`contract.upkeep.Upkeep`, in process."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._watchers: list[Callable[[int], None]] = []
        self._claiming: asyncio.Future[None] | None = None
        self._polling = False

    def now(self) -> int:
        return self._engine.store.clock()

    def watch_due(self, callback: Callable[[int], None]) -> None:
        self._watchers.append(callback)

    def run_due(self) -> asyncio.Future[DueWork]:
        return self._engine.queue.submit(RunDue(None))

    def prune(self) -> asyncio.Future[bool]:
        return self._engine.queue.submit(Prune(None))

    async def remove_closed(self) -> bool:
        return await self._engine.retention.page()

    async def delete_orgs(self) -> bool:
        return await self._engine.org_deletion.page()

    async def next_due_at(self, after: int) -> int | None:
        return await self._engine.store.next_due_at(after)

    def claim(self) -> Awaitable[None]:
        """Asked for when it is called, not when it is awaited: with whatever is asked for in the same breath."""
        if not self._engine.dispatcher.sessions:
            return asyncio.sleep(0)
        return self._engine.queue.submit(Claim(self._engine.dispatcher))

    def notify_due(self, due_at: int | None) -> None:
        if due_at is not None:
            for watcher in self._watchers:
                watcher(due_at)

    def after_commit(self, due_at: int | None) -> None:
        """Tell the services of new instants; look at once for work that was passed over while there was room."""
        self.notify_due(due_at)
        if self._claiming is not None and not self._claiming.done():
            return
        for session in self._engine.dispatcher.sessions.values():
            if session.could_take_more:
                self._claiming = self._engine.queue.submit(Claim(self._engine.dispatcher))
                return

    async def poll_changes(self) -> bool:
        if not await self._engine.store.changed_elsewhere() and not self._polling:
            return False
        # A change is told once: a look that fails half-way has to be taken again.
        self._polling = True
        self._engine.result_waiters.note_peer_write()
        # What is to be run comes first: those who only look can wait that long.
        await asyncio.gather(self._deliver_pending_events(), self._engine.pause_sync.poll_changes())
        await self.claim()
        await self._check_outcomes()
        await self._engine.updates.poll_changes()
        await self._engine.feeds.poll_changes()
        await self._engine.messages.poll_changes()
        self._polling = False
        return True

    async def until_changed(self, wait_s: float) -> None:
        await self._engine.store.until_changed(wait_s)

    def work_done(self) -> int:
        return self._engine.queue.taken

    async def _deliver_pending_events(self) -> None:
        for session_id in list(self._engine.dispatcher.sessions):
            pending_events = await self._engine.store.pending_events_for(session_id)
            self._engine.dispatcher.deliver(
                [(session_id, wk.PendingEvents(execution_id, seq)) for execution_id, seq in pending_events]
            )

    async def _check_outcomes(self) -> None:
        """Executions closed by other processes while somebody here waits for them."""
        store, outcomes = self._engine.store, self._engine.result_waiters
        for org in {org for org, _ in outcomes.awaited}:
            found = await store.executions(org, [key[1] for key in outcomes.awaited if key[0] == org])
            closed = [execution for execution in found.values() if not execution.is_open]
            last = await store.last_events(org, [execution.id for execution in closed])
            outcomes.closed(
                ((org, execution.id), ex.Outcome(execution.status, last[execution.id])) for execution in closed
            )

    async def recover(self, org: str) -> RecoveryReport:
        report = await recover(self._engine.queue, self._engine.store, org)
        await self.claim()
        return report
