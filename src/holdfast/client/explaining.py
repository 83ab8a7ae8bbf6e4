"""Why a workflow does not move."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.client.views import WorkflowView, view_of
from holdfast.contract.explanations import Explanations, Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowExplanation:
    """Why an execution does not move, or how it ended: findings, the most important first, each with a next step."""

    workflow: WorkflowView
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        told = [f"{self.workflow.workflow_id} ({self.workflow.workflow_execution_id}) is {self.workflow.status}"]
        for finding in self.findings:
            told.append(f"  {finding.level}: {finding.text}")
            if finding.next:
                told.append(f"    next: {finding.next}")
        return "\n".join(told)


class Explaining:
    """What a client can find out. See `Client`."""

    __slots__ = ("_explanations", "_org")

    def __init__(self, explanations: Explanations, org: str) -> None:
        self._explanations = explanations
        self._org = org

    async def workflow(self, execution_id: str) -> WorkflowExplanation:
        explained = await self._explanations.execution(self._org, execution_id)
        return WorkflowExplanation(workflow=view_of(explained.execution), findings=explained.findings)
