"""Publish an event that nobody has got again, or remove one."""

from __future__ import annotations

from holdfast.contract.messages import PublishAnswer, PublishEvent, RemoveEvent, ReplayDeadEvent
from holdfast.engine.messages.matching import plan_publication
from holdfast.engine.messages.publish import publication_of
from holdfast.engine.operation import Operation
from holdfast.engine.rules.messages import forget, send
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import EventNotFound
from holdfast.model.messages import DeadEvent
from holdfast.store.protocol import LoadPlan


class ReplayDead(Operation[ReplayDeadEvent, PublishAnswer]):
    """Published again it has a new number and is kept again. `event` is what was read of it before: its key and its
    data are needed to plan, and never change. Whether it is still dead is decided here."""

    __slots__ = ("_match", "_publishing")

    def __init__(self, request: ReplayDeadEvent, event: DeadEvent) -> None:
        super().__init__(request)
        self._publishing = PublishEvent(org=event.org, key=event.key, data=event.data, correlation=event.correlation)

    def plan(self, plan: LoadPlan) -> None:
        plan.dead_events.add(self.request.event_id)
        self._match = len(plan.matches)
        plan_publication(plan, self.request.org, self._publishing)

    def decide(self, uow: UnitOfWork) -> PublishAnswer:
        event = uow.loaded.dead_events.pop(self.request.event_id, None)
        if event is None or event.org != self.request.org:
            raise no_event(self.request.event_id, "dead event")
        uow.changes.replayed_dead_events.append(event.id)
        sent = send(uow, publication_of(self._publishing), uow.loaded.matches[self._match])
        return PublishAnswer(
            event_id=sent.id, delivered=sent.delivered, retained=sent.retained, started=sent.started, done=sent.done
        )


class Remove(Operation[RemoveEvent, None]):
    """An event that is kept, or a dead one: nobody will get it any more."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.dead_events.add(self.request.event_id)
        plan.published.add(self.request.event_id)

    def decide(self, uow: UnitOfWork) -> None:
        number, org = self.request.event_id, self.request.org
        dead, kept = uow.loaded.dead_events.get(number), uow.loaded.published.get(number)
        if dead is not None and dead.org == org:
            del uow.loaded.dead_events[number]
            uow.changes.replayed_dead_events.append(number)
        elif kept is not None and kept.org == org:
            forget(uow, kept)
        else:
            raise no_event(number, "event")


def no_event(number: int, what: str) -> EventNotFound:
    return EventNotFound(
        f"there is no {what} {number}: it was never kept, or it was used up, removed or forgotten meanwhile",
        event_id=number,
    )
