"""Mend an execution whose rows disagree with its history (rows deleted by hand, a restored file)."""

from __future__ import annotations

import msgspec

from holdfast.engine.operation import Operation
from holdfast.engine.rules import messages, promises, tasks
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.retained_events import plan_look_back
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.events import PromiseCreated, TaskScheduled, TimerFired, WaitStarted
from holdfast.model.executions import Execution
from holdfast.model.messages import PromiseState
from holdfast.store.protocol import LoadPlan


class RepairExecution(msgspec.Struct, frozen=True, kw_only=True):
    """`timers` lack their row and count as fired; `tasks` lack theirs and are put on the queue again. `waits` lack
    their subscription and wait again from now on, as if they had just begun; `promises` lack their row, subscription or
    timer."""

    org: str
    execution_id: str
    seen_last_seq: int
    unread: bool
    timers: tuple[int, ...] = ()
    tasks: tuple[TaskScheduled, ...] = ()
    waits: tuple[WaitStarted, ...] = ()
    promises: tuple[PromiseCreated, ...] = ()


class Repaired(msgspec.Struct, frozen=True):
    made_ready: bool = False
    timers: int = 0
    tasks: int = 0
    waits: int = 0
    promises: int = 0


class Repair(Operation[RepairExecution, Repaired]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        plan.executions.add(request.execution_id)
        plan.numbering = plan.numbering or bool(request.waits or request.promises)
        for wait in request.waits:
            plan.waits.add((request.execution_id, wait.wait_no))
            plan.topics.add((request.org, wait.key))
            if wait.since_at is not None:
                plan_look_back(plan, request.org, wait)
        for promise in request.promises:
            plan.promises.add((request.execution_id, promise.name))
            plan.waits.add((request.execution_id, -promise.promise_no))
            if promise.event_key is not None:
                plan.topics.add((request.org, promise.event_key))
            if promise.timer_no is not None:
                plan.timers.add((request.execution_id, promise.timer_no))

    def decide(self, uow: UnitOfWork) -> Repaired:
        request = self.request
        execution = uow.loaded.executions.get(request.execution_id)
        # Decided from a list read earlier: if the execution has moved since, the list is stale and nothing is done.
        if execution is None or not execution.is_open or execution.last_seq != request.seen_last_seq:
            return Repaired()
        if execution.ready is not None:
            return Repaired()
        execution.open_timers -= len(request.timers)
        execution.open_tasks -= len(request.tasks)
        for timer_no in request.timers:
            uow.append(execution, TimerFired(timer_no=timer_no))
        for event in request.tasks:
            tasks.schedule(uow, execution, event)
        for wait in request.waits:
            if (execution.id, wait.wait_no) not in uow.loaded.waits:
                execution.open_waits = max(execution.open_waits - 1, 0)
                messages.subscribe(uow, execution, wait)
        for promise in request.promises:
            _mend_promise(uow, execution, promise)
        uow.run_deferred()
        if request.unread or request.timers:
            wake(uow, execution)
        uow.touch(execution)
        return Repaired(
            request.unread, len(request.timers), len(request.tasks), len(request.waits), len(request.promises)
        )


def _mend_promise(uow: UnitOfWork, execution: Execution, made: PromiseCreated) -> None:
    """Pending again, with its subscription. Without its timer it is too late: that counts as fired, like others."""
    promise = uow.loaded.promises.get((execution.id, made.name))
    timer = (execution.id, made.timer_no)
    ticking = made.timer_no is None or timer in uow.loaded.timers
    if promise is None:
        promise = promises.restore(uow, execution, made)
    if (execution.id, -made.promise_no) not in uow.loaded.waits and promise.event_key is not None:
        execution.open_waits = max(execution.open_waits - 1, 0)
        messages.subscribe_promise(uow, execution, made)
    if not ticking:
        execution.open_timers = max(execution.open_timers - 1, 0)
        promise.timer_no = None
        promises.settle(uow, execution, promise, promises.Settled(PromiseState.TIMED_OUT))
