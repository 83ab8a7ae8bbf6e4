"""A value that does not fit the type of its promise: refused where it comes in, and nothing is changed."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from msgspec import Meta, Raw

from holdfast import PromiseState, WorkflowContext, workflow
from holdfast.engine.turns.checks import refusal_of
from holdfast.errors import PayloadNotDecodable, PromiseValueInvalid
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.replay.journal import Journal
from tests.conftest import until
from tests.database_access import application
from tests.unit.engine.records import check_all

TOKENS: dict[str, str] = {}


def note_token(promise_id: str, token: str) -> None:
    TOKENS[promise_id] = token


@dataclass
class Line:
    sku: str
    count: int = 1


@dataclass
class Payment:
    amount: int
    lines: list[Line] = field(default_factory=list)


GOOD = {"amount": 5, "lines": [{"sku": "s"}]}
BAD = {"amount": 5, "lines": [{"sku": "s"}, {"sku": "s", "count": "many"}]}


@workflow
async def order(ctx: WorkflowContext) -> int:
    payment = ctx.promise("payment", Payment, event_key="paid", timeout=1000)
    await ctx.run(note_token, payment.id, payment.token)
    return (await payment).amount


@workflow
async def patient(ctx: WorkflowContext) -> object:
    """Makes its promise when it is told to."""
    await ctx.wait_for_signal("go")
    try:
        return (await ctx.promise("payment", Payment)).amount
    except PayloadNotDecodable as error:
        return error.field


@workflow
async def picky(ctx: WorkflowContext) -> object:
    """Asks for more than can be known where the value comes in."""
    try:
        return await ctx.promise("answer", Annotated[str, Meta(pattern="^yes")])
    except PayloadNotDecodable:
        return "not readable"


@workflow
async def taker(ctx: WorkflowContext) -> Any:
    return await ctx.wait_for_event("paid")


@pytest.fixture
async def env(environment):
    TOKENS.clear()
    return await environment(workflows=[order, patient, picky, taker])


async def ordered(env, workflow_id="w"):
    handle = await env.client.start_workflow(order, workflow_id=workflow_id)
    await env.idle()
    return handle


WAYS = {
    "id": lambda client, promise_id, value: client.resolve_promise(promise_id, value, idempotency_key="k"),
    "name": lambda client, _, value: client.resolve_promise_by_name("w", "payment", value, idempotency_key="k"),
    "token": lambda client, promise_id, value: client.complete_promise(TOKENS[promise_id], value, idempotency_key="k"),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_value_that_does_not_fit_is_refused_and_the_promise_stays_pending(env, way):
    """By each way; the error names the promise, the place in the value and the cause. The key is not used up."""
    handle = await ordered(env)
    promise_id = f"{handle.id}:payment"
    before = await handle.history()

    with pytest.raises(PromiseValueInvalid) as refused:
        await WAYS[way](env.client, promise_id, BAD)

    error = refused.value
    assert ("promise_value_invalid", "value.lines[1].count") == (error.code, error.field)
    assert (promise_id, "Expected `int`, got `str`") == (error.details["promise_id"], error.details["reason"])
    assert promise_id in str(error)
    await env.idle()
    assert before == await handle.history()
    [promise] = await handle.promises()
    assert (PromiseState.PENDING, None, None) == (promise.state, promise.value, promise.settled_by)

    settled = await WAYS[way](env.client, promise_id, GOOD)
    assert (False, True) == (settled.already_resolved, settled.idempotency_key_new)
    assert 5 == await handle.result()
    await check_all(env.engine)


async def test_a_promise_that_is_settled_answers_so_whatever_comes(env):
    handle = await ordered(env)
    await env.client.resolve_promise(f"{handle.id}:payment", GOOD)
    late = await env.client.resolve_promise(f"{handle.id}:payment", "nonsense")

    assert (True, GOOD) == (late.already_resolved, late.value)


async def test_a_rejection_needs_no_type(env):
    handle = await ordered(env)
    rejected = await env.client.reject_promise(f"{handle.id}:payment", "no")

    assert PromiseState.REJECTED == rejected.state


async def test_an_event_that_does_not_fit_is_none_for_the_promise(env):
    """It goes to others, is kept as any other, and the next one that fits settles the promise."""
    handle = await ordered(env)
    other = await env.client.start_workflow(taker)
    await env.idle()

    wrong = await env.client.publish_event("paid", BAD)
    assert BAD == await other.result()
    assert (1, True) == (wrong.delivered, wrong.retained)
    [promise] = await handle.promises()
    assert PromiseState.PENDING == promise.state

    [considered] = (await env.client.explain_event(wrong.event_id)).waits
    reason = "promise 'payment' can't be settled with it: data.lines[1].count: Expected `int`, got `str`"
    assert (False, reason) == (considered.satisfied, considered.reason)
    assert [reason] == [miss.reason for miss in (await handle.explain_wait()).nearest]

    right = await env.client.publish_event("paid", GOOD)
    assert 1 == right.delivered
    assert 5 == await handle.result()
    await check_all(env.engine)


async def test_an_event_for_one_passes_by_the_promise_that_it_does_not_fit(env):
    """`consume_on_read`: the longest waiting that can have it gets it."""
    handle = await ordered(env)
    other = await env.client.start_workflow(taker)
    await env.idle()
    await env.client.publish_event("paid", "nonsense", consume_on_read=True)

    assert "nonsense" == await other.result()
    [promise] = await handle.promises()
    assert PromiseState.PENDING == promise.state


async def test_an_event_that_fits_nobody_ends_as_a_dead_one(env):
    await ordered(env)
    published = await env.client.publish_event("paid", 7, expire_after=10)
    assert 0 == published.delivered
    await env.advance(seconds=60)
    await env.engine._local.upkeep.prune()

    [dead] = await env.client.dead_events()
    assert (published.event_id, "expired") == (dead.id, dead.reason)


async def test_what_was_settled_early_is_settled(env):
    """There was no type to compare it with, and it was told that it counts: the await tells."""
    handle = await env.client.start_workflow(patient, workflow_id="w")
    await env.idle()
    settled = await env.client.resolve_promise_by_name("w", "payment", BAD, allow_early=True)
    await handle.signal("go")

    assert "payment.lines[1].count" == await handle.result()
    assert not settled.already_resolved
    await check_all(env.engine)


async def test_what_cant_be_known_at_the_server_is_the_workflows_matter(env):
    handle = await env.client.start_workflow(picky)
    await env.idle()
    with pytest.raises(PromiseValueInvalid):
        await env.client.resolve_promise(f"{handle.id}:answer", 7)
    await env.client.resolve_promise(f"{handle.id}:answer", "no")

    assert "not readable" == await handle.result()


async def test_a_reset_promise_keeps_its_type(env):
    """By the old token, too, which reaches the new promise."""
    handle = await ordered(env)
    old = f"{handle.id}:payment"
    reset = await handle.reset(to_event=(await handle.history())[-1].seq)
    await env.idle()
    assert reset.id != handle.id

    for settle in (
        lambda: env.client.complete_promise(TOKENS[old], BAD),
        lambda: env.client.resolve_promise(f"{reset.id}:payment", BAD),
    ):
        with pytest.raises(PromiseValueInvalid) as refused:
            await settle()
        assert f"{reset.id}:payment" == refused.value.details["promise_id"]
    await env.client.complete_promise(TOKENS[old], GOOD)
    assert 5 == await reset.result()
    await check_all(env.engine)


async def test_the_history_has_the_shape(env):
    handle = await ordered(env)
    [made] = [event.body for event in await handle.history() if isinstance(event.body, e.PromiseCreated)]

    assert bytes(made.shape).decode() == (
        '{"is":"object","fields":{"amount":"int"},"optional":{"lines":{"is":"array","of":'
        '{"is":"object","fields":{"sku":"str"},"optional":{"count":"int"}}}}}'
    )


async def test_within_the_callers_transaction(engine, database_url):
    """The refusal leaves the caller's transaction as it is: its rows can still be committed."""
    client = (await engine(workflows=[order])).client
    handle = await client.start_workflow(order, workflow_id="w")
    await until(handle.promises)
    app = application(database_url)
    try:
        app.execute("CREATE TABLE orders (name TEXT)")
        app.commit()
        app.execute("INSERT INTO orders VALUES ('mine')")
        with pytest.raises(PromiseValueInvalid) as refused:
            await client.resolve_promise(f"{handle.id}:payment", BAD, using=app)
        assert "value.lines[1].count" == refused.value.field
        await client.resolve_promise(f"{handle.id}:payment", GOOD, using=app)
        app.commit()
        assert [("mine",)] == app.execute("SELECT name FROM orders").fetchall()
    finally:
        app.close()
    assert 5 == await handle.result()


@pytest.mark.parametrize("shape", [b'"number"', b'{"is":"array"}', b'"' + b"x" * 5000 + b'"'])
def test_a_worker_cant_record_a_shape_that_nothing_can_be_checked_against(shape):
    command = c.CreatePromise(promise_no=1, name="p", token_hash="h", shape=Raw(shape))
    turn = c.Turn(up_to=1, commands=(command,))

    refusal = refusal_of([turn])
    assert refusal is not None
    assert "shape" == refusal.field


def test_replay_does_not_compare_types():
    """Code that asks for another type, or a history from before types were recorded, goes on."""
    for recorded, asked in [(b'"int"', b'"str"'), (b"null", b'"int"'), (b'"int"', b"null")]:
        made = e.PromiseCreated(up_to=1, promise_no=1, name="p", token_hash="h", shape=Raw(recorded))
        journal = Journal(1, [e.HistoryEvent(seq=2, at=0, body=made)])
        command = c.CreatePromise(promise_no=1, name="p", token_hash="h", shape=Raw(asked))

        assert journal.match(command) is None
