"""Promises, events, broadcasts, messages."""

from __future__ import annotations

from holdfast.api.rest.calls import Call
from holdfast.contract import messages as ms
from holdfast.contract.execution_reads import GetWorkflow
from holdfast.errors import InvalidRequest
from holdfast.model.tokens import token_hash
from holdfast.model.values import NULL, Failure
from holdfast.wire.rest import bodies as b
from holdfast.wire.rest import message_views as mv


async def resolve_promise(call: Call) -> mv.SettledView:
    body: b.ResolveBody = call.body
    return await _settle(
        call,
        ms.SettlePromise(
            org=call.org,
            promise_id=body.promise_id,
            value=body.value,
            allow_early=body.allow_early,
            request_id=call.request_id(),
            ttl_s=body.idempotency_key_ttl_seconds,
        ),
    )


async def reject_promise(call: Call) -> mv.SettledView:
    body: b.RejectBody = call.body
    return await _settle(
        call,
        ms.SettlePromise(
            org=call.org,
            promise_id=body.promise_id,
            failure=failure_of_body(body.error),
            allow_early=body.allow_early,
            request_id=call.request_id(),
            ttl_s=body.idempotency_key_ttl_seconds,
        ),
    )


async def complete_promise(call: Call) -> mv.SettledView:
    body: b.CompleteBody = call.body
    if (body.token is None) == (body.token_hash is None):
        raise InvalidRequest("give the token", field="token")
    failure = _one_of(body)
    return await _settle(
        call,
        ms.SettlePromise(
            org=call.org,
            token_hash=body.token_hash if body.token is None else token_hash(body.token),
            value=body.result,
            failure=failure,
            request_id=call.request_id(),
            ttl_s=body.idempotency_key_ttl_seconds,
        ),
    )


async def complete_named_promise(call: Call) -> mv.SettledView:
    body: b.CompleteNamedBody = call.body
    failure = _one_of(body)
    return await _settle(
        call,
        ms.SettlePromise(
            org=call.org,
            workflow_id=call.path["workflow_id"],
            name=call.path["promise_name"],
            value=body.result,
            failure=failure,
            allow_early=body.allow_early,
            request_id=call.request_id(),
            ttl_s=body.idempotency_key_ttl_seconds,
        ),
    )


resolve_promise_v1 = resolve_promise
reject_promise_v1 = reject_promise
complete_promise_v1 = complete_promise
complete_named_promise_v1 = complete_named_promise


async def _settle(call: Call, request: ms.SettlePromise) -> mv.SettledView:
    return mv.settled_view(await call.nouns.messages.settle(request))


def _one_of(body: b.CompleteBody | b.CompleteNamedBody) -> Failure | None:
    if body.error is None:
        return None
    if bytes(body.result) != bytes(NULL):
        raise InvalidRequest("a promise is settled with a result or an error, not with both", field="error")
    return failure_of_body(body.error)


def failure_of_body(error: str | b.Rejection, text_type: str = "PromiseRejected") -> Failure:
    """`text_type` is the type of an error that is a text alone."""
    if isinstance(error, str):
        return Failure(type=text_type, message=error)
    return Failure(
        type=error.type,
        message=error.message,
        traceback=error.traceback,
        code=error.code,
        non_retryable=error.non_retryable,
        cause=None if error.cause is None else failure_of_body(error.cause),
    )


async def workflow_promises(call: Call) -> mv.PromiseList:
    rows = await call.nouns.messages.promises(call.org, call.execution_id)
    if not rows:
        await call.nouns.api.call(GetWorkflow(org=call.org, workflow_execution_id=call.execution_id))
    return mv.PromiseList(promises=tuple(mv.promise_view(row) for row in rows))


async def workflow_waits(call: Call) -> mv.SubscriptionList:
    rows = await call.nouns.messages.waits(call.org, call.execution_id)
    if not rows:
        await call.nouns.api.call(GetWorkflow(org=call.org, workflow_execution_id=call.execution_id))
    return mv.SubscriptionList(waits=tuple(mv.subscription_view(row) for row in rows))


async def publish_event(call: Call) -> mv.PublishedView:
    body: b.PublishBody = call.body
    return mv.published_view(
        await call.nouns.messages.publish(
            ms.PublishEvent(
                org=call.org,
                key=body.key,
                data=body.data,
                expire_after_s=body.expire_after_seconds,
                delivery=body.delivery,
                consume=body.consume_on_read,
                request_id=call.request_id(),
                ttl_s=body.idempotency_key_ttl_seconds,
            )
        )
    )


publish_event_v1 = publish_event


async def send_message(call: Call) -> mv.PublishedView:
    body: b.MessageBody = call.body
    return mv.published_view(
        await call.nouns.messages.publish(
            ms.PublishEvent(
                org=call.org,
                key=body.name,
                correlation=body.correlation_key,
                data=body.data,
                expire_after_s=body.expire_after_seconds,
                delivery=body.delivery,
                request_id=call.request_id(),
                ttl_s=body.idempotency_key_ttl_seconds,
            )
        )
    )


async def broadcast(call: Call) -> mv.BroadcastView:
    body: b.BroadcastBody = call.body
    names = {name for name in (body.SignalName, body.signal_name) if name is not None}
    if len(names) != 1:
        raise InvalidRequest("give the name of the broadcast in SignalName", field="SignalName")
    return mv.broadcast_view(
        await call.nouns.messages.broadcast(
            ms.ThrowBroadcast(
                org=call.org,
                name=names.pop(),
                request_id=call.request_id(),
                ttl_s=body.idempotency_key_ttl_seconds,
            )
        )
    )


async def list_events(call: Call) -> mv.KeptEventList:
    query: b.EventsQuery = call.query
    rows = await call.nouns.messages.events(call.org, query.key, query.before, query.limit)
    return mv.KeptEventList(events=tuple(mv.kept_event_view(row) for row in rows))


async def list_dead_events(call: Call) -> mv.KeptEventList:
    query: b.EventsQuery = call.query
    rows = await call.nouns.messages.dead_events(call.org, query.key, query.before, query.limit)
    return mv.KeptEventList(events=tuple(mv.kept_event_view(row) for row in rows))


async def get_event(call: Call) -> mv.KeptEventView:
    return mv.kept_event_view(await call.nouns.messages.event(call.org, call.number("event_id")))


async def remove_event(call: Call) -> None:
    await call.nouns.messages.remove_event(ms.RemoveEvent(org=call.org, event_id=call.number("event_id")))


async def replay_event(call: Call) -> mv.PublishedView:
    request = ms.ReplayDeadEvent(org=call.org, event_id=call.number("event_id"))
    return mv.published_view(await call.nouns.messages.replay_dead_event(request))


async def event_key(call: Call) -> mv.EventKeyView:
    return mv.event_key_view(await call.nouns.messages.event_key(call.org, call.path["key"]))


async def waits_of_key(call: Call) -> mv.SubscriptionList:
    query: b.WaitsQuery = call.query
    rows = await call.nouns.messages.waits_of_key(call.org, call.path["key"], query.limit, query.kind)
    return mv.SubscriptionList(waits=tuple(mv.subscription_view(row) for row in rows))
