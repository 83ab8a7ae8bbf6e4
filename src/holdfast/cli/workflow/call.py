"""`holdfast workflow query` and `update`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.inputs import JSON, LENGTH
from holdfast.cli.target import Target, connected, found

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.client.client import Client


@click.command()
@click.argument("id_", metavar="ID")
@click.argument("name")
@click.option("--input", "input_", type=JSON, help="What the query takes.")
@click.option("--as-of", type=click.IntRange(1), metavar="EVENT", help="As it was when this event was the last.")
@click.option("--timeout", type=LENGTH, help="How long to wait for the answer.")
@click.option("--app", metavar="APP", help="On a database: where the code is, if no worker of this process has it.")
@connected
def query(target: Target, id_: str, name: str, *, input_: Any, app: str | None, **options: Any) -> None:
    """Ask the program of ID something, and print the answer as JSON. Also when it is closed.

    A server asks one of its workers. On a database the code is needed here: give --app; it takes on no work. The query
    __stack__ says where the code is, __handlers__ what it can be asked.
    """
    import asyncio

    from msgspec import json

    from holdfast.client.calls import NO_VALUE
    from holdfast.errors import NoWorker

    async def run() -> Any:
        async with with_code(target, app) as client:
            execution = await found(client, id_)
            value = NO_VALUE if input_ is None else input_
            try:
                return await client.query_workflow(execution.id, name, value, **options)
            except NoWorker as error:
                if target.db is None or app is not None:
                    raise
                raise NoWorker(
                    f"nobody here has the code of {execution.kind!r} version {execution.version!r}: give --app APP, or "
                    "ask a server that has workers"
                ) from error

    target.out.json_text(json.encode(asyncio.run(run())))


@asynccontextmanager
async def with_code(target: Target, app: str | None) -> AsyncIterator[Client]:
    """A client whose engine can ask programs, if it is told where their code is. It claims nothing."""
    if app is None:
        async with target.client() as client:
            yield client
        return
    from holdfast.cli.apps import load_app
    from holdfast.cli.running import engine_config

    if target.db is None:
        raise click.UsageError("--app is for a database: a server has workers of its own.")
    loaded = load_app(app)
    config = engine_config(turn_slots=0, task_slots=0, migrate=False)
    async with target.engine(workflows=loaded.workflows, config=config) as engine:
        yield engine.client


@click.command()
@click.argument("id_", metavar="ID")
@click.argument("name")
@click.option("--input", "input_", type=JSON, help="What the update takes.")
@click.option("--update-id", metavar="ID", help="The same update again with this id is not made twice.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer, only until it is accepted.")
@click.option("--timeout", type=LENGTH, help="How long to wait; the update goes on.")
@connected
def update(
    target: Target,
    id_: str,
    name: str,
    *,
    input_: Any,
    update_id: str | None,
    no_wait: bool,
    timeout: float | None,
) -> None:
    """Let the program of ID change something, and print its answer as JSON."""
    from msgspec import json

    async def run(client: Client) -> Any:
        execution = await found(client, id_)
        return await client.update_workflow(
            execution.id,
            name,
            input_,
            update_id=update_id,
            wait_for="accepted" if no_wait else "completed",
            timeout=timeout,
        )

    answer = target.run(run)
    if no_wait:
        target.out.answer({"status": "ACCEPTED"}, "accepted")
    else:
        target.out.json_text(json.encode(answer))
