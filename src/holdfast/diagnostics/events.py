"""Events held against waits: which part of which filter refuses which, with the values it saw.

Only what is still there can be explained: waits that are open, events that are kept or dead.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.contract.explanations import ConsideredWait, EventExplained
from holdfast.contract.messages import Messages
from holdfast.errors import InvalidRequest
from holdfast.expressions import Finding, compile_filter
from holdfast.model.messages import DeadEvent, PublishedRow, SubscriptionKind, SubscriptionRow
from holdfast.model.payloads import decode
from holdfast.model.shapes import misfit
from holdfast.model.values import NULL, Payload

LOOKED_AT: Final = 1_000
AnyEvent = PublishedRow | DeadEvent


class Miss(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a wait has not got. `met` of the filter's `parts` were satisfied."""

    event: AnyEvent
    satisfied: bool
    reason: str
    met: int
    parts: int
    findings: tuple[Finding, ...] = ()


async def explain_event(messages: Messages, org: str, event_id: int) -> EventExplained:
    event = await messages.event(org, event_id)
    kind = SubscriptionKind.EVENT if event.correlation is None else SubscriptionKind.MESSAGE
    waits = await messages.waits_of_key(org, event.key, LOOKED_AT, kind)
    payload = decode(event.data, field="data")
    shapes = await _shapes(messages, org, waits)
    considered = []
    for wait in waits:
        satisfied, reason, parts = verdict(wait, event, payload, shapes.get(wait.id, NULL))
        considered.append(ConsideredWait(wait=wait, satisfied=satisfied, reason=reason, parts=parts))
    return EventExplained(event=event, waits=tuple(considered), more=len(waits) >= LOOKED_AT)


async def open_wait(messages: Messages, org: str, execution_id: str, wait_no: int | None) -> SubscriptionRow:
    """The open wait of this number, or the only one there is."""
    waits = await messages.waits(org, execution_id)
    found = [wait for wait in waits if wait_no is None or wait.wait_no == wait_no]
    if len(found) == 1:
        return found[0]
    known = ", ".join(str(wait.wait_no) for wait in waits) or "none"
    problem = f"has no open wait {wait_no}" if wait_no is not None else "has no open wait, or several: say which"
    raise InvalidRequest(f"execution {execution_id} {problem}; open waits: {known}", field="wait_no")


async def misses(messages: Messages, org: str, wait: SubscriptionRow) -> list[Miss]:
    """The kept and dead events of its key, those that came nearest first."""
    rows: list[AnyEvent] = []
    if wait.kind is not SubscriptionKind.BROADCAST:
        rows += await messages.events(org, wait.key, None, LOOKED_AT)
        rows += await messages.dead_events(org, wait.key, None, LOOKED_AT)
    rows = [row for row in rows if (row.correlation is None) == (wait.kind is SubscriptionKind.EVENT)]
    shape = (await _shapes(messages, org, [wait])).get(wait.id, NULL)
    found = [_miss(wait, row, shape) for row in rows]
    return sorted(found, key=lambda miss: (-miss.met / max(miss.parts, 1), -miss.event.id))


async def _shapes(messages: Messages, org: str, waits: list[SubscriptionRow]) -> dict[int, Payload]:
    """What those of the waits that stand for a promise must be given."""
    shapes: dict[tuple[str, str | None], Payload] = {}
    for execution_id in {wait.execution_id for wait in waits if wait.promise is not None}:
        rows = await messages.promises(org, execution_id)
        shapes |= {(execution_id, row.name): row.shape for row in rows}
    return {wait.id: shapes.get((wait.execution_id, wait.promise), NULL) for wait in waits}


def _miss(wait: SubscriptionRow, event: AnyEvent, shape: Payload) -> Miss:
    satisfied, reason, findings = verdict(wait, event, decode(event.data, field="data"), shape)
    parts = max(len(findings), 1)
    met = parts if satisfied else sum(part.outcome == "true" for part in findings)
    return Miss(event=event, satisfied=satisfied, reason=reason, met=met, parts=parts, findings=findings)


def verdict(
    wait: SubscriptionRow, event: AnyEvent, payload: Any, shape: Payload
) -> tuple[bool, str, tuple[Finding, ...]]:
    """Whether the wait would take the event, in words, and the parts of its filter."""
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
