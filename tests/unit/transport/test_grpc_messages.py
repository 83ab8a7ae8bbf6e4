"""Records of the contract survive the way through messages, whatever they carry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Raw

from holdfast.contract import workers as wk
from holdfast.errors import InvalidRequest, StaleClaim, StorageFull
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.executions import StuckReason
from holdfast.model.values import NULL, Failure, TaskTimeouts, Token, Wait
from holdfast.transport.grpc import failures
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc.events import event, event_message
from holdfast.transport.grpc.payloads import payload
from holdfast.transport.grpc.reports import (
    Report,
    heartbeat_answer,
    heartbeat_answer_message,
    report,
    report_message,
    turn_answer,
    turn_answer_message,
)
from holdfast.transport.grpc.sessions import Parts, in_parts, open_message, register_request
from holdfast.transport.grpc.work import key_of, work, work_message

ROOT = Path(__file__).parents[3]
TOKEN = Token(3, 2**61 + 1)
HISTORY = (
    e.HistoryEvent(1, 10, e.WorkflowStarted(kind="k", workflow_id="w", input=Raw(b'{"a":1}'))),
    e.HistoryEvent(2, 11, e.SignalReceived(signal_name="s", signal_value=Raw(b'"\xc3\xa9"'))),
)
OUTPUT = (wk.OutputChunk(4, Raw(b'"tok"')), wk.OutputChunk(9, Raw(b'{"a":1}')))
FAILURE = Failure(type="ValueError", message="é", traceback="t", cause=Failure(type="KeyError"), non_retryable=True)
STEP = e.StepCompleted(up_to=2, step_no=1, name="n", result=Raw(b"[1]"), attempts=1, started_at=1, finished_at=2)
BROKEN_STEP = e.StepFailed(up_to=2, step_no=2, name="n", failure=FAILURE, attempts=3, started_at=1, finished_at=2)

WORKS: list[wk.Work] = [
    wk.TurnWork("e", "w", "k", "1", TOKEN, 2, HISTORY, 9),
    wk.TurnWork("e", "w", "k", "1", TOKEN, 2, (), 9),
    wk.PendingEvents("e", 2, HISTORY),
    wk.PendingEvents("e", 2),
    wk.TaskWork(
        execution_id="e",
        task_no=1,
        kind="t",
        token=TOKEN,
        input=Raw(b'["x"]'),
        timeouts=TaskTimeouts(start_to_close_s=1.5, schedule_to_close_s=2.0, heartbeat_s=0.5),
        scheduled_at=1,
        started_at=2,
        details=Raw(b"7"),
    ),
    wk.TaskWork(
        execution_id="e", task_no=1, kind="t", token=TOKEN, timeouts=TaskTimeouts(), scheduled_at=1, started_at=2
    ),
    wk.TaskWork(
        execution_id="e",
        task_no=1,
        kind="t",
        token=TOKEN,
        timeouts=TaskTimeouts(),
        scheduled_at=1,
        started_at=2,
        output_seq=7,
    ),
    wk.TaskStop("e", 1, 2, "cancelled"),
    wk.ExecutionEnded("e"),
    wk.LostTurn("e", 4),
    wk.QueryWork(query_id="q", execution_id="e", kind="k", version="1", query_name="n", last_seq=3),
    wk.QueryWork(
        query_id="q",
        execution_id="e",
        kind="k",
        version="1",
        query_name="n",
        input=Raw(b"null"),
        has_input=True,
        as_of=1,
        last_seq=3,
    ),
]
ATTEMPT: dict[str, Any] = {"org": "o", "execution_id": "e", "task_no": 1, "token": TOKEN}
REPORTS: list[Report] = [
    wk.CompleteTurn(
        org="o",
        execution_id="e",
        token=TOKEN,
        base_seq=2,
        worker="s",
        turns=(
            c.Turn(up_to=2, commands=(c.ScheduleTask(task_no=1, kind="t", input=Raw(b'["x"]')),), started_at=3),
            c.Turn(up_to=2, commands=(c.CompleteWorkflow(result=Raw(b"1")),)),
        ),
        steps=(STEP, BROKEN_STEP),
        after_steps=c.Turn(up_to=4),
        waiting_for=(Wait("signal", "s"), Wait("timer", number=1, until_at=5)),
        unread=(2,),
        refused=((2, "no"),),
    ),
    wk.CompleteTurn(org="o", execution_id="e", token=TOKEN, base_seq=2, worker="s", waiting_for=()),
    wk.CompleteTurn(org="o", execution_id="e", token=TOKEN, base_seq=2, worker="s"),
    wk.ParkTurn(org="o", execution_id="e", token=TOKEN, reason=StuckReason(code="c", message="m", worker="s")),
    wk.CompleteTask(**ATTEMPT, session="s", result=Raw(b'{"x":1}')),
    wk.CompleteTask(**ATTEMPT, session="s"),
    wk.CompleteTask(**ATTEMPT, session="s", output=OUTPUT),
    wk.FailTask(**ATTEMPT, session="s", failure=FAILURE, output=OUTPUT),
    wk.DeferTask(**ATTEMPT, session="s", token_hash="a" * 64, output=OUTPUT),
    wk.FailTask(**ATTEMPT, session="s", failure=FAILURE, details=Raw(b"1")),
    wk.FailTask(**ATTEMPT, session="s", failure=FAILURE),
    wk.IssueTaskToken(**ATTEMPT, token_hash="a" * 64),
    wk.DeferTask(**ATTEMPT, session="s", token_hash="a" * 64, details=Raw(b"1")),
    wk.Heartbeat(
        org="o",
        session="s",
        lease_s=3.0,
        tasks=(
            wk.TaskBeat(execution_id="e", task_no=1, token=TOKEN, details=Raw(b"1"), progress=0.5),
            wk.TaskBeat(execution_id="e", task_no=1, token=TOKEN),
            wk.TaskBeat(execution_id="e", task_no=2, token=TOKEN, output=OUTPUT),
        ),
        running=(("e", 1, TOKEN),),
    ),
    wk.ReleaseWork(org="o", session="s", turns=(("e", TOKEN),), tasks=(("e", 1, TOKEN),)),
    wk.AnswerQuery(query_id="q", result=Raw(b"1")),
    wk.AnswerQuery(query_id="q", failure=FAILURE),
]


@pytest.mark.parametrize("given", WORKS, ids=lambda found: type(found).__name__)
def test_work_comes_through(given):
    """Made into bytes and read again it is the same, and the key for tokens comes with it where it is needed."""
    message = pb.Work.FromString(work_message(given, lambda _: b"key").SerializeToString())

    assert given == work(message)
    wants_key = isinstance(given, wk.TurnWork | wk.TaskWork | wk.QueryWork)
    assert (("e", b"key") if wants_key else None) == key_of(message)


@pytest.mark.parametrize("given", REPORTS, ids=lambda found: type(found).__name__)
def test_report_comes_through(given):
    """Org and session are those of the stream, not of the message."""
    message = pb.Request.FromString(report_message(given, 7).SerializeToString())

    assert given == report(message, "o", "s")
    assert 7 == message.id
    assert b"o" not in [field for _, field in message.ListFields() if isinstance(field, bytes)]


def test_every_kind_is_tried():
    """A new kind of work or report needs an example here."""
    assert set(get_args(wk.Work)) == {type(found) for found in WORKS}
    assert set(get_args(Report)) == {type(found) for found in REPORTS}
    kinds = {field.name for field in pb.Request.DESCRIPTOR.oneofs_by_name["kind"].fields}
    assert kinds == {report_message(found, 1).WhichOneof("kind") for found in REPORTS} | {"drain", "close", "pause"}


def test_answers_come_through():
    """Of turns and of heartbeats."""
    turn = wk.TurnAnswer(wk.TurnVerdict.UNREAD, 3, 5, True, False)
    beat = wk.HeartbeatAnswer(alive=True, stale=(("e", 1, 2),))

    assert turn == turn_answer(turn_answer_message(turn))
    assert beat == heartbeat_answer(heartbeat_answer_message(beat))


def test_opening_comes_through():
    """What a worker says of itself; its name is given by the server."""
    given = wk.RegisterWorker(
        org="o",
        session="name",
        host="h",
        pid=7,
        queues=("a", "b"),
        builds={("k", "1"): "x", ("k", "2"): "y"},
        task_kinds=("t",),
        triggers=(
            wk.Trigger(kind="k", version="1", key="e", queue="a", where="input.x == 1"),
            wk.Trigger(kind="k", version="1", key="e", queue="a"),
        ),
        turn_slots=3,
        task_slots=4,
        lease_s=5.0,
    )
    assert given == register_request(open_message(given), "o", "name")


def test_event_of_a_newer_version_is_left_to_be_read():
    """The work comes without events, so that the worker reads them, and tells what it can't read."""
    message = work_message(WORKS[0], lambda _: b"")
    message.turn.events[0].version = 99

    read = work(message)

    assert isinstance(read, wk.TurnWork)
    assert ((), 2) == (read.events, read.last_seq)


def test_work_of_an_unknown_kind_is_passed_over():
    """An older worker goes on with what it knows."""
    assert work(pb.Work()) is None


def test_events_come_through():
    """Number, time, type and body."""
    for found in HISTORY:
        assert found == event(pb.HistoryEvent.FromString(event_message(found).SerializeToString()))


def test_errors_come_back_as_the_same_class():
    """With their message and details; an unknown code is still an error with that code's text."""
    for given in (StaleClaim("m", execution_id="e", epoch=3), StorageFull("full"), InvalidRequest("bad", field="f")):
        found = failures.error(pb.Error.FromString(failures.error_message(given).SerializeToString()))
        assert (type(given), str(given), given.details) == (type(found), str(found), found.details)
    assert "later" == str(failures.error(pb.Error(code="not_yet_invented", message="later")))


def test_details_without_a_form_are_left_out():
    """Whatever an error carries, it can be told."""
    odd: Any = {"loop": []}
    odd["loop"].append(odd)
    assert failures.details_bytes(StaleClaim("m", odd=odd)) == b"{}"


@pytest.mark.parametrize("size", [10, 1_000, 999_999])
def test_message_in_parts_is_put_together(size):
    """Whatever their size."""
    message = pb.WorkerMessage(number=3, requests=[pb.Request(id=n, drain=pb.Drain()) for n in range(200)])
    parts = Parts(1_000_000)

    found = [whole for part in in_parts(message, size) if (whole := parts.take(part)) is not None]

    assert [message] == found


def test_parts_are_bounded():
    """Somebody who never ends a message fills no memory."""
    parts = Parts(1_000)
    for _ in range(10):
        parts.take(pb.WorkerMessage(part=b"x" * 100, more=True))
    with pytest.raises(InvalidRequest, match="more than 1000"):
        parts.take(pb.WorkerMessage(part=b"x", more=True))


def test_rest_of_a_message_may_not_be_missing():
    """Something else in the middle of a message in parts is no message."""
    parts = Parts(1_000)
    parts.take(pb.WorkerMessage(part=b"x", more=True))
    with pytest.raises(InvalidRequest, match="missing"):
        parts.take(pb.WorkerMessage(number=1))


@pytest.mark.parametrize("data", [b"{", b"nul", b'"\xff"', b"[" * 100_000, b"1 2", b"NaN", b'{"a":1', b"\xef\xbb\xbf1"])
def test_payload_that_is_no_json_is_refused(data):
    """It would spoil the event around it."""
    with pytest.raises(InvalidRequest, match="x must be UTF-8 JSON"):
        payload(data, "x")


def test_payload_is_kept_as_it_is():
    """Byte for byte; nothing at all is null."""
    assert b' {"b": 1, "a": 1.50}' == bytes(payload(b' {"b": 1, "a": 1.50}', "x"))
    assert NULL == payload(b"", "x") == payload(b"null", "x")


def test_records_do_not_hide_what_is_not_utf8():
    """Not even where only the shape of a value is looked at."""
    turns = b'[{"up_to":1,"commands":[{"type":"complete_workflow","result":"\xff"}]}]'
    with pytest.raises(InvalidRequest, match="turns"):
        report(pb.Request(id=1, complete_turn=pb.CompleteTurn(turns=turns)), "o", "s")
    assert msgspec.json.decode(turns.replace(b"\xff", b"x"))


FIELDS = {
    "SignalWithStartWorkflowRequest": {
        "org_id": 1,
        "workflow_id": 2,
        "workflow_kind": 3,
        "workflow_input": 4,
        "queue": 5,
        "priority_seconds": 6,
        "workflow_version": 7,
        "metadata": 8,
        "signal_name": 9,
        "signal_value": 10,
        "idempotency_key_ttl_seconds": 11,
    },
    "SignalWithStartWorkflowResponse": {
        "workflow_execution_id": 1,
        "workflow_created": 2,
        "signal_event_sequence": 3,
    },
    "SignalWorkflowRequest": {"org_id": 1, "workflow_execution_id": 2, "signal_name": 3, "signal_value": 4},
    "SignalWorkflowResponse": {"signal_event_sequence": 1},
    "ResolvePromiseRequest": {
        "promise_id": 1,
        "value": 2,
        "idempotency_key": 3,
        "idempotency_key_ttl_seconds": 4,
    },
    "ResolvePromiseResponse": {"already_resolved": 1, "idempotency_key_used": 2, "idempotency_key_new": 3},
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_have_the_promised_numbers(name):
    """Clients in other languages were generated from them."""
    fields = pb.DESCRIPTOR.message_types_by_name[name].fields_by_name
    assert FIELDS[name] == {field: fields[field].number for field in FIELDS[name]}


def test_optional_fields_are_optional():
    """Whether they were given can be told."""
    request = pb.SignalWithStartWorkflowRequest()
    for field in ("workflow_version", "idempotency_key_ttl_seconds"):
        assert not request.HasField(field)


def test_generated_messages_are_up_to_date():
    """`make generate` would change nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.protobuf", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
