"""Pages of a history that fit into a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.errors import InvalidRequest
from holdfast.model.events import HistoryEvent
from holdfast.model.validation import check_name
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc.events import event_message

LARGEST_PAGE = 1_000
USUAL_PAGE = 100
PAGE_BYTES = 2 * 1024 * 1024
"""Callers take messages of 4 MiB unless told otherwise. One event that is larger comes alone."""
FAR = 2**62

Read = Callable[[str, str, int, int | None], Awaitable[list[HistoryEvent]]]


async def history_page(read: Read, org: str, message: Any, most: int) -> pb.GetHistoryResponse:
    check_name(message.workflow_execution_id, "workflow_execution_id")
    if not 0 <= message.after < FAR:
        raise InvalidRequest("after must be the number of an event, or 0", field="after")
    if not 0 <= message.limit <= most:
        raise InvalidRequest(f"limit must lie between 1 and {most}; 0 means {USUAL_PAGE}", field="limit")
    limit = message.limit or USUAL_PAGE
    events = await read(org, message.workflow_execution_id, message.after, limit + 1)
    page = pb.GetHistoryResponse(more=len(events) > limit)
    size = 0
    for event in events[:limit]:
        told = event_message(event)
        size += told.ByteSize()
        if size > PAGE_BYTES and page.events:
            page.more = True
            break
        page.events.append(told)
    return page
