"""`holdfast workflow show`: all that somebody needs who was called because of one workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.doors import Door, connected, found

if TYPE_CHECKING:
    from holdfast.cli.diagnosis import Examined, Finding
    from holdfast.cli.output import Output, Shown
    from holdfast.client.client import Client

_TRACEBACK_LINES = 30


@click.command()
@click.argument("id_", metavar="ID")
@connected
def show(door: Door, id_: str) -> None:
    """Show where ID stands: what it waits for and since when, its tasks with their last failure, who holds it, why it
    is stuck, its last events, and what to do next."""

    async def run(client: Client) -> None:
        seen = await look(client, id_, await door.now())
        if door.out.as_json:
            door.out.document(page(seen))
        else:
            draw(door.out, seen)

    door.look(run)


async def look(client: Client, id_: str, now: int) -> Examined:
    from holdfast.cli.diagnosis import examine

    return await examine(client, await found(client, id_), now)


def page(seen: Examined) -> dict[str, Any]:
    """As `show` prints it for scripts."""
    from holdfast.cli.diagnosis import findings
    from holdfast.contract.history import entry_of

    return {
        "execution": seen.execution,
        "worker": seen.execution.worker,
        "findings": findings(seen),
        "tasks": seen.tasks,
        "timers": seen.timers,
        "promises": seen.promises,
        "waits": seen.waits,
        "last_events": [entry_of(event) for event in seen.last_events],
    }


def draw(out: Output, seen: Examined) -> None:
    from holdfast.cli.diagnosis import findings
    from holdfast.cli.output import Cell, status_cell
    from holdfast.cli.words import since

    execution = seen.execution
    out.line(Cell(execution.workflow_id, "bold"), "  ", status_cell(execution.status))
    out.field("execution", execution.id)
    out.field("kind", f"{execution.kind} version {execution.version}, queue {execution.queue}")
    out.field("started", since(execution.created_at, seen.now))
    if execution.closed_at is not None:
        out.field("closed", since(execution.closed_at, seen.now))
    else:
        out.field("last change", since(execution.updated_at, seen.now))
    _draw_relations(out, seen)
    for finding in findings(seen):
        draw_finding(out, finding)
    _draw_stuck(out, seen)
    _draw_failure(out, seen)
    _draw_rows(out, seen)
    _draw_events(out, seen)


def draw_finding(out: Output, finding: Finding) -> None:
    from holdfast.cli.output import Cell

    styles = {"ok": "green", "note": "yellow", "bad": "bold red"}
    out.blank()
    out.line(Cell(f"{finding.level:<5}", styles[finding.level]), finding.text)
    if finding.next:
        out.line(Cell("next ", "dim"), finding.next)


def _draw_relations(out: Output, seen: Examined) -> None:
    execution = seen.execution
    if execution.worker is not None:
        out.field("worker", execution.worker)
    if execution.metadata:
        out.field("metadata", ", ".join(f"{key}={value}" for key, value in sorted(execution.metadata.items())))
    if execution.parent_execution_id is not None:
        out.field("parent", execution.parent_execution_id)
    if execution.successor is not None:
        out.field("successor", execution.successor)
    if execution.cancel_requested and execution.is_open:
        out.field("cancel", "requested")


def _draw_stuck(out: Output, seen: Examined) -> None:
    stuck = seen.execution.stuck
    if stuck is None:
        return
    for label, told, line in (
        ("recorded", stuck.recorded, stuck.recorded_line),
        ("attempted", stuck.attempted, stuck.attempted_line),
    ):
        if told:
            place = f"  {line}" if line else ""
            number = f"event {stuck.event_seq}: " if label == "recorded" and stuck.event_seq else ""
            out.field(label, f"{number}{told}{place}")


def _draw_failure(out: Output, seen: Examined) -> None:
    from holdfast.cli.output import Cell
    from holdfast.model.events import WorkflowFailed

    last = seen.last_events[-1].body if seen.last_events else None
    if isinstance(last, WorkflowFailed) and last.failure.traceback:
        out.heading("traceback")
        for line in last.failure.traceback.rstrip().splitlines()[-_TRACEBACK_LINES:]:
            out.line(Cell(f"  {line}", "dim"))


def _draw_rows(out: Output, seen: Examined) -> None:
    from holdfast.cli.output import Cell
    from holdfast.cli.task import HEADERS, row
    from holdfast.cli.words import since

    if seen.tasks:
        out.heading("tasks that are not finished")
        out.table(HEADERS, [row(task) for task in seen.tasks])
    if seen.promises:
        out.heading("promises that are not settled")
        rows: list[list[Shown]] = [
            [promise.id, promise.name, Cell(since(promise.created_at, seen.now), "dim")] for promise in seen.promises
        ]
        out.table(("PROMISE ID", "NAME", "SINCE"), rows)
    if seen.waits:
        out.heading("events, messages and broadcasts it waits for")
        out.table(
            ("#", "KIND", "KEY", "SINCE", "WHERE"),
            [
                [
                    str(wait.wait_no),
                    wait.kind.value,
                    wait.key,
                    Cell(since(wait.since, seen.now), "dim"),
                    wait.where or "",
                ]
                for wait in seen.waits
            ],
        )


def _draw_events(out: Output, seen: Examined) -> None:
    from holdfast.cli.story import HEADERS, Story

    story = Story()
    out.heading(f"last {len(seen.last_events)} of {seen.execution.history_length} events")
    out.table(HEADERS, [story.row(event) for event in seen.last_events])
