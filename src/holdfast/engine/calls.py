"""Calls into programs: a query is put to a worker, an update is requested and waited for."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.calls import (
    GetUpdate,
    QueryExecution,
    QueryResult,
    RequestUpdate,
    UpdateOutcome,
    UpdateStatus,
    UpdateTicket,
)
from holdfast.engine.api import answers
from holdfast.engine.execution_reads import ExecutionReads, within
from holdfast.engine.executions.update import Update
from holdfast.engine.queries import Queries
from holdfast.engine.unit_of_work import OperationQueue
from holdfast.engine.updates import Updates


class Calls:
    def __init__(
        self,
        reads: ExecutionReads,
        queue: OperationQueue,
        queries: Queries,
        updates: Updates,
    ) -> None:
        self._reads = reads
        self._queue = queue
        self._queries = queries
        self._updates = updates

    @answers(QueryExecution)
    async def query(self, request: QueryExecution) -> QueryResult:
        execution = await self._reads.row(request.org, request.workflow_execution_id)
        return QueryResult(result=await self._queries.ask(request, execution))

    @answers(RequestUpdate)
    async def update(self, request: RequestUpdate) -> UpdateOutcome:
        ticket = await self._requested(request)
        if request.wait_for is UpdateStatus.REQUESTED:
            return UpdateOutcome(
                workflow_execution_id=ticket.workflow_execution_id,
                update_id=ticket.update_id,
                status=UpdateStatus.REQUESTED,
                update_event_sequence=ticket.update_event_sequence,
            )
        return await self._outcome(request.org, ticket, request.wait_for, request.wait)

    async def _requested(self, request: RequestUpdate) -> UpdateTicket:
        given = request.update_id if request.update_id is not None else request.request_id
        if given is None:
            made = f"{self._queue.entropy():016x}"
            return await self._queue.submit(Update(structs.replace(request, update_id=made, request_id=None)))
        # A request id is forgotten after a while; the history is not.
        earlier = await self._updates.requested(request, given)
        if earlier is not None:
            return earlier
        key = f"update:{request.workflow_execution_id}:{given}"
        return await self._queue.submit(Update(structs.replace(request, update_id=given, request_id=key)))

    @answers(GetUpdate)
    async def outcome(self, request: GetUpdate) -> UpdateOutcome:
        ticket = UpdateTicket(request.workflow_execution_id, request.update_id, request.sequence)
        return await self._outcome(request.org, ticket, request.wait_for, request.wait)

    async def _outcome(self, org: str, ticket: UpdateTicket, wait_for: UpdateStatus, wait: float) -> UpdateOutcome:
        outcome = await within(self._updates.outcome(org, ticket, wait_for), wait) if wait else None
        if outcome is None:
            outcome = await self._updates.outcome(org, ticket, UpdateStatus.REQUESTED)
        return structs.replace(outcome, update_event_sequence=ticket.update_event_sequence or None)
