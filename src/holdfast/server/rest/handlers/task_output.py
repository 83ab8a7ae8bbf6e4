"""What tasks say: pages of it, and as it is said.

A frame with output has its number as `id`, so that a reader who comes back with `Last-Event-ID` goes on after it.
Present attempt and progress are told to whoever comes, and need no number.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from holdfast.contract.task_output import TaskFeedItem
from holdfast.model.standalone import TASK_NO
from holdfast.server.rest.calls import Call, Stream
from holdfast.server.rest.handlers.streams import last_event_id
from holdfast.server.rest.list_streams import one_line
from holdfast.transport.rest import task_output_views as v

_ENCODE: Final = msgspec.json.Encoder().encode


async def task_output(call: Call) -> v.OutputPageView:
    return await _page(call, call.execution_id, call.number("task_no"))


async def _page(call: Call, execution_id: str, task_no: int) -> v.OutputPageView:
    query = call.query
    page = await call.engine_api.executions.task_output(call.org, execution_id, task_no, query.after, query.limit)
    return v.OutputPageView(
        workflow_execution_id=execution_id,
        task_number=task_no,
        chunks=v.chunk_views(page.chunks, query.after),
        more=page.more,
    )


async def stream_task(call: Call) -> Stream:
    return await _stream(call, call.execution_id, call.number("task_no"))


async def standalone_task_output(call: Call) -> v.OutputPageView:
    return await _page(call, await _execution_of(call), TASK_NO)


async def stream_standalone_task(call: Call) -> Stream:
    return await _stream(call, await _execution_of(call), TASK_NO)


async def _execution_of(call: Call) -> str:
    return (await call.engine_api.tasks.get(call.org, call.path["task_execution_id"])).workflow_execution_id


async def _stream(call: Call, execution_id: str, task_no: int) -> Stream:
    after = last_event_id(call)
    executions = call.engine_api.executions
    # Unknown executions and tasks are refused before the stream begins.
    await executions.task_output(call.org, execution_id, task_no, after, 1)
    return Stream(_frames(executions.follow_task(call.org, execution_id, task_no, after)))


async def _frames(pieces: AsyncIterator[list[TaskFeedItem]]) -> AsyncIterator[bytes]:
    async for item in pieces:
        yield b"".join([_frame(one) for one in item])


def _frame(item: TaskFeedItem) -> bytes:
    number = b"id: %d\n" % item.seq if item.seq else b""
    data = one_line(_ENCODE(v.feed_item_view(item)))
    return b"%bevent: %b\ndata: %b\n\n" % (number, item.kind.encode(), data)
