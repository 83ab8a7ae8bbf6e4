"""Children, signals between workflows and continue-as-new with a real engine: each history is replayed and cut."""

from dataclasses import dataclass
from typing import Any

from holdfast import EngineConfig, WorkerConfig, WorkflowContext, query, signal, workflow
from holdfast.errors import ChildWorkflowFailed, ExecutionClosed, ExternalSignalFailed
from tests.conftest import QUICK, until
from tests.replay.recording import Commits, check_cuts, check_invariants, check_whole


@dataclass
class Order:
    items: list[str]


@workflow(kind="pack")
async def pack(ctx: WorkflowContext, item: str) -> str:
    if item == "broken":
        raise ValueError("can't be packed")
    if item == "slow":
        item = await ctx.wait_for_signal("hurry", str)
    return f"packed {item}"


@workflow(kind="ship")
async def ship(ctx: WorkflowContext, order: Order) -> list[str]:
    return await ctx.all([ctx.child(pack, item) for item in order.items])


@workflow(kind="careful")
async def careful(ctx: WorkflowContext) -> list[object]:
    seen: list[object] = []
    slow = ctx.child(pack, "slow", workflow_id="slow-one")
    await slow.signal("hurry", "quick")
    seen.append(await slow)
    try:
        await ctx.child(pack, "broken")
    except ChildWorkflowFailed as error:
        seen.append([error.status, error.error_type])
    outcome = await ctx.child(pack, "broken", propagate_failure=False)
    seen.append(outcome.status)
    try:
        await ctx.signal_external_workflow("nobody", "hello")
    except ExternalSignalFailed as error:
        seen.append(error.error_type)
    return seen


async def replay_checked(fn, handle, commits):
    history = await handle.history()
    check_invariants(history)
    check_whole(fn, history, handle.id)
    return check_cuts(fn, history, handle.id, commits.cuts(handle.id, len(history)))


async def test_children_side_by_side(engine):
    """Twenty of them; the results come in the order of the list."""
    running = await engine(workflows=[pack, ship])
    commits = Commits(running)
    items = [f"item {number}" for number in range(20)]
    handle = await running.client.start_workflow(ship, Order(items))

    assert [f"packed {item}" for item in items] == await handle.result(timeout=20)
    assert await replay_checked(ship, handle, commits)


async def test_children_that_are_signalled_and_that_fail(engine):
    """Rebuilt at every wait, a parent makes the same moves."""
    config = EngineConfig(store=QUICK.store, worker=WorkerConfig(cached_executions=0, shutdown_grace_s=0.2))
    running = await engine(workflows=[pack, careful], config=config)
    commits = Commits(running)
    handle = await running.client.start_workflow(careful)

    expected = ["packed quick", ["failed", "ValueError"], "failed", "ExecutionNotFound"]
    assert expected == await handle.result(timeout=20)
    assert await replay_checked(careful, handle, commits)


async def test_the_setting_for_failures_of_children(engine):
    """Without propagation, awaiting a child gives its outcome."""

    @workflow
    async def lenient(ctx: WorkflowContext) -> list[str]:
        found: list[Any] = [await ctx.child(pack, item) for item in ("good", "broken")]
        return [f"{outcome.status} {outcome.result}" for outcome in found]

    worker = WorkerConfig(propagate_child_failures=False, shutdown_grace_s=0.2)
    running = await engine(workflows=[pack, lenient], config=EngineConfig(store=QUICK.store, worker=worker))
    handle = await running.client.start_workflow(lenient)

    assert ["completed packed good", "failed None"] == await handle.result(timeout=20)


async def test_a_child_that_is_left_outlives_its_parent(engine):
    """It is found by its workflow id."""

    @workflow
    async def leaves(ctx: WorkflowContext) -> str:
        return ctx.child(pack, "slow", workflow_id="left").execution_id

    running = await engine(workflows=[pack, leaves])
    commits = Commits(running)
    handle = await running.client.start_workflow(leaves)
    child_id = await handle.result(timeout=20)
    child = await running.client.find_workflow("left", pack)
    assert child_id == child.id
    await child.signal("hurry", "later")
    assert "packed later" == await child.result(timeout=20)
    await replay_checked(leaves, handle, commits)


async def test_cancelling_a_handle_cancels_the_child(engine):
    """The child sees the cancel; the parent goes on."""

    @workflow
    async def stops(ctx: WorkflowContext) -> str:
        handle = ctx.child(pack, "slow")
        await ctx.wait_for_signal("stop")
        handle.cancel()
        return handle.execution_id

    running = await engine(workflows=[pack, stops])
    commits = Commits(running)
    handle = await running.client.start_workflow(stops)
    await handle.signal("stop")
    child = running.client.workflow(await handle.result(timeout=20))
    await until(lambda: _has_ended(child, "CANCELLED"))
    await replay_checked(stops, handle, commits)


async def _has_ended(handle, status):
    return status in str(await handle.status())


@workflow(kind="tally")
class SlotReservations:
    """Begins afresh after every three numbers."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.closing = False

    async def run(self, ctx: WorkflowContext, total: int = 0) -> int:
        await ctx.wait_until(lambda: len(self.numbers) >= 3 or self.closing)
        total += sum(self.numbers)
        if not self.closing:
            ctx.continue_as_new(total)
        return total

    @signal
    def add(self, number: int) -> None:
        self.numbers.append(number)

    @signal
    def close(self) -> None:
        self.closing = True

    @query
    def count(self) -> int:
        return len(self.numbers)


async def test_signals_get_lost_in_no_run(engine):
    """A hundred numbers over many runs add up; each run replays by itself."""
    running = await engine(workflows=[SlotReservations])
    first = await running.client.start_workflow(SlotReservations, workflow_id="t")
    for number in range(100):
        await send(running.client, "add", number)
    await send(running.client, "close")

    assert sum(range(100)) == await first.result(timeout=20)
    run = first.id
    runs = 0
    while run is not None:
        history = await running.client.history(run)
        check_whole(SlotReservations, history, run)
        runs += 1
        run = getattr(history[-1].body, "new_execution_id", None)
    assert runs > 3


async def send(client, name, value=None):
    """To the run that is open; it may continue as the next just before the signal comes."""
    while True:
        try:
            await client.signal_workflow((await client.find_workflow("t")).id, name, value)
        except ExecutionClosed:
            continue
        return
