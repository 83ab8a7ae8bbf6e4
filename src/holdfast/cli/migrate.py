"""`holdfast migrate URL`: brings the schema of a database up to date, or says what is missing."""

from __future__ import annotations

from typing import Protocol

import click

from holdfast.cli.exit_codes import ANSWER_IS_NO
from holdfast.cli.main import debug_option
from holdfast.cli.target import database_url


class Migration(Protocol):
    @property
    def name(self) -> str: ...


@click.command()
@click.argument("url", envvar="HOLDFAST_DATABASE_URL")
@click.option("--check", is_flag=True, help="Change nothing; say what is missing, and end with 1 if there is anything.")
@debug_option
def migrate(url: str, *, check: bool) -> None:
    """Bring the schema of the database at URL up to date.

    URL is sqlite:///path/to/file.db, a path, or postgresql://user:password@host:port/database; without one, that of the
    environment variable HOLDFAST_DATABASE_URL is used, where no list of processes shows its password. Programs that
    use the database may go on meanwhile. Run it as often as you like: what was applied before is left alone.
    """
    from holdfast.store.urls import kind_of

    url = database_url(url)
    name, found = (_postgres if kind_of(url) == "postgresql" else _sqlite)(url, check=check)
    for migration in found:
        click.echo(f"{'missing' if check else 'applied'}  {migration.name}")
    if not found:
        click.echo(f"{name} is up to date")
    elif check:
        raise click.exceptions.Exit(ANSWER_IS_NO)


def _postgres(url: str, *, check: bool) -> tuple[str, list[Migration]]:
    import asyncio

    from holdfast.config import StoreConfig
    from holdfast.store.postgres.connections import Database

    async def run() -> list[Migration]:
        await database.check()
        return [*(await database.pending() if check else await database.migrate())]

    database = Database(url, StoreConfig(synchronous="normal"), lambda: 0)  # the schema is all that is asked about
    return database.name, asyncio.run(run())


def _sqlite(url: str, *, check: bool) -> tuple[str, list[Migration]]:
    import sqlite3
    from contextlib import closing

    from holdfast.assembly import SystemClock, database_file, open_store
    from holdfast.config import EngineConfig, StoreConfig
    from holdfast.errors import InvalidDatabaseUrl
    from holdfast.store.sqlite.connections import Database
    from holdfast.store.sqlite.migrate import migrations, missing

    open_store(url, EngineConfig(), SystemClock())  # reads the URL and opens nothing
    path = database_file(url)
    if path is None:
        raise InvalidDatabaseUrl("a database in memory has nothing to migrate: name a file", field="url")
    database = Database(path, StoreConfig(), SystemClock())
    left = [*migrations()]
    if path.exists():
        try:
            with closing(database.open_reader()) as connection:
                left = missing(connection, database.name)
        except sqlite3.Error as error:
            raise database.explain(error) from error
    if left and not check:
        database.open_writer().close()
    return database.name, [*left]
