"""`contract.explanations.Explanations`, made from the other nouns of the contract, in process."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.contract.deployments import Deployments
from holdfast.contract.executions import Executions
from holdfast.contract.explanations import EventExplained, ExecutionExplained
from holdfast.contract.messages import Messages
from holdfast.diagnostics import formatting
from holdfast.diagnostics.events import explain_event
from holdfast.diagnostics.executions import Sources, examine, findings


class LocalExplanations:
    """`now`: the clock by which leases and timers are judged, where it is another one than this machine's."""

    def __init__(
        self,
        executions: Executions,
        messages: Messages,
        deployments: Deployments | None,
        now: Callable[[], int] = formatting.now,
    ) -> None:
        self._executions = executions
        self._messages = messages
        self._deployments = deployments
        self._now = now

    async def execution(self, org: str, execution_id: str) -> ExecutionExplained:
        execution = await self._executions.get(org, execution_id)
        sources = Sources(self._executions, self._messages, self._deployments, org)
        seen = await examine(sources, execution, now=self._now())
        return ExecutionExplained(execution=execution, findings=tuple(findings(seen)))

    async def event(self, org: str, event_id: int) -> EventExplained:
        return await explain_event(self._messages, org, event_id)
