"""`holdfast server`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.inputs import Length
from holdfast.cli.main import debug_option
from holdfast.cli.serving import listening
from holdfast.cli.target import place_of, shown_url

if TYPE_CHECKING:
    from holdfast.config import EngineConfig

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--db",
    metavar="URL",
    help="sqlite:///file.db, a path, postgresql://… [env: HOLDFAST_DATABASE_URL; default: ./holdfast.db].",
)
@listening
@click.option(
    "--auth",
    type=click.Choice(["auto", "keys", "dev"]),
    default="auto",
    show_default=True,
    help="auto: keys once there are any, and always for others than this machine.",
)
@click.option("--tls-certificate", type=_FILE, help="PEM; then it speaks TLS only.")
@click.option("--tls-key", type=_FILE, help="PEM.")
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    metavar="NETWORK",
    multiple=True,
    help="A proxy before this server, such as 10.0.0.7 or 10.0.0.0/8: its X-Forwarded-For is believed. Several times.",
)
@click.option("--migrate/--no-migrate", default=True, show_default=True, help="Bring the schema up to date first.")
@click.option("--require-sync", is_flag=True, help="Refuse a PostgreSQL that may lose answered calls in a failover.")
@click.option(
    "--keep-closed",
    type=Length(),
    help="How long executions are kept after they have closed, such as 30d; by default for ever.",
)
@click.option("--verbose", "-v", is_flag=True, help="Log more.")
@debug_option
def server(
    *,
    db: str | None,
    auth: str,
    tls_certificate: Path | None,
    tls_key: Path | None,
    migrate: bool,
    require_sync: bool,
    keep_closed: float | None,
    verbose: bool,
    **places: Any,
) -> None:
    """Serve a database over REST and gRPC: for clients, remote workers and this command line.

    It runs no workflows: start workers with `holdfast worker APP --server grpc://…`, or on the same database. On
    another address than this machine's it starts only if there is an API key: holdfast key create.
    """
    from holdfast.cli.running import engine_config, run_fast, show_log

    url = database_url_of(db)
    show_log(verbose=verbose)
    config = engine_config(migrate=migrate, require_sync=require_sync, keep_closed_s=keep_closed)
    tls = {
        "tls_certificate": None if tls_certificate is None else str(tls_certificate),
        "tls_key": None if tls_key is None else str(tls_key),
    }
    run_fast(_run(url, auth, {**places, **tls}, config))


def database_url_of(db: str | None) -> str:
    """The database to work on, whatever servers the environment names."""
    import os

    given = db or os.environ.get("HOLDFAST_DATABASE_URL")
    _, url = place_of(None, given) if given else place_of(None, "holdfast.db")
    assert url is not None, "a database was named"
    return url


async def _run(url: str, auth: str, places: dict[str, Any], config: EngineConfig) -> None:
    from holdfast.assembly import Server
    from holdfast.cli.running import started, stop_signals
    from holdfast.cli.serving import print_addresses, server_config

    try:
        from holdfast.server.auth import AuthMode, AuthSettings
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error.name} is not installed: pip install 'holdfast[server]'") from error
    server = Server(url, config=config, server=server_config(**places), auth=AuthSettings(mode=AuthMode(auth)))
    async with stop_signals() as stopped, AsyncExitStack() as opened:
        running = await started(server, opened, stopped)
        click.echo(f"holdfast server on {shown_url(url)}")
        for line in print_addresses(running):
            click.echo(line)
        await stopped.wait()
        click.echo("stopping; once more Ctrl-C ends it at once", err=True)
