"""What an application asks for and is answered: messages to the contract's requests, answers to messages.

Fields that are not set mean what the contract's defaults mean. Everything raised here is an InvalidRequest that names
the message's own field.
"""

from __future__ import annotations

from msgspec import UNSET

from holdfast.contract import calls
from holdfast.contract import execution_reads as er
from holdfast.contract import executions as ex
from holdfast.contract import messages as ms
from holdfast.contract.failures import Rejection
from holdfast.contract.fields import FOREVER
from holdfast.contract.instants import instant_or_none, micros
from holdfast.model import events as e
from holdfast.model.executions import Status
from holdfast.wire.grpc import holdfast_pb2 as pb
from holdfast.wire.grpc.fields import choice, given
from holdfast.wire.grpc.payloads import payload

REJECTED = "Rejected"


# --- promises and events ---


def resolve(message: pb.ResolvePromiseRequest, org: str) -> ms.ResolvePromise:
    return ms.ResolvePromise(
        org=org,
        promise_id=message.promise_id,
        value=payload(message.value, "value"),
        request_id=given(message, "idempotency_key"),
        ttl_s=given(message, "idempotency_key_ttl_seconds"),
    )


def reject(message: pb.RejectPromiseRequest, org: str) -> ms.RejectPromise:
    return ms.RejectPromise(
        org=org,
        promise_id=message.promise_id,
        error=Rejection(type=message.error_type or REJECTED, message=message.error),
        request_id=given(message, "idempotency_key"),
        ttl_s=given(message, "idempotency_key_ttl_seconds"),
    )


def resolved(answer: ms.SettledPromise) -> pb.ResolvePromiseResponse:
    return pb.ResolvePromiseResponse(
        already_resolved=answer.already_resolved,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


def rejected(answer: ms.SettledPromise) -> pb.RejectPromiseResponse:
    return pb.RejectPromiseResponse(
        already_resolved=answer.already_resolved,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


def publish(message: pb.PublishEventRequest, org: str, request_id: str | None) -> ms.PublishEvent:
    return ms.PublishEvent(
        org=org,
        key=message.key,
        data=payload(message.data, "data"),
        request_id=given(message, "idempotency_key") or request_id,
        ttl_s=given(message, "idempotency_key_ttl_seconds"),
    )


def published(answer: ms.PublishResult) -> pb.PublishEventResponse:
    return pb.PublishEventResponse(
        event_id=answer.event_id,
        delivered=answer.delivered,
        retained=answer.retained,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


# --- asking a program ---


def query(message: pb.QueryWorkflowRequest, org: str) -> calls.QueryExecution:
    return calls.QueryExecution(
        org=org,
        workflow_execution_id=message.workflow_execution_id,
        query_name=message.query_name,
        input=payload(message.input, "input") if message.HasField("input") else UNSET,
        as_of=given(message, "as_of"),
    )


def update(message: pb.UpdateWorkflowRequest, org: str) -> calls.RequestUpdate:
    return calls.RequestUpdate(
        org=org,
        workflow_execution_id=message.workflow_execution_id,
        update_name=message.update_name,
        input=payload(message.input, "input"),
        update_id=given(message, "update_id"),
        wait=FOREVER,
    )


# --- looking ---


def list_request(message: pb.ListWorkflowsRequest, org: str) -> er.ListExecutions:
    return er.ListExecutions(
        org=org,
        statuses=tuple(choice(status, Status, "statuses") for status in message.statuses),
        kinds=tuple(message.workflow_kinds),
        workflow_id=message.workflow_id or None,
        queue=message.queue or None,
        metadata=dict(message.metadata),
        cursor=message.cursor or None,
        limit=message.limit or 100,
    )


def page(answer: er.WorkflowPage) -> pb.ListWorkflowsResponse:
    return pb.ListWorkflowsResponse(
        workflows=[execution(found) for found in answer.items], next_cursor=answer.next_cursor or ""
    )


def execution(found: er.ExecutionInfo) -> pb.WorkflowExecution:
    return pb.WorkflowExecution(
        workflow_execution_id=found.workflow_execution_id,
        workflow_id=found.workflow_id,
        workflow_kind=found.kind,
        workflow_version=found.version,
        queue=found.queue,
        priority_seconds=found.priority,
        status=found.status,
        created_at=micros(found.created_at),
        updated_at=micros(found.updated_at),
        last_event_sequence=found.history_length,
        metadata=found.metadata,
    )


def outcome(answer: er.WorkflowResult) -> pb.GetResultResponse:
    """How an execution ended; only the status while it has not."""
    told = pb.GetResultResponse(closed=answer.closed, status=answer.status)
    if answer.last_event is None:
        return told
    told.successor = answer.successor or ""
    body = answer.last_event.event.body
    match body:
        case e.WorkflowCompleted():
            told.result = bytes(body.result)
        case e.WorkflowFailed():
            told.error_type, told.error = body.failure.type, body.failure.message
        case e.WorkflowContinued():
            pass
        case _:
            told.error = getattr(body, "reason", "")
    return told
