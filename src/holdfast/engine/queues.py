"""Queues, workers and definitions: what is deployed, who works, what waits; and what is paused.

The database knows what is paused; the dispatcher has a copy, read again whenever another process has written and after
every change made here. So a pause is in force in this process when its caller is answered, and in the others as soon
as they notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.contract.instants import instant, instant_or_none
from holdfast.contract.queues import (
    DefinitionInfo,
    DefinitionList,
    DrainWorker,
    ListDefinitions,
    ListQueues,
    ListWorkers,
    PauseChange,
    PauseInfo,
    PauseQueue,
    PauseRequest,
    PauseWorker,
    QueueInfo,
    QueueList,
    ResumeQueue,
    ResumeWorker,
    WorkerInfo,
    WorkerList,
)
from holdfast.engine.api import answers
from holdfast.engine.audited import AuditedOperation
from holdfast.engine.desk import Desk
from holdfast.engine.rules.keys import check_actor, open_org
from holdfast.engine.rules.workspace import Workspace
from holdfast.engine.unit_of_work import OperationQueue
from holdfast.errors import WorkerDraining, WorkerNotFound
from holdfast.model.executions import DefinitionRow, WorkerRow
from holdfast.model.keys import Role
from holdfast.model.pauses import Pausable, Pause, PauseMode
from holdfast.store import reads
from holdfast.store.protocol import LoadPlan, Store

MOST_QUEUES = 10_000
_VERBS = {None: "resume", PauseMode.PAUSED: "pause", PauseMode.DRAINING: "drain"}


class Change(AuditedOperation[PauseRequest, PauseChange]):
    """Pause a queue or a worker, drain a worker, or let it continue."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        super().plan(plan)
        request = self.request
        plan.want(Pause, request.key)
        if request.WHAT is Pausable.WORKER:
            plan.want(WorkerRow, request.name)

    def decide(self, ws: Workspace) -> PauseChange:
        request = self.request
        check_actor(ws, request.by, request.org, Role.ADMIN)
        self._check_worker(ws)
        org = open_org(ws, request.org)
        before = ws.get(Pause, request.key)
        if (before.mode if before is not None else None) is request.MODE:
            return self._answer(before, changed=False)
        if before is not None and before.mode is PauseMode.DRAINING:
            raise WorkerDraining(
                f"worker {request.name} is being drained, and that is for good: start another one",
                worker_id=request.name,
            )
        after = self._put(ws)
        self.record(ws, org, f"{request.WHAT.value}s.{_VERBS[request.MODE]}", request.name, request.reason)
        return self._answer(after, changed=True)

    def _answer(self, pause: Pause | None, *, changed: bool) -> PauseChange:
        return PauseChange(name=self.request.name, changed=changed, paused=pause is not None, pause=pause_info(pause))

    def _check_worker(self, ws: Workspace) -> None:
        request = self.request
        if request.WHAT is not Pausable.WORKER:
            return
        worker = ws.get(WorkerRow, request.name)
        if worker is None or worker.org != request.org:
            raise WorkerNotFound(
                f"no worker session {request.name!r} in org {request.org!r}: it may have ended; list the workers",
                worker_id=request.name,
            )

    def _put(self, ws: Workspace) -> Pause | None:
        request = self.request
        if request.MODE is None:
            ws.drop(Pause, request.key)
            return None
        pause = Pause(
            org=request.org,
            what=request.WHAT,
            name=request.name,
            mode=request.MODE,
            since_at=ws.now,
            reason=request.reason,
        )
        ws.put(pause)
        return pause


class Queues:
    """`chain` gives the key of the audit log's digests, `claim` looks for work for this process."""

    def __init__(
        self,
        store: Store,
        queue: OperationQueue,
        desk: Desk,
        chain: Callable[[], bytes],
        claim: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._queue = queue
        self._desk = desk
        self._chain = chain
        self._claim = claim
        self._reading = asyncio.Lock()

    @answers(PauseQueue, ResumeQueue, PauseWorker, ResumeWorker, DrainWorker)
    async def change(self, request: PauseRequest) -> PauseChange:
        answer = await self._queue.submit(Change(request, self._chain()))
        await self.refresh()
        # Batches run one after another: when this one is done, so is all that was planned before the dispatcher knew.
        await self._claim()
        return answer

    async def look_around(self) -> None:
        """Another process has written. One that hands out nothing need not know."""
        if self._desk.sessions:
            await self.refresh()

    async def refresh(self) -> None:
        """One after another: an older answer must not replace a newer one."""
        async with self._reading:
            self._desk.obey(await self._store.read(reads.Select(Pause)))

    @answers(ListDefinitions)
    async def definitions(self, request: ListDefinitions) -> DefinitionList:
        rows = await self._store.read(reads.Definitions(request.org, request.limit))
        return DefinitionList(definitions=tuple(map(_definition, rows)))

    @answers(ListWorkers)
    async def workers(self, request: ListWorkers) -> WorkerList:
        rows = await self._store.read(
            reads.Select(WorkerRow, (("org", request.org),), ("-started_at", "id"), limit=request.limit)
        )
        paused = await self._paused(request.org, Pausable.WORKER)
        return WorkerList(workers=tuple(_worker(row, paused.get(row.id)) for row in rows))

    @answers(ListQueues)
    async def queues(self, request: ListQueues) -> QueueList:
        org = request.org
        backlog = await self._store.read(reads.Backlogs(self._store.clock(), MOST_QUEUES))
        turns = {depth.queue: depth for depth in backlog.turns if depth.org == org}
        tasks = {depth.queue: depth for depth in backlog.tasks if depth.org == org}
        paused = await self._paused(org, Pausable.QUEUE)
        found = [
            QueueInfo(
                name=name,
                turns=turns[name].waiting if name in turns else 0,
                tasks=tasks[name].waiting if name in tasks else 0,
                waiting_since=instant_or_none(
                    min((depths[name].since_at for depths in (turns, tasks) if name in depths), default=None)
                ),
                paused=name in paused,
                pause=pause_info(paused.get(name)),
            )
            for name in sorted({*turns, *tasks, *paused})
        ]
        return QueueList(queues=tuple(found[: request.limit]))

    async def _paused(self, org: str, what: Pausable) -> dict[str, Pause]:
        return {
            pause.name: pause
            for pause in await self._store.read(reads.Select(Pause))
            if (pause.org, pause.what) == (org, what)
        }


def pause_info(pause: Pause | None) -> PauseInfo | None:
    if pause is None:
        return None
    return PauseInfo(mode=pause.mode, since=instant(pause.since_at), reason=pause.reason)


def _definition(row: DefinitionRow) -> DefinitionInfo:
    return DefinitionInfo(kind=row.kind, version=row.version, build=row.build, registered_at=instant(row.registered_at))


def _worker(row: WorkerRow, pause: Pause | None) -> WorkerInfo:
    return WorkerInfo(
        id=row.id,
        host=row.host,
        pid=row.pid,
        started_at=instant(row.started_at),
        lease_until=instant(row.lease_until_at),
        pause=pause_info(pause),
    )
