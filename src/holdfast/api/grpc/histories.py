"""Pages of a history that fit into a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.contract.workers import Workers
from holdfast.errors import InvalidRequest
from holdfast.model.events import HistoryEvent
from holdfast.model.names import check_name
from holdfast.wire.grpc import holdfast_pb2 as pb
from holdfast.wire.grpc.events import event_message, snapshot_message

LARGEST_PAGE = 1_000
USUAL_PAGE = 100
PAGE_BYTES = 2 * 1024 * 1024
"""Callers take messages of 4 MiB unless told otherwise. One event that is larger comes alone."""
FAR = 2**62

Read = Callable[[str, str, int, int | None], Awaitable[list[HistoryEvent]]]


async def history_page(read: Read, org: str, message: Any, most: int) -> pb.GetHistoryResponse:
    limit = _limit(message, most)
    return _page(await read(org, message.workflow_execution_id, message.after, limit + 1), limit)


async def loaded_page(workers: Workers, org: str, message: Any, most: int) -> pb.GetHistoryResponse:
    """The first page for a program that is rebuilt: with its snapshot, if it has one."""
    limit = _limit(message, most)
    past = await workers.load(org, message.workflow_execution_id, limit + 1)
    page = _page(past.events, limit)
    if past.snapshot is not None:
        page.snapshot.CopyFrom(snapshot_message(past.snapshot))
    return page


def _limit(message: Any, most: int) -> int:
    check_name(message.workflow_execution_id, "workflow_execution_id")
    if not 0 <= message.after < FAR:
        raise InvalidRequest("after must be the number of an event, or 0", field="after")
    if not 0 <= message.limit <= most:
        raise InvalidRequest(f"limit must lie between 1 and {most}; 0 means {USUAL_PAGE}", field="limit")
    return message.limit or USUAL_PAGE


def _page(events: list[HistoryEvent], limit: int) -> pb.GetHistoryResponse:
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
