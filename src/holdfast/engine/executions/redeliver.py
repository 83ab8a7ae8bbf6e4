"""Redeliver a dead letter: one atomic step from there into the history of an open execution."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.executions import RedeliverResult, RedeliverSignal
from holdfast.engine.operation import Operation
from holdfast.engine.rules.dead_letters import find, settle
from holdfast.engine.rules.signals import check_signal, receive_signal
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import DeadLetterNotFound, ExecutionNotFound
from holdfast.model.executions import Execution
from holdfast.store.protocol import LoadPlan


class Redeliver(Operation[RedeliverSignal, RedeliverResult]):
    """`to` is a workflow id or an execution id by now: the facade has asked whose letter it is."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        plan.dead_letters.add((request.workflow_execution_id, request.seq))
        assert request.to is not None, "the facade has filled it in"
        plan.executions.add(request.to)
        plan.workflow_keys.add((request.org, request.to))

    def decide(self, uow: UnitOfWork) -> RedeliverResult:
        request = self.request
        target = self._target(uow)
        check_signal(uow, target)
        letter, signal = find(uow, request.org, (request.workflow_execution_id, request.seq))
        if signal is None:
            raise DeadLetterNotFound(
                f"signal {letter.seq} of execution {letter.execution_id} is not in its history any more",
                execution_id=letter.execution_id,
                seq=letter.seq,
            )
        settle(uow, letter, signal)
        again = structs.replace(signal, carried_from=letter.seq, redelivered_from=letter.execution_id)
        return RedeliverResult(target.id, receive_signal(uow, target, again))

    def _target(self, uow: UnitOfWork) -> Execution:
        request = self.request
        to = request.to or ""
        found = uow.loaded.executions.get(to)
        if found is None:
            found = uow.loaded.executions.get(uow.loaded.workflow_keys.get((request.org, to), ""))
        if found is None or found.org != request.org:
            raise ExecutionNotFound(
                f"no execution has the id or workflow id {to!r} in org {request.org!r}; the dead letter stays",
                workflow_id=to,
            )
        return found
