"""`holdfast dev`: everything in one process, for trying things out."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.main import debug_option
from holdfast.cli.serving import listening
from holdfast.cli.target import DEFAULT_FILE, database_url, shown_url

if TYPE_CHECKING:
    from holdfast.assembly import Server
    from holdfast.cli.apps import App


@click.command()
@click.argument("app")
@click.option(
    "--db",
    metavar="URL",
    envvar="HOLDFAST_DATABASE_URL",
    default=str(DEFAULT_FILE),
    show_default=True,
    help="A file, sqlite:// for memory, or postgresql://… [env: HOLDFAST_DATABASE_URL].",
)
@click.option("--org", default="default", show_default=True, help="Whose workflows it runs.")
@click.option("--queue", "queues", multiple=True, help="Queues to work on; all that the tasks name, and default.")
@listening
@click.option("--no-server", is_flag=True, help="Engine and worker only; nothing listens.")
@click.option("--verbose", "-v", is_flag=True, help="Log more.")
@debug_option
def dev(app: str, *, db: str, org: str, queues: tuple[str, ...], no_server: bool, verbose: bool, **places: Any) -> None:
    """Run the workflows and tasks of APP here: engine, worker and server in one process, on an SQLite file.

    APP is a module, module:attribute or file.py; of a module, all workflows and tasks are taken. Ctrl-C stops it; what
    was going on goes on when it is started again.

    \b
    holdfast dev app.py
    holdfast dev shop.workflows --db postgresql://localhost/shop
    """
    import asyncio

    from holdfast.cli.apps import load_app
    from holdfast.cli.running import show_log

    show_log(verbose=verbose)
    loaded = load_app(app)
    asyncio.run(_run(loaded, database_url(db), org, queues, places, no_server=no_server))


async def _run(
    app: App, db: str, org: str, queues: tuple[str, ...], places: dict[str, Any], *, no_server: bool
) -> None:
    from holdfast.assembly import Engine, Server
    from holdfast.cli.running import engine_config, started, stop_signals
    from holdfast.cli.serving import server_config

    named = {found.queue for found in app.registry.tasks if found.queue is not None}
    config = engine_config(queues=queues or tuple(sorted({"default", *named})))
    options: dict[str, Any] = {"workflows": app.workflows, "tasks": app.tasks, "config": config, "org": org}
    async with stop_signals() as stopped, AsyncExitStack() as opened:
        server: Server | None = None
        if no_server or not _server_is_there():
            await started(Engine(db, **options), opened, stopped)
        else:
            server = await started(Server(db, server=server_config(**places), **options), opened, stopped)
        for line in _greeting(app, db, org, server, served=not no_server):
            click.echo(line)
        await stopped.wait()
        click.echo("stopping; once more Ctrl-C ends it at once", err=True)


def _server_is_there() -> bool:
    from importlib.util import find_spec

    return find_spec("uvicorn") is not None


def _greeting(app: App, db: str, org: str, server: Server | None, *, served: bool) -> list[str]:
    from shlex import quote

    from holdfast.cli.serving import print_addresses, print_app

    memory = db == "sqlite://"
    lines = [f"holdfast dev runs {app.name}", *print_app(app)]
    lines.append(f"database    {'in memory: gone when this ends' if memory else shown_url(db)}")
    where = ""
    if server is not None:
        lines += print_addresses(server)
        where = f" --server {server.url}"
    elif served:
        lines.append("server      none: pip install 'holdfast[server]'")
    if server is None and not memory:
        where = "" if db == f"sqlite:///{DEFAULT_FILE}" else f" --db {quote(shown_url(db))}"
    if server is None and memory:
        return [*lines, "stop        Ctrl-C"]
    if org != "default":
        where += f" --org {quote(org)}"
    kinds = sorted(found.kind for found in app.registry.workflows)
    if kinds:
        lines.append(f"start one   holdfast workflow start {quote(kinds[0])}{where} --input JSON --wait")
    return [*lines, f"see them    holdfast workflow list{where}", "stop        Ctrl-C"]
