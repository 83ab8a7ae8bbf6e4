"""What tasks say, as it is said. A frame with output has its number as `id`, so that a reader who comes back with
`Last-Event-ID` goes on after it. Present attempt and progress are told to whoever comes, and need no number.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from holdfast.api.rest.calls import Call, Stream
from holdfast.api.rest.handlers.streams import last_event_id
from holdfast.api.rest.watches import one_line
from holdfast.contract.task_output import GetTaskOutput, StreamTask, TaskNews
from holdfast.contract.tasks import GetTask
from holdfast.model.standalone import TASK_NO

_ENCODE: Final = msgspec.json.Encoder().encode


async def stream_task(call: Call) -> Stream:
    return await _stream(call, call.execution_id, call.number("task_no"))


async def stream_standalone_task(call: Call) -> Stream:
    found = await call.nouns.api.call(GetTask(org=call.org, task_id=call.path["task_execution_id"]))
    return await _stream(call, found.workflow_execution_id, TASK_NO)


async def _stream(call: Call, execution_id: str, task_no: int) -> Stream:
    org, after, api = call.org, last_event_id(call), call.nouns.api
    # Unknown executions and tasks are refused before the stream begins.
    await api.call(GetTaskOutput(org=org, workflow_execution_id=execution_id, task_no=task_no, after=after, limit=1))
    request = StreamTask(org=org, workflow_execution_id=execution_id, task_no=task_no, after=after)
    return Stream(_frames(api.stream(request)))


async def _frames(pieces: AsyncIterator[list[TaskNews]]) -> AsyncIterator[bytes]:
    async for news in pieces:
        yield b"".join([_frame(one) for one in news])


def _frame(news: TaskNews) -> bytes:
    number = b"id: %d\n" % news.seq if news.seq else b""
    return b"%bevent: %b\ndata: %b\n\n" % (number, news.kind.encode(), one_line(_ENCODE(news)))
