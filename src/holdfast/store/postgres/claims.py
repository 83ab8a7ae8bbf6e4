"""Claims: turns and tasks that wait for a worker, the most urgent first, with their heads locked if nobody holds them.

Several queues are one line. Claims of one batch share what there is.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from holdfast.store.postgres.fronts import Fronts, Lane, Line
from holdfast.store.postgres.statements import Connection, columns, statement
from holdfast.store.protocol import Loaded, TaskClaim, TaskKey, TurnClaim

_TURNS = statement("ready", "claimable")
_TURN_CANDIDATES = statement("ready", "candidates")
_TURNS_IN_LANES = statement("ready", "in_lanes")
_TURN_FRONT = statement("ready", "front")
_TURN_QUEUES = statement("ready", "claimable_queues")
_SUSPECTS = statement("ready", "suspects")
_SUSPECTED = statement("ready", "suspected")
_TASKS = statement("tasks", "claimable")
_TASKS_IN_LANES = statement("tasks", "in_lanes")
_TASK_FRONT = statement("tasks", "front")
_TASK_QUEUES = statement("tasks", "claimable_queues")

# Of those that are found without a lock, others may hold the first: how many times as many are looked at, how many
# times as many again if those were not enough, and where that ends.
_SPARE: Final = 4
_MORE: Final = 8
_FARTHEST: Final = 4_096

Rows = list[Any]
Look = Callable[[int], Awaitable[Rows]]
"""The first so many rows that could be claimed, with nothing locked."""


class TakeHeads(Protocol):
    """Lock those that nobody holds, the first `most` of them; with `waiting`, only what nobody has leased by now. How
    many there were."""

    async def __call__(self, wanted: Iterable[str], *, waiting: bool = False, most: int | None = None) -> int: ...


class Claims:
    """The claims of one load. `heads` are those it has locked; `take_heads` locks more, if they are free."""

    def __init__(
        self, connection: Connection, loaded: Loaded, heads: dict[str, Any], take_heads: TakeHeads, fronts: Fronts
    ) -> None:
        self._connection = connection
        self._loaded = loaded
        self._heads = heads
        self._take_heads = take_heads
        self._fronts = fronts

    async def turns(self, claims: Iterable[TurnClaim]) -> set[str]:
        """The executions that were found, more than are given to anybody perhaps."""
        free: set[str] = set()
        answers = self._loaded.turn_claims
        for claim in claims:
            given = {key for answer in answers for key in answer}
            found = await self._turns(claim, claim.limit + len(given))
            answers.append(list(islice((key for key in found if key not in given), claim.limit)))
            free.update(found)
        return free

    async def tasks(self, claims: Iterable[TaskClaim]) -> set[str]:
        free: set[str] = set()
        answers = self._loaded.task_claims
        for claim in claims:
            given = {key for answer in answers for key in answer}
            found = await self._tasks(claim, claim.limit + len(given))
            answers.append(list(islice((key for key in found if key not in given), claim.limit)))
            free.update(execution_id for execution_id, _ in found)
        return free

    async def _turns(self, claim: TurnClaim, limit: int) -> list[str]:
        if not claim.builds or claim.limit <= 0 or not claim.queues:
            return []
        builds = columns([(kind, version, build) for (kind, version), build in claim.builds.items()], 3)
        able, below = (*builds, self._loaded.now), claim.suspect_from
        line = Line(_TURN_FRONT, claim.org, tuple(dict.fromkeys(claim.queues)))
        lanes = await self._fronts.lanes(self._connection, line, self._loaded.now)
        if not lanes and claim.leaves is None:
            found = await self._from_the_beginning(_TURN_QUEUES, _TURNS, line, limit, able, below)
            found += await self._suspects(_SUSPECTS, claim, line, builds)
            return [row[2] for row in sorted(found, key=_claiming_order)]
        suspects = await self._suspects(_SUSPECTED, claim, line, builds)

        def look(most: int) -> Awaitable[Rows]:
            if lanes:
                return self._in_lanes(_TURNS_IN_LANES, line, lanes, *able, most, below)
            return self._from_the_beginning(_TURN_QUEUES, _TURN_CANDIDATES, line, most, able, below)

        def choose(found: Rows) -> Rows:
            found = sorted((*found, *suspects), key=_claiming_order)
            return found if claim.leaves is None else self._not_left(claim.leaves, found)

        return [row[2] for row in await self._first_free(look, choose, limit, waiting=True)]

    def _not_left(self, leaves: Callable[[str, int, int], bool], found: Rows) -> Rows:
        wanted = [row for row in found if not leaves(row[2], row[3], row[1])]
        self._loaded.turns_left |= len(wanted) < len(found)
        return wanted

    async def _suspects(self, sql: str, claim: TurnClaim, line: Line, builds: list[Any]) -> Rows:
        if not claim.suspects:
            return []
        able = (*builds, self._loaded.now)
        return list(await self._connection.fetch(sql, line.org, line.queues, *able, claim.suspects, claim.suspect_from))

    async def _tasks(self, claim: TaskClaim, limit: int) -> list[TaskKey]:
        if not claim.kinds or claim.limit <= 0 or not claim.queues:
            return []
        able = (claim.kinds, self._loaded.now)
        line = Line(_TASK_FRONT, claim.org, tuple(dict.fromkeys(claim.queues)))
        if lanes := await self._fronts.lanes(self._connection, line, self._loaded.now):

            def look(most: int) -> Awaitable[Rows]:
                return self._in_lanes(_TASKS_IN_LANES, line, lanes, *able, most)

            found = await self._first_free(look, list, limit)
        else:
            found = await self._from_the_beginning(_TASK_QUEUES, _TASKS, line, limit, able)
        return [(row[2], row[3]) for row in found]

    async def _from_the_beginning(
        self, shares: str, sql: str, line: Line, limit: int, able: Sequence[Any], *more: Any
    ) -> Rows:
        began = time.perf_counter()
        found: Rows = []
        for queue, most in await self._shares(shares, line, limit, able, *more):
            found += await self._connection.fetch(sql, line.org, queue, *able, most, *more)
        await self._fronts.took(self._connection, line, time.perf_counter() - began, self._loaded.now)
        return sorted(found, key=_claiming_order)[:limit]

    async def _shares(self, sql: str, line: Line, limit: int, able: Sequence[Any], *more: Any) -> list[tuple[str, int]]:
        """How many to take from each queue. Mostly each has a few of them; only if one could have more than were looked
        at, all that it could have are."""
        if len(line.queues) == 1:
            return [(line.queues[0], limit)]
        most = min(max(2 * limit // len(line.queues), 2), limit)
        while True:
            found = await self._connection.fetch(sql, line.org, line.queues, *able, limit, *more, most)
            if most >= limit or all(row[1] < most for row in found):
                return [(row[0], row[1]) for row in found]
            most = limit

    async def _in_lanes(self, sql: str, line: Line, lanes: Sequence[Lane], *rest: Any) -> Rows:
        return list(await self._connection.fetch(sql, line.org, *columns(lanes, 3), *rest))

    async def _first_free(
        self, look: Look, choose: Callable[[Rows], Rows], limit: int, *, waiting: bool = False
    ) -> Rows:
        """The first that nobody else holds. Whoever came back with less than there is would look as if there were no
        more: so one goes on looking while what was found is held by others."""
        most = limit * _SPARE
        while True:
            found = await look(most)
            taken = await self._locked(choose(found), limit, waiting=waiting)
            if len(taken) >= limit or len(found) < most or most >= _FARTHEST:
                return taken
            most = min(most * _MORE, _FARTHEST)

    async def _locked(self, found: Rows, limit: int, *, waiting: bool) -> Rows:
        """No more heads are locked than are wanted. Mostly the first are free; then the others are not even read."""
        for near in (found[:limit], found):
            taken = [row for row in near if row[2] in self._heads]
            missing = [row for row in near if row[2] not in self._heads]
            while missing and len(taken) < limit:
                most = len({row[2] for row in missing[: limit - len(taken)]})
                wanted = dict.fromkeys(row[2] for row in missing)
                got = await self._take_heads(wanted, waiting=waiting, most=most)
                taken = [row for row in near if row[2] in self._heads]
                missing = [row for row in missing if row[2] not in self._heads] if got == most else []
            if len(taken) >= limit:
                break
        return taken[:limit]


def _claiming_order(row: Any) -> tuple[Any, ...]:
    return -row[0], *row[1:]
