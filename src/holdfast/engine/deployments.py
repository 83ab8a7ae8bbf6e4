"""`contract.deployments.Deployments`, in process: reads, and what is paused."""

from __future__ import annotations

from holdfast.config import Limits
from holdfast.contract.deployments import ChangePause, PauseAnswer, QueueView, WorkerView
from holdfast.engine.pause_sync import PauseSync
from holdfast.errors import InvalidRequest
from holdfast.model.executions import DefinitionRow
from holdfast.model.pauses import Pausable, Pause
from holdfast.store.protocol import Store

MOST_QUEUES = 10_000


class LocalDeployments:
    def __init__(self, store: Store, limits: Limits, pausing: PauseSync) -> None:
        self._store = store
        self._limits = limits
        self._pausing = pausing

    async def definitions(self, org: str, limit: int = 1000) -> list[DefinitionRow]:
        return await self._store.definitions(org, self._page(limit))

    async def workers(self, org: str, limit: int = 1000) -> list[WorkerView]:
        rows = await self._store.workers(org, self._page(limit))
        paused = await self._paused(org, Pausable.WORKER)
        return [WorkerView(row=row, pause=paused.get(row.id)) for row in rows]

    async def change_pause(self, request: ChangePause) -> PauseAnswer:
        return await self._pausing.change(request)

    async def _paused(self, org: str, what: Pausable) -> dict[str, Pause]:
        return {pause.name: pause for pause in await self._store.pauses() if (pause.org, pause.what) == (org, what)}

    async def queues(self, org: str, limit: int = 1000) -> list[QueueView]:
        page = self._page(limit)
        backlog = await self._store.backlog(self._store.clock(), MOST_QUEUES)
        turns = {depth.queue: depth for depth in backlog.turns if depth.org == org}
        tasks = {depth.queue: depth for depth in backlog.tasks if depth.org == org}
        paused = await self._paused(org, Pausable.QUEUE)
        return [
            QueueView(
                queue=name,
                turns=turns[name].waiting if name in turns else 0,
                tasks=tasks[name].waiting if name in tasks else 0,
                since_at=min((depths[name].since_at for depths in (turns, tasks) if name in depths), default=None),
                pause=paused.get(name),
            )
            for name in sorted({*turns, *tasks, *paused})
        ][:page]

    def _page(self, limit: int) -> int:
        if not 1 <= limit <= self._limits.page_size:
            raise InvalidRequest(f"limit must lie between 1 and {self._limits.page_size}", field="limit")
        return limit
