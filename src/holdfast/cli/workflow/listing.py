"""`holdfast workflow list`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.inputs import PAST, pairs
from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.executions import ListExecutions
    from holdfast.model.executions import Execution

PAGE = 200
WIDE = 140
"""A terminal that is narrower has no room for execution ids beside workflow ids."""
STATUSES = (
    "PENDING",
    "RUNNING",
    "WAITING",
    "STUCK",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TERMINATED",
    "TIMED_OUT",
    "CONTINUED",
)


@click.command("list")
@click.option(
    "--status", "-s", multiple=True, type=click.Choice(STATUSES, case_sensitive=False), help="Also several times."
)
@click.option("--open", "only_open", is_flag=True, help="Those that are not closed.")
@click.option("--kind", "-k", multiple=True, help="Also several times.")
@click.option("--workflow-id", metavar="ID", help="All executions of this workflow id.")
@click.option("--queue", help="Those of this queue.")
@click.option("--metadata", "-m", multiple=True, metavar="KEY=VALUE", callback=pairs, help="All of them must be there.")
@click.option("--since", type=PAST, help="Created then or later: a time, or 2h for the last two hours.")
@click.option("--before", type=PAST, help="Created before.")
@click.option("--limit", "-n", type=click.IntRange(0), default=50, show_default=True, help="0 for all.")
@connected
def list_(target: Target, *, limit: int, **filters: Any) -> None:
    """List executions, the newest first. With --json, one object on each line."""
    from holdfast.transport.rest.views import execution_view

    async def run(client: Client) -> None:
        rows: list[list[Shown]] = []
        more = False
        async for execution in executions(client, limit + 1 if limit else 0, **filters):
            if limit and len(rows) == limit:
                more = True
                break
            rows.append(row(execution))
            if target.out.as_json:
                target.out.item(execution_view(execution))
        if not target.out.as_json:
            _draw(target, rows)
        if more:
            target.out.note(f"there are more than these {limit}: --limit 0 shows all")

    target.read(run)


def _draw(target: Target, rows: list[list[Shown]]) -> None:
    headers = ["WORKFLOW ID", "STATUS", "KIND", "STARTED", "EVENTS", "EXECUTION ID", "WAITS FOR"]
    if target.out.width is not None and target.out.width < WIDE:
        headers.remove("EXECUTION ID")
        rows = [[*row[:-2], row[-1]] for row in rows]
    target.out.table(headers, rows, empty=f"no executions match in org {target.org!r}")


async def executions(client: Client, limit: int, **filters: Any) -> AsyncIterator[Execution]:
    """All that match, page by page; `limit` 0 for no limit."""
    from msgspec import structs

    request = _request(client.org, **filters)
    left = limit or None
    cursor: str | None = None
    while True:
        size = PAGE if left is None else min(PAGE, left)
        page = await client.executions.list(structs.replace(request, cursor=cursor, limit=size))
        for execution in page.items:
            yield execution
        cursor = page.next_cursor
        left = None if left is None else left - len(page.items)
        if cursor is None or left == 0:
            return


def _request(
    org: str,
    *,
    status: tuple[str, ...] = (),
    only_open: bool = False,
    kind: tuple[str, ...] = (),
    workflow_id: str | None = None,
    queue: str | None = None,
    metadata: dict[str, str] | None = None,
    since: datetime | None = None,
    before: datetime | None = None,
) -> ListExecutions:
    from holdfast.contract.executions import ListExecutions
    from holdfast.model.executions import OPEN_STATUSES, WorkflowStatus
    from holdfast.transport.rest.times import micros_or_none

    statuses = {WorkflowStatus(name.upper()) for name in status} | (OPEN_STATUSES if only_open else set())
    return ListExecutions(
        org=org,
        statuses=tuple(sorted(statuses)),
        kinds=kind,
        workflow_id=workflow_id,
        queue=queue,
        metadata=tuple(sorted((metadata or {}).items())),
        created_from=micros_or_none(since),
        created_before=micros_or_none(before),
    )


def row(execution: Execution) -> list[Shown]:
    from holdfast.cli.formatting import day_time, short, waits
    from holdfast.cli.output import Cell, status_cell
    from holdfast.model.executions import WorkflowStatus

    status = execution.status
    reason = waits(execution.waiting_for) if status is WorkflowStatus.WAITING else ""
    if execution.stuck is not None:
        reason = f"{execution.stuck.code}: {execution.stuck.message}"
    return [
        execution.workflow_id,
        status_cell(status),
        execution.kind,
        Cell(day_time(execution.created_at), "dim"),
        str(execution.last_seq),
        Cell(execution.id, "dim"),
        Cell(short(reason), "red" if execution.stuck is not None else ""),
    ]
