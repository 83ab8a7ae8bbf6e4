"""What a worker reports and asks for, as messages and back.

A message names neither org nor session: whoever holds the stream knows both, so that nobody can report for another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.contract import workers as wk
from holdfast.errors import InvalidRequest
from holdfast.model.commands import Turn
from holdfast.model.executions import StuckReason
from holdfast.model.values import Failure, Token, Wait
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc.events import step, step_message
from holdfast.transport.grpc.payloads import payload, record, record_bytes
from holdfast.transport.grpc.work import token, token_message

Report = (
    wk.CompleteTurn
    | wk.ParkTurn
    | wk.CompleteTask
    | wk.FailTask
    | wk.IssueTaskToken
    | wk.DeferTask
    | wk.Heartbeat
    | wk.ReleaseWork
    | wk.AnswerQuery
)

_TURNS: Final = msgspec.json.Decoder(tuple[Turn, ...])
_TURN: Final = msgspec.json.Decoder(Turn)
_WAITS: Final = msgspec.json.Decoder(tuple[Wait, ...])
_REASON: Final = msgspec.json.Decoder(StuckReason)
_FAILURE: Final = msgspec.json.Decoder(Failure)

LARGEST = 2**62
"""Numbers beyond this are nobody's: stores keep 63 bits."""


# --- to messages, in the worker ---


def report_message(report: Report, request_id: int) -> pb.Request:
    return _WRITERS[type(report)](report, request_id)


def _turn_message(report: wk.CompleteTurn, request_id: int) -> pb.Request:
    return pb.Request(
        id=request_id,
        complete_turn=pb.CompleteTurn(
            workflow_execution_id=report.execution_id,
            token=token_message(report.token),
            base_sequence=report.base_seq,
            turns=record_bytes(report.turns),
            steps=[step_message(found) for found in report.steps],
            after_steps=None if report.after_steps is None else record_bytes(report.after_steps),
            waiting_for=None if report.waiting_for is None else record_bytes(report.waiting_for),
            unread=report.unread,
            refused=[pb.RefusedSignal(sequence=seq, reason=reason) for seq, reason in report.refused],
        ),
    )


def _park_message(report: wk.ParkTurn, request_id: int) -> pb.Request:
    part = pb.ParkTurn(
        workflow_execution_id=report.execution_id,
        token=token_message(report.token),
        reason=record_bytes(report.reason),
    )
    return pb.Request(id=request_id, park_turn=part)


def _complete_task_message(report: wk.CompleteTask, request_id: int) -> pb.Request:
    part = pb.CompleteTask(
        workflow_execution_id=report.execution_id,
        task_no=report.task_no,
        token=token_message(report.token),
        result=bytes(report.result),
        output=_output_messages(report.output),
    )
    return pb.Request(id=request_id, complete_task=part)


def _fail_task_message(report: wk.FailTask, request_id: int) -> pb.Request:
    part = pb.FailTask(
        workflow_execution_id=report.execution_id,
        task_no=report.task_no,
        token=token_message(report.token),
        failure=record_bytes(report.failure),
        details=None if report.details is None else bytes(report.details),
        output=_output_messages(report.output),
    )
    return pb.Request(id=request_id, fail_task=part)


def _output_messages(chunks: tuple[wk.OutputChunk, ...]) -> list[pb.OutputChunk]:
    return [pb.OutputChunk(sequence=chunk.seq, data=bytes(chunk.data)) for chunk in chunks]


def _issue_message(report: wk.IssueTaskToken, request_id: int) -> pb.Request:
    part = pb.IssueTaskToken(
        workflow_execution_id=report.execution_id,
        task_no=report.task_no,
        token=token_message(report.token),
        token_hash=report.token_hash,
    )
    return pb.Request(id=request_id, issue_task_token=part)


def _defer_message(report: wk.DeferTask, request_id: int) -> pb.Request:
    part = pb.DeferTask(
        workflow_execution_id=report.execution_id,
        task_no=report.task_no,
        token=token_message(report.token),
        token_hash=report.token_hash,
        details=None if report.details is None else bytes(report.details),
        output=_output_messages(report.output),
    )
    return pb.Request(id=request_id, defer_task=part)


def _heartbeat_message(report: wk.Heartbeat, request_id: int) -> pb.Request:
    part = pb.Heartbeat(
        lease_seconds=report.lease_s,
        tasks=[_beat_message(beat) for beat in report.tasks],
        running=[attempt_message(*found) for found in report.running],
    )
    return pb.Request(id=request_id, heartbeat=part)


def _beat_message(beat: wk.TaskBeat) -> pb.TaskBeat:
    return pb.TaskBeat(
        workflow_execution_id=beat.execution_id,
        task_no=beat.task_no,
        token=token_message(beat.token),
        details=None if beat.details is None else bytes(beat.details),
        progress=beat.progress,
        output=_output_messages(beat.output),
    )


def attempt_message(execution_id: str, task_no: int, held: Token) -> pb.Attempt:
    return pb.Attempt(workflow_execution_id=execution_id, task_no=task_no, token=token_message(held))


def _release_message(report: wk.ReleaseWork, request_id: int) -> pb.Request:
    part = pb.ReleaseWork(
        turns=[pb.HeldTurn(workflow_execution_id=key, token=token_message(held)) for key, held in report.turns],
        tasks=[attempt_message(*found) for found in report.tasks],
    )
    return pb.Request(id=request_id, release=part)


def _answer_message(report: wk.AnswerQuery, request_id: int) -> pb.Request:
    part = pb.AnswerQuery(
        query_id=report.query_id,
        result=bytes(report.result),
        failure=None if report.failure is None else record_bytes(report.failure),
    )
    return pb.Request(id=request_id, answer_query=part)


_WRITERS: dict[type[Any], Callable[[Any, int], pb.Request]] = {
    wk.CompleteTurn: _turn_message,
    wk.ParkTurn: _park_message,
    wk.CompleteTask: _complete_task_message,
    wk.FailTask: _fail_task_message,
    wk.IssueTaskToken: _issue_message,
    wk.DeferTask: _defer_message,
    wk.Heartbeat: _heartbeat_message,
    wk.ReleaseWork: _release_message,
    wk.AnswerQuery: _answer_message,
}


# --- and back, in the server ---


def report(message: pb.Request, org: str, session: str) -> Report | None:
    """The report in a request, on behalf of a session; None for one of a kind this program does not know. Raises
    InvalidRequest."""
    kind = message.WhichOneof("kind")
    reader = _READERS.get(kind or "")
    return None if reader is None else reader(getattr(message, kind), org, session)


def _number(value: int, field: str) -> int:
    if not 0 <= value < LARGEST:
        raise InvalidRequest(f"{field} must be a number from 0 to {LARGEST}, not {value}", field=field)
    return value


def _token(message: pb.Token) -> Token:
    found = token(message)
    _number(found.epoch, "token")
    _number(found.nonce, "token")
    return found


def _turn(part: pb.CompleteTurn, org: str, session: str) -> wk.CompleteTurn:
    unread = tuple(part.unread)
    for seq in unread:
        _number(seq, "unread")
    found = part.turns
    turns = record(found, _TURNS, "turns") if found else ()
    ahead = record(part.after_steps, _TURN, "after_steps") if part.HasField("after_steps") else None
    for turn in turns if ahead is None else (*turns, ahead):
        _number(turn.up_to, "up_to")
        _number(turn.scheduled_at, "scheduled_at")
        _number(turn.started_at, "started_at")
    return wk.CompleteTurn(
        org=org,
        execution_id=part.workflow_execution_id,
        token=_token(part.token),
        base_seq=_number(part.base_sequence, "base_sequence"),
        worker=session,
        turns=turns,
        steps=tuple([step(found) for found in part.steps]),
        after_steps=ahead,
        waiting_for=record(part.waiting_for, _WAITS, "waiting_for") if part.HasField("waiting_for") else None,
        unread=unread,
        refused=tuple((_number(found.sequence, "refused"), found.reason) for found in part.refused),
    )


def _park(part: pb.ParkTurn, org: str, session: str) -> wk.ParkTurn:
    reason = msgspec.structs.replace(record(part.reason, _REASON, "reason"), worker=session)
    return wk.ParkTurn(org=org, execution_id=part.workflow_execution_id, token=_token(part.token), reason=reason)


def _attempt(part: Any, org: str) -> dict[str, Any]:
    """What every report on a task's attempt begins with."""
    return {
        "org": org,
        "execution_id": part.workflow_execution_id,
        "task_no": _number(part.task_no, "task_no"),
        "token": _token(part.token),
    }


def _complete_task(part: pb.CompleteTask, org: str, session: str) -> wk.CompleteTask:
    result = payload(part.result, "result")
    return wk.CompleteTask(**_attempt(part, org), session=session, result=result, output=_output(part))


def _fail_task(part: pb.FailTask, org: str, session: str) -> wk.FailTask:
    failure = record(part.failure, _FAILURE, "failure")
    return wk.FailTask(
        **_attempt(part, org), session=session, failure=failure, details=_details(part), output=_output(part)
    )


def _issue(part: pb.IssueTaskToken, org: str, _: str) -> wk.IssueTaskToken:
    return wk.IssueTaskToken(**_attempt(part, org), token_hash=_hash(part.token_hash))


def _defer(part: pb.DeferTask, org: str, session: str) -> wk.DeferTask:
    made = _hash(part.token_hash)
    return wk.DeferTask(
        **_attempt(part, org), session=session, token_hash=made, details=_details(part), output=_output(part)
    )


def _hash(text: str) -> str:
    if len(text) != 64 or not text.isascii() or not text.isalnum():
        raise InvalidRequest("token_hash must be a SHA-256 in hexadecimal", field="token_hash")
    return text


def _details(part: Any) -> Any:
    return payload(part.details, "details") if part.HasField("details") else None


def _output(part: Any) -> tuple[wk.OutputChunk, ...]:
    return tuple(
        [wk.OutputChunk(_number(chunk.sequence, "output"), payload(chunk.data, "output")) for chunk in part.output]
    )


def _heartbeat(part: pb.Heartbeat, org: str, session: str) -> wk.Heartbeat:
    return wk.Heartbeat(
        org=org,
        session=session,
        lease_s=part.lease_seconds,
        tasks=tuple([_beat(beat) for beat in part.tasks]),
        running=tuple([read_attempt(found) for found in part.running]),
    )


def _beat(part: pb.TaskBeat) -> wk.TaskBeat:
    progress = part.progress if part.HasField("progress") else None
    if progress is not None and not abs(progress) < LARGEST:
        raise InvalidRequest("progress must be a finite number", field="progress")
    return wk.TaskBeat(
        execution_id=part.workflow_execution_id,
        task_no=_number(part.task_no, "task_no"),
        token=_token(part.token),
        details=_details(part),
        progress=progress,
        output=_output(part),
    )


def read_attempt(part: pb.Attempt) -> wk.RunningAttempt:
    return part.workflow_execution_id, _number(part.task_no, "task_no"), _token(part.token)


def _release(part: pb.ReleaseWork, org: str, session: str) -> wk.ReleaseWork:
    return wk.ReleaseWork(
        org=org,
        session=session,
        turns=tuple((found.workflow_execution_id, _token(found.token)) for found in part.turns),
        tasks=tuple(read_attempt(found) for found in part.tasks),
    )


def _answer(part: pb.AnswerQuery, *_: str) -> wk.AnswerQuery:
    return wk.AnswerQuery(
        query_id=part.query_id,
        result=payload(part.result, "result"),
        failure=record(part.failure, _FAILURE, "failure") if part.HasField("failure") else None,
    )


_READERS: dict[str, Callable[[Any, str, str], Report]] = {
    "complete_turn": _turn,
    "park_turn": _park,
    "complete_task": _complete_task,
    "fail_task": _fail_task,
    "issue_task_token": _issue,
    "defer_task": _defer,
    "heartbeat": _heartbeat,
    "release": _release,
    "answer_query": _answer,
}


# --- answers ---


def turn_answer_message(answer: wk.TurnAnswer) -> pb.TurnAnswer:
    return pb.TurnAnswer(
        verdict=answer.verdict,
        first_sequence=answer.first_seq,
        last_sequence=answer.last_seq,
        released=answer.released,
        closed=answer.closed,
    )


def turn_answer(message: pb.TurnAnswer) -> wk.TurnAnswer:
    return wk.TurnAnswer(
        wk.TurnVerdict(message.verdict),
        message.first_sequence,
        message.last_sequence,
        message.released,
        message.closed,
    )


def heartbeat_answer_message(answer: wk.HeartbeatAnswer) -> pb.HeartbeatAnswer:
    stale = [
        pb.StaleAttempt(workflow_execution_id=key, task_no=number, attempt=attempt)
        for key, number, attempt in answer.stale
    ]
    return pb.HeartbeatAnswer(alive=answer.alive, stale=stale)


def heartbeat_answer(message: pb.HeartbeatAnswer) -> wk.HeartbeatAnswer:
    stale = tuple((found.workflow_execution_id, found.task_no, found.attempt) for found in message.stale)
    return wk.HeartbeatAnswer(alive=message.alive, stale=stale)
