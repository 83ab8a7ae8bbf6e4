"""Claims: turns and tasks that wait for a worker, the most urgent first, with their heads locked if nobody holds them.

Several queues are one line. Claims of one batch share what there is.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from holdfast.model.executions import Ready
from holdfast.store.fronts import Fronts, Lane, Line
from holdfast.store.postgres.statements import Connection, columns, statement
from holdfast.store.protocol import Leave, Loaded, TaskClaim, TaskKey, TurnClaim
from holdfast.store.rows import row_to_ready

_TURNS = statement("ready", "claimable")
_FRESH_TURNS = statement("ready", "fresh")
_TURNS_IN_LANES = statement("ready", "in_lanes")
_TURN_QUEUES = statement("ready", "claimable_queues")
_SUSPECTS = statement("ready", "suspects")
_TASKS = statement("tasks", "claimable")
_TASKS_IN_LANES = statement("tasks", "in_lanes")
_TASK_QUEUES = statement("tasks", "claimable_queues")
_FRONT: Final = {"turns": statement("ready", "front"), "tasks": statement("tasks", "front")}

# Of those that are found without a lock, others may hold the first: how many times as many are looked at, how many
# times as many again if those were not enough, and where that ends.
_SPARE: Final = 4
_MORE: Final = 8
_FARTHEST: Final = 4_096

_NO_LIMIT: Final = 2**62

Rows = list[Any]
Look = Callable[[int], Awaitable[Rows]]
"""The first so many rows that could be claimed, with nothing locked."""


class TakeHeads(Protocol):
    """Lock those that nobody holds, the first `most` of them; with `waiting`, only what nobody has leased by now. How
    many there were."""

    async def __call__(self, wanted: Iterable[str], *, waiting: bool = False, most: int | None = None) -> int: ...


class Claims:
    """The claims of one load. `heads` are those it has locked, `ready` the ready rows that came with some of them;
    `take_heads` locks more, if they are free."""

    def __init__(
        self, connection: Connection, loaded: Loaded, heads: dict[str, Any], take_heads: TakeHeads, fronts: Fronts
    ) -> None:
        self._connection = connection
        self._loaded = loaded
        self._heads = heads
        self._take_heads = take_heads
        self._fronts = fronts
        self.ready: dict[str, Ready] = {}

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
        below = claim.suspect_from
        line = Line("turns", claim.org, tuple(dict.fromkeys(claim.queues)), tuple(zip(*claim.builds, strict=True)))
        able = (*line.known, tuple(claim.builds.values()), self._loaded.now)
        if lanes := await self._lanes(line):

            def look(most: int) -> Awaitable[Rows]:
                return self._in_lanes(_TURNS_IN_LANES, line, lanes, *able, most, below)

            def choose(found: Rows) -> Rows:
                return found if claim.leave is None else self._not_left(claim.leave, found)

            found = await self._first_free(look, choose, limit, waiting=True)
            self._look_again(line, len(found), limit)
        else:
            found = await self._turns_from_the_beginning(claim, line, limit, able)
        if claim.suspects:
            suspects = await self._connection.fetch(_SUSPECTS, line.org, line.queues, *able, claim.suspects, below)
            found += self._with_heads(suspects)
        return [row[2] for row in sorted(found, key=_claiming_order)]

    async def _turns_from_the_beginning(self, claim: TurnClaim, line: Line, limit: int, able: Sequence[Any]) -> Rows:
        """What is to be left to others is not even locked. Among it may be what is this node's own: that is looked for
        when nothing else is left to take, and else has its turn when its moment is over."""
        leave = claim.leave
        long_from = _NO_LIMIT if leave is None else leave.long_from
        more = (claim.suspect_from, long_from, self._loaded.now - (0 if leave is None else leave.for_us))
        found = await self._from_the_beginning(_TURN_QUEUES, _TURNS, line, limit, able, *more)
        self._with_heads(found)
        if leave is None or len(found) >= limit:
            return found
        fresh = await self._connection.fetch(_FRESH_TURNS, line.org, line.queues, *able, _FARTHEST, *more)
        ours = [row for row in fresh if leave.is_ours(row[2])]
        self._loaded.turns_left |= len(ours) < len(fresh)
        return found + await self._locked(sorted(ours, key=_claiming_order), limit - len(found), waiting=True)

    def _with_heads(self, found: Sequence[Any]) -> Sequence[Any]:
        for row in found:
            _, since_at, execution_id, not_before_at, worker, news, avoid_build = row[:7]
            self._heads[execution_id] = row[7:]
            self.ready[execution_id] = row_to_ready(since_at, not_before_at, worker, news, avoid_build)
        return found

    def _not_left(self, leave: Leave, found: Rows) -> Rows:
        wanted = [row for row in found if not leave.leaves(row[2], row[3], self._loaded.now - row[1])]
        self._loaded.turns_left |= len(wanted) < len(found)
        return wanted

    async def _tasks(self, claim: TaskClaim, limit: int) -> list[TaskKey]:
        if not claim.kinds or claim.limit <= 0 or not claim.queues:
            return []
        able = (claim.kinds, self._loaded.now)
        line = Line("tasks", claim.org, tuple(dict.fromkeys(claim.queues)), (tuple(claim.kinds),))
        if lanes := await self._lanes(line):

            def look(most: int) -> Awaitable[Rows]:
                return self._in_lanes(_TASKS_IN_LANES, line, lanes, *able, most)

            found = await self._first_free(look, list, limit)
            self._look_again(line, len(found), limit)
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
        if self._fronts.should_look(line, time.perf_counter() - began, self._loaded.now):
            await self._look(line)
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

    async def _lanes(self, line: Line) -> Sequence[Lane]:
        lanes = self._fronts.lanes(line, self._loaded.now)
        if lanes is None:
            await self._look(line)
            lanes = self._fronts.lanes(line, self._loaded.now)
        return lanes or ()

    def _look_again(self, line: Line, found: int, limit: int) -> None:
        """A claim in lanes that came back with less may have passed something by."""
        if found < limit:
            at, known = self._fronts.until_at(line), self._loaded.claim_again_at
            self._loaded.claim_again_at = at if known is None else min(at, known)

    async def _look(self, line: Line) -> None:
        began = time.perf_counter()
        found = await self._connection.fetch(_FRONT[line.what], line.org, line.queues, *line.known)
        self._fronts.looked(line, found, time.perf_counter() - began, self._loaded.now)

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
    """By priority, by the time of waiting, by the ids; rows may go on behind them."""
    return -row[0], row[1], row[2], row[3]
