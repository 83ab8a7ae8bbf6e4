"""`holdfast audit list` and `verify`: the record of acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.doors import Door, connected
from holdfast.cli.exits import ANSWER_IS_NO

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.keys import AuditEntry

PAGE = 100


@click.group()
def audit() -> None:
    """Look at the record of acts of an org, and check that nobody has changed it."""


@audit.command("list")
@click.option("--limit", "-n", type=click.IntRange(0), default=50, show_default=True, help="0 for all.")
@connected
def list_(door: Door, *, limit: int) -> None:
    """List what was done with keys, queues, workers and the org itself, by whom and from where, the newest first. With
    --json, one object on each line."""

    from holdfast.contract.keys import ListAudit

    async def run(client: Client) -> list[AuditEntry]:
        found: list[AuditEntry] = []
        while not limit or len(found) < limit:
            size = PAGE if not limit else min(PAGE, limit - len(found))
            before = found[-1].seq if found else None
            page = (await client.api.call(ListAudit(org=client.org, before=before, limit=size))).acts
            found += page
            if len(page) < size:
                break
        return found

    found = door.look(run)
    if door.out.as_json:
        for one in found:
            door.out.item(one)
        return
    headers = ("#", "TIME", "ACTOR", "ACTION", "SUBJECT", "OUTCOME", "FROM", "DETAIL")
    door.out.table(headers, [_row(one) for one in found], empty="nothing is recorded")


def _row(act: AuditEntry) -> list[Shown]:
    from holdfast.cli.output import Cell
    from holdfast.cli.words import day_time
    from holdfast.contract.instants import micros

    outcome = Cell(act.outcome, "green" if act.outcome in {"done", "begun"} else "red")
    time = Cell(day_time(micros(act.at)), "dim")
    return [str(act.seq), time, act.actor, act.action, act.subject, outcome, act.address, act.detail]


@audit.command()
@connected
def verify(door: Door) -> None:
    """Check that no row of the record is missing or was changed. Ends with 1 if one is.

    A row is checked with the secret of the installation: on a database, it must be the one its nodes use.
    """
    from holdfast.contract.keys import VerifyAudit

    check = door.look(lambda client: client.api.call(VerifyAudit(org=client.org)))
    told = f"{check.rows} acts are as they were recorded"
    if not check.is_whole:
        told = f"act {check.first_bad} is missing or was changed, of {check.rows}"
    door.out.answer(check, told)
    if not check.is_whole:
        raise click.exceptions.Exit(ANSWER_IS_NO)
