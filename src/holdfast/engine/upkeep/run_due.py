"""One pass over what time has brought: due timers, due tasks, expired sessions. A page of each."""

from __future__ import annotations

from holdfast.contract.upkeep import DueWork
from holdfast.engine.operation import Operation
from holdfast.engine.rules import children, messages, promises, tasks
from holdfast.engine.rules.closing import end_from_outside
from holdfast.engine.rules.leases import accused, reclaim, tell_holder, wake
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.events import TimerFired, WorkflowTerminated, WorkflowTimedOut
from holdfast.model.executions import DEADLINE_NO, Execution, State, TimerRow, WorkerRow
from holdfast.model.messages import PromiseState
from holdfast.model.pauses import Pausable, Pause
from holdfast.model.values import Failure, ParentClose
from holdfast.store.protocol import LoadPlan

PAGE = 1_000


class RunDue(Operation[None, DueWork]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.due_timers = PAGE
        plan.due_tasks = PAGE
        plan.bereaved = PAGE
        plan.deliveries = PAGE
        plan.expired_workers = True

    def decide(self, ws: Workspace) -> DueWork:
        timers = _fire_timers(ws)
        timed_out = _time_out_tasks(ws)
        turns, lost = _take_back(ws)
        _decide_fates(ws)
        pages = (ws.loaded.due_timers, ws.loaded.due_tasks, ws.loaded.bereaved)
        full = messages.go_on_delivering(ws) or any(len(page) >= PAGE for page in pages)
        return DueWork(timers, timed_out, len(ws.loaded.expired_workers), turns, lost, full)


def _fire_timers(ws: Workspace) -> int:
    fired = 0
    for timer in ws.loaded.due_timers:
        execution = ws.loaded.executions.get(timer.execution_id)
        # The row is gone when an operation before this one cancelled it: firing is conditional on removing it.
        if execution is None or not execution.is_open or not ws.drop_timer(execution, timer.timer_no):
            continue
        if timer.timer_no == DEADLINE_NO:
            end_from_outside(ws, execution, State.TIMED_OUT, WorkflowTimedOut(expires_at=timer.fire_at))
            continue
        fired += 1
        if timer.promise is not None:
            _time_out_promise(ws, execution, timer)
            continue
        ws.append(execution, TimerFired(timer_no=timer.timer_no))
        wake(ws, execution)
    return fired


def _time_out_promise(ws: Workspace, execution: Execution, timer: TimerRow) -> None:
    """The same rule as for everybody who settles it: whoever is first."""
    promise = ws.loaded.promises.get((execution.id, timer.promise or ""))
    if promise is not None:
        promise.timer_no = None
        promises.settle(ws, execution, promise, promises.Settled(PromiseState.TIMED_OUT))


def _time_out_tasks(ws: Workspace) -> int:
    count = 0
    for key in ws.loaded.due_tasks:
        task = ws.loaded.tasks.get(key)
        execution = ws.loaded.executions.get(key[0])
        if task is None or execution is None or task.due_at is None or task.due_at > ws.now:
            continue
        tasks.time_out(ws, execution, task)
        count += 1
    return count


def _decide_fates(ws: Workspace) -> None:
    """What becomes of the children of parents that have closed."""
    for parent_id, child_id in ws.loaded.bereaved:
        parent = ws.loaded.executions[parent_id]
        if child_id is None:
            # The count says more than there are: rows were removed by hand.
            parent.open_children = 0
            ws.touch(parent)
            continue
        child = ws.loaded.executions[child_id]
        if not child.is_open or child.on_parent_close == ParentClose.ABANDON:
            continue
        decided = children.fate(parent, child)
        reason = f"its parent {parent.workflow_id} has closed ({parent.status})"
        if decided is ParentClose.TERMINATE:
            end_from_outside(ws, child, State.TERMINATED, WorkflowTerminated(reason=reason))
        else:
            children.release(ws, parent, child)
            if decided is ParentClose.CANCEL:
                children.request_cancel(ws, child, reason)


def _take_back(ws: Workspace) -> tuple[int, int]:
    """Free what sessions held whose lease has passed."""
    expired = set(ws.loaded.expired_workers)
    for session in expired:
        ws.place.retire(session)
    lost = 0
    held = [execution for key in ws.loaded.held_turns if _is_held(execution := ws.loaded.executions[key], expired)]
    guilty = accused(ws, held)
    for execution in held:
        tell_holder(ws, execution)
        reclaim(ws, execution, guilty=execution.id in guilty)
    for key in ws.loaded.held_tasks:
        task = ws.loaded.tasks.get(key)
        if task is not None and task.worker in expired:
            failure = Failure(type="WorkerLost", message=f"worker {task.worker} stopped reporting", code="worker_lost")
            tasks.fail_attempt(ws, ws.loaded.executions[key[0]], task, failure, now=True)
            lost += 1
    for session in expired:
        gone = ws.get(WorkerRow, session)
        if gone is not None:
            ws.drop(Pause, (gone.org, Pausable.WORKER, session))
        ws.drop(WorkerRow, session)
    return len(held), lost


def _is_held(execution: Execution, sessions: set[str]) -> bool:
    return execution.is_open and execution.ready is not None and execution.ready.worker in sessions
