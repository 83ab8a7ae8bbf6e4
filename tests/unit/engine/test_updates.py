"""Updates from outside: recorded once, checked by the workflow, answered to whoever waits, wherever that is."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import UpdateStatus, WorkflowContext, WorkflowStatus, query, signal, task, update, workflow
from holdfast.errors import (
    EngineStopped,
    ExecutionClosed,
    ExecutionNotFound,
    InvalidRequest,
    RequestMismatch,
    StorageBusy,
    UpdateFailed,
    UpdateNotFound,
    UpdateRejected,
)
from holdfast.model.commands import CLOSING
from tests.conftest import until


@dataclass
class Line:
    sku: str
    count: int = 1


@dataclass
class Receipt:
    total: int
    lines: list[Line]


@workflow
class Cart:
    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.touched = 0

    async def run(self, ctx: WorkflowContext) -> int:
        await ctx.wait_for_signal("pay")
        return self.total()

    @query
    def total(self) -> int:
        return sum(line.count for line in self.lines)

    @query
    def order(self) -> list[str]:
        return [line.sku for line in self.lines]

    @query
    def times_touched(self) -> int:
        return self.touched

    @update
    def add(self, line: Line) -> Receipt:
        self.lines.append(line)
        return Receipt(self.total(), self.lines)

    @add.validator
    def can_add(self, line: Line) -> None:
        if line.count < 1:
            raise ValueError(f"count is {line.count}")

    @update
    def clear(self) -> None:
        self.touched += 1
        self.lines.clear()

    @update
    def fail(self, text: str) -> None:
        raise LookupError(text)

    @update
    async def check_out(self, ctx: WorkflowContext) -> str:
        """Takes its time: done when the bank has answered."""
        answer: str = await ctx.wait_for_signal("bank", str)
        return f"{self.total()} paid by {answer}"


class Hold:
    """What a step waits for."""

    free: asyncio.Event


HOLD = Hold()


@pytest.fixture
def hold():
    HOLD.free = asyncio.Event()
    return HOLD


async def wait_to_end() -> None:
    await HOLD.free.wait()


@workflow
class Ending:
    """Ends after a step, or when it is told to; counts what it was asked before that."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def run(self, ctx: WorkflowContext, by: str) -> list[str]:
        if by == "step":
            await ctx.run(wait_to_end)
        else:
            await ctx.wait_for_signal("end")
        return self.asked

    @update
    def ask(self, text: str) -> str:
        self.asked.append(text)
        return text.upper()


@workflow
class Generations:
    """Continues as new when it is told to."""

    async def run(self, ctx: WorkflowContext, generation: int) -> None:
        self.generation = generation
        await ctx.wait_for_signal("renew")
        ctx.continue_as_new(generation + 1)

    @update
    def which(self) -> int:
        return self.generation

    @update
    async def linger(self, ctx: WorkflowContext) -> None:
        await ctx.wait_for_signal("never")


async def has_status(handle, status):
    return await handle.status() is status


async def cart(client):
    handle = await client.start_workflow(Cart)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    return handle


async def types(handle):
    return [event.type for event in await handle.history()]


async def has_event(handle, event_type, count=1):
    return (await types(handle)).count(event_type) >= count


# --- the answer -------------------------------------------------------------------------------------------------------


async def test_an_update_changes_and_answers(engine):
    """The answer has the type that is asked for: the method's own, a hint, or plain values."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)

    assert Receipt(2, [Line("a", 2)]) == await handle.update(Cart.add, Line("a", 2))
    plain = {"total": 3, "lines": [{"sku": "a", "count": 2}, {"sku": "b", "count": 1}]}
    assert plain == await handle.update("add", {"sku": "b", "count": 1})
    assert 4 == (await handle.update("add", Line("c"), type_hint=Receipt)).total
    assert await client.update_workflow(handle.id, "clear") is None
    assert 0 == await handle.query("total")


async def test_an_update_is_three_events(engine):
    """Requested, accepted, completed; the request is there once."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    await handle.update("add", Line("a"))

    expected = ["UPDATE_REQUESTED", "UPDATE_ACCEPTED", "UPDATE_COMPLETED"]
    assert expected == [name for name in await types(handle) if name.startswith("UPDATE")]


async def test_a_refused_update_leaves_the_workflow_as_it_was(engine):
    """The validator's error reaches the caller with type and text."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    with pytest.raises(UpdateRejected, match="count is 0") as refused:
        await handle.update("add", Line("a", 0))

    assert "ValueError" == refused.value.error_type
    assert 0 == await handle.query("total")
    assert "UPDATE_ACCEPTED" not in await types(handle)


async def test_an_unknown_update_is_rejected(engine):
    """Only the workflow knows its updates; a value that does not fit is rejected the same way."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    with pytest.raises(UpdateRejected, match="ad"):
        await handle.update("ad", Line("a"))
    with pytest.raises(UpdateRejected):
        await handle.update("add", "not a line")
    with pytest.raises(InvalidRequest, match="not an update"):
        await handle.update(Cart.total)

    assert 0 == await handle.query("total")


async def test_an_error_in_the_handler_fails_the_update_alone(engine):
    """The caller gets type and text; the workflow goes on."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    with pytest.raises(UpdateFailed, match="out of stock") as failed:
        await handle.update("fail", "out of stock")

    assert "LookupError" == failed.value.error_type
    await handle.signal("pay")
    assert 0 == await handle.result(timeout=10)


async def test_updates_at_once_are_done_in_the_order_of_their_requests(engine):
    """A hundred callers: each is answered with its own result."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    answers = await asyncio.gather(*(handle.update(Cart.add, Line(str(number))) for number in range(100)))
    requested = [event for event in await handle.history() if event.type == "UPDATE_REQUESTED"]
    skus = await handle.query("order")

    assert [str(number) for number in range(100)] == skus
    assert 100 == len(requested)
    assert [number + 1 for number in range(100)] == [answer.total for answer in answers]


# --- accepted, then completed -----------------------------------------------------------------------------------------


async def test_an_update_that_takes_long_is_accepted_first(engine):
    """The handle tells how far it is, and waits for the end."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    await handle.update("add", Line("a", 2))
    started = await handle.start_update("check_out", update_id="co-1")
    assert ("co-1", handle.id) == (started.update_id, started.id)
    assert UpdateStatus.ACCEPTED is await started.status()
    with pytest.raises(TimeoutError):
        await started.result(timeout=0.01)
    waiting = asyncio.create_task(started.result())
    await handle.signal("bank", "card")

    assert "2 paid by card" == await waiting
    assert UpdateStatus.COMPLETED is await started.status()
    assert "2 paid by card" == await handle.get_update("co-1").result()


async def test_wait_for_accepted_does_not_wait_for_the_end(engine):
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)

    assert await handle.update("check_out", wait_for="accepted", timeout=10) is None
    with pytest.raises(InvalidRequest, match="wait_for"):
        await handle.update("check_out", wait_for="soon")
    with pytest.raises(UpdateRejected):
        await handle.start_update("add", Line("a", 0))
    failed = await handle.start_update("fail", "no")
    assert UpdateStatus.FAILED is await failed.status()


async def test_a_caller_who_gives_up_leaves_nothing_behind(engine):
    """Neither after a timeout nor when the call is cancelled; the update itself goes on."""
    running = await engine(workflows=[Cart])
    handle = await cart(running.client)
    await handle.start_update("check_out", update_id="co")
    with pytest.raises(TimeoutError):
        await handle.update("check_out", update_id="co", timeout=0.05)
    waiting = asyncio.create_task(handle.get_update("co").result())
    await until(lambda: running._local.updates._watches)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    await until(lambda: {} == running._local.updates._watches)
    await handle.signal("bank", "cash")
    assert "0 paid by cash" == await handle.get_update("co").result(timeout=10)


async def test_an_engine_that_stops_answers_whoever_waits(engine):
    running = await engine(workflows=[Cart])
    handle = await cart(running.client)
    started = await handle.start_update("check_out")
    waiting = asyncio.create_task(started.result())
    await until(lambda: running._local.updates._watches)
    await running.shutdown()
    with pytest.raises(EngineStopped):
        await waiting


# --- the same update --------------------------------------------------------------------------------------------------


async def test_the_same_update_id_is_the_same_update(engine):
    """At once and later: it is done once, and everybody gets its answer."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    together = await asyncio.gather(*(handle.update(Cart.add, Line("a"), update_id="one") for _ in range(5)))
    later = await handle.update(Cart.add, Line("a"), update_id="one")

    assert [1] * 6 == [answer.total for answer in [*together, later]]
    assert 1 == (await types(handle)).count("UPDATE_REQUESTED")


async def test_the_same_update_id_is_known_after_request_ids_are_forgotten(engine):
    """The history remembers it for as long as the execution is there; even when it is closed."""
    running = await engine(workflows=[Cart])
    handle = await cart(running.client)
    await handle.update(Cart.add, Line("a"), update_id="one")
    await running._local.upkeep.prune()
    await handle.signal("pay")
    assert 1 == await handle.result(timeout=10)

    assert 1 == (await handle.update(Cart.add, Line("a"), update_id="one")).total
    with pytest.raises(RequestMismatch, match="one"):
        await handle.update(Cart.add, Line("b"), update_id="one")


async def test_the_same_update_id_of_another_execution_is_another_update(engine):
    client = (await engine(workflows=[Cart])).client
    first, second = await cart(client), await cart(client)

    assert [1, 1] == [(await handle.update(Cart.add, Line("a"), update_id="one")).total for handle in (first, second)]


@pytest.mark.parametrize("update_id", ["", "x" * 256, "a\nb", 7])
async def test_an_update_id_that_can_not_be_kept_is_refused(engine, update_id):
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    with pytest.raises(InvalidRequest) as refused:
        await handle.update("clear", update_id=update_id)

    assert "update_id" == refused.value.field
    assert "UPDATE_REQUESTED" not in await types(handle)


async def test_an_update_that_was_never_requested_is_not_found(engine):
    """Nor one of an execution that does not exist."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    with pytest.raises(UpdateNotFound, match="nothing"):
        await handle.get_update("nothing").result(timeout=10)
    with pytest.raises(ExecutionNotFound):
        await client.workflow("nobody").get_update("nothing").status()
    with pytest.raises(ExecutionNotFound):
        await client.update_workflow("nobody", "clear")


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_an_update_of_a_closed_execution_is_refused(engine):
    """Nothing is appended to a history that has ended."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    await handle.terminate()
    before = await handle.history()
    with pytest.raises(ExecutionClosed, match="TERMINATED"):
        await handle.update("clear")

    assert before == await handle.history()


async def test_an_execution_that_closes_first_fails_the_update(engine):
    """Whoever waits is told."""
    client = (await engine(workflows=[Cart])).client
    handle = await cart(client)
    started = await handle.start_update("check_out")
    waiting = asyncio.create_task(started.result())
    await handle.terminate()
    with pytest.raises(UpdateFailed, match=r"WORKFLOW_TERMINATED.*before it was done") as failed:
        await waiting

    assert "ExecutionClosed" == failed.value.error_type
    assert UpdateStatus.FAILED is await started.status()


def closing_commits(engine, before):
    """Let `before(round)` happen ahead of every commit that would close an execution."""
    workers = engine._local.workers
    complete = workers.complete_turn
    rounds = []

    async def late(request):
        turns = [turn for turn in (*request.turns, request.after_steps) if turn is not None and turn.commands]
        if turns and isinstance(turns[-1].commands[-1], CLOSING):
            rounds.append(request)
            await before(len(rounds))
        return await complete(request)

    workers.complete_turn = late
    return rounds


async def test_an_update_that_comes_before_the_end_is_answered(engine, hold):
    """The end was under way, with the last step's result: it is taken back, and the update comes first."""
    running = await engine(workflows=[Ending])
    handle = await running.client.start_workflow(Ending, "step")
    asking = []

    async def ask(number):
        if number == 1:
            asking.append(asyncio.create_task(handle.update("ask", "late")))
            await until(lambda: has_event(handle, "UPDATE_REQUESTED"))

    rounds = closing_commits(running, ask)
    await until(lambda: has_status(handle, WorkflowStatus.RUNNING))
    hold.free.set()

    assert ["late"] == await handle.result(timeout=10)
    assert "LATE" == await asking[0]
    assert 2 == len(rounds)


async def test_an_update_that_comes_after_the_decisive_signal_is_not_left_without_an_answer(engine):
    """The end is refused while there is an update it has not seen, three times at most; then every caller is told."""
    running = await engine(workflows=[Ending])
    handle = await running.client.start_workflow(Ending, "signal")
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    asking = []

    async def ask(number):
        asking.append(asyncio.create_task(handle.update("ask", f"late {number}")))
        await until(lambda: has_event(handle, "UPDATE_REQUESTED", number))

    rounds = closing_commits(running, ask)
    await handle.signal("end")
    asked = await handle.result(timeout=10)
    answers = await asyncio.gather(*asking, return_exceptions=True)

    assert 4 == len(rounds)
    assert asked == [answer.lower() for answer in answers if isinstance(answer, str)]
    assert all(isinstance(answer, UpdateFailed) for answer in answers if not isinstance(answer, str))
    assert WorkflowStatus.COMPLETED is await handle.status()


async def test_an_update_that_was_not_seen_moves_to_the_next_run(engine):
    """Continue-as-new carries it along; the caller's wait follows."""
    running = await engine(workflows=[Generations])
    handle = await running.client.start_workflow(Generations, 1)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    asking = []

    async def ask(number):
        if number == 1:
            asking.append(asyncio.create_task(handle.update("which", update_id="w")))
            await until(lambda: has_event(handle, "UPDATE_REQUESTED", 2))

    closing_commits(running, ask)
    lingering = await handle.start_update("linger")
    await handle.signal("renew")

    await until(lambda: asking)
    assert 2 == await asyncio.wait_for(asking[0], 10)
    assert 2 == await handle.get_update("w").result(timeout=10)
    with pytest.raises(UpdateFailed, match="CONTINUED"):
        await lingering.result(timeout=10)


async def test_an_update_of_a_run_that_has_continued_goes_to_the_next(engine):
    """As a signal does; the same update id is the same update on the whole way."""
    client = (await engine(workflows=[Generations])).client
    handle = await client.start_workflow(Generations, 1)
    assert 1 == await handle.update("which", update_id="first")
    await handle.signal("renew")
    await until(lambda: has_status(handle, WorkflowStatus.CONTINUED))

    assert [2, 2] == [await handle.update("which", update_id="second", timeout=10) for _ in range(2)]
    assert 1 == await handle.update("which", update_id="first", timeout=10)
    started = await handle.start_update("which")
    assert started.id != handle.id


# --- other processes --------------------------------------------------------------------------------------------------


async def test_caller_and_worker_may_be_in_different_processes(engine):
    """Two engines on one file: the one that asks has no code, the one that answers was not asked directly."""
    worker = await engine(workflows=[Cart])
    handle = await cart(worker.client)
    lone = (await engine()).client.workflow(handle.id)

    assert 2 == (await lone.update("add", Line("a", 2), type_hint=Receipt, timeout=10)).total
    with pytest.raises(UpdateRejected, match="count is -1"):
        await lone.update("add", Line("a", -1), timeout=10)
    started = await lone.start_update("check_out", timeout=10)
    waiting = asyncio.create_task(started.result(timeout=10))
    await handle.signal("bank", "cash")
    assert "2 paid by cash" == await waiting


async def test_a_look_at_other_processes_that_failed_is_taken_again(engine, monkeypatch):
    """The database was busy just then: the answer is found all the same, although nothing else is written."""
    handle = await cart((await engine(workflows=[Cart])).client)
    lone = await engine()
    started = await lone.client.workflow(handle.id).start_update("check_out", timeout=10)
    store = lone._local.store
    failed: list[Any] = []
    executions = store.executions

    async def busy(org, ids):
        if len(failed) < 3:
            failed.append(ids)
            raise StorageBusy
        return await executions(org, ids)

    monkeypatch.setattr(store, "executions", busy)
    waiting = asyncio.create_task(started.result(timeout=10))
    await until(lambda: lone._local.updates._watches)
    await handle.signal("bank", "cash")

    assert "0 paid by cash" == await waiting
    assert 3 == len(failed)


async def test_an_update_survives_its_worker(engine):
    """Accepted by one worker, completed by the next; who waits elsewhere notices nothing."""
    first = await engine(workflows=[Cart])
    handle = await cart(first.client)
    caller = (await engine()).client.workflow(handle.id)
    waiting = asyncio.create_task(caller.update("check_out", timeout=20))
    await until(lambda: has_event(caller, "UPDATE_ACCEPTED"))
    await first.shutdown()
    second = await engine(workflows=[Cart])
    await second.client.signal_workflow(handle.id, "bank", "card")

    assert "0 paid by card" == await waiting


async def test_an_update_requested_while_nobody_works_is_answered_later(engine):
    """The request waits in the history like a signal."""
    first = await engine(workflows=[Cart])
    handle = await cart(first.client)
    await first.shutdown()
    caller = (await engine()).client.workflow(handle.id)
    waiting = asyncio.create_task(caller.update("add", Line("a"), type_hint=Receipt, timeout=20))
    await until(lambda: has_event(caller, "UPDATE_REQUESTED"))
    await engine(workflows=[Cart])

    assert 1 == (await waiting).total


# --- with the rest ----------------------------------------------------------------------------------------------------


@task
async def bank(amount: int) -> str:
    return f"receipt for {amount}"


async def test_a_handler_may_do_durable_work(engine):
    """A task inside an update: the answer comes when it is done, while `run` goes on with its own."""

    @workflow
    class Till:
        async def run(self, ctx: WorkflowContext) -> str:
            return await ctx.wait_for_signal("close", str)

        @update
        async def take(self, ctx: WorkflowContext, amount: int) -> str:
            return await ctx.task(bank, amount)

        @signal
        def note(self) -> None:
            """Does nothing."""

    client = (await engine(workflows=[Till], tasks=[bank])).client
    handle = await client.start_workflow(Till)
    answers = await asyncio.gather(*(handle.update("take", amount) for amount in (1, 2, 3)))
    await handle.signal("close", "bye")

    assert ["receipt for 1", "receipt for 2", "receipt for 3"] == answers
    assert "bye" == await handle.result(timeout=10)


async def test_a_workflow_without_handlers_rejects_updates(engine):
    """A function takes none."""

    @workflow
    async def plain(ctx: WorkflowContext) -> str:
        return await ctx.wait_for_signal("go", str)

    client = (await engine(workflows=[plain])).client
    handle = await client.start_workflow(plain)
    with pytest.raises(UpdateRejected):
        await handle.update("anything")
    await handle.signal("go", "on")

    assert "on" == await handle.result(timeout=10)
