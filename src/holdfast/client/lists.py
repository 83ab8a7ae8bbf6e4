"""Lists of executions: the part of `Client` that pages through them, and through their histories."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.client.options import statuses, tags, zoned
from holdfast.contract.execution_reads import CountExecutions, ExecutionInfo, ListExecutions, WorkflowPage
from holdfast.contract.history import PAGE, GetHistory
from holdfast.contract.operation import Api
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Status


class Lists:
    """See `Client`."""

    api: Api
    org: str

    async def count_workflows(self) -> dict[Status, int]:
        return (await self.api.call(CountExecutions(org=self.org))).counts

    async def list_workflows(
        self,
        *,
        status: Status | str | Sequence[Status | str] = (),
        kind: str | Sequence[str] = (),
        workflow_id: str | None = None,
        queue: str | None = None,
        metadata: Mapping[str, str] | None = None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> WorkflowPage:
        """One page of executions, newest first: those that match every filter, and have all pairs of `metadata`."""
        return await self.api.call(
            ListExecutions(
                org=self.org,
                statuses=statuses(status),
                kinds=(kind,) if isinstance(kind, str) else tuple(kind),
                workflow_id=workflow_id,
                queue=queue,
                metadata=tags(metadata) or {},
                created_from=zoned(created_from, "created_from"),
                created_before=zoned(created_before, "created_before"),
                cursor=cursor,
                limit=limit,
            )
        )

    async def iter_workflows(self, **filters: Any) -> AsyncIterator[ExecutionInfo]:
        """All executions that match, page by page."""
        cursor: str | None = None
        while True:
            page = await self.list_workflows(**filters, cursor=cursor)
            for found in page.items:
                yield found
            cursor = page.next_cursor
            if cursor is None:
                return

    async def history(
        self, workflow_execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[HistoryEvent]:
        """The events of an execution in order, after a number."""
        events: list[HistoryEvent] = []
        while limit is None or len(events) < limit:
            page = await self.api.call(
                GetHistory(
                    org=self.org,
                    workflow_execution_id=workflow_execution_id,
                    after=after,
                    limit=PAGE if limit is None else min(PAGE, limit - len(events)),
                )
            )
            events += [entry.event for entry in page.events]
            if not page.more:
                break
            after = events[-1].seq
        return events
