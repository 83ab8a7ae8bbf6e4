"""Claims: turns and tasks that wait for a worker, the most urgent first.

Several queues are one line. Claims of one batch share what there is.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from holdfast.store.fronts import Fronts, Lane, Line
from holdfast.store.protocol import Loaded, TaskClaim, TaskKey, TurnClaim
from holdfast.store.sqlite.statements import Rows, rows

_SUSPECTS = rows("ready", "suspects")

_NO_LIMIT: Final = 2**62
_MOST_FRESH: Final = 4_096
_ABOVE_ALL: Final = 2**63 - 1


class _Statements(NamedTuple):
    """Those of a table: they take what may be taken, org, queue, where to begin, now, and more."""

    from_the_beginning: Rows
    in_lane: Rows
    front: Rows


_OF: Final = {
    "turns": _Statements(rows("ready", "claimable"), rows("ready", "in_lane"), rows("ready", "front")),
    "tasks": _Statements(rows("tasks", "claimable"), rows("tasks", "in_lane"), rows("tasks", "front")),
}


class Claims:
    """The claims of one load. `fronts` are what earlier ones have learned."""

    def __init__(self, connection: sqlite3.Connection, loaded: Loaded, fronts: Fronts) -> None:
        self._connection = connection
        self._loaded = loaded
        self._fronts = fronts

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
        line = Line("turns", claim.org, tuple(dict.fromkeys(claim.queues)), tuple(zip(*claim.builds, strict=True)))
        builds = [(*key, build) for key, build in claim.builds.items()]
        leave, now = claim.leave, self._loaded.now
        long = (_NO_LIMIT, now) if leave is None else (leave.long_from, now - leave.for_us)
        found = self._waiting(line, builds, claim.suspect_from, *long, True, limit)
        if leave is not None and len(found) < limit:
            fresh = self._waiting(line, builds, claim.suspect_from, *long, False, _MOST_FRESH)
            ours = [row for row in fresh if leave.is_ours(row[2])]
            self._loaded.turns_left |= len(ours) < len(fresh)
            found += ours
        if claim.suspects:
            sql, suspects = _SUSPECTS.sql(len(builds)), []
            for queue in line.queues:
                values = (*_flat(builds), line.org, queue, now, claim.suspect_from, claim.suspects)
                suspects += self._connection.execute(sql, values).fetchall()
            found += sorted(suspects, key=_claiming_order)[: claim.suspects]
        return [row[2] for row in sorted(found, key=_claiming_order)]

    def _tasks(self, claim: TaskClaim, limit: int) -> list[TaskKey]:
        if not claim.kinds or claim.limit <= 0:
            return []
        line = Line("tasks", claim.org, tuple(dict.fromkeys(claim.queues)), (tuple(claim.kinds),))
        found = self._waiting(line, [(kind,) for kind in claim.kinds], limit)
        return [(row[2], row[3]) for row in sorted(found, key=_claiming_order)]

    def _waiting(self, line: Line, known: Sequence[Sequence[str]], *more: Any) -> list[Any]:
        """The first of each queue, or of each lane, in no order."""
        statements, now, found = _OF[line.what], self._loaded.now, []
        if lanes := self._lanes(line):
            sql = statements.in_lane.sql(len(known))
            for lane in lanes:
                found += self._connection.execute(sql, (*_flat(known), line.org, *lane, now, *more)).fetchall()
            if len(found) < more[-1]:  # something may have been passed by
                at, before = self._fronts.until_at(line), self._loaded.claim_again_at
                self._loaded.claim_again_at = at if before is None else min(at, before)
            return found
        began = time.perf_counter()
        sql = statements.from_the_beginning.sql(len(known))
        for queue in line.queues:
            found += self._connection.execute(sql, (*_flat(known), line.org, queue, now, *more)).fetchall()
        if self._fronts.should_look(line, time.perf_counter() - began, now):
            self._look(line)
        return found

    def _lanes(self, line: Line) -> Sequence[Lane]:
        lanes = self._fronts.lanes(line, self._loaded.now)
        if lanes is None:
            self._look(line)
            lanes = self._fronts.lanes(line, self._loaded.now)
        return lanes or ()

    def _look(self, line: Line) -> None:
        began = time.perf_counter()
        found = [(queue, *row) for queue in line.queues for row in self._front(line, queue)]
        self._fronts.looked(line, found, time.perf_counter() - began, self._loaded.now)

    def _front(self, line: Line, queue: str) -> Iterable[tuple[int, int]]:
        """The first row of each priority, and since when it waits."""
        known = list(zip(*line.known, strict=True))
        sql, below = _OF[line.what].front.sql(len(known)), _ABOVE_ALL
        while row := self._connection.execute(sql, (*_flat(known), line.org, queue, below)).fetchone():
            yield row
            below = row[0]


def _flat(known: Iterable[Sequence[str]]) -> Iterable[str]:
    return (value for row in known for value in row)


def _claiming_order(row: Sequence[Any]) -> tuple[Any, ...]:
    return -row[0], *row[1:]
