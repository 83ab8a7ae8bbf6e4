"""Publish a dead event again, or remove it."""

from __future__ import annotations

from holdfast.contract.messages import PublishAnswer, ReplayDeadEvent
from holdfast.engine.operation import Operation
from holdfast.engine.rules.messages import Sending, send
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import EventNotFound
from holdfast.model.messages import SubscriptionKind
from holdfast.model.values import Delivery
from holdfast.store.protocol import LoadPlan


class Exhume(Operation[ReplayDeadEvent, PublishAnswer | None]):
    """Published again it is kept again, and reaches those who wait for it when they look back: who waits now is found
    by the pages of a delivery, since its key was not known when this transaction was planned."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.dead_events.add(self.request.event_id)
        plan.numbering = True

    def decide(self, ws: Workspace) -> PublishAnswer | None:
        event = ws.loaded.dead_events.pop(self.request.event_id, None)
        if event is None or event.org != self.request.org:
            raise EventNotFound(f"no dead event {self.request.event_id}", event_id=self.request.event_id)
        ws.changes.exhumed_events.append(event.id)
        if self.request.remove:
            return None
        sending = Sending(
            org=event.org,
            kind=SubscriptionKind.EVENT if event.correlation is None else SubscriptionKind.MESSAGE,
            key=event.key,
            data=event.data,
            correlation=event.correlation,
            delivery=Delivery.WAITERS_AND_FUTURE,
        )
        sent = send(ws, sending, None)
        return PublishAnswer(event_id=sent.id, delivered=sent.delivered, retained=sent.retained, done=sent.done)
