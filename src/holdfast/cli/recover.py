"""`holdfast recover`."""

from __future__ import annotations

import click

from holdfast.cli.doors import Door, connected


@click.command()
@connected
def recover(door: Door) -> None:
    """Do at once what is otherwise done in time: take back what lost workers held, fire what is due; and check that
    every open execution waits for something that exists. Repairs what it can, and says what it did.

    It may be run at any time, while workers are at work.
    """
    from holdfast.contract.system import Recover

    # A look begins no service: so the report is about all that was done.
    report = door.look(lambda client: client.api.call(Recover(org=client.org)))
    if door.out.as_json:
        door.out.document(report)
        return
    out = door.out
    out.field("open", f"{report.open_executions} executions")
    taken = f"{report.turns_reclaimed} turns, {report.tasks_reclaimed} tasks of {report.sessions_expired} lost workers"
    out.field("taken back", taken)
    out.field("fired", f"{report.timers_fired} timers")
    repaired = {
        "made ready": report.made_ready,
        "timers": report.timers_restored,
        "tasks": report.tasks_restored,
        "waits": report.waits_restored,
        "promises": report.promises_restored,
    }
    told = ", ".join(f"{number} {what}" for what, number in repaired.items() if number)
    out.field("repaired", told or "nothing was to be repaired")
    for execution_id in report.stuck:
        out.field("stuck", f"{execution_id}: holdfast workflow show {execution_id}")
