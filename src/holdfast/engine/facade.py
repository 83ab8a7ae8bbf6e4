"""The engine's face: the contract's protocols, each method one line to its operation or read.

`LocalEngine` owns the queue of operations, the desk of local sessions and the outcomes waited for. It promises that a
caller is answered after the commit, and that everything a commit means for this process (work, news, ends) is passed
on.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import random
from collections.abc import Callable

from holdfast.config import EngineConfig
from holdfast.contract import executions as ex
from holdfast.contract import workers as wk
from holdfast.contract.upkeep import DueWork, RecoveryReport
from holdfast.engine.checks import check_name, check_payload
from holdfast.engine.cursors import make_cursor, read_cursor
from holdfast.engine.desk import Desk
from holdfast.engine.executions.cancel import Cancel
from holdfast.engine.executions.resume import Resume
from holdfast.engine.executions.signal import Signal
from holdfast.engine.executions.signal_with_start import SignalWithStartWorkflow
from holdfast.engine.executions.start import Start
from holdfast.engine.executions.terminate import Terminate
from holdfast.engine.outcomes import Outcomes
from holdfast.engine.recovery import recover
from holdfast.engine.tasks.complete import Complete as CompleteTaskOperation
from holdfast.engine.tasks.fail import Fail
from holdfast.engine.turns.complete import Complete as CompleteTurnOperation
from holdfast.engine.turns.park import Park
from holdfast.engine.unit_of_work import Effects, OperationQueue
from holdfast.engine.upkeep.forget import Forget
from holdfast.engine.upkeep.run_due import RunDue
from holdfast.engine.workers.claim import Claim, ClaimWork
from holdfast.engine.workers.heartbeat import Beat
from holdfast.engine.workers.register import Register
from holdfast.engine.workers.release import Release
from holdfast.engine.workers.unregister import Unregister, UnregisterWorker
from holdfast.errors import EngineStopped, ExecutionNotFound, InvalidRequest
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DeadLetter, Execution, Status, TaskRow, TimerRow
from holdfast.store.protocol import ExecutionQuery, Store


def _generator() -> Callable[[], int]:
    bits = random.Random().getrandbits  # noqa: S311 - see its use
    return lambda: bits(74)


class LocalEngine:
    """Engine over a store, in this process. `executions`, `workers` and `upkeep` are the contract's protocols."""

    def __init__(self, store: Store, config: EngineConfig, entropy: Callable[[], int] | None = None) -> None:
        self.store = store
        self.config = config
        self.desk = Desk()
        self.outcomes = Outcomes()
        # Ids and nonces must be unique, not secret: a generator seeded by the system is enough, and 20 times cheaper.
        self.queue = OperationQueue(config, self.desk, entropy or _generator(), self._on_effects)
        self.executions = LocalExecutions(self)
        self.workers = LocalWorkers(self)
        self.upkeep = LocalUpkeep(self)
        self.loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        await self.store.open(self.queue)
        self.queue.start(self.loop, self.store.wake)

    async def stop(self) -> None:
        """Write what is waiting, then refuse everything."""
        await self.store.close()
        self.queue.stop()
        self.outcomes.stop(EngineStopped())
        for session in list(self.desk.sessions):
            self.desk.close(session)

    def _on_effects(self, effects: Effects) -> None:
        if effects.work:
            self.desk.deliver(effects.work)
        for key in effects.opened:
            self.outcomes.opened(key)
        for key, outcome in effects.closed:
            self.outcomes.closed(key, outcome)
        self.upkeep.after_commit(effects.due_at, effects.missed)


class LocalExecutions:
    """`contract.executions.Executions`, in process."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._submit = engine.queue.submit
        self._store = engine.store
        self._limits = engine.config.limits

    def start(self, request: ex.StartWorkflow) -> asyncio.Future[ex.StartAnswer]:
        self._check_start(request)
        return self._submit(Start(request))

    def signal(self, request: ex.SignalWorkflow) -> asyncio.Future[ex.SignalResponse]:
        self._check_signal(request)
        return self._submit(Signal(request))

    def signal_with_start(self, request: ex.SignalWithStart) -> asyncio.Future[ex.SignalWithStartResponse]:
        self._check_start(request)
        self._check_signal(request)
        return self._submit(SignalWithStartWorkflow(request))

    def cancel(self, request: ex.CancelExecution) -> asyncio.Future[ex.Changed]:
        return self._submit(Cancel(request))

    def terminate(self, request: ex.TerminateExecution) -> asyncio.Future[ex.Changed]:
        return self._submit(Terminate(request))

    def resume(self, request: ex.ResumeExecution) -> asyncio.Future[ex.Changed]:
        return self._submit(Resume(request))

    async def get(self, org: str, execution_id: str) -> Execution:
        found = await self._store.executions(org, [execution_id])
        if execution_id not in found:
            raise ExecutionNotFound(
                f"no execution {execution_id!r} in org {org!r}: check the id; list_workflows() shows what there is",
                execution_id=execution_id,
            )
        return found[execution_id]

    async def find(self, org: str, workflow_id: str) -> Execution:
        found = await self._store.execution_by_workflow_id(org, workflow_id)
        if found is None:
            raise ExecutionNotFound(
                f"no execution has workflow id {workflow_id!r} in org {org!r}", workflow_id=workflow_id
            )
        return found

    async def count(self, org: str) -> dict[Status, int]:
        return await self._store.count_executions(org)

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None
    ) -> list[HistoryEvent]:
        events = await self._store.history(org, execution_id, after, limit)
        if not events and after == 0:
            await self.get(org, execution_id)
        return events

    async def tasks(self, org: str, execution_id: str) -> list[TaskRow]:
        return await self._store.tasks(org, execution_id)

    async def timers(self, org: str, execution_id: str) -> list[TimerRow]:
        return await self._store.timers(org, execution_id)

    async def dead_letters(self, org: str, execution_id: str | None = None, limit: int = 100) -> list[DeadLetter]:
        return await self._store.dead_letters(org, execution_id, limit)

    async def outcome(self, org: str, execution_id: str) -> ex.Outcome:
        recent = self._engine.outcomes.recent((org, execution_id))
        if recent is not None:
            return recent
        loop = asyncio.get_running_loop()
        # Wait first, look second: an end between the two is then seen by one of them.
        waiter = self._engine.outcomes.wait((org, execution_id), loop)
        try:
            if self._engine.outcomes.known_open((org, execution_id)):
                return await waiter
            execution = await self.get(org, execution_id)
            if not execution.is_open:
                last = await self._store.last_events(org, [execution_id])
                return ex.Outcome(execution.status, last[execution_id])
            return await waiter
        finally:
            self._engine.outcomes.forget((org, execution_id), waiter)

    async def list(self, request: ex.ListExecutions) -> ex.ExecutionPage:
        if not 1 <= request.limit <= self._limits.page_size:
            raise InvalidRequest(f"limit must lie between 1 and {self._limits.page_size}", field="limit")
        found = await self._store.list_executions(
            ExecutionQuery(
                org=request.org,
                statuses=request.statuses,
                kinds=request.kinds,
                workflow_id=request.workflow_id,
                queue=request.queue,
                created_from=request.created_from,
                created_before=request.created_before,
                before=read_cursor(request),
                limit=request.limit + 1,
            )
        )
        page, more = tuple(found[: request.limit]), len(found) > request.limit
        return ex.ExecutionPage(page, make_cursor(request, page[-1].id) if more else None)

    def _check_start(self, request: ex.StartWorkflow | ex.SignalWithStart) -> None:
        limits = self._limits
        check_name(request.kind, "workflow_kind", limits)
        check_name(request.workflow_id, "workflow_id", limits)
        check_name(request.queue, "queue", limits)
        check_payload(request.input, "input", limits)
        if request.request_id is not None:
            check_name(request.request_id, "request_id", limits)

    def _check_signal(self, request: ex.SignalWorkflow | ex.SignalWithStart) -> None:
        check_name(request.signal_name, "signal_name", self._limits)
        check_payload(request.signal_value, "signal_value", self._limits)


class LocalWorkers:
    """`contract.workers.Workers`, in process: work goes straight to the session's post."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._submit = engine.queue.submit

    async def register(self, request: wk.RegisterWorker) -> None:
        await self._submit(Register(request))
        self._engine.desk.open(request)
        await self._engine.upkeep.claim()

    def poll(self, session: str) -> asyncio.Future[list[wk.Work]]:
        loop = self._engine.loop
        if loop is None:
            raise EngineStopped
        return self._engine.desk.poll(session, loop)

    def complete_turn(self, request: wk.CompleteTurn) -> asyncio.Future[wk.TurnAnswer]:
        return self._submit(CompleteTurnOperation(request))

    def park_turn(self, request: wk.ParkTurn) -> asyncio.Future[None]:
        return self._submit(Park(request))

    def complete_task(self, request: wk.CompleteTask) -> asyncio.Future[None]:
        return self._submit(CompleteTaskOperation(request))

    def fail_task(self, request: wk.FailTask) -> asyncio.Future[None]:
        return self._submit(Fail(request))

    def heartbeat(self, request: wk.Heartbeat) -> concurrent.futures.Future[wk.HeartbeatAnswer]:
        return self._engine.queue.submit_from_thread(Beat(request))

    def release(self, request: wk.ReleaseWork) -> asyncio.Future[None]:
        return self._submit(Release(request))

    async def drain(self, session: str) -> None:
        self._engine.desk.drain(session)

    async def unregister(self, org: str, session: str) -> None:
        self._engine.desk.drain(session)
        await self._submit(Unregister(UnregisterWorker(org, session)))
        self._engine.desk.close(session)

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None
    ) -> list[HistoryEvent]:
        return await self._engine.store.history(org, execution_id, after, limit)


class LocalUpkeep:
    """`contract.upkeep.Upkeep`, in process."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._watchers: list[Callable[[int], None]] = []
        self._backlog = False
        self._claiming: asyncio.Future[int] | None = None

    def now(self) -> int:
        return self._engine.store.clock()

    def watch_due(self, callback: Callable[[int], None]) -> None:
        self._watchers.append(callback)

    def run_due(self) -> asyncio.Future[DueWork]:
        return self._engine.queue.submit(RunDue(None))

    def forget(self) -> asyncio.Future[None]:
        return self._engine.queue.submit(Forget(None))

    async def next_due_at(self) -> int | None:
        return await self._engine.store.next_due_at()

    async def claim(self) -> int:
        """One claim per session that has room."""
        claims = [self._claim_for(session_id) for session_id in list(self._engine.desk.sessions)]
        return sum([await claim for claim in claims if claim is not None])

    def _claim_for(self, session_id: str) -> asyncio.Future[int] | None:
        session = self._engine.desk.sessions[session_id]
        turns, tasks = session.turn_claim(), session.task_claim()
        if turns is None and tasks is None:
            return None
        return self._engine.queue.submit(Claim(ClaimWork(session_id, turns, tasks)))

    def after_commit(self, due_at: int | None, missed: bool) -> None:
        """Tell the services of new instants; claim what found no free slot as soon as there is one."""
        if due_at is not None:
            for watcher in self._watchers:
                watcher(due_at)
        self._backlog = self._backlog or missed
        if self._backlog and (self._claiming is None or self._claiming.done()):
            self._claim_backlog()

    def _claim_backlog(self) -> None:
        for session_id in self._engine.desk.sessions:
            claim = self._claim_for(session_id)
            if claim is not None:
                self._claiming = claim
                self._backlog = False
                claim.add_done_callback(self._claimed)

    def _claimed(self, claim: asyncio.Future[int]) -> None:
        # Whatever was found, there may be more: look again until a claim comes back empty.
        if not claim.cancelled() and claim.exception() is None and claim.result() > 0:
            self._backlog = True

    async def look_around(self) -> bool:
        if not await self._engine.store.changed_elsewhere():
            return False
        self._engine.outcomes.doubt()
        await self._pass_on_news()
        await self._check_outcomes()
        await self.claim()
        return True

    async def _pass_on_news(self) -> None:
        for session_id in list(self._engine.desk.sessions):
            news = await self._engine.store.news_for(session_id)
            self._engine.desk.deliver([(session_id, wk.News(execution_id, seq)) for execution_id, seq in news])

    async def _check_outcomes(self) -> None:
        """Executions closed by other processes while somebody here waits for them."""
        store, outcomes = self._engine.store, self._engine.outcomes
        for org in {org for org, _ in outcomes.awaited}:
            found = await store.executions(org, [key[1] for key in outcomes.awaited if key[0] == org])
            closed = [execution for execution in found.values() if not execution.is_open]
            last = await store.last_events(org, [execution.id for execution in closed])
            for execution in closed:
                outcomes.closed((org, execution.id), ex.Outcome(execution.status, last[execution.id]))

    async def recover(self) -> RecoveryReport:
        return await recover(self._engine.queue, self._engine.store, self.claim)
