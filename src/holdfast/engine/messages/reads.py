"""What there is of promises, waits and events; and a dead event published again, which has to be read first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import msgspec

from holdfast.contract.instants import instant, instant_or_none
from holdfast.contract.messages import (
    DEAD,
    KEPT,
    EventInfo,
    EventKeyInfo,
    EventList,
    GetEvent,
    GetEventKey,
    ListDeadEvents,
    ListEvents,
    ListPromises,
    ListWaits,
    ListWaitsOfKey,
    PromiseInfo,
    PromiseList,
    PublishResult,
    ReplayDeadEvent,
    SettlementInfo,
    WaitInfo,
    WaitList,
)
from holdfast.engine.api import answers
from holdfast.engine.messages.dead_events import Exhume, no_event
from holdfast.engine.unit_of_work import OperationQueue
from holdfast.model.messages import DeadEvent, EventKeyRow, PromiseRow, PublishedRow, SubscriptionKind, SubscriptionRow
from holdfast.store import reads
from holdfast.store.protocol import Store


class Messages:
    """`require` refuses if there is no such execution in an org."""

    def __init__(self, store: Store, queue: OperationQueue, require: Callable[[str, str], Awaitable[object]]) -> None:
        self._store = store
        self._submit = queue.submit
        self._require = require

    @answers(ListPromises)
    async def promises(self, request: ListPromises) -> PromiseList:
        rows = await self._store.read(reads.Promises(request.org, request.workflow_execution_id))
        if not rows:
            await self._require(request.org, request.workflow_execution_id)
        return PromiseList(promises=tuple(map(_promise, rows)))

    @answers(ListWaits)
    async def waits(self, request: ListWaits) -> WaitList:
        rows = await self._store.read(reads.Waits(request.org, request.workflow_execution_id))
        if not rows:
            await self._require(request.org, request.workflow_execution_id)
        return _waits(rows)

    @answers(ListWaitsOfKey)
    async def waits_of_key(self, request: ListWaitsOfKey) -> WaitList:
        return _waits(await self._store.read(reads.WaitsOfKey(request.org, request.kind, request.key, request.limit)))

    @answers(ListEvents)
    async def events(self, request: ListEvents) -> EventList:
        rows = await self._store.read(reads.Published(request.org, request.key, request.before, request.limit))
        return EventList(events=tuple(map(_kept, rows)))

    @answers(ListDeadEvents)
    async def dead_events(self, request: ListDeadEvents) -> EventList:
        rows = await self._store.read(
            reads.Select(
                DeadEvent, (("org", request.org), ("key", request.key)), ("-id",), request.before, request.limit
            )
        )
        return EventList(events=tuple(map(_dead, rows)))

    @answers(GetEvent)
    async def event(self, request: GetEvent) -> EventInfo:
        found = await self._store.read(reads.Published(request.org, None, request.event_id + 1, 1))
        if found and found[0].id == request.event_id:
            return _kept(found[0])
        return _dead(await self._dead_event(request.org, request.event_id, "event"))

    @answers(GetEventKey)
    async def event_key(self, request: GetEventKey) -> EventKeyInfo:
        kept = await self._store.read(reads.Row(EventKeyRow, (request.org, request.key)))
        row = kept or EventKeyRow(org=request.org, key=request.key)
        return EventKeyInfo(key=row.key, retained=row.retained, dropped=row.dropped)

    @answers(ReplayDeadEvent)
    async def replay(self, request: ReplayDeadEvent) -> PublishResult:
        event = await self._dead_event(request.org, request.event_id, "dead event")
        return await self._submit(Exhume(request, event))

    async def _dead_event(self, org: str, event_id: int, what: str) -> DeadEvent:
        found = await self._store.read(reads.Row(DeadEvent, event_id, org))
        if found is None:
            raise no_event(event_id, what)
        return found


def _promise(row: PromiseRow) -> PromiseInfo:
    by = row.settled_by
    return PromiseInfo(
        id=row.id,
        workflow_execution_id=row.execution_id,
        name=row.name,
        number=row.promise_no,
        state=row.state,
        created_at=instant(row.created_at),
        value=row.value,
        failure=row.failure,
        event_key=row.event_key,
        settled_at=instant_or_none(row.settled_at),
        settled_by=None if by is None else msgspec.convert(by, SettlementInfo, from_attributes=True),
        expires_at=instant_or_none(row.expires_at),
        shape=row.shape,
    )


def _waits(rows: Iterable[SubscriptionRow]) -> WaitList:
    return WaitList(waits=tuple(map(_wait, rows)))


def _wait(row: SubscriptionRow) -> WaitInfo:
    return WaitInfo(
        id=row.id,
        workflow_execution_id=row.execution_id,
        wait_no=row.wait_no,
        kind=row.kind,
        key=row.key,
        since=instant(row.created_at),
        where=row.where,
        correlation_key=row.eq_value if row.kind is SubscriptionKind.MESSAGE else None,
        consume_on_read=row.consume,
        promise=row.promise,
    )


def _kept(row: PublishedRow) -> EventInfo:
    return EventInfo(
        id=row.id,
        key=row.key,
        status=KEPT,
        data=row.data,
        published_at=instant(row.published_at),
        expires_at=instant(row.expires_at),
        delivered=row.delivered,
        correlation_key=row.correlation,
        created_before=row.created_before,
        consume_on_read=row.consume,
    )


def _dead(row: DeadEvent) -> EventInfo:
    return EventInfo(
        id=row.id,
        key=row.key,
        status=DEAD,
        data=row.data,
        published_at=instant(row.published_at),
        correlation_key=row.correlation,
        reason=row.reason,
        dead_at=instant(row.at),
    )
