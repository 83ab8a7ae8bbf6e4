"""The demo: hello, conversations and orders on one database file, with a live log. `make run` starts it.

Run it: `python -m examples.run [--db FILE|URL] [--port N] [--once] [--fast]`. Stop it at any moment, with Ctrl-C or
`kill -9`, and start it again: what was under way goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from examples import play
from examples.lines import waits_line
from examples.live import Follower
from holdfast import Engine, EngineConfig, HoldfastError, InvalidServer, Server, ServerConfig, WorkerConfig
from holdfast.types import ExecutionInfo

DEFAULT_DB = Path(".holdfast/demo.db")
PORT = 8233

# A worker that was killed is missed after `lease_s`, by default 30 s. Here somebody is watching, so sooner.
CONFIG = EngineConfig(worker=WorkerConfig(lease_s=5.0, shutdown_grace_s=3.0))


def url_of(db: Path | str) -> str:
    return db if isinstance(db, str) else f"sqlite:///{quote(str(db))}"


def file_or_url(text: str) -> Path | str:
    return text if "://" in text else Path(text)


def add_db_option(parser: argparse.ArgumentParser) -> None:
    default = file_or_url(os.environ.get("HOLDFAST_DATABASE_URL", str(DEFAULT_DB)))
    parser.add_argument("--db", type=file_or_url, default=default, help="database file or URL (default: %(default)s)")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.run", description="Run the example workflows.")
    add_db_option(parser)
    parser.add_argument("--port", type=int, default=PORT, help="for HTTP; a free one if it is taken (%(default)s)")
    parser.add_argument("--once", action="store_true", help="exit when the orders are done")
    parser.add_argument("--fast", action="store_true", help="shorten the waiting")
    options = parser.parse_args()
    if isinstance(options.db, Path):
        options.db.parent.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(demo(options.db, port=options.port, once=options.once, fast=options.fast))
    except HoldfastError as error:
        sys.exit(str(error))


async def demo(db: Path | str, *, port: int = PORT, once: bool, fast: bool) -> None:
    stop = stop_event()
    before = await workflows(db)
    print(welcome(db, still_open(before)), flush=True)
    async with await open_server(db, port) as server:
        follower = Follower(server.client, {view.workflow_execution_id: view.history_length for view in before})
        listen_to_loggers(follower)
        await first_of(
            stop.wait(),
            follower.follow(),
            play.courier(server.client),
            perform(server, follower, db, once=once, fast=fast),
        )
        if stop.is_set():
            print("\nstopping: nothing new is begun, running tasks get 3 s to finish", flush=True)
    print(goodbye(db, still_open(await workflows(db))), flush=True)


async def open_server(db: Path | str, port: int) -> Server:
    """Engine, worker and HTTP in this process."""
    for chosen in (port, 0):
        server = Server(
            url_of(db),
            workflows=play.WORKFLOWS,
            tasks=play.TASKS,
            config=CONFIG,
            server=ServerConfig(port=chosen, grpc_port=None),
        )
        try:
            await server.start_up()
        except InvalidServer as error:
            if error.field != "port" or not chosen:
                raise
        else:
            return server
    raise AssertionError("a free port was found, or an error said why not")


async def perform(server: Server, follower: Follower, db: Path | str, *, once: bool, fast: bool) -> None:
    """Play the demo to its end; without `once` it never ends."""
    orders = await play.begin(server.client, fast=fast)
    await play.ended(order for order in orders if not order.by_hand)
    await follower.look()
    if not once:
        print(what_to_try(db, server.url, orders), flush=True)
    await play.ended(orders)
    await follower.look()
    if not once:
        await asyncio.Event().wait()
    print(f"\nthe orders are done; look at one with: {command('show', db)} {orders[0].order_id}", flush=True)


async def first_of(*coroutines: Coroutine[Any, Any, Any]) -> None:
    """Until one of them ends; the others are cancelled. An error that ends one of them is raised."""
    jobs = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        for job in done:
            job.result()
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)


async def workflows(db: Path | str) -> list[ExecutionInfo]:
    """Looked up by an engine that runs nothing, so that nothing moves meanwhile."""
    async with Engine(url_of(db)) as engine:
        return [view async for view in engine.client.iter_workflows()]


def still_open(views: list[ExecutionInfo]) -> list[ExecutionInfo]:
    return [view for view in views if view.status.is_open]


def stop_event() -> asyncio.Event:
    """Set by Ctrl-C or a polite kill. A second Ctrl-C ends the process the usual way."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        stop.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt instead
            loop.add_signal_handler(number, on_signal, number)
    return stop


def listen_to_loggers(follower: Follower) -> None:
    for name in ("holdfast.workflow", "holdfast.task"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(follower)
        logger.propagate = False


# --- words --------------------------------------------------------------------------------------------------------


def welcome(db: Path | str, left: list[ExecutionInfo]) -> str:
    lines = [f"Holdfast demo, everything in {db}", ""]
    if left:
        lines.append(f"continuing {count(left)} from last time:")
        for view in left:
            waits = f", waits for {waits_line(view.waiting_for)}" if view.waiting_for else ""
            lines.append(f"  {view.workflow_id:<18} {view.status.lower()}, {view.history_length} events{waits}")
        lines.append("")
    return "\n".join(lines)


def goodbye(db: Path | str, left: list[ExecutionInfo]) -> str:
    if not left:
        return f"stopped; no workflow is open in {db}"
    names = ", ".join(view.workflow_id for view in left)
    return f"stopped; {count(left)} still open ({names}): start again to continue"


def what_to_try(db: Path | str, url: str, orders: list[play.Placed]) -> str:
    send, show = command("send", db), command("show", db)
    tries = [
        (f"{send} {order.order_id} TRACK-42", "report the parcel it waits for") for order in orders if order.by_hand
    ]
    tries += [
        (f'{send} conversation:ada "hello"', 'say something; "bye" ends the conversation'),
        (show, "all workflows"),
        (f"{show} {orders[0].order_id}", "one of them: status, what it waits for, history"),
    ]
    if isinstance(db, Path):
        tries.append((f"sqlite3 -readonly {db} .schema", "the file itself, if you have sqlite3"))
    else:
        tries.append((f"psql {db} -c '\\d'", "the database itself, if you have psql"))
    width = max(len(what) for what, _ in tries)
    lines = [f"  {what:<{width}}  # {why}" for what, why in tries]
    return "\n".join(
        [
            "\nTo try now, in another terminal:\n",
            *lines,
            f"\nThe same over HTTP; {url}/api/docs shows everything there is:\n",
            *(f"  {line}" for line in curls(url)),
            "\nOr stop this one, with Ctrl-C or kill -9, and start it again: it continues where it was.\n",
        ]
    )


def curls(url: str) -> list[str]:
    executions = f"{url}/api/orgs/default/workflow-executions"
    hello = (
        '{"workflow_id": "conversation:eve", "workflow_kind": "chatbot-conversation", "workflow_input": "eve", '
        '"signal_name": "message", "signal_value": {"text": "hello"}}'
    )
    return [
        f"curl -s '{executions}?limit=3'",
        f"curl -s {executions}/signal-with-start -H 'Content-Type: application/json' -d '{hello}'",
        f"curl -sN {executions}/events  # every change as it happens; Ctrl-C ends it",
    ]


def command(module: str, db: Path | str) -> str:
    """How to run a script of the examples here, with this Python and this database."""
    python = Path(sys.executable)
    shown = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else Path("python")
    return f"{shown} -m examples.{module}" + ("" if db == DEFAULT_DB else f" --db {db}")


def count(views: list[ExecutionInfo]) -> str:
    return f"{len(views)} workflow{'' if len(views) == 1 else 's'}"


if __name__ == "__main__":
    main()
