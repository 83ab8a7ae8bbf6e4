"""Executions, looked at: one, lists, how they ended, their pending tasks and timers, their state, their history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection, Sequence
from math import isinf
from typing import TypeVar

from holdfast.contract.execution_reads import (
    CountExecutions,
    ExecutionInfo,
    FindWorkflow,
    GetResult,
    GetState,
    GetWorkflow,
    ListExecutions,
    ListPendingTasks,
    ListPendingTimers,
    TaskList,
    TimerList,
    WorkflowCounts,
    WorkflowPage,
    WorkflowResult,
    WorkflowState,
)
from holdfast.contract.history import GetHistory, History, HistoryEntry, StreamHistory, entry_of
from holdfast.contract.instants import micros_or_none
from holdfast.engine.api import answers
from holdfast.engine.cursors import Cursors
from holdfast.engine.execution_info import (
    WITHOUT_RESULT,
    execution_info,
    no_execution,
    pending_task,
    pending_timer,
    workflow_result,
)
from holdfast.engine.feeds import LocalFeeds
from holdfast.engine.outcomes import Outcomes
from holdfast.engine.queries import check_as_of
from holdfast.engine.rules.workspace import Outcome
from holdfast.errors import ExecutionNotFound
from holdfast.model.events import HistoryEvent, StateChanged
from holdfast.model.executions import DEADLINE_NO, Execution
from holdfast.model.values import Payload
from holdfast.store import reads
from holdfast.store.protocol import Store

T = TypeVar("T")


class ExecutionReads:
    def __init__(self, store: Store, outcomes: Outcomes, feeds: LocalFeeds, cursors: Cursors) -> None:
        self._store = store
        self._outcomes = outcomes
        self._feeds = feeds
        self._cursors = cursors

    # --- one ---

    async def row(self, org: str, execution_id: str) -> Execution:
        found = (await self._store.read(reads.Executions(org, [execution_id]))).get(execution_id)
        if found is None:
            raise no_execution(org, execution_id)
        return found

    @answers(GetWorkflow)
    async def get(self, request: GetWorkflow) -> ExecutionInfo:
        (info,) = await self._infos(request.org, [await self.row(request.org, request.workflow_execution_id)])
        return info

    @answers(FindWorkflow)
    async def find(self, request: FindWorkflow) -> ExecutionInfo:
        org, workflow_id = request.org, request.workflow_id
        found = await self._store.read(reads.ExecutionByWorkflowId(org, workflow_id))
        if found is None:
            raise ExecutionNotFound(
                f"no execution has workflow id {workflow_id!r} in org {org!r}", workflow_id=workflow_id
            )
        (info,) = await self._infos(org, [found])
        return info

    async def _infos(self, org: str, rows: Sequence[Execution]) -> tuple[ExecutionInfo, ...]:
        """One read more if any of them ended without a result: the last event says why."""
        ended = [row.id for row in rows if row.status in WITHOUT_RESULT]
        last = await self._store.read(reads.LastEvents(org, ended)) if ended else {}
        return tuple(execution_info(row, last.get(row.id)) for row in rows)

    # --- many ---

    @answers(CountExecutions)
    async def count(self, request: CountExecutions) -> WorkflowCounts:
        counts = await self._store.read(reads.CountExecutions(request.org))
        return WorkflowCounts(counts=counts, total=sum(counts.values()))

    # --- how it ended ---

    @answers(GetResult)
    async def result(self, request: GetResult) -> WorkflowResult:
        org, execution_id = request.org, request.workflow_execution_id
        outcome = await within(self.outcome(org, execution_id), request.wait) if request.wait else None
        if outcome is None:
            row = await self.row(org, execution_id)
            if row.is_open:
                return WorkflowResult(workflow_execution_id=execution_id, status=row.status, closed=False)
            outcome = await self._ended(row)
        return workflow_result(execution_id, outcome)

    async def outcome(self, org: str, execution_id: str) -> Outcome:
        """Waits until the execution is closed."""
        outcomes, key = self._outcomes, (org, execution_id)
        known_open = outcomes.known_open(key)
        recent = None if known_open else outcomes.recent(key)
        if recent is not None:
            return recent
        # Wait first, look second: an end between the two is then seen by one of them.
        waiter = outcomes.wait(key, asyncio.get_running_loop())
        try:
            if not known_open:
                row = await self.row(org, execution_id)
                if not row.is_open:
                    return await self._ended(row)
            return await waiter
        finally:
            if not waiter.done() or waiter.cancelled():
                outcomes.forget(key, waiter)

    async def _ended(self, row: Execution) -> Outcome:
        last = await self._store.read(reads.LastEvents(row.org, [row.id]))
        return Outcome(row.status, last[row.id])

    # --- what belongs to it ---

    @answers(ListPendingTasks)
    async def tasks(self, request: ListPendingTasks) -> TaskList:
        found = await self._store.read(reads.Tasks(request.org, request.workflow_execution_id))
        await self._known(found, request.org, request.workflow_execution_id)
        return TaskList(tasks=tuple(map(pending_task, found)))

    @answers(ListPendingTimers)
    async def timers(self, request: ListPendingTimers) -> TimerList:
        found = await self._store.read(reads.Timers(request.org, request.workflow_execution_id))
        await self._known(found, request.org, request.workflow_execution_id)
        return TimerList(timers=tuple(pending_timer(row) for row in found if row.timer_no != DEADLINE_NO))

    async def _known(self, found: Collection[object], org: str, execution_id: str) -> None:
        """Nothing may have been found because there is no such execution."""
        if not found:
            await self.row(org, execution_id)

    @answers(GetState)
    async def state(self, request: GetState) -> WorkflowState:
        org, execution_id, as_of = request.org, request.workflow_execution_id, request.as_of
        check_as_of(as_of, await self.row(org, execution_id))
        state: dict[str, Payload] = {}
        for event in await self._store.read(reads.History(org, execution_id, types=(StateChanged.TYPE,))):
            if isinstance(event.body, StateChanged) and (as_of is None or event.seq <= as_of):
                state.update(event.body.values)
                for key in event.body.removed:
                    state.pop(key, None)
        return WorkflowState(state=state)

    # --- its history ---

    @answers(GetHistory)
    async def history(self, request: GetHistory) -> History:
        events = await self._page(request)
        if not events and request.wait:
            await within(self._appended(request), request.wait)
            events = await self._page(request)
        await self._known(events, request.org, request.workflow_execution_id)
        return History(events=tuple(map(entry_of, events)), more=len(events) == request.limit)

    async def _page(self, request: GetHistory) -> Sequence[HistoryEvent]:
        org, execution_id = request.org, request.workflow_execution_id
        return await self._store.read(reads.History(org, execution_id, request.after, request.limit, request.types))

    async def _appended(self, request: GetHistory) -> None:
        """Until there are events after a number, of the wanted types."""
        wanted = set(request.types)
        async for events in self._feeds.history(request.org, request.workflow_execution_id, request.after):
            if not wanted or any(event.type in wanted for event in events):
                return

    @answers(StreamHistory)
    async def follow(self, request: StreamHistory) -> AsyncIterator[list[HistoryEntry]]:
        async for events in self._feeds.history(request.org, request.workflow_execution_id, request.after):
            yield [entry_of(event) for event in events]

    # Last, so that `list` means the type in the annotations above.
    @answers(ListExecutions)
    async def list(self, request: ListExecutions) -> WorkflowPage:
        found = await self._store.read(
            reads.ListExecutions(
                org=request.org,
                statuses=request.statuses,
                kinds=request.kinds,
                workflow_id=request.workflow_id,
                queue=request.queue,
                metadata=tuple(sorted(request.metadata.items())),
                created_from=micros_or_none(request.created_from),
                created_before=micros_or_none(request.created_before),
                before=self._cursors.read(request),
                limit=request.limit + 1,
            )
        )
        page, more = found[: request.limit], len(found) > request.limit
        infos = await self._infos(request.org, page)
        return WorkflowPage(infos, self._cursors.make(request, page[-1].id) if more else None)


async def within(waiting: Awaitable[T], seconds: float) -> T | None:
    """What is waited for, or None when it takes longer."""
    if isinf(seconds):
        return await waiting
    try:
        async with asyncio.timeout(seconds):
            return await waiting
    except TimeoutError:
        return None
