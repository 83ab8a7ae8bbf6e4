"""Histories: the events of an execution as JSON, `{sequence, type, at, data}`. In `data`, whatever ends in `_at` is an
instant."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw

from holdfast.contract.fields import After, Name, Wait
from holdfast.contract.instants import instant, micros
from holdfast.contract.operation import EXECUTION, GET, Record, Request, operation, public_names
from holdfast.model.events import EVENT_TYPES, EventBody, HistoryEvent, TurnCompleted, decode_body, encode_body
from holdfast.model.keys import Role

_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_WAITS: Final = msgspec.json.Decoder(list[dict[str, Any]]).decode
_INSTANT: Final = msgspec.json.Decoder(datetime).decode
_ENCODE: Final = msgspec.json.Encoder().encode

EXECUTIONS_TAG: Final = "workflow executions"
PAGE: Final = 1_000
WAITING_FOR: Final = "waiting_for"
TIMES: Final = {
    name: tuple(field.name for field in msgspec.structs.fields(cls) if field.name.endswith("_at"))
    for name, cls in EVENT_TYPES.items()
}


class HistoryEntry(Record, frozen=True, kw_only=True, dict=True):
    """One event. What `data` holds depends on the type; docs/events.md lists it."""

    sequence: int
    type: str
    at: datetime
    data: dict[str, Raw] = msgspec.field(default_factory=dict)

    @cached_property
    def event(self) -> HistoryEvent:
        """As programs, replay and its tests have it."""
        return _read(self)


def entry_of(event: HistoryEvent) -> HistoryEntry:
    body = event.body
    data = _FIELDS(encode_body(body))
    for name in TIMES.get(body.TYPE, ()):
        if name in data and bytes(data[name]) != b"null":
            data[name] = Raw(_ENCODE(instant(int(bytes(data[name])))))
    if isinstance(body, TurnCompleted) and WAITING_FOR in data:
        data[WAITING_FOR] = _with_waits(data[WAITING_FOR], instant)
    entry = HistoryEntry(sequence=event.seq, type=body.TYPE, at=instant(event.at), data=data)
    # In this process nobody has to read it back.
    entry.__dict__["event"] = event
    return entry


def _read(entry: HistoryEntry) -> HistoryEvent:
    data = dict(entry.data)
    for name in TIMES.get(entry.type, ()):
        if name in data and bytes(data[name]) != b"null":
            data[name] = Raw(b"%d" % micros(_INSTANT(data[name])))
    if entry.type == TurnCompleted.TYPE and WAITING_FOR in data:
        data[WAITING_FOR] = _with_waits(data[WAITING_FOR], lambda text: micros(datetime.fromisoformat(text)))
    return HistoryEvent(entry.sequence, micros(entry.at), _body(entry.type, _ENCODE(data)))


def _body(type_name: str, data: bytes) -> EventBody:
    cls = EVENT_TYPES.get(type_name)
    return decode_body(type_name, 1 if cls is None else cls.VERSION, data)


def _with_waits(waits: Raw, convert: Any) -> Raw:
    found = _WAITS(waits)
    for wait in found:
        if wait.get("until_at") is not None:
            wait["until_at"] = convert(wait["until_at"])
    return Raw(_ENCODE(found))


class History(Record, frozen=True, kw_only=True):
    """Events in order. `more`: there may be others after the last."""

    events: tuple[HistoryEntry, ...]
    more: bool = False


@operation(
    "workflow_history", GET, f"{EXECUTION}/history", Role.READER, tag=EXECUTIONS_TAG, rpc="GetHistory", waits=True
)
class GetHistory(Request[History], frozen=True, kw_only=True, rename=public_names(types="type")):
    """The events of an execution in order; with `wait`, as soon as there are any.

    `wait`: answered when there is at least one event after `after`, or when so many seconds have passed.
    """

    workflow_execution_id: Name
    after: After = 0
    limit: Annotated[int, Meta(ge=1, le=PAGE)] = PAGE
    types: tuple[str, ...] = ()
    wait: Wait = 0.0


@operation(
    "stream_history",
    GET,
    f"{EXECUTION}/events",
    Role.READER,
    tag=EXECUTIONS_TAG,
    rpc="StreamHistory",
    streams=True,
)
class StreamHistory(Request[HistoryEntry], frozen=True, kw_only=True):
    """The events of an execution as they happen, as server-sent events; goes on after `Last-Event-ID`.

    Ends after the last event of a closed execution. The header `Last-Event-ID` counts more than `after`.
    """

    workflow_execution_id: Name
    after: After = 0
