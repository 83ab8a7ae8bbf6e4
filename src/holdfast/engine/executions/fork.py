"""Begin a second execution with the past of another one, which is left alone."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.executions import ForkExecution, StartAnswer
from holdfast.engine.executions.rebuild import Rebuild
from holdfast.engine.rules import resets
from holdfast.engine.rules.starts import insert_execution, new_execution_id
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import InvalidResetPoint
from holdfast.model.events import WorkflowReset
from holdfast.model.executions import Execution
from holdfast.store.protocol import LoadPlan


class Fork(Rebuild[ForkExecution]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        super().plan(plan)
        if self.request.workflow_id is not None:
            plan.workflow_keys.add((self.request.org, self.request.workflow_id))

    def decide(self, uow: UnitOfWork) -> StartAnswer:
        request, source = self.request, self.source
        old = uow.execution(request.org, source.execution_id)
        if request.workflow_id is not None:
            self.check_free(uow, request.workflow_id)
        for number, child in self.open_children(uow).items():
            raise _shared_child(source.execution_id, len(source.prefix.events), number, child)
        carried = self.carried(uow, {}, calls=request.reapply_signals)
        new_id = new_execution_id(uow)
        new_execution = structs.replace(
            self.new_execution(old, new_id, self.deadline(uow, anew=True)),
            workflow_id=request.workflow_id if request.workflow_id is not None else new_id,
            key=request.workflow_id is not None,
        )
        new = insert_execution(uow, new_execution)
        prefix = self.prefix_for(new_id)
        resets.take_over(uow, new, prefix, seed=old.id)
        reset = WorkflowReset(from_execution_id=old.id, event_seq=new.last_seq, workflow_id=new.workflow_id, fork=True)
        resets.continue_from(uow, new, prefix, reset, carried)
        return StartAnswer(new_id, new.workflow_id, True)


def _shared_child(execution_id: str, seq: int, child_no: int, child: Execution) -> InvalidResetPoint:
    return InvalidResetPoint(
        f"at event {seq} execution {execution_id} has child {child_no} ({child.workflow_id}), which is still open "
        f"({child.status}): two parents can't share a child; wait for its end, or fork from before its start",
        field="at_event",
        child_no=child_no,
        child_execution_id=child.id,
    )
