"""What a reset, fork or retry reads before its transaction: a history can be long, and its past does not change."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from holdfast.engine.rules import resets
from holdfast.engine.rules.resets import Prefix
from holdfast.errors import ExecutionNotFound
from holdfast.model.events import ChildStarted, EventBody, HistoryEvent
from holdfast.model.executions import Execution
from holdfast.store.protocol import Store

ChoosePoint = Callable[[list[HistoryEvent], Execution], int]


class ResetSource(msgspec.Struct, frozen=True, kw_only=True):
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


async def read_reset_source(store: Store, org: str, execution_id: str, choose: ChoosePoint) -> ResetSource:
    execution_row = await _execution_row(store, org, execution_id)
    history = await store.history(org, execution_id) if execution_row is not None else []
    if execution_row is None or not _is_whole(history, execution_row):
        # Retention may remove it between the two reads.
        raise ExecutionNotFound(
            f"no execution {execution_id!r} in org {org!r}: check the id; list_workflows() shows what there is",
            execution_id=execution_id,
        )
    seq = choose(history, execution_row)
    prefix, tail = resets.prefix_of(history, seq), history[seq:]
    unsettled = resets.unsettled_children(prefix, tail)
    last_runs: dict[int, str] = {}
    ends: dict[int, EventBody] = {}
    for number, started in unsettled.items():
        child = await _last_run(store, org, execution_id, started)
        if child is None:
            continue
        if not child.is_open:
            last = (await store.last_events(org, [child.id])).get(child.id)
            if last is None:
                continue
            ends[number] = last.body
        last_runs[number] = child.id
    return ResetSource(
        execution_id=execution_id,
        workflow_id=execution_row.workflow_id,
        prefix=prefix,
        tail=tail,
        last_seq=history[-1].seq,
        unsettled=unsettled,
        last_runs=last_runs,
        ends=ends,
    )


def _is_whole(history: list[HistoryEvent], execution_row: Execution) -> bool:
    """Whether nothing is missing of what there was when the head was read. What has come since may be there."""
    return len(history) >= execution_row.last_seq and history[-1].seq == len(history)


async def _execution_row(store: Store, org: str, execution_id: str) -> Execution | None:
    return (await store.executions(org, [execution_id])).get(execution_id)


async def _last_run(store: Store, org: str, parent_id: str, started: ChildStarted) -> Execution | None:
    """The execution that goes on in the place of the one that was started, or that one itself. Where one in between
    was removed, the newest one with the child's workflow id, if that is still this child."""
    execution_row = await _execution_row(store, org, started.child_execution_id)
    while execution_row is not None and execution_row.successor is not None:
        execution_row = await _execution_row(store, org, execution_row.successor)
    if execution_row is not None:
        return execution_row
    found = await store.execution_by_workflow_id(org, started.workflow_id or started.child_execution_id)
    is_child = found is not None and (found.parent_id, found.child_no) == (parent_id, started.child_no)
    return found if is_child else None
