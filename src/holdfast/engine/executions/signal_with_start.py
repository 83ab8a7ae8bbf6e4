"""Signal the open execution of a workflow id, starting it first if there is none: one atomic step."""

from __future__ import annotations

from holdfast.contract.executions import SignalWithStart, SignalWithStartResponse
from holdfast.engine.operation import Operation
from holdfast.engine.rules.signals import append_signal, check_signal
from holdfast.engine.rules.starts import (
    check_reuse,
    choose_version,
    last_execution,
    new_execution_id,
    start_requested,
)
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.executions import OPEN_STATES
from holdfast.store.protocol import LoadPlan


class SignalWithStartWorkflow(Operation[SignalWithStart, SignalWithStartResponse]):
    __slots__ = ()
    ANSWER = SignalWithStartResponse

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        plan.definitions.add((request.org, request.kind))
        plan.numbering = True
        plan.workflow_keys.add((request.org, request.workflow_id))

    def decide(self, uow: UnitOfWork) -> SignalWithStartResponse:
        request = self.request
        execution = last_execution(uow, request.org, request.workflow_id)
        created = execution is None or execution.state not in OPEN_STATES
        if execution is None or created:
            version = choose_version(uow, request.org, request.kind, request.version)
            if execution is not None:
                check_reuse(execution, request.if_closed)
            execution = start_requested(uow, request, version, new_execution_id(uow))
        else:
            check_signal(uow, execution)
        sequence = append_signal(uow, execution, request)
        return SignalWithStartResponse(execution.id, created, sequence)

    def subject(self, answer: SignalWithStartResponse) -> tuple[str | None, str | None]:
        return answer.workflow_execution_id, answer.workflow_execution_id
