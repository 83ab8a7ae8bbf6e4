"""Questions to programs from outside: answered whatever state the execution is in, and nothing is changed by them."""

import asyncio
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest

from holdfast import WorkerConfig, WorkflowContext, WorkflowStatus, query, signal, workflow
from holdfast.contract.calls import QueryExecution
from holdfast.contract.workers import AnswerQuery, QueryWork, RegisterWorker
from holdfast.engine.dispatcher import Dispatcher
from holdfast.engine.queries import Queries
from holdfast.errors import (
    EngineStopped,
    ExecutionNotFound,
    InvalidRequest,
    NoWorker,
    PayloadNotDecodable,
    QueryFailed,
    QueryNotReadOnly,
    UnknownQuery,
)
from holdfast.model.executions import Execution, State
from holdfast.worker import queries as worker_queries
from tests.conftest import QUICK, until


@dataclass
class Sum:
    total: int
    items: list[int]


@workflow
class Adding:
    """Adds up what is signalled, until it is told to end."""

    def __init__(self) -> None:
        self.items: list[int] = []

    async def run(self, ctx: WorkflowContext, first: int = 0) -> int:
        self.items.append(first)
        await ctx.wait_for_signal("end")
        return sum(self.items)

    @signal
    def add(self, amount: int) -> None:
        self.items.append(amount)

    @query
    def total(self) -> int:
        return sum(self.items)

    @query
    def describe(self) -> Sum:
        return Sum(sum(self.items), self.items)

    @query
    def times(self, factor: int) -> int:
        return sum(self.items) * factor

    @query
    def last(self, count: int = 1) -> list[int]:
        return self.items[-count:]

    @query
    def steal(self) -> list[int]:
        items, self.items = self.items, []
        return items

    @query
    def broken(self) -> None:
        raise LookupError("no such thing")


class Gate:
    """Steps that end when they are told to."""

    entered: asyncio.Event
    free: asyncio.Event


GATE = Gate()


@pytest.fixture
def gate():
    GATE.entered, GATE.free = asyncio.Event(), asyncio.Event()
    return GATE


async def pass_gate() -> None:
    GATE.entered.set()
    await GATE.free.wait()


@workflow
class Working:
    """Its run is inside a step most of the time."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.done = False

    async def run(self, ctx: WorkflowContext) -> list[str]:
        await ctx.run(pass_gate)
        self.done = True
        await ctx.wait_for_signal("end")
        return self.seen

    @signal
    def note(self, text: str) -> None:
        self.seen.append(text)

    @query
    def notes(self) -> list[str]:
        return self.seen

    @query
    def is_done(self) -> bool:
        return self.done

    @query
    def tamper(self) -> None:
        self.seen.append("tampered")


def with_worker(**settings):
    return replace(QUICK, worker=replace(QUICK.worker, **settings))


async def has_status(handle, status):
    return await handle.status() is status


async def waiting(client, first=1):
    handle = await client.start_workflow(Adding, first)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    return handle


async def closed(handle):
    await handle.signal("end")
    await handle.result(timeout=10)
    return handle


# --- answers ----------------------------------------------------------------------------------------------------------


async def test_a_waiting_workflow_answers(engine):
    """By name or by the method itself, which also gives the answer its type."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client, 3)

    assert 3 == await handle.query("total")
    assert 3 == await client.query_workflow(handle.id, Adding.total)
    assert Sum(3, [3]) == await handle.query(Adding.describe)
    assert {"total": 3, "items": [3]} == await handle.query("describe")
    assert Sum(3, [3]) == await handle.query("describe", type_hint=Sum)


async def test_a_query_takes_at_most_one_value(engine):
    """Required, left to its default, or refused if there is none or it does not fit."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client, 3)

    assert 12 == await handle.query("times", 4)
    assert [3] == await handle.query("last")
    assert [3] == await handle.query("last", 5)
    with pytest.raises(PayloadNotDecodable, match="int"):
        await handle.query("times", "four")


async def test_a_query_sees_what_was_signalled_before_it(engine):
    """Read your writes: every signal that was answered has been seen, although no turn may have been recorded yet."""
    client = (await engine(workflows=[Adding])).client
    handle = await client.start_workflow(Adding, 0)
    for number in range(1, 41):
        await handle.signal("add", 1)
        assert number == await handle.query("total")


async def test_a_query_right_after_the_start_sees_the_first_turn(engine):
    """The program has run up to its first wait."""
    client = (await engine(workflows=[Adding])).client
    answers = await asyncio.gather(*(first_answer(client, number) for number in range(20)))

    assert list(range(20)) == answers


async def first_answer(client, number):
    return await (await client.start_workflow(Adding, number)).query("total")


async def test_a_workflow_inside_a_step_answers(engine, gate):
    """The step goes on; what came meanwhile has been seen; nothing is started twice."""
    client = (await engine(workflows=[Working])).client
    handle = await client.start_workflow(Working)
    await gate.entered.wait()
    await handle.signal("note", "one")

    assert ["one"] == await handle.query("notes")
    assert not await handle.query("is_done")
    gate.free.set()
    await until(lambda: handle.query("is_done"))
    await handle.signal("end")
    assert ["one"] == await handle.result(timeout=10)
    assert 1 == [event.type for event in await handle.history()].count("STEP_COMPLETED")


@pytest.mark.parametrize("how", ["completed", "cancelled", "terminated"])
async def test_a_closed_workflow_answers(engine, how):
    """As it was at its end, however it ended."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client, 1)
    await handle.signal("add", 2)
    assert 3 == await handle.query("total")
    if how == "completed":
        await closed(handle)
    elif how == "cancelled":
        await handle.cancel()
    else:
        await handle.terminate()
    await until(lambda: has_status(handle, WorkflowStatus[how.upper()]))

    assert 3 == await handle.query("total")


async def test_a_terminated_workflow_has_not_seen_what_no_turn_has_seen(engine):
    """Without a worker no turn took place: its program is as it never was."""
    starter = await engine(workflows=[Adding])
    handle = await waiting(starter.client, 1)
    await starter.shutdown()
    lone = await engine()
    await lone.client.signal_workflow(handle.id, "add", 10)
    await lone.client.terminate_workflow(handle.id)
    client = (await engine(workflows=[Adding])).client

    assert 1 == await client.query_workflow(handle.id, "total")


async def test_a_query_after_a_restart_rebuilds_the_program(engine):
    """Nothing is live: it is built from the history, for the query alone, and kept for the next."""
    first = await engine(workflows=[Adding])
    handle = await waiting(first.client, 1)
    for _ in range(5):
        await handle.signal("add", 1)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    await first.shutdown()
    second = await engine(workflows=[Adding])
    before = await second.client.history(handle.id)

    assert [6, 6] == [await second.client.query_workflow(handle.id, "total") for _ in range(2)]
    assert before == await second.client.history(handle.id)
    assert 1 == len(second.worker._queries._kept)


async def test_evicted_workflows_answer(engine):
    """With room for two live programs, ten executions answer all the same, and go on."""
    client = (await engine(workflows=[Adding], config=with_worker(cached_executions=2))).client
    handles = [await waiting(client, number) for number in range(10)]
    assert list(range(10)) == [await handle.query("total") for handle in handles]
    for handle in handles:
        await handle.signal("add", 100)

    assert [100 + number for number in range(10)] == [await handle.query("total") for handle in handles]


async def test_a_query_records_nothing(engine):
    """The history, and whether it waits, stay as they are."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client)
    before, view = await handle.history(), await handle.describe()
    for name in ("total", "describe", "__stack__", "__handlers__"):
        await handle.query(name)

    assert before == await handle.history()
    assert view == await handle.describe()


async def test_where_the_code_is(engine):
    """Every workflow tells where it waits and which handlers it has; also one that is a function."""

    @workflow
    async def plain(ctx: WorkflowContext) -> None:
        await ctx.wait_for_signal("go")

    client = (await engine(workflows=[Adding, plain])).client
    handle = await waiting(client)
    function = await client.start_workflow(plain)
    await until(lambda: has_status(function, WorkflowStatus.WAITING))

    assert "test_queries.py" in str(await handle.stack())
    assert "test_queries.py" in str(await function.stack())
    assert "total" in str(await handle.handlers())
    await function.handlers()


async def nothing() -> None:
    """A step without an effect."""


@workflow
class Restless:
    """Is never at rest: one step follows the other."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self, ctx: WorkflowContext, steps: int) -> int:
        for _ in range(steps):
            await ctx.run(nothing)
            self.count += 1
        return self.count

    @query
    def so_far(self) -> int:
        return self.count


async def test_a_workflow_that_is_never_at_rest_answers(engine):
    """Between two commits; the answers never go back, and the steps are not disturbed."""
    running = await engine(workflows=[Restless])
    handle = await running.client.start_workflow(Restless, 300)
    answers = []
    while await handle.status() is WorkflowStatus.RUNNING:
        answers.append(await handle.query("so_far"))

    assert 300 == await handle.result(timeout=10)
    assert answers
    assert sorted(answers) == answers
    assert 300 == (await types(handle)).count("STEP_COMPLETED")
    assert len(running.worker._queries._kept) <= 1, "what it was some steps ago is not kept"


async def types(handle):
    return [event.type for event in await handle.history()]


async def test_programs_answer_when_they_are_rebuilt_at_every_turn(engine):
    """The switch that throws every program away after each commit changes nothing."""
    client = (await engine(workflows=[Adding], config=with_worker(replay_always=True))).client
    handle = await client.start_workflow(Adding, 0)
    for number in range(1, 6):
        await handle.signal("add", 1)
        assert number == await handle.query("total")


async def test_a_workflow_that_another_process_runs_answers(engine, gate):
    """Two engines on one file, both with the code: the one that does not hold it builds a program of its own."""
    holder = await engine(workflows=[Working])
    handle = await holder.client.start_workflow(Working)
    await gate.entered.wait()
    other = (await engine(workflows=[Working])).client.workflow(handle.id)
    for number in range(5):
        await handle.signal("note", str(number))
        assert [str(seen) for seen in range(number + 1)] == await other.query("notes")
    before = await handle.history()
    assert not await other.query("is_done")
    assert before == await handle.history()
    gate.free.set()
    await handle.signal("end")
    assert 5 == len(await handle.result(timeout=10))
    assert await other.query("is_done")


async def test_live_and_rebuilt_programs_give_the_same_answers(engine):
    """Whoever answers: at rest, at the end, and as of any event."""
    first, second = await engine(workflows=[Adding]), await engine(workflows=[Adding])
    handle = await waiting(first.client, 1)
    rebuilt = second.client.workflow(handle.id)
    for amount in (10, 100, 1000):
        await handle.signal("add", amount)
        assert await handle.query("describe") == await rebuilt.query("describe")
    await closed(handle)
    last = (await handle.history())[-1].seq

    assert await handle.query("describe") == await rebuilt.query("describe")
    for seq in range(2, last + 1):
        assert await handle.query("describe", as_of=seq) == await rebuilt.query("describe", as_of=seq)


# --- as of an event ---------------------------------------------------------------------------------------------------


async def test_a_workflow_is_asked_as_it_was(engine):
    """At every event: what the turns recorded by then had seen. Never more than at a later event."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client, 1)
    marks = {}
    for amount in (10, 100):
        marks[(await handle.history())[-1].seq] = await handle.query("total")
        await handle.signal("add", amount)
        await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    marks[(await handle.history())[-1].seq] = 111
    await closed(handle)
    last = (await handle.history())[-1].seq
    answers = {seq: await handle.query("total", as_of=seq) for seq in range(2, last + 1)}

    assert marks == {seq: answers[seq] for seq in marks}
    assert {1, 11, 111} == set(marks.values())
    assert sorted(answers.values()) == list(answers.values())
    assert [111, 111] == [answers[last], await handle.query("total")]


async def test_a_workflow_that_had_not_begun_has_no_answer(engine):
    """Before its first turn there was no program."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client)
    with pytest.raises(QueryFailed, match="not begun"):
        await handle.query("total", as_of=1)


@pytest.mark.parametrize("seq", [0, -1, 10_000])
async def test_a_moment_outside_the_history_is_refused(engine, seq):
    """The error names the range."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client)
    last = (await handle.history())[-1].seq
    with pytest.raises(InvalidRequest, match=f"1 to {last}") as refused:
        await handle.query("total", as_of=seq)

    assert "as_of" == refused.value.field


@pytest.mark.parametrize("seq", [True, "1"])
async def test_what_is_no_moment_at_all_is_refused(engine, seq):
    """By the engine or, over HTTP, by the door already."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client)
    with pytest.raises(InvalidRequest) as refused:
        await handle.query("total", as_of=seq)

    assert "as_of" == refused.value.field


# --- no answer --------------------------------------------------------------------------------------------------------


async def test_an_unknown_query_is_refused(engine):
    """By name; the execution is not touched."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client)
    with pytest.raises(UnknownQuery, match="totale") as refused:
        await handle.query("totale")

    assert "unknown_query" == refused.value.code


async def test_an_unknown_execution_is_refused(engine):
    client = (await engine(workflows=[Adding])).client
    nobody = str(uuid4())
    with pytest.raises(ExecutionNotFound, match=nobody):
        await client.query_workflow(nobody, "total")


async def test_what_is_not_a_query_is_refused(engine):
    """A signal's method, or any other function, has no answer."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client)
    for call in (Adding.add, Adding.run, print):
        with pytest.raises(InvalidRequest, match="not a query"):
            await handle.query(call)


async def test_without_the_code_there_is_nobody_to_ask(engine):
    """The error names kind and version and what to do."""
    handle = await waiting((await engine(workflows=[Adding])).client)
    lone = (await engine()).client
    with pytest.raises(NoWorker, match=r"'Adding' version '1'.*workflows=") as refused:
        await lone.query_workflow(handle.id, "total")

    assert {"kind": "Adding", "version": "1"} == refused.value.details


async def test_an_error_of_the_handler_reaches_the_caller(engine):
    """With its type and text; the execution goes on."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client)
    with pytest.raises(QueryFailed, match="no such thing") as failed:
        await handle.query("broken")

    assert "LookupError" == failed.value.error_type
    await closed(handle)


async def test_a_query_that_changes_something_changes_nothing(engine):
    """It fails, the program is rebuilt from its history, and everything is as before."""
    client = (await engine(workflows=[Adding])).client
    handle = await waiting(client, 5)
    with pytest.raises(QueryNotReadOnly):
        await handle.query("steal")

    assert 5 == await handle.query("total")
    await handle.signal("add", 1)
    assert 6 == await handle.query("total")
    await handle.signal("end")
    assert 6 == await handle.result(timeout=10)
    with pytest.raises(QueryNotReadOnly):
        await handle.query("steal")
    assert 6 == await handle.query("total"), "nor in a program that was built for queries"


async def test_a_query_that_tampers_during_a_step_changes_nothing(engine, gate):
    """The step is not lost and not run again, although the program that asked for it was thrown away."""
    client = (await engine(workflows=[Working])).client
    handle = await client.start_workflow(Working)
    await gate.entered.wait()
    await handle.signal("note", "one")
    assert ["one"] == await handle.query("notes")
    gate.entered.clear()
    with pytest.raises(QueryNotReadOnly):
        await handle.query("tamper")
    assert ["one"] == await handle.query("notes")
    gate.free.set()
    await handle.signal("end")

    assert ["one"] == await handle.result(timeout=10)
    assert not gate.entered.is_set()


async def test_a_stuck_workflow_says_why_it_has_no_answer(engine):
    """Code that does not fit the history can't be asked: the error names the mismatch. As of earlier, it can."""

    def shop(steps):
        @workflow(kind="shop")
        class Shop:
            def __init__(self) -> None:
                self.at = ""

            async def run(self, ctx: WorkflowContext) -> None:
                for step in steps:
                    self.at = step
                    if step == "sleep":
                        await ctx.sleep(3600)
                    else:
                        await ctx.wait_for_signal(step)

            @query
            def where(self) -> str:
                return self.at

        return Shop

    first = await engine(workflows=[shop(["go", "sleep"])])
    handle = await first.client.start_workflow("shop")
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    quiet = (await handle.history())[-1].seq
    await handle.signal("go")
    await until(lambda: timers(handle))
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    await first.shutdown()
    client = (await engine(workflows=[shop(["go", "pay"])])).client
    await client.signal_workflow(handle.id, "pay")
    handle = client.workflow(handle.id)
    await until(lambda: has_status(handle, WorkflowStatus.STUCK))

    with pytest.raises(QueryFailed, match="timer 1") as failed:
        await handle.query("where")
    assert "DeterminismError" == failed.value.error_type
    assert "go" == await handle.query("where", as_of=quiet)
    assert WorkflowStatus.STUCK is await handle.status()


async def timers(handle):
    return await handle.pending_timers()


# --- waiting for the answer -------------------------------------------------------------------------------------------


async def test_a_caller_who_gives_up_leaves_nothing_behind(engine, monkeypatch):
    """A timeout and a cancelled call end the wait alone; the late answer is dropped."""
    running = await engine(workflows=[Adding])
    handle = await waiting(running.client)
    free = asyncio.Event()
    answer = running._local.workers.answer_query

    async def late(request):
        await free.wait()
        await answer(request)

    monkeypatch.setattr(running._local.workers, "answer_query", late)
    with pytest.raises(TimeoutError):
        await handle.query("total", timeout=0.01)
    asking = asyncio.create_task(handle.query("total"))
    await until(lambda: running._local.queries._pending)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    await until(lambda: {} == running._local.queries._pending)
    free.set()
    assert 1 == await handle.query("total")


async def test_queries_at_once_on_a_cold_workflow_build_it_once(engine, monkeypatch):
    """They share the program."""
    first = await engine(workflows=[Adding])
    handle = await waiting(first.client)
    await first.shutdown()
    second = await engine(workflows=[Adding])
    built = []
    recreate = worker_queries._recreate

    def counted(*args):
        built.append(1)
        recreate(*args)

    monkeypatch.setattr(worker_queries, "_recreate", counted)

    assert [1] * 20 == await asyncio.gather(*(second.client.query_workflow(handle.id, "total") for _ in range(20)))
    assert [1] == built


async def test_few_programs_built_for_queries_are_kept(engine, monkeypatch):
    """At most sixteen, and fewer when their histories are long; the others are closed."""
    running = await engine(workflows=[Adding])
    handle = await waiting(running.client)
    for _ in range(10):
        await handle.signal("add", 1)
        await handle.query("total")
    await closed(handle)
    kept = running.worker._queries._kept
    last = (await handle.history())[-1].seq
    assert last > worker_queries.KEPT
    for seq in range(2, last + 1):
        await handle.query("total", as_of=seq)
    before = [machine for machine, _ in kept.values()]
    assert worker_queries.KEPT == len(before)
    assert not any(machine.dead for machine in before)

    monkeypatch.setattr(worker_queries, "KEPT_EVENTS", 1)
    assert 1 == await handle.query("total", as_of=2), "it had been pushed out"
    assert [False] == [machine.dead for machine, _ in kept.values()]
    assert all(machine.dead for machine in before)


async def test_an_engine_that_stops_answers_whoever_waits(engine, monkeypatch):
    """Never silence."""
    running = await engine(workflows=[Adding])
    handle = await waiting(running.client)

    async def never(request):
        await asyncio.Event().wait()

    monkeypatch.setattr(running._local.workers, "answer_query", never)
    asking = asyncio.create_task(handle.query("total"))
    await until(lambda: running._local.queries._pending)
    await running.shutdown()
    with pytest.raises((EngineStopped, NoWorker)):
        await asking


def a_session(dispatcher, name):
    request = RegisterWorker(
        org="o", session=name, host="h", pid=1, builds={("k", "1"): "b"}, turn_slots=1, task_slots=1, lease_s=1.0
    )
    dispatcher.open(request)
    return dispatcher.sessions[name]


async def test_a_question_to_a_lost_worker_goes_to_the_next():
    """Whoever asked does not notice, as long as there is another."""
    dispatcher = Dispatcher(suspect_from=4)
    first, second = a_session(dispatcher, "first"), a_session(dispatcher, "second")
    queries = Queries(dispatcher, iter(range(10)).__next__)
    execution = Execution(
        id="e", org="o", workflow_id="w", kind="k", version="1", queue="default", priority=0, state=State.OPEN,
        created_at=0, updated_at=0, last_seq=4,
    )  # fmt: skip
    asking = asyncio.create_task(
        queries.ask(QueryExecution(org="o", workflow_execution_id="e", query_name="q"), execution)
    )
    await until(lambda: first.outbox)
    dispatcher.close("first", EngineStopped())
    queries.lost("first")
    (work,) = await until(lambda: second.outbox)
    assert isinstance(work, QueryWork)
    assert ("q", 4, False) == (work.query_name, work.last_seq, work.has_input)
    queries.answered(AnswerQuery(query_id=work.query_id))
    assert b"null" == bytes(await asking)

    asking = asyncio.create_task(
        queries.ask(QueryExecution(org="o", workflow_execution_id="e", query_name="q"), execution)
    )
    await until(lambda: len(second.outbox) == 2)
    dispatcher.close("second", EngineStopped())
    queries.lost("second")
    with pytest.raises(NoWorker):
        await asking


def test_the_defaults_leave_room_for_live_programs():
    """The programs built for queries are few against those that are live."""
    assert worker_queries.KEPT < WorkerConfig().cached_executions
