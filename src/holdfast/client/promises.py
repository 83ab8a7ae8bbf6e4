"""Promises in the words of an application: settled by id, by name or by token, and looked at.

A token is hashed here, and goes no further: what travels, is stored or is written to a log is its hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import structs

from holdfast.client.views import instant
from holdfast.contract.messages import Messages, SettleAnswer, SettlePromise
from holdfast.errors import InvalidRequest
from holdfast.frontends.python.definitions import Duration, time_limit_s
from holdfast.frontends.python.failures import failure_of
from holdfast.model.messages import PromiseRow, PromiseState
from holdfast.model.payloads import decode, encode
from holdfast.model.tokens import token_hash
from holdfast.model.values import Failure, Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledPromise:
    """How a promise is settled, by this call or by one before it: then `already_resolved`, and `state`, `value` and
    `error` are those of the one that was first.

    `idempotency_key_new` is False if the same key had been used for this very call before; the rest is then as it was
    answered first.
    """

    promise_id: str
    state: PromiseState
    already_resolved: bool
    value: Any = None
    error: Failure | None = None
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseInfo:
    """A promise of an execution. `settled_by` says how it was settled: by its id, name or token, or by an event, with
    the event's number and the caller's idempotency key."""

    id: str
    name: str
    state: PromiseState
    created_at: datetime
    value: Any = None
    error: Failure | None = None
    event_key: str | None = None
    settled_at: datetime | None = None
    settled_by: Settlement | None = None


class Promises:
    """What a client does about promises. See `Client`."""

    __slots__ = ("_limit", "_messages", "_org")

    def __init__(self, messages: Messages, org: str, payload_limit: int) -> None:
        self._messages = messages
        self._org = org
        self._limit = payload_limit

    def by_id(self, promise_id: str) -> SettlePromise:
        return SettlePromise(org=self._org, promise_id=_text(promise_id, "promise_id"))

    def by_name(self, workflow_id: str, name: str) -> SettlePromise:
        return SettlePromise(org=self._org, workflow_id=_text(workflow_id, "workflow_id"), name=_text(name, "name"))

    def by_token(self, token: str) -> SettlePromise:
        return SettlePromise(org=self._org, token_hash=token_hash(_text(token, "token")))

    async def settle(
        self,
        target: SettlePromise,
        value: Any,
        error: BaseException | str | None,
        *,
        idempotency_key: str | None,
        idempotency_key_ttl: Duration | None,
        allow_early: bool = False,
        using: Any = None,
    ) -> SettledPromise:
        if error is not None and value is not None:
            raise InvalidRequest("a promise is settled with a value or an error, not with both", field="error")
        request = structs.replace(
            target,
            value=encode(value, field="value", limit=self._limit),
            failure=None if error is None else failure_from(error),
            allow_early=bool(allow_early),
            request_id=idempotency_key,
            ttl_s=ttl_of(idempotency_key_ttl),
        )
        return settled_promise(await self._messages.settle(request, using))

    async def of(self, execution_id: str) -> list[PromiseInfo]:
        return [_view(row) for row in await self._messages.promises(self._org, execution_id)]


def key_of(idempotency_key: str | None, request_id: str | None) -> str | None:
    """Two names for one thing."""
    if idempotency_key is not None and request_id is not None and idempotency_key != request_id:
        raise InvalidRequest("idempotency_key and request_id mean the same: give one of them", field="idempotency_key")
    return request_id if idempotency_key is None else idempotency_key


def ttl_of(ttl: Duration | None) -> float | None:
    return None if ttl is None else time_limit_s(ttl, "idempotency_key_ttl")


def _text(given: object, field: str) -> str:
    if not isinstance(given, str) or not given:
        raise InvalidRequest(f"{field} must be text that is not empty, not {type(given).__name__}", field=field)
    return given


def failure_from(error: BaseException | str, text_type: str = "PromiseRejected") -> Failure:
    """The durable form of what a caller gives as an error; `text_type` is the type of a text alone."""
    given: object = error
    if isinstance(given, str):
        return Failure(type=text_type, message=given)
    if not isinstance(given, BaseException):
        raise InvalidRequest(f"error must be an exception or a text, not {type(given).__name__}", field="error")
    return failure_of(given)


def settled_promise(answer: SettleAnswer) -> SettledPromise:
    return SettledPromise(
        promise_id=answer.promise_id,
        state=answer.state,
        already_resolved=answer.already_resolved,
        value=decode(answer.value, field="value"),
        error=answer.failure,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


def _view(row: PromiseRow) -> PromiseInfo:
    return PromiseInfo(
        id=row.id,
        name=row.name,
        state=row.state,
        created_at=instant(row.created_at),
        value=decode(row.value, field="value"),
        error=row.failure,
        event_key=row.event_key,
        settled_at=None if row.settled_at is None else instant(row.settled_at),
        settled_by=row.settled_by,
    )
