"""`holdfast workers list`, `pause`, `resume` and `drain`: the sessions that a database knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from holdfast.cli.doors import Door, connected
from holdfast.cli.queue import MOST, reason_option

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.queues import WorkerInfo

_worker = click.argument("worker_id", metavar="WORKER_ID")


@click.group()
def workers() -> None:
    """See who works; pause or drain a worker. `holdfast worker APP` runs one."""


@workers.command("list")
@connected
def list_(door: Door) -> None:
    """List the worker sessions, the youngest first; also one that was lost and is not missed yet. With --json, one
    object on each line."""

    async def run(client: Client) -> tuple[list[WorkerInfo], int]:
        return await client.list_workers(limit=MOST), await door.now()

    found, now = door.look(run)
    if door.out.as_json:
        for one in found:
            door.out.item(one)
        return
    headers = ("WORKER ID", "HOST", "PID", "STARTED", "STATE")
    door.out.table(headers, [_row(one, now) for one in found], empty="no worker is there: holdfast worker APP")


def _row(found: WorkerInfo, now: int) -> list[Shown]:
    from holdfast.cli.output import Cell
    from holdfast.cli.words import since
    from holdfast.contract.instants import micros

    pause = found.pause
    state = Cell("works", "green")
    if micros(found.lease_until) <= now:
        state = Cell(f"lost since {since(found.lease_until, now)}", "red")
    elif pause is not None:
        why = f": {pause.reason}" if pause.reason else ""
        state = Cell(f"{pause.mode.value} since {since(pause.since, now)}{why}", "yellow")
    return [found.id, found.host, str(found.pid), Cell(since(found.started_at, now), "dim"), state]


@workers.command()
@_worker
@reason_option
@connected
def pause(door: Door, worker_id: str, *, reason: str) -> None:
    """Hand out nothing to WORKER_ID until it is resumed. What it has it finishes."""
    _change(door, worker_id, "paused", lambda client: client.pause_worker(worker_id, reason=reason))


@workers.command()
@_worker
@connected
def resume(door: Door, worker_id: str) -> None:
    """Hand out work to WORKER_ID again."""
    _change(door, worker_id, None, lambda client: client.resume_worker(worker_id))


@workers.command()
@_worker
@reason_option
@connected
def drain(door: Door, worker_id: str, *, reason: str) -> None:
    """Hand out nothing more to WORKER_ID, for good: it can be stopped when it has finished what it has."""
    _change(door, worker_id, "draining", lambda client: client.drain_worker(worker_id, reason=reason))


def _change(door: Door, worker_id: str, state: str | None, change: Callable[[Client], Awaitable[bool]]) -> None:
    changed = door.run(change)
    told = f"is {state or 'at work again'}" if changed else f"was {state or 'at work'} before"
    view = {"worker_id": worker_id, "state": state or "works", "changed": changed}
    door.out.answer(view, f"worker {worker_id} {told}")
