"""Who waits for the answer to an update.

A watch is opened first, then the history is read, then the events of every commit are shown to it: whatever happens
between is seen by one of them. What other processes commit is found by `look_around`. All on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from holdfast.contract.calls import RequestUpdate, UpdateOutcome, UpdateStatus, UpdateTicket
from holdfast.engine.execution_info import no_execution
from holdfast.errors import ExecutionClosed, RequestMismatch, UpdateNotFound
from holdfast.model import events as e
from holdfast.model.values import NULL, Failure, Payload
from holdfast.store import reads
from holdfast.store.protocol import Store

WATCHED = (
    e.UpdateRequested.TYPE,
    e.UpdateAccepted.TYPE,
    e.UpdateRejected.TYPE,
    e.UpdateCompleted.TYPE,
    e.UpdateFailed.TYPE,
    *(name for name, cls in e.EVENT_TYPES.items() if cls.TERMINAL),
)


class Watch:
    """What is known of one update in one execution. Events may be shown more than once and in any order.

    `seen` is the number up to which the history was read for it.
    """

    __slots__ = ("_wait_for", "closed_by", "done", "failure", "org", "result", "seen", "status", "update_id")

    def __init__(self, org: str, update_id: str, seen: int, wait_for: UpdateStatus, done: asyncio.Future[None]) -> None:
        self.org = org
        self.update_id = update_id
        self.seen = seen
        self.done = done
        self.status: UpdateStatus | None = None
        self.result: Payload = NULL
        self.failure: Failure | None = None
        self.closed_by: e.EventBody | None = None
        self._wait_for = wait_for

    @property
    def reached(self) -> bool:
        """Whether the update has got as far as the caller wants."""
        if self.status is None or self.status.is_final:
            return self.status is not None
        if self._wait_for is UpdateStatus.ACCEPTED:
            return self.status is UpdateStatus.ACCEPTED
        return self._wait_for is UpdateStatus.REQUESTED and self.closed_by is None

    def show(self, events: Iterable[e.HistoryEvent]) -> None:
        for event in events:
            if event.body.TERMINAL:
                self.closed_by = event.body
            elif getattr(event.body, "update_id", None) == self.update_id:
                self._take(event.body)
        if (self.reached or self.closed_by is not None) and not self.done.done():
            self.done.set_result(None)

    def _take(self, body: e.EventBody) -> None:
        if self.status is not None and self.status.is_final:
            return
        match body:
            case e.UpdateRequested():
                self.status = self.status or UpdateStatus.REQUESTED
            case e.UpdateAccepted():
                self.status = UpdateStatus.ACCEPTED
            case e.UpdateRejected():
                self.status, self.failure = UpdateStatus.REJECTED, body.failure
            case e.UpdateCompleted():
                self.status, self.result = UpdateStatus.COMPLETED, body.result
            case e.UpdateFailed():
                self.status, self.failure = UpdateStatus.FAILED, body.failure


class Updates:
    """The watches of this process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watches: dict[str, list[Watch]] = {}

    async def outcome(self, org: str, ticket: UpdateTicket, wait_for: UpdateStatus) -> UpdateOutcome:
        """How far the update has got, once that is far enough. A run that continued as new hands it to the next."""
        execution_id, after = ticket.workflow_execution_id, max(0, ticket.update_event_sequence - 1)
        closed: UpdateOutcome | None = None
        while True:
            watch = await self._watched(org, execution_id, ticket.update_id, after, wait_for)
            if watch.status is None:
                return closed or await self._not_found(org, execution_id, ticket.update_id)
            if watch.reached:
                return UpdateOutcome(
                    workflow_execution_id=execution_id,
                    update_id=watch.update_id,
                    status=watch.status,
                    result=watch.result,
                    failure=watch.failure,
                )
            assert watch.closed_by is not None, "a watch ends when it is reached or the execution is closed"
            closed = _closed_first(execution_id, watch, watch.closed_by)
            successor = _successor(watch.closed_by)
            if successor is None:
                return closed
            execution_id, after = successor, 0

    async def _watched(self, org: str, execution_id: str, update_id: str, after: int, wait_for: UpdateStatus) -> Watch:
        watch = Watch(org, update_id, after, wait_for, asyncio.get_running_loop().create_future())
        self._watches.setdefault(execution_id, []).append(watch)
        try:
            watch.show(await self._store.read(reads.History(org, execution_id, after, types=WATCHED)))
            if watch.status is not None:
                await watch.done
                if not watch.reached:
                    # Closed, as a commit of this process says; what others had committed before it may be new here.
                    watch.show(await self._store.read(reads.History(org, execution_id, after, types=WATCHED)))
        finally:
            self._forget(execution_id, watch)
            if watch.done.done() and not watch.done.cancelled():
                # Read in every case: an exception nobody looks at is printed when it is dropped.
                watch.done.exception()
        return watch

    def _forget(self, execution_id: str, watch: Watch) -> None:
        watches = self._watches.get(execution_id)
        if watches is not None and watch in watches:
            watches.remove(watch)
            if not watches:
                del self._watches[execution_id]

    async def _not_found(self, org: str, execution_id: str, update_id: str) -> UpdateOutcome:
        if not await self._store.read(reads.Executions(org, [execution_id])):
            raise no_execution(org, execution_id)
        raise UpdateNotFound(
            f"execution {execution_id} has no update {update_id!r}: check the id, or request it",
            execution_id=execution_id,
            update_id=update_id,
        )

    async def requested(self, request: RequestUpdate, update_id: str) -> UpdateTicket | None:
        """The same update of the same execution, if it was asked for before."""
        org, execution_id = request.org, request.workflow_execution_id
        for event in await self._store.read(reads.History(org, execution_id, types=(e.UpdateRequested.TYPE,))):
            body = event.body
            if isinstance(body, e.UpdateRequested) and body.update_id == update_id:
                if (body.update_name, bytes(body.input)) != (request.update_name, bytes(request.input)):
                    raise RequestMismatch(
                        f"update id {update_id!r} was used for another update of execution {execution_id}: send a new "
                        "id",
                        request_id=update_id,
                    )
                return UpdateTicket(execution_id, update_id, event.seq)
        return None

    # --- what happens ---

    def committed(self, appended: Mapping[str, Sequence[e.HistoryEvent]]) -> None:
        """A batch of this process has been written."""
        if not self._watches:
            return
        for execution_id in self._watches.keys() & appended.keys():
            for watch in self._watches[execution_id]:
                watch.show(appended[execution_id])

    async def look_around(self) -> None:
        """Other processes have written: read on, where a watched execution has got events."""
        for org in {watch.org for watches in self._watches.values() for watch in watches}:
            heads = await self._store.read(reads.Executions(org, list(self._watches)))
            for head in heads.values():
                await self._read_on(org, head.id, head.last_seq)

    async def _read_on(self, org: str, execution_id: str, last_seq: int) -> None:
        seen = min((watch.seen for watch in self._watches.get(execution_id, ())), default=last_seq)
        if last_seq <= seen:
            return
        events = await self._store.read(reads.History(org, execution_id, seen, types=WATCHED))
        for watch in self._watches.get(execution_id, ()):
            watch.show(events)
            watch.seen = max(watch.seen, last_seq)

    def stop(self, error: BaseException) -> None:
        for watches in self._watches.values():
            for watch in watches:
                if not watch.done.done():
                    watch.done.set_exception(error)
        self._watches.clear()


def _successor(closed_by: e.EventBody) -> str | None:
    """The execution that goes on in its place."""
    match closed_by:
        case e.WorkflowContinued():
            return closed_by.new_execution_id
        case e.WorkflowTerminated():
            return closed_by.successor
    return None


def _closed_first(execution_id: str, watch: Watch, closed_by: e.EventBody) -> UpdateOutcome:
    how = "before it was done" if watch.status is UpdateStatus.ACCEPTED else "before it had seen the update"
    return UpdateOutcome(
        workflow_execution_id=execution_id,
        update_id=watch.update_id,
        status=UpdateStatus.FAILED,
        failure=Failure(
            type=ExecutionClosed.__name__,
            code=ExecutionClosed.code,
            message=f"execution {execution_id} closed ({closed_by.TYPE}) {how}",
        ),
    )
