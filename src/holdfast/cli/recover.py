"""`holdfast recover`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.transport.rest.system_views import RecoveryView


@click.command()
@connected
def recover(target: Target) -> None:
    """Do at once what is otherwise done in time: take back what lost workers held, fire what is due; and check that
    every open execution waits for something that exists. Repairs what it can, and says what it did.

    It may be run at any time, while workers are at work.
    """
    import asyncio

    report = asyncio.run(_on_database(target) if target.server is None else _on_server(target))
    if target.out.as_json:
        target.out.document(report)
        return
    out = target.out
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


async def _on_database(target: Target) -> RecoveryView:
    from holdfast.transport.rest.system_views import recovery_view

    async with target.engine(read_only=True) as engine:  # so that the report is about all that was done
        return recovery_view(await engine.recover())


async def _on_server(target: Target) -> RecoveryView:
    from holdfast.transport.rest.bodies import NoBody
    from holdfast.transport.rest.system_views import RecoveryView

    async with target.http_client() as (http_client, org):
        return await http_client.post(f"{org}/recover", NoBody(), RecoveryView, wait_s=None)
