"""`holdfast workflow list`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.doors import Door, connected
from holdfast.cli.inputs import PAST, pairs

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.execution_reads import ExecutionInfo, ListExecutions

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
def list_(door: Door, *, limit: int, **filters: Any) -> None:
    """List executions, the newest first. With --json, one object on each line."""

    async def run(client: Client) -> None:
        rows: list[list[Shown]] = []
        more = False
        async for execution in executions(client, limit + 1 if limit else 0, **filters):
            if limit and len(rows) == limit:
                more = True
                break
            rows.append(row(execution))
            if door.out.as_json:
                door.out.item(execution)
        if not door.out.as_json:
            _draw(door, rows)
        if more:
            door.out.note(f"there are more than these {limit}: --limit 0 shows all")

    door.look(run)


def _draw(door: Door, rows: list[list[Shown]]) -> None:
    headers = ["WORKFLOW ID", "STATUS", "KIND", "STARTED", "EVENTS", "EXECUTION ID", "WAITS FOR"]
    if door.out.width is not None and door.out.width < WIDE:
        headers.remove("EXECUTION ID")
        rows = [[*row[:-2], row[-1]] for row in rows]
    door.out.table(headers, rows, empty=f"no executions match in org {door.org!r}")


async def executions(client: Client, limit: int, **filters: Any) -> AsyncIterator[ExecutionInfo]:
    """All that match, page by page; `limit` 0 for no limit."""
    from msgspec import structs

    request = _request(client.org, **filters)
    left = limit or None
    cursor: str | None = None
    while True:
        size = PAGE if left is None else min(PAGE, left)
        page = await client.api.call(structs.replace(request, cursor=cursor, limit=size))
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
    from holdfast.contract.execution_reads import ListExecutions
    from holdfast.model.executions import OPEN_STATUSES, Status

    statuses = {Status(name.upper()) for name in status} | (OPEN_STATUSES if only_open else set())
    return ListExecutions(
        org=org,
        statuses=tuple(sorted(statuses)),
        kinds=kind,
        workflow_id=workflow_id,
        queue=queue,
        metadata=metadata or {},
        created_from=since,
        created_before=before,
    )


def row(execution: ExecutionInfo) -> list[Shown]:
    from holdfast.cli.output import Cell, status_cell
    from holdfast.cli.words import day_time, failure, short, waits
    from holdfast.model.executions import Status

    reason = waits(execution.waiting_for)
    if execution.stuck is not None:
        reason = f"{execution.stuck.code}: {execution.stuck.message}"
    elif execution.failure is not None:
        reason = failure(execution.failure)
    return [
        execution.workflow_id,
        status_cell(execution.status),
        execution.kind,
        Cell(day_time(execution.created_at), "dim"),
        str(execution.history_length),
        Cell(execution.id, "dim"),
        Cell(short(reason), "red" if execution.stuck is not None or execution.status is Status.FAILED else ""),
    ]
