"""Settling promises from outside: by id, by name, by token; once and for ever, whoever is first."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import PromiseState, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.contract.messages import PublishEvent, SettlePromise
from holdfast.errors import (
    ExecutionClosed,
    InvalidDuration,
    InvalidRequest,
    PayloadNotEncodable,
    PromiseNotFound,
    PromiseRejected,
    PromiseTimeout,
    WorkflowFailed,
)
from holdfast.model.payloads import encode
from holdfast.model.tokens import token_hash
from tests.conftest import until
from tests.database_access import contents
from tests.unit.engine.records import check_all

HANDED_OUT: dict[str, tuple[str, str]] = {}


@pytest.fixture(autouse=True)
def nothing_handed_out():
    """These tests run over HTTP, too, in the same process: what one handed out is not the other's."""
    HANDED_OUT.clear()


@task
async def hand_out(name: str, promise_id: str, token: str) -> None:
    """What goes to the external system: a payment's metadata, a link in a mail."""
    HANDED_OUT[name] = (promise_id, token)


@dataclass
class Payment:
    amount: int
    currency: str


@workflow
async def order(ctx: WorkflowContext, number: str) -> object:
    """One promise under the name of the order."""
    payment = ctx.promise("payment", timeout=3600)
    await ctx.task(hand_out, number, payment.id, payment.token)
    try:
        return await payment
    except PromiseTimeout:
        return "late"
    except PromiseRejected as error:
        return f"rejected: {error.error_type}: {error.details['failure'].message}"


@workflow
async def typed(ctx: WorkflowContext) -> int:
    return (await ctx.promise("payment", Payment)).amount


@workflow
async def patient(ctx: WorkflowContext) -> object:
    """Makes its promise when it is told to."""
    await ctx.wait_for_signal("go")
    return await ctx.promise("payment", timeout=60)


@workflow
async def hasty(ctx: WorkflowContext) -> str:
    """Makes its promise and gives it up, both in one turn."""
    await ctx.wait_for_signal("go")
    promise = asyncio.ensure_future(ctx.promise("payment", timeout=60))
    promise.cancel()
    await ctx.run(str, "noted")
    return "given up"


@workflow
async def keyed(ctx: WorkflowContext, number: str) -> object:
    return await ctx.promise("paid", event_key=f"paid:{number}", timeout=3600)


@workflow
async def fickle(ctx: WorkflowContext) -> object:
    """Asks two, and takes the first answer."""
    first = await ctx.race(ctx.promise("a", timeout=500), ctx.promise("b", event_key="b"))
    await ctx.wait_for_signal("end")
    return first.result


@workflow
async def brief(ctx: WorkflowContext) -> str:
    """Ends without waiting for its promise."""
    ctx.promise("payment", timeout=3600)
    await ctx.wait_for_signal("end")
    return "over"


@workflow
async def rounds(ctx: WorkflowContext, number: int) -> object:
    """The same name in every run."""
    answer = await ctx.promise("approval")
    return ctx.continue_as_new(number + 1) if number < 2 else answer


ALL: list[Callable[..., Any]] = [order, typed, patient, hasty, keyed, fickle, brief, rounds]


@pytest.fixture
async def env(environment):
    return await environment(workflows=ALL, tasks=[hand_out])


async def handed_out(env, number):
    """An order that waits for its payment: its handle, and what was handed out."""
    handle = await env.client.start_workflow(order, number, workflow_id=f"order-{number}")
    await env.idle()
    return handle, *HANDED_OUT[number]


async def outcomes(handle):
    return [event.type for event in await handle.history() if event.type.startswith("PROMISE_")][1:]


# --- the ways ---


async def test_the_id_is_known_to_the_workflow_and_settles_the_promise(env):
    """003-01, 003-02, 003-03, 003-06: the id (execution, colon, name) goes out and comes back with the value."""
    handle, promise_id, _ = await handed_out(env, "1")
    settled = await env.client.resolve_promise(promise_id, {"amount": 5})

    assert f"{handle.id}:payment" == promise_id == settled.promise_id
    assert (PromiseState.RESOLVED, False, {"amount": 5}) == (settled.state, settled.already_resolved, settled.value)
    assert {"amount": 5} == await handle.result()


async def test_workflow_id_and_name_settle_the_promise(env):
    """003-01, 003-11: the caller's own key and the promise's name are enough."""
    handle, promise_id, _ = await handed_out(env, "1")
    settled = await env.client.resolve_promise_by_name("order-1", "payment", 5)

    assert promise_id == settled.promise_id
    assert 5 == await handle.result()


async def test_the_execution_id_serves_as_workflow_id(env):
    """A workflow that was started without a key is named by its execution."""
    handle = await env.client.start_workflow(order, "2")
    await env.idle()
    await env.client.resolve_promise_by_name(handle.id, "payment", 5)

    assert 5 == await handle.result()


async def test_the_token_settles_the_promise(env):
    """003-05, 003-10: whoever holds the token, which begins with ct_, needs nothing else."""
    handle, promise_id, token = await handed_out(env, "1")
    settled = await env.client.complete_promise(token, 5, idempotency_key="req_1")

    assert token.startswith("ct_")
    assert promise_id == settled.promise_id
    assert 5 == await handle.result()


async def test_an_event_of_its_key_settles_the_promise(env):
    """003-07, 003-09, 003-12: the key may carry the order's number; the event's number says who settled it."""
    handle = await env.client.start_workflow(keyed, "77")
    other = await env.client.start_workflow(keyed, "78")
    await env.idle()
    published = await env.client.messages.publish(
        PublishEvent(org="default", key="paid:77", data=encode(5, field="data"), request_id="evt_1")
    )
    [promise] = await handle.promises()

    assert 1 == published.delivered
    assert 5 == await handle.result()
    assert ("event", "evt_1", published.event_id) == (
        promise.settled_by.by,
        promise.settled_by.idempotency_key,
        published.event_id,
    )
    assert WorkflowStatus.WAITING == await other.status()


async def test_an_event_comes_too_late_for_a_settled_promise(env):
    """Its subscription goes with it: the event finds nobody."""
    handle = await env.client.start_workflow(keyed, "77")
    await env.idle()
    await env.client.resolve_promise(f"{handle.id}:paid", "by id")
    published = await env.client.messages.publish(PublishEvent(org="default", key="paid:77"))

    assert 0 == published.delivered
    assert "by id" == await handle.result()


async def test_rejecting_raises_in_the_workflow(env):
    """By id, by name, by token: the error's type and text arrive."""
    client = env.client
    by_id, promise_id, _ = await handed_out(env, "1")
    by_name, _, _ = await handed_out(env, "2")
    by_token, _, token = await handed_out(env, "3")
    settled = await client.reject_promise(promise_id, ValueError("no money"))
    await client.reject_promise_by_name("order-2", "payment", "no money")
    await client.complete_promise(token, error=RuntimeError("no money"))

    assert (PromiseState.REJECTED, "ValueError") == (settled.state, settled.error.type)
    assert "rejected: ValueError: no money" == await by_id.result()
    assert "rejected: PromiseRejected: no money" == await by_name.result()
    assert "rejected: RuntimeError: no money" == await by_token.result()


async def test_the_stripe_example(env):
    """003-19, 003-30: the payment's metadata carries the id; the handler's key is the event's, for seven days."""
    handle = await env.client.start_workflow(typed)
    await env.idle()
    metadata = {"promise_id": f"{handle.id}:payment", "workflow_id": handle.id}
    for new in (True, False):
        settled = await env.client.resolve_promise(
            metadata["promise_id"],
            Payment(500, "eur"),
            idempotency_key="stripe:evt_1",
            idempotency_key_ttl=7 * 24 * 3600,
        )
        assert (False, True, new) == (
            settled.already_resolved,
            settled.idempotency_key_used,
            settled.idempotency_key_new,
        )

    assert 500 == await handle.result()


# --- first wins ---


async def test_the_first_settlement_wins_for_ever(env):
    """003-23, 003-24, F2A: later ones, of any kind and by any way, are answered with the winner's value."""
    client = env.client
    handle, promise_id, token = await handed_out(env, "1")
    await client.resolve_promise(promise_id, "first")
    later = [
        await client.resolve_promise(promise_id, "second"),
        await client.reject_promise(promise_id, "third", idempotency_key="k"),
        await client.complete_promise(token, "fourth"),
        await client.resolve_promise_by_name("order-1", "payment", "fifth", allow_early=True),
    ]

    assert "first" == await handle.result()
    assert ["PROMISE_RESOLVED"] == await outcomes(handle)
    later.append(await client.resolve_promise(promise_id, "after the end"))
    for answer in later:
        assert (True, PromiseState.RESOLVED, "first", None) == (
            answer.already_resolved,
            answer.state,
            answer.value,
            answer.error,
        )


async def test_a_rejection_wins_like_any_other(env):
    """The winner's error comes back, and no value."""
    _, promise_id, _ = await handed_out(env, "1")
    await env.client.reject_promise(promise_id, ValueError("first"))
    later = await env.client.resolve_promise(promise_id, 1)

    assert (True, PromiseState.REJECTED, None) == (later.already_resolved, later.state, later.value)
    assert ("ValueError", "first") == (later.error.type, later.error.message)


@pytest.mark.parametrize("keys", ["none", "same", "own"])
async def test_fifty_at_once_are_one_settlement(env, keys):
    """003-08, 003-20, 003-21, F59: one event in the history; with the same key, one answer for all."""
    handle, promise_id, _ = await handed_out(env, "1")
    chosen = {"none": lambda _: None, "same": lambda _: "k", "own": lambda number: f"k{number}"}[keys]
    answers = await asyncio.gather(
        *(
            env.client.resolve_promise(promise_id, "x" if keys == "same" else number, idempotency_key=chosen(number))
            for number in range(50)
        )
    )

    assert ["PROMISE_RESOLVED"] == await outcomes(handle)
    assert 1 == len({str(answer.value) for answer in answers})
    assert (0 if keys == "same" else 49) == sum(answer.already_resolved for answer in answers)
    new = sum(answer.idempotency_key_new for answer in answers)
    assert {"none": 0, "same": 1, "own": 50}[keys] == new


async def test_resolved_before_its_time_is_over(env):
    """The timer goes with it: nothing happens when its time comes."""
    handle, promise_id, _ = await handed_out(env, "1")
    await env.advance(seconds=3599)
    await env.client.resolve_promise(promise_id, "in time")
    await env.advance(seconds=10)

    assert "in time" == await handle.result()
    assert ["PROMISE_RESOLVED"] == await outcomes(handle)


async def test_resolved_after_its_time_was_over(env):
    """The time-out was first: that is the answer, for ever."""
    handle, promise_id, _ = await handed_out(env, "1")
    await env.advance(seconds=3600)
    settled = await env.client.resolve_promise(promise_id, "too late")

    assert (True, PromiseState.TIMED_OUT, None) == (settled.already_resolved, settled.state, settled.value)
    assert "late" == await handle.result()
    assert ["PROMISE_TIMED_OUT"] == await outcomes(handle)


@pytest.mark.parametrize("first", ["settlement", "time-out"])
async def test_a_settlement_and_the_time_out_in_one_transaction(env, first):
    """F2A: whichever is decided first counts, in either order, and the other changes nothing."""
    handle, promise_id, _ = await handed_out(env, "1")
    env._time.move_to(env._time() + 3600 * 1_000_000)
    request = SettlePromise(org="default", promise_id=promise_id, value=encode("just now", field="value"))
    # Both are put into the queue before the first is decided.
    calls = [lambda: env.client.messages.settle(request), env.engine._local.upkeep.run_due]
    if first == "time-out":
        calls.reverse()
    answers = await asyncio.gather(*(call() for call in calls))
    settled = answers[0 if first == "settlement" else 1]
    expected = ("just now", "PROMISE_RESOLVED") if first == "settlement" else ("late", "PROMISE_TIMED_OUT")

    assert (first == "time-out") == settled.already_resolved
    assert expected[0] == await handle.result()
    assert [expected[1]] == await outcomes(handle)


async def test_a_promise_that_lost_a_race_is_cancelled(env):
    """Nobody waits for it any more: who settles it is told so, and no timer or subscription is left."""
    handle = await env.client.start_workflow(fickle)
    await env.idle()
    await env.client.resolve_promise(f"{handle.id}:b", "b wins")
    await env.idle()
    settled = await env.client.resolve_promise(f"{handle.id}:a", 1)

    assert (True, PromiseState.CANCELLED) == (settled.already_resolved, settled.state)
    assert [] == await handle.pending_timers()
    assert [] == await env.client.messages.waits("default", handle.id)
    await handle.signal("end")
    assert "b wins" == await handle.result()


# --- what is not there, or no longer ---


async def test_what_does_not_exist_is_not_found(env):
    """By each way: PromiseNotFound, and nothing is left behind."""
    handle, promise_id, token = await handed_out(env, "1")
    calls = [
        lambda: env.client.resolve_promise(f"{handle.id}:other", 1),
        lambda: env.client.resolve_promise("nobody:payment", 1, allow_early=True),
        lambda: env.client.resolve_promise_by_name("order-1", "other", 1),
        lambda: env.client.resolve_promise_by_name("order-99", "payment", 1, allow_early=True),
        lambda: env.client.complete_promise(token[:-1], 1),
        lambda: env.client.complete_promise("ct_", 1),
    ]
    for call in calls:
        with pytest.raises(PromiseNotFound) as refused:
            await call()
        assert "promise_not_found" == refused.value.code

    assert [promise_id] == [promise.id for promise in await handle.promises()]


async def test_another_org_learns_nothing(engine):
    """A token, id or name of another org is answered exactly like one that does not exist."""
    blue = (await engine(workflows=ALL, tasks=[hand_out], org="blue")).client
    red = (await engine(workflows=ALL, tasks=[hand_out], org="red")).client
    handle = await blue.start_workflow(order, "blue", workflow_id="w")
    await until(lambda: "blue" in HANDED_OUT)
    promise_id, token = HANDED_OUT["blue"]
    with pytest.raises(PromiseNotFound) as foreign:
        await red.complete_promise(token, 1)
    with pytest.raises(PromiseNotFound) as unknown:
        await red.complete_promise("ct_nobody", 1)
    with pytest.raises(PromiseNotFound):
        await red.resolve_promise(promise_id, 1, allow_early=True)
    with pytest.raises(PromiseNotFound):
        await red.resolve_promise_by_name("w", "payment", 1, allow_early=True)

    assert str(unknown.value) == str(foreign.value)
    assert unknown.value.details == foreign.value.details
    assert [] == await red.workflow(handle.id).promises()
    assert not (await blue.complete_promise(token, 1)).already_resolved


async def test_a_token_is_never_stored_or_logged(engine, database_url, caplog):
    """Only its hash is in the database; no log line has it, whether it is right or wrong."""
    caplog.set_level(logging.DEBUG)
    opened = await engine(workflows=[secretive])
    handle = await opened.client.start_workflow(secretive, "s")
    await until(lambda: "s" in HANDED_OUT)
    _, token = HANDED_OUT["s"]
    with pytest.raises(PromiseNotFound) as refused:
        await opened.client.complete_promise(f"{token}x", 1)
    await opened.client.complete_promise(token, 1, idempotency_key="k")
    await handle.result(timeout=10)
    await opened.shutdown()
    stored = contents(database_url)

    assert token_hash(token).encode() in stored
    assert token.encode() not in stored
    assert token not in caplog.text
    assert token not in str(refused.value)


@workflow
async def secretive(ctx: WorkflowContext, number: str) -> object:
    """A token that is handed out by a step never meets the database."""
    promise = ctx.promise("payment")
    await ctx.run(quiet_hand_out, number, promise.id, promise.token)
    return await promise


async def quiet_hand_out(name: str, promise_id: str, token: str) -> None:
    HANDED_OUT[name] = (promise_id, token)


async def test_an_unsettled_promise_of_a_closed_execution(env):
    """ExecutionClosed, by each way, early or not; and nothing has changed."""
    handle = await env.client.start_workflow(brief, workflow_id="w")
    await handle.signal("end")
    await handle.result()
    for call in (
        lambda: env.client.resolve_promise(f"{handle.id}:payment", 1),
        lambda: env.client.resolve_promise_by_name("w", "payment", 1),
        lambda: env.client.resolve_promise(f"{handle.id}:never-made", 1, allow_early=True),
    ):
        with pytest.raises(ExecutionClosed) as refused:
            await call()
        assert "COMPLETED" == refused.value.details["status"]
    [promise] = await handle.promises()

    assert PromiseState.PENDING == promise.state


async def test_promises_do_not_move_to_the_next_run(env):
    """A promise id names one run; by name it is that of the open run."""
    handle = await env.client.start_workflow(rounds, 1, workflow_id="w")
    await env.idle()
    await env.client.resolve_promise(f"{handle.id}:approval", "one")
    await env.idle()
    again = await env.client.resolve_promise(f"{handle.id}:approval", "one again")
    second = await env.client.resolve_promise_by_name("w", "approval", "two")

    assert (True, "one") == (again.already_resolved, again.value)
    assert (False, False) == (second.already_resolved, second.promise_id.startswith(handle.id))
    assert "two" == await handle.result()


# --- early ---


@pytest.mark.parametrize("way", ["id", "name"])
async def test_an_early_settlement_is_kept_if_asked_for(env, way):
    """F2B: refused without `allow_early`; with it, the workflow gets the value as soon as it makes the promise."""
    client = env.client
    handle = await client.start_workflow(patient, workflow_id="w")

    async def settle(value, **options):
        if way == "id":
            return await client.resolve_promise(f"{handle.id}:payment", value, **options)
        return await client.resolve_promise_by_name("w", "payment", value, **options)

    with pytest.raises(PromiseNotFound, match="allow_early"):
        await settle(1)
    early = await settle(2, allow_early=True)
    later = await settle(3, allow_early=True)
    latest = await settle(4)
    await handle.signal("go")

    assert (False, 2) == (early.already_resolved, early.value)
    assert [(True, 2)] * 2 == [(answer.already_resolved, answer.value) for answer in (later, latest)]
    assert 2 == await handle.result()
    assert (True, 2) == ((again := await settle(5)).already_resolved, again.value)
    assert [] == await handle.pending_timers()


async def test_an_early_rejection_is_kept_as_well(env):
    handle = await env.client.start_workflow(patient)
    await env.client.reject_promise(f"{handle.id}:payment", ValueError("no"), allow_early=True)
    await handle.signal("go")

    with pytest.raises(WorkflowFailed, match="ValueError: no"):
        await handle.result()


async def test_a_promise_given_up_by_the_turn_that_makes_it_is_not_told_of_its_early_settlement(env):
    """Its workflow does not want it any more. Whoever settled it was told that it counts, and that stays so."""
    handle = await env.client.start_workflow(hasty)
    await env.client.resolve_promise(f"{handle.id}:payment", 1, allow_early=True)
    await handle.signal("go")

    assert "given up" == await handle.result()
    types = [event.type for event in await handle.history()]
    assert "PROMISE_CANCELLED" in types
    assert "PROMISE_RESOLVED" not in types
    assert [("RESOLVED", 1)] == [(str(row.state), row.value) for row in await handle.promises()]
    again = await env.client.resolve_promise(f"{handle.id}:payment", 2)
    assert (True, 1) == (again.already_resolved, again.value)


@pytest.mark.parametrize("cleaned", [False, True])
async def test_an_early_settlement_has_its_time(env, cleaned):
    """After its time to live it is as if it had never been, whether or not it has been cleaned up."""
    handle = await env.client.start_workflow(patient)
    await env.idle()
    await env.client.resolve_promise(f"{handle.id}:payment", 1, allow_early=True, idempotency_key_ttl=10)
    await env.advance(seconds=10)
    if cleaned:
        await env.engine._local.upkeep.prune()
        assert [] == await handle.promises()
    second = await env.client.resolve_promise(f"{handle.id}:payment", 2, allow_early=True)
    await env.advance(hours=24)
    await handle.signal("go")
    await env.idle()
    third = await env.client.resolve_promise(f"{handle.id}:payment", 3)

    assert [False, False] == [second.already_resolved, third.already_resolved]
    assert 3 == await handle.result()


# --- what others see ---


async def test_which_event_settled_which_promise_can_be_seen(env):
    """003-28: the way, the caller's key; in the list of promises and in the history."""
    client = env.client
    handle, promise_id, token = await handed_out(env, "1")
    [before] = await handle.promises()
    await client.complete_promise(token, {"amount": 5}, idempotency_key="stripe:evt_1")
    [after] = await handle.promises()
    [event] = [event for event in await handle.history() if event.type == "PROMISE_RESOLVED"]

    assert (promise_id, "payment", PromiseState.PENDING, None) == (
        before.id,
        before.name,
        before.state,
        before.settled_by,
    )
    assert (PromiseState.RESOLVED, {"amount": 5}, env.now()) == (after.state, after.value, after.settled_at)
    for settled_by in (after.settled_by, event.body.settled_by):
        assert ("token", "stripe:evt_1") == (settled_by.by, settled_by.idempotency_key)


# --- refused at the door ---


async def test_bad_input_names_its_field_and_changes_nothing(env):
    """Not one of them touches the promise."""
    handle, promise_id, token = await handed_out(env, "1")
    client, messages = env.client, env.client.messages
    calls = [
        ("promise_id", InvalidRequest, lambda: client.resolve_promise("no-colon", 1)),
        ("promise_id", InvalidRequest, lambda: client.resolve_promise("", 1)),
        ("promise_id", InvalidRequest, lambda: client.resolve_promise(":payment", 1)),
        ("promise_id", InvalidRequest, lambda: client.resolve_promise(f"{handle.id}:", 1)),
        ("promise_id", InvalidRequest, lambda: client.resolve_promise(7, 1)),
        ("workflow_id", InvalidRequest, lambda: client.resolve_promise_by_name("", "payment", 1)),
        ("name", InvalidRequest, lambda: client.resolve_promise_by_name("order-1", "", 1)),
        ("name", InvalidRequest, lambda: client.resolve_promise_by_name("order-1", "n" * 300, 1)),
        ("token", InvalidRequest, lambda: client.complete_promise(None, 1)),
        ("error", InvalidRequest, lambda: client.complete_promise(token, 1, error="both")),
        ("error", InvalidRequest, lambda: client.reject_promise(promise_id, 7)),
        ("value", PayloadNotEncodable, lambda: client.resolve_promise(promise_id, object())),
        ("idempotency_key", InvalidRequest, lambda: client.resolve_promise(promise_id, 1, idempotency_key="")),
        (
            "idempotency_key_ttl",
            InvalidDuration,
            lambda: client.resolve_promise(promise_id, 1, idempotency_key="k", idempotency_key_ttl=0),
        ),
        ("promise_id", InvalidRequest, lambda: messages.settle(SettlePromise(org="default"))),
        (
            "promise_id",
            InvalidRequest,
            lambda: messages.settle(SettlePromise(org="default", promise_id=promise_id, token_hash="x")),
        ),
        (
            "idempotency_key_ttl",
            InvalidDuration,
            lambda: messages.settle(SettlePromise(org="default", promise_id=promise_id, ttl_s=-1.0)),
        ),
    ]
    for field, kind, call in calls:
        with pytest.raises(kind) as refused:
            await call()
        assert field == refused.value.field

    assert [] == await outcomes(handle)


async def test_blocking_callers_settle_the_same_way(engine):
    """The blocking face has the same methods and answers."""
    opened = await engine(workflows=ALL, tasks=[hand_out])
    handle = await opened.client.start_workflow(order, "sync", workflow_id="w")
    await until(lambda: "sync" in HANDED_OUT)
    client, (promise_id, token) = opened.client.sync, HANDED_OUT["sync"]
    first = await asyncio.to_thread(client.resolve_promise, promise_id, 1)
    second = await asyncio.to_thread(client.complete_promise, token, 2)
    seen = await asyncio.to_thread(client.workflow(handle.id).promises)

    assert (False, True, 1) == (first.already_resolved, second.already_resolved, second.value)
    assert [PromiseState.RESOLVED] == [promise.state for promise in seen]


CALLBACKS: dict[str, Callable[[str], Any]] = {}


async def call_back(promise_id: str) -> None:
    """An outside system that answers before the call that told it has returned."""
    await CALLBACKS["outside"](promise_id)


@workflow
async def impatient(ctx: WorkflowContext) -> object:
    promise = ctx.promise("payment")
    await ctx.run(call_back, promise.id)
    return await promise


async def test_whoever_is_told_of_a_promise_finds_it(engine):
    """F2B: the promise is committed before a step of the same turn runs, so that another process can settle it."""
    client = (await engine(workflows=[impatient])).client
    outside = (await engine()).client
    CALLBACKS["outside"] = lambda promise_id: outside.resolve_promise(promise_id, "at once")
    handles = [await client.start_workflow(impatient) for _ in range(30)]

    assert ["at once"] * 30 == [await handle.result(timeout=10) for handle in handles]
    for handle in handles:
        assert "STEP_FAILED" not in [event.type for event in await handle.history()]


async def test_two_processes_settle_one_promise(engine):
    """003-29: two engines on one file; one of them wins, and the workflow in the other goes on."""
    engines = [await engine(workflows=ALL, tasks=[hand_out]), await engine()]
    handle = await engines[0].client.start_workflow(order, "two")
    await until(lambda: "two" in HANDED_OUT)
    promise_id, _ = HANDED_OUT["two"]
    answers = await asyncio.gather(
        *(engines[number % 2].client.resolve_promise(promise_id, number) for number in range(10))
    )

    assert 1 == sum(not answer.already_resolved for answer in answers)
    assert {await handle.result(timeout=10)} == {answer.value for answer in answers}
    assert ["PROMISE_RESOLVED"] == await outcomes(handle)
    await check_all(engines[0])


async def test_settled_promises_survive_a_restart(engine):
    """The row is the truth: another engine on the file answers with the first one's winner."""
    old = await engine(workflows=ALL, tasks=[hand_out])
    handle = await old.client.start_workflow(order, "restart")
    await until(lambda: "restart" in HANDED_OUT)
    promise_id, token = HANDED_OUT["restart"]
    await old.shutdown()
    first = await engine(workflows=ALL, tasks=[hand_out])
    await first.client.complete_promise(token, 1)
    await first.client.workflow(handle.id).result(timeout=10)
    await first.shutdown()
    client = (await engine()).client
    again = await client.resolve_promise(promise_id, 2)

    assert (True, 1) == (again.already_resolved, again.value)
    assert 1 == await client.workflow(handle.id).result(timeout=10)
