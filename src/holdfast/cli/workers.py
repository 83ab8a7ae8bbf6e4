"""`holdfast workers list`, `pause`, `resume` and `drain`: the sessions that a database knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from holdfast.cli.queue import MOST, reason_option
from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.deployments import WorkerView

_worker = click.argument("worker_id", metavar="WORKER_ID")


@click.group()
def workers() -> None:
    """See who works; pause or drain a worker. `holdfast worker APP` runs one."""


@workers.command("list")
@connected
def list_(target: Target) -> None:
    """List the worker sessions, the youngest first; also one that was lost and is not missed yet. With --json, one
    object on each line."""
    from holdfast.transport.rest.system_views import worker_view

    async def run(client: Client) -> tuple[list[WorkerView], int]:
        assert client.deployments is not None, "the client of a command has all nouns"
        return await client.deployments.workers(client.org, MOST), await target.now()

    found, now = target.read(run)
    if target.out.as_json:
        for one in found:
            target.out.item(worker_view(one))
        return
    headers = ("WORKER ID", "HOST", "PID", "STARTED", "STATE")
    target.out.table(headers, [_row(one, now) for one in found], empty="no worker is there: holdfast worker APP")


def _row(found: WorkerView, now: int) -> list[Shown]:
    from holdfast.cli.formatting import since
    from holdfast.cli.output import Cell

    row, pause = found.row, found.pause
    state = Cell("works", "green")
    if row.lease_until_at <= now:
        state = Cell(f"lost since {since(row.lease_until_at, now)}", "red")
    elif pause is not None:
        why = f": {pause.reason}" if pause.reason else ""
        state = Cell(f"{pause.mode.value} since {since(pause.since_at, now)}{why}", "yellow")
    return [row.id, row.host, str(row.pid), Cell(since(row.started_at, now), "dim"), state]


@workers.command()
@_worker
@reason_option
@connected
def pause(target: Target, worker_id: str, *, reason: str) -> None:
    """Hand out nothing to WORKER_ID until it is resumed. What it has it finishes."""
    _change(target, worker_id, "paused", lambda client: client.pause_worker(worker_id, reason=reason))


@workers.command()
@_worker
@connected
def resume(target: Target, worker_id: str) -> None:
    """Hand out work to WORKER_ID again."""
    _change(target, worker_id, None, lambda client: client.resume_worker(worker_id))


@workers.command()
@_worker
@reason_option
@connected
def drain(target: Target, worker_id: str, *, reason: str) -> None:
    """Hand out nothing more to WORKER_ID, for good: it can be stopped when it has finished what it has."""
    _change(target, worker_id, "draining", lambda client: client.drain_worker(worker_id, reason=reason))


def _change(target: Target, worker_id: str, state: str | None, change: Callable[[Client], Awaitable[bool]]) -> None:
    changed = target.run(change)
    told = f"is {state or 'at work again'}" if changed else f"was {state or 'at work'} before"
    view = {"worker_id": worker_id, "state": state or "works", "changed": changed}
    target.out.answer(view, f"worker {worker_id} {told}")
