"""Promises: settled by id, by name or by token. `Promises` is the part of `Client` that has these calls.

A token is hashed here, and goes no further: what travels, is stored or is written to a log is its hash.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from holdfast.contract.failures import REJECTED, Rejection, rejection_of
from holdfast.contract.messages import (
    CompleteNamedPromise,
    CompletePromise,
    RejectPromise,
    ResolvePromise,
    SettledPromise,
)
from holdfast.contract.operation import Api, Request
from holdfast.contract.records import plain
from holdfast.errors import InvalidRequest
from holdfast.model.durations import Duration, time_limit_s
from holdfast.model.failures import failure_of
from holdfast.model.payloads import encode
from holdfast.model.tokens import token_hash
from holdfast.model.values import Failure


class Promises:
    """See the module's text."""

    api: Api
    org: str
    _limit: int

    async def resolve_promise(
        self,
        promise_id: str,
        value: Any = None,
        *,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
        allow_early: bool = False,
        using: Any = None,
    ) -> SettledPromise:
        """Give a promise its value. The first settlement wins for ever: a later one changes nothing and is answered
        with the winner's, `already_resolved`.

        Raises PromiseNotFound if its workflow has not made it; with `allow_early` the value is kept for it, for
        `idempotency_key_ttl`, by default a day. Raises ExecutionClosed if it was not settled before its execution
        closed, PromiseValueInvalid if the value does not fit the type that the workflow asks for. `using`: as part of
        your own transaction, see `start_workflow`.
        """
        request = ResolvePromise(
            org=self.org,
            promise_id=_text(promise_id, "promise_id"),
            value=self._value(value),
            allow_early=bool(allow_early),
            request_id=idempotency_key,
            ttl_s=ttl_of(idempotency_key_ttl),
        )
        return await self._settled(request, using)

    async def reject_promise(
        self,
        promise_id: str,
        error: BaseException | str,
        *,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
        allow_early: bool = False,
        using: Any = None,
    ) -> SettledPromise:
        """As `resolve_promise`, but its workflow gets PromiseRejected with this error at its await."""
        request = RejectPromise(
            org=self.org,
            promise_id=_text(promise_id, "promise_id"),
            error=_rejection(error),
            allow_early=bool(allow_early),
            request_id=idempotency_key,
            ttl_s=ttl_of(idempotency_key_ttl),
        )
        return await self._settled(request, using)

    async def resolve_promise_by_name(
        self,
        workflow_id: str,
        name: str,
        value: Any = None,
        *,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
        allow_early: bool = False,
        using: Any = None,
    ) -> SettledPromise:
        """As `resolve_promise`, for the promise of this name in the open execution of a workflow id, or in the last
        one."""
        request = CompleteNamedPromise(
            org=self.org,
            workflow_id=_text(workflow_id, "workflow_id"),
            name=_text(name, "name"),
            value=self._value(value),
            allow_early=bool(allow_early),
            request_id=idempotency_key,
            ttl_s=ttl_of(idempotency_key_ttl),
        )
        return await self._settled(request, using)

    async def reject_promise_by_name(
        self,
        workflow_id: str,
        name: str,
        error: BaseException | str,
        *,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
        allow_early: bool = False,
        using: Any = None,
    ) -> SettledPromise:
        """As `reject_promise`, by workflow id and name."""
        request = CompleteNamedPromise(
            org=self.org,
            workflow_id=_text(workflow_id, "workflow_id"),
            name=_text(name, "name"),
            error=_rejection(error),
            allow_early=bool(allow_early),
            request_id=idempotency_key,
            ttl_s=ttl_of(idempotency_key_ttl),
        )
        return await self._settled(request, using)

    async def complete_promise(
        self,
        token: str,
        value: Any = None,
        *,
        error: BaseException | str | None = None,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
        using: Any = None,
    ) -> SettledPromise:
        """Settle what a token stands for: a promise, or an attempt of a task that called `complete_later()`.

        A task whose attempt fails with `error` is tried again, unless that is NonRetryable or its policy says no.
        Raises PromiseNotFound for a token that stands for nothing here, StaleAttempt if the attempt is over,
        PromiseValueInvalid if the value does not fit the promise's type.
        """
        if error is not None and value is not None:
            raise InvalidRequest("a promise is settled with a value or an error, not with both", field="error")
        request = CompletePromise(
            org=self.org,
            token_hash=token_hash(_text(token, "token")),
            value=self._value(value),
            error=None if error is None else _rejection(error),
            request_id=idempotency_key,
            ttl_s=ttl_of(idempotency_key_ttl),
        )
        return await self._settled(request, using)

    async def _settled(self, request: Request[SettledPromise], using: Any) -> SettledPromise:
        return plain(await self.api.call(request, using))

    def _value(self, value: Any) -> Raw:
        return encode(value, field="value", limit=self._limit)


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


def _rejection(error: BaseException | str) -> Rejection:
    return rejection_of(failure_from(error))


def failure_from(error: BaseException | str, text_type: str = REJECTED) -> Failure:
    """The durable form of what a caller gives as an error; `text_type` is the type of a text alone."""
    given: object = error
    if isinstance(given, str):
        return Failure(type=text_type, message=given)
    if not isinstance(given, BaseException):
        raise InvalidRequest(f"error must be an exception or a text, not {type(given).__name__}", field="error")
    return failure_of(given)
