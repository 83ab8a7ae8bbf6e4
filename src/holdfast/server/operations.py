"""THE table of public operations: what there is, where, who may, what goes in and comes out.

Routes, OpenAPI, role checks, the command line's help and the tests of attacks are all made from it: an operation that
is not here does not exist, and one that is here can't be forgotten. Handlers have the names of their operations.
"""

from __future__ import annotations

from typing import Final

from holdfast.model.keys import Role
from holdfast.server.execution_operations import EXECUTION_OPERATIONS
from holdfast.server.operation import ORG, V1, Operation, do, read
from holdfast.server.task_operations import TASK_OPERATIONS
from holdfast.transport.rest import bodies as b
from holdfast.transport.rest import explanation_views as xv
from holdfast.transport.rest import key_views as kv
from holdfast.transport.rest import message_views as mv
from holdfast.transport.rest import system_views as sv

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

_KEYS: Final = "keys"

KEY_OPERATIONS: Final = (
    do(
        "create_key",
        f"{ORG}/keys",
        "keys.create",
        _KEYS,
        "Make an API key; its text is shown once",
        kv.CreateKeyBody,
        kv.KeyMadeView,
        role=Role.ADMIN,
        status=201,
        example={"name": "shop", "role": "writer", "expires_in_seconds": 7776000},
    ),
    read(
        "list_keys",
        f"{ORG}/keys",
        "keys.list",
        _KEYS,
        "The org's API keys, the newest first",
        kv.KeyList,
        query=kv.KeysQuery,
        role=Role.ADMIN,
    ),
    read("get_key", f"{ORG}/keys/{{key_id}}", "keys.get", _KEYS, "One API key", kv.KeyView, role=Role.ADMIN),
    do(
        "revoke_key",
        f"{ORG}/keys/{{key_id}}/revoke",
        "keys.revoke",
        _KEYS,
        "End an API key",
        b.NoBody,
        kv.KeyView,
        role=Role.ADMIN,
    ),
    do(
        "rotate_key",
        f"{ORG}/keys/{{key_id}}/rotate",
        "keys.rotate",
        _KEYS,
        "Give an API key another secret; the present one counts a while longer",
        kv.RotateKeyBody,
        kv.KeyMadeView,
        role=Role.ADMIN,
        example={"overlap_seconds": 3600},
    ),
    do(
        "delete_org",
        ORG,
        "keys.delete_org",
        _KEYS,
        "Delete the org: its keys are dead at once, everything it has is removed in the background, for good",
        kv.DeleteOrgBody,
        kv.OrgDeletedView,
        role=Role.ADMIN,
        method="DELETE",
        status=202,
        example={"confirm": "acme"},
    ),
    read(
        "list_audit",
        f"{ORG}/audit",
        "keys.audit",
        _KEYS,
        "The record of acts, the newest first",
        kv.AuditList,
        query=kv.AuditQuery,
        role=Role.ADMIN,
    ),
    read(
        "verify_audit",
        f"{ORG}/audit/verification",
        "keys.verify_audit",
        _KEYS,
        "Whether the record of acts is as it was written",
        kv.AuditCheckView,
        role=Role.ADMIN,
    ),
)

_SYS: Final = "system"


def _pause(name: str, path: str, summary: str) -> Operation:
    return do(
        name,
        path,
        "deployments.change_pause",
        _SYS,
        summary,
        sv.PauseBody,
        sv.PauseAnswerView,
        role=Role.ADMIN,
        example={"reason": "the payment service is down"},
    )


SYSTEM_OPERATIONS: Final = (
    read(
        "list_definitions",
        f"{ORG}/definitions",
        "deployments.definitions",
        _SYS,
        "Workflow kinds and versions that workers have registered",
        sv.DefinitionList,
        query=b.PageQuery,
    ),
    read(
        "list_workers",
        f"{ORG}/workers",
        "deployments.workers",
        _SYS,
        "The worker sessions",
        sv.WorkerList,
        query=b.PageQuery,
    ),
    read(
        "list_queues",
        f"{ORG}/queues",
        "deployments.queues",
        _SYS,
        "What waits for workers, by queue; the executions themselves are those with status PENDING",
        sv.QueueList,
        query=b.PageQuery,
    ),
    _pause("pause_queue", f"{ORG}/queues/{{queue}}/pause", "Hand out nothing of a queue; everything is still accepted"),
    _pause("resume_queue", f"{ORG}/queues/{{queue}}/resume", "Hand out what waits in a queue again"),
    _pause("pause_worker", f"{ORG}/workers/{{worker_id}}/pause", "Hand out nothing to a worker session"),
    _pause("resume_worker", f"{ORG}/workers/{{worker_id}}/resume", "Hand out work to a worker session again"),
    _pause(
        "drain_worker",
        f"{ORG}/workers/{{worker_id}}/drain",
        "Hand out nothing more to a worker session, for good: it can be stopped when it has finished what it has",
    ),
    read(
        "who_am_i",
        "/api/me",
        "keys.authenticate",
        _SYS,
        "The org and role of the key",
        sv.MeView,
        role=Role.READER,
    ),
    do(
        "recover",
        f"{ORG}/recover",
        "upkeep.recover",
        _SYS,
        "Do at once what the services do in time, check every waiting execution, report",
        b.NoBody,
        sv.RecoveryView,
        role=Role.ADMIN,
        waits=True,
    ),
    read(
        "metrics",
        "/metrics",
        "metrics.page",
        _SYS,
        "Figures for Prometheus; with a key, of its org alone",
        None,
        media="text/plain; version=0.0.4; charset=utf-8",
    ),
    read("healthz", "/healthz", "", _SYS, "Whether the process is alive", sv.HealthView, role=None),
    read("readyz", "/readyz", "", _SYS, "Whether it can work: the database answers", sv.HealthView, role=None),
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    *EXECUTION_OPERATIONS,
    *TASK_OPERATIONS,
    *MESSAGE_OPERATIONS,
    *KEY_OPERATIONS,
    *SYSTEM_OPERATIONS,
)
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
