"""Promises, events, messages and broadcasts for a mocked workflow."""

import pytest

from holdfast import WorkflowContext, workflow
from holdfast.errors import (
    EventTimeout,
    InvalidRequest,
    NeverSettled,
    PromiseRejected,
    PromiseTimeout,
    PromiseValueInvalid,
)
from holdfast.model import events as e
from holdfast.testing import MockWorkflowContext


@workflow
async def approval(ctx: WorkflowContext) -> str:
    decision = ctx.promise("decision", str, timeout=60)
    await ctx.run(print, decision.token, name="mail")
    try:
        return await decision
    except PromiseRejected as error:
        return f"no: {error.error_type}"
    except PromiseTimeout:
        return "late"


def mailing() -> MockWorkflowContext:
    mock = MockWorkflowContext()
    mock.result("mail", None, after=5)
    return mock


def test_a_promise_is_resolved():
    """At its instant, or when it is made."""
    mock = mailing()
    mock.resolve("decision", "yes", after=30)

    assert "yes" == mock.run(approval)
    assert 30 == mock.slept.total_seconds()
    assert mock.called("mail")[0][0].startswith("ct_")


def test_a_promise_is_rejected():
    mock = mailing()
    mock.reject("decision", ValueError("too dear"))

    assert "no: ValueError" == mock.run(approval)
    assert 5 == mock.slept.total_seconds()


def test_a_value_that_does_not_fit_is_refused():
    """By whoever would settle it: here the test."""
    mock = mailing()
    mock.resolve("decision", 7, after=30)

    with pytest.raises(PromiseValueInvalid, match="decision") as refused:
        mock.run(approval)
    assert "value" == refused.value.field


def test_an_event_that_does_not_fit_is_none_for_the_promise():
    @workflow
    async def keyed(ctx: WorkflowContext) -> int:
        return await ctx.promise("paid", int, event_key="paid")

    mock = MockWorkflowContext()
    mock.event("paid", "much", after=1)
    mock.event("paid", 5, after=2)

    assert 5 == mock.run(keyed)
    assert {"paid": 1} == mock.unused


def test_a_promise_that_is_settled_too_late():
    mock = mailing()
    mock.resolve("decision", "yes", after=61)

    assert "late" == mock.run(approval)
    assert 60 == mock.slept.total_seconds()
    assert {"decision": 1} == mock.unused


def test_a_promise_nobody_settles():
    """Its time-out fires by itself; without one the test is told what is missing."""

    @workflow
    async def endless(ctx: WorkflowContext) -> None:
        await ctx.promise("decision")

    assert "late" == mailing().run(approval)
    with pytest.raises(NeverSettled, match="promise 'decision'"):
        MockWorkflowContext().run(endless)


def test_a_promise_is_fed_once():
    mock = MockWorkflowContext()
    mock.resolve("decision")

    with pytest.raises(InvalidRequest, match="only the first time counts"):
        mock.reject("decision", ValueError)


def test_an_event_settles_a_promise():
    @workflow
    async def listener(ctx: WorkflowContext) -> int:
        return await ctx.promise("p", int, event_key="k")

    mock = MockWorkflowContext()
    mock.event("k", 4, after=1)

    assert 4 == mock.run(listener)
    assert {} == mock.unused


def test_events_come_to_those_whose_filter_they_satisfy():
    """Before the wait or after it, each once."""

    @workflow
    async def reader(ctx: WorkflowContext) -> list[int]:
        found = [await ctx.wait_for_event("k", int, where="input > 10")]
        found += [await ctx.wait_for_event("k", int) for _ in range(2)]
        return found

    mock = MockWorkflowContext()
    mock.event("k", 1)
    mock.event("k", 20, after=10)
    mock.event("k", 3, after=20)
    mock.event("other", 5)

    assert [20, 1, 3] == mock.run(reader)
    assert {"other": 1} == mock.unused


def test_an_event_for_one_of_two():
    @workflow
    async def two(ctx: WorkflowContext) -> list[int]:
        first, second = ctx.wait_for_event("k", int), ctx.wait_for_event("k", int)
        return [await first, await second]

    shared, single = MockWorkflowContext(), MockWorkflowContext()
    shared.event("k", 1, after=1)
    single.event("k", 1, after=1, consume_on_read=True)
    single.event("k", 2, after=2)

    assert [1, 1] == shared.run(two)
    assert [1, 2] == single.run(two)


def test_a_wait_without_looking_back_misses_what_was_before():
    @workflow
    async def present(ctx: WorkflowContext) -> int:
        try:
            return await ctx.wait_for_event("k", int, look_back=False, timeout=10)
        except EventTimeout:
            return -1

    early, late = MockWorkflowContext(), MockWorkflowContext()
    early.event("k", 1)
    late.event("k", 1, after=9)

    assert -1 == early.run(present)
    assert 1 == late.run(present)
    assert "cancelled" == late.timers[0].outcome


def test_messages_go_to_their_correlation_key():
    @workflow
    async def mailbox(ctx: WorkflowContext) -> list[int]:
        b, a = ctx.wait_for_message("letter", "b", int), ctx.wait_for_message("letter", "a", int)
        return [await a, await b]

    mock = MockWorkflowContext()
    mock.message("letter", "a", 1)
    mock.message("letter", "b", 2, after=3)

    assert [1, 2] == mock.run(mailbox)


def test_a_broadcast_comes_when_it_is_waited_for():
    """Or at an instant, when whoever does not wait misses it."""

    @workflow
    async def listener(ctx: WorkflowContext) -> float:
        await ctx.sleep(5)
        await ctx.wait_for_broadcast("go")
        return ctx.now().timestamp()

    at_once, at_ten, too_early = MockWorkflowContext(), MockWorkflowContext(), MockWorkflowContext()
    at_once.broadcast("go")
    at_ten.broadcast("go", after=10)
    too_early.broadcast("go", after=1)

    at_once.run(listener)
    assert 5 == at_once.slept.total_seconds()
    at_ten.run(listener)
    assert 10 == at_ten.slept.total_seconds()
    with pytest.raises(NeverSettled, match="broadcast 'go'"):
        too_early.run(listener)


def test_what_the_workflow_sends_is_among_its_calls():
    """And reaches its own waits."""

    @workflow
    async def sender(ctx: WorkflowContext) -> list[int]:
        heard = ctx.wait_for_broadcast("b")
        ctx.broadcast("b")
        await heard
        ctx.send_message("m", "a", 1)
        ctx.publish_event("k", 2)
        return [await ctx.wait_for_message("m", "a", int), await ctx.wait_for_event("k", int)]

    mock = MockWorkflowContext()

    assert [1, 2] == mock.run(sender)
    assert [("broadcast", "b", ()), ("message", "m", ("a", 1)), ("event", "k", (2,))] == [
        (call.kind, call.name, call.args) for call in mock.calls
    ]
    assert {} == mock.unused


def test_the_loser_of_a_race_gets_nothing():
    @workflow
    async def racing(ctx: WorkflowContext) -> list[object]:
        slow = ctx.promise("slow")
        won = await ctx.race(ctx.wait_for_event("k"), slow, ctx.wait_for_broadcast("b"))
        await ctx.sleep(100)
        return [won.index, won.result]

    mock = MockWorkflowContext()
    mock.event("k", 1, after=1)
    mock.resolve("slow", 2, after=2)
    mock.broadcast("b", after=3)

    assert [0, 1] == mock.run(racing)
    kinds = [type(event.body) for event in mock.history]
    assert e.PromiseCancelled in kinds
    assert e.PromiseResolved not in kinds
    assert e.BroadcastReceived not in kinds
