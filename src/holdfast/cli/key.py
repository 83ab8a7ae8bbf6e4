"""`holdfast key create`, `list`, `revoke` and `rotate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.doors import Door, connected
from holdfast.cli.inputs import LENGTH

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.keys import CreatedKey, KeyInfo

PAGE = 100
ROLES = ("admin", "writer", "reader", "worker")


@click.group()
def key() -> None:
    """Make, list, revoke and rotate API keys: on a database those of --org, on a server those of your key's org."""


@key.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="admin may do all; worker is for workers.")
@click.option("--expires-in", type=LENGTH, help="It ends after this; never if left out.")
@connected
def create(door: Door, name: str, *, role: str, expires_in: float | None) -> None:
    """Make a key called NAME. Its text is printed now and never again: only a hash is kept."""
    from holdfast.contract.keys import CreateKey
    from holdfast.model.keys import Role

    def request(org: str) -> CreateKey:
        return CreateKey(org=org, name=name, role=Role(role), expires_in_s=expires_in)

    _show_made(door, door.look(lambda client: client.api.call(request(client.org))))


@key.command()
@click.argument("key_id", metavar="KEY_ID")
@click.option("--overlap", type=LENGTH, default="1d", show_default=True, help="How long the old text counts, too.")
@connected
def rotate(door: Door, key_id: str, *, overlap: float) -> None:
    """Give a key another text; the old one counts for a while longer."""
    from holdfast.contract.keys import RotateKey

    def request(org: str) -> RotateKey:
        return RotateKey(org=org, key_id=key_id, overlap_s=overlap)

    _show_made(door, door.look(lambda client: client.api.call(request(client.org))))


def _show_made(door: Door, made: CreatedKey) -> None:
    if door.out.as_json:
        door.out.document(made)
        return
    # The text alone on standard output: KEY=$(holdfast key create …) gets just that.
    door.out.note(f"key {made.key.id} ({made.key.role}); its text, shown only this once:")
    click.echo(made.text)


@key.command("list")
@connected
def list_(door: Door) -> None:
    """List the keys of the org, the newest first; also those that have ended. With --json, one object on each line."""

    from holdfast.contract.keys import ListKeys

    async def run(client: Client) -> list[KeyInfo]:
        found: list[KeyInfo] = []
        while True:
            before = found[-1].id if found else None
            page = (await client.api.call(ListKeys(org=client.org, before=before, limit=PAGE))).keys
            found += page
            if len(page) < PAGE:
                return found

    found = door.look(run)
    if door.out.as_json:
        for one in found:
            door.out.item(one)
        return
    headers = ("KEY ID", "NAME", "ROLE", "STATE", "BEGINS WITH", "MADE", "LAST USED", "EXPIRES")
    door.out.table(headers, [_row(one) for one in found], empty="there are no keys: holdfast key create")


def _row(found: KeyInfo) -> list[Shown]:
    from holdfast.cli.output import Cell
    from holdfast.cli.words import day_time
    from holdfast.contract.instants import micros

    return [
        found.id,
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
def revoke(door: Door, key_id: str) -> None:
    """End a key, for good. Servers let it in for up to a second more."""
    from holdfast.contract.keys import RevokeKey

    revoked = door.look(lambda client: client.api.call(RevokeKey(org=client.org, key_id=key_id)))
    door.out.answer(revoked, f"key {revoked.id} ({revoked.name}) is {revoked.state}")
