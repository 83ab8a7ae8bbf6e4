"""Explanations, made from the other operations of the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.contract.execution_reads import GetWorkflow
from holdfast.contract.explanations import EventExplanation, ExplainEvent, ExplainWorkflow, WorkflowExplanation
from holdfast.contract.operation import Api
from holdfast.engine.api import answers
from holdfast.explaining.events import explain_event
from holdfast.explaining.executions import examine, findings


class Explanations:
    """`api` gives the engine's own: it is asked like by any caller. `now` is the engine's clock."""

    def __init__(self, api: Callable[[], Api], now: Callable[[], int]) -> None:
        self._api = api
        self._now = now

    @answers(ExplainWorkflow)
    async def workflow(self, request: ExplainWorkflow) -> WorkflowExplanation:
        api, org = self._api(), request.org
        found = await api.call(GetWorkflow(org=org, workflow_execution_id=request.workflow_execution_id))
        seen = await examine(api, found, org=org, now=self._now())
        return WorkflowExplanation(workflow=found, findings=tuple(findings(seen)))

    @answers(ExplainEvent)
    def event(self, request: ExplainEvent) -> Awaitable[EventExplanation]:
        return explain_event(self._api(), request.org, request.event_id)
