"""`holdfast worker`."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from holdfast.cli.inputs import LENGTH
from holdfast.cli.main import debug_option
from holdfast.cli.target import place_of, shown_server, shown_url

if TYPE_CHECKING:
    from holdfast.cli.apps import App
    from holdfast.config import EngineConfig

GRPC_PORT: Final = 7234


@click.command()
@click.argument("app")
@click.option("--server", metavar="URL", help="Work for this server: grpc://host:7234 [env: HOLDFAST_SERVER].")
@click.option(
    "--api-key", metavar="KEY", envvar="HOLDFAST_API_KEY", help="For the server [env: HOLDFAST_API_KEY, better]."
)
@click.option(
    "--db",
    metavar="URL",
    help="Work on this database directly [env: HOLDFAST_DATABASE_URL; default: ./holdfast.db].",
)
@click.option("--org", default="default", envvar="HOLDFAST_ORG", show_default=True, help="Whose workflows it runs.")
@click.option("--queue", "-q", "queues", multiple=True, help="Queues to work on  [default: default].")
@click.option("--turn-slots", type=click.IntRange(1), help="How many executions at once.")
@click.option("--task-slots", type=click.IntRange(1), help="How many tasks at once.")
@click.option("--grace", type=LENGTH, help="How long what runs may take when it is stopped  [default: 10s].")
@click.option("--migrate/--no-migrate", default=True, show_default=True, help="Bring the schema up to date first.")
@click.option("--require-sync", is_flag=True, help="Refuse a PostgreSQL that may lose answered calls in a failover.")
@click.option("--verbose", "-v", is_flag=True, help="Log more.")
@debug_option
def worker(
    app: str,
    *,
    server: str | None,
    api_key: str | None,
    db: str | None,
    org: str,
    queues: tuple[str, ...],
    turn_slots: int | None,
    task_slots: int | None,
    grace: float | None,
    migrate: bool,
    require_sync: bool,
    verbose: bool,
) -> None:
    """Run the workflows and tasks of APP, until it is stopped.

    APP is a module, module:attribute or file.py; of a module, all workflows and tasks are taken. Stopped by SIGTERM or
    Ctrl-C it takes nothing more, lets what runs finish within --grace, and gives the rest back.
    """
    import asyncio

    from holdfast.cli.apps import load_app
    from holdfast.cli.running import engine_config, hand_over_soon, show_log

    server, url = place_of(server, db)
    show_log(verbose=verbose)
    loaded = load_app(app)
    config = engine_config(
        queues=queues,
        turn_slots=turn_slots,
        task_slots=task_slots,
        grace_s=grace,
        migrate=migrate,
        require_sync=require_sync,
    )
    if server is not None:
        hand_over_soon()
        running: AbstractAsyncContextManager[Any] = _remote(loaded, server, api_key, org, config)
    else:
        assert url is not None, "a server or a database"
        running = _local(loaded, url, org, config)
    where = shown_url(url or "") if server is None else shown_server(server)
    asyncio.run(_run(loaded, running, where, config.worker.queues))


def _remote(
    app: App, server: str, api_key: str | None, org: str, config: EngineConfig
) -> AbstractAsyncContextManager[Any]:
    from holdfast.assembly import RemoteWorker

    try:
        return RemoteWorker(
            grpc_address(server),
            workflows=app.workflows,
            tasks=app.tasks,
            api_key=api_key,
            org=org,
            config=config.worker,
        )
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error.name} is not installed: pip install 'holdfast[server]'") from error


def grpc_address(server: str) -> str:
    """Workers talk gRPC. The address of a server's HTTP is taken for its default port for workers."""
    try:
        parts = urlsplit(server)
    except ValueError:
        return server  # whoever reads it says what is wrong with it
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query:
        return server
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"grpc{parts.scheme.removeprefix('http')}://{host}:{GRPC_PORT}"


def _local(app: App, url: str, org: str, config: EngineConfig) -> AbstractAsyncContextManager[Any]:
    from holdfast.assembly import Engine

    if url == "sqlite://":
        raise click.UsageError("A database in memory belongs to one process: use `holdfast dev`, or name a file.")
    return Engine(url, workflows=app.workflows, tasks=app.tasks, config=config, org=org)


async def _run(app: App, running: AbstractAsyncContextManager[Any], where: str, queues: tuple[str, ...]) -> None:
    from holdfast.cli.running import started, stop_signals
    from holdfast.cli.serving import print_app

    async with stop_signals() as stopped, AsyncExitStack() as opened:
        await started(running, opened, stopped)
        click.echo(f"holdfast worker for {where}, queues {', '.join(queues)}")
        for line in print_app(app):
            click.echo(line)
        await stopped.wait()
        click.echo("stopping; once more Ctrl-C ends it at once", err=True)
