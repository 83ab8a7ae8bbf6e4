"""Claims: turns and tasks that wait for a worker, the most urgent first.

Several queues are one line. Claims of one batch share what there is.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from holdfast.store.claim_cursors import ClaimCursor, ClaimCursors, ClaimScope
from holdfast.store.protocol import Loaded, TaskClaim, TaskKey, TurnClaim
from holdfast.store.sqlite.statements import Rows, rows

_SUSPECTS = rows("ready", "suspects")

_NO_LIMIT: Final = 2**62
_MOST_FRESH: Final = 4_096
_ABOVE_ALL: Final = 2**63 - 1


class _Statements(NamedTuple):
    """Those of a table: they take what may be taken, org, queue, where to begin, now, and more."""

    from_the_beginning: Rows
    from_cursor: Rows
    oldest_live: Rows


_OF: Final = {
    "turns": _Statements(rows("ready", "claimable"), rows("ready", "from_cursor"), rows("ready", "oldest_live")),
    "tasks": _Statements(rows("tasks", "claimable"), rows("tasks", "from_cursor"), rows("tasks", "oldest_live")),
}


class Claims:
    """The claims of one load. `claim_cursors` are what earlier ones have learned."""

    def __init__(self, connection: sqlite3.Connection, loaded: Loaded, claim_cursors: ClaimCursors) -> None:
        self._connection = connection
        self._loaded = loaded
        self._claim_cursors = claim_cursors

    def turns(self, claims: Iterable[TurnClaim]) -> set[str]:
        """The executions that are given to somebody."""
        taken: set[str] = set()
        for claim in claims:
            found = self._turns(claim, claim.limit + len(taken))
            answer = list(islice((key for key in found if key not in taken), claim.limit))
            taken.update(answer)
            self._loaded.turn_claims.append(answer)
        return taken

    def tasks(self, claims: Iterable[TaskClaim]) -> set[TaskKey]:
        taken: set[TaskKey] = set()
        for claim in claims:
            found = self._tasks(claim, claim.limit + len(taken))
            answer = list(islice((key for key in found if key not in taken), claim.limit))
            taken.update(answer)
            self._loaded.task_claims.append(answer)
        return taken

    def _turns(self, claim: TurnClaim, limit: int) -> list[str]:
        if not claim.builds or claim.limit <= 0:
            return []
        scope = ClaimScope(
            "turns", claim.org, tuple(dict.fromkeys(claim.queues)), tuple(zip(*claim.builds, strict=True))
        )
        builds = [(*key, build) for key, build in claim.builds.items()]
        sticky, now = claim.sticky, self._loaded.now
        long = (_NO_LIMIT, now) if sticky is None else (sticky.min_events, now - sticky.sticky_us)
        found = self._waiting(scope, builds, claim.suspect_from, *long, True, limit)
        if sticky is not None and len(found) < limit:
            fresh = self._waiting(scope, builds, claim.suspect_from, *long, False, _MOST_FRESH)
            cached = [row for row in fresh if sticky.is_cached(row[2])]
            self._loaded.turns_left |= len(cached) < len(fresh)
            found += cached
        if claim.suspects:
            sql, suspects = _SUSPECTS.sql(len(builds)), []
            for queue in scope.queues:
                values = (*_flat(builds), scope.org, queue, now, claim.suspect_from, claim.suspects)
                suspects += self._connection.execute(sql, values).fetchall()
            found += sorted(suspects, key=_claiming_order)[: claim.suspects]
        return [row[2] for row in sorted(found, key=_claiming_order)]

    def _tasks(self, claim: TaskClaim, limit: int) -> list[TaskKey]:
        if not claim.kinds or claim.limit <= 0:
            return []
        scope = ClaimScope("tasks", claim.org, tuple(dict.fromkeys(claim.queues)), (tuple(claim.kinds),))
        found = self._waiting(scope, [(kind,) for kind in claim.kinds], limit)
        return [(row[2], row[3]) for row in sorted(found, key=_claiming_order)]

    def _waiting(self, scope: ClaimScope, known: Sequence[Sequence[str]], *more: Any) -> list[Any]:
        """The first of each queue, or of each lane, in no order."""
        statements, now, found = _OF[scope.what], self._loaded.now, []
        if cursors := self._cursors(scope):
            sql = statements.from_cursor.sql(len(known))
            for cursor in cursors:
                found += self._connection.execute(sql, (*_flat(known), scope.org, *cursor, now, *more)).fetchall()
            if len(found) < more[-1]:  # something may have been passed by
                at, before = self._claim_cursors.until_at(scope), self._loaded.claim_again_at
                self._loaded.claim_again_at = at if before is None else min(at, before)
            return found
        began = time.perf_counter()
        sql = statements.from_the_beginning.sql(len(known))
        for queue in scope.queues:
            found += self._connection.execute(sql, (*_flat(known), scope.org, queue, now, *more)).fetchall()
        if self._claim_cursors.should_refresh(scope, time.perf_counter() - began, now):
            self._refresh(scope)
        return found

    def _cursors(self, scope: ClaimScope) -> Sequence[ClaimCursor]:
        cursors = self._claim_cursors.cursors(scope, self._loaded.now)
        if cursors is None:
            self._refresh(scope)
            cursors = self._claim_cursors.cursors(scope, self._loaded.now)
        return cursors or ()

    def _refresh(self, scope: ClaimScope) -> None:
        began = time.perf_counter()
        found = [(queue, *row) for queue in scope.queues for row in self._oldest_live(scope, queue)]
        self._claim_cursors.refreshed(scope, found, time.perf_counter() - began, self._loaded.now)

    def _oldest_live(self, scope: ClaimScope, queue: str) -> Iterable[tuple[int, int]]:
        """The first row of each priority, and since when it waits."""
        known = list(zip(*scope.known, strict=True))
        sql, below = _OF[scope.what].oldest_live.sql(len(known)), _ABOVE_ALL
        while row := self._connection.execute(sql, (*_flat(known), scope.org, queue, below)).fetchone():
            yield row
            below = row[0]


def _flat(known: Iterable[Sequence[str]]) -> Iterable[str]:
    return (value for row in known for value in row)


def _claiming_order(row: Sequence[Any]) -> tuple[Any, ...]:
    return -row[0], *row[1:]
