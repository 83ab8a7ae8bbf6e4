"""`holdfast event publish`, `list`, `dead`, `replay`, `remove` and `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.doors import Door, connected
from holdfast.cli.inputs import JSON, LENGTH

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.explanations import EventExplanation
    from holdfast.contract.messages import EventInfo, PublishResult

PAGE = 200
_key_filter = click.option("--key", help="Only events of this key.")
_limit = click.option("--limit", "-n", type=click.IntRange(0), default=50, show_default=True, help="0 for all.")


@click.group()
def event() -> None:
    """Publish events, look at kept and dead ones, explain who gets them."""


@event.command()
@click.argument("key")
@click.option("--input", "input_", type=JSON, help="The event's data.")
@click.option("--expire-after", type=LENGTH, help="How long it is kept for those who look back.")
@click.option(
    "--delivery",
    type=click.Choice(["waiters", "waiters_and_future", "created_before"]),
    default="waiters_and_future",
    show_default=True,
    help="Who gets it besides those that wait now.",
)
@click.option("--consume-on-read", is_flag=True, help="Only one gets it.")
@click.option("--idempotency-key", metavar="KEY", help="The same key again is the same event.")
@connected
def publish(door: Door, key: str, *, input_: Any, **options: Any) -> None:
    """Publish an event of KEY: to every wait whose filter it satisfies, and to the workflows it starts."""

    async def run(client: Client) -> PublishResult:
        return await client.publish_event(key, input_, **options)

    _show_published(door, door.run(run))


def _show_published(door: Door, published: PublishResult) -> None:
    started = f", started {', '.join(published.started)}" if published.started else ""
    kept = "kept for those who look back" if published.retained else "not kept"
    way = "" if published.done else "; on its way to more"
    door.out.answer(published, f"event {published.event_id}: {published.delivered} got it{started}{way}; {kept}")


@event.command("list")
@_key_filter
@_limit
@connected
def list_(door: Door, *, key: str | None, limit: int) -> None:
    """List events that are kept, the newest first. With --json, one object on each line."""
    _list(door, key, limit, dead=False)


@event.command()
@_key_filter
@_limit
@connected
def dead(door: Door, *, key: str | None, limit: int) -> None:
    """List events that nobody ever got, the newest first: they expired, or there were too many of their key."""
    _list(door, key, limit, dead=True)


def _list(door: Door, key: str | None, limit: int, *, dead: bool) -> None:
    from holdfast.cli.output import Cell
    from holdfast.cli.words import day_time, value
    from holdfast.contract.records import raw

    async def run(client: Client) -> None:
        found = await _events(client, key, limit, dead=dead)
        if door.out.as_json:
            for event in found:
                door.out.item(event)
            return
        rows: list[list[Shown]] = [
            [
                str(event.id),
                event.key,
                Cell(day_time(event.published_at), "dim"),
                f"{event.reason} {day_time(event.dead_at)}"
                if event.dead
                else f"{event.delivered} got it, until {day_time(event.expires_at)}",
                event.correlation_key or "",
                value(raw(event.data)),
            ]
            for event in found
        ]
        headers = ("EVENT", "KEY", "PUBLISHED", "DEAD" if dead else "KEPT", "CORRELATION", "DATA")
        door.out.table(headers, rows, empty="there are none")

    door.look(run)


async def _events(client: Client, key: str | None, limit: int, *, dead: bool) -> list[EventInfo]:
    ask = client.dead_events if dead else client.list_events
    found: list[EventInfo] = []
    before: int | None = None
    while not limit or len(found) < limit:
        size = PAGE if not limit else min(PAGE, limit - len(found))
        rows = await ask(key, before=before, limit=size)
        found += rows
        if len(rows) < size:
            break
        before = rows[-1].id
    return found


@event.command()
@click.argument("event_id", metavar="EVENT", type=int)
@connected
def replay(door: Door, event_id: int) -> None:
    """Publish the dead EVENT again, with a new number."""

    async def run(client: Client) -> PublishResult:
        return await client.replay_event(event_id)

    _show_published(door, door.run(run))


@event.command()
@click.argument("event_id", metavar="EVENT", type=int)
@connected
def remove(door: Door, event_id: int) -> None:
    """Remove EVENT, kept or dead: nobody will get it."""

    async def run(client: Client) -> None:
        await client.remove_event(event_id)

    door.run(run)
    door.out.answer({"event_id": event_id, "removed": True}, f"event {event_id} is removed")


@event.command()
@click.argument("event_id", metavar="EVENT", type=int)
@connected
def explain(door: Door, event_id: int) -> None:
    """Say why EVENT went to whom it went: every open wait of its key, and the part of its filter that refused it."""

    async def run(client: Client) -> EventExplanation:
        return await client.explain_event(event_id)

    explained = door.look(run)
    if door.out.as_json:
        door.out.document(explained)
        return
    for line in str(explained).splitlines():
        door.out.line(line)
    if explained.more:
        door.out.note("there are more waits than these")
