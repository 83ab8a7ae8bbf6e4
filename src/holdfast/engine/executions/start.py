"""Start an execution, or find the open one with the same workflow id."""

from __future__ import annotations

from holdfast.contract.executions import StartAnswer, StartWorkflow
from holdfast.engine.operation import Operation
from holdfast.engine.rules.closing import close_externally
from holdfast.engine.rules.starts import (
    already_running,
    check_reuse,
    choose_version,
    last_execution,
    new_execution_id,
    start_requested,
)
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.events import WorkflowTerminated
from holdfast.model.executions import State
from holdfast.model.values import IfRunning
from holdfast.store.protocol import LoadPlan


class Start(Operation[StartWorkflow, StartAnswer]):
    __slots__ = ()
    ANSWER = StartAnswer

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        plan.definitions.add((request.org, request.kind))
        plan.numbering = True
        if request.workflow_id is not None:
            plan.workflow_keys.add((request.org, request.workflow_id))

    def decide(self, uow: UnitOfWork) -> StartAnswer:
        request = self.request
        version = choose_version(uow, request.org, request.kind, request.version)
        last = None if request.workflow_id is None else last_execution(uow, request.org, request.workflow_id)
        new_id = new_execution_id(uow)
        if last is not None and last.is_open:
            if request.if_running == IfRunning.USE_EXISTING:
                return StartAnswer(last.id, last.workflow_id, False)
            if request.if_running == IfRunning.FAIL:
                raise already_running(last)
            reason = f"replaced by execution {new_id}, which was started with the same workflow id"
            close_externally(uow, last, State.TERMINATED, WorkflowTerminated(reason=reason))
        elif last is not None:
            check_reuse(last, request.if_closed)
        execution = start_requested(uow, request, version, new_id)
        return StartAnswer(execution.id, execution.workflow_id, True)

    def subject(self, answer: StartAnswer) -> tuple[str | None, str | None]:
        return answer.workflow_execution_id, answer.workflow_execution_id
