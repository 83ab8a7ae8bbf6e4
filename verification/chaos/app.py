"""What the workers of the chaos run do.

A worker runs the programs of the simulation and some of its own until it is told to stop. Every body writes what it
does into a ledger, one file per process, before and after: what was written survives whatever happens to the process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import time
from collections import Counter
from pathlib import Path
from typing import Any

from holdfast import (
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
from holdfast.errors import (
    ChildWorkflowFailed,
    NonRetryable,
    PromiseRejected,
    PromiseTimeout,
    TaskFailed,
    Unavailable,
)
from verification.simulation import programs
from verification.simulation.programs import ATTEMPTS

LEASE_S = 2.0
PER_RUN = 5


class Book:
    """A file to which lines are added. A line that was cut off by a kill does not spoil the next one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(self._file, b"\n")

    def write(self, *words: object) -> None:
        os.write(self._file, json.dumps([time.monotonic_ns() // 1000, *words]).encode() + b"\n")


def read_book(path: Path) -> list[list[Any]]:
    lines = path.read_bytes().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith(b"]\n")]


class FileLedger:
    """What the bodies of the simulation's programs tell, in a file."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._steps: Counter[tuple[str, str]] = Counter()

    def step_began(self, execution_id: str, label: str) -> tuple[str, int]:
        self._steps[execution_id, label] += 1
        value = secrets.token_hex(6)
        self._book.write("step", execution_id, label, value)
        return value, self._steps[execution_id, label]

    def step_ended(self, execution_id: str, label: str, value: str) -> None:
        self._book.write("step ended", execution_id, label, value)

    def attempt_began(self, execution_id: str, task_no: int, attempt: int, label: str) -> str:
        value = secrets.token_hex(6)
        self._book.write("task", execution_id, task_no, attempt, label, value)
        return value

    def attempt_ended(self, execution_id: str, task_no: int, attempt: int, value: str) -> None:
        self._book.write("task ended", execution_id, task_no, attempt, value)

    def attempt_failed(self, execution_id: str, task_no: int, attempt: int, value: str) -> None:
        self._book.write("task failed", execution_id, task_no, attempt, value)


class Everywhere:
    """In place of the simulation's variable, of which each node has its own value: here, every body of a process finds
    the same ledger, whatever context it runs in."""

    def __init__(self, ledger: FileLedger) -> None:
        self._ledger = ledger

    def get(self) -> FileLedger:
        return self._ledger


# --- programs -----------------------------------------------------------------------------------------------------


async def note(execution_id: str, label: str, delay_s: float = 0.0) -> str:
    ledger: Any = programs.LEDGER.get()
    value, _ = ledger.step_began(execution_id, label)
    if delay_s:
        await asyncio.sleep(delay_s)
    ledger.step_ended(execution_id, label, value)
    return value


@workflow(kind="bag")
async def bag(ctx: WorkflowContext, state: dict[str, Any]) -> list[str]:
    """Takes items in order. Ends when it is told to, or as soon as none is left if it is a `brief` one; the next item
    then begins another. After a few items it goes on as a new run."""
    taken: list[str] = state["taken"]
    for number in range(PER_RUN):
        if state["brief"] and number and not ctx.has_signal("item"):
            return taken
        item = await ctx.wait_for_signal("item", str)
        taken.append(item)
        if item.startswith("end"):
            return taken
        if number == 1:
            await ctx.run(note, ctx.info.workflow_execution_id, f"item {number}", name=f"item {number}")
    return ctx.continue_as_new({"brief": state["brief"], "taken": taken})


@task(kind="move", retry=RetryPolicy(initial_interval_s=0.05, max_interval_s=0.5, max_attempts=1_000))
async def move(ctx: TaskContext, account: str, amount: int, refused: bool) -> str:
    """Money into an account, or out of it."""
    ledger: Any = programs.LEDGER.get()
    info = ctx.info
    value: str = ledger.attempt_began(info.workflow_execution_id, info.task_no, info.attempt, f"{account} {amount}")
    if refused:
        raise NonRetryable(f"{account} is closed")
    ledger.attempt_ended(info.workflow_execution_id, info.task_no, info.attempt, value)
    return value


@workflow(kind="transfer")
async def transfer(ctx: WorkflowContext, order: dict[str, Any]) -> str:
    """From one account to another, or not at all."""
    source, target, amount, refused = order["from"], order["to"], order["amount"], order["refused"]
    try:
        async with ctx.saga() as saga:
            await saga.do(ctx.task(move, source, -amount, False), undo=lambda: ctx.task(move, source, amount, False))
            await saga.do(ctx.task(move, target, amount, refused), undo=lambda: ctx.task(move, target, -amount, False))
            if order["sleep"]:
                await ctx.sleep(order["sleep"])
    except TaskFailed:
        return "refused"
    return "moved"


@task(kind="chore", retry=RetryPolicy(initial_interval_s=0.1, max_interval_s=0.5, max_attempts=ATTEMPTS))
async def chore(ctx: TaskContext, label: str, delay_s: float, fails: int) -> str:
    """As the simulation's `job`, but its failures are in the ledger, too: the next attempt must not come before."""
    ledger: Any = programs.LEDGER.get()
    info = ctx.info
    value: str = ledger.attempt_began(info.workflow_execution_id, info.task_no, info.attempt, label)
    try:
        await asyncio.sleep(delay_s)
        if info.attempt <= fails:
            raise ValueError(f"attempt {info.attempt} of {label}")
    except BaseException:
        ledger.attempt_failed(info.workflow_execution_id, info.task_no, info.attempt, value)
        raise
    ledger.attempt_ended(info.workflow_execution_id, info.task_no, info.attempt, value)
    return value


@workflow(kind="errand")
async def errand(ctx: WorkflowContext, order: dict[str, Any]) -> list[str]:
    """What the programs of the simulation never do: fail, have children that fail or are late, have a promise that is
    rejected or late, be late themselves. The result says what was seen."""
    key = ctx.info.workflow_execution_id
    match order["what"]:
        case "chores":
            made = [await ctx.task(chore, "c1", order["delay"], order["fails"])]
            await ctx.sleep(order["delay"])
            return [*made, await ctx.run(note, key, "swept", order["delay"], name="swept")]
        case "parent":
            child = ctx.child(errand, {"what": order["child"]}, execution_timeout=order["limit"])
            try:
                await child
            except ChildWorkflowFailed as error:
                return ["failed", error.status]
            return ["ended"]
        case "end":
            return [await ctx.run(note, key, "ended", name="ended")]
        case "fail":
            await ctx.run(note, key, "tried", name="tried")
            raise NonRetryable("it is not to be")
        case "promise":
            try:
                return ["RESOLVED", await ctx.promise("p", str, timeout=order["limit"])]
            except PromiseRejected as error:
                return ["REJECTED", str(error).rpartition(": ")[2]]
            except PromiseTimeout:
                return ["TIMED_OUT"]
        case _:
            return [await ctx.wait_for_signal("never", str)]


# The simulation's first, whatever it has: a program of its may ask for any of them.
WORKFLOWS = (*programs.WORKFLOWS, bag, transfer, errand)
TASKS = (*programs.TASKS, move, chore)


# --- roles --------------------------------------------------------------------------------------------------------


def config() -> EngineConfig:
    """Short leases, short time-outs; nothing is parked because its workers die."""
    return EngineConfig(
        worker=WorkerConfig(lease_s=LEASE_S, turn_slots=50, task_slots=20, shutdown_grace_s=3.0),
        store=StoreConfig(busy_deadline_s=15.0, connect_timeout_s=5.0, statement_timeout_s=2.0),
        crash_attempts=1_000_000,
        stuck_retry_s=1.0,
        secret_key="the secret of all chaos",
    )


async def work(options: dict[str, Any], stop: asyncio.Event) -> None:
    """Works until it is told to stop."""
    engine = Engine(options["url"], workflows=WORKFLOWS, tasks=TASKS, config=config())
    await begin(engine)
    say_up(options)
    try:
        await stop.wait()
    finally:
        await engine.shutdown()


def say_up(options: dict[str, Any]) -> None:
    (Path(options["folder"]) / f"{options['name']}-{os.getpid()}.up").touch()


async def begin(engine: Engine) -> None:
    """The database may be away when a process starts."""
    while True:
        try:
            return await engine.open()
        except Unavailable as error:
            logging.getLogger("chaos").info("not started: %s", error)
            await asyncio.sleep(0.2)
