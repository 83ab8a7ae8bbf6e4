"""Published events, messages and broadcasts: who waits, who gets what, what is kept.

A wait and the events that are kept for it are decided in one transaction, as are an event and the waits that are there
for it: no order of the two can miss or double. All three draw their numbers from one sequence, so that a number tells
which was first.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.engine.rules import promises
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.starting import Beginning, begin, new_execution_id
from holdfast.engine.rules.workspace import Workspace
from holdfast.expressions import compile_filter, equality_key
from holdfast.expressions.lookups import path_text
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.executions import Execution
from holdfast.model.messages import (
    DeadEvent,
    DeliveryRow,
    EventKeyRow,
    PromiseState,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
    TriggerRow,
)
from holdfast.model.values import MICRO, NULL, Delivery, Payload, Settlement
from holdfast.store.protocol import LookBack

PAGE = 1_000
LOOK_BACK = 10_000
EVENT_KINDS = frozenset({SubscriptionKind.EVENT, SubscriptionKind.MESSAGE})


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """Something on its way to those who wait for it."""

    org: str
    kind: SubscriptionKind
    key: str
    data: Payload = NULL
    correlation: str | None = None
    expire_after_s: float | None = None
    delivery: Delivery = Delivery.WAITERS
    consume: bool = False
    idempotency_key: str | None = None


class Sent(msgspec.Struct, frozen=True):
    id: int
    delivered: int
    retained: bool
    started: tuple[str, ...]
    done: bool


def next_id(ws: Workspace) -> int:
    ws.loaded.last_id += 1
    ws.changes.last_id = ws.loaded.last_id
    return ws.loaded.last_id


# --- waiting ------------------------------------------------------------------------------------------------------


def subscribe(ws: Workspace, execution: Execution, event: e.WaitStarted) -> None:
    """Wait from now on, unless something that is kept settles the wait at once."""
    kind = SubscriptionKind(event.kind)
    if event.since_at is not None and kind in EVENT_KINDS:
        wanted = look_back_of(execution.org, event)
        found = _found_back(ws, execution, wanted, event.where)
        if found is not None:
            take_kept(ws, found, consume=event.consume or kind is SubscriptionKind.MESSAGE)
            ws.afterwards.append(lambda: _give_kept(ws, execution, event, found))
            return
    path, value = _demand(event.where)
    if kind is SubscriptionKind.MESSAGE:
        path, value = "", event.correlation or ""
    ws.add_wait(
        execution,
        SubscriptionRow(
            id=next_id(ws),
            execution_id=execution.id,
            wait_no=event.wait_no,
            org=execution.org,
            kind=kind,
            key=event.key,
            created_at=ws.now,
            eq_path=path,
            eq_value=value,
            where=event.where,
            consume=event.consume or kind is SubscriptionKind.MESSAGE,
        ),
    )


def subscribe_promise(ws: Workspace, execution: Execution, event: e.PromiseCreated) -> None:
    """A promise that the next event of its key settles, too."""
    promise = ws.loaded.promises.get((execution.id, event.name))
    if event.event_key is None or promise is None or promise.state is not PromiseState.PENDING:
        return
    ws.add_wait(
        execution,
        SubscriptionRow(
            id=next_id(ws),
            execution_id=execution.id,
            wait_no=-event.promise_no,
            org=execution.org,
            kind=SubscriptionKind.EVENT,
            key=event.event_key,
            created_at=ws.now,
            promise=event.name,
        ),
    )


def look_back_of(org: str, wait: e.WaitStarted | c.StartWait) -> LookBack:
    """What a wait that looks back wants to see."""
    return LookBack(
        org=org,
        key=wait.key,
        correlation=wait.correlation,
        since_at=wait.since_at or 0,
        after=wait.after_event_id,
        limit=LOOK_BACK,
    )


def _found_back(ws: Workspace, execution: Execution, wanted: LookBack, where: str | None) -> PublishedRow | None:
    """The oldest kept event that the wait may have; those published earlier in this very batch count, too."""
    known = ws.loaded.look_backs.get(wanted, [])
    fresh = [
        event
        for event in ws.changes.published.values()
        if (event.org, event.key, event.correlation) == (wanted.org, wanted.key, wanted.correlation)
        and event.id > wanted.after
        and event.published_at >= wanted.since_at
    ]
    for event in {event.id: event for event in (*known, *fresh)}.values():
        if event.id not in ws.loaded.published or event.expires_at <= ws.now:
            continue
        if event.created_before and execution.created_at >= event.published_at:
            continue
        if _satisfies(where, event.data):
            return event
    return None


def _give_kept(ws: Workspace, execution: Execution, wait: e.WaitStarted, event: PublishedRow) -> None:
    ws.append(
        execution,
        e.EventReceived(
            wait_no=wait.wait_no,
            key=event.key,
            event_id=event.id,
            data=event.data,
            correlation=event.correlation,
        ),
    )
    wake(ws, execution)


def take_kept(ws: Workspace, event: PublishedRow, *, consume: bool) -> None:
    """A kept event was given to somebody; perhaps nobody else may have it."""
    event.delivered += 1
    if consume or event.consume:
        forget(ws, event)
    else:
        ws.changes.published[event.id] = event


def forget(ws: Workspace, event: PublishedRow) -> None:
    ws.loaded.published.pop(event.id, None)
    ws.changes.published.pop(event.id, None)
    ws.changes.deleted_published.append(event.id)
    counted = ws.loaded.event_keys.get((event.org, event.key))
    if counted is not None:
        counted.retained = max(counted.retained - 1, 0)
        ws.changes.event_keys[event.org, event.key] = counted


def _demand(where: str | None) -> tuple[str | None, str | None]:
    """An equality that the filter demands, to search by."""
    if where is None:
        return None, None
    for equality in compile_filter(where).required_equalities():
        text = equality_key(equality.value)
        if text is not None:
            return path_text(equality.path), text
    return None, None


def _satisfies(where: str | None, data: Payload) -> bool:
    return where is None or compile_filter(where).matches(msgspec.json.decode(data))


# --- sending ------------------------------------------------------------------------------------------------------


def send(ws: Workspace, sending: Sending, candidates: list[int] | None, number: int = 0) -> Sent:
    """Give it to those who wait, the longest waiting first; keep it for those who look back; start what it starts.

    Without `candidates` those who wait are not known: all of them are reached page by page.
    """
    number = number or next_id(ws)
    unknown = candidates is None
    candidates = candidates or []
    fresh = [
        row.id
        for row in ws.changes.new_subscriptions
        if (row.org, row.kind, row.key) == (sending.org, sending.kind, sending.key)
        and (sending.correlation is None or row.eq_value == sending.correlation)
    ]
    delivered, consumed, _ = _hand_out(ws, sending, number, (*candidates, *fresh))
    done = consumed or (len(candidates) < PAGE and not unknown)
    if not done:
        _put_off(ws, sending, number, delivered, cursor=candidates[-1] if candidates else 0)
    retained = not consumed and sending.kind in EVENT_KINDS and sending.delivery is not Delivery.WAITERS
    if retained:
        _keep(ws, sending, number, delivered)
    started = _start(ws, sending) if sending.kind is SubscriptionKind.EVENT and not consumed else ()
    return Sent(number, delivered, retained, started, done)


def _hand_out(ws: Workspace, sending: Sending, number: int, candidates: Iterable[int]) -> tuple[int, bool, int]:
    """How many got it, whether one of them has used it up, and the last wait that was looked at."""
    delivered = last = 0
    for wait_id in candidates:
        last = wait_id
        wait = ws.loaded.subscriptions.get(wait_id)
        if wait is None or not _satisfies(wait.where, sending.data):
            continue
        execution = ws.loaded.executions.get(wait.execution_id)
        if execution is None or not execution.is_open:
            continue
        _deliver(ws, execution, wait, sending, number)
        delivered += 1
        if sending.consume or wait.consume:
            return delivered, True, last
    return delivered, False, last


def _deliver(ws: Workspace, execution: Execution, wait: SubscriptionRow, sending: Sending, number: int) -> None:
    if wait.promise is not None:
        promise = ws.loaded.promises.get((execution.id, wait.promise))
        if promise is not None:
            by = Settlement(by="event", idempotency_key=sending.idempotency_key, event_id=number)
            settled = promises.Settled(PromiseState.RESOLVED, value=sending.data, by=by)
            promises.settle(ws, execution, promise, settled)
        return
    ws.drop_wait(execution, wait.wait_no)
    if sending.kind is SubscriptionKind.BROADCAST:
        body: e.EventBody = e.BroadcastReceived(wait_no=wait.wait_no, name=sending.key, broadcast_id=number)
    else:
        body = e.EventReceived(
            wait_no=wait.wait_no,
            key=sending.key,
            event_id=number,
            data=sending.data,
            correlation=sending.correlation,
        )
    ws.append(execution, body)
    wake(ws, execution)


def _put_off(ws: Workspace, sending: Sending, number: int, delivered: int, *, cursor: int) -> None:
    """More wait for it than one transaction should reach: the rest gets it page by page."""
    ws.changes.deliveries[number] = DeliveryRow(
        id=number,
        org=sending.org,
        kind=sending.kind,
        key=sending.key,
        data=sending.data,
        sent_at=ws.now,
        cursor=cursor,
        bound=number,
        delivered=delivered,
        consume=sending.consume,
    )
    ws.expect(ws.now)


def go_on(ws: Workspace, delivery: DeliveryRow, page: list[int], *, full: bool) -> None:
    """The next page of one that was put off."""
    sending = Sending(
        org=delivery.org, kind=delivery.kind, key=delivery.key, data=delivery.data, consume=delivery.consume
    )
    delivered, consumed, last = _hand_out(ws, sending, delivery.id, page)
    delivery.delivered += delivered
    delivery.cursor = max(delivery.cursor, last)
    if consumed or not full:
        delivery.done_at = ws.now
        ws.delivered.append(delivery)
    else:
        ws.expect(ws.now)
    ws.changes.deliveries[delivery.id] = delivery
    kept = ws.loaded.published.get(delivery.id)
    if kept is not None and delivered:
        kept.delivered += delivered
        ws.changes.published[kept.id] = kept


def _keep(ws: Workspace, sending: Sending, number: int, delivered: int) -> None:
    ttl_s = ws.config.event_retention_s if sending.expire_after_s is None else sending.expire_after_s
    event = PublishedRow(
        id=number,
        org=sending.org,
        key=sending.key,
        data=sending.data,
        published_at=ws.now,
        expires_at=ws.now + int(ttl_s * MICRO),
        correlation=sending.correlation,
        created_before=sending.delivery is Delivery.CREATED_BEFORE,
        consume=sending.consume,
        delivered=delivered,
    )
    ws.loaded.published[number] = ws.changes.published[number] = event
    at = (sending.org, sending.key)
    counted = ws.loaded.event_keys.setdefault(at, EventKeyRow(org=sending.org, key=sending.key))
    counted.retained += 1
    ws.changes.event_keys[at] = counted
    oldest = ws.loaded.oldest.get(at, [])
    while counted.retained > ws.config.limits.events_per_key and oldest:
        victim = oldest.pop(0)
        if victim.id in ws.loaded.published:
            drop(ws, victim, "dropped")
            counted.dropped += 1


def drop(ws: Workspace, event: PublishedRow, reason: str) -> None:
    """Kept no longer. If nobody ever got it, somebody may want to know."""
    forget(ws, event)
    if not event.delivered:
        ws.changes.dead_events.append(
            DeadEvent(
                id=event.id,
                org=event.org,
                key=event.key,
                data=event.data,
                published_at=event.published_at,
                correlation=event.correlation,
                reason=reason,
                at=ws.now,
            )
        )


def _start(ws: Workspace, sending: Sending) -> tuple[str, ...]:
    """Begin the workflows that events of this key start."""
    triggers = ws.loaded.triggers.get((sending.org, sending.key), [])
    return tuple(_begin(ws, sending, trigger) for trigger in triggers if _satisfies(trigger.where, sending.data))


def _begin(ws: Workspace, sending: Sending, trigger: TriggerRow) -> str:
    new_id = new_execution_id(ws)
    begin(
        ws,
        Beginning(
            org=sending.org,
            kind=trigger.kind,
            version=trigger.version,
            execution_id=new_id,
            workflow_id=new_id,
            key=False,
            input=sending.data,
            queue=trigger.queue,
        ),
    )
    return new_id
