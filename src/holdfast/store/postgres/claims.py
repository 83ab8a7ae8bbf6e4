"""Claims: turns and tasks that wait for a worker, the most urgent first, with their heads locked if nobody holds them.

Several queues are one line. Claims of one batch share what there is.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from holdfast.model.executions import Ready
from holdfast.store.claim_cursors import ClaimCursor, ClaimCursors, ClaimScope
from holdfast.store.postgres.statements import Connection, columns, statement
from holdfast.store.protocol import Loaded, StickyPolicy, TaskClaim, TaskKey, TurnClaim
from holdfast.store.rows import row_to_ready

_TURNS = statement("ready", "claimable")
_FRESH_TURNS = statement("ready", "fresh")
_TURNS_FROM_CURSORS = statement("ready", "from_cursors")
_TURN_QUEUES = statement("ready", "claimable_queues")
_SUSPECTS = statement("ready", "suspects")
_TASKS = statement("tasks", "claimable")
_TASKS_FROM_CURSORS = statement("tasks", "from_cursors")
_TASK_QUEUES = statement("tasks", "claimable_queues")
_OLDEST_LIVE: Final = {"turns": statement("ready", "oldest_live"), "tasks": statement("tasks", "oldest_live")}

# Of those that are found without a lock, others may hold the first: how many times as many are looked at, how many
# times as many again if those were not enough, and where that ends.
_SPARE: Final = 4
_MORE: Final = 8
_FARTHEST: Final = 4_096

_NO_LIMIT: Final = 2**62

Rows = list[Any]
RefreshCursors = Callable[[int], Awaitable[Rows]]
"""The first so many rows that could be claimed, with nothing locked."""


class LockExecutions(Protocol):
    """Lock those that nobody holds, the first `most` of them; with `waiting`, only what nobody has leased by now. How
    many there were."""

    async def __call__(self, wanted: Iterable[str], *, waiting: bool = False, most: int | None = None) -> int: ...


class Claims:
    """The claims of one load. `execution_rows` are those it has locked, `ready` the ready rows that came with some of
    them; `take_heads` locks more, if they are free."""

    def __init__(
        self,
        connection: Connection,
        loaded: Loaded,
        execution_rows: dict[str, Any],
        take_heads: LockExecutions,
        claim_cursors: ClaimCursors,
    ) -> None:
        self._connection = connection
        self._loaded = loaded
        self._execution_rows = execution_rows
        self._lock_executions = take_heads
        self._claim_cursors = claim_cursors
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
        scope = ClaimScope(
            "turns", claim.org, tuple(dict.fromkeys(claim.queues)), tuple(zip(*claim.builds, strict=True))
        )
        able = (*scope.known, tuple(claim.builds.values()), self._loaded.now)
        if cursors := await self._cursors(scope):

            def fetch(most: int) -> Awaitable[Rows]:
                return self._from_cursors(_TURNS_FROM_CURSORS, scope, cursors, *able, most, below)

            def choose(found: Rows) -> Rows:
                return found if claim.sticky is None else self._not_left(claim.sticky, found)

            found = await self._first_free(fetch, choose, limit, waiting=True)
            self._refresh_again(scope, len(found), limit)
        else:
            found = await self._turns_from_the_beginning(claim, scope, limit, able)
        if claim.suspects:
            suspects = await self._connection.fetch(_SUSPECTS, scope.org, scope.queues, *able, claim.suspects, below)
            found += self._with_executions(suspects)
        return [row[2] for row in sorted(found, key=_claiming_order)]

    async def _turns_from_the_beginning(
        self, claim: TurnClaim, scope: ClaimScope, limit: int, able: Sequence[Any]
    ) -> Rows:
        """What is to be left to others is not even locked. Among it may be what is this node's own: that is looked for
        when nothing else is left to take, and else has its turn when its moment is over."""
        sticky = claim.sticky
        min_events = _NO_LIMIT if sticky is None else sticky.min_events
        more = (claim.suspect_from, min_events, self._loaded.now - (0 if sticky is None else sticky.sticky_us))
        found = await self._from_the_beginning(_TURN_QUEUES, _TURNS, scope, limit, able, *more)
        self._with_executions(found)
        if sticky is None or len(found) >= limit:
            return found
        fresh = await self._connection.fetch(_FRESH_TURNS, scope.org, scope.queues, *able, _FARTHEST, *more)
        cached = [row for row in fresh if sticky.is_cached(row[2])]
        self._loaded.turns_left |= len(cached) < len(fresh)
        return found + await self._locked(sorted(cached, key=_claiming_order), limit - len(found), waiting=True)

    def _with_executions(self, found: Sequence[Any]) -> Sequence[Any]:
        for row in found:
            _, since_at, execution_id, not_before_at, worker, pending_events, avoid_build = row[:7]
            self._execution_rows[execution_id] = row[7:]
            self.ready[execution_id] = row_to_ready(since_at, not_before_at, worker, pending_events, avoid_build)
        return found

    def _not_left(self, sticky: StickyPolicy, found: Rows) -> Rows:
        wanted = [row for row in found if not sticky.skips(row[2], row[3], self._loaded.now - row[1])]
        self._loaded.turns_left |= len(wanted) < len(found)
        return wanted

    async def _tasks(self, claim: TaskClaim, limit: int) -> list[TaskKey]:
        if not claim.kinds or claim.limit <= 0 or not claim.queues:
            return []
        able = (claim.kinds, self._loaded.now)
        scope = ClaimScope("tasks", claim.org, tuple(dict.fromkeys(claim.queues)), (tuple(claim.kinds),))
        if cursors := await self._cursors(scope):

            def fetch(most: int) -> Awaitable[Rows]:
                return self._from_cursors(_TASKS_FROM_CURSORS, scope, cursors, *able, most)

            found = await self._first_free(fetch, list, limit)
            self._refresh_again(scope, len(found), limit)
        else:
            found = await self._from_the_beginning(_TASK_QUEUES, _TASKS, scope, limit, able)
        return [(row[2], row[3]) for row in found]

    async def _from_the_beginning(
        self, shares: str, sql: str, scope: ClaimScope, limit: int, able: Sequence[Any], *more: Any
    ) -> Rows:
        began = time.perf_counter()
        found: Rows = []
        for queue, most in await self._shares(shares, scope, limit, able, *more):
            found += await self._connection.fetch(sql, scope.org, queue, *able, most, *more)
        if self._claim_cursors.should_refresh(scope, time.perf_counter() - began, self._loaded.now):
            await self._refresh(scope)
        return sorted(found, key=_claiming_order)[:limit]

    async def _shares(
        self, sql: str, scope: ClaimScope, limit: int, able: Sequence[Any], *more: Any
    ) -> list[tuple[str, int]]:
        """How many to take from each queue. Mostly each has a few of them; only if one could have more than were looked
        at, all that it could have are."""
        if len(scope.queues) == 1:
            return [(scope.queues[0], limit)]
        most = min(max(2 * limit // len(scope.queues), 2), limit)
        while True:
            found = await self._connection.fetch(sql, scope.org, scope.queues, *able, limit, *more, most)
            if most >= limit or all(row[1] < most for row in found):
                return [(row[0], row[1]) for row in found]
            most = limit

    async def _cursors(self, scope: ClaimScope) -> Sequence[ClaimCursor]:
        cursors = self._claim_cursors.cursors(scope, self._loaded.now)
        if cursors is None:
            await self._refresh(scope)
            cursors = self._claim_cursors.cursors(scope, self._loaded.now)
        return cursors or ()

    def _refresh_again(self, scope: ClaimScope, found: int, limit: int) -> None:
        """A claim in lanes that came back with less may have passed something by."""
        if found < limit:
            at, known = self._claim_cursors.until_at(scope), self._loaded.claim_again_at
            self._loaded.claim_again_at = at if known is None else min(at, known)

    async def _refresh(self, scope: ClaimScope) -> None:
        began = time.perf_counter()
        found = await self._connection.fetch(_OLDEST_LIVE[scope.what], scope.org, scope.queues, *scope.known)
        self._claim_cursors.refreshed(scope, found, time.perf_counter() - began, self._loaded.now)

    async def _from_cursors(self, sql: str, scope: ClaimScope, cursors: Sequence[ClaimCursor], *rest: Any) -> Rows:
        return list(await self._connection.fetch(sql, scope.org, *columns(cursors, 3), *rest))

    async def _first_free(
        self, fetch: RefreshCursors, choose: Callable[[Rows], Rows], limit: int, *, waiting: bool = False
    ) -> Rows:
        """The first that nobody else holds. Whoever came back with less than there is would look as if there were no
        more: so one goes on looking while what was found is held by others."""
        most = limit * _SPARE
        while True:
            found = await fetch(most)
            taken = await self._locked(choose(found), limit, waiting=waiting)
            if len(taken) >= limit or len(found) < most or most >= _FARTHEST:
                return taken
            most = min(most * _MORE, _FARTHEST)

    async def _locked(self, found: Rows, limit: int, *, waiting: bool) -> Rows:
        """No more heads are locked than are wanted. Mostly the first are free; then the others are not even read."""
        for near in (found[:limit], found):
            taken = [row for row in near if row[2] in self._execution_rows]
            missing = [row for row in near if row[2] not in self._execution_rows]
            while missing and len(taken) < limit:
                most = len({row[2] for row in missing[: limit - len(taken)]})
                wanted = dict.fromkeys(row[2] for row in missing)
                got = await self._lock_executions(wanted, waiting=waiting, most=most)
                taken = [row for row in near if row[2] in self._execution_rows]
                missing = [row for row in missing if row[2] not in self._execution_rows] if got == most else []
            if len(taken) >= limit:
                break
        return taken[:limit]


def _claiming_order(row: Any) -> tuple[Any, ...]:
    """By priority, by the time of waiting, by the ids; rows may go on behind them."""
    return -row[0], row[1], row[2], row[3]
