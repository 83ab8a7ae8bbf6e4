"""What waits for a worker, and what is stuck: for whoever watches all orgs at once."""

from __future__ import annotations

import sqlite3

from holdfast.store.queries import Backlog, QueueDepth
from holdfast.store.sqlite.statements import statement

_TURNS = statement("ready", "backlog")
_TASKS = statement("tasks", "backlog")
_STUCK = statement("executions", "stuck")


def backlog(connection: sqlite3.Connection, now: int, most: int) -> Backlog:
    return Backlog(
        turns=[QueueDepth(*row) for row in connection.execute(_TURNS, (now, most))],
        tasks=[QueueDepth(*row) for row in connection.execute(_TASKS, (now, most))],
        stuck={org: count for org, count in connection.execute(_STUCK, (most,)) if count},
    )
