"""Mend an execution whose rows disagree with its history (rows deleted by hand, a restored file)."""

from __future__ import annotations

import msgspec

from holdfast.engine.operation import Operation
from holdfast.engine.rules import tasks
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.events import TaskScheduled, TimerFired
from holdfast.store.protocol import LoadPlan


class RepairExecution(msgspec.Struct, frozen=True, kw_only=True):
    """`timers` lack their row and count as fired; `tasks` lack theirs and are put on the queue again."""

    execution_id: str
    seen_last_seq: int
    unread: bool
    timers: tuple[int, ...] = ()
    tasks: tuple[TaskScheduled, ...] = ()


class Repaired(msgspec.Struct, frozen=True):
    made_ready: bool = False
    timers: int = 0
    tasks: int = 0


class Repair(Operation[RepairExecution, Repaired]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.execution_id)

    def decide(self, ws: Workspace) -> Repaired:
        request = self.request
        execution = ws.loaded.executions.get(request.execution_id)
        # Decided from a list read earlier: if the execution has moved since, the list is stale and nothing is done.
        if execution is None or not execution.is_open or execution.last_seq != request.seen_last_seq:
            return Repaired()
        if execution.ready is not None:
            return Repaired()
        execution.open_timers -= len(request.timers)
        execution.open_tasks -= len(request.tasks)
        for timer_no in request.timers:
            ws.append(execution, TimerFired(timer_no=timer_no))
        for event in request.tasks:
            tasks.schedule(ws, execution, event)
        if request.unread or request.timers:
            wake(ws, execution)
        ws.touch(execution)
        return Repaired(request.unread, len(request.timers), len(request.tasks))
