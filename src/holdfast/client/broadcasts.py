"""Broadcasts and messages in the words of an application: who is woken, and how the answer reads."""

from __future__ import annotations

from typing import Any, Self

import msgspec

from holdfast.contract.messages import Messages, PublishEvent, ThrowBroadcast
from holdfast.frontends.python.definitions import Duration, time_limit_s
from holdfast.model.payloads import encode
from holdfast.model.validation import check_name


class BroadcastResult(int):
    """How many waits a broadcast has woken: a number, which also knows the broadcast's own."""

    broadcast_id: int

    def __new__(cls, delivered: int, broadcast_id: int) -> Self:
        made = super().__new__(cls, delivered)
        made.broadcast_id = broadcast_id
        return made

    @property
    def delivered(self) -> int:
        return int(self)

    def __repr__(self) -> str:
        return f"Broadcast(broadcast_id={self.broadcast_id}, delivered={int(self)})"


class SendResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message; true if somebody was waiting for it. Else it is kept for the first who asks."""

    event_id: int
    delivered: bool
    retained: bool

    def __bool__(self) -> bool:
        return self.delivered


class Broadcasts:
    """The client's calls that wake whoever waits for a name. See `Client`."""

    def __init__(self, messages: Messages, org: str, payload_limit: int) -> None:
        self._messages = messages
        self._org = org
        self._limit = payload_limit

    async def throw(self, name: str, idempotency_key: str | None) -> BroadcastResult:
        answer = await self._messages.broadcast(ThrowBroadcast(org=self._org, name=name, request_id=idempotency_key))
        return BroadcastResult(answer.delivered, answer.broadcast_id)

    async def send_message(
        self,
        name: str,
        correlation_key: str,
        data: Any,
        *,
        idempotency_key: str | None,
        expire_after: Duration | None,
    ) -> SendResult:
        check_name(name, "name")
        check_name(correlation_key, "correlation_key")
        answer = await self._messages.publish(
            PublishEvent(
                org=self._org,
                key=name,
                correlation=correlation_key,
                data=encode(data, field="data", limit=self._limit),
                expire_after_s=None if expire_after is None else time_limit_s(expire_after, "expire_after"),
                request_id=idempotency_key,
            )
        )
        return SendResult(event_id=answer.event_id, delivered=answer.delivered > 0, retained=answer.retained)
