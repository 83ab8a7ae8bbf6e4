"""`ctx.promise`: one value from outside."""

import asyncio
import os
import stat
from dataclasses import dataclass
from typing import Annotated

import pytest
from msgspec import Meta, Raw

from holdfast import EngineConfig, WorkflowContext, query, workflow
from holdfast.errors import (
    InvalidRequest,
    PayloadNotDecodable,
    PromiseNotFound,
    PromiseRejected,
    QueryNotReadOnly,
    WorkflowFailed,
)
from holdfast.frontends.python.definitions import workflow_definition
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.tokens import execution_key, promise_token, token_hash
from holdfast.model.values import Failure
from holdfast.replay.machine import Machine
from holdfast.secret_key import secret_key
from holdfast.testing.histories import program_maker
from tests.replay.driving import Driven, result_of
from tests.unit.frontends.python.outside import outside


@dataclass
class Payment:
    amount: int


@workflow
async def shop(ctx: WorkflowContext) -> int:
    paid = ctx.promise("payment", Payment)
    ctx.state["id"], ctx.state["token"] = paid.id, paid.token
    return (await paid).amount


# --- end to end -------------------------------------------------------------------------------------------------------


async def test_a_promise_is_settled_by_its_id(engine):
    """Its id is the execution's and its name; its value comes as the type that was asked for."""
    world = await outside(engine, shop)
    handle = await world.start(shop)
    await world.waiting(handle, ("promise", "payment"))
    assert f"{handle.id}:payment" == (await handle.state())["id"]

    answer = await world.resolve(f"{handle.id}:payment", {"amount": 7})

    assert not answer.already_resolved
    assert 7 == await world.result(handle)
    await world.check_replays()


async def test_a_promise_is_settled_by_its_token(engine):
    """Whoever holds the token needs to know nothing else; a token that is cut short stands for nothing."""
    world = await outside(engine, shop)
    handle = await world.start(shop)
    await world.waiting(handle, ("promise", "payment"))
    token = (await handle.state())["token"]

    with pytest.raises(PromiseNotFound):
        await world.resolve_by_token(token[:-1], {"amount": 1})
    await world.resolve_by_token(token, {"amount": 7})

    assert 7 == await world.result(handle)
    await world.check_replays()


async def test_the_token_outlives_the_worker(engine):
    """A token that was handed out counts after a restart, and the program gives the same one again."""

    @workflow
    async def twice(ctx: WorkflowContext) -> bool:
        paid = ctx.promise("payment")
        ctx.state["token"] = before = paid.token
        await ctx.wait_for_signal("go on")
        ctx.state["again"] = paid.token
        return await paid == 7 and before == paid.token

    first = await outside(engine, twice)
    handle = await first.start(twice)
    await first.waiting(handle, ("promise", "payment"), ("signal", "go on"))
    token = (await handle.state())["token"]
    await first.engine.shutdown()

    second = await outside(engine, twice)
    handle = second.client.workflow(handle.id)
    await handle.signal("go on")
    await second.resolve_by_token(token, 7)

    assert await second.result(handle)
    assert token == (await handle.state())["again"]


async def test_a_rejected_promise_raises(engine):
    """The workflow gets who said no and why, and may go on."""

    @workflow
    async def careful(ctx: WorkflowContext) -> list[str]:
        try:
            await ctx.promise("payment")
        except PromiseRejected as error:
            return [error.error_type, str(error), error.details["failure"].message, error.details["promise_id"]]
        return []

    world = await outside(engine, careful)
    handle = await world.start(careful)
    await world.waiting(handle, ("promise", "payment"))
    await world.reject(f"{handle.id}:payment", "CardDeclined", "no money")

    message = "promise 'payment' was rejected: CardDeclined: no money"
    assert ["CardDeclined", message, "no money", f"{handle.id}:payment"] == await world.result(handle)
    await world.check_replays()


async def test_a_rejection_that_is_not_caught_fails_the_workflow(engine):
    world = await outside(engine, shop)
    handle = await world.start(shop)
    await world.waiting(handle, ("promise", "payment"))
    await world.reject(f"{handle.id}:payment", "CardDeclined", "no money")

    with pytest.raises(WorkflowFailed, match="CardDeclined"):
        await world.result(handle)
    await world.check_replays()


async def test_a_promise_that_nobody_settles_in_time(engine):
    """Late: PromiseTimeout, which is a TimeoutError; a settlement after that is told that it is too late."""

    @workflow
    async def impatient(ctx: WorkflowContext) -> str:
        try:
            await ctx.promise("payment", timeout=0.02)
        except TimeoutError as error:
            return f"{type(error).__name__}: {error}"
        return ""

    world = await outside(engine, impatient)
    handle = await world.start(impatient)

    expected = f"PromiseTimeout: nobody settled promise 'payment' ({handle.id}:payment) in time"
    assert expected == await world.result(handle)
    answer = await world.resolve(f"{handle.id}:payment", 1)
    assert answer.already_resolved
    assert "TIMED_OUT" == answer.state
    await world.check_replays()


async def test_a_promise_settled_before_its_time_out_leaves_no_timer(engine):
    @workflow
    async def patient(ctx: WorkflowContext) -> int:
        paid = await ctx.promise("payment", int, timeout=3600)
        await ctx.wait_for_signal("end")
        return paid

    world = await outside(engine, patient)
    handle = await world.start(patient)
    await world.waiting(handle, ("promise", "payment"))
    await world.resolve(f"{handle.id}:payment", 3)
    await world.waiting(handle, ("signal", "end"))

    assert await world.engine._local.upkeep.next_due_at(0) is None
    await handle.signal("end")
    assert 3 == await world.result(handle)
    await world.check_replays()


async def test_an_event_settles_a_promise(engine):
    """With `event_key`, whatever is published next under that key is its value."""

    @workflow
    async def listener(ctx: WorkflowContext) -> Payment:
        return await ctx.promise("payment", Payment, event_key="paid")

    world = await outside(engine, listener)
    handle = await world.start(listener)
    await world.waiting(handle, ("promise", "payment"))
    answer = await world.publish("paid", {"amount": 9})

    assert 1 == answer.delivered
    assert Payment(9) == await world.result(handle)
    await world.check_replays()


async def test_the_loser_of_a_race_is_taken_back(engine):
    """A promise nobody wants any more can't be settled: whoever tries is told so. Its timer and subscription go."""

    @workflow
    async def racing(ctx: WorkflowContext) -> list[object]:
        slow = ctx.promise("slow", timeout=3600, event_key="slow")
        won = await ctx.race(ctx.promise("fast"), slow)
        await ctx.wait_for_signal("end")
        return [won.item_id, won.result]

    world = await outside(engine, racing)
    handle = await world.start(racing)
    await world.waiting(handle, ("promise", "slow"), ("promise", "fast"))
    await world.resolve(f"{handle.id}:fast", 1)
    await world.waiting(handle, ("signal", "end"))

    late = await world.resolve(f"{handle.id}:slow", 2)
    assert (True, "CANCELLED") == (late.already_resolved, late.state)
    assert await world.engine._local.upkeep.next_due_at(0) is None
    assert [] == await handle.waits()
    await handle.signal("end")
    assert [f"{handle.id}:fast", 1] == await world.result(handle)
    await world.check_replays()


async def test_a_promise_settled_in_advance(engine):
    """The settlement waits for the workflow to make its promise."""

    @workflow
    async def slow_starter(ctx: WorkflowContext) -> int:
        await ctx.wait_for_signal("begin")
        return await ctx.promise("payment", int, timeout=3600)

    world = await outside(engine, slow_starter)
    handle = await world.start(slow_starter)
    await world.resolve(f"{handle.id}:payment", 5, allow_early=True)
    await handle.signal("begin")

    assert 5 == await world.result(handle)
    await world.check_replays()


async def test_a_value_that_does_not_fit_is_the_workflows_to_handle(engine):
    """As far as it is not refused where it comes in; a pattern is not asked there."""

    @workflow
    async def strict(ctx: WorkflowContext) -> str:
        try:
            await ctx.promise("count", Annotated[str, Meta(pattern="^few")])
        except PayloadNotDecodable as error:
            return str(error.details["field"])
        return ""

    world = await outside(engine, strict)
    handle = await world.start(strict)
    await world.waiting(handle, ("promise", "count"))
    await world.resolve(f"{handle.id}:count", "many")

    assert "count" == await world.result(handle)
    await world.check_replays()


async def test_a_promise_nobody_awaits_does_not_hold_up_the_end(engine):
    @workflow
    async def forgetful(ctx: WorkflowContext) -> str:
        ctx.promise("payment", timeout=3600)
        return "done"

    world = await outside(engine, forgetful)
    handle = await world.start(forgetful)

    assert "done" == await world.result(handle)
    assert await world.engine._local.upkeep.next_due_at(0) is None
    await world.check_replays()


async def test_a_query_knows_the_token_but_can_make_no_promise(engine):
    """The program that answers a query has the same key as the one that runs."""

    @workflow
    class Till:
        def __init__(self) -> None:
            self.token = ""
            self.ctx: WorkflowContext | None = None

        async def run(self, ctx: WorkflowContext) -> None:
            self.ctx = ctx
            paid = ctx.promise("payment")
            self.token = paid.token
            await paid

        @query
        def give(self) -> str:
            return self.token

        @query
        def cheat(self) -> None:
            assert self.ctx is not None
            self.ctx.promise("another")

    world = await outside(engine, Till)
    handle = await world.start(Till)
    await world.waiting(handle, ("promise", "payment"))

    with pytest.raises(QueryNotReadOnly):
        await handle.query("cheat")
    await world.resolve_by_token(await handle.query("give"))
    await world.result(handle)
    token = await handle.query("give")  # of the closed workflow: a program built from its history
    assert token.startswith("ct_")
    await world.check_replays()


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_promises_are_refused_with_a_reason():
    """Bad names and durations, and a name that is taken: refused at the call, catchable, nothing recorded."""
    refused = []

    @workflow
    async def sloppy(ctx: WorkflowContext) -> None:
        for make in (
            lambda: ctx.promise(""),
            lambda: ctx.promise("p", timeout=-1),
            lambda: ctx.promise("p", event_key=""),
            lambda: (ctx.promise("p"), ctx.promise("p")),
        ):
            try:
                make()
            except InvalidRequest as error:
                refused.append(error.details["field"])

    driven = Driven(sloppy)
    turn = driven.start()

    assert ["name", "timeout", "event_key", "name"] == refused
    assert [c.CreatePromise, c.CompleteWorkflow] == [type(command) for command in turn.commands]
    driven.check()


def test_a_name_stays_taken_when_its_promise_is_settled():
    @workflow
    async def again(ctx: WorkflowContext) -> None:
        await ctx.promise("p")
        ctx.promise("p")

    driven = Driven(again)
    driven.start()
    turn = driven.turn(e.PromiseResolved(promise_no=1, name="p"))

    assert isinstance(turn.commands[0], c.FailWorkflow)
    assert "each needs a name of its own" in turn.commands[0].failure.message
    driven.check()


def test_the_timer_of_a_promise_has_a_number_among_the_others():
    @workflow
    async def timed(ctx: WorkflowContext) -> int:
        ctx.sleep(10)
        paid = ctx.promise("p", int, timeout=5)
        ctx.sleep(10)
        return await paid

    driven = Driven(timed)
    turn = driven.start()
    created = turn.commands[1]
    assert isinstance(created, c.CreatePromise)
    assert (2, created.expires_at) == (created.timer_no, 1_000_000 + 5_000_000)
    assert [1, 3] == [command.timer_no for command in turn.commands if isinstance(command, c.StartTimer)]

    done = driven.turn(e.PromiseResolved(promise_no=1, name="p", value=Raw(b"4")))
    assert 4 == result_of(done)
    driven.check()


def test_a_late_settlement_of_a_cancelled_promise_changes_nothing():
    """It may have been recorded before the worker's commit was: the program has moved on."""

    @workflow
    async def picky(ctx: WorkflowContext) -> str:
        won = await ctx.race(ctx.promise("a"), ctx.promise("b"))
        await ctx.wait_for_signal("end")
        return won.item_id

    driven = Driven(picky)
    driven.start()
    turn = driven.turn(
        e.PromiseResolved(promise_no=2, name="b"),
        e.PromiseRejected(promise_no=1, name="a", failure=Failure(type="E", message="m")),
    )
    (taken_back,) = turn.commands
    assert isinstance(taken_back, c.CancelPromise)
    assert "a" == taken_back.name
    done = driven.turn(e.SignalReceived(signal_name="end"))
    assert "execution:b" == result_of(done)
    driven.check()


def test_a_promise_can_be_awaited_by_plain_asyncio():
    @workflow
    async def gathering(ctx: WorkflowContext) -> list[int]:
        return list(await asyncio.gather(ctx.promise("a", int), ctx.promise("b", int)))

    driven = Driven(gathering)
    driven.start()
    driven.turn(e.PromiseResolved(promise_no=2, name="b", value=Raw(b"2")))
    done = driven.turn(e.PromiseResolved(promise_no=1, name="a", value=Raw(b"1")))

    assert [1, 2] == result_of(done)
    driven.check()


# --- tokens and the secret ----------------------------------------------------------------------------------------


def test_a_token_depends_on_everything_it_stands_for():
    """Another secret, org, execution or name gives another token; the same ones give the same."""
    key = execution_key(b"secret", "default", "x1")
    token = promise_token(key, "default", "x1", "p")
    others = {
        promise_token(execution_key(b"other", "default", "x1"), "default", "x1", "p"),
        promise_token(execution_key(b"secret", "acme", "x1"), "acme", "x1", "p"),
        promise_token(execution_key(b"secret", "default", "x2"), "default", "x2", "p"),
        promise_token(key, "default", "x1", "q"),
    }

    assert token not in others
    assert 4 == len(others)
    assert token == promise_token(key, "default", "x1", "p")
    assert token.startswith("ct_")
    assert 3 + 43 == len(token)
    assert "=" not in token


def test_only_the_hash_of_a_token_is_recorded():
    definition = workflow_definition(shop)
    assert definition is not None
    machine = Machine(program_maker(definition, "default", "x1", token_key=lambda _: b"key"))
    machine.feed(e.HistoryEvent(1, 1, e.WorkflowStarted(kind="shop", workflow_id="w")))
    created = machine.turn().commands[0]
    machine.close()

    assert isinstance(created, c.CreatePromise)
    assert created.token_hash == token_hash(promise_token(b"key", "default", "x1", "payment"))
    assert b"ct_" not in e.encode_body(e.PromiseCreated(up_to=1, promise_no=1, name="p", token_hash=created.token_hash))


def test_the_secret_of_a_file_is_kept_next_to_it(tmp_path, monkeypatch):
    """Made once, for the owner's eyes only, the same for every process after that."""
    monkeypatch.delenv("HOLDFAST_SECRET_KEY", raising=False)
    database = tmp_path / "app.db"
    first = secret_key(None, database)

    assert first == secret_key(None, database)
    assert [tmp_path / "app.db.key"] == list(tmp_path.iterdir())
    assert 32 == len(first)
    if os.name == "posix":
        assert 0o600 == stat.S_IMODE((tmp_path / "app.db.key").stat().st_mode)


def test_setting_before_environment_before_file(tmp_path, monkeypatch):
    database = tmp_path / "app.db"
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", "from the environment")

    assert b"from the setting itself" == secret_key("from the setting itself", database)
    assert b"from the environment" == secret_key(None, database)
    assert [] == list(tmp_path.iterdir())


def test_a_database_in_memory_has_a_secret_of_its_own(monkeypatch):
    monkeypatch.delenv("HOLDFAST_SECRET_KEY", raising=False)

    assert secret_key(None, None) != secret_key(None, None)


def test_a_secret_that_is_too_short_is_refused(monkeypatch):
    with pytest.raises(InvalidRequest, match="secret_key must be text of at least 16 characters"):
        secret_key("short", None)
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", "short")
    with pytest.raises(InvalidRequest, match="HOLDFAST_SECRET_KEY"):
        secret_key(None, None)


def test_a_damaged_key_file_is_refused(tmp_path, monkeypatch):
    """A new key in its place would make tokens that nobody accepts: somebody has to decide that."""
    monkeypatch.delenv("HOLDFAST_SECRET_KEY", raising=False)
    (tmp_path / "app.db.key").write_text("abc", "ascii")

    with pytest.raises(InvalidRequest, match="is not a key file"):
        secret_key(None, tmp_path / "app.db")


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such permissions")
def test_a_key_file_that_others_can_read_is_reported(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("HOLDFAST_SECRET_KEY", raising=False)
    secret_key(None, tmp_path / "app.db")
    assert "" == caplog.text
    (tmp_path / "app.db.key").chmod(0o644)

    secret_key(None, tmp_path / "app.db")

    assert "can be read by others" in caplog.text


def test_settings_do_not_show_the_secret():
    assert "guess" not in repr(EngineConfig(secret_key="nobody can guess this"))
