"""Explanations of executions as JSON, and back."""

from __future__ import annotations

from holdfast.contract.explanations import ExecutionExplained, Finding
from holdfast.wire.rest.reading import read_execution
from holdfast.wire.rest.views import ExecutionView, View, execution_view


class ExplanationView(View, frozen=True, kw_only=True):
    """Where an execution stands; the most important finding first."""

    execution: ExecutionView
    findings: tuple[Finding, ...]


def explanation_view(explained: ExecutionExplained) -> ExplanationView:
    return ExplanationView(execution=execution_view(explained.execution), findings=explained.findings)


def read_explanation(view: ExplanationView, org: str) -> ExecutionExplained:
    return ExecutionExplained(execution=read_execution(view.execution, org), findings=view.findings)
