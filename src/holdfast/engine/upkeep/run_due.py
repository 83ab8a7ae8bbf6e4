"""One pass over what time has brought: due timers, due tasks, expired sessions. A page of each."""

from __future__ import annotations

from holdfast.contract.upkeep import DueWork
from holdfast.engine.operation import Operation
from holdfast.engine.rules import children, messages, promises, tasks
from holdfast.engine.rules.closing import close_externally
from holdfast.engine.rules.leases import blamed, notify_holder, reclaim, wake
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.events import TimerFired, WorkflowTerminated, WorkflowTimedOut
from holdfast.model.executions import DEADLINE_NO, Execution, State, TimerRow
from holdfast.model.messages import PromiseState
from holdfast.model.values import Failure, ParentClose
from holdfast.store.protocol import LoadPlan

PAGE = 1_000


class RunDue(Operation[None, DueWork]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.due_timers = PAGE
        plan.due_tasks = PAGE
        plan.orphans = PAGE
        plan.deliveries = PAGE
        plan.expired_workers = True

    def decide(self, uow: UnitOfWork) -> DueWork:
        timers = _fire_timers(uow)
        timed_out = _time_out_tasks(uow)
        turns, lost = _take_back(uow)
        _apply_parent_close_policy(uow)
        pages = (uow.loaded.due_timers, uow.loaded.due_tasks, uow.loaded.orphans)
        full = messages.continue_deliveries(uow) or any(len(page) >= PAGE for page in pages)
        return DueWork(timers, timed_out, len(uow.loaded.expired_workers), turns, lost, full)


def _fire_timers(uow: UnitOfWork) -> int:
    fired = 0
    for timer in uow.loaded.due_timers:
        execution = uow.loaded.executions.get(timer.execution_id)
        # The row is gone when an operation before this one cancelled it: firing is conditional on removing it.
        if execution is None or not execution.is_open or not uow.drop_timer(execution, timer.timer_no):
            continue
        if timer.timer_no == DEADLINE_NO:
            close_externally(uow, execution, State.TIMED_OUT, WorkflowTimedOut(expires_at=timer.fire_at))
            continue
        fired += 1
        if timer.promise is not None:
            _time_out_promise(uow, execution, timer)
            continue
        uow.append(execution, TimerFired(timer_no=timer.timer_no))
        wake(uow, execution)
    return fired


def _time_out_promise(uow: UnitOfWork, execution: Execution, timer: TimerRow) -> None:
    """The same rule as for everybody who settles it: whoever is first."""
    promise = uow.loaded.promises.get((execution.id, timer.promise or ""))
    if promise is not None:
        promise.timer_no = None
        promises.settle(uow, execution, promise, promises.Settled(PromiseState.TIMED_OUT))


def _time_out_tasks(uow: UnitOfWork) -> int:
    count = 0
    for key in uow.loaded.due_tasks:
        task = uow.loaded.tasks.get(key)
        execution = uow.loaded.executions.get(key[0])
        if task is None or execution is None or task.due_at is None or task.due_at > uow.now:
            continue
        tasks.time_out(uow, execution, task)
        count += 1
    return count


def _apply_parent_close_policy(uow: UnitOfWork) -> None:
    """What becomes of the children of parents that have closed."""
    for parent_id, child_id in uow.loaded.orphans:
        parent = uow.loaded.executions[parent_id]
        if child_id is None:
            # The count says more than there are: rows were removed by hand.
            parent.open_children = 0
            uow.touch(parent)
            continue
        child = uow.loaded.executions[child_id]
        if not child.is_open or child.on_parent_close == ParentClose.ABANDON:
            continue
        decided = children.parent_close_action(parent, child)
        reason = f"its parent {parent.workflow_id} has closed ({parent.status})"
        if decided is ParentClose.TERMINATE:
            close_externally(uow, child, State.TERMINATED, WorkflowTerminated(reason=reason))
        else:
            children.release(uow, parent, child)
            if decided is ParentClose.CANCEL:
                children.request_cancel(uow, child, reason)


def _take_back(uow: UnitOfWork) -> tuple[int, int]:
    """Free what sessions held whose lease has passed."""
    expired = set(uow.loaded.expired_workers)
    for session in expired:
        uow.place.retire(session)
    lost = 0
    held = [execution for key in uow.loaded.held_turns if _is_held(execution := uow.loaded.executions[key], expired)]
    counts_as_crash = blamed(uow, held)
    for execution in held:
        notify_holder(uow, execution)
        reclaim(uow, execution, counts_as_crash=execution.id in counts_as_crash)
    for key in uow.loaded.held_tasks:
        task = uow.loaded.tasks.get(key)
        if task is not None and task.worker in expired:
            failure = Failure(type="WorkerLost", message=f"worker {task.worker} stopped reporting", code="worker_lost")
            tasks.fail_attempt(uow, uow.loaded.executions[key[0]], task, failure, now=True)
            lost += 1
    for session in expired:
        uow.loaded.workers.pop(session, None)
        uow.changes.workers.pop(session, None)
        uow.changes.deleted_workers.append(session)
    return len(held), lost


def _is_held(execution: Execution, sessions: set[str]) -> bool:
    return execution.is_open and execution.ready is not None and execution.ready.worker in sessions
