"""Where the rows that a node may take begin, in queues whose front is full of others.

A claim walks an index from its beginning. Rows that were claimed and are gone stay there for as long as any transaction
of the server is older than them: an hour of those, and each claim would pass hundreds of thousands. So do rows of kinds
that only other workers know, which are away. So when a claim has taken long, it is found out once where the living rows
of each priority begin that could be taken (a lane), and claims start there for a while: twenty times as long as finding
out has taken, so that it is a twentieth of the work at most.

What may be seen late by that, and for how long: a row that is older than the beginning of its lane, since somebody gave
it back, and one of a priority that this node has not met in that queue, both written by another node; until the lanes
are looked up again, ten seconds at most. What this node writes itself it sees at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from holdfast.store.postgres.statements import Connection
from holdfast.store.protocol import Changes

# A claim that takes longer is looked into; if looking is quick, it was something else.
SLOW_S = 0.005
LONG_S = 0.0025
_HOLD_AT_LEAST: Final = 1_000_000
_HOLD_AT_MOST: Final = 10_000_000
_HOLD_FACTOR: Final = 20
# A transaction that began earlier may still be about to write rows of its time.
MARGIN: Final = 2_000_000
_LINES: Final = 1_000


def hold(took_us: int) -> int:
    """For how long to rely on what it has taken so long to find out."""
    return min(max(took_us * _HOLD_FACTOR, _HOLD_AT_LEAST), _HOLD_AT_MOST)


def is_held(until_at: int, now: int) -> bool:
    """Not if the clock was put back: that would be for as long."""
    return 0 < until_at - now <= _HOLD_AT_MOST


class Line(NamedTuple):
    """The queues that one claim asks for together, and what it may take from them: kinds and versions, or kinds, as
    arrays. `sql` finds the first such row of each priority of each queue."""

    sql: str
    org: str
    queues: tuple[str, ...]
    known: tuple[tuple[str, ...], ...]


class Lane(NamedTuple):
    queue: str
    priority: int
    since_at: int


class _Front:
    def __init__(self) -> None:
        self.lanes: dict[tuple[str, int], int] = {}
        self.until_at = 0
        self.is_long = False


class Fronts:
    """Belongs to a writer: lives as long as its connection's owner, not as long as a connection."""

    def __init__(self) -> None:
        self._fronts: dict[Line, _Front] = {}
        self._long = 0

    async def lanes(self, connection: Connection, line: Line, now: int) -> Sequence[Lane]:
        """Where to begin; nothing if a claim may as well begin at the beginning."""
        front = self._fronts.get(line) if self._long else None
        if front is None or not front.is_long:
            return ()
        if not is_held(front.until_at, now) and not await self._is_long(connection, line, front, now):
            return ()
        return [Lane(queue, priority, since_at) for (queue, priority), since_at in front.lanes.items()]

    async def took(self, connection: Connection, line: Line, seconds: float, now: int) -> None:
        """How long a claim from the beginning has taken."""
        if seconds <= SLOW_S:
            return
        front = self._fronts.get(line)
        if front is None:
            if len(self._fronts) >= _LINES:
                self._fronts.clear()
                self._long = 0
            front = self._fronts[line] = _Front()
        if not is_held(front.until_at, now):
            await self._is_long(connection, line, front, now)

    def wrote(self, changes: Changes) -> None:
        """Rows that a lane would pass by make it be looked up again."""
        if not self._long:
            return
        turns = (
            (head.org, head.queue, head.priority, head.ready.since_at)
            for head in changes.ready.values()
            if head.ready is not None and head.ready.worker is None
        )
        tasks = (
            (task.org, task.queue, task.priority, max(task.not_before_at, task.scheduled_at))
            for task in (*changes.new_tasks, *changes.changed_tasks.values())
            if task.worker is None
        )
        self._pass(turns)
        self._pass(tasks)

    def _pass(self, rows: Iterable[tuple[str, str, int, int]]) -> None:
        for org, queue, priority, since_at in rows:
            for line, front in self._fronts.items():
                if line.org != org or queue not in line.queues:
                    continue
                if since_at < front.lanes.setdefault((queue, priority), since_at):
                    front.lanes[queue, priority] = since_at

    async def _is_long(self, connection: Connection, line: Line, front: _Front, now: int) -> bool:
        """Look again."""
        began = time.perf_counter()
        found = await connection.fetch(line.sql, line.org, line.queues, *line.known)
        took_s = time.perf_counter() - began
        self._long -= front.is_long
        front.is_long = took_s > LONG_S
        self._long += front.is_long
        front.until_at = now + hold(int(took_s * 1_000_000))
        youngest = now - MARGIN
        front.lanes = dict.fromkeys(front.lanes.keys() | {(queue, 0) for queue in line.queues}, youngest)
        front.lanes.update({(row[0], row[1]): min(row[2], youngest) for row in found})
        return front.is_long
