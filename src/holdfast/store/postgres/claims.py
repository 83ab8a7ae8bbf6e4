"""Claims: turns and tasks that wait for a worker, the most urgent first, with their heads locked if nobody holds them.

Several queues are one line. Claims of one batch share what there is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
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

# Of those that are found without a lock, others may have taken the first: how many more are looked at.
_SPARE: Final = 4


class TakeHeads(Protocol):
    """Lock those that nobody holds; with `waiting`, only those that nobody has leased by now."""

    async def __call__(self, wanted: Iterable[str], *, waiting: bool = False) -> None: ...


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
        found = await self._waiting_turns(claim, builds, limit)
        if claim.suspects:
            found += await self._suspects(claim, builds)
            found.sort(key=_claiming_order)
        if claim.leaves is None:
            return [row[2] for row in found]
        wanted = [row for row in found if not claim.leaves(row[2], row[3], row[1])]
        self._loaded.turns_left |= len(wanted) < len(found)
        return [row[2] for row in await self._locked(wanted, limit, waiting=True)]

    async def _waiting_turns(self, claim: TurnClaim, builds: list[Any], limit: int) -> list[Any]:
        able, below = (*builds, self._loaded.now), claim.suspect_from
        line = Line(_TURN_FRONT, claim.org, tuple(dict.fromkeys(claim.queues)))
        if lanes := await self._fronts.lanes(self._connection, line, self._loaded.now):
            found = await self._in_lanes(_TURNS_IN_LANES, line, lanes, *able, limit * _SPARE, below)
            return found if claim.leaves is not None else await self._locked(found, limit, waiting=True)
        if claim.leaves is not None:
            return await self._from_the_beginning(_TURN_QUEUES, _TURN_CANDIDATES, line, limit * _SPARE, able, below)
        return await self._from_the_beginning(_TURN_QUEUES, _TURNS, line, limit, able, below)

    async def _suspects(self, claim: TurnClaim, builds: list[Any]) -> Sequence[Any]:
        sql = _SUSPECTS if claim.leaves is None else _SUSPECTED
        most, queues = claim.suspects, list(dict.fromkeys(claim.queues))
        return await self._connection.fetch(sql, claim.org, queues, *builds, self._loaded.now, most, claim.suspect_from)

    async def _tasks(self, claim: TaskClaim, limit: int) -> list[TaskKey]:
        if not claim.kinds or claim.limit <= 0 or not claim.queues:
            return []
        able = (claim.kinds, self._loaded.now)
        line = Line(_TASK_FRONT, claim.org, tuple(dict.fromkeys(claim.queues)))
        if lanes := await self._fronts.lanes(self._connection, line, self._loaded.now):
            found = await self._in_lanes(_TASKS_IN_LANES, line, lanes, *able, limit * _SPARE)
            return [(row[2], row[3]) for row in await self._locked(found, limit)]
        found = await self._from_the_beginning(_TASK_QUEUES, _TASKS, line, limit, able)
        return [(row[2], row[3]) for row in found]

    async def _from_the_beginning(
        self, shares: str, sql: str, line: Line, limit: int, able: Sequence[Any], *more: Any
    ) -> list[Any]:
        began = time.perf_counter()
        found: list[Any] = []
        for queue, most in await self._shares(shares, line, limit, able, *more):
            found += await self._connection.fetch(sql, line.org, queue, *able, most, *more)
        await self._fronts.took(self._connection, line, time.perf_counter() - began, self._loaded.now)
        return sorted(found, key=_claiming_order)[:limit]

    async def _shares(self, sql: str, line: Line, limit: int, able: Sequence[Any], *more: Any) -> list[tuple[str, int]]:
        """How many to take from each queue."""
        if len(line.queues) == 1:
            return [(line.queues[0], limit)]
        found = await self._connection.fetch(sql, line.org, line.queues, *able, limit, *more)
        return [(row[0], row[1]) for row in found]

    async def _in_lanes(self, sql: str, line: Line, lanes: Sequence[Lane], *rest: Any) -> list[Any]:
        return list(await self._connection.fetch(sql, line.org, *columns(lanes, 3), *rest))

    async def _locked(self, found: list[Any], limit: int, *, waiting: bool = False) -> list[Any]:
        """The first that nobody else holds, or has taken since they were found: no more are locked than are wanted."""
        taken: list[Any] = []
        while found and len(taken) < limit:
            some, found = found[: limit - len(taken)], found[limit - len(taken) :]
            await self._take_heads({row[2] for row in some} - self._heads.keys(), waiting=waiting)
            taken += [row for row in some if row[2] in self._heads]
        return taken


def _claiming_order(row: Any) -> tuple[Any, ...]:
    return -row[0], *row[1:]
