"""Events held against waits: which part of which filter refuses which, with the values it saw.

Only what is still there can be explained: waits that are open, events that are kept or dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from holdfast.contract.explanations import ConsideredWait, EventExplanation, Fact, FilterPart
from holdfast.contract.messages import (
    EventInfo,
    GetEvent,
    ListDeadEvents,
    ListEvents,
    ListPromises,
    ListWaits,
    ListWaitsOfKey,
    WaitInfo,
)
from holdfast.contract.operation import Api, Record
from holdfast.contract.records import plain, raw
from holdfast.errors import ExecutionNotFound, InvalidRequest
from holdfast.expressions import Finding, compile_filter
from holdfast.model.messages import SubscriptionKind
from holdfast.model.shapes import misfit
from holdfast.model.values import NULL, Payload

LOOKED_AT: Final = 1_000
MOST_MISSES: Final = 10


class NearMiss(Record, frozen=True, kw_only=True):
    """An event that a wait has not got, and what refused it. `met` of the filter's `parts` were satisfied; `findings`
    are all parts with what they saw."""

    event: EventInfo
    satisfied: bool
    reason: str
    met: int
    parts: int
    findings: tuple[FilterPart, ...] = ()


class WaitExplanation(Record, frozen=True, kw_only=True):
    """A wait, how many kept and dead events of its key there are to be held against it, and those that came nearest."""

    wait: WaitInfo
    events: int
    nearest: tuple[NearMiss, ...]

    def __str__(self) -> str:
        wanted = f" where {self.wait.where}" if self.wait.where is not None else ""
        told = [f"wait {self.wait.wait_no} for {self.wait.kind} {self.wait.key!r}{wanted}: {self.events} seen"]
        told += [f"  event {miss.event.id}: {miss.reason}" for miss in self.nearest]
        return "\n".join(told)


async def explain_event(api: Api, org: str, event_id: int) -> EventExplanation:
    event = await api.call(GetEvent(org=org, event_id=event_id))
    kind = SubscriptionKind.EVENT if event.correlation_key is None else SubscriptionKind.MESSAGE
    waits = (await api.call(ListWaitsOfKey(org=org, key=event.key, kind=kind, limit=LOOKED_AT))).waits
    payload = plain(event).data
    shapes = await _shapes(api, org, waits)
    considered = []
    for wait in waits:
        satisfied, reason, parts = verdict(wait, event, payload, shapes.get(wait.id, NULL))
        considered.append(ConsideredWait(wait=wait, satisfied=satisfied, reason=reason, parts=parts))
    return EventExplanation(event=event, waits=tuple(considered), more=len(waits) >= LOOKED_AT)


async def explain_wait(api: Api, org: str, execution_id: str, wait_no: int | None) -> WaitExplanation:
    wait = await _open_wait(api, org, execution_id, wait_no)
    found = await misses(api, org, wait)
    return WaitExplanation(wait=wait, events=len(found), nearest=tuple(found[:MOST_MISSES]))


async def _open_wait(api: Api, org: str, execution_id: str, wait_no: int | None) -> WaitInfo:
    """The open wait of this number, or the only one there is."""
    waits = (await api.call(ListWaits(org=org, workflow_execution_id=execution_id))).waits
    found = [wait for wait in waits if wait_no is None or wait.wait_no == wait_no]
    if len(found) == 1:
        return found[0]
    known = ", ".join(str(wait.wait_no) for wait in waits) or "none"
    problem = f"has no open wait {wait_no}" if wait_no is not None else "has no open wait, or several: say which"
    raise InvalidRequest(f"execution {execution_id} {problem}; open waits: {known}", field="wait_no")


async def misses(api: Api, org: str, wait: WaitInfo) -> list[NearMiss]:
    """The kept and dead events of its key, those that came nearest first."""
    events: list[EventInfo] = []
    if wait.kind is not SubscriptionKind.BROADCAST:
        events += (await api.call(ListEvents(org=org, key=wait.key, limit=LOOKED_AT))).events
        events += (await api.call(ListDeadEvents(org=org, key=wait.key, limit=LOOKED_AT))).events
    events = [event for event in events if (event.correlation_key is None) == (wait.kind is SubscriptionKind.EVENT)]
    shape = (await _shapes(api, org, [wait])).get(wait.id, NULL)
    found = [_miss(wait, event, shape) for event in events]
    return sorted(found, key=lambda miss: (-miss.met / max(miss.parts, 1), -miss.event.id))


async def _shapes(api: Api, org: str, waits: Sequence[WaitInfo]) -> dict[int, Payload]:
    """What those of the waits that stand for a promise must be given."""
    shapes: dict[tuple[str, str | None], Payload] = {}
    for execution_id in {wait.workflow_execution_id for wait in waits if wait.promise is not None}:
        with suppress(ExecutionNotFound):  # removed since
            listed = await api.call(ListPromises(org=org, workflow_execution_id=execution_id))
            shapes |= {(execution_id, promise.name): raw(promise.shape) for promise in listed.promises}
    return {wait.id: shapes.get((wait.workflow_execution_id, wait.promise), NULL) for wait in waits}


def _miss(wait: WaitInfo, event: EventInfo, shape: Payload) -> NearMiss:
    satisfied, reason, findings = verdict(wait, event, plain(event).data, shape)
    parts = max(len(findings), 1)
    met = parts if satisfied else sum(part.outcome == "true" for part in findings)
    return NearMiss(event=event, satisfied=satisfied, reason=reason, met=met, parts=parts, findings=findings)


def verdict(wait: WaitInfo, event: EventInfo, payload: Any, shape: Payload) -> tuple[bool, str, tuple[FilterPart, ...]]:
    """Whether the wait would take the event, in words, and the parts of its filter."""
    if wait.kind is SubscriptionKind.MESSAGE and wait.correlation_key != event.correlation_key:
        wanted, given = wait.correlation_key, event.correlation_key
        return False, f"correlation key {wanted!r} is waited for, this one has {given!r}", ()
    findings: tuple[FilterPart, ...] = ()
    if wait.where is not None:
        found = compile_filter(wait.where).explain(payload)
        findings = tuple(map(_part, found.findings))
        if not found.matched:
            return False, found.text, findings
    wrong = misfit(shape, raw(event.data))
    if wrong is not None:
        return False, f"promise {wait.promise!r} can't be settled with it: data{wrong.path}: {wrong.reason}", findings
    if event.dead:
        return True, f"the filter is satisfied, but the event is dead: it was {event.reason}; replay it", findings
    if wait.id > event.id:
        return True, "the filter is satisfied, but the wait began after the event and did not look back to it", findings
    return True, "the filter is satisfied: it is on its way, or only one may have it and another was first", findings


def _part(found: Finding) -> FilterPart:
    facts = tuple(Fact(name=name, value=value) for name, value in found.facts)
    return FilterPart(source=found.source, outcome=found.outcome, error=found.error, facts=facts)
