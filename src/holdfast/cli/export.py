"""`holdfast export`: histories as JSON lines, each what `holdfast.testing.load_history` reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from holdfast.cli.doors import Door, connected, found
from holdfast.cli.inputs import PAST, pairs
from holdfast.cli.workflow.listing import STATUSES

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.contract.execution_reads import ExecutionInfo
    from holdfast.model.events import HistoryEvent

FORMAT = "holdfast-history"
FORMAT_VERSION = 1
PAGE = 5_000


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="A file; else standard output.")
@click.option(
    "--status", "-s", multiple=True, type=click.Choice(STATUSES, case_sensitive=False), help="Also several times."
)
@click.option("--kind", "-k", multiple=True, help="Also several times.")
@click.option("--metadata", "-m", multiple=True, metavar="KEY=VALUE", callback=pairs, help="All must be there.")
@click.option("--since", type=PAST, help="Created then or later.")
@click.option("--before", type=PAST, help="Created before.")
@connected
def export(door: Door, ids: tuple[str, ...], *, output: Path | None, **filters: Any) -> None:
    """Write the histories of the executions ID, or of all that match, as JSON lines: one execution on each.

    Each line is what holdfast.testing.load_history reads and holdfast.testing.replay runs against your code. Of an
    execution that is at work, the events up to now are written.
    """

    async def run(client: Client) -> int:
        done = 0
        with _written(output) as file, door.out.progress("exporting", await _total(client, ids, filters)) as advance:
            async for execution in _chosen(client, ids, filters):
                file.write(await _line(client, execution))
                done += 1
                advance(1)
        return done

    done = door.look(run)
    where = f" to {output}" if output is not None else ""
    door.out.note(f"{done} histories written{where}")


@contextmanager
def _written(output: Path | None) -> Iterator[IO[bytes]]:
    """The file is there when all of it is: an interrupted export leaves the one before as it was."""
    if output is None:
        import sys

        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("wb") as file:
            yield file
    except OSError as error:
        raise click.FileError(str(output), error.strerror or str(error)) from error
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.replace(output)


async def _total(client: Client, ids: tuple[str, ...], filters: dict[str, Any]) -> int | None:
    if ids:
        return len(ids)
    return None if any(filters.values()) else sum((await client.count_workflows()).values())


async def _chosen(client: Client, ids: tuple[str, ...], filters: dict[str, Any]) -> AsyncIterator[ExecutionInfo]:
    from holdfast.cli.workflow.listing import executions

    if not ids:
        async for execution in executions(client, 0, **filters):
            yield execution
    for id_ in ids:
        yield await found(client, id_)


async def _line(client: Client, execution: ExecutionInfo) -> bytes:
    import msgspec

    events: list[HistoryEvent] = []
    while len(events) < execution.history_length:
        page = await client.history(execution.id, after=len(events), limit=PAGE)
        events += page
        if not page:
            break
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "execution_id": execution.id,
        "kind": execution.kind,
        "version": execution.version,
        "workflow_id": execution.workflow_id,
        "status": execution.status,
        "events": [_event(event) for event in events],
    }
    return msgspec.json.encode(document) + b"\n"


def _event(event: HistoryEvent) -> dict[str, Any]:
    from msgspec import Raw

    from holdfast.contract.instants import instant
    from holdfast.model.events import encode_body

    return {
        "seq": event.seq,
        "at": instant(event.at),
        "type": event.type,
        "version": event.body.VERSION,
        "data": Raw(encode_body(event.body)),
    }
