"""`contract.deployments.Deployments`, in process: reads and nothing else."""

from __future__ import annotations

from holdfast.config import Limits
from holdfast.contract.deployments import QueueView
from holdfast.errors import InvalidRequest
from holdfast.model.executions import DefinitionRow, WorkerRow
from holdfast.store.protocol import Store

MOST_QUEUES = 10_000


class LocalDeployments:
    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    async def definitions(self, org: str, limit: int = 1000) -> list[DefinitionRow]:
        return await self._store.definitions(org, self._page(limit))

    async def workers(self, org: str, limit: int = 1000) -> list[WorkerRow]:
        return await self._store.workers(org, self._page(limit))

    async def queues(self, org: str, limit: int = 1000) -> list[QueueView]:
        page = self._page(limit)
        backlog = await self._store.backlog(self._store.clock(), MOST_QUEUES)
        turns = {depth.queue: depth for depth in backlog.turns if depth.org == org}
        tasks = {depth.queue: depth for depth in backlog.tasks if depth.org == org}
        return [
            QueueView(
                queue=name,
                turns=turns[name].waiting if name in turns else 0,
                tasks=tasks[name].waiting if name in tasks else 0,
                since_at=min(depths[name].since_at for depths in (turns, tasks) if name in depths),
            )
            for name in sorted({*turns, *tasks})
        ][:page]

    def _page(self, limit: int) -> int:
        if not 1 <= limit <= self._limits.page_size:
            raise InvalidRequest(f"limit must lie between 1 and {self._limits.page_size}", field="limit")
        return limit
