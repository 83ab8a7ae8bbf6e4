"""Wake everybody who waits for a name now."""

from __future__ import annotations

from holdfast.contract.messages import BroadcastAnswer, ThrowBroadcast
from holdfast.engine.messages.matching import plan_sending
from holdfast.engine.operation import Operation
from holdfast.engine.rules.messages import Sending, send
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.messages import SubscriptionKind
from holdfast.store.protocol import LoadPlan


class Broadcast(Operation[ThrowBroadcast, BroadcastAnswer]):
    __slots__ = ("_match",)
    ANSWER = BroadcastAnswer

    def plan(self, plan: LoadPlan) -> None:
        self._match = len(plan.matches)
        plan_sending(plan, self.request.org, self.request)

    def decide(self, ws: Workspace) -> BroadcastAnswer:
        request = self.request
        sending = Sending(
            org=request.org, kind=SubscriptionKind.BROADCAST, key=request.name, idempotency_key=request.request_id
        )
        sent = send(ws, sending, ws.loaded.matches[self._match])
        return BroadcastAnswer(
            broadcast_id=sent.id,
            delivered=sent.delivered,
            done=sent.done,
            idempotency_key_used=request.request_id is not None,
            idempotency_key_new=request.request_id is not None,
        )

    def subject(self, answer: BroadcastAnswer) -> tuple[str | None, str | None]:
        return None, f"broadcast {answer.broadcast_id}"
