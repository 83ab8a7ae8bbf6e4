"""WorkflowDispatch: what an application asks for over gRPC."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest

from holdfast import WorkflowContext, query, signal, task, update, workflow
from holdfast.transport.grpc import holdfast_pb2 as pb
from tests.conftest import OpenEngine, until
from tests.grpc_server import Caller, grpc_api


@task
async def shout(text: str) -> str:
    return text.upper()


@workflow(kind="conversation")
async def conversation(ctx: WorkflowContext, conversation_id: str) -> list[str]:
    heard = []
    while True:
        message = await ctx.wait_for_signal("message", dict)
        heard.append(await ctx.task(shout, message["text"]))
        if message.get("end"):
            return heard


@workflow
async def approval(ctx: WorkflowContext, name: str) -> str:
    return await ctx.promise(name, str)


@workflow
async def fails(ctx: WorkflowContext) -> None:
    raise ValueError("not today")


@workflow
class Counter:
    def __init__(self) -> None:
        self.count = 0

    async def run(self, ctx: WorkflowContext) -> int:
        await ctx.wait_until(lambda: self.count >= 3)
        return self.count

    @signal
    def add(self, number: int) -> None:
        self.count += number

    @query
    def shown(self) -> int:
        return self.count

    @update
    def raised(self, number: int) -> int:
        self.count += number
        return self.count


CONVERSATION = pb.StartWorkflowRequest(workflow_kind="conversation", workflow_id="c", workflow_input=b'"c"')
WORKFLOWS: list[Any] = [conversation, approval, fails, Counter]


def said(text: str, *, end: bool = False) -> bytes:
    return json.dumps({"text": text, "end": end}).encode()


async def result(call: Caller, execution_id: str) -> pb.GetResultResponse:
    return await call("GetResult", pb.GetResultRequest(workflow_execution_id=execution_id, wait_seconds=10))


async def made_promise(call: Caller, execution_id: str) -> bool:
    history = await call("GetHistory", pb.GetHistoryRequest(workflow_execution_id=execution_id))
    return any(event.type == "PROMISE_CREATED" for event in history.events)


async def test_signal_with_start_creates_once_and_signals_every_time(engine: OpenEngine):
    """The first call creates the execution, the second finds it; both signals are in its history, in order."""
    async with grpc_api(await engine(workflows=WORKFLOWS, tasks=[shout])) as (_, call):

        def request(text: str, *, end: bool = False) -> pb.SignalWithStartWorkflowRequest:
            return pb.SignalWithStartWorkflowRequest(
                org_id="default",
                workflow_id="conversation:c1",
                workflow_kind="conversation",
                workflow_input=b'"c1"',
                queue="default",
                metadata={"channel": "web"},
                signal_name="message",
                signal_value=said(text, end=end),
            )

        first = await call("SignalWithStartWorkflow", request("hi"))
        second = await call("SignalWithStartWorkflow", request("bye", end=True))
        ended = await result(call, first.workflow_execution_id)

        assert (True, 2, True) == (first.workflow_created, first.signal_event_sequence, first.signal_delivered)
        assert (False, first.workflow_execution_id) == (second.workflow_created, second.workflow_execution_id)
        assert second.signal_event_sequence > 2
        assert ("COMPLETED", ["HI", "BYE"]) == (ended.status, json.loads(ended.result))


async def test_signal_reaches_an_open_execution_and_not_a_closed_one(engine: OpenEngine):
    """A signal answers its number in the history; to a closed execution it is refused with ABORTED."""
    async with grpc_api(await engine(workflows=WORKFLOWS, tasks=[shout])) as (_, call):
        started = await call("StartWorkflow", CONVERSATION)
        signalled = pb.SignalWorkflowRequest(
            workflow_execution_id=started.workflow_execution_id, signal_name="message", signal_value=said("x", end=True)
        )

        answer = await call("SignalWorkflow", signalled)
        await result(call, started.workflow_execution_id)

        assert answer.signal_event_sequence >= 2
        assert ("ABORTED", "execution_closed") == await call.refusal("SignalWorkflow", signalled)


async def test_idempotency_key_in_the_metadata_makes_a_repeat_harmless(engine: OpenEngine):
    """The same call twice under one key is one signal; without a key it is two."""
    async with grpc_api(await engine(workflows=WORKFLOWS, tasks=[shout])) as (_, call):
        request = pb.SignalWithStartWorkflowRequest(
            workflow_id="c",
            workflow_kind="conversation",
            workflow_input=b'"c"',
            signal_name="message",
            signal_value=said("x"),
        )
        key = [("idempotency-key", "k1")]

        once = [await call("SignalWithStartWorkflow", request, metadata=key) for _ in range(2)]
        again = await call("SignalWithStartWorkflow", request)

        assert once[0] == once[1]
        assert again.signal_event_sequence > once[0].signal_event_sequence
        history = await call(
            "GetHistory", pb.GetHistoryRequest(workflow_execution_id=again.workflow_execution_id, limit=1000)
        )
        assert 2 == sum(event.type == "SIGNAL_RECEIVED" for event in history.events)


async def test_promise_is_resolved_once_and_the_key_is_remembered(engine: OpenEngine):
    """The first value settles it; the same key answers the same again, another key that it was settled already."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        started = await call(
            "StartWorkflow",
            pb.StartWorkflowRequest(workflow_kind="approval", workflow_input=b'"ok"', workflow_id="a"),
        )
        await until(lambda: made_promise(call, started.workflow_execution_id))
        promise = f"{started.workflow_execution_id}:ok"

        def request(key: str, value: bytes = b'"yes"') -> pb.ResolvePromiseRequest:
            return pb.ResolvePromiseRequest(promise_id=promise, value=value, idempotency_key=key)

        first = await call("ResolvePromise", request("k"))
        again = await call("ResolvePromise", request("k"))
        other = await call("ResolvePromise", request("k2", b'"no"'))

        assert (False, True, True) == (first.already_resolved, first.idempotency_key_used, first.idempotency_key_new)
        assert (False, True, False) == (again.already_resolved, again.idempotency_key_used, again.idempotency_key_new)
        assert other.already_resolved
        assert b'"yes"' == (await result(call, started.workflow_execution_id)).result


async def test_programs_answer_queries_and_updates(engine: OpenEngine):
    """A query shows the state, an update changes it and answers; an unknown query is NOT_FOUND."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        started = await call("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="Counter"))
        at = {"workflow_execution_id": started.workflow_execution_id}

        updated = await call("UpdateWorkflow", pb.UpdateWorkflowRequest(**at, update_name="raised", input=b"2"))
        shown = await call("QueryWorkflow", pb.QueryWorkflowRequest(**at, query_name="shown"))

        assert (b"2", b"2") == (updated.result, shown.result)
        unknown = pb.QueryWorkflowRequest(**at, query_name="nothing")
        assert ("NOT_FOUND", "unknown_query") == await call.refusal("QueryWorkflow", unknown)


async def test_failure_of_a_workflow_is_an_answer(engine: OpenEngine):
    """GetResult tells how it ended; that it failed is no error of the call."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        started = await call("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="fails"))

        ended = await result(call, started.workflow_execution_id)

        assert (True, "FAILED", "ValueError", "not today") == (
            ended.closed,
            ended.status,
            ended.error_type,
            ended.error,
        )


async def test_open_execution_can_be_looked_at_cancelled_terminated_and_listed(engine: OpenEngine):
    """Result without waiting says that it is open; terminate ends it; the list shows both."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        ids = [
            (await call("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="Counter", workflow_id=name)))
            for name in ("one", "two")
        ]
        first, second = (started.workflow_execution_id for started in ids)

        looked = await call("GetResult", pb.GetResultRequest(workflow_execution_id=first))
        gone = await call("TerminateWorkflow", pb.TerminateWorkflowRequest(workflow_execution_id=first, reason="r"))
        asked = await call("CancelWorkflow", pb.CancelWorkflowRequest(workflow_execution_id=second))
        await result(call, second)
        page = await call("ListWorkflows", pb.ListWorkflowsRequest(limit=1))
        rest = await call("ListWorkflows", pb.ListWorkflowsRequest(limit=1, cursor=page.next_cursor))
        found = await call("GetWorkflow", pb.GetWorkflowRequest(workflow_id="one"))

        assert (False, True, True) == (looked.closed, gone.changed, asked.changed)
        assert ["two", "one"] == [one.workflow_id for one in (*page.workflows, *rest.workflows)]
        assert ("one", "TERMINATED") == (found.workflow.workflow_id, found.workflow.status)


async def test_history_comes_in_pages(engine: OpenEngine):
    """Pages of two follow one another by number, and the last one says that there is no more."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        started = await call("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="fails"))
        await result(call, started.workflow_execution_id)
        numbers: list[int] = []
        more = True
        while more:
            after = numbers[-1] if numbers else 0
            page = await call(
                "GetHistory",
                pb.GetHistoryRequest(workflow_execution_id=started.workflow_execution_id, after=after, limit=2),
            )
            numbers += [event.sequence for event in page.events]
            more = page.more

        assert list(range(1, len(numbers) + 1)) == numbers
        assert len(numbers) >= 2


async def test_published_event_reaches_who_waits(engine: OpenEngine):
    """PublishEvent answers the event's number; the same idempotency key again is not new."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        request = pb.PublishEventRequest(key="orders", data=b'{"n": 1}', idempotency_key="e1")

        first, again = [await call("PublishEvent", request) for _ in range(2)]

        assert first.event_id == again.event_id > 0
        assert (True, False) == (first.idempotency_key_new, again.idempotency_key_new)


@pytest.mark.parametrize(
    ("name", "request_", "told"),
    [
        ("StartWorkflow", pb.StartWorkflowRequest(), ("INVALID_ARGUMENT", "invalid_request")),
        ("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="none"), ("NOT_FOUND", "unknown_workflow_kind")),
        (
            "StartWorkflow",
            pb.StartWorkflowRequest(workflow_kind="fails", workflow_input=b"{"),
            ("INVALID_ARGUMENT", "invalid_request"),
        ),
        (
            "StartWorkflow",
            pb.StartWorkflowRequest(workflow_kind="fails", workflow_input=b'"\xff"'),
            ("INVALID_ARGUMENT", "invalid_request"),
        ),
        (
            "StartWorkflow",
            pb.StartWorkflowRequest(workflow_kind="fails", workflow_input=b"[" * 100_000),
            ("INVALID_ARGUMENT", "invalid_request"),
        ),
        (
            "StartWorkflow",
            pb.StartWorkflowRequest(workflow_kind="fails", if_running="sometimes"),
            ("INVALID_ARGUMENT", "invalid_request"),
        ),
        (
            "SignalWorkflow",
            pb.SignalWorkflowRequest(workflow_execution_id="x", signal_name="s"),
            ("NOT_FOUND", "execution_not_found"),
        ),
        ("GetWorkflow", pb.GetWorkflowRequest(workflow_id="x"), ("NOT_FOUND", "execution_not_found")),
        ("GetHistory", pb.GetHistoryRequest(workflow_execution_id="x"), ("NOT_FOUND", "execution_not_found")),
        ("ResolvePromise", pb.ResolvePromiseRequest(promise_id="x:y"), ("NOT_FOUND", "promise_not_found")),
        ("ListWorkflows", pb.ListWorkflowsRequest(cursor="x"), ("INVALID_ARGUMENT", "invalid_cursor")),
        ("ListWorkflows", pb.ListWorkflowsRequest(limit=-1), ("INVALID_ARGUMENT", "invalid_request")),
        ("ListWorkflows", pb.ListWorkflowsRequest(statuses=["ASLEEP"]), ("INVALID_ARGUMENT", "invalid_request")),
        (
            "GetResult",
            pb.GetResultRequest(workflow_execution_id="x", wait_seconds=float("nan")),
            ("INVALID_ARGUMENT", "invalid_request"),
        ),
    ],
)
async def test_bad_request_is_refused_with_status_and_code(engine: OpenEngine, name, request_, told):
    """The status says what kind of error it is, the trailer its stable code."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        assert told == await call.refusal(name, request_)


@pytest.mark.parametrize(
    "data",
    [b'{"a": 1, "a": 2}', b"NaN", b"1e400", b'"\\u0000"', b'"\\ud800"', b"[" * 101 + b"]" * 101, b"1" * 5_000, b"1 2"],
)
async def test_payload_that_others_would_read_otherwise_is_refused(engine: OpenEngine, data):
    """The same rules as for REST: the field is named, and nothing is started."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        with pytest.raises(grpc.aio.AioRpcError, match="workflow_input"):
            await call("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="fails", workflow_input=data))
        assert not (await call("ListWorkflows", pb.ListWorkflowsRequest())).workflows


async def test_details_of_an_error_are_json_in_the_trailer(engine: OpenEngine):
    """What is known about the error can be read by a program."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call("StartWorkflow", pb.StartWorkflowRequest())

    trailer = dict(caught.value.trailing_metadata())
    assert {"field": "workflow_kind"} == json.loads(trailer["holdfast-details-bin"])


async def test_bytes_that_are_no_message_are_the_callers_fault(engine: OpenEngine):
    """INVALID_ARGUMENT, not INTERNAL."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        raw = call.channel.unary_unary("/holdfast.v1.WorkflowDispatch/StartWorkflow")
        for data in (b"\xff\xff\xff", b"\x0a\x05ab", b"\x0a\x02\xff\xfe"):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await raw(data)
            assert grpc.StatusCode.INVALID_ARGUMENT == caught.value.code()


async def test_message_beyond_the_limit_is_refused_and_the_connection_stays(engine: OpenEngine):
    """RESOURCE_EXHAUSTED, and the next call over the same connection is answered."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (_, call):
        large = pb.StartWorkflowRequest(workflow_kind="fails", workflow_input=b'"%s"' % (b"x" * 5_000_000))

        assert "RESOURCE_EXHAUSTED" == (await call.refusal("StartWorkflow", large))[0]
        assert (await call("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="fails"))).workflow_created


async def test_compressed_message_is_refused(engine: OpenEngine):
    """A small message can't become a large one."""
    async with grpc_api(await engine(workflows=WORKFLOWS)) as (server, _):
        channel = grpc.aio.insecure_channel(server.address, compression=grpc.Compression.Gzip)
        call = channel.unary_unary("/holdfast.v1.WorkflowDispatch/StartWorkflow")
        request = pb.StartWorkflowRequest(workflow_kind="fails", workflow_input=b'"%s"' % (b"x" * 100_000))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(request.SerializeToString())
        await channel.close()

    assert grpc.StatusCode.UNIMPLEMENTED == caught.value.code()


async def test_call_that_finds_no_answer_is_ended_by_the_server(engine: OpenEngine):
    """Whatever deadline its caller has set, a call ends after the server's limit with DEADLINE_EXCEEDED."""
    from holdfast.server.grpc.settings import GrpcSettings

    @workflow
    class Silent:
        async def run(self, ctx: WorkflowContext) -> None:
            await ctx.wait_for_signal("never", str)

        @update
        async def waits(self, ctx: WorkflowContext) -> None:
            await ctx.wait_for_signal("never", str)

    async with grpc_api(await engine(workflows=[Silent]), settings=GrpcSettings(port=0, call_limit_s=0.3)) as (_, call):
        started = await call("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="Silent"))
        request = pb.UpdateWorkflowRequest(
            workflow_execution_id=started.workflow_execution_id, update_name="waits", input=b"null"
        )

        assert ("DEADLINE_EXCEEDED", "deadline_passed") == await call.refusal("UpdateWorkflow", request)
