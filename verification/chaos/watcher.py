"""Looks at the database while a chaos run goes on: two open runs of one workflow id, work that nobody takes up,
histories that are not sound. It goes past the proxy, changes nothing, and begins anew when the server was away."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import asyncpg

from holdfast.assembly import open_store
from holdfast.errors import StorageError, Unavailable
from holdfast.model.executions import Execution
from holdfast.store.protocol import Store
from holdfast.store.queries import ExecutionQuery
from tests.conftest import NOTHING
from verification.chaos.app import config
from verification.chaos.metronome import Stall, stalled_us
from verification.chaos.run import AFTER_US
from verification.invariants import Record, Violation
from verification.invariants.commands import check_commands
from verification.invariants.histories import check_history
from verification.invariants.outside import check_outside
from verification.invariants.rows import check_rows

EVERY_S: Final = 0.25
READ_EVERY_S: Final = 5.0
READ: Final = 200
TIMERS_US: Final = 2_000_000
# A body of the programs takes three seconds at most, a step that fails once does so twice.
BODIES_US: Final = 7_000_000
PAGE: Final = 500
# What the driver says when the server goes away under it.
_AWAY: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)

_TWICE = (
    "SELECT org, workflow_id, array_agg(id) FROM holdfast_executions WHERE closed_at IS NULL GROUP BY 1, 2 "
    "HAVING count(*) > 1"
)
_OPEN = "SELECT count(*) FROM holdfast_executions WHERE closed_at IS NULL"
_CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
# What is due, and since when; `held` by a worker whose lease has not passed. That of one that is gone is due at once.
_DUE = f"""
WITH live AS (SELECT id FROM holdfast_workers WHERE lease_until_at > {_CLOCK})
SELECT {_CLOCK} AS now, 'turn' AS what, r.execution_id AS key, 0::bigint AS number,
       greatest(r.since_at, r.not_before_at, CASE WHEN r.worker IS NULL THEN 0 ELSE x.updated_at END) AS due,
       r.worker IN (SELECT id FROM live) AS held
  FROM holdfast_ready r JOIN holdfast_executions x ON x.id = r.execution_id
UNION ALL
SELECT {_CLOCK}, 'task', execution_id, task_no, greatest(scheduled_at, not_before_at, started_at),
       worker IN (SELECT id FROM live)
  FROM holdfast_tasks
UNION ALL
SELECT {_CLOCK}, 'timer', execution_id, timer_no, fire_at, false FROM holdfast_timers
"""


class Watcher:
    """`stalls` is added to by somebody else. `whole_since`, by the database's clock: from then on work is due."""

    def __init__(self, url: str, stalls: list[Stall]) -> None:
        self._url = url
        self._stalls = stalls
        self.whole_since: int | None = None
        self.found: list[Violation] = []
        self.data: Counter[str] = Counter()
        self.read: list[list[Record]] = []
        self.oldest_us: Counter[str] = Counter()
        self._judged: set[tuple[str, str, int, int]] = set()
        self._orphans: dict[tuple[str, str, int, int], int] = {}

    async def __aenter__(self) -> Self:
        self._jobs = [asyncio.ensure_future(self._look_all_the_time()), asyncio.ensure_future(self._read_in_between())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for job in self._jobs:
            job.cancel()
        for ended in await asyncio.gather(*self._jobs, return_exceptions=True):
            if isinstance(ended, Exception) and error is None:
                raise ended

    # --- rows ---

    async def _look_all_the_time(self) -> None:
        while True:
            try:
                connection = await asyncpg.connect(self._url, timeout=5, command_timeout=5)
            except _AWAY:
                await asyncio.sleep(EVERY_S)
                continue
            try:
                with suppress(*_AWAY):
                    while True:
                        await self._look(connection)
                        await asyncio.sleep(EVERY_S)
            finally:
                connection.terminate()

    async def _look(self, connection: asyncpg.Connection) -> None:
        self.data["I17 looks at open runs"] += await connection.fetchval(_OPEN)
        for org, workflow_id, ids in await connection.fetch(_TWICE):
            self.found.append(Violation("I17", ids[0], 0, f"{workflow_id!r} of {org} has open runs: {sorted(ids)}"))
        if self.whole_since is not None:
            for row in await connection.fetch(_DUE):
                self._due(self.whole_since, row)

    def _due(self, whole: int, row: asyncpg.Record) -> None:
        """`held`: None if nobody has it, False if somebody has who is gone."""
        now, what, key, number, due, held = row
        known = (what, key, number, due)
        if held is False and what != "timer":
            due = self._orphans.setdefault(known, now)
        since = max(due, whole)
        if since > now:
            return
        if known not in self._judged:
            self._judged.add(known)
            self.data["I16 rows due once whole"] += 1
        age = now - since - stalled_us(self._stalls, since, now)
        what_of = f"{what} that somebody has" if held else what
        self.oldest_us[what_of] = max(self.oldest_us[what_of], age)
        limit = TIMERS_US if what == "timer" else AFTER_US + (BODIES_US if held else 0)
        if age > limit:
            text = f"{what_of} {number} is due for more than {limit / 1e6:.0f} s"
            self.found.append(Violation("I13" if what == "timer" else "I16", key, 0, text))

    # --- histories ---

    async def _read_in_between(self) -> None:
        while True:
            await asyncio.sleep(READ_EVERY_S)
            store = open_store(self._url, config())
            try:
                await store.open(NOTHING)
                self.read.append(await self._read_some(store))
            except (Unavailable, StorageError):
                continue  # the server is away
            finally:
                await store.close()

    async def _read_some(self, store: Store) -> list[Record]:
        """The newest. Each is judged alone: others move while it is read."""
        found = []
        for execution_row in await store.list_executions(ExecutionQuery(org="default", limit=READ)):
            record = await read_one(store, execution_row)
            if record is None:
                continue
            found.append(record)
            self.data["I16 open runs in between"] += execution_row.is_open
            for check in (check_history, check_commands, check_rows, check_outside):
                self.found.extend(check(record))
            await asyncio.sleep(0)
        return found


async def read_one(store: Store, execution_row: Execution) -> Record | None:
    """With its rows; None if it has moved meanwhile."""
    key = (execution_row.org, execution_row.id)
    history, tasks, timers = await store.history(*key), await store.tasks(*key), await store.timers(*key)
    waits, promises = await store.waits(*key), await store.promises(*key)
    if (await store.executions(execution_row.org, [execution_row.id])).get(execution_row.id) != execution_row:
        return None
    return Record(
        execution_row=execution_row, history=history, tasks=tasks, timers=timers, waits=waits, promises=promises
    )


async def read_again(store: Store, known: dict[str, Record]) -> list[Record]:
    """Every execution, at rest. Only those that have moved since the last time are read."""
    before: str | None = None
    while page := await store.list_executions(ExecutionQuery(org="default", before=before, limit=PAGE)):
        for execution_row in page:
            while execution_row.id not in known or known[execution_row.id].execution_row != execution_row:
                record = await read_one(store, execution_row)
                if record is not None:
                    known[execution_row.id] = record
                else:
                    execution_row = (await store.executions(execution_row.org, [execution_row.id]))[execution_row.id]  # noqa: PLW2901 - as it is now
        before = page[-1].id
    return [known[key] for key in sorted(known)]
