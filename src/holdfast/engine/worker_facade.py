"""`contract.workers.Workers`, in process: work goes straight to the session's post."""

from __future__ import annotations

import asyncio
import concurrent.futures
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.contract import workers as wk
from holdfast.engine.tasks.complete import Complete as CompleteTaskOperation
from holdfast.engine.tasks.defer import Defer, Issue
from holdfast.engine.tasks.fail import Fail
from holdfast.engine.turns.complete import Complete as CompleteTurnOperation
from holdfast.engine.turns.park import Park
from holdfast.engine.workers.heartbeat import RecordHeartbeat
from holdfast.engine.workers.register import Register, check_kinds, check_triggers
from holdfast.engine.workers.release import Release
from holdfast.engine.workers.replace import Replace
from holdfast.engine.workers.unregister import Unregister, UnregisterWorker
from holdfast.errors import NOT_NOW, EngineStopped, SessionLost
from holdfast.model.events import HistoryEvent

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine


class LocalWorkers:
    """See the module's text."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._submit = engine.queue.submit

    async def register(self, request: wk.RegisterWorker) -> None:
        check_kinds(request)
        check_triggers(request)
        await self._submit(Register(request))
        if not self._engine.dispatcher.sessions:
            await self._engine.pause_sync.refresh()  # nobody has cared before
        self._engine.dispatcher.open(request)
        # The session is open, whatever becomes of its first look for work: a worker that is told otherwise opens
        # another one, and this one is given work that nobody does. The next look comes soon.
        with suppress(*NOT_NOW):
            await self._engine.upkeep.claim()

    def output_limits(self) -> wk.OutputLimits:
        limits = self._engine.config.limits
        return wk.OutputLimits(limits.output_chunk_bytes, limits.output_chunks_per_task)

    def poll(self, session: str) -> asyncio.Future[list[wk.Work]]:
        loop = self._engine.loop
        if loop is None:
            raise EngineStopped
        return self._engine.dispatcher.poll(session, loop)

    def complete_turn(self, request: wk.CompleteTurn) -> asyncio.Future[wk.TurnAnswer]:
        return self._submit(CompleteTurnOperation(request))

    def park_turn(self, request: wk.ParkTurn) -> asyncio.Future[None]:
        return self._submit(Park(request))

    def complete_task(self, request: wk.CompleteTask) -> asyncio.Future[None]:
        return self._submit(CompleteTaskOperation(request))

    def fail_task(self, request: wk.FailTask) -> asyncio.Future[None]:
        return self._submit(Fail(request))

    def issue_task_token(self, request: wk.IssueTaskToken) -> concurrent.futures.Future[None]:
        return self._engine.queue.submit_from_thread(Issue(request))

    def defer_task(self, request: wk.DeferTask) -> asyncio.Future[None]:
        return self._submit(Defer(request))

    def heartbeat(self, request: wk.Heartbeat) -> concurrent.futures.Future[wk.HeartbeatAnswer]:
        return self._engine.queue.submit_from_thread(RecordHeartbeat(request))

    def renew(self, request: wk.Heartbeat) -> bool:
        return self._engine.store.renew(request.session, request.lease_s)

    def release(self, request: wk.ReleaseWork) -> asyncio.Future[None]:
        return self._submit(Release(request))

    async def answer_query(self, request: wk.AnswerQuery) -> None:
        self._engine.queries.answered(request)

    async def drain(self, session: str) -> None:
        self._engine.dispatcher.drain(session)

    async def pause(self, session: str) -> None:
        self._engine.dispatcher.pause(session, True)

    async def resume(self, session: str) -> None:
        self._engine.dispatcher.pause(session, False)
        await self._engine.upkeep.claim()

    async def replace(self, request: wk.ReplaceSession) -> tuple[wk.RunningAttempt, ...]:
        self._engine.dispatcher.drain(request.session)
        kept = await self._submit(Replace(request))
        await self._engine.pause_sync.refresh()
        await self.abandon(request.session)
        return kept

    async def abandon(self, session: str) -> None:
        self._engine.dispatcher.close(session, SessionLost(f"worker session {session} is over"))
        self._engine.queries.lost(session)

    async def unregister(self, org: str, session: str) -> None:
        self._engine.dispatcher.drain(session)
        await self._submit(Unregister(UnregisterWorker(org, session)))
        self._engine.dispatcher.close(session, EngineStopped(f"worker session {session} has ended"))
        self._engine.queries.lost(session)

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None
    ) -> list[HistoryEvent]:
        return await self._engine.store.history(org, execution_id, after, limit)
