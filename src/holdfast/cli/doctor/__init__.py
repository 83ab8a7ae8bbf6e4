"""`holdfast doctor`: looks at everything that is usually wrong, and says what to do about it. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.exit_codes import ANSWER_IS_NO
from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.cli.doctor.examination import Finding
    from holdfast.client.client import Client


@click.command()
@click.argument("id_", metavar="[ID]", required=False)
@connected
def doctor(target: Target, id_: str | None) -> None:
    """Check database, schema, workers, and what does not move; or say why the one workflow ID does not.

    Changes nothing. Ends with 1 if something is wrong.
    """
    findings = _examine_one(target, id_) if id_ is not None else _examine_all(target)
    if target.out.as_json:
        from holdfast.cli.workflow.show import finding_view

        bad = any(finding.level == "bad" for finding in findings)
        target.out.document({"healthy": not bad, "findings": [finding_view(finding) for finding in findings]})
    else:
        _draw(target, findings)
    if any(finding.level == "bad" for finding in findings):
        raise click.exceptions.Exit(ANSWER_IS_NO)


def _draw(target: Target, findings: list[Finding]) -> None:
    from holdfast.cli.output import Cell

    styles = {"ok": "green", "note": "yellow", "bad": "bold red"}
    for finding in findings:
        target.out.line(Cell(f"{finding.level:<5}", styles[finding.level]), finding.text)
        if finding.next:
            target.out.line(Cell("      next: ", "dim"), finding.next)


def _examine_one(target: Target, id_: str) -> list[Finding]:
    from holdfast.cli.doctor.examination import Finding, Level
    from holdfast.cli.doctor.examination import findings as findings_of
    from holdfast.cli.workflow.show import inspect_workflow

    async def run(client: Client) -> list[Finding]:
        seen = await inspect_workflow(client, id_, await target.now())
        execution = seen.execution
        head = Finding(
            Level.OK, f"{execution.workflow_id} ({execution.id}) is {execution.status}, kind {execution.kind}"
        )
        return [head, *findings_of(seen)]

    return target.read(run)


def _examine_all(target: Target) -> list[Finding]:
    import asyncio

    from holdfast.cli.doctor.database_checks import check_database
    from holdfast.cli.doctor.examination import Finding, Level
    from holdfast.cli.doctor.runtime_checks import check_all
    from holdfast.errors import HoldfastError

    async def run() -> list[Finding]:
        found = [] if target.db is None else await check_database(target.db)
        if any(finding.level is Level.BAD for finding in found):
            return found
        async with target.client(read_only=True) as client:
            return found + await check_all(target, client)

    try:
        return asyncio.run(run())
    except HoldfastError as error:
        return [Finding(Level.BAD, f"{target.name} can't be used: {error.message} [{error.code}]")]
