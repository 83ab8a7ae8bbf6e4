"""Events of a history as JSON: `{sequence, type, at, data}`. In `data`, whatever ends in `_at` is an instant."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Raw

from holdfast.model.events import EVENT_TYPES, EventBody, HistoryEvent, TurnCompleted, decode_body, encode_body
from holdfast.transport.rest.times import instant, micros


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """One event. What `data` holds depends on the type; docs/events.md lists it."""

    sequence: int
    type: str
    at: datetime
    data: dict[str, Raw] = {}


_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_WAITS: Final = msgspec.json.Decoder(list[dict[str, Any]]).decode
_INSTANT: Final = msgspec.json.Decoder(datetime).decode
_ENCODE: Final = msgspec.json.Encoder().encode

WAITING_FOR: Final = "waiting_for"
TIMES: Final = {
    name: tuple(field.name for field in msgspec.structs.fields(cls) if field.name.endswith("_at"))
    for name, cls in EVENT_TYPES.items()
}


def event_view(event: HistoryEvent) -> EventView:
    body = event.body
    data = _FIELDS(encode_body(body))
    for name in TIMES.get(body.TYPE, ()):
        if name in data and bytes(data[name]) != b"null":
            data[name] = Raw(_ENCODE(instant(int(bytes(data[name])))))
    if isinstance(body, TurnCompleted) and WAITING_FOR in data:
        data[WAITING_FOR] = _with_waits(data[WAITING_FOR], instant)
    return EventView(sequence=event.seq, type=body.TYPE, at=instant(event.at), data=data)


def read_event(view: EventView) -> HistoryEvent:
    data = dict(view.data)
    for name in TIMES.get(view.type, ()):
        if name in data and bytes(data[name]) != b"null":
            data[name] = Raw(b"%d" % micros(_INSTANT(data[name])))
    if view.type == TurnCompleted.TYPE and WAITING_FOR in data:
        data[WAITING_FOR] = _with_waits(data[WAITING_FOR], lambda text: micros(datetime.fromisoformat(text)))
    return HistoryEvent(view.sequence, micros(view.at), _body(view.type, _ENCODE(data)))


def _body(type_name: str, data: bytes) -> EventBody:
    cls = EVENT_TYPES.get(type_name)
    return decode_body(type_name, 1 if cls is None else cls.VERSION, data)


def _with_waits(waits: Raw, convert: Any) -> Raw:
    found = _WAITS(waits)
    for wait in found:
        if wait.get("until_at") is not None:
            wait["until_at"] = convert(wait["until_at"])
    return Raw(_ENCODE(found))
