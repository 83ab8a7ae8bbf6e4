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
_SCOPES: Final = 1_000


def hold(took_us: int) -> int:
    """For how long to rely on what it has taken so long to find out."""
    return min(max(took_us * _HOLD_FACTOR, _HOLD_AT_LEAST), _HOLD_AT_MOST)


def is_held(until_at: int, now: int) -> bool:
    """Not if the clock was put back: that would be for as long."""
    return 0 < until_at - now <= _HOLD_AT_MOST


class ClaimScope(NamedTuple):
    """The queues that one claim asks for together, and what it may take from them: kinds and versions, or kinds, each
    in a column. `what` is `"turns"` or `"tasks"`."""

    what: str
    org: str
    queues: tuple[str, ...]
    known: tuple[tuple[str, ...], ...]


class ClaimCursor(NamedTuple):
    queue: str
    priority: int
    since_at: int


class _ScopeCursors:
    def __init__(self) -> None:
        self.cursors: dict[tuple[str, int], int] = {}
        self.until_at = 0
        self.is_long = False


class ClaimCursors:
    """Belongs to a writer: lives as long as its connection's owner, not as long as a connection."""

    def __init__(self) -> None:
        self._claim_cursors: dict[ClaimScope, _ScopeCursors] = {}
        self._long = 0

    def cursors(self, scope: ClaimScope, now: int) -> Sequence[ClaimCursor] | None:
        """Where to begin; nothing if a claim may as well begin at the beginning, None if one has to look again."""
        known = self._claim_cursors.get(scope) if self._long else None
        if known is None or not known.is_long:
            return ()
        if not is_held(known.until_at, now):
            return None
        return [ClaimCursor(queue, priority, since_at) for (queue, priority), since_at in known.cursors.items()]

    def until_at(self, scope: ClaimScope) -> int:
        """When its lanes are looked up again."""
        return self._claim_cursors[scope].until_at

    def should_refresh(self, scope: ClaimScope, took_s: float, now: int) -> bool:
        """Whether a claim from the beginning has taken so long that one should."""
        if took_s <= SLOW_S:
            return False
        known = self._claim_cursors.get(scope)
        if known is None:
            if len(self._claim_cursors) >= _SCOPES:
                self._claim_cursors.clear()
                self._long = 0
            known = self._claim_cursors[scope] = _ScopeCursors()
        return not is_held(known.until_at, now)

    def refreshed(self, scope: ClaimScope, found: Iterable[Sequence[Any]], took_s: float, now: int) -> None:
        """These are the first living rows of each queue and priority: queue, priority, since when. It has taken so
        long to find them."""
        known = self._claim_cursors[scope]
        self._long -= known.is_long
        known.is_long = took_s > LONG_S
        self._long += known.is_long
        known.until_at = now + hold(int(took_s * 1_000_000))
        youngest = now - MARGIN
        known.cursors = dict.fromkeys(known.cursors.keys() | {(queue, 0) for queue in scope.queues}, youngest)
        known.cursors.update({(row[0], row[1]): min(row[2], youngest) for row in found})

    def wrote(self, changes: Changes) -> None:
        """Rows that a lane would pass by make it be looked up again."""
        if not self._long:
            return
        turns = (
            (execution_row.org, execution_row.queue, execution_row.priority, execution_row.ready.since_at)
            for execution_row in changes.ready.values()
            if execution_row.ready is not None and execution_row.ready.worker is None
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
            for scope, known in self._claim_cursors.items():
                if scope.org != org or queue not in scope.queues:
                    continue
                if since_at < known.cursors.setdefault((queue, priority), since_at):
                    known.cursors[queue, priority] = since_at
