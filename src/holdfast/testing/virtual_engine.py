"""The real engine on virtual time: no loop of its own watches the clock, every wait can be seen from outside.

What differs from `holdfast.Engine`: services do a round when they are told to, the pause before a step's next attempt
is one of virtual time, task heartbeats are passed on when time is about to move, and the session's lease outlasts any
test. Everything else, from the rules to the database, is the same code.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, cast

from holdfast.assembly import Engine, open_store
from holdfast.config import EngineConfig
from holdfast.contract.executions import StartAnswer
from holdfast.contract.tasks import StartTask, Tasks
from holdfast.contract.workers import Heartbeat, ParkTurn, Workers
from holdfast.engine.facade import LocalEngine
from holdfast.frontends.python.definitions import Registry, WorkflowDefinition
from holdfast.services.service import Service
from holdfast.store.protocol import Store
from holdfast.testing.fakes import Fake, FakeableRegistry
from holdfast.testing.inline_store import InlineStore
from holdfast.testing.virtual_time import VirtualTime
from holdfast.testing.watched_store import WatchedStore
from holdfast.worker.runtime import WorkerRuntime
from holdfast.worker.worker import Worker

LEASE_S = 100 * 366 * 86_400.0
"""Longer than any scenario: jumping over a month must not look like a worker that fell silent for a month."""
GRACE_S = 0.05
MEMORY = "sqlite://"
TEST_SECRET = b"virtual"


class VirtualRuntime(WorkerRuntime):
    """A worker's surroundings in virtual time."""

    __slots__ = ("_bodies", "_time")

    SENDS_HEARTBEATS: ClassVar[bool] = False

    def __init__(self, time: VirtualTime, bodies: FakeableRegistry, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._time = time
        self._bodies = bodies

    async def sleep(self, seconds: float) -> None:
        await self._time.sleep(seconds)

    def step_body(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return self._bodies.step_body(fn)


class VirtualEngine(Engine):
    """An Engine whose owner moves time. `parked` has what was asked to be parked since it was looked at last."""

    def __init__(
        self,
        url: str,
        *,
        workflows: Iterable[Callable[..., Any]],
        tasks: Iterable[Callable[..., Any]],
        config: EngineConfig,
        org: str,
        time: VirtualTime,
    ) -> None:
        self._time = time
        self._bodies = FakeableRegistry(workflows, tasks)
        self._extra: list[Worker] = []
        self._joining: set[asyncio.Task[None]] = set()
        self.parked: list[ParkTurn] = []
        worker = replace(config.worker, lease_s=LEASE_S, shutdown_grace_s=min(config.worker.shutdown_grace_s, GRACE_S))
        super().__init__(url, config=replace(config, worker=worker), org=org, clock=time)
        self._registry: Registry = self._bodies
        self.client.tasks = cast(Tasks, _JoinedTasks(self.client.tasks, self._joining))

    # --- the engine's seams ---

    def _make_local(self, url: str) -> LocalEngine:
        if url != MEMORY:
            self._watched = WatchedStore(open_store(url, self.config, self._time))
            return LocalEngine(cast(Store, self._watched), self.config, secret=self._secret)
        self._watched = WatchedStore(InlineStore(self.config.store, self._time))
        # Ids that are the same in every run make `ctx.random` so. In a file they could meet those of another run.
        entropy = partial(random.Random(0).getrandbits, 64)  # noqa: S311 - nothing to keep secret
        return LocalEngine(cast(Store, self._watched), self.config, entropy, secret=self._secret)

    def _make_worker(self, registry: Registry) -> Worker:
        return Worker(
            cast(Workers, _WatchedWorkers(self._local.workers, self.parked)),
            self.org,
            registry,
            self.config.worker,
            self._time,
            secret=self._secret(),
            make_host=partial(VirtualRuntime, self._time, self._bodies),
        )

    def _secret(self) -> bytes:
        # The same in every run, as ids are.
        return TEST_SECRET if self._url == MEMORY else super()._secret()

    def _start_services(self, services: Iterable[Service]) -> None:
        """They are told when to look."""

    async def shutdown(self) -> None:
        await asyncio.gather(*self._joining)
        for worker in self._extra:
            await worker.stop()
        self._extra.clear()
        await super().shutdown()

    # --- for the environment ---

    def fake(self, target: Callable[..., Any] | str, fake: Fake) -> None:
        """Replace a body. For a task kind that no worker here knows, one joins that does."""
        kind = self._bodies.fake(target, fake)
        if kind is not None and self._running:
            worker = self._make_worker(self._bodies.only(kind))
            joining = asyncio.get_running_loop().create_task(self._join(worker))
            self._joining.add(joining)
            joining.add_done_callback(self._joining.discard)

    async def _join(self, worker: Worker) -> None:
        await worker.start()
        self._extra.append(worker)

    def knows_task(self, kind: str) -> bool:
        return self._bodies.task(kind) is not None

    @property
    def definitions(self) -> tuple[WorkflowDefinition, ...]:
        return self._bodies.workflows

    async def look(self, *, thorough: bool) -> None:
        """One round of the services, at this instant: of those that can't wait, or (`thorough`) of all."""
        for service in self._services:
            if service.TIMELY or thorough:
                await service.once()

    async def next_due_at(self, after: int) -> int | None:
        return await self._local.upkeep.next_due_at(after)

    async def until_quiet(self) -> None:
        await self._watched.until_quiet()

    @property
    def quiet(self) -> bool:
        """Nothing is on its way to or from the database, and no work waits to be looked at."""
        if not self._watched.quiet or self._joining or any(worker.busy for worker in self._workers):
            return False
        return all(
            session.waiter is not None and not session.waiter.done() and not session.outbox
            for session in self._local.dispatcher.sessions.values()
        )

    def bodies(self) -> list[tuple[str, asyncio.Task[None]]]:
        """The steps and tasks that run: in words, and what ends with them."""
        return [body for worker in self._workers for body in worker.bodies()]

    async def pass_on_beats(self) -> bool:
        """Hand task heartbeats to the engine at the instant at which they were made. Whether there were any."""
        found = False
        for worker in self._workers:
            beats = worker.take_beats()
            if beats:
                request = Heartbeat(org=self.org, session=worker.session, lease_s=LEASE_S, tasks=beats)
                await asyncio.wrap_future(self._local.workers.heartbeat(request))
                worker.confirm(beats)
                found = True
        return found

    @property
    def _workers(self) -> list[Worker]:
        return [*self._extra] if self._worker is None else [self._worker, *self._extra]


class _JoinedTasks:
    """The contract's standalone tasks. A start waits for the workers of new fakes to make their kinds known."""

    def __init__(self, tasks: Tasks, joining: set[asyncio.Task[None]]) -> None:
        self._tasks = tasks
        self._joining = joining

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tasks, name)

    async def start(self, request: StartTask, using: Any = None) -> StartAnswer:
        await asyncio.gather(*self._joining)
        return await self._tasks.start(request, using)


class _WatchedWorkers:
    """The contract's workers, with an ear for what is parked."""

    def __init__(self, workers: Workers, parked: list[ParkTurn]) -> None:
        self._workers = workers
        self._parked = parked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workers, name)

    def park_turn(self, request: ParkTurn) -> Any:
        self._parked.append(request)
        return self._workers.park_turn(request)
