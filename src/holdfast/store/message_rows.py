"""Rows to records and back: promises, subscriptions, published events, deliveries."""

from __future__ import annotations

from typing import Final

from holdfast.model.messages import DeliveryRow, PromiseRow, PublishedRow, SubscriptionRow
from holdfast.store.codecs import Codec

PROMISES: Final = Codec(PromiseRow)
SUBSCRIPTIONS: Final = Codec(SubscriptionRow, whole=True)
PUBLISHED: Final = Codec(PublishedRow, whole=True)
DELIVERIES: Final = Codec(DeliveryRow, whole=True)
