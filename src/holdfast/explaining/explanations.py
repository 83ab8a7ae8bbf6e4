"""`contract.explanations.Explanations`, made from the other nouns of the contract, in process."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.contract.execution_reads import GetWorkflow
from holdfast.contract.explanations import EventExplained, ExecutionExplained
from holdfast.contract.messages import Messages
from holdfast.contract.operation import Api
from holdfast.explaining import words
from holdfast.explaining.events import explain_event
from holdfast.explaining.executions import Sources, examine, findings


class LocalExplanations:
    """`now`: the clock by which leases and timers are judged, where it is another one than this machine's."""

    def __init__(
        self,
        messages: Messages,
        api: Api,
        now: Callable[[], int] = words.now,
    ) -> None:
        self._messages = messages
        self._api = api
        self._now = now

    async def execution(self, org: str, execution_id: str) -> ExecutionExplained:
        execution = await self._api.call(GetWorkflow(org=org, workflow_execution_id=execution_id))
        sources = Sources(self._messages, self._api, org)
        seen = await examine(sources, execution, now=self._now())
        return ExecutionExplained(execution=execution, findings=tuple(findings(seen)))

    async def event(self, org: str, event_id: int) -> EventExplained:
        return await explain_event(self._messages, org, event_id)
