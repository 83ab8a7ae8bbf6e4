"""Publish an event that nobody has got again, or remove one."""

from __future__ import annotations

from holdfast.contract.messages import PublishEvent, PublishResult, RemoveEvent, ReplayDeadEvent, SendMessage
from holdfast.engine.api import decides
from holdfast.engine.messages.matching import plan_sending
from holdfast.engine.messages.publish import sending_of
from holdfast.engine.operation import Operation
from holdfast.engine.rules.messages import forget, send
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import EventNotFound
from holdfast.model.messages import DeadEvent
from holdfast.store.protocol import LoadPlan


class Exhume(Operation[ReplayDeadEvent, PublishResult]):
    """Published again it has a new number and is kept again. `event` is what was read of it before: its key and its
    data are needed to plan, and never change. Whether it is still dead is decided here."""

    __slots__ = ("_match", "_publishing")

    def __init__(self, request: ReplayDeadEvent, event: DeadEvent) -> None:
        super().__init__(request)
        self._publishing: PublishEvent | SendMessage = PublishEvent(org=event.org, key=event.key, data=event.data)
        if event.correlation is not None:
            self._publishing = SendMessage(org=event.org, key=event.key, data=event.data, correlation=event.correlation)

    def plan(self, plan: LoadPlan) -> None:
        plan.want(DeadEvent, self.request.event_id)
        self._match = len(plan.matches)
        plan_sending(plan, self.request.org, self._publishing)

    def decide(self, ws: Workspace) -> PublishResult:
        event = ws.get(DeadEvent, self.request.event_id)
        if event is None or event.org != self.request.org:
            raise no_event(self.request.event_id, "dead event")
        ws.drop(DeadEvent, event.id)
        sent = send(ws, sending_of(self._publishing), ws.loaded.matches[self._match])
        return PublishResult(
            event_id=sent.id, delivered=sent.delivered, retained=sent.retained, started=sent.started, done=sent.done
        )


@decides(RemoveEvent)
class Remove(Operation[RemoveEvent, None]):
    """An event that is kept, or a dead one: nobody will get it any more."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.want(DeadEvent, self.request.event_id)
        plan.published.add(self.request.event_id)

    def decide(self, ws: Workspace) -> None:
        number, org = self.request.event_id, self.request.org
        dead, kept = ws.get(DeadEvent, number), ws.loaded.published.get(number)
        if dead is not None and dead.org == org:
            ws.drop(DeadEvent, number)
        elif kept is not None and kept.org == org:
            forget(ws, kept)
        else:
            raise no_event(number, "event")


def no_event(number: int, what: str) -> EventNotFound:
    return EventNotFound(
        f"there is no {what} {number}: it was never kept, or it was used up, removed or forgotten meanwhile",
        event_id=number,
    )
