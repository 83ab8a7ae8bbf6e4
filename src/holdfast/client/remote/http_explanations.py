"""`contract.explanations.Explanations` over HTTP: the server has looked."""

from __future__ import annotations

from holdfast.client.remote.caller import Caller, escaped
from holdfast.contract.explanations import EventExplained, ExecutionExplained
from holdfast.model.names import check_name
from holdfast.wire.rest import explanation_views as xv


class HttpExplanations:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def execution(self, org: str, execution_id: str) -> ExecutionExplained:
        check_name(execution_id, "workflow_execution_id")
        path = f"/api/orgs/{escaped(org)}/workflow-executions/{escaped(execution_id)}/explanation"
        return xv.read_explanation(await self._caller.get(path, xv.ExplanationView))

    async def event(self, org: str, event_id: int) -> EventExplained:
        path = f"/api/orgs/{escaped(org)}/events/{escaped(str(event_id))}/explanation"
        return xv.read_event_explanation(await self._caller.get(path, xv.EventExplanationView), org)
