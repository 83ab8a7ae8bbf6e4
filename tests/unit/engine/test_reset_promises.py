"""Reset and fork of an execution that waits for the outside: its promises, tokens, time-outs and subscriptions."""

import asyncio
from typing import Any

import pytest

from holdfast import PromiseState, WorkflowContext, WorkflowStatus, workflow
from holdfast.contract.messages import PublishEvent, ThrowBroadcast
from holdfast.engine.rules.resets import points
from holdfast.errors import ExecutionClosed, PromiseTimeout
from holdfast.model.payloads import encode
from tests.unit.engine.records import check_all

TOKENS: dict[str, str] = {}


def note_token(promise_id: str, token: str) -> None:
    TOKENS[promise_id] = token


@workflow
async def order(ctx: WorkflowContext) -> Any:
    """An early promise that is settled, one that times out if nobody settles it, and an event."""
    first = ctx.promise("first")
    payment = ctx.promise("payment", timeout=1000)
    await ctx.run(note_token, payment.id, payment.token)
    begun = await first
    await ctx.run(note_token, payment.id, payment.token)
    try:
        paid = await payment
    except PromiseTimeout:
        paid = "late"
    shipped = await ctx.promise("shipped", event_key="shipped")
    arrived = await ctx.wait_for_event("arrived", where="input.order == 1")
    await ctx.wait_for_broadcast("closing time")
    return [begun, paid, shipped, arrived["order"]]


@pytest.fixture
async def env(environment):
    TOKENS.clear()
    return await environment(workflows=[order])


async def publish(env, key, data=None):
    request = PublishEvent(org="default", key=key, data=encode(data, field="data"))
    return await env.client.messages.publish(request)


async def begun(env):
    """An execution that waits for its payment."""
    handle = await env.client.start_workflow(order, workflow_id="w")
    await env.idle()
    await env.client.resolve_promise(f"{handle.id}:first", "begun")
    await env.idle()
    return handle


async def finish(env, handle):
    """Give it the rest."""
    await env.client.resolve_promise(f"{handle.id}:payment", "paid")
    await env.idle()
    await publish(env, "shipped", "yes")
    await env.idle()
    await publish(env, "arrived", {"order": 2})
    await publish(env, "arrived", {"order": 1})
    await env.idle()
    await env.client.messages.broadcast(ThrowBroadcast(org="default", name="closing time"))
    return await handle.result()


async def last_point(handle):
    return points(await handle.history())[-1]


async def states(handle):
    return {promise.name: promise.state for promise in await handle.promises()}


async def test_reset_makes_pending_promises_anew(env):
    """The new execution has promises of its own; those of the old one went with it."""
    old = await begun(env)
    new = await old.reset(await last_point(old))
    await env.idle()

    assert {"first": PromiseState.RESOLVED, "payment": PromiseState.PENDING} == await states(new)
    assert [f"{new.id}:first", f"{new.id}:payment"] == [promise.id for promise in await new.promises()]
    settled = await env.client.resolve_promise(f"{new.id}:first", "again")
    assert (True, "begun") == (settled.already_resolved, settled.value)
    assert ["begun", "paid", "yes", 1] == await finish(env, new)


async def test_the_token_is_the_new_executions_own(env):
    """What the program says its token is settles the promise; so does the old one, which others may still hold."""
    old = await begun(env)
    seq = next(event.seq for event in await old.history() if event.type == "PROMISE_RESOLVED")
    new = await old.reset(seq)
    await env.idle()
    token, before = TOKENS[f"{new.id}:payment"], TOKENS[f"{old.id}:payment"]
    settled = await env.client.complete_promise(before, "paid", idempotency_key="once")
    repeated = await env.client.complete_promise(before, "paid", idempotency_key="once")
    late = await env.client.complete_promise(token, "again")

    assert token != before
    assert (f"{new.id}:payment", False) == (settled.promise_id, settled.already_resolved)
    assert (f"{new.id}:payment", False) == (repeated.promise_id, repeated.idempotency_key_new)
    assert (f"{new.id}:payment", True) == (late.promise_id, late.already_resolved)


async def test_a_fork_has_tokens_of_its_own(env):
    """Both are open: each token settles its own promise."""
    old = await begun(env)
    seq = next(event.seq for event in await old.history() if event.type == "PROMISE_RESOLVED")
    new = await old.fork(seq)
    await env.idle()
    for handle in (old, new):
        settled = await env.client.complete_promise(TOKENS[f"{handle.id}:payment"], "paid")
        assert (f"{handle.id}:payment", False) == (settled.promise_id, settled.already_resolved)


async def test_time_outs_run_on(env):
    """The instant stays the same, and it comes once."""
    old = await begun(env)
    await env.advance(seconds=500)
    new = await old.reset(await last_point(old))
    await env.advance(seconds=499)
    before = await states(new)
    await env.advance(seconds=1)

    assert (PromiseState.PENDING, PromiseState.TIMED_OUT) == (before["payment"], (await states(new))["payment"])
    assert 1 == [event.type for event in await new.history()].count("PROMISE_TIMED_OUT")


async def test_what_was_settled_after_the_event_is_given_again(env):
    """As signals are: whoever settled it will not come again. A fork begins without it."""
    old = await begun(env)
    seq = await last_point(old)
    await env.client.resolve_promise(f"{old.id}:payment", "paid", idempotency_key="k")
    await env.idle()
    fork = await old.fork(seq)
    new = await old.reset(seq)
    await env.idle()
    [payment] = [promise for promise in await new.promises() if promise.name == "payment"]

    assert (PromiseState.RESOLVED, "paid", "k") == (payment.state, payment.value, payment.settled_by.idempotency_key)
    assert PromiseState.PENDING == (await states(fork))["payment"]
    assert [] == await new.pending_timers()
    assert "shipped" in await states(new)


async def test_a_reset_without_reapplying_waits_again(env):
    """`reapply_signals=False` leaves out what came from outside, whatever it was."""
    old = await begun(env)
    seq = await last_point(old)
    await env.client.resolve_promise(f"{old.id}:payment", "paid")
    await env.idle()
    new = await old.reset(seq, reapply_signals=False)
    await env.idle()

    assert PromiseState.PENDING == (await states(new))["payment"]
    assert ["begun", "paid", "yes", 1] == await finish(env, new)


async def test_at_every_event_the_result_is_the_same(env):
    """A finished execution, reset to every event where a turn ends: what it was given is given again, as far as it had
    asked for it; the rest is given anew."""
    old = await begun(env)
    result = await finish(env, old)
    history = await old.history()
    assert len(points(history)) > 8

    for seq in points(history):
        new = await old.reset(seq)
        for _ in range(6):
            await env.idle()
            if not (await new.status()).is_open:
                break
            await serve(env, new)
        assert result == await new.result(), seq
        assert [] == await env.client.messages.waits("default", new.id)
    await check_all(env.engine)


async def serve(env, handle):
    """Give it what it waits for."""
    for promise in await handle.promises():
        if promise.state is PromiseState.PENDING:
            value = {"first": "begun", "payment": "paid", "shipped": "yes"}[promise.name]
            await env.client.resolve_promise(promise.id, value)
    for wait in await env.client.messages.waits("default", handle.id):
        if wait.key == "arrived":
            await publish(env, "arrived", {"order": 1})
        elif wait.key == "closing time":
            await env.client.messages.broadcast(ThrowBroadcast(org="default", name="closing time"))


async def test_waits_are_there_again(env):
    """An event, a promise's event key, a broadcast: the old execution's subscriptions go, the new one's count."""
    old = await begun(env)
    await env.client.resolve_promise(f"{old.id}:payment", "paid")
    await env.idle()
    seen = []
    handle = old
    for give in (
        lambda: publish(env, "shipped", "yes"),
        lambda: publish(env, "arrived", {"order": 1}),
        lambda: env.client.messages.broadcast(ThrowBroadcast(org="default", name="closing time")),
    ):
        new = await handle.reset(await last_point(handle))
        await env.idle()
        assert [] == await env.client.messages.waits("default", handle.id)
        seen.append((await give()).delivered)
        await env.idle()
        handle = new

    assert [1, 1, 1] == seen
    assert ["begun", "paid", "yes", 1] == await handle.result()


async def test_a_settlement_that_races_the_reset_is_not_lost(env):
    """It reached the old execution before it was closed, so it reaches the new one; or it is refused."""
    old = await begun(env)
    seq = await last_point(old)
    resetting = asyncio.ensure_future(old.reset(seq))
    try:
        await env.client.resolve_promise(f"{old.id}:payment", "paid")
        expected = PromiseState.RESOLVED
    except ExecutionClosed:
        expected = PromiseState.PENDING
    new = await resetting
    await env.idle()

    assert expected == (await states(new))["payment"]
    assert WorkflowStatus.WAITING == await new.status()


async def test_retry_continues_with_its_promises(env):
    """A terminated execution is tried again: what it waited for, it waits for again."""
    old = await begun(env)
    await old.terminate()
    new = await old.retry()
    await env.idle()

    assert ["begun", "paid", "yes", 1] == await finish(env, new)
