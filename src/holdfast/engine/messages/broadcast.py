"""Wake everybody who waits for a name now."""

from __future__ import annotations

from holdfast.contract.messages import BroadcastAnswer, ThrowBroadcast
from holdfast.engine.messages.matching import plan_publication
from holdfast.engine.operation import Operation
from holdfast.engine.rules.messages import Publication, send
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.messages import SubscriptionKind
from holdfast.store.protocol import LoadPlan


class Broadcast(Operation[ThrowBroadcast, BroadcastAnswer]):
    __slots__ = ("_match",)
    ANSWER = BroadcastAnswer

    def plan(self, plan: LoadPlan) -> None:
        self._match = len(plan.matches)
        plan_publication(plan, self.request.org, self.request)

    def decide(self, uow: UnitOfWork) -> BroadcastAnswer:
        request = self.request
        publication = Publication(
            org=request.org, kind=SubscriptionKind.BROADCAST, key=request.name, idempotency_key=request.request_id
        )
        sent = send(uow, publication, uow.loaded.matches[self._match])
        return BroadcastAnswer(
            broadcast_id=sent.id,
            delivered=sent.delivered,
            done=sent.done,
            idempotency_key_used=request.request_id is not None,
            idempotency_key_new=request.request_id is not None,
        )

    def subject(self, answer: BroadcastAnswer) -> tuple[str | None, str | None]:
        return None, f"broadcast {answer.broadcast_id}"
