"""How long closed executions are kept: walks them in the order they were closed in, a page after another.

The walk reads those that are over and no others, and several processes may walk at the same time: each takes what the
others have not. What a removed execution has left behind is noted in the database: a process that dies leaves the rest
to the next one, also to one that keeps everything.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from holdfast.engine.upkeep.remove_closed import EVENTS_AT_ONCE, Clear, Over, RemoveClosed
from holdfast.model.values import MICRO
from holdfast.store import reads

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine

PAGE: Final = 1_000
AT_ONCE: Final = 200

log = logging.getLogger("holdfast.engine")


class Retention:
    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._after = ""
        self._removed = 0

    async def page(self) -> bool:
        """Remove a page of what was left behind, or those of the next page that are due; whether there is more."""
        engine, keep_s = self._engine, self._engine.config.closed_retention_s
        if await engine.store.read(reads.HasRemains()):
            await engine.queue.submit(Clear(None))
            return True
        if keep_s is None:
            return False
        before = engine.store.clock() - int(max(keep_s, 0.0) * MICRO)
        page = await engine.store.read(reads.ClosedExecutions(before, self._after, PAGE))
        for ids in _portions(page.executions):
            self._removed += await engine.queue.submit(RemoveClosed(Over(ids, before)))
        self._after = page.after or ""
        if page.after is None and self._removed:
            log.info("removed %s executions that were closed more than %g s ago", f"{self._removed:,}", keep_s)
            self._removed = 0
        return page.after is not None or await engine.store.read(reads.HasRemains())


def _portions(found: Iterable[tuple[str, int]]) -> Iterator[tuple[str, ...]]:
    """As many as one transaction removes without making others wait for long; a long history is not removed with its
    execution."""
    ids: list[str] = []
    events = 0
    for execution_id, last_seq in found:
        count = last_seq if last_seq <= EVENTS_AT_ONCE else 0
        if ids and (len(ids) >= AT_ONCE or events + count > EVENTS_AT_ONCE):
            yield tuple(ids)
            ids, events = [], 0
        ids.append(execution_id)
        events += count
    if ids:
        yield tuple(ids)
