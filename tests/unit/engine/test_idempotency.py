"""Idempotency keys: one table and one rule for starts, tasks, promises and events."""

import asyncio
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from holdfast import Status, TaskContext, WorkflowContext, task, workflow
from holdfast.contract.executions import SignalWithStart, StartWorkflow
from holdfast.contract.messages import PublishEvent, ResolvePromise, SendMessage, ThrowBroadcast
from holdfast.engine.idempotency import fingerprint_of
from holdfast.engine.messages.broadcast import Broadcast
from holdfast.engine.messages.publish import Publish, Send
from holdfast.engine.operation import Operation
from holdfast.engine.promises.settle import Settle, SettlePromise
from holdfast.errors import (
    InvalidDuration,
    InvalidRequest,
    PromiseNotFound,
    RequestMismatch,
    StaleAttempt,
    WorkflowFailed,
)
from holdfast.model.executions import RequestRow
from holdfast.model.payloads import encode
from holdfast.store.protocol import LoadPlan

DAY = 24
TOKENS: list[str] = []


@workflow
async def order(ctx: WorkflowContext, number: object = None) -> object:
    return await ctx.promise("payment")


@workflow
async def twice(ctx: WorkflowContext) -> object:
    first = await ctx.promise("first")
    return [first, await ctx.promise("second")]


@task
async def outsourced(ctx: TaskContext) -> Any:
    TOKENS.append(ctx.complete_later())


@workflow
async def outsourcing(ctx: WorkflowContext) -> object:
    return await ctx.task(outsourced)


@workflow
async def failing(ctx: WorkflowContext) -> None:
    raise ValueError("it failed")


@workflow
async def relay(ctx: WorkflowContext, run: int = 1) -> object:
    first = await ctx.wait_for_signal("baton")
    return ctx.continue_as_new(2) if run == 1 else [first, await ctx.wait_for_signal("baton")]


ALL = [order, twice, outsourcing, failing, relay]


@pytest.fixture
async def env(environment):
    TOKENS.clear()
    return await environment(workflows=ALL, tasks=[outsourced])


def resolve(env, handle, value, name="payment", **options):
    return env.client.resolve_promise(f"{handle.id}:{name}", value, **options)


async def settlements(handle):
    return [event.type for event in await handle.history() if event.type == "PROMISE_RESOLVED"]


async def stored(env, key, org="default"):
    """The row of a key, read as the engine does."""
    from holdfast.engine.operation import Operation

    class Look(Operation[None, object]):
        def plan(self, plan: LoadPlan) -> None:
            plan.want(RequestRow, (org, key))

        def decide(self, ws):
            return ws.get(RequestRow, (org, key))

    return await env.engine._local.queue.submit(Look(None))


# --- repeats ---


async def test_a_repeat_gets_the_first_answer_byte_for_byte(env):
    """003-08, 003-18, 003-21: only `idempotency_key_new` tells the two apart."""
    handle = await env.client.start_workflow(order)
    await env.idle()
    value = encode({"z": 1, "a": [1.5, "ä"]}, field="value")
    request = ResolvePromise(org="default", promise_id=f"{handle.id}:payment", value=value, request_id="k")
    first = await env.client.api.call(request)
    again = await env.client.api.call(request)

    assert (True, True) == (first.idempotency_key_used, first.idempotency_key_new)
    assert (True, False) == (again.idempotency_key_used, again.idempotency_key_new)
    assert msgspec.json.encode(first) == msgspec.json.encode(msgspec.structs.replace(again, idempotency_key_new=True))
    assert bytes(value) == msgspec.json.encode(again.value)


async def test_without_a_key_no_key_is_told_of(env):
    """003-17, 003-18: the key is optional."""
    handle = await env.client.start_workflow(order)
    await env.idle()
    settled = await resolve(env, handle, 1)

    assert (False, False) == (settled.idempotency_key_used, settled.idempotency_key_new)
    assert (False, False) == (handle.idempotency_key_used, handle.idempotency_key_new)


async def test_correlation_and_idempotency_are_two_things(env):
    """003-04, 003-23: two keys for one promise are two requests, and the second one is told who was first; one key for
    two promises is refused."""
    handle = await env.client.start_workflow(twice)
    await env.idle()
    first = await resolve(env, handle, 1, "first", idempotency_key="k1")
    other_key = await resolve(env, handle, 2, "first", idempotency_key="k2")
    await env.idle()
    with pytest.raises(RequestMismatch):
        await resolve(env, handle, 1, "second", idempotency_key="k1")

    assert [(False, True), (True, True)] == [
        (answer.already_resolved, answer.idempotency_key_new) for answer in (first, other_key)
    ]
    assert 1 == other_key.value
    assert Status.WAITING == await handle.status()


async def test_the_loser_of_two_keys_repeats_its_own_answer(env):
    """What was answered with `already_resolved` is answered so again, also when the promise's key is forgotten."""
    handle = await env.client.start_workflow(order)
    await env.idle()
    await resolve(env, handle, 1, idempotency_key="first", idempotency_key_ttl=1)
    lost = await resolve(env, handle, 2, idempotency_key="second")
    await env.advance(hours=1)
    again = await resolve(env, handle, 2, idempotency_key="second")

    assert (True, 1, True) == (lost.already_resolved, lost.value, lost.idempotency_key_new)
    assert (True, 1, False) == (again.already_resolved, again.value, again.idempotency_key_new)


@pytest.mark.parametrize("call", ["start", "signal_with_start", "settle", "task", "publish"])
async def test_every_operation_has_the_same_two_fields(env, call):
    """003-27: starts, signal-with-starts, promises, tasks and events answer alike."""
    client = env.client
    target = await client.start_workflow(order)
    await client.start_workflow(outsourcing)
    await env.idle()

    async def made():
        match call:
            case "start":
                return await client.start_workflow(order, 1, idempotency_key="k")
            case "signal_with_start":
                return await client.signal_with_start_workflow("w", order, signal_name="s", idempotency_key="k")
            case "settle":
                return await resolve(env, target, 1, idempotency_key="k")
            case "task":
                return await client.complete_promise(TOKENS[0], 1, idempotency_key="k")
        return await client.api.call(PublishEvent(org="default", key="e", request_id="k"))

    answers = [await made(), await made()]

    assert [(True, True), (True, False)] == [
        (answer.idempotency_key_used, answer.idempotency_key_new) for answer in answers
    ]
    assert (await stored(env, "k")) is not None


async def test_request_id_and_idempotency_key_are_one(env):
    """H23: two names; giving both with other values is refused."""
    first = await env.client.start_workflow(order, 1, request_id="k")
    again = await env.client.start_workflow(order, 1, idempotency_key="k")
    both = await env.client.start_workflow(order, 1, idempotency_key="k", request_id="k")
    with pytest.raises(InvalidRequest) as refused:
        await env.client.start_workflow(order, 1, idempotency_key="k", request_id="r")

    assert {first.id} == {again.id, both.id}
    assert "idempotency_key" == refused.value.field


async def test_fifty_starts_at_once_are_one(env):
    """003-20, 003-29, F59: they meet in one transaction or wait for each other; one of them is new."""
    handles = await asyncio.gather(*(env.client.start_workflow(order, 1, idempotency_key="k") for _ in range(50)))

    assert 1 == len({handle.id for handle in handles})
    assert 1 == sum(handle.idempotency_key_new for handle in handles)
    assert 1 == len((await env.client.list_workflows()).items)


async def test_two_processes_with_one_key_are_one(engine):
    """003-20, 003-22, H21, F62: two engines on one file. Nobody sees a key that is claimed and not yet used."""
    clients = [(await engine(workflows=ALL)).client for _ in range(2)]
    handles = await asyncio.gather(
        *(clients[number % 2].start_workflow(order, 1, idempotency_key="k") for number in range(20))
    )

    assert 1 == len({handle.id for handle in handles})
    assert 1 == sum(handle.idempotency_key_new for handle in handles)


async def test_a_repeated_signal_that_was_passed_on_is_one(env):
    """Sent to a run that goes on in another: the repeat names the first run again, and is the same signal."""
    handle = await env.client.start_workflow(relay)
    await handle.signal("baton", "first")
    await env.idle()
    sent = await handle.signal("baton", "second", request_id="k")
    again = await handle.signal("baton", "second", request_id="k")
    await handle.signal("baton", "third")

    assert sent == again
    assert ["second", "third"] == await handle.result()


# --- other content ---


async def test_same_key_other_content_is_refused(env):
    """F63: with a code of its own; nothing has changed, and the key still stands for the first request."""
    handle = await env.client.start_workflow(twice)
    await env.idle()
    await resolve(env, handle, 1, "first", idempotency_key="k")
    calls = [
        lambda: resolve(env, handle, 2, "first", idempotency_key="k"),
        lambda: env.client.reject_promise(f"{handle.id}:first", "no", idempotency_key="k"),
        lambda: env.client.resolve_promise_by_name(handle.id, "first", 1, idempotency_key="k"),
        lambda: env.client.start_workflow(order, idempotency_key="k"),
        lambda: env.client.api.call(PublishEvent(org="default", key="e", request_id="k")),
        lambda: handle.signal("s", request_id="k"),
    ]
    for call in calls:
        with pytest.raises(RequestMismatch, match="'k'") as refused:
            await call()
        assert "request_mismatch" == refused.value.code

    assert 1 == len((await env.client.list_workflows()).items)
    assert not (await resolve(env, handle, 1, "first", idempotency_key="k")).idempotency_key_new


def test_the_fingerprint_is_of_the_content():
    """The order of keys in a payload and in metadata does not count, nor do the key itself and its time to live."""
    one = StartWorkflow(
        org="o", kind="k", input=msgspec.Raw(b'{"a":1,"b":[2,1]}'), metadata={"x": "1", "y": "2"}, request_id="r"
    )
    same = StartWorkflow(
        org="o",
        kind="k",
        input=msgspec.Raw(b'{ "b": [2, 1], "a": 1 }'),
        metadata={"y": "2", "x": "1"},
        request_id="s",
        ttl_s=5.0,
    )
    others = [
        StartWorkflow(org="o", kind="k", input=msgspec.Raw(b'{"a":1,"b":[1,2]}'), metadata=one.metadata),
        StartWorkflow(org="o", kind="k", input=one.input),
        SignalWithStart(org="o", kind="k", workflow_id="w", signal_name="s", input=one.input, metadata=one.metadata),
    ]

    assert fingerprint_of(one) == fingerprint_of(same)
    assert 4 == len({fingerprint_of(request) for request in [one, *others]})


def test_a_new_field_does_not_change_old_fingerprints():
    """What has its default is not part of it: a retry across an upgrade is still the same request."""

    class Before(msgspec.Struct, kw_only=True):
        name: str

    class After(msgspec.Struct, kw_only=True):
        name: str
        added: int = 0

    After.__name__ = "Before"

    assert fingerprint_of(Before(name="n")) == fingerprint_of(After(name="n"))
    assert fingerprint_of(Before(name="n")) != fingerprint_of(After(name="n", added=1))


def test_keys_stored_by_an_earlier_version_still_stand_for_the_same_requests():
    """Their fingerprints are in databases. What became several requests is still one to them."""
    event = PublishEvent(org="o", key="k", data=msgspec.Raw(b'{"a":1}'), consume=True, expire_after_s=5.0)
    message = SendMessage(org="o", key="k", correlation="c", data=msgspec.Raw(b"1"))
    settlement = SettlePromise(org="o", promise_id="e:p", value=msgspec.Raw(b"1"), request_id="r", allow_early=True)
    operations: list[Operation[Any, Any]] = [
        Publish(event),
        Publish(PublishEvent(org="o", key="k", request_id="r")),
        Send(message),
        Broadcast(ThrowBroadcast(org="o", name="n")),
        Settle(settlement),
    ]

    assert [
        "5da6fdeced21b6c94c65f6db4eb24c35dbb15c3ef537f235f195e5ec48bc6e05",
        "6b748b65ae55f8773605d8f260d33071c037bbba9de182d591c394758fb61661",
        "f818433239f1df0d9591048ca9be1d38505ed5721e53b9e1f9504bc5d18ecf7c",
        "8fead2ae9b0bc0ce33bcfe9f5ee35e9521ecf3d69044c7004b041861823fd78a",
        "7992e0a11df15ca7b88cae9d7c6a52561097d0d0ff0268824f446ab6b4303886",
    ] == [fingerprint_of(operation.request, operation.KNOWN_AS) for operation in operations]


# --- refused requests ---


async def test_a_refused_request_leaves_its_key_free(env):
    """003-22, F64: nothing was committed, so the same key may be used again, even for something else."""
    handle = await env.client.start_workflow(twice)
    await env.idle()
    with pytest.raises(PromiseNotFound):
        await resolve(env, handle, 1, "second", idempotency_key="k")
    assert await stored(env, "k") is None
    await resolve(env, handle, 1, "first")
    await env.idle()
    settled = await resolve(env, handle, 2, "second", idempotency_key="k")

    assert settled.idempotency_key_new
    assert [1, 2] == await handle.result()


async def test_a_failed_execution_keeps_its_key(env):
    """F64: the start had its effect; a retry must not have it twice."""
    handle = await env.client.start_workflow(failing, idempotency_key="k")
    with pytest.raises(WorkflowFailed):
        await handle.result()
    again = await env.client.start_workflow(failing, idempotency_key="k")

    assert (handle.id, False) == (again.id, again.idempotency_key_new)


async def test_a_stale_completion_leaves_its_key_free(env):
    """An attempt that is over: refused, and not remembered."""
    handle = await env.client.start_workflow(outsourcing)
    await env.idle()
    await env.client.complete_promise(TOKENS[0], 1)
    with pytest.raises(StaleAttempt):
        await env.client.complete_promise(TOKENS[0], 1, idempotency_key="k")

    assert await stored(env, "k") is None
    assert 1 == await handle.result()


# --- their time ---


async def test_a_key_of_a_promise_counts_for_a_day(env):
    """003-17, 003-26, H22: 24 hours if nothing is said. Then the key is forgotten, and the promise is as it was."""
    handle = await env.client.start_workflow(order)
    await env.idle()
    await resolve(env, handle, 1, idempotency_key="k")
    await env.advance(hours=DAY, seconds=-1)
    within = await resolve(env, handle, 1, idempotency_key="k")
    await env.advance(seconds=1)
    beyond = await resolve(env, handle, 2, idempotency_key="k")

    assert (False, False) == (within.already_resolved, within.idempotency_key_new)
    assert (True, 1, True) == (beyond.already_resolved, beyond.value, beyond.idempotency_key_new)
    assert ["PROMISE_RESOLVED"] == await settlements(handle)


async def test_the_caller_may_say_how_long_a_key_counts(env):
    """003-26, 003-30: seven days for one, a second for another; the time itself is not part of the request."""
    first = await env.client.start_workflow(order)
    second = await env.client.start_workflow(order)
    await env.idle()
    await resolve(env, first, 1, idempotency_key="long", idempotency_key_ttl=7 * 24 * 3600)
    await resolve(env, second, 1, idempotency_key="short", idempotency_key_ttl=1)
    await env.advance(hours=6 * DAY)

    assert not (await resolve(env, first, 1, idempotency_key="long")).idempotency_key_new
    assert (await resolve(env, second, 1, idempotency_key="short")).idempotency_key_new


async def test_a_key_of_a_start_counts_while_its_execution_is_open(env):
    """F62: the time runs from completion, never from the start."""
    handle = await env.client.start_workflow(order, 1, idempotency_key="k", idempotency_key_ttl=3600)
    await env.advance(hours=100)
    await env.engine._local.upkeep.forget()
    while_open = await env.client.start_workflow(order, 1, idempotency_key="k")
    await resolve(env, handle, 1)
    await handle.result()
    await env.advance(seconds=3599)
    await env.engine._local.upkeep.forget()
    soon_after = await env.client.start_workflow(order, 1, idempotency_key="k")
    await env.advance(seconds=1)
    later = await env.client.start_workflow(order, 1, idempotency_key="k")

    assert [handle.id, handle.id] == [while_open.id, soon_after.id]
    assert [False, False, True] == [start.idempotency_key_new for start in (while_open, soon_after, later)]
    assert handle.id != later.id


async def test_a_key_of_a_signal_with_start_counts_as_long(env):
    """It may have started the execution."""
    client = env.client

    def call():
        return client.signal_with_start_workflow("w", order, signal_name="s", idempotency_key="k")

    first = await call()
    await env.advance(hours=100)
    again = await call()

    assert first == msgspec.structs.replace(again, idempotency_key_new=True)
    assert 1 == (await client.workflow(first.workflow_execution_id).describe()).signal_count


async def test_a_time_to_live_must_be_one(env):
    """Zero, negative, beyond ten years: refused, by the field's name."""
    handle = await env.client.start_workflow(order)
    await env.idle()
    for ttl in (0, -1, float("nan"), 11 * 366 * 86_400):
        for call in (
            lambda ttl=ttl: resolve(env, handle, 1, idempotency_key="k", idempotency_key_ttl=ttl),
            lambda ttl=ttl: env.client.start_workflow(order, idempotency_key="k", idempotency_key_ttl=ttl),
        ):
            with pytest.raises(InvalidDuration) as refused:
                await call()
            assert "idempotency_key_ttl" == refused.value.field

    assert [] == await settlements(handle)


# --- clean-up ---


async def test_expired_keys_are_cleaned_up_by_themselves(env):
    """The housekeeping removes the rows of keys that no longer count, and no others."""
    handle = await env.client.start_workflow(order, idempotency_key="started")
    await env.idle()
    await resolve(env, handle, 1, idempotency_key="settled")
    running = await env.client.start_workflow(order, idempotency_key="running")
    await handle.result()
    await env.advance(hours=DAY - 1)
    before = [await stored(env, key) is not None for key in ("started", "settled", "running")]
    await env.advance(hours=2)
    after = [await stored(env, key) is not None for key in ("started", "settled", "running")]

    assert [True, True, True] == before
    assert [False, False, True] == after
    assert Status.WAITING == await running.status()


async def test_thousands_are_cleaned_up_page_by_page(env):
    """More than one page: none is left, none that counts is taken."""
    api = env.client.api
    await asyncio.gather(
        *(api.call(PublishEvent(org="default", key="e", request_id=f"k{n}", ttl_s=1.0)) for n in range(2_100))
    )
    await api.call(PublishEvent(org="default", key="e", request_id="kept"))
    await env.advance(seconds=2)
    rounds = 1
    while await env.engine._local.upkeep.forget():
        rounds += 1

    assert 3 == rounds
    assert [None, None] == [await stored(env, "k0"), await stored(env, "k2099")]
    assert await stored(env, "kept") is not None


async def test_a_key_that_is_used_again_while_it_is_cleaned_up_stays(env):
    """In one transaction, in either order: the new use counts."""
    api, upkeep = env.client.api, env.engine._local.upkeep
    for name, order_of in (("before", 1), ("after", -1)):
        request = PublishEvent(org="default", key="e", request_id=name, ttl_s=1.0)
        await api.call(request)
        await env.advance(seconds=2)
        # Both are put into the queue before the first is decided.
        await asyncio.gather(*(call() for call in [lambda r=request: api.call(r), upkeep.forget][::order_of]))

        assert not (await api.call(request)).idempotency_key_new


# --- whose they are ---


async def test_orgs_with_equal_keys_are_strangers(engine):
    """F59: the same key, the same request, two orgs: two effects."""
    blue = (await engine(workflows=ALL, org="blue")).client
    red = (await engine(workflows=ALL, org="red")).client
    first = await blue.start_workflow(order, 1, idempotency_key="k")
    second = await red.start_workflow(order, "other", idempotency_key="k")
    again = await blue.start_workflow(order, 1, idempotency_key="k")

    assert [True, True, False] == [start.idempotency_key_new for start in (first, second, again)]
    assert (first.id, False) == (again.id, first.id == second.id)


async def test_a_key_says_what_it_was_used_for(env):
    """003-13, 003-14, 003-16, 003-25: each row names one subject: an execution, a promise, or a task's attempt.

    003-15 asks for an index on it. Nothing looks for keys by subject: the promise itself says which key settled it.
    """
    handle = await env.client.start_workflow(order, idempotency_key="start")
    other = await env.client.start_workflow(outsourcing)
    await env.idle()
    await resolve(env, handle, 1, idempotency_key="settle")
    await env.client.complete_promise(TOKENS[0], 1, idempotency_key="complete")

    assert [(handle.id, handle.id), (None, f"{handle.id}:payment"), (None, f"{other.id}:task:1")] == [
        ((row := await stored(env, key)).execution_id, row.subject) for key in ("start", "settle", "complete")
    ]


async def test_keys_survive_a_restart(engine):
    """The answer is in the database, not in memory."""
    old = await engine(workflows=ALL)
    first = await old.client.start_workflow(order, 1, idempotency_key="k")
    await old.shutdown()
    again = await (await engine(workflows=ALL)).client.start_workflow(order, 1, idempotency_key="k")

    assert (first.id, False) == (again.id, again.idempotency_key_new)


def test_a_fingerprint_of_an_earlier_version_fits():
    """It has microseconds for an instant, and nothing of payloads that were left out."""
    request = StartWorkflow(org="o", kind="k", start_at=datetime(2026, 1, 2, tzinfo=UTC), request_id="r", ttl_s=5)
    content = b'{"kind":"k","org":"o","start_at":%d}' % (int(datetime(2026, 1, 2, tzinfo=UTC).timestamp()) * 10**6)

    assert sha256(b"StartWorkflow" + content).hexdigest() == fingerprint_of(request)
