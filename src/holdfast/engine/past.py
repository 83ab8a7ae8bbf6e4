"""What a reset, fork or retry reads before its transaction: a history can be long, and its past does not change."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from holdfast.engine.rules import rebuilding
from holdfast.engine.rules.rebuilding import Prefix
from holdfast.errors import ExecutionNotFound
from holdfast.model.events import EventBody, HistoryEvent
from holdfast.model.executions import Execution
from holdfast.store.protocol import Store

ChoosePoint = Callable[[list[HistoryEvent], Execution], int]


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """An execution as it was read, cut after `prefix`. `last_runs` are the newest executions of those children whose
    end the history does not tell; `ends` are the last events of the closed ones among them. Both by child number."""

    execution_id: str
    workflow_id: str
    prefix: Prefix
    tail: list[HistoryEvent]
    last_seq: int
    last_runs: dict[int, str]
    ends: dict[int, EventBody]


async def read_past(store: Store, org: str, execution_id: str, choose: ChoosePoint) -> Past:
    head = await _head(store, org, execution_id)
    if head is None:
        raise ExecutionNotFound(
            f"no execution {execution_id!r} in org {org!r}: check the id; list_workflows() shows what there is",
            execution_id=execution_id,
        )
    history = await store.history(org, execution_id)
    seq = choose(history, head)
    prefix, tail = rebuilding.prefix_of(history, seq), history[seq:]
    last_runs: dict[int, str] = {}
    ends: dict[int, EventBody] = {}
    for number, started in rebuilding.unsettled_children(prefix, tail).items():
        child = await _last_run(store, org, started.child_execution_id)
        if child is None:
            continue
        last_runs[number] = child.id
        if not child.is_open:
            ends[number] = (await store.last_events(org, [child.id]))[child.id].body
    return Past(
        execution_id=execution_id,
        workflow_id=head.workflow_id,
        prefix=prefix,
        tail=tail,
        last_seq=history[-1].seq,
        last_runs=last_runs,
        ends=ends,
    )


async def _head(store: Store, org: str, execution_id: str) -> Execution | None:
    return (await store.executions(org, [execution_id])).get(execution_id)


async def _last_run(store: Store, org: str, execution_id: str) -> Execution | None:
    """The execution that goes on in the place of this one, or the one itself."""
    head = await _head(store, org, execution_id)
    while head is not None and head.successor is not None:
        head = await _head(store, org, head.successor)
    return head
