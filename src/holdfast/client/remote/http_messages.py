"""`contract.messages.Messages` over HTTP."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from holdfast.client.remote.http_client import HttpClient, escaped, new_request_id
from holdfast.client.remote.http_executions import no_transaction
from holdfast.contract import messages as ms
from holdfast.errors import ExecutionNotFound, InvalidRequest
from holdfast.model.messages import (
    DeadEvent,
    EventKeyRow,
    PromiseRow,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
)
from holdfast.model.validation import check_name
from holdfast.model.values import Failure
from holdfast.transport.rest import bodies as b
from holdfast.transport.rest import message_views as mv


class HttpMessages:
    def __init__(self, http_client: HttpClient) -> None:
        self._http = http_client

    async def settle(self, request: ms.SettlePromise, using: Any = None) -> ms.SettleAnswer:
        no_transaction(using)
        sent = request if request.request_id is not None else structs.replace(request, request_id=new_request_id())
        path, body = _settlement(sent)
        answer = mv.read_settled(await self._http.post(_org(request.org) + path, body, mv.SettledView))
        if request.request_id is None:
            return structs.replace(answer, idempotency_key_used=False, idempotency_key_new=False)
        return answer

    async def publish(self, request: ms.PublishEvent, using: Any = None) -> ms.PublishAnswer:
        no_transaction(using)
        request_id = request.request_id if request.request_id is not None else new_request_id()
        body: b.Body
        if request.correlation is None:
            path = "/events"
            body = b.PublishBody(
                key=request.key,
                data=request.data,
                expire_after_seconds=request.expire_after_s,
                delivery=request.delivery,
                consume_on_read=request.consume,
                request_id=request_id,
                idempotency_key_ttl_seconds=request.ttl_s,
            )
        else:
            path = "/messages"
            body = b.MessageBody(
                name=request.key,
                correlation_key=request.correlation,
                data=request.data,
                expire_after_seconds=request.expire_after_s,
                delivery=request.delivery,
                request_id=request_id,
                idempotency_key_ttl_seconds=request.ttl_s,
            )
        answer = mv.read_published(await self._http.post(_org(request.org) + path, body, mv.PublishedView))
        if request.request_id is None:
            return structs.replace(answer, idempotency_key_used=False, idempotency_key_new=False)
        return answer

    async def broadcast(self, request: ms.ThrowBroadcast) -> ms.BroadcastAnswer:
        check_name(request.name, "name")
        body = b.BroadcastBody(
            signal_name=request.name,
            request_id=request.request_id if request.request_id is not None else new_request_id(),
            idempotency_key_ttl_seconds=request.ttl_s,
        )
        view = await self._http.post(f"{_org(request.org)}/signal", body, mv.BroadcastView, wait_s=None)
        answer = mv.read_broadcast(view)
        if request.request_id is None:
            return structs.replace(answer, idempotency_key_used=False, idempotency_key_new=False)
        return answer

    async def promises(self, org: str, execution_id: str) -> list[PromiseRow]:
        try:
            view = await self._http.get(_one(org, execution_id, "promises"), mv.PromiseList)
        except ExecutionNotFound:
            return []
        return [mv.read_promise(promise, org) for promise in view.promises]

    async def waits(self, org: str, execution_id: str) -> list[SubscriptionRow]:
        try:
            view = await self._http.get(_one(org, execution_id, "waits"), mv.SubscriptionList)
        except ExecutionNotFound:
            return []
        return [mv.read_subscription(wait, org) for wait in view.waits]

    async def waits_of_key(
        self, org: str, key: str, limit: int = 100, kind: SubscriptionKind = SubscriptionKind.EVENT
    ) -> list[SubscriptionRow]:
        check_name(key, "key")
        path = f"{_org(org)}/event-keys/{escaped(key)}/waits"
        view = await self._http.get(path, mv.SubscriptionList, {"limit": limit, "kind": str(kind)})
        return [mv.read_subscription(wait, org) for wait in view.waits]

    async def events(
        self, org: str, key: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[PublishedRow]:
        found = await self._events(org, "events", key, before, limit)
        return [row for row in found if isinstance(row, PublishedRow)]

    async def dead_events(
        self, org: str, key: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[DeadEvent]:
        found = await self._events(org, "dead-events", key, before, limit)
        return [row for row in found if isinstance(row, DeadEvent)]

    async def _events(
        self, org: str, which: str, key: str | None, before: int | None, limit: int
    ) -> list[PublishedRow | DeadEvent]:
        query = {"key": key, "before": before, "limit": limit}
        view = await self._http.get(f"{_org(org)}/{which}", mv.KeptEventList, query)
        return [mv.read_kept_event(event, org) for event in view.events]

    async def event(self, org: str, event_id: int) -> PublishedRow | DeadEvent:
        return mv.read_kept_event(await self._http.get(_event(org, event_id), mv.KeptEventView), org)

    async def event_key(self, org: str, key: str) -> EventKeyRow:
        check_name(key, "key")
        view = await self._http.get(f"{_org(org)}/event-keys/{escaped(key)}", mv.EventKeyView)
        return EventKeyRow(org=org, key=view.key, retained=view.retained, dropped=view.dropped)

    async def replay_dead_event(self, request: ms.ReplayDeadEvent) -> ms.PublishAnswer:
        path = _event(request.org, request.event_id) + "/replay"
        return mv.read_published(await self._http.post(path, b.NoBody(), mv.PublishedView, repeatable=False))

    async def remove_event(self, request: ms.RemoveEvent) -> None:
        await self._http.delete(_event(request.org, request.event_id))


def _org(org: str) -> str:
    return f"/api/orgs/{escaped(org)}"


def _one(org: str, execution_id: str, what: str) -> str:
    check_name(execution_id, "workflow_execution_id")
    return f"{_org(org)}/workflow-executions/{escaped(execution_id)}/{what}"


def _event(org: str, event_id: int) -> str:
    return f"{_org(org)}/events/{escaped(str(event_id))}"


def _settlement(request: ms.SettlePromise) -> tuple[str, b.Body]:
    """Where it is sent, and what. It would be sent one way: that there are several is seen only here."""
    ways = [request.token_hash, request.promise_id, request.name]
    if sum(way is not None for way in ways) != 1 or (request.name is None) != (request.workflow_id is None):
        raise InvalidRequest(
            "name a promise by its id, by workflow id and name, or by a token: exactly one of them", field="promise_id"
        )
    key: dict[str, Any] = {"request_id": request.request_id, "idempotency_key_ttl_seconds": request.ttl_s}
    error = None if request.failure is None else rejection(request.failure)
    if request.token_hash is not None:
        return "/promises/complete", b.CompleteBody(
            token_hash=request.token_hash, result=request.value, error=error, **key
        )
    if request.promise_id is not None:
        early = request.allow_early
        if error is None:
            body = b.ResolveBody(promise_id=request.promise_id, value=request.value, allow_early=early, **key)
            return "/promises/resolve", body
        return "/promises/reject", b.RejectBody(promise_id=request.promise_id, error=error, allow_early=early, **key)
    workflow_id, name = request.workflow_id or "", request.name or ""
    check_name(workflow_id, "workflow_id")
    check_name(name, "name")
    path = f"/workflows/{escaped(workflow_id)}/promises/{escaped(name)}/complete"
    return path, b.CompleteNamedBody(result=request.value, error=error, allow_early=request.allow_early, **key)


def rejection(failure: Failure) -> b.Rejection:
    return b.Rejection(
        type=failure.type,
        message=failure.message,
        traceback=failure.traceback,
        code=failure.code,
        non_retryable=failure.non_retryable,
        cause=None if failure.cause is None else rejection(failure.cause),
    )
