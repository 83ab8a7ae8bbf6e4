"""WorkflowDispatch: one row per RPC, one line per handler."""

from __future__ import annotations

from typing import Any

from holdfast.api.grpc.calls import Call, Method
from holdfast.api.grpc.histories import LARGEST_PAGE, history_page
from holdfast.api.nouns import Nouns
from holdfast.contract.calls import UpdateStatus
from holdfast.contract.execution_reads import FindWorkflow, GetResult, GetWorkflow
from holdfast.contract.history import PAGE, GetHistory
from holdfast.errors import InvalidRequest, UpdateFailed, UpdateRejected
from holdfast.model.events import HistoryEvent
from holdfast.model.keys import Role
from holdfast.wire.grpc import dispatch as wire
from holdfast.wire.grpc import holdfast_pb2 as pb

SERVICE = "holdfast.v1.WorkflowDispatch"
LONGEST_WAIT_S = 30.0


class Dispatch:
    """The handlers. Each gets a call that was let in, and its message."""

    def __init__(self, nouns: Nouns) -> None:
        self._api = nouns.api

    def methods(self) -> tuple[Method, ...]:
        return (
            Method("ResolvePromise", pb.ResolvePromiseRequest, pb.ResolvePromiseResponse, Role.WRITER, self.resolve),
            Method("RejectPromise", pb.RejectPromiseRequest, pb.RejectPromiseResponse, Role.WRITER, self.reject),
            Method("PublishEvent", pb.PublishEventRequest, pb.PublishEventResponse, Role.WRITER, self.publish),
            Method("QueryWorkflow", pb.QueryWorkflowRequest, pb.QueryWorkflowResponse, Role.READER, self.query),
            Method("UpdateWorkflow", pb.UpdateWorkflowRequest, pb.UpdateWorkflowResponse, Role.WRITER, self.update),
            Method("GetWorkflow", pb.GetWorkflowRequest, pb.GetWorkflowResponse, Role.READER, self.get),
            Method("GetResult", pb.GetResultRequest, pb.GetResultResponse, Role.READER, self.result),
            Method("GetHistory", pb.GetHistoryRequest, pb.GetHistoryResponse, Role.READER, self.history),
            Method("ListWorkflows", pb.ListWorkflowsRequest, pb.ListWorkflowsResponse, Role.READER, self.list),
        )

    async def resolve(self, call: Call, message: Any) -> pb.ResolvePromiseResponse:
        return wire.resolved(await self._api.call(wire.resolve(message, call.org)))

    async def reject(self, call: Call, message: Any) -> pb.RejectPromiseResponse:
        return wire.rejected(await self._api.call(wire.reject(message, call.org)))

    async def publish(self, call: Call, message: Any) -> pb.PublishEventResponse:
        return wire.published(await self._api.call(wire.publish(message, call.org, call.request_id)))

    async def query(self, call: Call, message: Any) -> pb.QueryWorkflowResponse:
        return pb.QueryWorkflowResponse(result=bytes((await self._api.call(wire.query(message, call.org))).result))

    async def update(self, call: Call, message: Any) -> pb.UpdateWorkflowResponse:
        outcome = await self._api.call(wire.update(message, call.org))
        if outcome.status is not UpdateStatus.COMPLETED:
            failure = outcome.failure
            cls = UpdateRejected if outcome.status is UpdateStatus.REJECTED else UpdateFailed
            raise cls(
                failure.message if failure is not None else None,
                error_type=failure.type if failure is not None else "",
                update_id=outcome.update_id,
            )
        return pb.UpdateWorkflowResponse(update_id=outcome.update_id, result=bytes(outcome.result))

    async def get(self, call: Call, message: Any) -> pb.GetWorkflowResponse:
        if message.workflow_id and not message.workflow_execution_id:
            found = await self._api.call(FindWorkflow(org=call.org, workflow_id=message.workflow_id))
        else:
            found = await self._api.call(GetWorkflow(org=call.org, workflow_execution_id=message.workflow_execution_id))
        return pb.GetWorkflowResponse(workflow=wire.execution(found))

    async def result(self, call: Call, message: Any) -> pb.GetResultResponse:
        if not 0 <= message.wait_seconds <= LONGEST_WAIT_S:
            raise InvalidRequest(f"wait_seconds must lie between 0 and {LONGEST_WAIT_S}", field="wait_seconds")
        # Somewhat less than the limit of all calls: an answer is better than none.
        wait = min(message.wait_seconds, LONGEST_WAIT_S - 1)
        request = GetResult(org=call.org, workflow_execution_id=message.workflow_execution_id, wait=wait)
        return wire.outcome(await self._api.call(request))

    async def history(self, call: Call, message: Any) -> pb.GetHistoryResponse:
        return await history_page(self._events, call.org, message, LARGEST_PAGE)

    async def _events(self, org: str, execution_id: str, after: int, limit: int | None) -> list[HistoryEvent]:
        """One more than the page: if it does not fit into a call, two calls."""
        found: list[HistoryEvent] = []
        while limit is None or len(found) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(found))
            page = await self._api.call(
                GetHistory(org=org, workflow_execution_id=execution_id, after=after, limit=size)
            )
            found += [entry.event for entry in page.events]
            if not page.more:
                break
            after = found[-1].seq
        return found

    # Last, so that `list` means the type in the annotations above.
    async def list(self, call: Call, message: Any) -> pb.ListWorkflowsResponse:
        return wire.page(await self._api.call(wire.list_request(message, call.org)))
