"""An application that joins its own transaction, to be killed: `python -m tests.faults.using_app ROLE OPTIONS`.

For every line that it reads, it makes orders in a process of its own: a copy of itself, which has loaded all that is
needed and nothing else. `once` makes one order, `often` one after another. In both, an order and the signal-with-start
for it are one transaction. The line is a JSON object with more options. `kill_at` is the statement, counted from the
beginning of the transaction, at which the copy kills itself: when its connection is about to run it. It tells the
number of the copy's process, and at its end how it ended, whether it had said "committed", and how many statements
there were. `db` is the URL of a database.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import psycopg

from holdfast import EngineConfig, StoreConfig, SyncEngine, WorkerConfig, WorkflowContext, workflow


@workflow
async def fulfil(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("placed", str)


class Trap:
    """Counts the statements of a connection, and ends the process at one of them as a power cut would."""

    def __init__(self, kill_at: int | None) -> None:
        self.statements = 0
        self._kill_at = kill_at

    def seen(self, *_: object) -> None:
        self.statements += 1
        if self.statements == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


class Connection(Protocol):
    def execute(self, sql: Any, /) -> Any: ...


class Trapped(psycopg.Connection[Any]):
    """Every statement goes through `wait`."""

    trap: Trap | None = None

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        if self.trap is not None:
            self.trap.seen()
        return super().wait(*args, **kwargs)


def connect(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, isolation_level=None)
    connection.execute("CREATE TABLE IF NOT EXISTS orders (name TEXT PRIMARY KEY)")
    return connection


def connect_to_server(url: str) -> Trapped:
    connection = Trapped.connect(url, autocommit=True)
    connection.execute("CREATE TABLE IF NOT EXISTS orders (name TEXT PRIMARY KEY)")
    return connection


def set_trap(connection: Connection, trap: Trap) -> None:
    if isinstance(connection, Trapped):
        connection.trap = trap
    else:
        assert isinstance(connection, sqlite3.Connection)
        connection.set_trace_callback(trap.seen)


def place(engine: SyncEngine, connection: Connection, name: str) -> None:
    connection.execute("BEGIN" if isinstance(connection, Trapped) else "BEGIN IMMEDIATE")
    connection.execute(f"INSERT INTO orders VALUES ('{name}')")
    engine.client.signal_with_start_workflow(
        name, fulfil, signal_name="placed", signal_value=name, request_id=f"key-{name}", using=connection
    )
    connection.execute("UPDATE orders SET name = name")
    connection.execute("COMMIT")


def once(options: dict[str, Any]) -> None:
    with opened(options) as (engine, connection):
        trap = Trap(options.get("kill_at"))
        set_trap(connection, trap)
        place(engine, connection, "o1")
        print("committed", end=" ", flush=True)
        connection.execute("SELECT 'committed'")
        print(trap.statements, flush=True)


def often(options: dict[str, Any]) -> None:
    with opened(options) as (engine, connection):
        for number in count():
            place(engine, connection, f"{options['prefix']}{number}")


@contextmanager
def opened(options: dict[str, Any]) -> Iterator[tuple[SyncEngine, Connection]]:
    db = options["db"]
    # No worker of this process takes the work away: the database is looked at as it was left.
    workflows = [fulfil] if options.get("work") else []
    # What a killed worker held is free again soon.
    config = EngineConfig(store=StoreConfig(synchronous="normal"), worker=WorkerConfig(lease_s=1.0))
    with SyncEngine(db, workflows=workflows, config=config) as engine:
        path = db.removeprefix("sqlite:///")
        yield engine, connect_to_server(db) if path == db else connect(path)


def main() -> None:
    """Here nothing is open and no thread runs, so that a copy is as good as a process begun from nothing."""
    role, options = sys.argv[1], json.loads(sys.argv[2])
    print("ready", flush=True)
    for line in sys.stdin:
        reading, writing = os.pipe()
        copy = os.fork()
        if not copy:
            os.dup2(writing, 1)
            {"once": once, "often": often}[role](options | json.loads(line))
            os._exit(0)
        os.close(writing)
        print(copy, flush=True)
        with os.fdopen(reading) as said:
            words = said.read().split()
        _, status = os.waitpid(copy, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), *words]), flush=True)


if __name__ == "__main__":
    # As the module the tests import, so that functions have the same names in both.
    from tests.faults import using_app

    using_app.main()
