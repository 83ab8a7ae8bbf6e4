"""An application that joins its own transaction, to be killed: `python -m tests.faults.using_app ROLE OPTIONS`.

`once` makes one order, `often` one after another. In both, an order and the signal-with-start for it are one
transaction. With `kill_at` the process kills itself when its connection is about to run that statement, counted from
the beginning of the transaction.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from itertools import count
from pathlib import Path

from holdfast import EngineConfig, StoreConfig, SyncEngine, WorkflowContext, workflow


@workflow
async def fulfil(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("placed", str)


def connect(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, isolation_level=None)
    connection.execute("CREATE TABLE IF NOT EXISTS orders (name TEXT PRIMARY KEY)")
    return connection


def place(engine: SyncEngine, connection: sqlite3.Connection, name: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO orders VALUES (?)", (name,))
    engine.client.signal_with_start_workflow(
        name, fulfil, signal_name="placed", signal_value=name, request_id=f"key-{name}", using=connection
    )
    connection.execute("UPDATE orders SET name = name")
    connection.execute("COMMIT")


class Trap:
    """Counts the statements of a connection, and ends the process at one of them as a power cut would."""

    def __init__(self, connection: sqlite3.Connection, kill_at: int | None) -> None:
        self.statements: list[str] = []
        self._kill_at = kill_at
        connection.set_trace_callback(self._seen)

    def _seen(self, sql: str) -> None:
        self.statements.append(sql)
        if len(self.statements) == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    role, options = sys.argv[1], json.loads(sys.argv[2])
    # No worker of this process takes the work away: the file is looked at as it was left.
    workflows = [fulfil] if options.get("work") else []
    config = EngineConfig(store=StoreConfig(synchronous="normal"))
    with SyncEngine(f"sqlite:///{options['db']}", workflows=workflows, config=config) as engine:
        connection = connect(options["db"])
        print("ready", flush=True)
        if role == "once":
            sys.stdin.readline()
            trap = Trap(connection, options.get("kill_at"))
            place(engine, connection, "o1")
            connection.execute("SELECT 'committed'")
            print(len(trap.statements), flush=True)
        else:
            for number in count():
                place(engine, connection, f"{options['prefix']}{number}")


if __name__ == "__main__":
    # As the module the tests import, so that functions have the same names in both.
    from tests.faults import using_app

    using_app.main()
