"""Work for a worker as messages and back, in the order in which it has to be taken in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from holdfast.contract.workers import (
    ExecutionEnded,
    LostTurn,
    PendingEvents,
    QueryWork,
    TaskStop,
    TaskWork,
    TurnWork,
    Work,
)
from holdfast.errors import EventTooNew
from holdfast.model.values import NULL, TaskTimeouts, Token
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc.events import event_message, events

TokenKey = Callable[[str], bytes]
"""What the tokens of an execution's promises are made from: see model.tokens."""


def token_message(token: Token) -> pb.Token:
    return pb.Token(epoch=token.epoch, nonce=token.nonce)


def token(message: pb.Token) -> Token:
    return Token(message.epoch, message.nonce)


def work_message(work: Work, token_key: TokenKey) -> pb.Work:
    return _WRITERS[type(work)](work, token_key)


def _turn_message(work: TurnWork, token_key: TokenKey) -> pb.Work:
    return pb.Work(
        turn=pb.TurnWork(
            workflow_execution_id=work.execution_id,
            workflow_id=work.workflow_id,
            workflow_kind=work.kind,
            workflow_version=work.version,
            token=token_message(work.token),
            last_sequence=work.last_seq,
            events=[event_message(event) for event in work.events],
            scheduled_at=work.scheduled_at,
            token_key=token_key(work.execution_id),
        )
    )


def _pending_events_message(work: PendingEvents, _: TokenKey) -> pb.Work:
    return pb.Work(
        news=pb.News(
            workflow_execution_id=work.execution_id,
            last_sequence=work.last_seq,
            events=[event_message(event) for event in work.events],
        )
    )


def _task_message(work: TaskWork, token_key: TokenKey) -> pb.Work:
    timeouts = work.timeouts
    return pb.Work(
        task=pb.TaskWork(
            workflow_execution_id=work.execution_id,
            task_no=work.task_no,
            kind=work.kind,
            token=token_message(work.token),
            input=bytes(work.input),
            start_to_close_seconds=timeouts.start_to_close_s,
            schedule_to_close_seconds=timeouts.schedule_to_close_s,
            heartbeat_seconds=timeouts.heartbeat_s,
            scheduled_at=work.scheduled_at,
            started_at=work.started_at,
            details=None if work.details is None else bytes(work.details),
            token_key=token_key(work.execution_id),
            output_sequence=work.output_seq,
        )
    )


def _stop_message(work: TaskStop, _: TokenKey) -> pb.Work:
    return pb.Work(
        task_stop=pb.TaskStop(
            workflow_execution_id=work.execution_id, task_no=work.task_no, attempt=work.attempt, reason=work.reason
        )
    )


def _ended_message(work: ExecutionEnded, _: TokenKey) -> pb.Work:
    return pb.Work(ended=pb.ExecutionEnded(workflow_execution_id=work.execution_id))


def _lost_message(work: LostTurn, _: TokenKey) -> pb.Work:
    return pb.Work(lost_turn=pb.LostTurn(workflow_execution_id=work.execution_id, epoch=work.epoch))


def _query_message(work: QueryWork, token_key: TokenKey) -> pb.Work:
    return pb.Work(
        query=pb.QueryWork(
            query_id=work.query_id,
            workflow_execution_id=work.execution_id,
            workflow_kind=work.kind,
            workflow_version=work.version,
            query_name=work.query_name,
            input=bytes(work.input) if work.has_input else None,
            as_of=work.as_of,
            last_sequence=work.last_seq,
            token_key=token_key(work.execution_id),
        )
    )


_WRITERS: dict[type[Any], Callable[[Any, TokenKey], pb.Work]] = {
    TurnWork: _turn_message,
    PendingEvents: _pending_events_message,
    TaskWork: _task_message,
    TaskStop: _stop_message,
    ExecutionEnded: _ended_message,
    LostTurn: _lost_message,
    QueryWork: _query_message,
}


# --- and back, in the worker ---


def work(message: pb.Work) -> Work | None:
    """None for a kind that this program does not know."""
    kind = message.WhichOneof("kind")
    return None if kind is None else _READERS[kind](getattr(message, kind))


def key_of(message: pb.Work) -> tuple[str, bytes] | None:
    """The execution and the key for its tokens, where there is one."""
    kind = message.WhichOneof("kind")
    if kind not in {"turn", "task", "query"}:
        return None
    part = getattr(message, kind)
    return part.workflow_execution_id, part.token_key


def _turn(part: pb.TurnWork) -> TurnWork:
    try:
        found = events(part.events)
    except EventTooNew:
        # Newer than this program. Without events they are read from the history, and what can't be read is told there.
        found = ()
    return TurnWork(
        part.workflow_execution_id,
        part.workflow_id,
        part.workflow_kind,
        part.workflow_version,
        token(part.token),
        part.last_sequence,
        found,
        part.scheduled_at,
    )


def _pending_events(part: pb.News) -> PendingEvents:
    try:
        found = events(part.events)
    except EventTooNew:
        found = ()
    return PendingEvents(part.workflow_execution_id, part.last_sequence, found)


def _task(part: pb.TaskWork) -> TaskWork:
    return TaskWork(
        execution_id=part.workflow_execution_id,
        task_no=part.task_no,
        kind=part.kind,
        token=token(part.token),
        input=Raw(part.input) if part.input else NULL,
        timeouts=TaskTimeouts(
            start_to_close_s=part.start_to_close_seconds,
            schedule_to_close_s=part.schedule_to_close_seconds if part.HasField("schedule_to_close_seconds") else None,
            heartbeat_s=part.heartbeat_seconds if part.HasField("heartbeat_seconds") else None,
        ),
        scheduled_at=part.scheduled_at,
        started_at=part.started_at,
        details=Raw(part.details) if part.HasField("details") else None,
        output_seq=part.output_sequence,
    )


def _stop(part: pb.TaskStop) -> TaskStop:
    return TaskStop(part.workflow_execution_id, part.task_no, part.attempt, part.reason)


def _ended(part: pb.ExecutionEnded) -> ExecutionEnded:
    return ExecutionEnded(part.workflow_execution_id)


def _lost(part: pb.LostTurn) -> LostTurn:
    return LostTurn(part.workflow_execution_id, part.epoch)


def _query(part: pb.QueryWork) -> QueryWork:
    has_input = part.HasField("input")
    return QueryWork(
        query_id=part.query_id,
        execution_id=part.workflow_execution_id,
        kind=part.workflow_kind,
        version=part.workflow_version,
        query_name=part.query_name,
        input=Raw(part.input) if has_input else NULL,
        has_input=has_input,
        as_of=part.as_of if part.HasField("as_of") else None,
        last_seq=part.last_sequence,
    )


_READERS: dict[str, Callable[[Any], Work]] = {
    "turn": _turn,
    "news": _pending_events,
    "task": _task,
    "task_stop": _stop,
    "ended": _ended,
    "lost_turn": _lost,
    "query": _query,
}
