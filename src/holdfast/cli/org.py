"""`holdfast org list`, `create`, `close` and `delete`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from holdfast.cli.doors import Door, connected

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.cli.output import Shown
    from holdfast.client.keys import OperatorKeys
    from holdfast.contract.keys import OrgInfo

T = TypeVar("T")
PAGE = 100


@click.group()
def org() -> None:
    """List, make, close and delete orgs: on the database itself. An admin's key is enough to delete its own org."""


def _run(door: Door, work: Callable[[OperatorKeys], Awaitable[T]]) -> T:
    import asyncio

    if door.db is None:
        raise click.UsageError("Orgs are looked after on the database itself: give --db URL.")

    async def run() -> T:
        async with door.engine(looking=True) as engine:
            return await work(engine.keys)

    return asyncio.run(run())


@org.command("list")
@connected
def list_(door: Door) -> None:
    """List the orgs that have, or had, keys or a record of acts. With --json, one object on each line."""
    from holdfast.cli.output import Cell
    from holdfast.cli.words import day_time
    from holdfast.contract.instants import micros

    async def run(keys: OperatorKeys) -> list[OrgInfo]:
        found: list[OrgInfo] = []
        while True:
            page = await keys.orgs(after=found[-1].name if found else None, limit=PAGE)
            found += page
            if len(page) < PAGE:
                return found

    found = _run(door, run)
    if door.out.as_json:
        for one in found:
            door.out.item(one)
        return
    door.out.table(
        ("ORG", "MADE", "STATE"),
        [
            [
                one.name,
                Cell(day_time(micros(one.created_at)), "dim"),
                _state(one.closed_at),
            ]
            for one in found
        ],
        empty="there are none: holdfast org create",
    )


def _state(closed_at: datetime | None) -> Shown:
    from holdfast.cli.output import Cell
    from holdfast.cli.words import day_time
    from holdfast.contract.instants import micros

    return Cell("open", "green") if closed_at is None else Cell(f"closed {day_time(micros(closed_at))}", "red")


@org.command()
@click.argument("name", metavar="NAME")
@connected
def create(door: Door, name: str) -> None:
    """Make the org NAME. The first key of an org makes it, too."""
    made = _run(door, lambda keys: keys.create_org(name))
    door.out.answer(made, f"org {made.name} is there")


@org.command()
@click.argument("name", metavar="NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def close(door: Door, name: str, *, yes: bool) -> None:
    """End all keys of the org NAME, for good: its name is not given again. Its workflows stay as they are."""
    if not yes:
        click.confirm(f"End all keys of org {name!r}, for good?", abort=True, err=True)
    closed = _run(door, lambda keys: keys.close_org(name))
    door.out.answer(closed, f"org {closed.name} is closed")


@org.command()
@click.argument("name", metavar="NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(door: Door, name: str, *, yes: bool) -> None:
    """Delete the org NAME with everything it has, for good. Its keys are dead at once; its rows are removed in the
    background by whatever engine runs on the database. Its name is not given again; the record of acts stays."""
    if not yes:
        typed = click.prompt(f"Everything that org {name!r} has is removed. Type its name", default="", err=True)
        if typed != name:
            raise click.Abort
    from holdfast.contract.keys import DeleteOrg

    door.look(lambda client: client.api.call(DeleteOrg(org=name, confirm=name)))
    door.out.answer({"org": name, "deleted": True}, f"org {name} is deleted: its keys are dead, its rows are removed")
