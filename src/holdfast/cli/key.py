"""`holdfast key create`, `list`, `revoke` and `rotate`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from holdfast.cli.inputs import LENGTH
from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.cli.api_keys import ApiKeys
    from holdfast.cli.output import Shown
    from holdfast.transport.rest.key_views import KeyMadeView, KeyView

T = TypeVar("T")
PAGE = 100
ROLES = ("admin", "writer", "reader", "worker")


@click.group()
def key() -> None:
    """Make, list, revoke and rotate API keys: on a database those of --org, on a server those of your key's org."""


def run_on_keys(target: Target, work: Callable[[ApiKeys], Awaitable[T]]) -> T:
    import asyncio

    from holdfast.cli.api_keys import opened

    async def run() -> T:
        async with opened(target) as keys:
            return await work(keys)

    return asyncio.run(run())


@key.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="admin may do all; worker is for workers.")
@click.option("--expires-in", type=LENGTH, help="It ends after this; never if left out.")
@connected
def create(target: Target, name: str, *, role: str, expires_in: float | None) -> None:
    """Make a key called NAME. Its text is printed now and never again: only a hash is kept."""
    from holdfast.model.keys import Role

    _show_made(target, run_on_keys(target, lambda keys: keys.create(name, Role(role), expires_in)))


@key.command()
@click.argument("key_id", metavar="KEY_ID")
@click.option("--overlap", type=LENGTH, default="1d", show_default=True, help="How long the old text counts, too.")
@connected
def rotate(target: Target, key_id: str, *, overlap: float) -> None:
    """Give a key another text; the old one counts for a while longer."""
    _show_made(target, run_on_keys(target, lambda keys: keys.rotate(key_id, overlap)))


def _show_made(target: Target, made: KeyMadeView) -> None:
    if target.out.as_json:
        target.out.document(made)
        return
    # The text alone on standard output: KEY=$(holdfast key create …) gets just that.
    target.out.note(f"key {made.key.key_id} ({made.key.role}); its text, shown only this once:")
    click.echo(made.text)


@key.command("list")
@connected
def list_(target: Target) -> None:
    """List the keys of the org, the newest first; also those that have ended. With --json, one object on each line."""

    async def run(keys: ApiKeys) -> list[KeyView]:
        found: list[KeyView] = []
        while True:
            page = await keys.page(found[-1].key_id if found else None, PAGE)
            found += page
            if len(page) < PAGE:
                return found

    found = run_on_keys(target, run)
    if target.out.as_json:
        for one in found:
            target.out.item(one)
        return
    headers = ("KEY ID", "NAME", "ROLE", "STATE", "BEGINS WITH", "MADE", "LAST USED", "EXPIRES")
    target.out.table(headers, [_row(one) for one in found], empty="there are no keys: holdfast key create")


def _row(found: KeyView) -> list[Shown]:
    from holdfast.cli.formatting import day_time
    from holdfast.cli.output import Cell
    from holdfast.transport.rest.times import micros

    return [
        found.key_id,
        found.name,
        found.role.value,
        Cell(found.state.value, "green" if found.state == "active" else "red"),
        found.hint,
        Cell(day_time(micros(found.created_at)), "dim"),
        "never" if found.last_used_at is None else day_time(micros(found.last_used_at)),
        "never" if found.expires_at is None else day_time(micros(found.expires_at)),
    ]


@key.command()
@click.argument("key_id", metavar="KEY_ID")
@connected
def revoke(target: Target, key_id: str) -> None:
    """End a key, for good. Servers let it in for up to a second more."""
    revoked = run_on_keys(target, lambda keys: keys.revoke(key_id))
    target.out.answer(revoked, f"key {revoked.key_id} ({revoked.name}) is {revoked.state}")
