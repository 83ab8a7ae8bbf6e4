"""`holdfast org list`, `create`, `close` and `delete`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.contract.keys import Keys
    from holdfast.model.keys import Org

T = TypeVar("T")
PAGE = 100


@click.group()
def org() -> None:
    """List, make, close and delete orgs: on the database itself. An admin's key is enough to delete its own org."""


def _run(target: Target, work: Callable[[Keys], Awaitable[T]]) -> T:
    import asyncio

    if target.db is None:
        raise click.UsageError("Orgs are looked after on the database itself: give --db URL.")

    async def run() -> T:
        async with target.engine(read_only=True) as engine:
            return await work(engine.keys)

    return asyncio.run(run())


@org.command("list")
@connected
def list_(target: Target) -> None:
    """List the orgs that have, or had, keys or a record of acts. With --json, one object on each line."""
    from holdfast.cli.formatting import day_time
    from holdfast.cli.output import Cell

    async def run(keys: Keys) -> list[Org]:
        found: list[Org] = []
        while True:
            page = await keys.orgs(found[-1].slug if found else "", PAGE)
            found += page
            if len(page) < PAGE:
                return found

    found = _run(target, run)
    if target.out.as_json:
        for one in found:
            target.out.item(_view(one))
        return
    target.out.table(
        ("ORG", "MADE", "STATE"),
        [
            [
                one.slug,
                Cell(day_time(one.created_at), "dim"),
                Cell("open", "green") if one.closed_at is None else Cell(f"closed {day_time(one.closed_at)}", "red"),
            ]
            for one in found
        ],
        empty="there are none: holdfast org create",
    )


def _view(found: Org) -> dict[str, object]:
    from holdfast.transport.rest.times import instant, instant_or_none

    return {
        "org": found.slug,
        "created_at": instant(found.created_at),
        "closed_at": instant_or_none(found.closed_at),
        "acts": found.audit_seq,
    }


@org.command()
@click.argument("name", metavar="NAME")
@connected
def create(target: Target, name: str) -> None:
    """Make the org NAME. The first key of an org makes it, too."""
    from holdfast.contract.keys import CreateOrg

    made = _run(target, lambda keys: keys.create_org(CreateOrg(slug=name)))
    target.out.answer(_view(made), f"org {made.slug} is there")


@org.command()
@click.argument("name", metavar="NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def close(target: Target, name: str, *, yes: bool) -> None:
    """End all keys of the org NAME, for good: its name is not given again. Its workflows stay as they are."""
    from holdfast.contract.keys import CloseOrg

    if not yes:
        click.confirm(f"End all keys of org {name!r}, for good?", abort=True, err=True)
    closed = _run(target, lambda keys: keys.close_org(CloseOrg(slug=name)))
    target.out.answer(_view(closed), f"org {closed.slug} is closed")


@org.command()
@click.argument("name", metavar="NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(target: Target, name: str, *, yes: bool) -> None:
    """Delete the org NAME with everything it has, for good. Its keys are dead at once; its rows are removed in the
    background by whatever engine runs on the database. Its name is not given again; the record of acts stays."""
    if not yes:
        typed = click.prompt(f"Everything that org {name!r} has is removed. Type its name", default="", err=True)
        if typed != name:
            raise click.Abort
    if target.server is None:
        from holdfast.contract.keys import DeleteOrg

        _run(target, lambda keys: keys.delete_org(DeleteOrg(slug=name, confirm=name)))
    else:
        _delete_on_server(target, name)
    target.out.answer({"org": name, "deleted": True}, f"org {name} is deleted: its keys are dead, its rows are removed")


def _delete_on_server(target: Target, name: str) -> None:
    import asyncio

    from holdfast.client.remote.http_client import escaped
    from holdfast.transport.rest.key_views import DeleteOrgBody

    async def run() -> None:
        async with target.http_client() as (http_client, _):
            await http_client.delete(f"/api/orgs/{escaped(name)}", DeleteOrgBody(confirm=name))

    asyncio.run(run())
