"""Explanations as JSON, and back."""

from __future__ import annotations

from holdfast.contract.execution_reads import ExecutionInfo
from holdfast.contract.explanations import ConsideredWait, EventExplained, ExecutionExplained, Finding, Level
from holdfast.expressions import Finding as FilterPart
from holdfast.wire.rest.message_views import (
    KeptEventView,
    SubscriptionView,
    kept_event_view,
    read_kept_event,
    read_subscription,
    subscription_view,
)
from holdfast.wire.rest.views import View


class FindingView(View, frozen=True, kw_only=True):
    """One thing that was found, and what to do next. `code` is stable; the texts are for people."""

    level: Level
    code: str
    text: str
    next: str = ""


class ExplanationView(View, frozen=True, kw_only=True):
    """Where an execution stands; the most important finding first."""

    execution: ExecutionInfo
    findings: tuple[FindingView, ...]


class FactView(View, frozen=True, kw_only=True):
    """What a part of a filter looked at."""

    name: str
    value: str


class FilterPartView(View, frozen=True, kw_only=True):
    """One part of a filter: its text, and whether it was `true`, `false` or an `error`."""

    source: str
    outcome: str
    error: str = ""
    facts: tuple[FactView, ...] = ()


class ConsideredWaitView(View, frozen=True, kw_only=True):
    """A wait that the event was held against; `reason` says what refused it, or why it has not got it all the same."""

    wait: SubscriptionView
    satisfied: bool
    reason: str
    parts: tuple[FilterPartView, ...] = ()


class EventExplanationView(View, frozen=True, kw_only=True):
    """An event, and the open waits of its key. `more`: there are more than are shown."""

    event: KeptEventView
    waits: tuple[ConsideredWaitView, ...]
    more: bool = False


def explanation_view(explained: ExecutionExplained) -> ExplanationView:
    return ExplanationView(
        execution=explained.execution,
        findings=tuple(
            FindingView(level=found.level, code=found.code, text=found.text, next=found.next)
            for found in explained.findings
        ),
    )


def read_explanation(view: ExplanationView) -> ExecutionExplained:
    return ExecutionExplained(
        execution=view.execution,
        findings=tuple(Finding(found.level, found.text, found.next, found.code) for found in view.findings),
    )


def event_explanation_view(explained: EventExplained) -> EventExplanationView:
    return EventExplanationView(
        event=kept_event_view(explained.event),
        waits=tuple(
            ConsideredWaitView(
                wait=subscription_view(each.wait),
                satisfied=each.satisfied,
                reason=each.reason,
                parts=tuple(_part_view(part) for part in each.parts),
            )
            for each in explained.waits
        ),
        more=explained.more,
    )


def read_event_explanation(view: EventExplanationView, org: str) -> EventExplained:
    return EventExplained(
        event=read_kept_event(view.event, org),
        waits=tuple(
            ConsideredWait(
                wait=read_subscription(each.wait, org),
                satisfied=each.satisfied,
                reason=each.reason,
                parts=tuple(_read_part(part) for part in each.parts),
            )
            for each in view.waits
        ),
        more=view.more,
    )


def _part_view(part: FilterPart) -> FilterPartView:
    facts = tuple(FactView(name=name, value=value) for name, value in part.facts)
    return FilterPartView(source=part.source, outcome=part.outcome, error=part.error, facts=facts)


def _read_part(view: FilterPartView) -> FilterPart:
    return FilterPart(view.source, view.outcome, view.error, tuple((fact.name, fact.value) for fact in view.facts))
