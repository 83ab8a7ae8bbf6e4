"""Finish a standalone task from outside, by its id: only an attempt that was left to somebody else."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from holdfast.contract.messages import SettledPromise
from holdfast.engine.operation import Operation
from holdfast.engine.rules import tasks
from holdfast.engine.rules.standalone import is_task, no_task, task_key
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import StaleAttempt, TaskNotDeferred
from holdfast.model.executions import Execution, TaskRow
from holdfast.model.messages import PromiseState
from holdfast.model.standalone import TASK_NO
from holdfast.model.values import NULL, Failure
from holdfast.store.protocol import LoadPlan


class SettleTask(msgspec.Struct, frozen=True, kw_only=True):
    """Complete the attempt that was left to somebody else, or fail it if there is a `failure`. Idempotency keys of both
    are known by this name."""

    org: str
    task_id: str
    value: Raw = NULL
    failure: Failure | None = None
    request_id: str | None = None
    ttl_s: float | None = None


class SettleStandalone(Operation[SettleTask, SettledPromise]):
    """As by the attempt's token: the first settlement wins, a later one is a stale attempt."""

    __slots__ = ("_execution_id",)
    ANSWER = SettledPromise

    def __init__(self, request: SettleTask, execution_id: str) -> None:
        super().__init__(request)
        self._execution_id = execution_id

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self._execution_id)
        plan.tasks.add(task_key(self._execution_id))

    def decide(self, ws: Workspace) -> SettledPromise:
        request = self.request
        execution = ws.loaded.executions.get(self._execution_id)
        if execution is None or not is_task(execution, request.org):
            raise no_task(request.task_id, request.org)
        task = self._deferred(execution, ws.loaded.tasks.get(task_key(execution.id)))
        if request.failure is None:
            tasks.complete(ws, execution, task, request.value)
        else:
            tasks.reject_attempt(ws, execution, task, request.failure)
        return SettledPromise(
            promise_id=f"{execution.id}:task:{TASK_NO}",
            state=PromiseState.RESOLVED if request.failure is None else PromiseState.REJECTED,
            already_resolved=False,
            value=request.value,
            failure=request.failure,
        )

    def _deferred(self, execution: Execution, task: TaskRow | None) -> TaskRow:
        details = {"execution_id": execution.id, "task_no": TASK_NO}
        if not execution.is_open or (task is None and execution.seen_seq):
            raise StaleAttempt(
                f"task {self.request.task_id!r} is over ({execution.status}); this completion was not recorded",
                **details,
            )
        if task is None or not task.deferred:
            attempt = 0 if task is None else task.attempt
            raise TaskNotDeferred(
                f"task {self.request.task_id!r} can't be completed from outside: its attempt {attempt} has not called "
                "complete_later(); its body must do so first",
                attempt=attempt,
                **details,
            )
        return task

    def subject(self, answer: SettledPromise) -> tuple[str | None, str | None]:
        return None, answer.promise_id
