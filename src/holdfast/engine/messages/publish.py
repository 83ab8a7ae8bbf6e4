"""Publish an event, or send a message: to those who wait for it, and to those who will look back."""

from __future__ import annotations

from typing import TypeVar

from holdfast.contract.messages import PublishEvent, PublishResult, SendMessage, SendResult
from holdfast.engine.api import decides
from holdfast.engine.messages.matching import plan_sending
from holdfast.engine.operation import Operation
from holdfast.engine.rules.messages import Sending, send
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.messages import SubscriptionKind
from holdfast.store.protocol import LoadPlan

Sent = TypeVar("Sent", PublishEvent, SendMessage)
Result = TypeVar("Result", bound=PublishResult)


class _Publishing(Operation[Sent, Result]):
    """`ANSWER` is the type of the answer. Keys of messages are stored as those of events."""

    __slots__ = ("_match",)
    KNOWN_AS = "PublishEvent"

    def plan(self, plan: LoadPlan) -> None:
        self._match = len(plan.matches)
        plan_sending(plan, self.request.org, self.request)

    def decide(self, ws: Workspace) -> Result:
        request = self.request
        sent = send(ws, sending_of(request), ws.loaded.matches[self._match])
        assert self.ANSWER is not None, "each of them says it"
        answer: Result = self.ANSWER(
            event_id=sent.id,
            delivered=sent.delivered,
            retained=sent.retained,
            started=sent.started,
            done=sent.done,
            idempotency_key_used=request.request_id is not None,
            idempotency_key_new=request.request_id is not None,
        )
        return answer

    def subject(self, answer: Result) -> tuple[str | None, str | None]:
        return None, f"event {answer.event_id}"


@decides(PublishEvent)
class Publish(_Publishing[PublishEvent, PublishResult]):
    __slots__ = ()
    ANSWER = PublishResult


@decides(SendMessage)
class Send(_Publishing[SendMessage, SendResult]):
    __slots__ = ()
    ANSWER = SendResult


def sending_of(request: PublishEvent | SendMessage) -> Sending:
    message = request if isinstance(request, SendMessage) else None
    return Sending(
        org=request.org,
        kind=SubscriptionKind.EVENT if message is None else SubscriptionKind.MESSAGE,
        key=request.key,
        data=request.data,
        correlation=None if message is None else message.correlation,
        expire_after_s=request.expire_after_s,
        delivery=request.delivery,
        consume=isinstance(request, PublishEvent) and request.consume,
        idempotency_key=request.request_id,
    )
