"""Publish an event or a message: to those who wait for it, and to those who will look back."""

from __future__ import annotations

from holdfast.contract.messages import PublishAnswer, PublishEvent
from holdfast.engine.messages.matching import plan_publication
from holdfast.engine.operation import Operation
from holdfast.engine.rules.messages import Publication, send
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.messages import SubscriptionKind
from holdfast.store.protocol import LoadPlan


class Publish(Operation[PublishEvent, PublishAnswer]):
    __slots__ = ("_match",)
    ANSWER = PublishAnswer

    def plan(self, plan: LoadPlan) -> None:
        self._match = len(plan.matches)
        plan_publication(plan, self.request.org, self.request)

    def decide(self, uow: UnitOfWork) -> PublishAnswer:
        request = self.request
        sent = send(uow, publication_of(request), uow.loaded.matches[self._match])
        return PublishAnswer(
            event_id=sent.id,
            delivered=sent.delivered,
            retained=sent.retained,
            started=sent.started,
            done=sent.done,
            idempotency_key_used=request.request_id is not None,
            idempotency_key_new=request.request_id is not None,
        )

    def subject(self, answer: PublishAnswer) -> tuple[str | None, str | None]:
        return None, f"event {answer.event_id}"


def publication_of(request: PublishEvent) -> Publication:
    return Publication(
        org=request.org,
        kind=SubscriptionKind.EVENT if request.correlation is None else SubscriptionKind.MESSAGE,
        key=request.key,
        data=request.data,
        correlation=request.correlation,
        expire_after_s=request.expire_after_s,
        delivery=request.delivery,
        consume=request.consume,
        idempotency_key=request.request_id,
    )
