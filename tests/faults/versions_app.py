"""Servers, workers, engines and callers of one version: `python -m tests.faults.versions_app ROLE OPTIONS`.

The same file runs on this version and on the earlier one, so it keeps to what both have, and imports nothing else of
the tests. A process says `ready`, then in one line of JSON which package it runs and where it listens. Every call of a
body is a line of the ledger, with a value that is new each time and is its result.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import holdfast
from holdfast import (
    Client,
    Engine,
    EngineConfig,
    RemoteWorker,
    RetryPolicy,
    Server,
    ServerConfig,
    StoreConfig,
    TaskContext,
    WorkerConfig,
    WorkflowContext,
    task,
    workflow,
)

FOLDER = Path()


def write_line(name: str, *words: object) -> None:
    """Append one line to a file of the folder, in one go: several processes do so."""
    file = os.open(FOLDER / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, json.dumps(words).encode() + b"\n")
    finally:
        os.close(file)


# --- bodies -------------------------------------------------------------------------------------------------------


def note(*words: object) -> str:
    value = secrets.token_hex(8)
    write_line("ledger", *words, value)
    return value


def gated_note(gate: str, *words: object) -> str:
    write_line("begun", *words, os.getpid())
    while not (FOLDER / gate).exists():
        time.sleep(0.003)
    return note(*words)


@task(retry=RetryPolicy(initial_interval_s=0.05, max_interval_s=0.2))
def chore(ctx: TaskContext, key: str, number: int) -> str:
    """Fails at its first attempt where the number is even."""
    if number % 2 == 0 and ctx.info.attempt == 1:
        raise RuntimeError("not yet")
    return note(key, number)


@task
async def gated_chore(ctx: TaskContext, gate: str, key: str) -> str:
    return await asyncio.to_thread(gated_note, gate, key, "chore")


# --- workflows ----------------------------------------------------------------------------------------------------


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
    await ctx.sleep(timedelta(seconds=0.1 + ctx.random.random() / 5))
    return [first, await ctx.run(note, key, 2, name="note-2")]


@workflow
async def listens(ctx: WorkflowContext, key: str) -> list[str]:
    """Hears one word of each of two callers."""
    heard = [await ctx.wait_for_signal("word", str)]
    noted = await ctx.run(note, key, 1, name="note-1")
    return [*sorted([*heard, await ctx.wait_for_signal("word", str)]), noted]


@workflow
async def family(ctx: WorkflowContext, key: str) -> list[list[str]]:
    children = [ctx.child(kind, f"{key}/{kind.__name__}") for kind in (steps, chores)]
    return [await child for child in children]


@workflow
async def asks(ctx: WorkflowContext, key: str) -> list[str]:
    """A promise that both callers settle."""
    answer: str = await ctx.promise("answer", str)
    return [answer, await ctx.run(note, key, 1, name="note-1")]


@workflow
async def journey(ctx: WorkflowContext, key: str) -> list[Any]:
    """Uses much of what a replay has to give back, and waits for two words on its way."""
    luck, name, begun = ctx.random.random(), str(ctx.uuid4()), ctx.now().isoformat()
    later = ctx.promise("later", str)
    ctx.state["stage"] = "begun"
    first = await ctx.run(note, key, 1, luck, name, begun, later.token, name="note-1")
    raced = await ctx.race(ctx.wait_for_signal("never", str), ctx.sleep(0.02))
    second = await ctx.task(chore, key, 2)
    child = ctx.child(naps, f"{key}/child")
    way = "new" if ctx.patched("way") else "old"
    ctx.state["stage"] = "waits"
    heard: list[str] = [await ctx.wait_for_signal("go", str)]
    third = await ctx.run(note, key, 3, name="note-3")
    heard.append(await ctx.wait_for_signal("go", str))
    fourth = await ctx.task(chore, key, 4)
    facts = [raced.index, way, heard, await later, ctx.state["stage"]]
    return [[luck, name, begun, later.token], [first, second, third, fourth], await child, facts]


@workflow
async def long_step(ctx: WorkflowContext, key: str) -> str:
    return await ctx.run(gated_note, "gate", key, "step")


@workflow
async def long_chore(ctx: WorkflowContext, key: str) -> str:
    return await ctx.task(gated_chore, "gate", key)


KINDS: tuple[Any, ...] = (steps, chores, naps, listens, family, asks)
WORKFLOWS = (*KINDS, journey, long_step, long_chore)
TASKS = (chore, gated_chore)


# --- callers ------------------------------------------------------------------------------------------------------


async def see_through(client: Client, number: int, me: str) -> list[Any]:
    """One of a crowd, from its start to its result. Another caller asks for the same one at the same time."""
    kind = KINDS[number % len(KINDS)]
    key = f"{kind.__name__}-{number}"
    if kind is listens:
        told = await client.signal_with_start_workflow(
            key, kind, key, signal_name="word", signal_value=me, request_id=f"{me}-{key}"
        )
        handle = client.workflow(told.workflow_execution_id)
    else:
        handle = await client.start_workflow(
            kind, key, workflow_id=key, request_id=f"start-{key}", metadata={"kind": kind.__name__}
        )
    if kind is asks:
        await client.resolve_promise_by_name(key, "answer", "yes", allow_early=True)
    return [key, handle.id, await handle.result(timeout=60)]


async def ask_all(client: Client, options: dict[str, Any]) -> dict[str, Any]:
    """What became of the crowd, and what a list and a history show of it."""
    crowd = await whole_crowd(client, options)
    listed = await client.list_workflows(metadata={"kind": "steps"}, status="COMPLETED")
    history = [event.body.TYPE for event in await client.workflow(crowd[0][1]).history()]
    return {"crowd": crowd, "listed": sorted(str(one.workflow_id) for one in listed.items), "history": history}


async def whole_crowd(client: Client, options: dict[str, Any]) -> list[list[Any]]:
    numbers = range(options["count"])
    return await asyncio.gather(*(see_through(client, number, options["me"]) for number in numbers))


# --- roles --------------------------------------------------------------------------------------------------------


def engine_config(options: dict[str, Any]) -> EngineConfig:
    return EngineConfig(
        store=StoreConfig(synchronous="normal"),
        worker=WorkerConfig(**options.get("worker", {})),
        secret_key="the secret of all tests",
    )


def say_ready(**facts: Any) -> asyncio.Event:
    """Tell the test that we are here; the event is its word to stop."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print("ready", json.dumps({"package": holdfast.__file__, **facts}), sep="\n", flush=True)
    return stop


async def next_word() -> str:
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def serve(options: dict[str, Any]) -> None:
    doors = ServerConfig(port=options.get("port", 0), grpc_port=options.get("grpc_port", 0), shutdown_grace_s=2.0)
    async with Server(options["db"], config=engine_config(options), server=doors) as server:
        assert server.grpc is not None
        await say_ready(http=server.url, grpc=server.grpc.url).wait()


async def work(options: dict[str, Any]) -> None:
    config = WorkerConfig(**options.get("worker", {}))
    async with RemoteWorker(options["server"], workflows=WORKFLOWS, tasks=TASKS, config=config):
        await say_ready().wait()


async def run_engine(options: dict[str, Any]) -> None:
    """Works on the database. At a word, it also asks for the crowd and prints what became of it."""
    async with Engine(options["db"], workflows=WORKFLOWS, tasks=TASKS, config=engine_config(options)) as engine:
        stop = say_ready()
        if await next_word():
            print(json.dumps(await whole_crowd(engine.client, options)), flush=True)
            await stop.wait()


async def call(options: dict[str, Any]) -> None:
    """A client of a server: asks for the crowd at a word."""
    async with Client.connect(options["server"]) as client:
        say_ready()
        await next_word()
        print(json.dumps(await ask_all(client, options)), flush=True)


ROLES: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
    "serve": serve,
    "work": work,
    "engine": run_engine,
    "call": call,
}


def main() -> None:
    global FOLDER  # noqa: PLW0603 - bodies of workflows have no other way to learn where the test looks
    options = json.loads(sys.argv[2])
    FOLDER = Path(options["folder"])
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(process)d %(name)s %(levelname)s %(message)s")
    asyncio.run(ROLES[sys.argv[1]](options))  # type: ignore[arg-type]  # all of them are coroutines


if __name__ == "__main__":
    # As a module with its name, so that functions have the same names in all processes.
    from tests.faults import versions_app

    versions_app.main()
