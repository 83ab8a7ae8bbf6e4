"""`WorkflowEnvironment`: the real engine in the test's own process, on time that the test moves.

Nothing here waits by sleeping. The environment is idle when no operation is on its way to or from the database, no
turn is in flight and no step or task runs that could still end by itself; only then does time move, from one due
instant to the next, and everything due at an instant happens before the next one comes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from holdfast.client.client import Client
from holdfast.client.handles import WorkflowHandle
from holdfast.client.options import Workflow
from holdfast.client.views import instant, microseconds
from holdfast.config import EngineConfig, StoreConfig
from holdfast.errors import BodiesStillRunning, InvalidDuration, InvalidRequest, NeverSettled, StuckExecution
from holdfast.testing.fakes import UNSET, Fake, make_fake
from holdfast.testing.histories import ReplayReport, export_history, replay_definitions
from holdfast.testing.virtual_engine import MEMORY, VirtualEngine
from holdfast.testing.virtual_time import START, VirtualTime

WAIT_S = 20.0
PASSED_OVER_AFTER_S = 0.05
LOOP_ROUNDS = 5

QUICK = EngineConfig(store=StoreConfig(synchronous="normal"))


class WorkflowEnvironment:
    """The engine with virtual time. Use it as `async with WorkflowEnvironment(workflows=[...], tasks=[...]) as env`.

    `start` is what the clock shows at first. `wait_s` is how long, in real seconds, one instant may take before the
    environment says what it waits for. An execution that gets stuck fails the test at the next call that waits, unless
    `allow_stuck` is set. With `replay_always` every program is rebuilt from its history at every wait.
    """

    def __init__(
        self,
        *,
        workflows: Iterable[Callable[..., Any]] = (),
        tasks: Iterable[Callable[..., Any]] = (),
        url: str = MEMORY,
        start: datetime | None = None,
        config: EngineConfig = QUICK,
        org: str = "default",
        wait_s: float = WAIT_S,
        allow_stuck: bool = False,
        replay_always: bool = False,
    ) -> None:
        self._time = VirtualTime(microseconds(START if start is None else start, "start"))
        if replay_always:
            config = replace(config, worker=replace(config.worker, replay_always=True))
        self._engine = VirtualEngine(url, workflows=workflows, tasks=tasks, config=config, org=org, time=self._time)
        self._wait_s = wait_s
        self._allow_stuck = allow_stuck
        self._looked_at = self._time()
        self._moving = asyncio.Lock()
        self._fell_asleep = asyncio.Event()
        self._time.on_sleep = self._fell_asleep.set
        self._passed_over: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._engine.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._engine.shutdown()

    @property
    def engine(self) -> VirtualEngine:
        return self._engine

    @property
    def client(self) -> Client:
        return self._engine.client

    # --- time ---

    def now(self) -> datetime:
        return instant(self._time())

    async def advance(
        self,
        duration: timedelta | None = None,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        wait_for_bodies: bool = True,
    ) -> None:
        """Let time pass. Timers, retries and time-outs that become due happen one instant after another.

        Steps and tasks that run are waited for, in real time, before the clock moves. With `wait_for_bodies=False` it
        moves over those that do not end: that is how their time-outs come.
        """
        if duration is not None and not isinstance(duration, timedelta):
            raise InvalidDuration(
                f"advance takes a timedelta, or days=, hours=, minutes=, seconds=; not {duration!r:.50}",
                field="duration",
                value=duration,
            )
        step = (duration or timedelta()) + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if step < timedelta():
            raise InvalidDuration(f"time does not go back: {step}", field="duration", value=step)
        async with self._moving:
            await self._move(self._time() + step // timedelta(microseconds=1), wait_for_bodies)

    async def advance_to(self, when: datetime, *, wait_for_bodies: bool = True) -> None:
        """Let time pass until the clock shows `when`."""
        async with self._moving:
            target = microseconds(when, "when")
            if target < self._time():
                raise InvalidRequest(f"time does not go back: it is {self.now()}, after {when}", field="when")
            await self._move(target, wait_for_bodies)

    async def idle(self, *, wait_for_bodies: bool = True) -> None:
        """Wait, without letting time pass, until nothing moves any more."""
        async with self._moving:
            await self._move(self._time(), wait_for_bodies)

    async def sleep(self, seconds: float) -> None:
        """For the bodies of steps and tasks, and for fakes: sleep in virtual time."""
        await self._time.sleep(seconds)

    # --- work ---

    def fake(
        self,
        task: Callable[..., Any] | str,
        *,
        result: Any = UNSET,
        error: BaseException | type[BaseException] = UNSET,
        fn: Callable[..., Any] | None = None,
        times: int | None = None,
    ) -> Fake:
        """Put another body in the place of a task's (given as function or kind) or of a step's (its function).

        It returns `result`, raises `error`, or is `fn`, plain or async, called with the arguments (after the context,
        if its first parameter is annotated `TaskContext`). After `times` calls what was there before counts again.
        The answer knows its `calls`.
        """
        fake = make_fake(result, error, fn, times)
        self._engine.fake(task, fake)
        return fake

    async def run(
        self, workflow: Workflow, input: Any = None, *, workflow_id: str | None = None, wait_for_bodies: bool = True
    ) -> Any:
        """Start a workflow and skip time until it has ended; its result."""
        handle = await self.client.start_workflow(workflow, input, workflow_id=workflow_id)
        return await self.result(handle, wait_for_bodies=wait_for_bodies)

    async def result(self, handle: WorkflowHandle, *, wait_for_bodies: bool = True) -> Any:
        """Skip time until the execution has ended: from one due instant to the next. NeverSettled if none is left."""
        waiting = asyncio.ensure_future(handle.result())
        async with self._moving:
            began = time.monotonic()
            try:
                await self._jump(self._time(), wait_for_bodies, thorough=True)
                while True:
                    await self._settle(wait_for_bodies)
                    if waiting.done():
                        break
                    due_at = await self._next_due_at()
                    if due_at is None or time.monotonic() - began > self._wait_s:
                        raise NeverSettled(await self._why_not(handle, due_at), execution_id=handle.id)
                    await self._jump(due_at, wait_for_bodies)
            except BaseException:
                waiting.cancel()
                raise
        return await waiting

    # --- histories ---

    async def export(self, handle: WorkflowHandle | str) -> str:
        """The history of an execution as JSON text, for `holdfast.testing.load_history`."""
        execution_id = handle if isinstance(handle, str) else handle.id
        return export_history(await self.client.history(execution_id), execution_id=execution_id)

    async def replay_all(self) -> list[ReplayReport]:
        """Replay every history of this environment against its code. DeterminismError where the code makes other moves.

        Executions of kinds that the environment has no code for are left out.
        """
        known = {(found.kind, found.version) for found in self._engine.definitions}
        reports = []
        async for view in self.client.iter_workflows():
            if (view.kind, view.version) not in known:
                continue
            history = await self.client.history(view.workflow_execution_id)
            reports.append(
                replay_definitions(
                    self._engine.definitions,
                    history,
                    execution_id=view.workflow_execution_id,
                    org=self._engine.org,
                )
            )
        return reports

    # --- moving ---

    async def _move(self, target: int, wait_for_bodies: bool) -> None:
        moved_at = time.monotonic()
        while True:
            await self._settle(wait_for_bodies)
            due_at = await self._next_due_at()
            if due_at is None or due_at > target:
                break
            if due_at > self._time():
                moved_at = time.monotonic()
            elif time.monotonic() - moved_at > self._wait_s:
                raise NeverSettled(
                    f"for {self._wait_s} s all that was due at {self.now()} has made more due at the same instant: "
                    "is there a loop that sleeps for no time?"
                )
            await self._jump(due_at, wait_for_bodies)
        await self._jump(target, wait_for_bodies, thorough=True)
        await self._settle(wait_for_bodies)

    async def _jump(self, at: int, wait_for_bodies: bool, *, thorough: bool = False) -> None:
        """To an instant, and do what is due then. An instant that has passed is due now.

        Who has slept until then goes on first: a body that ends at its very limit is in time.
        """
        if self._time.move_to(at):
            await self._settle(wait_for_bodies)
        self._looked_at = self._time()
        await self._engine.look(thorough=thorough)

    async def _next_due_at(self) -> int | None:
        found = [await self._engine.next_due_at(self._looked_at), self._time.next_at]
        return min((at for at in found if at is not None), default=None)

    async def _settle(self, wait_for_bodies: bool) -> None:
        """Until nothing moves any more by itself. What is waited for without end is named."""
        give_up_at = time.monotonic() + self._wait_s
        rounds = 0
        while True:
            await self._engine.until_quiet()
            # Callbacks of what was answered, and users' own coroutines, get their turns before it counts as silence.
            for _ in range(LOOP_ROUNDS):
                await asyncio.sleep(0)
            rounds += 1
            if not self._engine.quiet:
                await self._be_patient(rounds, give_up_at)
                continue
            running = self._running_bodies()
            if running:
                await self._await_bodies(running, wait_for_bodies, give_up_at)
                continue
            if await self._engine.pass_on_beats():
                continue
            break
        self._refuse_stuck()

    async def _be_patient(self, rounds: int, give_up_at: float) -> None:
        if time.monotonic() > give_up_at:
            raise NeverSettled(f"the engine does not come to rest within {self._wait_s} s at {self.now()}")
        # Rarely: a database that is busy or full is tried again after a while.
        await asyncio.sleep(0 if rounds < 100 else 0.001)

    def _running_bodies(self) -> dict[asyncio.Task[None], str]:
        """Those that could still end by themselves: neither asleep in virtual time nor passed over."""
        asleep = self._time.asleep
        found = {job: words for words, job in self._engine.bodies()}
        self._passed_over &= found.keys()
        return {job: words for job, words in found.items() if job not in asleep and job not in self._passed_over}

    async def _await_bodies(
        self, running: dict[asyncio.Task[None], str], wait_for_bodies: bool, give_up_at: float
    ) -> None:
        """Until one has ended or fallen asleep. Without `wait_for_bodies` they get a moment, once."""
        self._fell_asleep.clear()
        if self._running_bodies().keys() != running.keys():
            return
        limit_s = max(give_up_at - time.monotonic(), 0.0) if wait_for_bodies else PASSED_OVER_AFTER_S
        asleep = asyncio.ensure_future(self._fell_asleep.wait())
        try:
            ended, _ = await asyncio.wait({*running, asleep}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asleep.cancel()
        if ended:
            return
        if wait_for_bodies:
            raise BodiesStillRunning(
                f"still running after {self._wait_s} s: {'; '.join(running.values())}. Let them end, fake them, or "
                "pass wait_for_bodies=False to let time pass over them",
                bodies=tuple(running.values()),
            )
        self._passed_over.update(running)

    def _refuse_stuck(self) -> None:
        parked, self._engine.parked[:] = list(self._engine.parked), []
        if parked and not self._allow_stuck:
            first = parked[0]
            raise StuckExecution(
                f"execution {first.execution_id} is stuck: {first.reason.message}",
                execution_id=first.execution_id,
                reason=first.reason,
            )

    async def _why_not(self, handle: WorkflowHandle, due_at: int | None) -> str:
        view = await handle.describe()
        waits = [f"{wait.kind} {wait.name!r}{f' at {wait.line}' if wait.line else ''}" for wait in view.waiting_for]
        for row in await handle.pending_tasks():
            note = f"task {row.kind!r}: "
            if not self._engine.knows_task(row.kind):
                note += "no worker knows it; pass it in tasks=[...] or fake it"
            elif row.last_failure is not None:
                note += f"{row.attempt} attempt(s), the last failed with {row.last_failure.type}: "
                note += row.last_failure.message
            else:
                note += f"attempt {row.attempt} runs"
            waits.append(note)
        begun = f"execution {handle.id} ({view.kind}, {view.status})"
        if due_at is None:
            return f"{begun} will never end by itself; it waits for: {'; '.join(waits) or 'nothing'}"
        return (
            f"{begun} has not ended after {self._wait_s} s, at {self.now()}; "
            f"it waits for: {'; '.join(waits) or 'nothing'}"
        )
