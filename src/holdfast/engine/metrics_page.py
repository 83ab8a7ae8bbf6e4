"""The page of metrics: what was counted, and what waits in the database at the moment of asking.

The database is asked no more often than every `refresh_s`, and for no more than a tenth of the time, however many ask.
If it does not answer, everything else is still told.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from holdfast.engine.facade import LocalEngine
from holdfast.errors import HoldfastError
from holdfast.model.values import MICRO
from holdfast.store.protocol import Store
from holdfast.store.queries import Backlog, QueueDepth
from holdfast.telemetry.meters import Meters

log = logging.getLogger("holdfast.engine")

WAIT_S = 5.0
SHARE = 10


class WorkerLoad(Protocol):
    """What a worker has to do."""

    @property
    def cached(self) -> int: ...

    @property
    def held(self) -> int: ...

    @property
    def running(self) -> int: ...


class MetricsPage:
    """`contract.metrics.Metrics`. `most` bounds the queues and orgs that are told apart."""

    def __init__(self, store: Store, refresh_s: float, most: int) -> None:
        self.meters = meters = Meters(most)
        self._store = store
        self._refresh_s = max(refresh_s, 1.0)
        # Turns and tasks share a metric's label sets.
        self._most = max(most // 2, 1)
        self._fresh_until = 0.0
        self._reading = asyncio.Lock()
        self._up = meters.registry.gauge("holdfast_store_up", "Whether the database answered when asked last.").of()

    def watch_engine(self, engine: LocalEngine) -> None:
        """What is asked of an engine at every scrape."""
        watch, store = self.meters.watch, engine.store
        watch("holdfast_sessions", "Worker sessions of this process.", lambda: len(engine.dispatcher.sessions))
        watch("holdfast_store_readers", "Threads or connections that read.", lambda: store.vitals().readers)
        watch("holdfast_store_reads", "Reads that run or wait now.", lambda: store.vitals().reads)
        watch("holdfast_operations_waiting", "Operations that wait for a transaction.", lambda: engine.queue.waiting)
        if store.vitals().notifications_healthy is not None:
            watch(
                "holdfast_hints_healthy",
                "Whether other nodes are heard of at once; if not, they are looked for by polling.",
                lambda: bool(store.vitals().notifications_healthy),
            )

    def watch_worker(self, worker: Callable[[], WorkerLoad | None]) -> None:
        """What is asked of the worker in this process, if there is one."""

        def read(of: Callable[[WorkerLoad], int]) -> Callable[[], int]:
            def value() -> int:
                found = worker()
                return of(found) if found is not None else 0

            return value

        watch = self.meters.watch
        watch("holdfast_worker_cached_programs", "Live programs of the worker here.", read(lambda load: load.cached))
        watch("holdfast_worker_held_executions", "Executions leased to the worker here.", read(lambda load: load.held))
        watch("holdfast_worker_running_tasks", "Task attempts of the worker here.", read(lambda load: load.running))

    async def page(self, org: str | None = None) -> str:
        async with self._reading:
            if time.monotonic() >= self._fresh_until:
                await self._refresh()
        return self.meters.render(org)

    async def _refresh(self) -> None:
        began_at = time.monotonic()
        try:
            async with asyncio.timeout(WAIT_S):
                backlog = await self._store.backlog(self._store.clock(), self._most)
        except (HoldfastError, TimeoutError) as error:
            log.warning("what waits in queues could not be read: %s", error)
            self._up.value = 0
            self._forget()
        else:
            self._up.value = 1
            self._show(backlog)
        took_s = time.monotonic() - began_at
        self._fresh_until = began_at + max(self._refresh_s, took_s * SHARE)

    def _forget(self) -> None:
        for family in (self.meters.depth, self.meters.age, self.meters.stuck):
            family.clear()

    def _show(self, backlog: Backlog) -> None:
        before = set(self.meters.stuck.values())
        self._forget()
        self._show_queues("turn", backlog.turns)
        self._show_queues("task", backlog.tasks)
        # An org that has none left is told once more and from then on: an alert that is on has to see it.
        for (org,) in before:
            self.meters.stuck.of(org)
        for org, count in backlog.stuck.items():
            self.meters.stuck.of(org).value = count

    def _show_queues(self, of: str, depths: list[QueueDepth]) -> None:
        now = self._store.clock()
        for depth in depths:
            labels = (depth.org, depth.queue, of)
            self.meters.depth.of(*labels).value = depth.waiting
            self.meters.age.of(*labels).value = max(now - depth.since_at, 0) / MICRO
