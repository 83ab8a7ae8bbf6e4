"""Begin a standalone task: an execution of the built-in workflow that runs it, or the open one with the same id."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from holdfast.contract.executions import StartAnswer, StartWorkflow
from holdfast.contract.tasks import StartTask
from holdfast.engine.executions.start import Start
from holdfast.engine.operation import Operation
from holdfast.engine.rules.standalone import is_task
from holdfast.engine.rules.starts import already_running, open_execution
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import UnknownTaskKind
from holdfast.model.standalone import KIND_TAG, TASK_WORKFLOW, TaskOrder, known_as
from holdfast.store.protocol import LoadPlan


def as_workflow(request: StartTask) -> StartWorkflow:
    """What the engine is asked for instead. The limit of all attempts is also that of the execution: it holds while
    there is no worker that could ask for the task."""
    order = TaskOrder(
        kind=request.kind,
        args=request.args,
        priority=request.priority,
        retry=request.retry,
        timeouts=request.timeouts,
    )
    return StartWorkflow(
        org=request.org,
        kind=TASK_WORKFLOW,
        workflow_id=request.task_id,
        input=Raw(msgspec.json.encode(order)),
        queue=request.queue,
        priority=request.priority,
        metadata={**(request.metadata or {}), KIND_TAG: request.kind},
        execution_timeout_s=request.timeouts.schedule_to_close_s,
        start_at=request.start_at,
        if_running=request.if_running,
        if_closed=request.if_closed,
        request_id=request.request_id,
    )


class StartStandalone(Operation[StartTask, StartAnswer]):
    __slots__ = ("_start",)
    ANSWER = StartAnswer

    def __init__(self, request: StartTask) -> None:
        super().__init__(request)
        self._start = Start(as_workflow(request))

    def plan(self, plan: LoadPlan) -> None:
        self._start.plan(plan)
        plan.definitions.add((self.request.org, known_as(self.request.kind)))

    def decide(self, uow: UnitOfWork) -> StartAnswer:
        request = self.request
        if not uow.loaded.definitions.get((request.org, known_as(request.kind))):
            raise UnknownTaskKind(
                f"no worker has ever registered task kind {request.kind!r} on this database: pass it in tasks=[...] of "
                "an Engine",
                kind=request.kind,
            )
        running = None if request.task_id is None else open_execution(uow, request.org, request.task_id)
        if running is not None and not is_task(running, request.org):
            raise already_running(running)  # a workflow is no answer to this, nor is it ended for it
        return self._start.decide(uow)

    def subject(self, answer: StartAnswer) -> tuple[str | None, str | None]:
        return self._start.subject(answer)
