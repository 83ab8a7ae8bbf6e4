"""THE table of public operations: what there is, where, who may, what goes in and comes out.

Routes, OpenAPI, role checks, the command line's help and the tests of attacks are all made from it: an operation that
is not here does not exist, and one that is here can't be forgotten. Handlers have the names of their operations.
"""

from __future__ import annotations

from typing import Final

from holdfast.api.execution_operations import EXECUTION_OPERATIONS
from holdfast.api.operation import ORG, V1, Operation, do, read, routes_of
from holdfast.contract.table import TABLE
from holdfast.wire.rest import bodies as b
from holdfast.wire.rest import explanation_views as xv
from holdfast.wire.rest import message_views as mv

_PR: Final = "promises"
_COMPLETE: Final = {"token": "ct_…", "request_id": "call-1", "result": {"approved": True}}
_RESOLVE: Final = {"promise_id": "0198…:approval", "value": {"approved": True}, "idempotency_key": "call-1"}


def _promises(prefix: str, suffix: str) -> tuple[Operation, ...]:
    """The same four, with the org in the path or with the key's org."""
    return (
        do(
            f"resolve_promise{suffix}",
            f"{prefix}/promises/resolve",
            "messages.settle",
            _PR,
            "Give a promise its value",
            b.ResolveBody,
            mv.SettledView,
            payload=True,
            example=_RESOLVE,
        ),
        do(
            f"reject_promise{suffix}",
            f"{prefix}/promises/reject",
            "messages.settle",
            _PR,
            "Reject a promise",
            b.RejectBody,
            mv.SettledView,
            payload=True,
            example={"promise_id": "0198…:approval", "error": "nobody has time"},
        ),
        do(
            f"complete_promise{suffix}",
            f"{prefix}/promises/complete",
            "messages.settle",
            _PR,
            "Settle what a token stands for: a promise, or an attempt of a task",
            b.CompleteBody,
            mv.SettledView,
            payload=True,
            example=_COMPLETE,
        ),
        do(
            f"complete_named_promise{suffix}",
            f"{prefix}/workflows/{{workflow_id}}/promises/{{promise_name}}/complete",
            "messages.settle",
            _PR,
            "Settle the promise of this name in the open execution of a workflow id, or in the last one",
            b.CompleteNamedBody,
            mv.SettledView,
            payload=True,
            example={"request_id": "call-1", "result": {"approved": True}},
        ),
    )


_EV: Final = "events"


def _publish(path: str, suffix: str) -> Operation:
    return do(
        f"publish_event{suffix}",
        path,
        "messages.publish",
        _EV,
        "Publish an event to whoever waits for its key, and to those who will look back",
        b.PublishBody,
        mv.PublishedView,
        payload=True,
        example={"key": "payment.received", "data": {"order": 7, "amount": 12.5}, "idempotency_key": "payment-1"},
    )


MESSAGE_OPERATIONS: Final = (
    *_promises(ORG, ""),
    *_promises(V1, "_v1"),
    _publish(f"{ORG}/events", ""),
    _publish(f"{V1}/events", "_v1"),
    read(
        "list_events",
        f"{ORG}/events",
        "messages.events",
        _EV,
        "Events that are kept, the newest first",
        mv.KeptEventList,
        query=b.EventsQuery,
    ),
    read("get_event", f"{ORG}/events/{{event_id}}", "messages.event", _EV, "One event, kept or dead", mv.KeptEventView),
    read(
        "explain_event",
        f"{ORG}/events/{{event_id}}/explanation",
        "explanations.event",
        _EV,
        "Why an event went to whom it went: every open wait of its key, and what refused it",
        xv.EventExplanationView,
    ),
    do(
        "remove_event",
        f"{ORG}/events/{{event_id}}",
        "messages.remove_event",
        _EV,
        "Remove an event, kept or dead: nobody will get it",
        None,
        None,
        method="DELETE",
        status=204,
    ),
    do(
        "replay_event",
        f"{ORG}/events/{{event_id}}/replay",
        "messages.replay_dead_event",
        _EV,
        "Publish a dead event again, with a new number",
        b.NoBody,
        mv.PublishedView,
    ),
    read(
        "list_dead_events",
        f"{ORG}/dead-events",
        "messages.dead_events",
        _EV,
        "Events that nobody ever got, the newest first",
        mv.KeptEventList,
        query=b.EventsQuery,
    ),
    read(
        "event_key",
        f"{ORG}/event-keys/{{key}}",
        "messages.event_key",
        _EV,
        "How many events of a key are kept",
        mv.EventKeyView,
    ),
    read(
        "waits_of_key",
        f"{ORG}/event-keys/{{key}}/waits",
        "messages.waits_of_key",
        _EV,
        "Who waits for a key, the longest waiting first",
        mv.SubscriptionList,
        query=b.WaitsQuery,
    ),
    do(
        "broadcast",
        f"{ORG}/signal",
        "messages.broadcast",
        _EV,
        "Wake everybody who waits for a broadcast of this name now",
        b.BroadcastBody,
        mv.BroadcastView,
        waits=True,
        example={"SignalName": "shop.closed"},
    ),
    do(
        "send_message",
        f"{ORG}/messages",
        "messages.publish",
        _EV,
        "Give a message to the one who has waited longest for this name and correlation key, or keep it for one",
        b.MessageBody,
        mv.PublishedView,
        payload=True,
        example={"name": "invoice", "correlation_key": "order:7", "data": {"total": 12.5}},
    ),
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    *EXECUTION_OPERATIONS,
    *MESSAGE_OPERATIONS,
    *(route for operation in TABLE for route in routes_of(operation)),
)
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
