"""How long closed executions are kept: walks them in the order of their ids, a page after another.

Ids begin with the time they were made at, so the walk ends at the first that are too young, and passes only those that
are open or were closed lately. It needs no index, and no state in the database: several processes may walk at the same
time, and take what the others have not.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from holdfast.engine.upkeep.remove_closed import Over, RemoveClosed
from holdfast.model.values import MICRO

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine

PAGE: Final = 1_000
AT_ONCE: Final = 200
EVENTS_AT_ONCE: Final = 2_000

log = logging.getLogger("holdfast.engine")


class Retention:
    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._after = ""
        self._removed = 0

    async def page(self) -> bool:
        """Remove those of the next page that are due; whether there is another page."""
        engine, keep_s = self._engine, self._engine.config.closed_retention_s
        if keep_s is None:
            return False
        before = engine.store.clock() - int(max(keep_s, 0.0) * MICRO)
        page = await engine.store.closed_page(before, self._after, PAGE)
        for ids in _portions(page.executions):
            self._removed += await engine.queue.submit(RemoveClosed(Over(ids, before)))
        self._after = page.after or ""
        if page.after is None and self._removed:
            log.info("removed %s executions that were closed more than %g s ago", f"{self._removed:,}", keep_s)
            self._removed = 0
        return page.after is not None


def _portions(found: Iterable[tuple[str, int]]) -> Iterator[tuple[str, ...]]:
    """As many as one transaction removes without making others wait for long."""
    ids: list[str] = []
    events = 0
    for execution_id, count in found:
        if ids and (len(ids) >= AT_ONCE or events + count > EVENTS_AT_ONCE):
            yield tuple(ids)
            ids, events = [], 0
        ids.append(execution_id)
        events += count
    if ids:
        yield tuple(ids)
