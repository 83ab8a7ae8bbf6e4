"""`recover()`: do at once what the services would do in time, check that every waiting execution can be woken, report.

There is nothing to recover in memory. What this adds is the check: rows deleted by hand, or a file restored from a
copy, can leave an execution waiting for a timer, task, event or promise that has no row; its history says what is
missing.
"""

from __future__ import annotations

from holdfast.contract.upkeep import RecoveryReport
from holdfast.engine.group_commit import OperationQueue
from holdfast.engine.upkeep.repair import Repair, Repaired, RepairExecution
from holdfast.engine.upkeep.run_due import RunDue
from holdfast.model import events as e
from holdfast.model.executions import WorkflowStatus
from holdfast.store.protocol import Store
from holdfast.store.queries import ExecutionQuery, Inconsistency

PAGE = 1_000


async def recover(queue: OperationQueue, store: Store, org: str) -> RecoveryReport:
    counts = await store.count_executions(org)
    timers = sessions = turns = tasks = 0
    more = True
    while more:
        due = await queue.submit(RunDue(None))
        timers += due.timers_fired
        sessions += due.sessions_expired
        turns += due.turns_reclaimed
        tasks += due.tasks_reclaimed
        more = due.more
    repaired = [await _repair(queue, store, org, found) for found in await store.inconsistencies(org, PAGE)]
    stuck = await store.list_executions(ExecutionQuery(org=org, statuses=(WorkflowStatus.STUCK,), limit=PAGE))
    return RecoveryReport(
        open_executions=sum(number for status, number in counts.items() if status.is_open),
        sessions_expired=sessions,
        turns_reclaimed=turns,
        tasks_reclaimed=tasks,
        timers_fired=timers,
        made_ready=sum(result.made_ready for result in repaired),
        timers_restored=sum(result.timers for result in repaired),
        tasks_restored=sum(result.tasks for result in repaired),
        waits_restored=sum(result.waits for result in repaired),
        promises_restored=sum(result.promises for result in repaired),
        stuck=tuple(execution.id for execution in stuck),
    )


async def _repair(queue: OperationQueue, store: Store, org: str, found: Inconsistency) -> Repaired:
    history = await store.history(org, found.execution_id)
    bodies = [event.body for event in history]
    scheduled = {body.task_no: body for body in bodies if isinstance(body, e.TaskScheduled)}
    waits = {body.wait_no: body for body in bodies if isinstance(body, e.WaitStarted)}
    promises = {body.promise_no: body for body in bodies if isinstance(body, e.PromiseCreated)}
    return await queue.submit(
        Repair(
            RepairExecution(
                org=org,
                execution_id=found.execution_id,
                seen_last_seq=history[-1].seq,
                unread=found.unread,
                timers=found.missing_timers,
                tasks=tuple(scheduled[number] for number in found.missing_tasks if number in scheduled),
                waits=tuple(waits[number] for number in found.missing_waits if number in waits),
                promises=tuple(promises[number] for number in found.missing_promises if number in promises),
            )
        )
    )
