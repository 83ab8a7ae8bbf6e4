"""`holdfast doctor`: looks at everything that is usually wrong, and says what to do about it. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.doors import Door, connected
from holdfast.cli.exits import ANSWER_IS_NO

if TYPE_CHECKING:
    from holdfast.cli.diagnosis import Finding
    from holdfast.client.client import Client


@click.command()
@click.argument("id_", metavar="[ID]", required=False)
@connected
def doctor(door: Door, id_: str | None) -> None:
    """Check database, schema, workers, and what does not move; or say why the one workflow ID does not.

    Changes nothing. Ends with 1 if something is wrong.
    """
    findings = _examine_one(door, id_) if id_ is not None else _examine_all(door)
    if door.out.as_json:
        bad = any(finding.level == "bad" for finding in findings)
        door.out.document({"healthy": not bad, "findings": findings})
    else:
        _draw(door, findings)
    if any(finding.level == "bad" for finding in findings):
        raise click.exceptions.Exit(ANSWER_IS_NO)


def _draw(door: Door, findings: list[Finding]) -> None:
    from holdfast.cli.output import Cell

    styles = {"ok": "green", "note": "yellow", "bad": "bold red"}
    for finding in findings:
        door.out.line(Cell(f"{finding.level:<5}", styles[finding.level]), finding.text)
        if finding.next:
            door.out.line(Cell("      next: ", "dim"), finding.next)


def _examine_one(door: Door, id_: str) -> list[Finding]:
    from holdfast.cli.diagnosis import Finding, Level
    from holdfast.cli.diagnosis import findings as findings_of
    from holdfast.cli.workflow.show import look

    async def run(client: Client) -> list[Finding]:
        seen = await look(client, id_, await door.now())
        execution = seen.execution
        head = Finding.of(
            Level.OK, f"{execution.workflow_id} ({execution.id}) is {execution.status}, kind {execution.kind}"
        )
        return [head, *findings_of(seen)]

    return door.look(run)


def _examine_all(door: Door) -> list[Finding]:
    import asyncio

    from holdfast.cli.checkup import look_around
    from holdfast.cli.database_checks import check_database
    from holdfast.cli.diagnosis import Finding, Level
    from holdfast.errors import HoldfastError

    async def run() -> list[Finding]:
        found = [] if door.db is None else await check_database(door.db)
        if any(finding.level is Level.BAD for finding in found):
            return found
        async with door.client(looking=True) as client:
            return found + await look_around(door, client)

    try:
        return asyncio.run(run())
    except HoldfastError as error:
        return [Finding.of(Level.BAD, f"{door.name} can't be used: {error.message} [{error.code}]")]
