"""The workflows whose histories are stored in `histories/`, and replayed for ever.

NEVER CHANGE what is here, not even its line numbers: this is the code that made those histories, as a user's code made
the histories in their database. A Holdfast that can't replay them any more has broken its promise; mend that instead.
New workflows go to the end, with a scene in `recorder.py`; `python -m tests.replay.recorder` stores what is missing.
"""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast import RetryPolicy, WorkflowContext, query, signal, task, update, workflow
from holdfast.errors import (
    ChildWorkflowFailed,
    ConditionTimeout,
    ExternalSignalFailed,
    HoldfastError,
    SignalTimeout,
    StepFailed,
    TaskFailed,
)

ONCE = RetryPolicy(max_attempts=1)
TWICE = RetryPolicy(initial_interval_s=0.0, max_attempts=2)


async def add(a: int, b: int) -> int:
    return a + b


def add_in_a_thread(a: int, b: int) -> int:
    return a + b


def refuse(reason: str) -> None:
    raise ValueError(reason)


@task(kind="corpus.double")
async def double(number: int) -> int:
    return number * 2


@task(kind="corpus.fail", retry=TWICE)
async def fail(reason: str) -> None:
    raise LookupError(reason)


@task(kind="corpus.forever")
async def forever() -> None:
    await asyncio.Event().wait()


@task(kind="corpus.undo")
async def undo(what: str) -> str:
    return f"undone: {what}"


# --- steps, tasks, timers -----------------------------------------------------------------------------------------


@workflow(kind="corpus.steps")
async def steps(ctx: WorkflowContext, number: int) -> list[Any]:
    seen: list[Any] = [await ctx.run(add, number, 1), await ctx.run(add_in_a_thread, number, 2, name="in a thread")]
    try:
        await ctx.run(refuse, "no", retry=TWICE)
    except StepFailed as error:
        seen.append([error.attempts, str(error.__class__.__name__)])
    seen += await asyncio.gather(ctx.run(add, 1, 1), ctx.run(add, 2, 2), ctx.run(add, 3, 3))
    return [*seen, ctx.now().isoformat(), ctx.random.randrange(1_000_000), str(ctx.uuid4())]


@workflow(kind="corpus.tasks")
async def tasks(ctx: WorkflowContext, number: int) -> list[Any]:
    seen: list[Any] = [await ctx.task(double, number)]
    try:
        await ctx.task(fail, "missing")
    except TaskFailed as error:
        seen.append(error.attempts)
    won = await ctx.race(ctx.task(forever), ctx.task(double, 21))
    seen.append([won.index, won.result])
    try:
        await ctx.task(forever, start_to_close=0.05, retry=ONCE)
    except TaskFailed as error:
        seen.append(type(error).__name__)
    return seen


@workflow(kind="corpus.timers")
async def timers(ctx: WorkflowContext, ms: int) -> list[Any]:
    seen: list[Any] = []
    await ctx.sleep(ms / 1000)
    seen.append(ctx.now().isoformat())
    await ctx.sleep_until(ctx.now())
    await asyncio.sleep(ms / 1000)
    lost = ctx.sleep(3600)
    lost.cancel()
    try:
        async with asyncio.timeout(ms / 1000):
            await ctx.sleep(3600)
    except TimeoutError:
        seen.append("late")
    return seen


# --- signals ------------------------------------------------------------------------------------------------------


@workflow(kind="corpus.signals")
async def signals(ctx: WorkflowContext) -> list[Any]:
    seen: list[Any] = [ctx.has_signal("note"), await ctx.wait_for_signal("note", str)]
    await ctx.run(add, 1, 1)
    seen.append(ctx.pending_signal_count("note"))
    seen.append(await ctx.drain_signals("note", str))
    try:
        await ctx.wait_for_signal("never", timeout=0.02)
    except SignalTimeout:
        seen.append("nobody called")
    won = await ctx.race(ctx.wait_for_signal("a", int), ctx.wait_for_signal("b", int))
    seen.append([won.index, won.result])
    while (value := await ctx.wait_for_signal("note", str)) != "end":
        seen.append(value)
    return seen


# --- several things at once ---------------------------------------------------------------------------------------


@workflow(kind="corpus.together")
async def together(ctx: WorkflowContext, number: int) -> list[Any]:
    seen: list[Any] = [await ctx.all(ctx.task(double, number), ctx.run(add, 1, 2), ctx.sleep(0.001))]
    first = await ctx.any(ctx.task(fail, "a"), ctx.run(refuse, "b", retry=ONCE), ctx.task(double, 4))
    seen.append([first.index, first.result])
    two = await ctx.n_of(2, ctx.task(double, 1), ctx.task(forever), ctx.task(double, 2))
    seen.append(sorted(outcome.index for outcome in two))
    ends = await ctx.settled(ctx.task(fail, "c"), ctx.all(ctx.task(double, 5), ctx.task(double, 6)))
    seen.append([outcome.status for outcome in ends])
    async with asyncio.TaskGroup() as group:
        jobs = [group.create_task(_twice(ctx, number)) for number in range(3)]
    return [*seen, [job.result() for job in jobs]]


async def _twice(ctx: WorkflowContext, number: int) -> int:
    await asyncio.sleep(0)
    return await ctx.task(double, number) + await ctx.run(add, number, number)


# --- classes ------------------------------------------------------------------------------------------------------


@workflow(kind="corpus.cart")
class Cart:
    def __init__(self, ctx: WorkflowContext) -> None:
        self.items: list[str] = []
        self.closed = False
        ctx.state["items"] = 0

    async def run(self, ctx: WorkflowContext, limit: int) -> list[Any]:
        ctx.set_metadata(stage="open", limit=str(limit))
        await ctx.wait_until(lambda: len(self.items) >= limit)
        try:
            await ctx.wait_until(lambda: self.closed, timeout=0.02)
        except ConditionTimeout:
            ctx.set_metadata({"stage": "late", "limit": None})
        await ctx.wait_until(lambda: self.closed)
        await ctx.wait_until(ctx.all_handlers_finished)
        del ctx.state["items"]
        return [*self.items, ctx.metadata["stage"]]

    @signal
    async def put(self, ctx: WorkflowContext, item: str) -> None:
        await ctx.run(add, 1, 1)
        self.items.append(item)
        ctx.state["items"] = len(self.items)

    @signal
    def close(self) -> None:
        self.closed = True

    @query
    def count(self) -> int:
        return len(self.items)

    @update
    async def replace(self, ctx: WorkflowContext, item: str) -> int:
        if item == "bad":
            raise ValueError(item)
        self.items.append(await ctx.task(_upper, item))
        return len(self.items)

    @replace.validator
    def check(self, item: str) -> None:
        if not item:
            raise ValueError("nothing to put")


@task(kind="corpus.upper")
async def _upper(text: str) -> str:
    return text.upper()


# --- other workflows ----------------------------------------------------------------------------------------------


@workflow(kind="corpus.child")
async def child(ctx: WorkflowContext, behaviour: str) -> str:
    if behaviour == "fail":
        raise ValueError("as asked")
    if behaviour == "wait":
        return await ctx.wait_for_signal("go", str)
    return behaviour


@workflow(kind="corpus.parent")
async def parent(ctx: WorkflowContext) -> list[Any]:
    seen: list[Any] = [await ctx.child(child, "well")]
    try:
        await ctx.child(child, "fail")
    except ChildWorkflowFailed as error:
        seen.append([error.status, error.error_type])
    outcome = await ctx.child("corpus.nobody", propagate_failure=False)
    seen.append([outcome.status, type(outcome.error).__name__])
    waiting = ctx.child(child, "wait", on_parent_close="terminate")
    await waiting.signal("go", "now")
    seen.append(await waiting)
    won = await ctx.race(ctx.child(child, "wait"), ctx.sleep(0.02))
    ctx.child(child, "left alone", on_parent_close="abandon")
    return [*seen, won.index]


@workflow(kind="corpus.sender")
async def sender(ctx: WorkflowContext, target: str) -> list[Any]:
    await ctx.signal_external_workflow(target, "go", "hello")
    try:
        await ctx.signal_external_workflow("corpus-nobody", "go", 1)
    except ExternalSignalFailed as error:
        return [error.code]
    return []


@workflow(kind="corpus.again")
async def again(ctx: WorkflowContext, left: int) -> list[int]:
    first = await ctx.wait_for_signal("number", int)
    if left:
        ctx.continue_as_new(left - 1)
    return [first, *await ctx.drain_signals("number", int)]


# --- changes of code ----------------------------------------------------------------------------------------------


@workflow(kind="corpus.patched")
async def patched(ctx: WorkflowContext) -> list[Any]:
    seen: list[Any] = [ctx.patched("first")]
    await ctx.run(add, 1, 1)
    seen += [ctx.patched("first"), ctx.patched("second")]
    await ctx.task(double, 1)
    return [*seen, ctx.patched("first")]


# --- ends ---------------------------------------------------------------------------------------------------------


@workflow(kind="corpus.cancelled")
async def cancelled(ctx: WorkflowContext) -> None:
    try:
        await asyncio.gather(ctx.task(forever), ctx.sleep(3600), ctx.wait_for_signal("never"))
    finally:
        await ctx.task(undo, f"because {ctx.cancel_reason}")


@workflow(kind="corpus.failed")
async def failed(ctx: WorkflowContext) -> None:
    await ctx.task(fail, "for good")


@workflow(kind="corpus.idle")
async def idle(ctx: WorkflowContext) -> Any:
    number = await ctx.task(double, 1)
    return [number, await ctx.wait_for_signal("go"), ctx.random.randrange(1_000_000)]


@workflow(kind="corpus.saga")
async def trip(ctx: WorkflowContext) -> str:
    try:
        async with ctx.saga() as saga:
            await saga.do(ctx.task(double, 1), undo=lambda number: ctx.task(undo, f"flight {number}"))
            await saga.do(ctx.task(double, 2), undo=lambda number: ctx.task(undo, f"hotel {number}"))
            await ctx.task(fail, "no car")
    except HoldfastError as error:
        return type(error).__name__
    return "booked"


# --- what comes from outside --------------------------------------------------------------------------------------


async def _ended(awaited: Any) -> Any:
    """The result, or the name of the error."""
    try:
        return await awaited
    except HoldfastError as error:
        return type(error).__name__


@workflow(kind="corpus.promises")
async def promises(ctx: WorkflowContext) -> list[Any]:
    early = ctx.promise("early", str)
    kept, refused, keyed = ctx.promise("kept", int), ctx.promise("refused"), ctx.promise("keyed", event_key="answered")
    seen: list[Any] = [await kept, await _ended(refused), await keyed, await early]
    seen.append(await _ended(ctx.promise("late", timeout=0.02)))
    won = await ctx.race(ctx.promise("never", timeout=3600), ctx.sleep(0.01))
    return [*seen, won.index]


@workflow(kind="corpus.events")
async def events(ctx: WorkflowContext, key: str) -> list[Any]:
    seen: list[Any] = [await ctx.wait_for_event(key, where="input.number > 1")]
    seen.append(await ctx.wait_for_event(key))
    seen.append(await ctx.wait_for_message("letter", key, str))
    seen.append(await _ended(ctx.wait_for_event("nothing", look_back=False, timeout=0.02)))
    seen.append(await ctx.wait_for_event(key, consume_on_read=True))
    ctx.publish_event("done", len(seen), expire_after=60, delivery="waiters")
    ctx.send_message("letter", "nobody", {"from": key})
    return seen


@workflow(kind="corpus.broadcasts")
async def broadcasts(ctx: WorkflowContext) -> list[Any]:
    await asyncio.gather(ctx.wait_for_broadcast("go"), ctx.wait_for_broadcast("go"))
    won = await ctx.race(ctx.wait_for_broadcast("left"), ctx.wait_for_broadcast("right"), ctx.sleep(3600))
    ctx.broadcast("self")
    await ctx.wait_for_broadcast("self")
    return [won.index, await _ended(ctx.wait_for_broadcast("never", timeout=0.02))]


# --- asyncio ------------------------------------------------------------------------------------------------------


@workflow(kind="corpus.waits")
async def waits(ctx: WorkflowContext) -> list[Any]:
    """`asyncio.wait_for` beside others: its order must not depend on the version of Python."""
    letters: asyncio.Queue[str] = asyncio.Queue()
    ready = asyncio.Event()

    async def write() -> None:
        letters.put_nowait(await ctx.task(_upper, "a"))
        ready.set()

    async def wait(seconds: float) -> str:
        return await asyncio.wait_for(letters.get(), seconds)

    seen: list[Any] = list(
        await asyncio.gather(
            asyncio.wait_for(_twice(ctx, 1), 60), _twice(ctx, 2), wait(60), write(), asyncio.wait_for(ready.wait(), 60)
        )
    )
    seen += await asyncio.gather(wait(0.01), ctx.child(child, "beside"), return_exceptions=True)
    return [repr(found) for found in seen]


@workflow(kind="corpus.named")
async def named(ctx: WorkflowContext) -> list[Any]:
    """Children with names: adopted, refused, signalled by name."""
    adopted = ctx.child(child, "wait", workflow_id="there already", if_running="use_existing")
    refused = await ctx.child(child, "wait", workflow_id="there already", propagate_failure=False)
    await ctx.signal_external_workflow("there already", "go", "adopted")
    seen: list[Any] = [await adopted, refused.status]
    mine = ctx.child(child, "wait", workflow_id="mine", execution_timeout=60, metadata={"of": "named"}, priority=3)
    await ctx.signal_external_workflow("mine", "go", "by name")
    return [*seen, await mine, ctx.info.kind]


WORKFLOWS: list[Any] = [
    steps,
    tasks,
    timers,
    signals,
    together,
    Cart,
    child,
    parent,
    sender,
    again,
    patched,
    cancelled,
    failed,
    idle,
    trip,
    promises,
    events,
    broadcasts,
    waits,
    named,
]
TASKS: list[Any] = [double, fail, forever, undo, _upper]
