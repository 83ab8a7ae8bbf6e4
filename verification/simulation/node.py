"""One node: engine, services and worker over its own way to the database, as `holdfast.Engine` puts them together.

What differs from a real process: the worker's pulse is a task of the loop, not a thread; its sessions have names that
follow from the seed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from random import Random
from typing import Any

from holdfast.config import EngineConfig
from holdfast.contract.workers import Heartbeat
from holdfast.engine.facade import LocalEngine
from holdfast.errors import EngineStopped, OutcomeUnknown, StorageBusy, Unavailable
from holdfast.frontends.python.definitions import Registry
from holdfast.services.due_work import DueWorkService
from holdfast.services.housekeeping import Housekeeping
from holdfast.services.peer_watcher import PeerWatcher
from holdfast.worker.heartbeats import Heartbeater
from holdfast.worker.queries import QueryRunner
from holdfast.worker.runtime import WorkerRuntime
from holdfast.worker.tasks import TaskRunner
from holdfast.worker.threads import TaskThreads
from holdfast.worker.worker import Worker
from verification.memory import Faults, InDoubtCommit, MemoryDatabase, MemoryStore
from verification.simulation.loop import PROCESS, Process, SimulatedLoop

ORG = "default"
SECRET = b"simulation"
TOLD_AFTER_S = 0.2
"""How long a node asks what became of a commit before it tells callers that it does not know."""


class Weather(Faults):
    """How well the nodes get along with their database. Shared by all; `calm` ends all trouble. Hints are lost on the
    best of days: nothing hangs on them.

    `slow`, `lost`, `silent`: how often a transaction is slow, is lost before its commit, and how often a node does not
    hear at once that others have written. `unsure`: how often the answer to a commit is lost, so that its node has to
    ask whether it stands, and may get no answer for a while.
    """

    def __init__(
        self, loop: SimulatedLoop, rng: Random, *, slow: float, lost: float, silent: float, unsure: float
    ) -> None:
        self._loop = loop
        self._rng = rng
        self.slow = slow
        self.lost = lost
        self.silent = silent
        self.unsure = unsure

    def calm(self) -> None:
        self.slow = self.lost = self.unsure = 0.0

    def _delay_s(self) -> float:
        if self._rng.random() < self.slow:
            return self._rng.choice((0.001, 0.02, 0.3))
        return 0.0

    def schedule(self, work: Callable[[], None], context: Context) -> None:
        delay_s = self._delay_s() if self.slow else 0.0
        if delay_s:
            self._loop.call_later(delay_s, work, context=context)
        else:
            self._loop.call_soon(work, context=context)

    def pause_s(self) -> float:
        return self._delay_s() if self.slow else 0.0

    def before_commit(self) -> None:
        if self.lost and self._rng.random() < self.lost:
            raise StorageBusy("the connection was lost before the commit", final=self._rng.random() < 0.7)

    def in_doubt(self) -> InDoubtCommit | None:
        if self.unsure and self._rng.random() < self.unsure:
            return InDoubtCommit(
                self._rng.random() < 0.5, self._rng.choice((0.001, 0.02, 0.3, 1.0)), notified_after_s=TOLD_AFTER_S
            )
        return None

    def hint(self) -> bool:
        return not self.silent or self._rng.random() >= self.silent

    async def before_read(self) -> None:
        delay_s = self._delay_s() if self.slow else 0.0
        if delay_s:
            await asyncio.sleep(delay_s)


class SimulatedHost(WorkerRuntime):
    """A worker's surroundings. Whatever name the worker gives a session, it gets the next one of its node."""

    __slots__ = ("_name", "_named", "_sessions")

    def __init__(self, name: str, *args: Any, **options: Any) -> None:
        self._name = name
        self._sessions = 0
        super().__init__(*args, **options)

    @property
    def session(self) -> str:
        return self._named

    @session.setter
    def session(self, given: str) -> None:
        if given:
            self._sessions += 1
            given = f"{self._name}.{self._sessions}"
        self._named = given


class SimulatedPulse(Heartbeater):
    """Beats on the loop's own time."""

    def start(self) -> None:
        self._job = self._runtime.loop.create_task(self._beats())

    def stop(self) -> None:
        self._stopping = True
        self._job.cancel()

    async def _beats(self) -> None:
        lease_s = self._runtime.config.lease_s
        while not self._stopping:
            await asyncio.sleep(lease_s / 2)
            if not self._runtime.session:
                continue
            beats = self._tasks.take_beats()
            request = Heartbeat(
                org=self._runtime.org,
                session=self._runtime.session,
                lease_s=lease_s,
                tasks=beats,
                running=self._tasks.tokens(),
            )
            try:
                beat = asyncio.wrap_future(self._runtime.workers.heartbeat(request))
                answer = await asyncio.wait_for(beat, lease_s)
            except EngineStopped:
                return
            except (TimeoutError, Unavailable, OutcomeUnknown):
                continue
            self._tasks.confirm(beats)
            if not answer.alive:
                self._lost(request.session)
            elif answer.stale:
                self._stale(answer.stale)


class SimulatedWorker(Worker):
    async def start(self) -> None:
        host = self._runtime
        host.loop = asyncio.get_running_loop()
        host.context = copy_context()
        host.on_idle = self._evict
        host.on_closed = self._forget
        host.threads = TaskThreads(1)
        self._tasks = TaskRunner(host)
        self._heartbeater: Heartbeater = SimulatedPulse(host, self._tasks, self._session_lost, self._tasks.stop_stale)
        self._queries = QueryRunner(host, self._runners.get, self._heartbeater)
        while True:
            try:
                await self._open_session()
                break
            except EngineStopped:
                raise
            except (Unavailable, OutcomeUnknown):
                await asyncio.sleep(0.2)
        self._heartbeater.start()


class Node(Process):
    """See the module's text. `up` is set when it takes work."""

    def __init__(
        self,
        name: str,
        loop: SimulatedLoop,
        database: MemoryDatabase,
        *,
        config: EngineConfig,
        registry: Registry,
        clock: Callable[[], int],
        weather: Weather,
        entropy: Callable[[], int],
    ) -> None:
        super().__init__()
        self.name = name
        self.up = False
        self._loop = loop
        self.store = MemoryStore(database, clock, weather)
        self.engine = LocalEngine(self.store, config, entropy, secret=lambda: SECRET)
        self._config = config
        self._worker = SimulatedWorker(
            self.engine.workers,
            ORG,
            registry,
            config.worker,
            clock,
            secret=SECRET,
            make_host=lambda *args, **options: SimulatedHost(name, *args, **options),
        )
        self._context = copy_context()
        self._context.run(PROCESS.set, self)

    def start(self) -> asyncio.Task[None]:
        return self._loop.create_task(self._start(), context=self._context)

    async def _start(self) -> None:
        await self.engine.start()
        upkeep, config = self.engine.upkeep, self._config
        self._services = (
            DueWorkService(upkeep, config.worker.lease_s / 3, config.timer_resolution_s),
            PeerWatcher(upkeep, config.poll_min_s, config.poll_max_s),
            Housekeeping(upkeep),
        )
        for service in self._services:
            service.start()
        await self._worker.start()
        self.up = True

    def forget(self) -> None:
        """Let go of everything: it will never run again."""
        for part in (self.engine, self.store, self._worker, self):
            vars(part).clear()

    def shut_down(self) -> asyncio.Task[None]:
        """In good order: what it holds is handed back."""
        self.up = False
        return self._loop.create_task(self._shut_down(), context=self._context)

    async def _shut_down(self) -> None:
        try:
            await self._worker.stop()
            for service in self._services:
                await service.stop()
            await self.engine.stop()
        except (Unavailable, OutcomeUnknown):
            # A process that can't even say good-bye ends all the same.
            pass
        self.die()
