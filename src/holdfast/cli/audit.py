"""`holdfast audit list` and `verify`: the record of acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.exit_codes import ANSWER_IS_NO
from holdfast.cli.key import run_on_keys
from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.cli.api_keys import ApiKeys
    from holdfast.cli.output import Shown
    from holdfast.transport.rest.key_views import AuditView

PAGE = 100


@click.group()
def audit() -> None:
    """Look at the record of acts of an org, and check that nobody has changed it."""


@audit.command("list")
@click.option("--limit", "-n", type=click.IntRange(0), default=50, show_default=True, help="0 for all.")
@connected
def list_(target: Target, *, limit: int) -> None:
    """List what was done with keys, queues, workers and the org itself, by whom and from where, the newest first. With
    --json, one object on each line."""

    async def run(keys: ApiKeys) -> list[AuditView]:
        found: list[AuditView] = []
        while not limit or len(found) < limit:
            size = PAGE if not limit else min(PAGE, limit - len(found))
            page = await keys.audit(found[-1].sequence if found else None, size)
            found += page
            if len(page) < size:
                break
        return found

    found = run_on_keys(target, run)
    if target.out.as_json:
        for one in found:
            target.out.item(one)
        return
    headers = ("#", "TIME", "ACTOR", "ACTION", "SUBJECT", "OUTCOME", "FROM", "DETAIL")
    target.out.table(headers, [_row(one) for one in found], empty="nothing is recorded")


def _row(act: AuditView) -> list[Shown]:
    from holdfast.cli.formatting import day_time
    from holdfast.cli.output import Cell
    from holdfast.transport.rest.times import micros

    outcome = Cell(act.outcome, "green" if act.outcome in {"done", "begun"} else "red")
    time = Cell(day_time(micros(act.at)), "dim")
    return [str(act.sequence), time, act.actor, act.action, act.subject, outcome, act.address, act.detail]


@audit.command()
@connected
def verify(target: Target) -> None:
    """Check that no row of the record is missing or was changed. Ends with 1 if one is.

    A row is checked with the secret of the installation: on a database, it must be the one its nodes use.
    """
    check = run_on_keys(target, lambda keys: keys.verify_audit())
    told = f"{check.rows} acts are as they were recorded"
    if not check.whole:
        told = f"act {check.first_bad} is missing or was changed, of {check.rows}"
    target.out.answer(check, told)
    if not check.whole:
        raise click.exceptions.Exit(ANSWER_IS_NO)
