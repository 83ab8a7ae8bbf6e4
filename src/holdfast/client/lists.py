"""Lists of executions: the part of `Client` that pages through them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.client.options import statuses, tags
from holdfast.client.views import ExecutionInfo, WorkflowPage, microseconds, view_of
from holdfast.contract import executions as ex
from holdfast.model.executions import WorkflowStatus


class Lists:
    """See `Client`."""

    executions: ex.Executions
    org: str

    async def count_workflows(self) -> dict[WorkflowStatus, int]:
        return await self.executions.count(self.org)

    async def list_workflows(
        self,
        *,
        status: WorkflowStatus | str | Sequence[WorkflowStatus | str] = (),
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
        page = await self.executions.list(
            ex.ListExecutions(
                org=self.org,
                statuses=statuses(status),
                kinds=(kind,) if isinstance(kind, str) else tuple(kind),
                workflow_id=workflow_id,
                queue=queue,
                metadata=tuple(sorted((tags(metadata) or {}).items())),
                created_from=None if created_from is None else microseconds(created_from, "created_from"),
                created_before=None if created_before is None else microseconds(created_before, "created_before"),
                cursor=cursor,
                limit=limit,
            )
        )
        return WorkflowPage(tuple(view_of(found) for found in page.items), page.next_cursor)

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
