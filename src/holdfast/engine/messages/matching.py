"""What a transaction has to load for something that is sent."""

from __future__ import annotations

from holdfast.contract.messages import PublishEvent, ThrowBroadcast
from holdfast.engine.rules.messages import PAGE
from holdfast.expressions.lookups import reader
from holdfast.model import commands as c
from holdfast.model.messages import SubscriptionKind
from holdfast.store.protocol import EventMatch, LoadPlan


def plan_publication(
    plan: LoadPlan, org: str, sent: PublishEvent | ThrowBroadcast | c.Publish | c.ThrowBroadcast
) -> None:
    plan.numbering = True
    if isinstance(sent, ThrowBroadcast | c.ThrowBroadcast):
        match = EventMatch(org=org, kind=SubscriptionKind.BROADCAST, key=sent.name, value_at=_nothing, limit=PAGE)
    elif sent.correlation is not None:
        correlation = sent.correlation
        match = EventMatch(
            org=org, kind=SubscriptionKind.MESSAGE, key=sent.key, value_at=lambda _: correlation, limit=PAGE
        )
        plan.event_keys.add((org, sent.key))
    else:
        match = EventMatch(org=org, kind=SubscriptionKind.EVENT, key=sent.key, value_at=reader(sent.data), limit=PAGE)
        plan.event_keys.add((org, sent.key))
    plan.matches.append(match)


def _nothing(_: str) -> str | None:
    return None
