"""`contract.explanations.Explanations`, made from the other nouns of the contract, in process."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.contract.executions import Executions
from holdfast.contract.explanations import ExecutionExplained
from holdfast.contract.operation import Api
from holdfast.explaining import words
from holdfast.explaining.executions import Sources, examine, findings


class LocalExplanations:
    """`now`: the clock by which leases and timers are judged, where it is another one than this machine's."""

    def __init__(
        self,
        executions: Executions,
        api: Api,
        now: Callable[[], int] = words.now,
    ) -> None:
        self._executions = executions
        self._api = api
        self._now = now

    async def execution(self, org: str, execution_id: str) -> ExecutionExplained:
        execution = await self._executions.get(org, execution_id)
        sources = Sources(self._executions, self._api, org)
        seen = await examine(sources, execution, now=self._now())
        return ExecutionExplained(execution=execution, findings=tuple(findings(seen)))
