"""Why something does not happen: an execution that does not move, an event that nobody has got."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from holdfast.contract.execution_reads import ExecutionInfo
from holdfast.contract.fields import Name, Number
from holdfast.contract.history import EXECUTIONS_TAG
from holdfast.contract.messages import EVENT, EVENTS_TAG, EventInfo, WaitInfo
from holdfast.contract.operation import EXECUTION, GET, Record, Request, operation, public_names
from holdfast.model.keys import Role


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    BAD = "bad"


class Finding(Record, frozen=True, kw_only=True):
    """One thing that was found, and what to do next. `code` is stable: for programs; the texts are for people."""

    level: Level
    code: str
    text: str
    next: str = ""

    @classmethod
    def of(cls, level: Level, text: str, next: str = "", code: str = "") -> Self:
        return cls(level=level, code=code, text=text, next=next)


class WorkflowExplanation(Record, frozen=True, kw_only=True, rename=public_names(workflow="execution")):
    """Why an execution does not move, or how it ended: findings, the most important first, each with a next step."""

    workflow: ExecutionInfo
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        told = [f"{self.workflow.workflow_id} ({self.workflow.workflow_execution_id}) is {self.workflow.status}"]
        for finding in self.findings:
            told.append(f"  {finding.level}: {finding.text}")
            if finding.next:
                told.append(f"    next: {finding.next}")
        return "\n".join(told)


class Fact(Record, frozen=True, kw_only=True):
    """What a part of a filter looked at."""

    name: str
    value: str


class FilterPart(Record, frozen=True, kw_only=True):
    """One part of a filter: its text, and whether it was `true`, `false` or an `error`."""

    source: str
    outcome: str
    error: str = ""
    facts: tuple[Fact, ...] = ()


class ConsideredWait(Record, frozen=True, kw_only=True):
    """A wait that an event was held against. `reason` says what refused it, or why it has not got it all the same;
    `parts` are those of its filter with what they saw."""

    wait: WaitInfo
    satisfied: bool
    reason: str
    parts: tuple[FilterPart, ...] = ()


class EventExplanation(Record, frozen=True, kw_only=True):
    """An event, and every open wait of its key with the reason why it has not got it. `more`: there are more waits than
    are shown."""

    event: EventInfo
    waits: tuple[ConsideredWait, ...]
    more: bool = False

    def __str__(self) -> str:
        told = [f"event {self.event.id} of key {self.event.key!r}: {_state(self.event)}"]
        told += [
            f"  wait {each.wait.wait_no} of {each.wait.workflow_execution_id}: {each.reason}" for each in self.waits
        ]
        if not self.waits:
            told.append("  nobody waits for this key")
        return "\n".join(told)


def _state(event: EventInfo) -> str:
    if event.dead:
        return f"dead ({event.reason}), nobody got it"
    kept = "" if event.expires_at is None else f" until {event.expires_at.isoformat()}"
    return f"kept{kept}, {event.delivered} got it"


@operation("explain_event", GET, f"{EVENT}/explanation", Role.READER, tag=EVENTS_TAG)
class ExplainEvent(Request[EventExplanation], frozen=True, kw_only=True):
    """Why an event went to whom it went: every open wait of its key, and what refused it."""

    event_id: Number


@operation("explain_workflow", GET, f"{EXECUTION}/explanation", Role.READER, tag=EXECUTIONS_TAG)
class ExplainWorkflow(Request[WorkflowExplanation], frozen=True, kw_only=True):
    """Why an execution does not move, or how it ended, and what to do next."""

    workflow_execution_id: Name
