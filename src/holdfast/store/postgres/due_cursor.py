"""Before which moment nothing is left that comes due by itself: timers, and deadlines of tasks.

Both are found by walking an index from its oldest entry, and those that are done with stay there for as long as any
transaction of the server is older than them (see `claim_cursors`). Whoever asks when something is due next, as is done
after every pass, walks past all of them on a reader's connection. If that has taken long, it is now known where the
living ones begin: passes, which run in the writer's transactions, and the next questions begin there for a while.

What may be seen late by that: a row that another node has written and whose moment had passed long before, such as a
timer that a reset takes over. Until the next look, ten seconds and a pass at most. What this node writes itself it sees
at once.
"""

from __future__ import annotations

from typing import Final

from holdfast.store.claim_cursors import MARGIN, hold, is_held
from holdfast.store.postgres.read import NextDue, next_due
from holdfast.store.postgres.statements import Connection
from holdfast.store.protocol import Changes

# A look that takes longer has walked past dead rows.
LONG_US = 10_000
_NEVER: Final = 2**63 - 1


class DueCursor:
    """`at` is where to begin; 0 is the beginning."""

    __slots__ = ("_looking", "_lowest", "_until_at", "at")

    def __init__(self) -> None:
        self.at = 0
        self._until_at = 0
        self._looking = False
        self._lowest = _NEVER

    async def next_due_at(self, connection: Connection, after: int, now: int) -> int | None:
        """The earliest moment at which something is due by itself."""
        if self._looking or is_held(self._until_at, now):
            return (await next_due(connection, after, self.at)).earliest
        self._looking, self._lowest = True, _NEVER
        try:
            found = await next_due(connection, after, 0)
        finally:
            self._looking = False
        self._looked(found, now)
        return found.earliest

    def wrote(self, changes: Changes) -> None:
        """Rows that lie below make it sink, also while somebody looks who can't see them."""
        if not self.at and not self._looking:
            return
        moments = [timer.fire_at for timer in changes.new_timers]
        moments += [task.due_at for task in (*changes.new_tasks, *changes.changed_tasks.values()) if task.due_at]
        self._lowest = min((self._lowest, *moments))
        self.at = min(self.at, self._lowest)

    def _looked(self, found: NextDue, now: int) -> None:
        if found.took_us <= LONG_US:
            self.at = self._until_at = 0
            return
        living = [moment for moment in (found.timer, found.deadline) if moment is not None]
        self.at = min(max(min((now, *living)) - MARGIN, 0), self._lowest)
        self._until_at = now + hold(found.took_us)
