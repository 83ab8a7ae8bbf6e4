"""Any program: small random ones are run for real, then every history is replayed from nothing, cut at every place.

A program is data, given to one workflow as its input: a list of moves. Whatever the workflow observes (results, queue
lengths, times, chance) goes into its result, so that a replay which sees anything else makes another last command.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Engine, EngineConfig, RetryPolicy, StoreConfig, WorkerConfig, WorkflowContext, task, workflow
from holdfast.errors import ExecutionClosed, StepFailed, TaskFailed, WorkflowCancelled
from tests.replay.recording import Commits, check_cuts, check_invariants, check_whole

NAMES = ("a", "b")
SOON = RetryPolicy(initial_interval_s=0.0, max_attempts=2)


class Stage:
    """Where tasks and steps find the client: they signal their own workflow while they run."""

    client: Any


STAGE = Stage()


async def act(execution_id: str, number: int, sends: list[str], fails: bool) -> int:
    for name in sends:
        await STAGE.client.signal_workflow(execution_id, name, number)
    if fails:
        raise ValueError(f"{number}")
    return number


def act_in_a_thread(number: int) -> int:
    return -number


@task(kind="act", retry=SOON)
async def act_as_task(execution_id: str, number: int, sends: list[str], fails: bool) -> int:
    return await act(execution_id, number, sends, fails)


class Interpreter:
    """Makes the moves of a program, and notes all that can be observed on the way."""

    def __init__(self, ctx: WorkflowContext) -> None:
        self.ctx = ctx
        self.seen: list[object] = []
        self.me = ctx.info.workflow_execution_id

    async def make(self, moves: list[Any]) -> object:
        last: object = None
        for move in moves:
            last = await getattr(self, move[0])(*move[1:])
            self.seen.append([move[0], last, [self.ctx.pending_signal_count(name) for name in NAMES], self._time()])
        return last

    def _time(self) -> float:
        return self.ctx.now().timestamp()

    async def run(self, number: int, sends: list[str], fails: bool) -> object:
        try:
            return await self.ctx.run(act, self.me, number, sends, fails, name=f"act {number}", retry=SOON)
        except StepFailed as error:
            return error.attempts

    async def thread(self, number: int) -> object:
        return await self.ctx.run(act_in_a_thread, number)

    async def task(self, number: int, sends: list[str], fails: bool) -> object:
        try:
            return await self.ctx.task(act_as_task, self.me, number, sends, fails)
        except TaskFailed as error:
            return error.attempts

    async def sleep(self, ms: int) -> None:
        await (self.ctx.sleep(ms / 1000) if ms % 2 else asyncio.sleep(ms / 1000))

    async def wait_signal(self, name: str, ms: int) -> object:
        try:
            return await self.ctx.wait_for_signal(name, timeout=ms / 1000)
        except TimeoutError:
            return "late"

    async def has_signal(self, name: str, then: list[Any], otherwise: list[Any]) -> object:
        return await self.make(then if self.ctx.has_signal(name) else otherwise)

    async def drain(self, name: str) -> object:
        return await self.ctx.drain_signals(name)

    async def chance(self) -> object:
        return [self.ctx.random.randint(0, 999), str(self.ctx.uuid4())]

    async def gather(self, branches: list[list[Any]]) -> object:
        return await asyncio.gather(*map(self.make, branches))

    async def first(self, branches: list[list[Any]]) -> object:
        jobs = [asyncio.create_task(self.make(branch)) for branch in branches]
        done, pending = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        for job in pending:
            job.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        return [jobs.index(job) for job in jobs if job in done]

    async def within(self, ms: int, moves: list[Any]) -> object:
        try:
            return await asyncio.wait_for(self.make(moves), ms / 1000)
        except TimeoutError:
            return "cut off"

    async def group(self, branches: list[list[Any]]) -> None:
        async with asyncio.TaskGroup() as group:
            for branch in branches:
                group.create_task(self.make(branch))


@workflow
async def interpret(ctx: WorkflowContext, moves: list[Any]) -> list[object]:
    interpreter = Interpreter(ctx)
    await interpreter.make(moves)
    return interpreter.seen


def programs() -> st.SearchStrategy[list[Any]]:
    number = st.integers(0, 99)
    name = st.sampled_from(NAMES)
    sends = st.lists(name, max_size=2)
    leaves = st.one_of(
        st.tuples(st.just("run"), number, sends, st.booleans()),
        st.tuples(st.just("thread"), number),
        st.tuples(st.just("task"), number, sends, st.booleans()),
        st.tuples(st.just("sleep"), st.integers(0, 3)),
        st.tuples(st.just("wait_signal"), name, st.integers(0, 8)),
        st.tuples(st.just("drain"), name),
        st.tuples(st.just("chance")),
    )

    def nested(moves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        some = st.lists(moves, min_size=1, max_size=3)
        branches = st.lists(some, min_size=1, max_size=3)
        return st.one_of(
            st.tuples(st.just("has_signal"), name, some, some),
            st.tuples(st.sampled_from(["gather", "first", "group"]), branches),
            st.tuples(st.just("within"), st.integers(0, 6), some),
        )

    return st.lists(st.recursive(leaves, nested, max_leaves=8), min_size=1, max_size=5)


async def run_and_replay(program: list[Any], sends: list[str], cached: int, disturbance: str) -> None:
    """Three executions at once, signalled from outside while they run; then each history, cut at every place."""
    config = EngineConfig(
        store=StoreConfig(synchronous="normal"), worker=WorkerConfig(cached_executions=cached, shutdown_grace_s=0.2)
    )
    commits = Commits()

    def opened(url: str) -> Engine:
        engine = Engine(url, workflows=[interpret], tasks=[act_as_task], config=config)
        commits.watch(engine)
        STAGE.client = engine.client
        return engine

    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/holdfast.db" if disturbance == "restart" else "sqlite://"
        async with opened(url) as engine:
            ids = [(await engine.client.start_workflow(interpret, program)).id for _ in range(3)]
            await asyncio.gather(*(signal(engine.client.workflow(each), sends) for each in ids))
            if disturbance == "cancel":
                await asyncio.gather(*map(engine.cancel, ids))
            if disturbance != "restart":
                await check(engine, ids, commits)
        if disturbance == "restart":
            async with opened(url) as engine:
                await check(engine, ids, commits)


async def check(engine: Engine, ids: list[str], commits: Commits) -> None:
    for execution_id in ids:
        with suppress(WorkflowCancelled):
            await engine.client.workflow(execution_id).result(timeout=20)
        history = await engine.client.history(execution_id)
        check_invariants(history)
        check_whole(interpret, history, execution_id)
        check_cuts(interpret, history, execution_id, commits.cuts(execution_id, len(history)))


async def signal(handle: Any, names: list[str]) -> None:
    for number, name in enumerate(names):
        with suppress(ExecutionClosed):
            await handle.signal(name, number)


any_run = given(
    program=programs(),
    sends=st.lists(st.sampled_from(NAMES), max_size=6),
    cached=st.sampled_from([0, 10_000]),
    disturbance=st.sampled_from(["none", "cancel", "restart"]),
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@any_run
def test_some_histories_reproduce_themselves(program, sends, cached, disturbance):
    """As below, for a few programs: what is badly broken shows in the quick proof."""
    asyncio.run(run_and_replay(program, sends, cached, disturbance))


@pytest.mark.slow
@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@any_run
def test_every_history_reproduces_itself(program, sends, cached, disturbance):
    """Whatever the program and however its run went: cut anywhere and replayed, it makes its recorded moves again."""
    asyncio.run(run_and_replay(program, sends, cached, disturbance))
