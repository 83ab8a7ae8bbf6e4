"""Finish a standalone task from outside, by its id: only an attempt that was left to somebody else."""

from __future__ import annotations

from holdfast.contract.messages import SettleAnswer
from holdfast.contract.tasks import SettleTask
from holdfast.engine.operation import Operation
from holdfast.engine.rules import tasks
from holdfast.engine.rules.standalone import is_task, no_task, task_key
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import StaleAttempt, TaskNotDeferred
from holdfast.model.executions import Execution, TaskRow
from holdfast.model.messages import PromiseState
from holdfast.model.standalone import TASK_NO
from holdfast.store.protocol import LoadPlan


class SettleStandalone(Operation[SettleTask, SettleAnswer]):
    """As by the attempt's token: the first settlement wins, a later one is a stale attempt."""

    __slots__ = ("_execution_id",)
    ANSWER = SettleAnswer

    def __init__(self, request: SettleTask, execution_id: str) -> None:
        super().__init__(request)
        self._execution_id = execution_id

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self._execution_id)
        plan.tasks.add(task_key(self._execution_id))

    def decide(self, uow: UnitOfWork) -> SettleAnswer:
        request = self.request
        execution = uow.loaded.executions.get(self._execution_id)
        if execution is None or not is_task(execution, request.org):
            raise no_task(request.task_id, request.org)
        task = self._deferred(execution, uow.loaded.tasks.get(task_key(execution.id)))
        if request.failure is None:
            tasks.complete(uow, execution, task, request.value)
        else:
            tasks.reject_attempt(uow, execution, task, request.failure)
        return SettleAnswer(
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

    def subject(self, answer: SettleAnswer) -> tuple[str | None, str | None]:
        return None, answer.promise_id
