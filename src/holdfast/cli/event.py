"""`holdfast event publish`, `list`, `dead`, `replay`, `remove` and `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.inputs import JSON, LENGTH
from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.client.events import PublishResult
    from holdfast.client.explainer import EventExplanation
    from holdfast.model.messages import DeadEvent, PublishedRow

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
def publish(target: Target, key: str, *, input_: Any, **options: Any) -> None:
    """Publish an event of KEY: to every wait whose filter it satisfies, and to the workflows it starts."""

    async def run(client: Client) -> PublishResult:
        return await client.publish_event(key, input_, **options)

    _show_published(target, target.run(run))


def _show_published(target: Target, published: PublishResult) -> None:
    from holdfast.transport.rest.message_views import PublishedView

    view = PublishedView(**{name: getattr(published, name) for name in PublishedView.__struct_fields__})
    started = f", started {', '.join(published.started)}" if published.started else ""
    kept = "kept for those who look back" if published.retained else "not kept"
    way = "" if published.done else "; on its way to more"
    target.out.answer(view, f"event {published.event_id}: {published.delivered} got it{started}{way}; {kept}")


@event.command("list")
@_key_filter
@_limit
@connected
def list_(target: Target, *, key: str | None, limit: int) -> None:
    """List events that are kept, the newest first. With --json, one object on each line."""
    _list(target, key, limit, dead=False)


@event.command()
@_key_filter
@_limit
@connected
def dead(target: Target, *, key: str | None, limit: int) -> None:
    """List events that nobody ever got, the newest first: they expired, or there were too many of their key."""
    _list(target, key, limit, dead=True)


def _list(target: Target, key: str | None, limit: int, *, dead: bool) -> None:
    from holdfast.cli.formatting import day_time, value
    from holdfast.cli.output import Cell
    from holdfast.model.messages import PublishedRow
    from holdfast.transport.rest.message_views import kept_event_view

    async def run(client: Client) -> None:
        found = await _events(client, key, limit, dead=dead)
        if target.out.as_json:
            for row in found:
                target.out.item(kept_event_view(row))
            return
        rows: list[list[Shown]] = [
            [
                str(row.id),
                row.key,
                Cell(day_time(row.published_at), "dim"),
                f"{row.delivered} got it, until {day_time(row.expires_at)}"
                if isinstance(row, PublishedRow)
                else f"{row.reason} {day_time(row.at)}",
                row.correlation or "",
                value(row.data),
            ]
            for row in found
        ]
        headers = ("EVENT", "KEY", "PUBLISHED", "DEAD" if dead else "KEPT", "CORRELATION", "DATA")
        target.out.table(headers, rows, empty="there are none")

    target.read(run)


async def _events(client: Client, key: str | None, limit: int, *, dead: bool) -> list[PublishedRow | DeadEvent]:
    ask: Any = client.messages.dead_events if dead else client.messages.events
    found: list[PublishedRow | DeadEvent] = []
    before: int | None = None
    while not limit or len(found) < limit:
        size = PAGE if not limit else min(PAGE, limit - len(found))
        rows = await ask(client.org, key, before, size)
        found += rows
        if len(rows) < size:
            break
        before = rows[-1].id
    return found


@event.command()
@click.argument("event_id", metavar="EVENT", type=int)
@connected
def replay(target: Target, event_id: int) -> None:
    """Publish the dead EVENT again, with a new number."""

    async def run(client: Client) -> PublishResult:
        return await client.replay_event(event_id)

    _show_published(target, target.run(run))


@event.command()
@click.argument("event_id", metavar="EVENT", type=int)
@connected
def remove(target: Target, event_id: int) -> None:
    """Remove EVENT, kept or dead: nobody will get it."""

    async def run(client: Client) -> None:
        await client.remove_event(event_id)

    target.run(run)
    target.out.answer({"event_id": event_id, "removed": True}, f"event {event_id} is removed")


@event.command()
@click.argument("event_id", metavar="EVENT", type=int)
@connected
def explain(target: Target, event_id: int) -> None:
    """Say why EVENT went to whom it went: every open wait of its key, and the part of its filter that refused it."""

    async def run(client: Client) -> EventExplanation:
        return await client.explain_event(event_id)

    explained = target.read(run)
    if target.out.as_json:
        target.out.document(explained)
        return
    for line in str(explained).splitlines():
        target.out.line(line)
    if explained.more:
        target.out.note("there are more waits than these")
