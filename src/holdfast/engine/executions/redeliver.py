"""Redeliver a dead letter: one atomic step from there into the history of an open execution."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.mailboxes import Redelivered, RedeliverSignal
from holdfast.engine.operation import Operation
from holdfast.engine.rules.dead_letters import find, settle
from holdfast.engine.rules.signalling import check_signal, receive_signal
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import DeadLetterNotFound, ExecutionNotFound
from holdfast.model.executions import Execution
from holdfast.store.protocol import LoadPlan


class Redeliver(Operation[RedeliverSignal, Redelivered]):
    """`to` is a workflow id or an execution id by now: the facade has asked whose letter it is."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        plan.dead_letters.add((request.workflow_execution_id, request.seq))
        assert request.to is not None, "the facade has filled it in"
        plan.executions.add(request.to)
        plan.workflow_keys.add((request.org, request.to))

    def decide(self, ws: Workspace) -> Redelivered:
        request = self.request
        target = self._target(ws)
        check_signal(ws, target)
        letter, signal = find(ws, request.org, (request.workflow_execution_id, request.seq))
        if signal is None:
            raise DeadLetterNotFound(
                f"signal {letter.seq} of execution {letter.execution_id} is not in its history any more",
                execution_id=letter.execution_id,
                seq=letter.seq,
            )
        settle(ws, letter, signal)
        again = structs.replace(signal, carried_from=letter.seq, redelivered_from=letter.execution_id)
        return Redelivered(target.id, receive_signal(ws, target, again))

    def _target(self, ws: Workspace) -> Execution:
        request = self.request
        to = request.to or ""
        found = ws.loaded.executions.get(to)
        if found is None:
            found = ws.loaded.executions.get(ws.loaded.workflow_keys.get((request.org, to), ""))
        if found is None or found.org != request.org:
            raise ExecutionNotFound(
                f"no execution has the id or workflow id {to!r} in org {request.org!r}; the dead letter stays",
                workflow_id=to,
            )
        return found
