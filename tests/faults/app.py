"""The application that the fault tests run in processes of their own: `python -m tests.faults.app ROLE OPTIONS`.

OPTIONS is a JSON object: `db` (a URL), `folder` (where the ledger, the gates and the acknowledgements are), and what
the role needs. A process says `ready` on its standard output, goes on when it gets a line, ends in order on SIGTERM.

The ledger is what really happened: one line per call of a body, written through to the disk before the body goes on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import resource
import secrets
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from holdfast import (
    Client,
    Engine,
    EngineConfig,
    RetryPolicy,
    StoreConfig,
    TaskContext,
    WorkerConfig,
    WorkflowContext,
    task,
    workflow,
)
from holdfast.errors import StorageFull

FOLDER = Path()


def write_line(name: str, *words: object) -> None:
    """Append one line to a file of the folder, for good."""
    line = json.dumps(words).encode() + b"\n"
    file = os.open(FOLDER / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line)
        os.fdatasync(file)
    finally:
        os.close(file)


def pass_gate(name: str) -> None:
    """Wait, in a thread, until the test has opened the gate, for all or for this process."""
    while not (FOLDER / name).exists() and not (FOLDER / f"{name}-{os.getpid()}").exists():
        time.sleep(0.003)


# --- bodies -------------------------------------------------------------------------------------------------------


def note(*words: object) -> str:
    """A step: what it returns is new at every call, so that a result tells which call it came from."""
    value = secrets.token_hex(8)
    write_line("ledger", *words, value)
    return value


def gated_note(gate: str, *words: object) -> str:
    """A step that begins, waits for its gate, and ends."""
    write_line("begun", *words, os.getpid())
    pass_gate(gate)
    return note(*words)


def slow_note(seconds: float, *words: object) -> str:
    time.sleep(seconds)
    return note(*words)


@task(retry=RetryPolicy(initial_interval_s=0.05, max_interval_s=0.2))
def chore(ctx: TaskContext, key: str, number: int) -> str:
    value = secrets.token_hex(8)
    write_line("ledger", key, number, ctx.info.attempt, value)
    return value


@task
def gated_chore(ctx: TaskContext, gate: str, key: str) -> str:
    write_line("begun", key, ctx.info.attempt, os.getpid())
    pass_gate(gate)
    value = secrets.token_hex(8)
    write_line("ledger", key, ctx.info.attempt, value)
    return value


@task
def resumed_chore(ctx: TaskContext, gate: str) -> list[int]:
    """Tells how far the attempt before got, if there was one."""
    before: int | None = ctx.last_details(int)
    if before is None:
        ctx.heartbeat(7)
        pass_gate(gate)
    return [ctx.info.attempt, before or 0]


# --- workflows ----------------------------------------------------------------------------------------------------


@workflow
async def collect(ctx: WorkflowContext, count: int) -> list[str]:
    return [await ctx.wait_for_signal("item", str) for _ in range(count)]


@workflow
async def collect_some(ctx: WorkflowContext, most: int) -> list[str]:
    """Ends as soon as nothing more is there: the next signal begins another execution."""
    found = [await ctx.wait_for_signal("item", str)]
    while ctx.has_signal("item") and len(found) < most:
        found.append(await ctx.wait_for_signal("item", str))
    return found


@workflow
async def collect_until_end(ctx: WorkflowContext) -> int:
    count = 0
    while await ctx.wait_for_signal("item", str) != "end":
        count += 1
    return count


@workflow
async def steps(ctx: WorkflowContext, key: str) -> list[str]:
    return [await ctx.run(note, key, number, name=f"note-{number}") for number in (1, 2, 3)]


@workflow
async def chores(ctx: WorkflowContext, key: str) -> list[str]:
    first = await ctx.task(chore, key, 1)
    return [first, *await asyncio.gather(ctx.task(chore, key, 2), ctx.task(chore, key, 3))]


@workflow
async def naps(ctx: WorkflowContext, key: str) -> list[str]:
    first = await ctx.run(note, key, 1, name="note-1")
    await ctx.sleep(0.2 + ctx.random.random())
    return [first, await ctx.run(note, key, 2, name="note-2")]


@workflow
async def listens(ctx: WorkflowContext, key: str) -> list[str]:
    heard: str = await ctx.wait_for_signal("word", str)
    noted = await ctx.run(note, key, 1, name="note-1")
    return [heard, noted, await ctx.wait_for_signal("word", str)]


@workflow
async def long_step(ctx: WorkflowContext, gate: str) -> str:
    return await ctx.run(gated_note, gate, ctx.info.workflow_id)


@workflow
async def long_chore(ctx: WorkflowContext, gate: str) -> str:
    return await ctx.task(gated_chore, gate, ctx.info.workflow_id)


@workflow
async def resumes(ctx: WorkflowContext, gate: str) -> list[int]:
    return await ctx.task(resumed_chore, gate)


@workflow
async def chain(ctx: WorkflowContext, length: int) -> list[str]:
    return [await ctx.run(note, ctx.info.workflow_id, number, name="link") for number in range(length)]


@workflow
async def listens_at_work(ctx: WorkflowContext, gate: str) -> list[str]:
    """Is held all the time: a long step runs while signals come."""
    work = ctx.run(gated_note, gate, "work")
    heard: str = await ctx.wait_for_signal("word", str)
    await ctx.run(note, "heard", heard)
    return [heard, await work]


@workflow
async def naps_once(ctx: WorkflowContext, seconds: float) -> str:
    await ctx.sleep(seconds)
    return "awake"


@workflow
async def slow_step(ctx: WorkflowContext, seconds: float) -> str:
    return await ctx.run(slow_note, seconds, ctx.info.workflow_id)


@workflow
async def poison(ctx: WorkflowContext, gate: str) -> str:
    if (FOLDER / gate).exists():
        return "cured"
    write_line("poisoned", ctx.info.workflow_id, os.getpid())
    os._exit(7)


if os.environ.get("HOLDFAST_FAULTS_CODE") == "new":

    @workflow(kind="changing")
    async def changing(ctx: WorkflowContext, key: str) -> str:
        await ctx.sleep(0.01)
        await ctx.task(chore, key, 1)
        return await ctx.wait_for_signal("word", str)

else:

    @workflow(kind="changing")
    async def changing(ctx: WorkflowContext, key: str) -> str:
        await ctx.task(chore, key, 1)
        return await ctx.wait_for_signal("word", str)


WORKFLOWS = (
    collect,
    collect_some,
    collect_until_end,
    steps,
    chores,
    naps,
    listens,
    long_step,
    long_chore,
    resumes,
    chain,
    listens_at_work,
    naps_once,
    slow_step,
    poison,
    changing,
)
TASKS = (chore, gated_chore, resumed_chore)


# --- roles --------------------------------------------------------------------------------------------------------


def engine_of(options: dict[str, Any], *, working: bool) -> Engine:
    config = EngineConfig(
        store=StoreConfig(**options.get("store", {})),
        worker=WorkerConfig(**options.get("worker", {})),
        **options.get("engine", {}),
    )
    return Engine(
        options["db"],
        workflows=WORKFLOWS if working else (),
        tasks=TASKS if working else (),
        config=config,
    )


def watch_reports(engine: Engine) -> None:
    """Put into the file `reports` what the worker sends and what is refused."""
    workers: Any = engine._local.workers

    def watched(name: str, send: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def sent(request: Any) -> Any:
            answer = asyncio.ensure_future(send(request))
            write_line("reports", "sent", name, request.execution_id, os.getpid())
            try:
                return await answer
            except Exception as error:
                write_line("reports", "refused", name, request.execution_id, os.getpid(), type(error).__name__)
                raise

        return sent

    for name in ("complete_turn", "complete_task"):
        setattr(workers, name, watched(name, getattr(workers, name)))


async def started_signal() -> None:
    """Tell the test that we are here, and wait for its word."""
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def work(options: dict[str, Any]) -> None:
    """Works until it is told to stop or killed."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    engine = engine_of(options, working=True)
    if options.get("watched"):
        watch_reports(engine)
    async with engine:
        print("ready", flush=True)
        await stop.wait()
    print("stopped", flush=True)


async def send_items(options: dict[str, Any]) -> None:
    """Signal-with-start calls, all of them at once; prints "sent" when they are on their way, then the answers in the
    order of the calls."""
    async with engine_of(options, working=False) as engine:

        def send(number: int) -> Awaitable[Any]:
            return engine.client.signal_with_start_workflow(
                "bag",
                options["kind"],
                options["total"],
                signal_name="item",
                signal_value=f"{options['name']}-{number}",
            )

        await started_signal()
        together = asyncio.gather(*(send(number) for number in range(options["count"])))
        await asyncio.sleep(0)  # each of them has begun
        print("sent", flush=True)
        answers = await together
    print(
        json.dumps([(one.workflow_execution_id, one.workflow_created, one.signal_event_sequence) for one in answers]),
        flush=True,
    )


KINDS = (steps, chores, naps, listens)


async def run_crowd(options: dict[str, Any]) -> None:
    """Start a crowd of workflows and see them through; begun again after a kill, it asks for the same once more."""
    known = (FOLDER / "acknowledged").read_text().splitlines() if (FOLDER / "acknowledged").exists() else []
    crowd = Crowd({tuple(json.loads(line)[:3]) for line in known})
    async with engine_of(options, working=True) as engine:
        print("ready", flush=True)
        order = list(range(options["count"]))
        random.Random(options["seed"]).shuffle(order)
        await asyncio.gather(*(crowd.see_through(engine.client, number) for number in order))
    write_line("done", len(order))


class Crowd:
    """Writes down every answer: to `acknowledged` when it is the first to its question, else to `repeated`."""

    def __init__(self, known: set[tuple[Any, ...]]) -> None:
        self._known = known

    def _answered(self, what: str, key: str, which: int, *answer: object) -> None:
        name = "repeated" if (what, key, which) in self._known else "acknowledged"
        write_line(name, what, key, which, *answer)

    async def see_through(self, client: Client, number: int) -> None:
        kind = KINDS[number % len(KINDS)]
        key = f"{kind.__name__}-{number}"
        handle = await client.start_workflow(kind, key, workflow_id=key, request_id=f"start-{key}")
        self._answered("start", key, 0, handle.id)
        if kind is listens:
            for which, word in enumerate(("one", "two")):
                answer = await handle.signal("word", word, request_id=f"{word}-{key}")
                self._answered("signal", key, which, handle.id, answer.signal_event_sequence, word)
        self._answered("result", key, 0, handle.id, await handle.result())


async def fill(options: dict[str, Any]) -> None:
    """Meet the limit on the size of files, go on reading, and go on writing when the limit is lifted."""
    async with engine_of(options, working=True) as engine:
        print("ready", flush=True)
        handle = await engine.client.start_workflow(collect_until_end, workflow_id="bag")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        taken = 0
        while True:
            try:
                answer = await handle.signal("item", f"{taken:010}{'x' * 20_000}")
            except StorageFull:
                break
            write_line("acknowledged", answer.signal_event_sequence, taken)
            taken += 1
        print("full", flush=True)
        assert taken == (await handle.describe()).signal_count
        print("readable", flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        await handle.signal("item", "end")
        print("resumed", flush=True)
        assert taken == await handle.result(timeout=20)
        print("done", flush=True)


ROLES = {"work": work, "send_items": send_items, "run_crowd": run_crowd, "fill": fill}


def main() -> None:
    global FOLDER  # noqa: PLW0603 - bodies of workflows have no other way to learn where the test looks
    options = json.loads(sys.argv[2])
    FOLDER = Path(options["folder"])
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(process)d %(name)s %(levelname)s %(message)s")
    asyncio.run(ROLES[sys.argv[1]](options))


if __name__ == "__main__":
    # As the module the tests import, so that functions have the same names in both.
    from tests.faults import app

    app.main()
