"""Published events, messages and broadcasts: who waits, who gets what, what is kept.

A wait and the events that are kept for it are decided in one transaction, as are an event and the waits that are there
for it: no order of the two can miss or double. All three draw their numbers from one sequence, so that a number tells
which was first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec import structs

from holdfast.engine.rules import promises
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.look_backs import FreshEvents, Tester, demand_of, key_of, question_of
from holdfast.engine.rules.starting import Beginning, begin, new_execution_id
from holdfast.engine.rules.workspace import Workspace
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

PAGE = 1_000
STEPS = 1_000_000
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
    """Wait from now on. What is kept for those who look back is looked at when the turn's own rows are written."""
    kind = SubscriptionKind(event.kind)
    path, value = demand_of(event.where) or (None, None)
    if kind is SubscriptionKind.MESSAGE:
        path, value = "", event.correlation or ""
    wait = SubscriptionRow(
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
    )
    ws.add_wait(execution, wait)
    if event.since_at is not None and kind in EVENT_KINDS:
        ws.questions[wait.id] = question_of(event)
        ws.looking_back.append(lambda: _look_back(ws, execution, event, wait))


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


def _look_back(ws: Workspace, execution: Execution, event: e.WaitStarted, wait: SubscriptionRow) -> None:
    """Settle a new wait with the oldest kept event that it may have, if the same turn has not given it up.

    One that is still on its way to others may be used up by one of them: the wait then joins those it goes to.
    """
    if wait.id not in ws.loaded.subscriptions:
        return
    found = _found_back(ws, execution, event)
    if found is None:
        return
    if found.id in ws.loaded.under_way.get((wait.org, wait.kind, wait.key), ()):
        _join(ws, wait, found.id)
        return
    ws.drop_wait(execution, wait.wait_no)
    take_kept(ws, found, consume=wait.consume)
    received = ws.append(
        execution,
        e.EventReceived(
            wait_no=wait.wait_no, key=found.key, event_id=found.id, data=found.data, correlation=found.correlation
        ),
    )
    if wait.consume or found.consume:
        execution.call_seq = received.seq
    wake(ws, execution)


def _join(ws: Workspace, wait: SubscriptionRow, number: int) -> None:
    """The wait of this batch gets in line for an event that was published before it began."""
    joined = structs.replace(wait, joins=number)
    ws.loaded.subscriptions[wait.id] = ws.changes.new_subscriptions[wait.id] = joined


def _found_back(ws: Workspace, execution: Execution, wait: e.WaitStarted) -> PublishedRow | None:
    """The oldest kept event that the wait may have; those published earlier in this very batch count, too."""
    at, question = key_of(execution.org, wait), question_of(wait)
    for event in ws.loaded.look_backs.get(at, {}).get(question, ()):
        if _may_have(ws, wait, event):
            return event
    fresh = ws.fresh_events.get(at)
    for event, tester in fresh.about(demand_of(wait.where)) if fresh is not None else ():
        if (
            _may_have(ws, wait, event)
            and question.admits(event.id, event.published_at)
            and tester.satisfies(wait.where)
        ):
            return event
    return None


def _may_have(ws: Workspace, wait: e.WaitStarted, event: PublishedRow) -> bool:
    """Whether it is still there, and there for an execution of this age."""
    if event.id not in ws.loaded.published or event.expires_at <= ws.now:
        return False
    return not event.created_before or event.id > wait.born


def take_kept(ws: Workspace, event: PublishedRow, *, consume: bool) -> None:
    """A kept event was given to somebody; perhaps nobody else may have it."""
    event.delivered += 1
    if consume or event.consume:
        forget(ws, event)
    else:
        ws.changes.published[event.id] = event


def forget(ws: Workspace, event: PublishedRow) -> None:
    """Its row goes; what becomes of the event is another matter."""
    ws.loaded.published.pop(event.id, None)
    ws.changes.published.pop(event.id, None)
    ws.changes.deleted_published.append(event.id)
    counted = ws.get(EventKeyRow, (event.org, event.key))
    if counted is not None:
        counted.retained = max(counted.retained - 1, 0)
        ws.put(counted)


# --- sending ------------------------------------------------------------------------------------------------------


def send(ws: Workspace, sending: Sending, candidates: list[int] | None, number: int = 0) -> Sent:
    """Give it to those who wait, the longest waiting first; keep it for those who look back; start what it starts.

    Without `candidates` those who wait are not known: all of them are reached page by page. So they are while an
    earlier one is on its way to the same key: nobody may get the later one first.
    """
    number = number or next_id(ws)
    bound = number if sending.kind in EVENT_KINDS else ws.loaded.last_id + 1
    tester = Tester(sending.data)
    delivered = cursor = 0
    consumed = done = False
    if candidates is not None and (sending.org, sending.kind, sending.key) not in ws.loaded.under_way:
        handing = Round(sending, tester, number, bound)
        delivered, consumed, cursor, cut = _hand_out(ws, handing, candidates)
        done = consumed or (len(candidates) < PAGE and not cut)
        if done and not consumed:
            more, consumed, last, cut = _hand_out(ws, handing, _new_waits(ws, sending, tester))
            delivered += more
            cursor, done = max(cursor, last), not cut
    started: tuple[str, ...] = ()
    if not consumed and (done or not sending.consume):
        started = _start(ws, sending, tester, number)
        consumed = bool(started) and sending.consume
    retained = not consumed and sending.kind in EVENT_KINDS and sending.delivery is not Delivery.WAITERS
    retained = retained and ws.config.limits.events_per_key > 0
    if retained:
        _keep(ws, sending, number, delivered + len(started))
    if not done:
        _put_off(ws, sending, number, delivered, cursor=cursor, bound=bound, kept=retained)
    return Sent(number, delivered, retained, started, done)


def _new_waits(ws: Workspace, sending: Sending, tester: Tester) -> list[int]:
    """Waits of this very batch that it may be for."""
    found: list[int] = []
    for demand, waits in ws.fresh_waits.get((sending.org, sending.kind, sending.key), {}).items():
        if demand is None or _value_at(sending, tester, demand[0]) == demand[1]:
            found += waits
    return sorted(found)


def _value_at(sending: Sending, tester: Tester, path: str) -> str | None:
    return tester.value_at(path) if sending.correlation is None else sending.correlation


class Round(NamedTuple):
    """One round of handing out: to waits with numbers below `bound`, and to those that have asked for the past."""

    sending: Sending
    tester: Tester
    number: int
    bound: int


class Handed(NamedTuple):
    """How many got it, whether one of them has used it up, the last wait that was looked at, and whether it stopped
    there because the filters had taken too much for one transaction."""

    delivered: int = 0
    consumed: bool = False
    last: int = 0
    cut: bool = False


def _hand_out(ws: Workspace, handing: Round, candidates: Iterable[int]) -> Handed:
    sending, tester, number, bound = handing
    delivered = last = 0
    for wait_id in candidates:
        if tester.steps > STEPS:
            return Handed(delivered, False, last, True)
        last = wait_id
        wait = ws.loaded.subscriptions.get(wait_id)
        if wait is None or not _in_time(ws, wait, number, bound) or not tester.satisfies(wait.where):
            continue
        execution = ws.loaded.executions.get(wait.execution_id)
        if execution is None or not execution.is_open:
            continue
        if not _deliver(ws, execution, wait, handing):
            continue
        delivered += 1
        if sending.consume or wait.consume:
            return Handed(delivered, True, last)
    return Handed(delivered, False, last)


def _in_time(ws: Workspace, wait: SubscriptionRow, number: int, bound: int) -> bool:
    """Whether the wait was there when it was sent, or has asked for the past."""
    if wait.id < bound or (wait.joins is not None and wait.joins <= number):
        return True
    question = ws.questions.get(wait.id)
    return question is not None and question.admits(number, ws.now)


def _deliver(ws: Workspace, execution: Execution, wait: SubscriptionRow, handing: Round) -> bool:
    """Whether it got there. An event that does not have the shape of a promise is none for that promise."""
    sending, tester, number, _ = handing
    if wait.promise is not None:
        promise = ws.loaded.promises.get((execution.id, wait.promise))
        if promise is None or not tester.has_shape(promise.shape):
            return False
        by = Settlement(by="event", idempotency_key=sending.idempotency_key, event_id=number)
        settled = promises.Settled(PromiseState.RESOLVED, value=sending.data, by=by)
        return promises.settle(ws, execution, promise, settled)
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
    event = ws.append(execution, body)
    if sending.consume or wait.consume:
        # Nobody else can have it any more: its program must not close over it unseen.
        execution.call_seq = event.seq
    wake(ws, execution)
    return True


def _put_off(
    ws: Workspace, sending: Sending, number: int, delivered: int, *, cursor: int, bound: int, kept: bool
) -> None:
    """More wait for it than one transaction should reach, or it has to wait its turn: the rest gets it page by page.

    For a broadcast the rest are all who wait by now: a program's own waits come before what it throws.
    """
    at = (sending.org, sending.kind, sending.key)
    ws.loaded.under_way.setdefault(at, set()).add(number)
    for wait_id in [wait_id for waits in ws.fresh_waits.get(at, {}).values() for wait_id in waits]:
        wait = ws.loaded.subscriptions.get(wait_id)
        if wait is not None and wait.joins is None and wait.id >= bound and _in_time(ws, wait, number, bound):
            _join(ws, wait, number)
    ws.changes.deliveries[number] = DeliveryRow(
        id=number,
        org=sending.org,
        kind=sending.kind,
        key=sending.key,
        data=sending.data,
        sent_at=ws.now,
        cursor=cursor,
        bound=bound,
        delivered=delivered,
        correlation=sending.correlation,
        consume=sending.consume,
        kept=kept,
        idempotency_key=sending.idempotency_key,
    )
    ws.expect(ws.now)


def go_on_delivering(ws: Workspace) -> bool:
    """The next page of everything that is on its way; whether there may be more. A page is gone through once: what
    comes a second time in one batch finds nobody."""
    for delivery, page, more in ws.loaded.deliveries:
        go_on(ws, delivery, page, more=more)
    return bool(ws.loaded.deliveries)


def go_on(ws: Workspace, delivery: DeliveryRow, page: list[int], *, more: bool) -> None:
    """The next page of one that was put off. One that only one may have, and somebody took it from among the kept
    meanwhile, goes no further."""
    if delivery.done_at is not None:
        return
    sending = Sending(
        org=delivery.org,
        kind=delivery.kind,
        key=delivery.key,
        data=delivery.data,
        correlation=delivery.correlation,
        consume=delivery.consume,
        idempotency_key=delivery.idempotency_key,
    )
    tester = Tester(delivery.data)
    kept = ws.loaded.published.get(delivery.id)
    single = delivery.consume or delivery.kind is SubscriptionKind.MESSAGE
    if delivery.kept and kept is None and single:
        page, more = [], False
    handing = Round(sending, tester, delivery.id, delivery.bound)
    delivered, consumed, last, cut = _hand_out(ws, handing, page)
    delivery.cursor = max(delivery.cursor, last)
    more = more or cut
    if not consumed and not more and (kept is not None or not single):
        others, consumed, last, more = _hand_out(ws, handing, _new_waits(ws, sending, tester))
        delivery.cursor = max(delivery.cursor, last)
        delivered += others
    delivery.delivered += delivered
    started: tuple[str, ...] = ()
    if delivery.consume and not consumed and not more:
        started = _start(ws, sending, tester, delivery.id)
    _tell_kept(ws, kept, delivered + len(started), consumed=consumed or bool(started))
    ws.changes.deliveries[delivery.id] = delivery
    if consumed or not more:
        _arrive(ws, delivery)
    else:
        ws.expect(ws.now)


def _tell_kept(ws: Workspace, kept: PublishedRow | None, delivered: int, *, consumed: bool) -> None:
    if kept is None or not delivered:
        return
    kept.delivered += delivered
    ws.changes.published[kept.id] = kept
    if consumed:
        forget(ws, kept)


def _arrive(ws: Workspace, delivery: DeliveryRow) -> None:
    """It has reached everybody; what was sent later may go now."""
    delivery.done_at = ws.now
    ws.delivered.append(delivery)
    at = (delivery.org, delivery.kind, delivery.key)
    left = ws.loaded.under_way.get(at, set())
    left.discard(delivery.id)
    if not left:
        ws.loaded.under_way.pop(at, None)


# --- keeping ------------------------------------------------------------------------------------------------------


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
    ws.fresh_events.setdefault((event.org, event.key, event.correlation), FreshEvents()).add(event)
    at = (sending.org, sending.key)
    counted = ws.get(EventKeyRow, at) or EventKeyRow(org=sending.org, key=sending.key)
    counted.retained += 1
    ws.put(counted)
    oldest = ws.loaded.oldest.setdefault(at, [])
    while counted.retained > ws.config.limits.events_per_key and oldest:
        victim = oldest.pop(0)
        if victim.expires_at <= ws.now:
            drop(ws, victim, "expired")
        elif drop(ws, victim, "dropped"):
            counted.dropped += 1
    # Last: those on their way can't be dropped, and it is not to make room for itself.
    oldest.append(event)


def drop(ws: Workspace, event: PublishedRow, reason: str) -> bool:
    """Keep it no longer, unless it is gone or still on its way. If nobody ever got it, somebody may want to know."""
    kind = SubscriptionKind.EVENT if event.correlation is None else SubscriptionKind.MESSAGE
    if event.id not in ws.loaded.published or event.id in ws.loaded.under_way.get((event.org, kind, event.key), ()):
        return False
    forget(ws, event)
    if not event.delivered:
        dead = DeadEvent(
            id=event.id,
            org=event.org,
            key=event.key,
            data=event.data,
            published_at=event.published_at,
            correlation=event.correlation,
            reason=reason,
            at=ws.now,
        )
        ws.put(dead)
    return True


# --- starting -----------------------------------------------------------------------------------------------------


def _start(ws: Workspace, sending: Sending, tester: Tester, number: int) -> tuple[str, ...]:
    """Begin the workflows that events of this key start: all of them, or the first if only one may have the event."""
    if sending.kind is not SubscriptionKind.EVENT:
        return ()
    found = [trigger for trigger in ws.group(TriggerRow, sending.org, sending.key) if tester.satisfies(trigger.where)]
    return tuple(_begin(ws, sending, trigger, number) for trigger in (found[:1] if sending.consume else found))


def _begin(ws: Workspace, sending: Sending, trigger: TriggerRow, number: int) -> str:
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
            event_id=number,
        ),
    )
    return new_id
