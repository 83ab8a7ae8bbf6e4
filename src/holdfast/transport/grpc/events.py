"""History events as messages and back."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.errors import InvalidRequest
from holdfast.model.events import (
    EVENT_TYPES,
    HistoryEvent,
    StepCompleted,
    StepFailed,
    StepFinished,
    decode_body,
    encode_body,
)
from holdfast.transport.grpc import holdfast_pb2 as pb


def event_message(event: HistoryEvent) -> pb.HistoryEvent:
    body = event.body
    return pb.HistoryEvent(
        sequence=event.seq, at=event.at, type=body.TYPE, version=body.VERSION, body=encode_body(body)
    )


def event(message: pb.HistoryEvent) -> HistoryEvent:
    """Raises EventTooNew if it is of a newer Holdfast."""
    return HistoryEvent(message.sequence, message.at, decode_body(message.type, message.version, message.body))


def events(messages: Iterable[pb.HistoryEvent]) -> tuple[HistoryEvent, ...]:
    return tuple([event(message) for message in messages])


def step_message(step: StepFinished) -> pb.HistoryEvent:
    """What a worker has to record has no number yet."""
    return pb.HistoryEvent(type=step.TYPE, version=step.VERSION, body=encode_body(step))


def step(message: pb.HistoryEvent) -> StepFinished:
    """A finished step, from a worker. Raises InvalidRequest."""
    cls = EVENT_TYPES.get(message.type)
    if cls not in {StepCompleted, StepFailed} or message.version != cls.VERSION:
        raise InvalidRequest(f"a finished step can't be a {message.type!r:.50}", field="steps")
    try:
        message.body.decode()
        body = decode_body(message.type, message.version, message.body)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"a finished step can't be read: {error}"[:500], field="steps") from error
    assert isinstance(body, StepCompleted | StepFailed), "one of these types was asked for"
    return body
