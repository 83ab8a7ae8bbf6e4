"""Histories for programs that are rebuilt, read from a server page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from holdfast.contract.workers import LoadedHistory
from holdfast.model.events import HistoryEvent
from holdfast.wire.grpc import holdfast_pb2 as pb
from holdfast.wire.grpc.events import event, snapshot

HISTORY_PAGE: Final = 1_000

ReadPage = Callable[[pb.GetHistoryRequest], Awaitable[pb.GetHistoryResponse]]


async def read_history(
    read: ReadPage, org: str, execution_id: str, after: int = 0, limit: int | None = None
) -> list[HistoryEvent]:
    found: list[HistoryEvent] = []
    while limit is None or len(found) < limit:
        size = HISTORY_PAGE if limit is None else min(HISTORY_PAGE, limit - len(found))
        page = await read(pb.GetHistoryRequest(org_id=org, workflow_execution_id=execution_id, after=after, limit=size))
        found.extend(event(message) for message in page.events)
        if not page.more or not page.events:
            break
        after = found[-1].seq
    return found


async def load_history(read: ReadPage, org: str, execution_id: str, limit: int | None = None) -> LoadedHistory:
    """A server that knows no snapshots gives the first page of the whole history."""
    size = HISTORY_PAGE if limit is None else min(HISTORY_PAGE, limit)
    page = await read(
        pb.GetHistoryRequest(org_id=org, workflow_execution_id=execution_id, limit=size, with_snapshot=True)
    )
    found = [event(message) for message in page.events]
    known = snapshot(page.snapshot, execution_id) if page.HasField("snapshot") else None
    if page.more and found and (limit is None or len(found) < limit):
        rest = None if limit is None else limit - len(found)
        found += await read_history(read, org, execution_id, found[-1].seq, rest)
    return LoadedHistory(known, found)
