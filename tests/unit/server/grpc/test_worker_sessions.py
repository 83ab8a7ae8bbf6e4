"""The worker protocol, spoken by hand: what a server takes, keeps and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import WorkflowContext, task, workflow
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from holdfast.server.grpc.settings import GrpcSettings
from holdfast.transport.grpc import holdfast_pb2 as pb
from tests.conftest import OpenEngine, until
from tests.grpc_server import Caller, WorkerStream, grpc_api, make_key

KINDS = {
    "builds": [pb.Build(workflow_kind="greets", workflow_version="1", build="b")],
    "task_kinds": ["greet"],
}


@task
async def greet(name: str) -> str:
    return f"hello {name}"


@workflow
async def greets(ctx: WorkflowContext, name: str) -> str:
    return await ctx.task(greet, name)


async def known(engine: OpenEngine) -> Any:
    """An engine that knows the workflow, though no worker of its own runs it."""
    async with await engine(workflows=[greets], tasks=[greet]):
        pass
    return await engine()


async def start(call: Caller, name: str = "w") -> str:
    request = pb.StartWorkflowRequest(workflow_kind="greets", workflow_id=name, workflow_input=b'"Ann"')
    return str((await call("StartWorkflow", request)).workflow_execution_id)


def completed(work: pb.TurnWork, request_id: int = 1, **fields: Any) -> pb.Request:
    """The whole of the workflow in one turn."""
    turns = b'[{"up_to": 1, "commands": [{"type": "complete_workflow", "result": "done"}]}]'
    report = {
        "workflow_execution_id": work.workflow_execution_id,
        "token": work.token,
        "base_sequence": work.last_sequence,
        "turns": turns,
    }
    return pb.Request(id=request_id, complete_turn=pb.CompleteTurn(**{**report, **fields}))


async def test_work_is_handed_out_and_its_report_is_recorded(engine: OpenEngine):
    """A session gets the turn with its events and what tokens are made from; its commit ends the execution."""
    async with grpc_api(await known(engine)) as (_, call):
        stream = call.session()
        await stream.open(**KINDS)
        execution_id = await start(call)

        turn = (await stream.work()).turn
        await stream.ask(completed(turn))
        answer = await stream.answer()

        assert (execution_id, ["WORKFLOW_STARTED"], 32) == (
            turn.workflow_execution_id,
            [event.type for event in turn.events],
            len(turn.token_key),
        )
        assert ("recorded", True) == (answer.turn.verdict, answer.turn.closed)
        ended = await call("GetResult", pb.GetResultRequest(workflow_execution_id=execution_id, wait_seconds=5))
        assert b'"done"' == ended.result


async def test_execution_that_waited_for_a_worker_comes_with_its_events(engine: OpenEngine):
    """Nobody has run it yet: its few events come along. One that has run is rebuilt from its whole history."""
    async with grpc_api(await known(engine)) as (_, call):
        await start(call)
        first = call.session()
        await first.open(**KINDS)
        turn = (await first.work()).turn
        turns = b'[{"up_to": 1, "commands": [{"type": "start_timer", "timer_no": 1, "fire_at": 99999999999999999}]}]'
        await first.ask(completed(turn, turns=turns))
        await first.answer()
        await first.ask(pb.Request(id=2, close=pb.CloseSession()))
        second = call.session()
        await second.open(**KINDS)

        again = (await second.work()).turn

        assert (["WORKFLOW_STARTED"], []) == ([one.type for one in turn.events], list(again.events))


async def test_message_sent_twice_counts_once(engine: OpenEngine):
    """After a broken stream the worker sends again what was not acknowledged: it is answered, not done, again."""
    async with grpc_api(await known(engine)) as (_, call):
        execution_id = await start(call)
        first = call.session()
        opened = await first.open(**KINDS)
        turn = (await first.work()).turn
        await first.ask(completed(turn))
        await until(lambda: history_length(call, execution_id, 2))
        first.call.cancel()

        second = call.session()
        message = pb.WorkerMessage(
            open=pb.OpenSession(session=opened.session, resume=opened.proof), received=first.received
        )
        await second.write(message)
        reopened = await second.read()
        second.received = first.received
        await second.ask(completed(turn))
        answer = await second.answer()

        assert (True, 1) == (reopened.opened.resumed, reopened.received)
        assert "recorded" == answer.turn.verdict
        assert 2 == len((await history(call, execution_id)).events)


async def history(call: Caller, execution_id: str) -> pb.GetHistoryResponse:
    return await call("GetHistory", pb.GetHistoryRequest(workflow_execution_id=execution_id))


async def history_length(call: Caller, execution_id: str, length: int) -> bool:
    return len((await history(call, execution_id)).events) == length


async def test_work_that_did_not_arrive_is_sent_again(engine: OpenEngine):
    """A worker that comes back gets everything after the last message it has got."""
    async with grpc_api(await known(engine)) as (_, call):
        first = call.session()
        opened = await first.open(**KINDS)
        await start(call)
        turn = (await first.work()).turn
        first.call.cancel()

        second = call.session()
        await second.write(pb.WorkerMessage(open=pb.OpenSession(session=opened.session, resume=opened.proof)))
        await second.read()

        assert turn == (await second.work()).turn


async def test_session_is_resumed_with_its_proof_only(engine: OpenEngine):
    """Another proof, another org, an unknown session: all the same SessionLost."""
    async with grpc_api(await known(engine)) as (_, call):
        first = call.session()
        opened = await first.open(**KINDS)
        tries = [
            pb.OpenSession(session=opened.session, resume=b"x" * 32),
            pb.OpenSession(session="unknown", resume=opened.proof),
            pb.OpenSession(session=opened.session, resume=opened.proof, org_id="other"),
        ]
        for message in tries:
            stream = call.session()
            await stream.write(pb.WorkerMessage(open=message))
            assert ("ABORTED", "session_lost") == await stream.end()


async def test_worker_reports_only_on_what_it_holds(engine: OpenEngine):
    """A report with another token, or by another session of the same org, is refused and changes nothing."""
    async with grpc_api(await known(engine)) as (_, call):
        execution_id = await start(call)
        holder, other = call.session(), call.session()
        await holder.open(**KINDS)
        turn = (await holder.work()).turn
        await other.open(**KINDS)

        await other.ask(completed(turn))
        stolen = await other.answer()
        forged = pb.Token(epoch=turn.token.epoch, nonce=turn.token.nonce ^ 1)
        await holder.ask(completed(turn, 1, token=forged))
        guessed = await holder.answer()
        ahead = completed(turn, 2, base_sequence=99)
        await holder.ask(ahead)
        beyond = await holder.answer()

        assert ["stale_claim", "stale_claim", "invalid_request"] == [
            answer.error.code for answer in (stolen, guessed, beyond)
        ]
        assert 1 == len((await history(call, execution_id)).events)


async def task_of(call: Caller, stream: WorkerStream) -> pb.TaskWork:
    await start(call)
    turn = (await stream.work()).turn
    turns = b'[{"up_to": 1, "commands": [{"type": "schedule_task", "task_no": 1, "kind": "greet", "input": ["Ann"]}]}]'
    await stream.ask(completed(turn, turns=turns, waiting_for=b'[{"kind": "task", "number": 1}]'))
    works: list[pb.Work] = []
    while not works:
        works += [work for work in (await stream.read()).work if work.WhichOneof("kind") == "task"]
    return works[0].task


def task_report(work: pb.TaskWork, request_id: int, result: bytes) -> pb.Request:
    report = pb.CompleteTask(
        workflow_execution_id=work.workflow_execution_id, task_no=work.task_no, token=work.token, result=result
    )
    return pb.Request(id=request_id, complete_task=report)


async def test_second_report_on_a_task_is_refused(engine: OpenEngine):
    """The first one wins; the next is StaleAttempt, and gives no slot back."""
    async with grpc_api(await known(engine)) as (_, call):
        stream = call.session()
        await stream.open(**KINDS)
        work = await task_of(call, stream)

        await stream.ask(task_report(work, 2, b'"one"'), task_report(work, 3, b'"two"'))
        answers: dict[int, str] = {}
        while len(answers) < 2:
            answers.update((answer.id, answer.error.code) for answer in (await stream.read()).answers)

        assert {2: "", 3: "stale_attempt"} == answers
        events = (await history(call, work.workflow_execution_id)).events
        assert [b'"one"' in event.body for event in events if event.type == "TASK_COMPLETED"] == [True]


async def test_goodbye_frees_what_is_held_at_once(engine: OpenEngine):
    """The session closes, and another gets its execution without waiting for the lease."""
    async with grpc_api(await known(engine)) as (_, call):
        execution_id = await start(call)
        first, second = call.session(), call.session()
        await first.open(**KINDS, lease_seconds=3600)
        await first.work()
        await second.open(**KINDS)

        await first.ask(pb.Request(id=1, close=pb.CloseSession()))

        assert execution_id == (await second.work()).turn.workflow_execution_id
        assert ("OK", "") == await first.end()


async def test_drained_session_gets_nothing_more(engine: OpenEngine):
    """New work waits for another session."""
    async with grpc_api(await known(engine)) as (_, call):
        first = call.session()
        await first.open(**KINDS)
        await first.ask(pb.Request(id=1, drain=pb.Drain()))
        await first.answer()

        execution_id = await start(call)
        second = call.session()
        await second.open(**KINDS)

        assert execution_id == (await second.work()).turn.workflow_execution_id


async def test_session_whose_stream_is_broken_gets_nothing_until_it_is_back(engine: OpenEngine):
    """Work goes to those who are there; a session that comes back is handed work again."""
    async with grpc_api(await known(engine)) as (server, call):
        first = call.session()
        opened = await first.open(**KINDS, lease_seconds=30)
        first.call.cancel()
        await until(lambda: not server._workers._streams)
        execution_id = await start(call)

        second = call.session()
        await second.open(**KINDS, turn_slots=1)
        assert execution_id == (await second.work()).turn.workflow_execution_id
        other_id = await start(call, "other")
        third = call.session()
        await third.write(pb.WorkerMessage(open=pb.OpenSession(session=opened.session, resume=opened.proof)))

        assert other_id == (await third.work()).turn.workflow_execution_id


async def test_new_session_takes_the_place_of_a_lost_one(engine: OpenEngine):
    """What the old one had finished is recorded, what it held is handed out again, without waiting for its lease."""
    async with grpc_api(await known(engine)) as (_, call):
        first = call.session()
        opened = await first.open(**KINDS, lease_seconds=3600)
        work = await task_of(call, first)
        held = await start(call, "held")
        await until(lambda: is_held(call, held))
        first.call.cancel()

        second = call.session()
        await second.open(
            **KINDS, replaces=opened.session, replaces_proof=opened.proof, leftovers=[task_report(work, 9, b'"done"')]
        )
        got: set[str] = set()
        while len(got) < 2:
            got |= {found.turn.workflow_execution_id for found in (await second.read()).work}

        assert {work.workflow_execution_id, held} == got
        events = (await history(call, work.workflow_execution_id)).events
        assert [1] == [event.body.count(b'"done"') for event in events if event.type == "TASK_COMPLETED"]


async def is_held(call: Caller, execution_id: str) -> bool:
    found = await call("GetWorkflow", pb.GetWorkflowRequest(workflow_execution_id=execution_id))
    return found.workflow.status == "RUNNING"


async def test_place_of_a_session_is_taken_with_its_proof_only(engine: OpenEngine):
    """Nobody can end a session that is not his."""
    async with grpc_api(await known(engine)) as (_, call):
        first = call.session()
        opened = await first.open(**KINDS)
        second = call.session()
        message = pb.OpenSession(host="h", lease_seconds=5, replaces=opened.session, replaces_proof=b"x" * 32)
        await second.write(pb.WorkerMessage(open=message))

        assert ("INVALID_ARGUMENT", "invalid_request") == await second.end()


async def test_worker_key_sees_only_its_org(engine: OpenEngine):
    """A worker of another org with the same kinds gets none of the work."""
    opened = await known(engine)
    mine, theirs = await make_key(opened, Role.ADMIN), await make_key(opened, Role.WORKER, "other")
    async with (
        grpc_api(opened, auth=AuthSettings(mode=AuthMode.KEYS)) as (server, _),
        Caller(server.address, mine) as call,
        Caller(server.address, theirs) as stranger,
    ):
        thief = stranger.session()
        await thief.open(**KINDS)
        execution_id = await start(call)
        worker = call.session()
        await worker.open(**KINDS)

        turn = (await worker.work()).turn
        await thief.ask(completed(turn))
        answer = await thief.answer()

        assert execution_id == turn.workflow_execution_id
        assert "stale_claim" == answer.error.code
        history_of = pb.GetHistoryRequest(workflow_execution_id=execution_id)
        assert [] == list((await stranger("ReadHistory", history_of)).events)
        wrong = stranger.session()
        await wrong.write(pb.WorkerMessage(open=pb.OpenSession(org_id="default", host="h", lease_seconds=5)))
        assert ("NOT_FOUND", "org_not_found") == await wrong.end()


BROKEN = [
    [pb.WorkerMessage()],
    [pb.WorkerMessage(number=1, requests=[pb.Request(id=1, drain=pb.Drain())])],
    [pb.WorkerMessage(open=pb.OpenSession())],
    [pb.WorkerMessage(open=pb.OpenSession(host="h", lease_seconds=float("nan")))],
    [pb.WorkerMessage(open=pb.OpenSession(host="h", lease_seconds=1e9))],
    [pb.WorkerMessage(open=pb.OpenSession(host="h", lease_seconds=5, queues=[""]))],
    [pb.WorkerMessage(open=pb.OpenSession(host="h", lease_seconds=5, turn_slots=2**32 - 1))],
    [pb.WorkerMessage(open=pb.OpenSession(host="h", lease_seconds=5, task_kinds=["k"] * 10_001))],
    [pb.WorkerMessage(part=b"\xff\xff")],
]
AFTERWARDS = [
    pb.WorkerMessage(number=2, requests=[pb.Request(id=1, drain=pb.Drain())]),
    pb.WorkerMessage(requests=[pb.Request(id=1, drain=pb.Drain())]),
    pb.WorkerMessage(open=pb.OpenSession(host="h", lease_seconds=5)),
    pb.WorkerMessage(part=b"\xff\xff"),
    pb.WorkerMessage(part=pb.WorkerMessage(part=b"x").SerializeToString()),
]


@pytest.mark.parametrize("messages", BROKEN)
async def test_stream_that_does_not_begin_right_is_refused(engine: OpenEngine, messages):
    """INVALID_ARGUMENT, never INTERNAL."""
    async with grpc_api(await engine()) as (_, call):
        stream = call.session()
        for message in messages:
            await stream.write(message)
        assert ("INVALID_ARGUMENT", "invalid_request") == await stream.end()


@pytest.mark.parametrize("message", AFTERWARDS)
async def test_message_out_of_order_ends_the_stream(engine: OpenEngine, message):
    """INVALID_ARGUMENT, never INTERNAL."""
    async with grpc_api(await engine()) as (_, call):
        stream = call.session()
        await stream.open()
        await stream.write(message)
        assert ("INVALID_ARGUMENT", "invalid_request") == await stream.end()


DANCE = b'[{"up_to": 1, "commands": [{"type": "dance"}]}]'
NO_STEP = pb.HistoryEvent(type="WORKFLOW_STARTED")


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (pb.Request(id=1), "unsupported"),
        (pb.Request(id=1, complete_turn=pb.CompleteTurn(turns=b"{")), "invalid_request"),
        (pb.Request(id=1, complete_turn=pb.CompleteTurn(turns=DANCE)), "unsupported"),
        (pb.Request(id=1, complete_turn=pb.CompleteTurn(turns=b'[{"up_to": -1}]')), "invalid_request"),
        (pb.Request(id=1, complete_turn=pb.CompleteTurn(steps=[NO_STEP])), "invalid_request"),
        (pb.Request(id=1, complete_turn=pb.CompleteTurn(token=pb.Token(epoch=2**64 - 1))), "invalid_request"),
        (pb.Request(id=1, complete_task=pb.CompleteTask(result=b"{")), "invalid_request"),
        (pb.Request(id=1, fail_task=pb.FailTask(failure=b"[]")), "invalid_request"),
        (pb.Request(id=1, defer_task=pb.DeferTask(token_hash="x")), "invalid_request"),
        (pb.Request(id=1, heartbeat=pb.Heartbeat(lease_seconds=-1)), "invalid_request"),
        (pb.Request(id=1, park_turn=pb.ParkTurn(reason=b"{}")), "invalid_request"),
        (pb.Request(id=1, complete_turn=pb.CompleteTurn(workflow_execution_id="x")), "stale_claim"),
        (pb.Request(id=1, complete_task=pb.CompleteTask(workflow_execution_id="x")), "stale_attempt"),
        (pb.Request(id=1, answer_query=pb.AnswerQuery(query_id="x")), ""),
        (pb.Request(id=1, release=pb.ReleaseWork()), ""),
    ],
)
async def test_request_that_can_not_be_done_is_answered(engine: OpenEngine, request_, code):
    """The error comes as its answer, and the stream goes on: other reports of the worker are not lost with it."""
    async with grpc_api(await engine()) as (_, call):
        stream = call.session()
        await stream.open()
        await stream.ask(request_)
        assert code == (await stream.answer()).error.code
        await stream.ask(pb.Request(id=2, heartbeat=pb.Heartbeat(lease_seconds=5)))
        assert (await stream.answer()).heartbeat.alive


async def test_server_that_stops_hands_over_and_says_so(engine: OpenEngine):
    """The worker is told, its work is free, and the stream ends."""
    opened = await known(engine)
    async with grpc_api(opened) as (server, call):
        execution_id = await start(call)
        stream = call.session()
        await stream.open(**KINDS, lease_seconds=3600)
        await stream.work()

        await server.stop()

        leaving, last = await stream.read(), await stream.read()
        assert (True, "unavailable") == (leaving.HasField("leaving"), last.ended.code)
        assert "PENDING" == (await opened.client.workflow(execution_id).status())


async def test_worker_that_does_not_read_is_given_up(engine: OpenEngine):
    """What waits for it is bounded: its session ends, and what it held goes to others when its lease is over."""
    settings = GrpcSettings(port=0, unread_bytes=200_000)
    async with grpc_api(await known(engine), settings=settings) as (server, call):
        stream = call.session()
        await stream.open(**KINDS, lease_seconds=3600)
        execution_id = await start(call)
        await stream.work()
        signal = pb.SignalWorkflowRequest(
            workflow_execution_id=execution_id, signal_name="s", signal_value=b'"%s"' % (b"x" * 50_000)
        )
        for _ in range(8):
            await call("SignalWorkflow", signal)

        await until(lambda: not server._workers.sessions)


async def test_as_many_sessions_as_allowed(engine: OpenEngine):
    """One more is RESOURCE_EXHAUSTED; when one goes, there is room."""
    async with grpc_api(await engine(), settings=GrpcSettings(port=0, max_sessions=1)) as (server, call):
        first, second, third = call.session(), call.session(), call.session()
        await first.open()
        await second.write(pb.WorkerMessage(open=pb.OpenSession(host="h", lease_seconds=5)))
        assert ("RESOURCE_EXHAUSTED", "too_many_requests") == await second.end()
        await first.ask(pb.Request(id=1, close=pb.CloseSession()))
        await until(lambda: not server._workers.sessions)
        assert (await third.open()).session


async def test_session_that_expired_elsewhere_is_ended_by_its_next_heartbeat(engine: OpenEngine):
    """Another process has found it dead: this one learns of it, and tells the worker."""
    api = await known(engine)
    async with grpc_api(api) as (_, call):
        stream = call.session()
        opened = await stream.open(**KINDS)
        other = await engine()
        await other._local.workers.unregister("default", opened.session)

        await stream.ask(pb.Request(id=1, heartbeat=pb.Heartbeat(lease_seconds=5)))
        message = await stream.read()
        while not message.HasField("ended"):
            message = await stream.read()

        assert "session_lost" == message.ended.code
        await until(lambda: opened.session not in api._local.dispatcher.sessions)
