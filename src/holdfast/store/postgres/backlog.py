"""What waits for a worker, and what is stuck: for whoever watches all orgs at once."""

from __future__ import annotations

from holdfast.store.postgres.read_session import index_only
from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.queries import Backlog, QueueDepth

_TURNS = statement("ready", "backlog")
_TASKS = statement("tasks", "backlog")
_STUCK = statement("executions", "stuck")


@index_only
async def backlog(connection: Connection, now: int, most: int) -> Backlog:
    return Backlog(
        turns=[QueueDepth(*row) for row in await connection.fetch(_TURNS, now, most)],
        tasks=[QueueDepth(*row) for row in await connection.fetch(_TASKS, now, most)],
        stuck={org: count for org, count in await connection.fetch(_STUCK, most) if count},
    )
