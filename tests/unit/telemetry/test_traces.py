from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import holdfast
from holdfast import TelemetryConfig, WorkflowContext
from holdfast.errors import InvalidRequest, WorkflowFailed
from holdfast.telemetry import traces
from holdfast.telemetry.traces import CALLER, Tracing, trace_id
from tests.conftest import QUICK, until

TRACED = replace(QUICK, telemetry=TelemetryConfig(traces=True))
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def provider(monkeypatch):
    """An application's own set-up."""
    made = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made)
    yield made
    made.shutdown()


@pytest.fixture
def finished(provider):
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter.get_finished_spans


@pytest.fixture
def spans(finished):
    return lambda: {span.name: span for span in finished()}


async def ended(spans, name):
    """The spans, when this one is there: an execution's is made after those who waited for its result were answered."""
    return await until(lambda: name in (found := spans()) and found)


@holdfast.task
async def outer(text: str) -> str:
    with trace.get_tracer_provider().get_tracer("an application").start_as_current_span("inside a task"):
        return text


@holdfast.task
def threaded() -> str:
    return f"{trace.get_current_span().get_span_context().span_id:016x}"


tries: list[int] = []


@holdfast.task(retry=holdfast.RetryPolicy(max_attempts=2, initial_interval_s=0.001))
async def second_time() -> None:
    tries.append(1)
    if len(tries) == 1:
        raise ValueError("not yet")


async def stepping() -> int:
    return trace.get_current_span().get_span_context().span_id


@holdfast.workflow
async def traced(ctx: WorkflowContext) -> str:
    await ctx.run(stepping, name="stepping")
    await ctx.task(outer, "a")
    return await ctx.task(threaded)


@holdfast.workflow
async def retrying(ctx: WorkflowContext) -> None:
    await ctx.task(second_time)


@holdfast.workflow
async def parent(ctx: WorkflowContext) -> None:
    await ctx.child(retrying_child)


@holdfast.workflow
async def retrying_child(ctx: WorkflowContext) -> None:
    await ctx.run(lambda: None, name="nothing")


async def test_one_trace_per_execution(engine, spans):
    """Execution, step, tasks and what runs inside of them share the trace that follows from the execution's id."""
    running = await engine(workflows=[traced], tasks=[outer, threaded], config=TRACED)
    handle = await running.client.start_workflow(traced, workflow_id="w-1")
    inner_id = await handle.result()

    found = await ended(spans, "workflow traced")
    assert set(found) == {"workflow traced", "step stepping", "task outer", "task threaded", "inside a task"}
    assert {f"{span.context.trace_id:032x}" for span in found.values()} == {trace_id(handle.id)}
    root = found["workflow traced"]
    assert root.parent is None
    for name in ("step stepping", "task outer", "task threaded"):
        assert found[name].parent.span_id == root.context.span_id
    assert found["inside a task"].parent.span_id == found["task outer"].context.span_id
    assert inner_id == f"{found['task threaded'].context.span_id:016x}"
    assert root.attributes["holdfast.workflow_id"] == "w-1"
    assert root.start_time <= found["step stepping"].start_time
    assert root.status.is_ok
    assert found["task outer"].attributes["holdfast.attempt"] == 1


async def test_attempts_are_linked(engine, finished):
    """The second attempt points at the first, which has the error."""
    tries.clear()
    running = await engine(workflows=[retrying], tasks=[second_time], config=TRACED)
    await (await running.client.start_workflow(retrying)).result()

    first, second = (span for span in finished() if span.name == "task second_time")
    assert not first.status.is_ok
    assert "not yet" in str(dict(first.events[0].attributes or {}))
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert dict(second.attributes or {})["holdfast.attempt"] == 2


async def test_a_child_has_a_trace_of_its_own_linked_to_its_parent(engine, spans):
    """Following the link leads to the parent's span."""
    running = await engine(workflows=[parent, retrying_child], config=TRACED)
    await (await running.client.start_workflow(parent)).result()

    found = await ended(spans, "workflow parent")
    link = found["workflow retrying_child"].links[0].context
    above = found["workflow parent"].context
    assert (link.trace_id, link.span_id) == (above.trace_id, above.span_id)
    assert found["workflow retrying_child"].context.trace_id != above.trace_id


async def trace_of(handle, finished):
    """The span of an execution."""

    def found():
        traced = [span for span in finished() if f"{span.context.trace_id:032x}" == trace_id(handle.id)]
        return next((span for span in traced if span.name.startswith("workflow ")), None)

    return await until(found)


async def test_the_caller_is_linked(engine, finished, provider):
    """The current span, what came with a request, or what the caller's tag says; a repeat from elsewhere is the same
    request."""
    running = await engine(workflows=[retrying_child], config=TRACED)
    client = running.client
    with provider.get_tracer("an application").start_as_current_span("asking") as asking:
        first = await client.start_workflow(retrying_child, workflow_id="a", request_id="r-1")
    again = await client.start_workflow(retrying_child, workflow_id="a", request_id="r-1")
    assert again.id == first.id
    linked = (await trace_of(first, finished)).links[0].context
    assert (linked.trace_id, linked.span_id) == (asking.get_span_context().trace_id, asking.get_span_context().span_id)

    tagged = await client.start_workflow(retrying_child, metadata={"traceparent": PARENT})
    assert f"{(await trace_of(tagged, finished)).links[0].context.span_id:016x}" == "b7ad6b7169203331"

    token = CALLER.set(PARENT.replace("31-", "32-"))
    handle = await client.start_workflow(retrying_child)
    CALLER.reset(token)
    assert f"{(await trace_of(handle, finished)).links[0].context.span_id:016x}" == "b7ad6b7169203332"


async def test_replay_makes_no_spans(engine, finished):
    """Every body is traced once, although the program is rebuilt after each commit."""
    config = replace(TRACED, worker=replace(TRACED.worker, replay_always=True))
    running = await engine(workflows=[traced], tasks=[outer, threaded], config=config)
    await (await running.client.start_workflow(traced)).result()
    await running.shutdown()

    names = sorted(span.name for span in finished())
    assert names == ["inside a task", "step stepping", "task outer", "task threaded", "workflow traced"]


async def test_an_execution_that_fails_has_an_error(engine, spans):
    """Its status says how it ended."""

    @holdfast.workflow
    async def doomed(ctx: WorkflowContext) -> None:
        raise ValueError("no")

    running = await engine(workflows=[doomed], config=TRACED)
    with pytest.raises(WorkflowFailed):
        await (await running.client.start_workflow(doomed)).result()

    span = (await ended(spans, "workflow doomed"))["workflow doomed"]
    assert span.attributes["holdfast.status"] == "FAILED"
    assert not span.status.is_ok


def test_a_share_of_executions_is_traced():
    """The same ones everywhere, and about as many as asked for."""
    half, all_, none = Tracing(0.5), Tracing(1.0), Tracing(0.0)
    ids = [f"0190{number:08x}" for number in range(1000)]

    chosen = [one for one in ids if half.samples(one)]
    assert 400 < len(chosen) < 600
    assert chosen == [one for one in ids if Tracing(0.5).samples(one)]
    assert all(all_.samples(one) for one in ids)
    assert not any(none.samples(one) for one in ids)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan")])
def test_a_ratio_outside_of_its_range_is_refused(ratio):
    """Before anything is traced."""
    with pytest.raises(InvalidRequest):
        Tracing(ratio)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00-xyz",
        PARENT.replace("0af7", "zzzz"),
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        PARENT.replace("00-", "ff-", 1),
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ],
)
def test_what_is_no_trace_context_is_no_link(text):
    """A caller can't spoil a trace with nonsense."""
    assert traces.read_traceparent(text, trace) is None


@pytest.mark.parametrize(("given", "kept"), [(PARENT, PARENT), (PARENT + "-more" * 99, PARENT), ("nonsense", None)])
def test_a_header_is_kept_only_if_it_is_a_trace_context(given, kept):
    """It becomes a tag of the execution: no longer than it has to be, and nothing else."""
    token = CALLER.set(given)
    try:
        assert Tracing().caller() == kept
    finally:
        CALLER.reset(token)


def test_without_opentelemetry_the_setting_is_refused(monkeypatch):
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    with pytest.raises(InvalidRequest, match=r"holdfast\[otel\]"):
        Tracing()


async def test_a_plain_body_that_hands_back_a_coroutine_is_one_span(spans, provider):
    """Its span lasts until that has ended."""
    tracing = Tracing()

    async def later() -> int:
        await asyncio.sleep(0)
        return trace.get_current_span().get_span_context().span_id

    def plain() -> Any:
        return later()

    body = tracing.step(plain, "e-1", 1, {"holdfast.step": "odd"})
    inner = await body()
    assert spans()["step odd"].context.span_id == inner


async def test_a_cancelled_body_has_an_error(spans, provider):
    """It did not do what it was for."""

    async def endless() -> None:
        await asyncio.Event().wait()

    running = asyncio.create_task(Tracing().task(endless, "e-1", 1, 1, {"holdfast.task": "endless"})())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert not spans()["task endless"].status.is_ok
