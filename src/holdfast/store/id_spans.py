"""Which ids have to be walked for a page by time: ids begin with the time they were made at."""

from __future__ import annotations

from typing import Final

from holdfast.store.queries import ExecutionQuery

AFTER_ALL_IDS: Final = "\U0010ffff"
_BEFORE_ALL_IDS: Final = ""
# Executions whose own time is further away from that of their id have an index for themselves.
_ASTRAY_MS: Final = 60_000


def id_span(query: ExecutionQuery) -> tuple[str, str]:
    """The ids to walk: from the first to before the second."""
    first, last = _BEFORE_ALL_IDS, query.before if query.before is not None else AFTER_ALL_IDS
    if query.workflow_id is None and query.created_from is not None:
        first = _id_of(query.created_from // 1_000 - _ASTRAY_MS)
    if query.workflow_id is None and query.created_before is not None:
        last = min(last, _id_of(query.created_before // 1_000 + 1 + _ASTRAY_MS))
    return first, last


def _id_of(ms: int) -> str:
    """How the ids of a millisecond begin."""
    if ms >= 2**48:
        return AFTER_ALL_IDS
    text = f"{max(ms, 0):012x}"
    return f"{text[:8]}-{text[8:]}"
