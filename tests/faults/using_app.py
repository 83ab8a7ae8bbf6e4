"""An application that joins its own transaction, to be killed: `python -m tests.faults.using_app ROLE OPTIONS`.

`once` makes one order, `often` one after another. In both, an order and the signal-with-start for it are one
transaction. With `kill_at` the process kills itself when its connection is about to run that statement, counted from
the beginning of the transaction; it says "committed" after the transaction, and then how many statements there were.
`db` is the URL of a database.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import psycopg

from holdfast import EngineConfig, StoreConfig, SyncEngine, WorkflowContext, workflow


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


def main() -> None:
    role, options = sys.argv[1], json.loads(sys.argv[2])
    db = options["db"]
    # No worker of this process takes the work away: the database is looked at as it was left.
    workflows = [fulfil] if options.get("work") else []
    config = EngineConfig(store=StoreConfig(synchronous="normal"))
    with SyncEngine(db, workflows=workflows, config=config) as engine:
        path = db.removeprefix("sqlite:///")
        connection: Connection = connect_to_server(db) if path == db else connect(path)
        print("ready", flush=True)
        if role == "once":
            sys.stdin.readline()
            trap = Trap(options.get("kill_at"))
            set_trap(connection, trap)
            place(engine, connection, "o1")
            print("committed", flush=True)
            connection.execute("SELECT 'committed'")
            print(trap.statements, flush=True)
        else:
            for number in count():
                place(engine, connection, f"{options['prefix']}{number}")


if __name__ == "__main__":
    # As the module the tests import, so that functions have the same names in both.
    from tests.faults import using_app

    using_app.main()
