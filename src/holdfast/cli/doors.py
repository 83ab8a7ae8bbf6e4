"""Where a command works: on a server, or directly on a database. Both give a `Client`.

`connected` puts the options on a command and hands it a `Door`. Nothing is opened before the door is used.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.main import debug_option

if TYPE_CHECKING:
    from holdfast.assembly import Engine
    from holdfast.cli.output import Output
    from holdfast.client.client import Client
    from holdfast.contract.execution_reads import ExecutionInfo
    from holdfast.contract.system import CallerInfo

T = TypeVar("T")
DEFAULT_FILE = Path("holdfast.db")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Door:
    """A server or a database, an org, and how to answer."""

    def __init__(self, *, server: str | None, api_key: str | None, db: str | None, org: str, as_json: bool) -> None:
        from holdfast.cli.output import Output

        self.server, self.db = place_of(server, db)
        self.api_key = api_key
        self.org = org
        self.out: Output = Output(as_json=as_json)

    @property
    def name(self) -> str:
        """For people: never with a password."""
        return shown_url(self.db or "") if self.server is None else shown_server(self.server)

    def run(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Open, do the work, close."""
        return self._run(work, looking=False)

    def look(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """The same for work that only reads: nothing that is due is done by the way."""
        return self._run(work, looking=True)

    def _run(self, work: Callable[[Client], Awaitable[T]], *, looking: bool) -> T:
        import asyncio

        async def opened() -> T:
            async with self.client(looking=looking) as client:
                return await work(client)

        return asyncio.run(opened())

    @asynccontextmanager
    async def client(self, *, looking: bool = False) -> AsyncIterator[Client]:
        if self.server is None:
            async with self.engine(looking=looking) as engine:
                yield engine.client
            return
        from holdfast.client.client import Client

        async with Client.connect(self.server, api_key=self.api_key, org=self.org) as client:
            yield client

    async def now(self) -> int:
        """The time by which leases and timers are judged: the database's, which need not be this machine's."""
        from holdfast.cli import words
        from holdfast.contract.instants import micros
        from holdfast.store.urls import kind_of

        if self.server is not None:
            now = (await self._me()).now
            return words.now() if now is None else micros(now)
        assert self.db is not None
        if kind_of(self.db) == "sqlite":
            return words.now()
        from holdfast.config import StoreConfig
        from holdfast.store.postgres.clocks import time_of
        from holdfast.store.postgres.connections import Database

        async with Database(self.db, StoreConfig(), words.now).session() as connection:
            return await time_of(connection)

    async def _me(self) -> CallerInfo:
        """What the server says of itself and of us."""
        from holdfast.client.remote.caller import Caller
        from holdfast.client.remote.http_api import HttpApi
        from holdfast.contract.system import WhoAmI

        assert self.server is not None
        caller = Caller(self.server, self.api_key)
        try:
            return await HttpApi(caller).call(WhoAmI())
        finally:
            await caller.close()

    @asynccontextmanager
    async def engine(self, *, looking: bool = False, **options: Any) -> AsyncIterator[Engine]:
        """An engine that runs nothing unless it is given workflows. It leaves the schema as it is: other versions may
        be at work, and looking at a database must not end that."""
        from holdfast.assembly import Engine
        from holdfast.cli.engines import LookingEngine
        from holdfast.config import EngineConfig, StoreConfig
        from holdfast.store.urls import kind_of

        assert self.db is not None
        check_file(self.db)
        config = options.pop("config", None) or EngineConfig(store=StoreConfig(migrate=False))
        if kind_of(self.db) == "postgresql":
            # What the server may lose is for the doctor to say, and for those that keep running; not for every command.
            config = replace(config, store=replace(config.store, synchronous="normal"))
        kind = LookingEngine if looking else Engine
        async with kind(self.db, org=self.org, config=config, **options) as engine:
            yield engine


def place_of(server: str | None, db: str | None) -> tuple[str | None, str | None]:
    """The server or the database to work on: options count more than the environment, and that more than a file."""
    if server and db:
        raise click.UsageError("Give --server or --db, not both.")
    if not server and not db:
        server = os.environ.get("HOLDFAST_SERVER")
        db = None if server else os.environ.get("HOLDFAST_DATABASE_URL")
    if server:
        return server, None
    if db:
        return None, database_url(db)
    if DEFAULT_FILE.exists():
        return None, f"sqlite:///{DEFAULT_FILE}"
    raise click.UsageError(
        "No server and no database is named: give --server URL or --db URL, set HOLDFAST_SERVER or "
        f"HOLDFAST_DATABASE_URL, or come here where a file {DEFAULT_FILE} is."
    )


def database_url(given: str) -> str:
    """A path is as good as a URL."""
    from holdfast.store.urls import url_of

    return url_of(given)


def check_file(url: str) -> None:
    """A look at a database that is not there must not make one."""
    from holdfast.assembly import database_file, open_store
    from holdfast.config import EngineConfig
    from holdfast.errors import InvalidDatabaseUrl
    from holdfast.store.urls import kind_of

    if kind_of(url) != "sqlite":
        return
    open_store(url, EngineConfig())  # reads the URL and opens nothing
    path = database_file(url)
    if path is None:
        raise InvalidDatabaseUrl("a database in memory belongs to the process that made it: name a file", field="db")
    if not path.exists():
        raise InvalidDatabaseUrl(
            f"there is no database {path}: check the path; `holdfast dev APP` and `holdfast migrate URL` make one",
            field="db",
        )


def shown_url(url: str) -> str:
    """The URL of a database without user and password: of one that can't be read, nothing but its scheme. Where the
    password ends in it, nobody knows."""
    from holdfast.errors import HoldfastError
    from holdfast.store.urls import kind_of

    try:
        if kind_of(url) == "sqlite":
            return url
        from holdfast.store.postgres.urls import parse

        return parse(url).shown_url
    except HoldfastError:
        scheme = re.match(r"postgres(ql)?(?=:)", url)
        return f"{scheme[0]}://…" if scheme else "the database"


def shown_server(url: str) -> str:
    """The address of a server, without a key that somebody may have written into it."""
    scheme, slashes, rest = url.partition("://")
    if slashes and "@" not in rest:
        return re.split(r"[?#]", url, maxsplit=1)[0]
    return f"{scheme}://…" if scheme in {"http", "https", "grpc", "grpcs"} else "the server"


async def found(client: Client, given: str) -> ExecutionInfo:
    """The execution that an execution id names, or a workflow id: its open execution, or the last one."""
    from holdfast.contract.execution_reads import FindWorkflow, GetWorkflow
    from holdfast.errors import ExecutionNotFound

    if _UUID.fullmatch(given):
        try:
            return await client.api.call(GetWorkflow(org=client.org, workflow_execution_id=given))
        except ExecutionNotFound:
            pass  # a workflow id may look like that, too
    try:
        return await client.api.call(FindWorkflow(org=client.org, workflow_id=given))
    except ExecutionNotFound:
        raise ExecutionNotFound(
            f"no execution id and no workflow id {given!r} in org {client.org!r}: `holdfast workflow list` shows what "
            "there is"
        ) from None


_OPTIONS = (
    click.option("--server", metavar="URL", help="Work on this server [env: HOLDFAST_SERVER]."),
    click.option(
        "--api-key", metavar="KEY", envvar="HOLDFAST_API_KEY", help="For the server [env: HOLDFAST_API_KEY, better]."
    ),
    click.option(
        "--db",
        metavar="URL",
        help="Work on this database: sqlite:///file.db, a path, postgresql://… "
        "[env: HOLDFAST_DATABASE_URL; default: ./holdfast.db].",
    ),
    click.option(
        "--org",
        default="default",
        envvar="HOLDFAST_ORG",
        show_default=True,
        help="Whose workflows [env: HOLDFAST_ORG].",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts."),
)


def connected(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command that works on a server or a database; it gets a `Door` as its first argument."""

    @functools.wraps(command)
    def with_door(
        *, server: str | None, api_key: str | None, db: str | None, org: str, as_json: bool, **options: Any
    ) -> Any:
        return command(Door(server=server, api_key=api_key, db=db, org=org, as_json=as_json), **options)

    wrapped: Callable[..., Any] = debug_option(with_door)
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
