"""What the nodes run: a workflow that does what its input says, tasks, one step; and made-up inputs for them.

An input is a list of operations. Everything that happens outside is told to the ledger, with a value that is used once,
so that a history can be compared with what has really happened.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Any

from holdfast.errors import (
    ChildWorkflowFailed,
    ExternalSignalFailed,
    PromiseRejected,
    PromiseTimeout,
    StepFailed,
    TaskFailed,
)
from holdfast.frontends.python import source_lines
from holdfast.frontends.python.context import WorkflowContext
from holdfast.frontends.python.definitions import Registry, task, workflow
from holdfast.frontends.python.handlers import update
from holdfast.frontends.python.task_context import TaskContext
from holdfast.model.values import RetryPolicy

if TYPE_CHECKING:
    from verification.simulation.ledger import Ledger

LEDGER: ContextVar[Ledger] = ContextVar("LEDGER")
ATTEMPTS = 4
_RETRY = RetryPolicy(initial_interval_s=0.2, max_interval_s=1.0, max_attempts=ATTEMPTS)
_LIMIT_S = 0.3
SIGNALS = ("a", "b")
KEYS = ("k", "l")
NAMES = ("x", "y")
KIND = "plan"
ASKED = "asked"
UPDATE = "add"
REFUSED = "no"
BROKEN = "broken"
"""The kind of workflow that takes updates, its update, and how inputs begin that are refused or make it fail."""
SLOW = "d"
"""How labels of tasks begin that run into their time limit."""

Op = list[Any]


async def effect(execution_id: str, label: str, delay_s: float, fails: int) -> str:
    """The body of every step."""
    ledger = LEDGER.get()
    value, number = ledger.step_began(execution_id, label)
    if delay_s:
        await asyncio.sleep(delay_s)
    if number <= fails:
        raise ValueError(f"run {number} of {label}")
    ledger.step_ended(execution_id, label, value)
    return value


@task(kind="job", retry=_RETRY)
async def job(context: TaskContext, label: str, delay_s: float, fails: int) -> str:
    """The body of every task."""
    ledger = LEDGER.get()
    info = context.info
    value = ledger.attempt_began(info.workflow_execution_id, info.task_no, info.attempt, label)
    if delay_s:
        await asyncio.sleep(delay_s)
    if info.attempt <= fails:
        raise ValueError(f"attempt {info.attempt} of {label}")
    ledger.attempt_ended(info.workflow_execution_id, info.task_no, info.attempt, value)
    return value


@task(kind="deaf", retry=_RETRY, start_to_close=_LIMIT_S)
async def deaf(context: TaskContext, label: str, delay_s: float) -> str:
    """A body that takes too long the first time, and does not hear that it is to stop, as one in a thread: it reports
    when another attempt has begun."""
    ledger = LEDGER.get()
    info = context.info
    value = ledger.attempt_began(info.workflow_execution_id, info.task_no, info.attempt, label)
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + (delay_s if info.attempt == 1 else _LIMIT_S * 0.9)
    while (left_s := ends_at - loop.time()) > 0:
        try:
            await asyncio.sleep(left_s)
        except asyncio.CancelledError:
            continue
    ledger.attempt_ended(info.workflow_execution_id, info.task_no, info.attempt, value)
    return value


class Planned(Exception):
    """A workflow fails because its input says so."""


@workflow(kind=KIND)
async def plan(ctx: WorkflowContext, spec: dict[str, Any]) -> list[Any]:
    """Do what the input says; the result says what was seen. `log` comes from the runs before."""
    return await _run(ctx, spec)


async def _run(ctx: WorkflowContext, spec: dict[str, Any]) -> list[Any]:
    log: list[Any] = spec["log"]
    ops: list[Op] = spec["ops"]
    for index, op in enumerate(ops):
        if op[0] == "continue":
            ctx.continue_as_new({"ops": ops[index + 1 :], "log": log})
        await _do(ctx, op, log)
    return log


@workflow(kind=ASKED)
class Asked:
    """The same, and it takes updates."""

    async def run(self, ctx: WorkflowContext, spec: dict[str, Any]) -> list[Any]:
        log = await _run(ctx, spec)
        await ctx.wait_until(ctx.all_handlers_finished)
        return log

    @update
    async def add(self, ctx: WorkflowContext, label: str) -> str:
        if label.startswith(BROKEN):
            raise Planned(label)
        value: str = await ctx.run(effect, ctx.info.workflow_execution_id, label, 0.05, 0, name=label)
        return value

    @add.validator
    def can_be_added(self, label: str) -> None:
        if label.startswith(REFUSED):
            raise ValueError(label)


async def _do(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    try:
        await _OPS[op[0]](ctx, op, log)
    except (StepFailed, TaskFailed, ChildWorkflowFailed, ExternalSignalFailed) as error:
        log.append([op[0], "failed", type(error).__name__])


async def _step(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    _, label, delay_s, fails = op
    log.append(["step", await ctx.run(effect, ctx.info.workflow_execution_id, label, delay_s, fails, name=label)])


async def _task(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    _, label, delay_s, fails = op
    log.append(["task", await ctx.task(job, label, delay_s, fails)])


async def _deaf(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    log.append(["task", await ctx.task(deaf, *op[1:])])


async def _sleep(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    await ctx.sleep(op[1])
    log.append(["slept"])


async def _receive(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    log.append(["got", op[1], await ctx.wait_for_signal(op[1])])


async def _peek(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    """What a program does next may hang on whether a signal is there."""
    count = ctx.pending_signal_count(op[1])
    log.append(["peeked", op[1], count])
    if count:
        await _receive(ctx, op, log)
    else:
        await _step(ctx, ["step", op[2], 0, 0], log)


async def _drain(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    log.extend(["got", op[1], value] for value in await ctx.drain_signals(op[1]))


async def _child(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    _, ops, awaited, policy, *limits = op
    limit_s = limits[0] if limits else None
    child = ctx.child(plan, {"ops": ops, "log": []}, on_parent_close=policy, execution_timeout=limit_s)
    if awaited:
        log.append(["child", await child])


async def _promise(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    _, name, event_key, *limits = op
    try:
        value = await ctx.promise(name, event_key=event_key, timeout=limits[0] if limits else None)
    except PromiseRejected as rejected:
        log.append(["rejected", name, str(rejected)])
    except PromiseTimeout:
        log.append(["late", name])
    else:
        log.append(["promise", name, value])


async def _event(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    log.append(["event", op[1], await ctx.wait_for_event(op[1], consume_on_read=op[2])])


async def _message(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    log.append(["message", op[1], await ctx.wait_for_message(op[1], op[2])])


async def _publish(ctx: WorkflowContext, op: Op, _: list[Any]) -> None:
    ctx.publish_event(op[1], f"{ctx.info.workflow_execution_id}/{op[1]}")


async def _broadcast(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    await ctx.wait_for_broadcast(op[1])
    log.append(["broadcast", op[1]])


async def _throw(ctx: WorkflowContext, op: Op, _: list[Any]) -> None:
    ctx.broadcast(op[1])


async def _tell(ctx: WorkflowContext, op: Op, _: list[Any]) -> None:
    target, name, value = op[1:]
    await ctx.signal_external_workflow(target, name, value)


async def _all(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    await ctx.all(*(_do(ctx, each, log) for each in op[1]))


async def _race(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    outcome = await ctx.race(*(_do(ctx, each, log) for each in op[1]))
    log.append(["won", outcome.index])


async def _guard(ctx: WorkflowContext, op: Op, log: list[Any]) -> None:
    """Clean up when the workflow is asked to cancel, then be cancelled."""
    try:
        for each in op[1]:
            await _do(ctx, each, log)
    except asyncio.CancelledError:
        await _step(ctx, ["step", op[2], 0, 0], log)
        raise


async def _fail(_: WorkflowContext, op: Op, __: list[Any]) -> None:
    raise Planned(op[1])


_OPS: dict[str, Any] = {
    "fail": _fail,
    "step": _step,
    "task": _task,
    "deaf": _deaf,
    "sleep": _sleep,
    "receive": _receive,
    "peek": _peek,
    "drain": _drain,
    "child": _child,
    "promise": _promise,
    "event": _event,
    "message": _message,
    "publish": _publish,
    "broadcast": _broadcast,
    "throw": _throw,
    "tell": _tell,
    "all": _all,
    "race": _race,
    "guard": _guard,
}

WORKFLOWS = (plan, Asked)
TASKS = (job, deaf)
REGISTRY = Registry(WORKFLOWS, TASKS)

# Lines of Holdfast's own code are passed over; here they are the user's.
source_lines._LABELS[plan.__code__.co_filename] = "programs.py"  # noqa: SLF001 - there is no other way to say so


# --- made-up inputs -----------------------------------------------------------------------------------------------

_SIMPLE = {
    "step": 5,
    "task": 5,
    "deaf": 1,
    "sleep": 2,
    "receive": 6,
    "peek": 3,
    "drain": 1,
    "promise": 3,
    "event": 2,
    "message": 1,
    "broadcast": 2,
    "tell": 1,
}
_WORDS, _WEIGHTS = tuple(_SIMPLE), tuple(accumulate(_SIMPLE.values()))
_DELAYS = (0.0, 0.0, 0.1, 0.7, 3.0)


class Maker:
    """Makes up inputs. Labels and names of promises are used once in a scenario. `limited`: with programs that fail,
    and with promises and children that have a time limit."""

    def __init__(self, rng: Random, workflow_ids: list[str], *, limited: bool = False) -> None:
        self._rng = rng
        self._ids = workflow_ids
        self._limited = limited
        self._number = 0

    def limit_s(self) -> list[float]:
        """A time limit, if there is one."""
        return [self._rng.choice((0.2, 0.6, 2.0))] if self._limited and self._rng.random() < 0.3 else []

    def _label(self, what: str) -> str:
        self._number += 1
        return f"{what}{self._number}"

    def ops(self, flavour: str = "") -> list[Op]:
        """Those of one workflow."""
        match flavour:
            case "pestered":
                return self._pestered()
            case "stopped":
                return self._stopped()
            case "redone" if self._rng.random() < 0.7:
                return self._redone()
        return self._some(0)

    def _pestered(self) -> list[Op]:
        """Short steps, and signals that may or may not be there: the more happens at the same time, the better."""
        rng = self._rng
        made: list[Op] = []
        for _ in range(rng.randint(3, 5)):
            made.append(["step", self._label("s"), rng.choice((0.001, 0.01, 0.05)), 0])
            made.append(["peek", rng.choice(SIGNALS), self._label("s")])
        ends: tuple[Op, ...] = (["sleep", 0.05], ["task", self._label("t"), 0.0, 0], ["receive", rng.choice(SIGNALS)])
        return [*made, rng.choice(ends)]

    def _stopped(self) -> list[Op]:
        """Long steps, with whoever stands still in their middle, and no end before it goes on."""
        rng = self._rng
        steps: list[Op] = [["step", self._label("s"), rng.choice((0.3, 0.7)), 0] for _ in range(rng.randint(1, 2))]
        return [*steps, ["receive", rng.choice(SIGNALS)], *self._some(1)]

    def _redone(self) -> list[Op]:
        """A past with much in it that is open or has been given up, and then a wait."""
        rng = self._rng
        policy = rng.choice(("default", "terminate", "cancel", "abandon"))
        child: Op = ["child", [["receive", rng.choice(SIGNALS)], *self._some(2)], rng.random() < 0.5, policy]
        quick = rng.choice((["step", self._label("s"), 0.0, 0], ["peek", rng.choice(SIGNALS), self._label("s")]))
        given_up: Op = ["race", [["sleep", 1.5], quick]]
        waits: Op = ["receive", rng.choice(SIGNALS)]
        task: Op = ["task", self._label("t"), rng.choice((0.7, 3.0)), 0]
        last: tuple[Op, ...] = (["all", [child, waits, task]], ["race", [child, waits, task]], waits)
        return [*rng.choice(((given_up,), (given_up, child))), rng.choice(last), *self._some(1)]

    def _some(self, depth: int) -> list[Op]:
        rng = self._rng
        made = [self._op(depth) for _ in range(rng.randint(1, 4 if depth == 0 else 2))]
        if depth == 0 and len(made) > 1 and rng.random() < 0.2:
            made.insert(rng.randint(1, len(made)), ["continue"])
        if self._limited and rng.random() < (0.08, 0.3)[depth > 0]:
            made.append(["fail", self._label("f")])
        return made

    def _op(self, depth: int) -> Op:
        rng = self._rng
        if depth < 2 and rng.random() < 0.3:
            return self._nested(depth)
        return self._simple(rng.choices(_WORDS, cum_weights=_WEIGHTS)[0])

    def _nested(self, depth: int) -> Op:
        rng = self._rng
        match rng.choice(("all", "all", "race", "child", "child", "guard", "publish", "throw")):
            case "child":
                policy = rng.choice(("default", "terminate", "cancel", "abandon"))
                return ["child", self._some(depth + 1), rng.random() < 0.7, policy, *self.limit_s()]
            case "guard":
                return ["guard", self._some(depth + 1), self._label("undo")]
            case "publish":
                return ["publish", rng.choice(KEYS)]
            case "throw":
                return ["throw", rng.choice(NAMES)]
            case together:
                items = [self._op(depth + 1) for _ in range(rng.randint(2, 3))]
                return [together, items]

    def _simple(self, what: str) -> Op:
        rng = self._rng
        match what:
            case "step":
                return ["step", self._label("s"), rng.choice(_DELAYS), rng.choice((0, 0, 0, 0, 1))]
            case "task":
                return ["task", self._label("t"), rng.choice(_DELAYS), rng.choice((0, 0, 0, 1, 2, ATTEMPTS))]
            case "deaf":
                return ["deaf", self._label(SLOW), rng.choice((0.5, 0.6, 0.7))]
            case "sleep":
                return ["sleep", rng.choice((0.05, 0.5, 1.5))]
            case "peek":
                return ["peek", rng.choice(SIGNALS), self._label("s")]
            case "promise":
                return ["promise", self._label("p"), rng.choice((None, None, rng.choice(KEYS))), *self.limit_s()]
            case "event":
                return ["event", rng.choice(KEYS), rng.random() < 0.3]
            case "message":
                return ["message", "m", rng.choice(KEYS)]
            case "broadcast":
                return ["broadcast", rng.choice(NAMES)]
            case "tell":
                return ["tell", rng.choice(self._ids), rng.choice(SIGNALS), self._label("told")]
            case _:
                return [what, rng.choice(SIGNALS)]
