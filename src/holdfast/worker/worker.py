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
    PendingEvents,
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
from holdfast.frontends.python.definitions import Registry
from holdfast.frontends.python.program import program_maker
from holdfast.telemetry.traces import Tracing
from holdfast.worker.heartbeats import Heartbeater
from holdfast.worker.queries import QueryRunner
from holdfast.worker.runtime import WorkerRuntime, log
from holdfast.worker.tasks import TaskRunner
from holdfast.worker.threads import TaskThreads
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
        make_host: Callable[..., WorkerRuntime] = WorkerRuntime,
    ) -> None:
        self._runtime = make_host(workers, org, registry, config, now, secret=secret)
        self._runners: OrderedDict[str, ExecutionRunner] = OrderedDict()
        self._poller: asyncio.Task[None] | None = None
        self._reopening: asyncio.Task[None] | None = None
        self._opening = False

    @property
    def session(self) -> str:
        return self._runtime.session

    @property
    def cached(self) -> int:
        """How many executions have a live program here."""
        return len(self._runners)

    @property
    def held(self) -> int:
        """How many executions are leased to it."""
        return self._runtime.held

    @property
    def running(self) -> int:
        """How many task attempts run here."""
        return self._tasks.running

    @property
    def busy(self) -> bool:
        """Whether a commit, a read or a new session is under way. Bodies that run do not count."""
        return any(runner.busy for runner in self._runners.values()) or not self._runtime.session

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
        self._runtime.tracing = tracing

    async def start(self) -> None:
        runtime = self._runtime
        runtime.loop = asyncio.get_running_loop()
        runtime.context = copy_context()
        runtime.on_idle = self._evict
        runtime.on_closed = self._forget
        runtime.threads = TaskThreads(runtime.config.task_threads)
        self._tasks = TaskRunner(runtime)
        self._heartbeater = Heartbeater(runtime, self._tasks, self._session_lost, self._tasks.stop_stale)
        self._queries = QueryRunner(runtime, self._runners.get, self._heartbeater)
        await self._open_session()
        self._heartbeater.start()

    async def _open_session(self) -> None:
        runtime = self._runtime
        # Random, never the host's name: a restarted process must not be taken for the one before it.
        runtime.session = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(6)}"
        self._opening = True
        try:
            await runtime.workers.register(
                RegisterWorker(
                    org=runtime.org,
                    session=runtime.session,
                    host=socket.gethostname(),
                    pid=os.getpid(),
                    queues=runtime.config.queues,
                    builds=runtime.registry.builds,
                    task_kinds=tuple(found.kind for found in runtime.registry.tasks),
                    triggers=_triggers(runtime),
                    turn_slots=runtime.config.turn_slots,
                    task_slots=runtime.config.task_slots,
                    lease_s=runtime.config.lease_s,
                )
            )
        finally:
            self._opening = False
        self._poller = runtime.loop.create_task(self._poll(runtime.session), name="holdfast-worker")

    async def _poll(self, session: str) -> None:
        try:
            while session == self._runtime.session:
                works = await self._runtime.workers.poll(session)
                for work in works:
                    self._heartbeater.turn_started(work)
                    self._take(work)
                self._heartbeater.turn_ended()
        except EngineStopped:
            return
        except SessionLost:
            self._session_lost(session)

    def _take(self, work: Work) -> None:
        match work:
            case TurnWork():
                self._runner(work).work(work)
            case PendingEvents():
                runner = self._runners.get(work.execution_id)
                if runner is not None:
                    runner.pending_events(work)
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
        definition = self._runtime.registry.workflow(work.kind, work.version)
        assert definition is not None, "the engine hands out known kinds only"
        maker = program_maker(
            definition,
            self._runtime.org,
            work.execution_id,
            propagate_child_failures=self._runtime.config.propagate_child_failures,
            token_key=self._runtime.token_key,
        )
        if len(self._runners) >= self._runtime.config.cached_executions:
            self._evict(room_for=1)
        runner = ExecutionRunner(self._runtime, work.execution_id, maker, definition.build)
        self._runners[work.execution_id] = runner
        return runner

    def _evict(self, room_for: int = 0) -> None:
        """Keep no more programs than allowed: the longest idle go first; those at work stay, and go when they rest."""
        excess = len(self._runners) + room_for - self._runtime.config.cached_executions
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
        if self._runtime.draining or session != self._runtime.session:
            return
        if self._opening:
            return  # a heartbeat has overtaken the registration; if the session is lost indeed, the next one says so
        log.warning("session %s had expired; what it held has been given to others", self._runtime.session)
        for runner in list(self._runners.values()):
            runner.drop()
        self._tasks.drop_all()
        self._runtime.session = ""
        self._reopening = self._runtime.loop.create_task(self._open_anew())

    async def _open_anew(self) -> None:
        while not self._runtime.draining:
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
        runtime = self._runtime
        runtime.nothing_held = asyncio.Event()
        runtime.draining = True
        await runtime.workers.drain(runtime.session)
        await self._tasks.finish(runtime.config.shutdown_grace_s)
        if runtime.held:
            with suppress(TimeoutError):
                await asyncio.wait_for(runtime.nothing_held.wait(), runtime.config.shutdown_grace_s)
        self._heartbeater.stop()
        for runner in list(self._runners.values()):
            runner.drop()
        await self._queries.stop()
        if self._reopening is not None:
            await self._reopening
        await runtime.workers.unregister(runtime.org, runtime.session)
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        runtime.threads.close()


def _triggers(runtime: WorkerRuntime) -> tuple[Trigger, ...]:
    queue = runtime.config.queues[0] if runtime.config.queues else "default"
    return tuple(
        Trigger(kind=found.kind, version=found.version, key=on.key, queue=on.queue or queue, where=on.where)
        for found in runtime.registry.workflows
        for on in found.triggers
    )
