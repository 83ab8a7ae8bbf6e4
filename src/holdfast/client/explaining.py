"""Why a workflow does not move, why an event went to nobody, and why a wait got nothing: in the words of the filters,
with the values they saw, or of the type that a promise asks for.

Only what is still there can be explained: waits that are open, events that are kept or dead.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.client.events import DeadEventView, EventView, WaitView, dead_view, event_view, wait_view
from holdfast.client.views import instant
from holdfast.contract.execution_reads import ExecutionInfo
from holdfast.contract.explanations import Explanations, Finding
from holdfast.contract.messages import Messages
from holdfast.explaining.events import Miss, misses, open_wait
from holdfast.expressions import Finding as FilterPart
from holdfast.model.messages import DeadEvent, PublishedRow

MOST_MISSES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsideredWait:
    """A wait that an event was held against. `reason` names the part of the filter that refused it; `findings` are all
    parts with what they saw."""

    workflow_execution_id: str
    wait: WaitView
    satisfied: bool
    reason: str
    findings: tuple[FilterPart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventExplanation:
    """An event, and every open wait of its key with the reason why it has not got it. `more`: there are more waits than
    are shown."""

    event: EventView | DeadEventView
    waits: tuple[ConsideredWait, ...]
    more: bool = False

    def __str__(self) -> str:
        told = [f"event {self.event.id} of key {self.event.key!r}: {_state(self.event)}"]
        told += [f"  wait {c.wait.wait_no} of {c.workflow_execution_id}: {c.reason}" for c in self.waits]
        if not self.waits:
            told.append("  nobody waits for this key")
        return "\n".join(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """An event that a wait has not got, and the part of its filter that refused it. `met` of `parts` parts were
    satisfied."""

    event_id: int
    published_at: datetime
    dead: bool
    satisfied: bool
    reason: str
    met: int
    parts: int
    findings: tuple[FilterPart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitExplanation:
    """A wait, how many kept and dead events of its key there are to be held against it, and those that came nearest."""

    workflow_execution_id: str
    wait: WaitView
    events: int
    nearest: tuple[NearMiss, ...]

    def __str__(self) -> str:
        wanted = f" where {self.wait.where}" if self.wait.where is not None else ""
        told = [f"wait {self.wait.wait_no} for {self.wait.kind} {self.wait.key!r}{wanted}: {self.events} seen"]
        told += [f"  event {miss.event_id}: {miss.reason}" for miss in self.nearest]
        return "\n".join(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowExplanation:
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


class Explaining:
    """What a client can find out. See `Client`."""

    __slots__ = ("_explanations", "_messages", "_org")

    def __init__(self, explanations: Explanations, messages: Messages, org: str) -> None:
        self._explanations = explanations
        self._messages = messages
        self._org = org

    async def workflow(self, execution_id: str) -> WorkflowExplanation:
        explained = await self._explanations.execution(self._org, execution_id)
        return WorkflowExplanation(workflow=explained.execution, findings=explained.findings)

    async def event(self, event_id: int) -> EventExplanation:
        explained = await self._explanations.event(self._org, event_id)
        row = explained.event
        return EventExplanation(
            event=event_view(row) if isinstance(row, PublishedRow) else dead_view(row),
            waits=tuple(
                ConsideredWait(
                    workflow_execution_id=each.wait.execution_id,
                    wait=wait_view(each.wait),
                    satisfied=each.satisfied,
                    reason=each.reason,
                    findings=each.parts,
                )
                for each in explained.waits
            ),
            more=explained.more,
        )

    async def wait(self, execution_id: str, wait_no: int | None) -> WaitExplanation:
        wait = await open_wait(self._messages, self._org, execution_id, wait_no)
        found = await misses(self._messages, self._org, wait)
        return WaitExplanation(
            workflow_execution_id=execution_id,
            wait=wait_view(wait),
            events=len(found),
            nearest=tuple(_near(miss) for miss in found[:MOST_MISSES]),
        )


def _near(miss: Miss) -> NearMiss:
    return NearMiss(
        event_id=miss.event.id,
        published_at=instant(miss.event.published_at),
        dead=isinstance(miss.event, DeadEvent),
        satisfied=miss.satisfied,
        reason=miss.reason,
        met=miss.met,
        parts=miss.parts,
        findings=miss.findings,
    )


def _state(event: EventView | DeadEventView) -> str:
    if isinstance(event, DeadEventView):
        return f"dead ({event.reason}), nobody got it"
    return f"kept until {event.expires_at.isoformat()}, {event.delivered} got it"
