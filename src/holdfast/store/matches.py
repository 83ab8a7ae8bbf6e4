"""What all stores do alike when they look for waits: how a delivery under way looks for its next page."""

from __future__ import annotations

from typing import Final

from holdfast.expressions.lookups import reader
from holdfast.model.messages import DeliveryRow, SubscriptionKind
from holdfast.store.protocol import EventMatch

MOST_DELIVERIES: Final = 100
"""How many deliveries get a page in one transaction."""
KEPT_KINDS: Final = (SubscriptionKind.EVENT, SubscriptionKind.MESSAGE)
"""What may be kept for waits that look back."""


def match_of(delivery: DeliveryRow, limit: int) -> EventMatch:
    correlation = delivery.correlation
    return EventMatch(
        org=delivery.org,
        kind=delivery.kind,
        key=delivery.key,
        value_at=reader(delivery.data) if correlation is None else lambda _: correlation,
        after=delivery.cursor,
        # Younger ones may have joined; the rules know them.
        bound=delivery.bound if delivery.kind is SubscriptionKind.BROADCAST else None,
        limit=limit,
    )
