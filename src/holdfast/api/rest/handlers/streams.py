"""Server-sent events: histories and lists as they change.

A frame of a history has the number of its event as `id`, so that a reader who comes back with `Last-Event-ID` misses
nothing and gets nothing twice. When the execution is closed and told to the end, `event: end` says so.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from holdfast.api.rest.calls import Call, Stream
from holdfast.api.rest.watches import one_line
from holdfast.contract.execution_reads import GetWorkflow, ListExecutions, StreamExecutions
from holdfast.contract.history import entry_of
from holdfast.errors import InvalidRequest
from holdfast.model.events import HistoryEvent
from holdfast.wire.rest.request_shapes import shape_of

_ENCODE: Final = msgspec.json.Encoder().encode
_FRAMES: Final[OrderedDict[tuple[str, int], tuple[HistoryEvent, bytes]]] = OrderedDict()
REMEMBERED: Final = 512
REMEMBERED_BYTES: Final = 16_384
END: Final = b"event: end\ndata: {}\n\n"


async def stream_history(call: Call) -> Stream:
    after = last_event_id(call)
    # Unknown executions are refused before the stream begins.
    await call.nouns.api.call(GetWorkflow(org=call.org, workflow_execution_id=call.execution_id))
    return Stream(_history(call, after))


def last_event_id(call: Call) -> int:
    """The number after which a reader goes on."""
    text = call.last_event_id
    if text is None:
        after: int = call.query.after
        return after
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InvalidRequest("Last-Event-ID must be the number of an event", field="Last-Event-ID")
    return int(text)


async def _history(call: Call, after: int) -> AsyncIterator[bytes]:
    async for events in call.nouns.feeds.history(call.org, call.execution_id, after):
        yield b"".join([_frame(call.execution_id, event) for event in events])
    yield END


def _frame(execution_id: str, event: HistoryEvent) -> bytes:
    """Made once for all who follow the execution."""
    key = (execution_id, event.seq)
    found = _FRAMES.get(key)
    if found is not None and found[0] is event:
        return found[1]
    data = one_line(_ENCODE(entry_of(event)))
    frame = b"id: %d\nevent: %b\ndata: %b\n\n" % (event.seq, event.type.encode(), data)
    if len(frame) <= REMEMBERED_BYTES:
        _FRAMES[key] = (event, frame)
        if len(_FRAMES) > REMEMBERED:
            _FRAMES.popitem(last=False)
    return frame


async def stream_workflows(call: Call) -> Stream:
    row = call.operation.row
    assert row is not None, "it was made from a row"
    asked = shape_of(row).request(call.org, call.path, call.query, key=None, by=None, address="")
    request = ListExecutions(**{name: getattr(asked, name) for name in StreamExecutions.__struct_fields__})
    await call.nouns.api.call(request)
    return Stream(call.lists.follow(request))
