"""What the tests of the life of executions share: all rows of a database, and what must hold for them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from holdfast import Engine, Status
from holdfast.client.handles import WorkflowHandle
from holdfast.testing import invariants
from tests.conftest import until


def dump(database: Path) -> dict[str, list[Any]]:
    """Every row of the tables that a call may change. Sessions renew themselves and are left out."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
            for name in names
            if name not in {"holdfast_workers", "holdfast_definitions"}
        }


async def check_all(engine: Engine, org: str = "default") -> None:
    """No execution violates an invariant."""
    found = invariants.check(await invariants.read(engine.storage, org))
    assert not found, "\n".join(map(str, found))


async def reached(handle: WorkflowHandle, *statuses: Status) -> None:
    async def so() -> bool:
        return await handle.status() in statuses

    await until(so)


async def waiting(handle: WorkflowHandle) -> None:
    await reached(handle, Status.WAITING)


async def waiting_for(handle: WorkflowHandle, kind: str) -> None:
    """At rest, and what it is blocked on is of this one kind."""

    async def so() -> bool:
        return {kind} == {wait.kind for wait in (await handle.describe()).waiting_for}

    await until(so)


async def types(handle: WorkflowHandle, after: int = 0) -> list[str]:
    return [event.type for event in await handle.history(after=after)]
