"""Workflows written as classes: what their handlers do."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import pytest
from msgspec import Raw

from holdfast import Client, WorkflowContext, query, signal, task, update, workflow
from holdfast.errors import (
    BlockedForever,
    NotDurableError,
    QueryFailed,
    QueryNotReadOnly,
    UnknownQuery,
    WorkflowFailed,
)
from holdfast.model import commands as c
from tests.conftest import until
from tests.replay.driving import Driven, asked, completed, fired, result_of, signalled
from tests.replay.recording import Commits, check_cuts, check_whole, replayed

NOTHING = Raw(b"null")


@dataclass
class Line:
    sku: str
    count: int = 1


# --- signals ----------------------------------------------------------------------------------------------------------


@workflow
class Cart:
    """Collects until it is told to stop."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.log: list[str] = []
        self.done = False

    async def run(self, ctx: WorkflowContext) -> list[str]:
        self.log.append(f"run {len(self.lines)}")
        await ctx.wait_until(lambda: self.done)
        return self.log

    @signal
    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.log.append(f"add {line.sku} {line.count}")

    @signal
    async def fetch(self, ctx: WorkflowContext, sku: str) -> None:
        self.log.append(f"fetching {sku}")
        self.log.append(f"fetched {await ctx.task('fetch', sku)}")

    @signal
    def stop(self) -> None:
        self.done = True

    @signal
    def fail(self) -> None:
        raise ValueError("no more")

    @query
    def count(self, sku: str | None = None) -> int:
        return sum(line.count for line in self.lines if sku in (None, line.sku))


def test_signals_of_the_start_are_handed_over_before_the_first_step():
    """In order of arrival."""
    driven = Driven(Cart)
    driven.start(signalled("add", '{"sku":"b"}'), signalled("add", '{"sku":"a","count":2}'))
    end = driven.turn(signalled("stop"))

    assert ["add b 1", "add a 2", "run 2"] == result_of(end)
    driven.check()


def test_signals_come_at_their_place_between_other_events():
    """An async handler's awaits are durable and interleave by the history."""
    driven = Driven(Cart)
    driven.start()
    (scheduled,) = driven.turn(signalled("fetch", '"x"'), signalled("add", '{"sku":"a"}')).commands
    assert isinstance(scheduled, c.ScheduleTask)
    end = driven.turn(
        signalled("add", '{"sku":"b"}'), completed(1, '"X"'), signalled("add", '{"sku":"c"}'), signalled("stop")
    )

    assert ["run 0", "fetching x", "add a 1", "add b 1", "fetched X", "add c 1"] == result_of(end)
    driven.check()


def test_a_value_that_does_not_fit_is_refused_with_the_reason():
    """The workflow does not see it; the others it sees."""
    driven = Driven(Cart)
    first = driven.start(signalled("add", '{"sku":5}'), signalled("add", '{"sku":"a"}'))
    later = driven.turn(signalled("stop", '"now"'), signalled("stop"))

    ((number, reason),) = first.refused
    assert 2 == number
    assert "signal 'add'.sku" in reason
    assert ["signal 'stop' takes no value: send none"] == [why for _, why in later.refused]
    assert ["add a 1", "run 1"] == result_of(later)
    driven.check()


def test_an_error_in_a_handler_fails_the_workflow():
    """As one in run does."""
    driven = Driven(Cart)
    driven.start()
    (end,) = driven.turn(signalled("fail")).commands

    assert isinstance(end, c.FailWorkflow)
    assert ("ValueError", "no more") == (end.failure.type, end.failure.message)
    driven.check()


def test_signals_without_a_handler_wait_in_their_queue():
    """A class may use both."""

    @workflow
    class Both:
        def __init__(self):
            self.seen = []

        async def run(self, ctx):
            return [await ctx.wait_for_signal("queued"), self.seen]

        @signal
        def handled(self, value):
            self.seen.append(value)

    driven = Driven(Both)
    driven.start(signalled("handled", "1"), signalled("queued", "2"), signalled("queued", "3"))
    end = driven._turns[-1][2]
    assert isinstance(end[-1], c.CompleteWorkflow)
    assert b"[2,[1]]" == bytes(end[-1].result)
    assert (4,) == driven.machine.unread()
    driven.check()


def test_waiting_for_a_handled_signal_is_refused():
    """It would wait for ever."""

    @workflow
    class Wrong:
        async def run(self, ctx):
            await ctx.wait_for_signal("go")

        @signal
        def go(self): ...

    (end,) = Driven(Wrong).start().commands
    assert isinstance(end, c.FailWorkflow)
    assert "go to their handler" in end.failure.message


def test_a_class_with_handlers_is_never_blocked_for_good():
    """A signal could always come; queries alone bring no news."""

    @workflow
    class Waits:
        async def run(self, ctx):
            self.go = asyncio.Event()
            await self.go.wait()

        @signal
        def release(self):
            self.go.set()

    @workflow
    class Looks:
        async def run(self, ctx):
            await asyncio.Event().wait()

        @query
        def look(self): ...

    driven = Driven(Waits)
    driven.start()
    (wait,) = driven.machine.waits()
    assert "call" == wait.kind
    assert "test_class_workflows.py" in wait.line
    assert result_of(driven.turn(signalled("release"))) is None
    assert () == driven.machine.waits()
    driven.check()
    with pytest.raises(BlockedForever):
        Driven(Looks).start()


def test_an_error_in_init_fails_the_workflow():
    """There is nothing that could run."""

    @workflow
    class Broken:
        def __init__(self):
            raise LookupError("nothing here")

        async def run(self, ctx): ...

    (end,) = Driven(Broken).start().commands
    assert isinstance(end, c.FailWorkflow)
    assert "LookupError" == end.failure.type


def test_sys_exit_ends_the_workflow_and_not_the_worker():
    """In __init__, in a handler, in a predicate: it fails what it belongs to."""

    @workflow
    class AtOnce:
        def __init__(self):
            sys.exit("at once")

        async def run(self, ctx): ...

    @workflow
    class Later:
        async def run(self, ctx):
            await ctx.wait_until(lambda: next(iter([])) if self.asked else None)

        def __init__(self):
            self.asked = False

        @signal
        def leave(self):
            sys.exit("later")

        @signal
        def stop_iterating(self):
            self.asked = True

        @query
        def look(self):
            sys.exit("looking")

    for fn, news, kind in (
        (AtOnce, [], "SystemExit"),
        (Later, [signalled("leave")], "SystemExit"),
        (Later, [signalled("stop_iterating")], "RuntimeError"),
    ):
        driven = Driven(fn)
        (end,) = driven.start(*news).commands
        assert isinstance(end, c.FailWorkflow)
        assert kind == end.failure.type
        driven.check()
    driven = Driven(Later)
    driven.start()
    with pytest.raises(QueryFailed, match="SystemExit: looking"):
        driven.program.query("look", NOTHING, False)


def test_init_may_use_ctx():
    """Tasks it starts are tasks like any other."""

    @workflow
    class Eager:
        def __init__(self, ctx: WorkflowContext) -> None:
            self.job = ctx.task("prepare")
            self.at = ctx.now()

        async def run(self, ctx: WorkflowContext) -> str:
            return await self.job

    driven = Driven(Eager)
    driven.start()
    assert "ready" == result_of(driven.turn(completed(1, '"ready"')))
    driven.check()


# --- updates ----------------------------------------------------------------------------------------------------------


@workflow
class Account:
    def __init__(self) -> None:
        self.balance = 10
        self.closed = False

    async def run(self, ctx: WorkflowContext) -> int:
        await ctx.wait_until(lambda: self.closed)
        await ctx.wait_until(ctx.all_handlers_finished)
        return self.balance

    @update
    def withdraw(self, amount: int) -> int:
        self.balance -= amount
        return self.balance

    @withdraw.validator
    def covered(self, amount: int) -> None:
        if amount > self.balance:
            raise ValueError(f"only {self.balance} left")

    @update
    async def transfer(self, ctx: WorkflowContext, amount: int) -> str:
        await ctx.task("transfer", amount)
        self.balance -= amount
        return f"{self.balance} left"

    @update
    def break_down(self) -> None:
        raise RuntimeError("broken")

    @update
    def sneak(self) -> None: ...

    @sneak.validator
    def act(self, ctx: WorkflowContext) -> None:
        ctx.task("sneaky")

    @signal
    def close(self) -> None:
        self.closed = True


def test_an_update_is_validated_run_and_answered_in_its_turn():
    """The validator sees what the updates before it have done."""
    driven = Driven(Account)
    driven.start()
    taken = driven.turn(asked("withdraw", "7"), asked("withdraw", "7", "u2"))

    accepted, done, rejected = taken.commands
    assert c.AcceptUpdate(update_id="u1") == accepted
    assert c.CompleteUpdate(update_id="u1", result=Raw(b"3")) == done
    assert isinstance(rejected, c.RejectUpdate)
    assert ("u2", "ValueError", "only 3 left") == (
        rejected.update_id,
        rejected.failure.type,
        rejected.failure.message,
    )
    driven.turn(signalled("close"))
    driven.check()


def test_an_update_that_came_with_the_start():
    """It finds the instance."""
    driven = Driven(Account)
    commands = driven.start(asked("withdraw", "1")).commands
    assert [c.AcceptUpdate, c.CompleteUpdate] == [type(command) for command in commands]
    driven.check()


def test_an_async_update_is_answered_when_it_is_done():
    """Its awaits are durable; the workflow can wait for its handlers."""
    driven = Driven(Account)
    driven.start()
    accepted, scheduled = driven.turn(asked("transfer", "4"), signalled("close")).commands
    assert isinstance(accepted, c.AcceptUpdate)
    assert isinstance(scheduled, c.ScheduleTask)
    answer, end = driven.turn(completed()).commands
    assert c.CompleteUpdate(update_id="u1", result=Raw(b'"6 left"')) == answer
    assert isinstance(end, c.CompleteWorkflow)
    driven.check()


@pytest.mark.parametrize(
    ("name", "value", "kind", "says"),
    [
        ("nothing", "null", "NotFound", "has no update 'nothing'; it has: break_down, sneak, transfer, withdraw"),
        ("withdraw", '"much"', "PayloadNotDecodable", "can't be read as int"),
        ("break_down", "1", "InvalidRequest", "takes no value"),
        ("sneak", "null", "InvalidRequest", "validator of update 'sneak' must only look"),
    ],
)
def test_updates_that_are_rejected(name, value, kind, says):
    """Unknown, unreadable, or with a validator that does more than look: the workflow has not seen them."""
    driven = Driven(Account)
    driven.start()
    (rejected,) = driven.turn(asked(name, value)).commands
    assert isinstance(rejected, c.RejectUpdate)
    assert kind == rejected.failure.type
    assert says in rejected.failure.message
    assert result_of(driven.turn(signalled("close"))) == 10
    driven.check()


def test_an_error_in_an_update_fails_that_update_only():
    """The workflow goes on."""
    driven = Driven(Account)
    driven.start()
    _, failed = driven.turn(asked("break_down")).commands
    assert isinstance(failed, c.FailUpdate)
    assert ("RuntimeError", "broken") == (failed.failure.type, failed.failure.message)
    assert 10 == result_of(driven.turn(signalled("close")))
    driven.check()


def test_a_function_rejects_updates():
    """It has no handlers."""

    @workflow
    async def plain(ctx):
        await ctx.wait_for_signal("go")

    driven = Driven(plain)
    driven.start()
    (rejected,) = driven.turn(asked("change")).commands
    assert isinstance(rejected, c.RejectUpdate)
    assert "has no update 'change'; it has: none" in rejected.failure.message
    driven.check()


def test_a_handler_that_reaches_outside_parks_the_workflow():
    """Its code is at fault, not the update."""

    @workflow
    class Wrong:
        async def run(self, ctx):
            await ctx.wait_for_signal("end")

        @update
        async def call(self):
            await asyncio.get_running_loop().run_in_executor(None, print)

    driven = Driven(Wrong)
    driven.start()
    with pytest.raises(NotDurableError):
        driven.turn(asked("call"))


# --- queries ----------------------------------------------------------------------------------------------------------


def asked_of(driven, name, value=NOTHING, *, given=False):
    return json.loads(bytes(driven.program.query(name, value, given)))


@workflow
class Shown:
    def __init__(self, ctx: WorkflowContext) -> None:
        self.ctx = ctx
        self.items = ["a"]
        self.deep: dict[str, Any] = {"line": Line("x"), "more": [{"n": 1}]}
        self.gate = asyncio.Event()

    async def run(self, ctx: WorkflowContext) -> None:
        ctx.state["seen"] = {"n": 1}
        await self.gate.wait()

    @signal
    def go(self) -> None:
        self.gate.set()

    @query
    def read(self, prefix: str = "") -> list[str]:
        info = self.ctx.info.kind
        self.ctx.logger.info("looked")
        return [prefix + item for item in [*self.items, info, self.deep["line"].sku, str(self.ctx.state["seen"]["n"])]]

    @query
    def fails(self) -> None:
        raise LookupError("not there")

    @query
    def unencodable(self) -> object:
        return object()

    @query
    def assigns(self) -> None:
        self.items = ["b"]

    @query
    def appends(self) -> None:
        self.items.append("b")

    @query
    def digs(self) -> None:
        self.deep["more"][0]["n"] = 2

    @query
    def changes_a_dataclass(self) -> None:
        self.deep["line"].count = 3

    @query
    def changes_and_fails(self) -> None:
        self.items.append("b")
        raise LookupError

    @query
    def sets_an_event(self) -> None:
        self.gate.set()

    @query
    def asks(self) -> None:
        self.ctx.task("t")

    @query
    def asks_quietly(self) -> None:
        with suppress(Exception):
            self.ctx.sleep(1)

    @query
    def starts_a_task(self) -> None:
        coroutine = self.run(self.ctx)
        try:
            asyncio.ensure_future(coroutine)  # noqa: RUF006
        finally:
            pass

    @query
    def writes_state(self) -> None:
        self.ctx.state["seen"] = 2

    @query
    def digs_in_state(self) -> None:
        self.ctx.state["seen"]["n"] = 2

    @query
    def draws(self) -> float:
        return self.ctx.random.random()

    @query
    def continues(self) -> None:
        self.ctx.continue_as_new()

    @query
    def drains(self) -> None:
        coroutine = self.ctx.drain_signals("x")
        coroutine.send(None)


def test_a_query_looks_and_answers():
    """As often as one likes, and the program is as good as before."""
    driven = Driven(Shown)
    driven.start()
    assert ["a", "k", "x", "1"] == asked_of(driven, "read")
    assert ["-a", "-k", "-x", "-1"] == asked_of(driven, "read", Raw(b'"-"'), given=True)
    assert not driven.program.spoiled
    assert result_of(driven.turn(signalled("go"))) is None
    driven.check()


@pytest.mark.parametrize(
    "name",
    [
        "appends",
        "asks",
        "asks_quietly",
        "assigns",
        "changes_a_dataclass",
        "changes_and_fails",
        "continues",
        "digs",
        "digs_in_state",
        "drains",
        "draws",
        "sets_an_event",
        "starts_a_task",
        "writes_state",
    ],
)
def test_a_query_that_changes_something_is_refused(name):
    """And the program is marked, so that it is thrown away."""
    driven = Driven(Shown)
    driven.start()
    with pytest.raises(QueryNotReadOnly, match="a query only looks"):
        driven.program.query(name, NOTHING, False)
    assert driven.program.spoiled
    assert not driven.machine.frozen
    driven.machine.close()


def test_queries_that_fail():
    """The error says which, why, and what there is."""
    driven = Driven(Shown)
    driven.start()
    with pytest.raises(QueryFailed, match="query 'fails' failed: LookupError: not there") as failed:
        driven.program.query("fails", NOTHING, False)
    assert "LookupError" == failed.value.error_type
    with pytest.raises(QueryFailed, match="PayloadNotEncodable"):
        driven.program.query("unencodable", NOTHING, False)
    known = "it has: __handlers__, __mailbox__, __stack__, appends"
    with pytest.raises(UnknownQuery, match=f"no query 'nothing'; {known}"):
        driven.program.query("nothing", NOTHING, False)
    assert not driven.program.spoiled
    driven.check()


def test_queries_of_a_closed_program_still_answer():
    """What it knew when it ended; it can't ask for anything any more."""
    driven = Driven(Shown)
    driven.start()
    driven.turn(signalled("go"))
    assert ["a", "k", "x", "1"] == asked_of(driven, "read")
    with pytest.raises(QueryNotReadOnly):
        driven.program.query("asks", NOTHING, False)
    again = replayed(Shown, driven.history)
    assert b'["a","k","x","1"]' == bytes(cast(Any, again._program).query("read", NOTHING, False))


def test_every_workflow_answers_two_queries():
    """Where it stands, and what handlers it has: functions too."""

    @workflow
    async def plain(ctx):
        await ctx.wait_for_signal("go")

    driven = Driven(plain)
    driven.start()
    (place,) = asked_of(driven, "__stack__")
    assert "test_class_workflows.py" in place
    assert "awaiting go" in place
    own = ["__handlers__", "__mailbox__", "__stack__"]
    assert {"signals": [], "queries": own, "updates": []} == asked_of(driven, "__handlers__")
    with pytest.raises(UnknownQuery):
        driven.program.query("other", NOTHING, False)

    carted = Driven(Cart)
    carted.start()
    names = asked_of(carted, "__handlers__")
    assert ["add", "fail", "fetch", "stop"] == names["signals"]
    assert [*own, "count"] == names["queries"]
    driven.check()


# --- with an engine ---------------------------------------------------------------------------------------------------


@task
async def fetch(sku: str) -> str:
    return sku.upper()


async def test_a_class_runs_with_an_engine(engine):
    """Started by its class, signalled, replayed wherever it is cut."""
    running = await engine(workflows=[Cart], tasks=[fetch])
    commits = Commits(running)
    client: Client = running.client
    answer = await client.signal_with_start_workflow("w", Cart, signal_name="add", signal_value=Line("a"))
    handle = client.workflow(answer.workflow_execution_id, Cart)
    await handle.signal("fetch", "x")
    await until(lambda: _is_completed(handle, "TASK_COMPLETED"))
    await handle.signal("stop")

    assert ["add a 1", "run 1", "fetching x", "fetched X"] == await handle.result(timeout=10)
    history = await handle.history()
    check_whole(Cart, history, handle.id)
    assert check_cuts(Cart, history, handle.id, commits.cuts(handle.id, len(history)))


async def _is_completed(handle, type_name):
    return type_name in {event.type for event in await handle.history()}


async def test_start_by_class_with_input(engine):
    """The input's type is that of run."""

    @workflow
    class Echo:
        async def run(self, ctx: WorkflowContext, line: Line) -> Line:
            return Line(line.sku, line.count + 1)

    running = await engine(workflows=[Echo])
    handle = await running.client.start_workflow(Echo, Line("a", 4))
    assert Line("a", 5) == await handle.result(timeout=10)
    bad = await running.client.start_workflow(Echo, 5)
    with pytest.raises(WorkflowFailed, match="PayloadNotDecodable"):
        await bad.result(timeout=10)


def test_timers_of_handlers_are_durable():
    """A handler may sleep."""

    @workflow
    class Slow:
        def __init__(self):
            self.slept = False

        async def run(self, ctx):
            await ctx.wait_until(lambda: self.slept)
            return "slept"

        @signal
        async def rest(self, ctx, seconds: float):
            await ctx.sleep(seconds)
            self.slept = True

    driven = Driven(Slow)
    driven.start(signalled("rest", "2.5"))
    assert "slept" == result_of(driven.turn(fired()))
    driven.check()
