"""Where the rows that a node may take begin, in queues whose front is full of others.

A claim walks an index from its beginning. Rows of kinds that only other workers know stay there while those are away;
on PostgreSQL rows that were claimed and are gone do, too, for as long as any transaction of the server is older than
them. An hour of those, and each claim would pass hundreds of thousands. So when a claim has taken long, it is found out
once where the living rows of each priority begin that could be taken (a lane), and claims start there for a while:
twenty times as long as finding out has taken, so that it is a twentieth of the work at most.

What may be seen late by that, and for how long: a row that is older than the beginning of its lane, since somebody gave
it back, and one of a priority that this node has not met in that queue, both written by another node; until the lanes
are looked up again, ten seconds at most; a claim that found less than it wanted is made again then. What this node
writes itself it sees at once.

Nothing is read here: who claims looks, and tells what was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from holdfast.store.protocol import Changes

# A claim that takes longer is looked into; if looking is quick, it was something else.
SLOW_S = 0.02
LONG_S = 0.01
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
    """The queues that one claim asks for together, and what it may take from them: kinds and versions, or kinds, each
    in a column. `what` is `"turns"` or `"tasks"`."""

    what: str
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

    def lanes(self, line: Line, now: int) -> Sequence[Lane] | None:
        """Where to begin; nothing if a claim may as well begin at the beginning, None if one has to look again."""
        front = self._fronts.get(line) if self._long else None
        if front is None or not front.is_long:
            return ()
        if not is_held(front.until_at, now):
            return None
        return [Lane(queue, priority, since_at) for (queue, priority), since_at in front.lanes.items()]

    def until_at(self, line: Line) -> int:
        """When its lanes are looked up again."""
        return self._fronts[line].until_at

    def should_look(self, line: Line, took_s: float, now: int) -> bool:
        """Whether a claim from the beginning has taken so long that one should."""
        if took_s <= SLOW_S:
            return False
        front = self._fronts.get(line)
        if front is None:
            if len(self._fronts) >= _LINES:
                self._fronts.clear()
                self._long = 0
            front = self._fronts[line] = _Front()
        return not is_held(front.until_at, now)

    def looked(self, line: Line, found: Iterable[Sequence[Any]], took_s: float, now: int) -> None:
        """These are the first living rows of each queue and priority: queue, priority, since when. It has taken so
        long to find them."""
        front = self._fronts[line]
        self._long -= front.is_long
        front.is_long = took_s > LONG_S
        self._long += front.is_long
        front.until_at = now + hold(int(took_s * 1_000_000))
        youngest = now - MARGIN
        front.lanes = dict.fromkeys(front.lanes.keys() | {(queue, 0) for queue in line.queues}, youngest)
        front.lanes.update({(row[0], row[1]): min(row[2], youngest) for row in found})

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
