"""The worker: one session, its cached executions, its tasks, its pulse."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from itertools import islice

from holdfast.config import WorkerConfig
from holdfast.contract.workers import (
    ExecutionEnded,
    LostTurn,
    News,
    QueryWork,
    RegisterWorker,
    TaskBeat,
    TaskStop,
    TaskWork,
    Trigger,
    TurnWork,
    Work,
    Workers,
)
from holdfast.errors import NOT_NOW, EngineStopped, SessionLost
from holdfast.replay.registry import Registry
from holdfast.telemetry.traces import Tracing
from holdfast.worker.heartbeats import Pulse
from holdfast.worker.host import Host, log
from holdfast.worker.queries import QueryRunner
from holdfast.worker.tasks import TaskRunner
from holdfast.worker.threads import BodyThreads
from holdfast.worker.turns import ExecutionRunner

REOPEN_S = 0.5


class Worker:
    """Runs the workflows and tasks of a registry for one org."""

    def __init__(
        self,
        workers: Workers,
        org: str,
        registry: Registry,
        config: WorkerConfig,
        now: Callable[[], int],
        *,
        secret: bytes,
        make_host: Callable[..., Host] = Host,
    ) -> None:
        self._host = make_host(workers, org, registry, config, now, secret=secret)
        self._runners: OrderedDict[str, ExecutionRunner] = OrderedDict()
        self._poller: asyncio.Task[None] | None = None
        self._reopening: asyncio.Task[None] | None = None
        self._opening = False

    @property
    def session(self) -> str:
        return self._host.session

    @property
    def cached(self) -> int:
        """How many executions have a live program here."""
        return len(self._runners)

    @property
    def held(self) -> int:
        """How many executions are leased to it."""
        return self._host.held

    @property
    def running(self) -> int:
        """How many task attempts run here."""
        return self._tasks.running

    @property
    def busy(self) -> bool:
        """Whether a commit, a read or a new session is under way. Bodies that run do not count."""
        return any(runner.busy for runner in self._runners.values()) or not self._host.session

    def bodies(self) -> list[tuple[str, asyncio.Task[None]]]:
        """The steps and tasks that run here: in words, and what ends with them."""
        found = [
            (f"step {step.request.name!r} of execution {runner.id}", step.job)
            for runner in self._runners.values()
            for step in runner.steps
        ]
        for task in self._tasks.bodies():
            work = task.work
            words = f"task {work.kind!r}, attempt {work.token.epoch}, of execution {work.execution_id}"
            found.append((words, task.job))
        return found

    def take_beats(self) -> tuple[TaskBeat, ...]:
        """What task bodies have reported since it was asked last: for whoever passes it on in the pulse's place."""
        return self._tasks.take_beats()

    def confirm(self, beats: tuple[TaskBeat, ...]) -> None:
        """The engine has answered them."""
        self._tasks.confirm(beats)

    def trace(self, tracing: Tracing) -> None:
        """Make spans around the bodies of tasks and steps."""
        self._host.tracing = tracing

    async def start(self) -> None:
        host = self._host
        host.loop = asyncio.get_running_loop()
        host.context = copy_context()
        host.rested = self._evict
        host.gone = self._forget
        host.threads = BodyThreads(host.config.task_threads)
        self._tasks = TaskRunner(host)
        self._pulse = Pulse(host, self._tasks, self._session_lost, self._tasks.stop_stale)
        self._queries = QueryRunner(host, self._runners.get, self._pulse)
        await self._open_session()
        self._pulse.start()

    async def _open_session(self) -> None:
        host = self._host
        # Random, never the host's name: a restarted process must not be taken for the one before it.
        host.session = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(6)}"
        self._opening = True
        try:
            await host.workers.register(
                RegisterWorker(
                    org=host.org,
                    session=host.session,
                    host=socket.gethostname(),
                    pid=os.getpid(),
                    queues=host.config.queues,
                    builds=host.registry.builds,
                    task_kinds=tuple(found.kind for found in host.registry.tasks),
                    triggers=_triggers(host),
                    turn_slots=host.config.turn_slots,
                    task_slots=host.config.task_slots,
                    lease_s=host.config.lease_s,
                )
            )
        finally:
            self._opening = False
        self._poller = host.loop.create_task(self._poll(host.session), name="holdfast-worker")

    async def _poll(self, session: str) -> None:
        try:
            while session == self._host.session:
                works = await self._host.workers.poll(session)
                for work in works:
                    self._pulse.turn_begins(work)
                    self._take(work)
                self._pulse.turn_ends()
        except EngineStopped:
            return
        except SessionLost:
            self._session_lost(session)

    def _take(self, work: Work) -> None:
        match work:
            case TurnWork():
                self._runner(work).work(work)
            case News():
                runner = self._runners.get(work.execution_id)
                if runner is not None:
                    runner.news(work)
            case TaskWork():
                self._tasks.start(work)
            case TaskStop():
                self._tasks.stop(work)
            case ExecutionEnded():
                self._tasks.stop_all_of(work.execution_id)
            case QueryWork():
                self._queries.start(work)
            case LostTurn():
                runner = self._runners.get(work.execution_id)
                if runner is not None:
                    runner.lost(work.epoch)

    def _runner(self, work: TurnWork) -> ExecutionRunner:
        runner = self._runners.get(work.execution_id)
        if runner is not None:
            self._runners.move_to_end(work.execution_id)
            return runner
        definition = self._host.registry.workflow(work.kind, work.version)
        assert definition is not None, "the engine hands out known kinds only"
        if len(self._runners) >= self._host.config.cached_executions:
            self._evict(room_for=1)
        runner = ExecutionRunner(self._host, work.execution_id, definition)
        self._runners[work.execution_id] = runner
        return runner

    def _evict(self, room_for: int = 0) -> None:
        """Keep no more programs than allowed: the longest idle go first; those at work stay, and go when they rest."""
        excess = len(self._runners) + room_for - self._host.config.cached_executions
        if excess <= 0:
            return
        # The longest idle are in front: it must not cost a look at all the others.
        idle = list(islice((runner for runner in self._runners.values() if runner.idle), excess))
        for runner in idle:
            runner.evict()
            del self._runners[runner.id]

    def _forget(self, execution_id: str) -> None:
        self._runners.pop(execution_id, None)

    def _session_lost(self, session: str) -> None:
        """Others may hold what we held: drop everything and begin anew under another name."""
        if self._host.draining or session != self._host.session:
            return
        if self._opening:
            return  # a heartbeat has overtaken the registration; if the session is lost indeed, the next one says so
        log.warning("session %s had expired; what it held has been given to others", self._host.session)
        for runner in list(self._runners.values()):
            runner.drop()
        self._tasks.drop_all()
        self._host.session = ""
        self._reopening = self._host.loop.create_task(self._open_anew())

    async def _open_anew(self) -> None:
        while not self._host.draining:
            try:
                await self._open_session()
            except EngineStopped:
                return
            except NOT_NOW as error:
                log.warning("no new session yet: %s", error)
                await asyncio.sleep(REOPEN_S)
            else:
                return

    async def stop(self) -> None:
        """Take nothing more, let tasks finish within the grace, hand back the rest. Heartbeats stop last."""
        host = self._host
        host.nothing_held = asyncio.Event()
        host.draining = True
        await host.workers.drain(host.session)
        await self._tasks.finish(host.config.shutdown_grace_s)
        if host.held:
            with suppress(TimeoutError):
                await asyncio.wait_for(host.nothing_held.wait(), host.config.shutdown_grace_s)
        self._pulse.stop()
        for runner in list(self._runners.values()):
            runner.drop()
        await self._queries.stop()
        if self._reopening is not None:
            await self._reopening
        await host.workers.unregister(host.org, host.session)
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        host.threads.close()


def _triggers(host: Host) -> tuple[Trigger, ...]:
    queue = host.config.queues[0] if host.config.queues else "default"
    return tuple(
        Trigger(kind=found.kind, version=found.version, key=on.key, queue=on.queue or queue, where=on.where)
        for found in host.registry.workflows
        for on in found.triggers
    )
