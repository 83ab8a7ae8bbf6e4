"""Why an event went to nobody, and why a wait got nothing: in the words of the filters, with the values they saw, or of
the type that a promise asks for.

Only what is still there can be explained: waits that are open, events that are kept or dead.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.client.events import DeadEventView, EventView, WaitView, dead_view, event_view, wait_view
from holdfast.client.views import instant
from holdfast.contract.messages import Messages
from holdfast.errors import InvalidRequest
from holdfast.expressions import Finding, compile_filter
from holdfast.model.messages import DeadEvent, PublishedRow, SubscriptionKind, SubscriptionRow
from holdfast.model.payloads import decode
from holdfast.model.shapes import misfit
from holdfast.model.values import NULL, Payload

MOST_MISSES = 10
LOOKED_AT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsideredWait:
    """A wait that an event was held against. `reason` names the part of the filter that refused it; `findings` are all
    parts with what they saw."""

    workflow_execution_id: str
    wait: WaitView
    satisfied: bool
    reason: str
    findings: tuple[Finding, ...] = ()


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
    findings: tuple[Finding, ...] = ()


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


class Explaining:
    """What a client can find out. See `Client`."""

    __slots__ = ("_messages", "_org")

    def __init__(self, messages: Messages, org: str) -> None:
        self._messages = messages
        self._org = org

    async def event(self, event_id: int) -> EventExplanation:
        row = await self._messages.event(self._org, event_id)
        kind = SubscriptionKind.EVENT if row.correlation is None else SubscriptionKind.MESSAGE
        waits = await self._messages.waits_of_key(self._org, row.key, LOOKED_AT, kind)
        payload = decode(row.data, field="data")
        shapes = await self._shapes(waits)
        return EventExplanation(
            event=event_view(row) if isinstance(row, PublishedRow) else dead_view(row),
            waits=tuple(_considered(wait, row, payload, shapes.get(wait.id, NULL)) for wait in waits),
            more=len(waits) >= LOOKED_AT,
        )

    async def wait(self, execution_id: str, wait_no: int | None) -> WaitExplanation:
        wait = _chosen(await self._messages.waits(self._org, execution_id), execution_id, wait_no)
        rows: list[PublishedRow | DeadEvent] = []
        if wait.kind is not SubscriptionKind.BROADCAST:
            rows += await self._messages.events(self._org, wait.key, None, LOOKED_AT)
            rows += await self._messages.dead_events(self._org, wait.key, None, LOOKED_AT)
        rows = [row for row in rows if (row.correlation is None) == (wait.kind is SubscriptionKind.EVENT)]
        shape = (await self._shapes([wait])).get(wait.id, NULL)
        misses = [_miss(wait, row, shape) for row in rows]
        misses.sort(key=lambda miss: (-miss.met / max(miss.parts, 1), -miss.event_id))
        return WaitExplanation(
            workflow_execution_id=execution_id,
            wait=wait_view(wait),
            events=len(misses),
            nearest=tuple(misses[:MOST_MISSES]),
        )

    async def _shapes(self, waits: list[SubscriptionRow]) -> dict[int, Payload]:
        """What those of the waits that stand for a promise must be given."""
        shapes: dict[tuple[str, str | None], Payload] = {}
        for execution_id in {wait.execution_id for wait in waits if wait.promise is not None}:
            rows = await self._messages.promises(self._org, execution_id)
            shapes |= {(execution_id, row.name): row.shape for row in rows}
        return {wait.id: shapes.get((wait.execution_id, wait.promise), NULL) for wait in waits}


def _chosen(waits: list[SubscriptionRow], execution_id: str, wait_no: int | None) -> SubscriptionRow:
    found = [wait for wait in waits if wait_no is None or wait.wait_no == wait_no]
    if len(found) == 1:
        return found[0]
    known = ", ".join(str(wait.wait_no) for wait in waits) or "none"
    problem = f"has no open wait {wait_no}" if wait_no is not None else "has no open wait, or several: say which"
    raise InvalidRequest(f"execution {execution_id} {problem}; open waits: {known}", field="wait_no")


def _considered(wait: SubscriptionRow, event: PublishedRow | DeadEvent, payload: Any, shape: Payload) -> ConsideredWait:
    satisfied, reason, findings = _verdict(wait, event, payload, shape)
    return ConsideredWait(
        workflow_execution_id=wait.execution_id,
        wait=wait_view(wait),
        satisfied=satisfied,
        reason=reason,
        findings=findings,
    )


def _miss(wait: SubscriptionRow, event: PublishedRow | DeadEvent, shape: Payload) -> NearMiss:
    satisfied, reason, findings = _verdict(wait, event, decode(event.data, field="data"), shape)
    parts = max(len(findings), 1)
    return NearMiss(
        event_id=event.id,
        published_at=instant(event.published_at),
        dead=isinstance(event, DeadEvent),
        satisfied=satisfied,
        reason=reason,
        met=parts if satisfied else sum(part.outcome == "true" for part in findings),
        parts=parts,
        findings=findings,
    )


def _verdict(
    wait: SubscriptionRow, event: PublishedRow | DeadEvent, payload: Any, shape: Payload
) -> tuple[bool, str, tuple[Finding, ...]]:
    if wait.kind is SubscriptionKind.MESSAGE and wait.eq_value != event.correlation:
        return False, f"correlation key {wait.eq_value!r} is waited for, this one has {event.correlation!r}", ()
    findings: tuple[Finding, ...] = ()
    if wait.where is not None:
        found = compile_filter(wait.where).explain(payload)
        findings = found.findings
        if not found.matched:
            return False, found.text, findings
    wrong = misfit(shape, event.data)
    if wrong is not None:
        return False, f"promise {wait.promise!r} can't be settled with it: data{wrong.path}: {wrong.reason}", findings
    if isinstance(event, DeadEvent):
        return True, f"the filter is satisfied, but the event is dead: it was {event.reason}; replay it", findings
    if wait.id > event.id:
        return True, "the filter is satisfied, but the wait began after the event and did not look back to it", findings
    return True, "the filter is satisfied: it is on its way, or only one may have it and another was first", findings


def _state(event: EventView | DeadEventView) -> str:
    if isinstance(event, DeadEventView):
        return f"dead ({event.reason}), nobody got it"
    return f"kept until {event.expires_at.isoformat()}, {event.delivered} got it"
