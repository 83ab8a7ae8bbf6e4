"""What an engine says of itself: who asks, whether it works, its figures; and `recover`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from holdfast.config import Limits
from holdfast.contract.instants import instant
from holdfast.contract.metrics import Metrics
from holdfast.contract.system import CallerInfo, CheckAlive, CheckReady, Health, ReadMetrics, Recover, WhoAmI
from holdfast.contract.upkeep import RecoveryReport
from holdfast.engine.api import answers
from holdfast.engine.recovery import recover
from holdfast.engine.unit_of_work import OperationQueue
from holdfast.errors import RouteNotFound, StorageBusy
from holdfast.model.keys import Org, Role
from holdfast.store import reads
from holdfast.store.protocol import Store

READY_S: Final = 2.0


class System:
    """`claim` looks for work for this process; `metrics` gives the figures, if they are counted."""

    def __init__(
        self,
        store: Store,
        queue: OperationQueue,
        limits: Limits,
        claim: Callable[[], Awaitable[None]],
        metrics: Callable[[], Metrics | None],
    ) -> None:
        self._store = store
        self._queue = queue
        self._limits = limits
        self._claim = claim
        self._metrics = metrics

    @answers(WhoAmI)
    async def who_am_i(self, request: WhoAmI) -> CallerInfo:
        who = request.by
        return CallerInfo(
            org=request.org if who is None else who.org,
            role=Role.ADMIN if who is None else who.role,
            key_id=None if who is None else who.key_id,
            payload_bytes=self._limits.payload_bytes,
            now=instant(self._store.clock()),
        )

    @answers(Recover)
    async def recover(self, request: Recover) -> RecoveryReport:
        report = await recover(self._queue, self._store, request.org)
        await self._claim()
        return report

    @answers(ReadMetrics)
    async def metrics(self, request: ReadMetrics) -> bytes:
        metrics, who = self._metrics(), request.by
        if metrics is None:
            raise RouteNotFound("this server counts nothing: TelemetryConfig(metrics=True) would")
        return (await metrics.page(None if who is None or who.key_id is None else who.org)).encode()

    @answers(CheckAlive)
    async def alive(self, _: CheckAlive) -> Health:
        return Health(status="alive")

    @answers(CheckReady)
    async def ready(self, _: CheckReady) -> Health:
        """Asks the database something small; what it raises is the answer. Whoever probes does not wait for long."""
        try:
            async with asyncio.timeout(READY_S):
                await self._store.read(reads.Select(Org, limit=1))
        except TimeoutError:
            raise StorageBusy(f"the database did not answer within {READY_S:g} s") from None
        return Health(status="ready")
