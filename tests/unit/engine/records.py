"""What the tests of the life of executions share: all rows of a database, and what must hold for them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from holdfast import Engine, WorkflowStatus
from holdfast.client.handles import WorkflowHandle
from tests.conftest import until
from tests.database_access import Reader, tables
from verification import invariants

LEFT_OUT = {"holdfast_workers", "holdfast_definitions", "holdfast_writers", "holdfast_topic_locks"}


def dump(database_url: str) -> dict[str, list[Any]]:
    """Every row of the tables that a call may change, sorted. Sessions renew themselves and are left out, as is what
    only serves as a lock or tells which transactions stand."""
    with closing(Reader(database_url)) as reader:
        return {
            name: sorted(reader.rows(f"SELECT * FROM {name}"), key=repr)
            for name in tables(database_url)
            if name not in LEFT_OUT
        }


async def check_all(engine: Engine, org: str = "default") -> None:
    """No execution violates an invariant."""
    found = invariants.check(await invariants.read(engine.storage, org))
    assert not found, "\n".join(map(str, found))


async def reached(handle: WorkflowHandle, *statuses: WorkflowStatus) -> None:
    async def so() -> bool:
        return await handle.status() in statuses

    await until(so)


async def waiting(handle: WorkflowHandle) -> None:
    await reached(handle, WorkflowStatus.WAITING)


async def waiting_for(handle: WorkflowHandle, kind: str) -> None:
    """At rest, and what it is blocked on is of this one kind."""

    async def so() -> bool:
        return {kind} == {wait.kind for wait in (await handle.describe()).waiting_for}

    await until(so)


async def types(handle: WorkflowHandle, after: int = 0) -> list[str]:
    return [event.type for event in await handle.history(after=after)]
