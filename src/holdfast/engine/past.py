"""What a reset, fork or retry reads before its transaction: a history can be long, and its past does not change."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from holdfast.engine.rules import rebuilding
from holdfast.engine.rules.rebuilding import Prefix
from holdfast.errors import ExecutionNotFound
from holdfast.model.events import ChildStarted, EventBody, HistoryEvent
from holdfast.model.executions import Execution
from holdfast.store import reads
from holdfast.store.protocol import Store

ChoosePoint = Callable[[list[HistoryEvent], Execution], int]


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """An execution as it was read, cut after `prefix`. `unsettled` are those children whose end the history does not
    tell, and `last_runs` their newest executions, without those that were removed; `ends` are the last events of the
    closed ones among them. All by child number."""

    execution_id: str
    workflow_id: str
    prefix: Prefix
    tail: list[HistoryEvent]
    last_seq: int
    unsettled: dict[int, ChildStarted]
    last_runs: dict[int, str]
    ends: dict[int, EventBody]


async def read_past(store: Store, org: str, execution_id: str, choose: ChoosePoint) -> Past:
    head = await _head(store, org, execution_id)
    history = await store.read(reads.History(org, execution_id)) if head is not None else []
    if head is None or not _is_whole(history, head):
        # Retention may remove it between the two reads.
        raise ExecutionNotFound(
            f"no execution {execution_id!r} in org {org!r}: check the id; list_workflows() shows what there is",
            execution_id=execution_id,
        )
    seq = choose(history, head)
    prefix, tail = rebuilding.prefix_of(history, seq), history[seq:]
    unsettled = rebuilding.unsettled_children(prefix, tail)
    last_runs: dict[int, str] = {}
    ends: dict[int, EventBody] = {}
    for number, started in unsettled.items():
        child = await _last_run(store, org, execution_id, started)
        if child is None:
            continue
        if not child.is_open:
            last = (await store.read(reads.LastEvents(org, [child.id]))).get(child.id)
            if last is None:
                continue
            ends[number] = last.body
        last_runs[number] = child.id
    return Past(
        execution_id=execution_id,
        workflow_id=head.workflow_id,
        prefix=prefix,
        tail=tail,
        last_seq=history[-1].seq,
        unsettled=unsettled,
        last_runs=last_runs,
        ends=ends,
    )


def _is_whole(history: list[HistoryEvent], head: Execution) -> bool:
    """Whether nothing is missing of what there was when the head was read. What has come since may be there."""
    return len(history) >= head.last_seq and history[-1].seq == len(history)


async def _head(store: Store, org: str, execution_id: str) -> Execution | None:
    return (await store.read(reads.Executions(org, [execution_id]))).get(execution_id)


async def _last_run(store: Store, org: str, parent_id: str, started: ChildStarted) -> Execution | None:
    """The execution that goes on in the place of the one that was started, or that one itself. Where one in between
    was removed, the newest one with the child's workflow id, if that is still this child."""
    head = await _head(store, org, started.child_execution_id)
    while head is not None and head.successor is not None:
        head = await _head(store, org, head.successor)
    if head is not None:
        return head
    found = await store.read(reads.ExecutionByWorkflowId(org, started.workflow_id or started.child_execution_id))
    is_child = found is not None and (found.parent_id, found.child_no) == (parent_id, started.child_no)
    return found if is_child else None
