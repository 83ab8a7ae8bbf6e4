"""Leave a task's running attempt to somebody outside: its token completes it, see promises/settle.py.

The token is made known while the body runs, because the body hands it out; the slot is given back when it returns.
"""

from __future__ import annotations

from holdfast.contract.workers import DeferTask, IssueTaskToken
from holdfast.engine.operation import Operation
from holdfast.engine.rules import output, tasks
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan


class Issue(Operation[IssueTaskToken, None]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.tasks.add((self.request.execution_id, self.request.task_no))

    def decide(self, uow: UnitOfWork) -> None:
        request = self.request
        task = uow.task(request.org, (request.execution_id, request.task_no), request.token)
        tasks.issue_token(uow, task, request.token_hash)


class Defer(Operation[DeferTask, None]):
    __slots__ = ()
    RETRY_ON_OUTAGE = True
    RELEASES_SLOT = "task"

    def plan(self, plan: LoadPlan) -> None:
        plan.tasks.add((self.request.execution_id, self.request.task_no))

    def decide(self, uow: UnitOfWork) -> None:
        request = self.request
        task = uow.task(request.org, (request.execution_id, request.task_no), request.token)
        uow.place.task_done(request.session)
        output.record(uow, task, request.output)
        if request.details is not None:
            task.details = request.details
        tasks.issue_token(uow, task, request.token_hash)
        tasks.defer(uow, task)

    def on_refused(self, uow: UnitOfWork) -> None:
        uow.place.task_done(self.request.session)
