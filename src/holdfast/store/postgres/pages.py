"""Pages of executions: filters to SQL.

A page is made of branches, one for each way into an index (state, kind, workflow id, tag, ready row); each gives its
newest ids, up to the limit, and PostgreSQL merges them until the page is full. Each way leads to one org's rows, so
that a small org does not pay for a large one.

A page by time walks ids, because an id begins with the time at which it was made, and that is the time of creation:
exactly so, but for children, whose ids may be older. Those that are astray by more than a minute have an index of their
own, and are looked for there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from holdfast.model.executions import Execution, State, WorkflowStatus
from holdfast.store.id_spans import AFTER_ALL_IDS, id_span
from holdfast.store.postgres.read_session import index_only
from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.queries import ExecutionQuery
from holdfast.store.rows import row_to_execution

_DERIVED: Final = frozenset({WorkflowStatus.PENDING, WorkflowStatus.RUNNING, WorkflowStatus.WAITING})
_READY_WAYS: Final = {WorkflowStatus.PENDING: "page_of_pending", WorkflowStatus.RUNNING: "page_of_running"}
_LEFT_TO_SOME: Final = frozenset({"where_status", "where_kind", "where_ready_kind"})
_SIZE_OF_STATE: Final = statement("executions", "size_of_state")
_SIZE_OF_KIND: Final = statement("executions", "size_of_kind")
_ALL_STATES: Final = tuple(state.value for state in State)
# What is walked is counted up to here: fewer rows than this may all be looked at.
_FEW: Final = 5_000


@index_only
async def list_executions(connection: Connection, query: ExecutionQuery) -> list[Execution]:
    """One page, newest first."""
    by_tag = False
    if query.metadata and query.workflow_id is None:
        query, by_tag = await _choose(connection, query)
    sql, values = _page(query, by_tag=by_tag)
    return [row_to_execution(row) for row in await connection.fetch(sql, *values)]


async def _choose(connection: Connection, query: ExecutionQuery) -> tuple[ExecutionQuery, bool]:
    """The rarest tag first, and whether to start from it. Not if many have it and few the status or kind."""
    states, derived = _places(query)
    narrow = bool(query.statuses or query.kinds)
    if not narrow and len(query.metadata) == 1:
        return query, True
    span = id_span(query)
    keys, values = zip(*query.metadata, strict=True)
    sizes = await connection.fetch(statement("metadata", "sizes"), query.org, keys, values, *span, _FEW)
    ranked = sorted(zip((size for (size,) in sizes), query.metadata, strict=True))
    query = msgspec.structs.replace(query, metadata=tuple(tag for _, tag in ranked))
    if ranked[0][0] < _FEW or not narrow:
        return query, True
    if WorkflowStatus.WAITING in derived:
        states = [State.OPEN.value, *states]
    if query.kinds:
        size = await connection.fetchval(_SIZE_OF_KIND, query.org, states, *span, _FEW, query.kinds)
    else:
        size = await connection.fetchval(_SIZE_OF_STATE, query.org, states, *span, _FEW)
    return query, size >= _FEW


def _page(query: ExecutionQuery, *, by_tag: bool) -> tuple[str, list[Any]]:
    """The statement and its values."""
    branches = "\nUNION ALL\n".join(_branches(query, by_tag=by_tag))
    numbers = _Numbers(_values(query))
    sql = statement("executions", "page").replace("/*branches*/", branches).format_map(numbers)
    return sql, numbers.bound


class _Numbers(dict[str, str]):
    """Numbers the parameters of a statement in the order in which they are first named."""

    def __init__(self, known: dict[str, Any]) -> None:
        super().__init__()
        self._known = known
        self.bound: list[Any] = []

    def __missing__(self, name: str) -> str:
        self.bound.append(self._known[name])
        self[name] = f"${len(self.bound)}"
        return self[name]


def _values(query: ExecutionQuery) -> dict[str, Any]:
    states, open_statuses = _places(query)
    from_id, before_id = id_span(query)
    tag_key, tag_value = query.metadata[0] if query.metadata else ("", "")
    return {
        "org": query.org,
        "limit": query.limit,
        "states": states,
        **{f"state_{state}": state for state in _ALL_STATES},
        "open_statuses": [status.value for status in open_statuses],
        "kinds": query.kinds,
        **{f"kind_{number}": kind for number, kind in enumerate(query.kinds)},
        "workflow_id": query.workflow_id,
        "queue": query.queue,
        "created_from": query.created_from,
        "created_before": query.created_before,
        "from_id": from_id,
        "before_id": before_id,
        "cursor": query.before if query.before is not None else AFTER_ALL_IDS,
        "tag_key": tag_key,
        "tag_value": tag_value,
        "tag_keys": [key for key, _ in query.metadata],
        "tag_values": [value for _, value in query.metadata],
    }


def _places(query: ExecutionQuery) -> tuple[list[str], list[WorkflowStatus]]:
    """Stored states wanted as they are, and statuses that an OPEN execution has by its ready row."""
    wanted = dict.fromkeys(query.statuses)
    if not wanted:
        return list(_ALL_STATES), []
    states = [status.value for status in wanted if status not in _DERIVED]
    derived = [status for status in wanted if status in _DERIVED]
    if len(derived) == len(_DERIVED):
        return [State.OPEN.value, *states], []
    return states, derived


def _branches(query: ExecutionQuery, *, by_tag: bool) -> Iterator[str]:
    if query.workflow_id is not None:
        # Few, whatever their time.
        yield _branch("page_of_workflow", _filters(query, "where_status", "where_kind"))
        yield _branch("page_of_id", _filters(query, "where_status", "where_kind"))
        return
    if by_tag:
        yield _branch("page_of_metadata", _filters(query, "where_status", "where_kind", tags=len(query.metadata) > 1))
    else:
        yield from _branches_by_status(query)
    if query.created_from is not None or query.created_before is not None:
        yield _branch("page_astray", _filters(query, "where_status", "where_kind"))


def _branches_by_status(query: ExecutionQuery) -> Iterator[str]:
    states, derived = _places(query)
    filters = _filters(query)
    for status in derived:
        if status is WorkflowStatus.WAITING:
            yield from _branches_of_state(query, State.OPEN.value, [*filters, "where_waiting"])
        else:
            yield _branch(_READY_WAYS[status], _filters(query, "where_ready_kind"))
    for state in states:
        yield from _branches_of_state(query, state, filters)


def _branches_of_state(query: ExecutionQuery, state: str, filters: list[str]) -> Iterator[str]:
    if not query.kinds:
        yield _branch("page_of_state", filters).replace("{state}", f"{{state_{state}}}")
        return
    branch = _branch("page_of_kind", filters).replace("{state}", f"{{state_{state}}}")
    for number, kind in enumerate(query.kinds):
        # Named twice, a kind is still one.
        if query.kinds.index(kind) == number:
            yield branch.replace("{kind}", f"{{kind_{number}}}")


def _filters(query: ExecutionQuery, *more: str, tags: bool = True) -> list[str]:
    """What a way leaves to be asked of each row: always the same, and `more` where that is filtered by."""
    used = {
        "where_status": query.statuses,
        "where_kind": query.kinds,
        "where_ready_kind": query.kinds,
        "where_queue": query.queue is not None,
        "where_created_from": query.created_from is not None,
        "where_created_before": query.created_before is not None,
        "where_tagged": tags and query.metadata,
    }
    return [name for name, wanted in used.items() if wanted and (name in more or name not in _LEFT_TO_SOME)]


def _branch(way: str, filters: list[str]) -> str:
    where = "\n".join(statement("executions", name) for name in filters)
    return statement("executions", way).replace("/*where*/", where)
