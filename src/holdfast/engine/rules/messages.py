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
from holdfast.engine.rules.retained_events import (
    FreshEvents,
    PayloadMatcher,
    key_of,
    look_back_query_of,
    required_equality_of,
)
from holdfast.engine.rules.starts import NewExecution, new_execution_id, start_execution
from holdfast.engine.rules.unit_of_work import UnitOfWork
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
from holdfast.model.values import MICRO, NULL, DeliveryMode, Payload, Settlement

PAGE = 1_000
STEPS = 1_000_000
EVENT_KINDS = frozenset({SubscriptionKind.EVENT, SubscriptionKind.MESSAGE})


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Something on its way to those who wait for it."""

    org: str
    kind: SubscriptionKind
    key: str
    data: Payload = NULL
    correlation: str | None = None
    expire_after_s: float | None = None
    delivery: DeliveryMode = DeliveryMode.WAITERS
    consume: bool = False
    idempotency_key: str | None = None


class Sent(msgspec.Struct, frozen=True):
    id: int
    delivered: int
    retained: bool
    started: tuple[str, ...]
    done: bool


def next_id(uow: UnitOfWork) -> int:
    uow.loaded.last_id += 1
    uow.changes.last_id = uow.loaded.last_id
    return uow.loaded.last_id


# --- waiting ------------------------------------------------------------------------------------------------------


def subscribe(uow: UnitOfWork, execution: Execution, event: e.WaitStarted) -> None:
    """Wait from now on. What is kept for those who look back is looked at when the turn's own rows are written."""
    kind = SubscriptionKind(event.kind)
    path, value = required_equality_of(event.where) or (None, None)
    if kind is SubscriptionKind.MESSAGE:
        path, value = "", event.correlation or ""
    wait = SubscriptionRow(
        id=next_id(uow),
        execution_id=execution.id,
        wait_no=event.wait_no,
        org=execution.org,
        kind=kind,
        key=event.key,
        created_at=uow.now,
        eq_path=path,
        eq_value=value,
        where=event.where,
        consume=event.consume or kind is SubscriptionKind.MESSAGE,
    )
    uow.add_wait(execution, wait)
    if event.since_at is not None and kind in EVENT_KINDS:
        uow.look_back_queries[wait.id] = look_back_query_of(event)
        uow.deferred_look_backs.append(lambda: _look_back(uow, execution, event, wait))


def subscribe_promise(uow: UnitOfWork, execution: Execution, event: e.PromiseCreated) -> None:
    """A promise that the next event of its key settles, too."""
    promise = uow.loaded.promises.get((execution.id, event.name))
    if event.event_key is None or promise is None or promise.state is not PromiseState.PENDING:
        return
    uow.add_wait(
        execution,
        SubscriptionRow(
            id=next_id(uow),
            execution_id=execution.id,
            wait_no=-event.promise_no,
            org=execution.org,
            kind=SubscriptionKind.EVENT,
            key=event.event_key,
            created_at=uow.now,
            promise=event.name,
        ),
    )


def _look_back(uow: UnitOfWork, execution: Execution, event: e.WaitStarted, wait: SubscriptionRow) -> None:
    """Settle a new wait with the oldest kept event that it may have, if the same turn has not given it up.

    One that is still on its way to others may be used up by one of them: the wait then joins those it goes to.
    """
    if wait.id not in uow.loaded.subscriptions:
        return
    found = _found_back(uow, execution, event)
    if found is None:
        return
    if found.id in uow.loaded.under_way.get((wait.org, wait.kind, wait.key), ()):
        _join(uow, wait, found.id)
        return
    uow.drop_wait(execution, wait.wait_no)
    take_kept(uow, found, consume=wait.consume)
    received = uow.append(
        execution,
        e.EventReceived(
            wait_no=wait.wait_no, key=found.key, event_id=found.id, data=found.data, correlation=found.correlation
        ),
    )
    if wait.consume or found.consume:
        execution.call_seq = received.seq
    wake(uow, execution)


def _join(uow: UnitOfWork, wait: SubscriptionRow, number: int) -> None:
    """The wait of this batch gets in line for an event that was published before it began."""
    joined = structs.replace(wait, joins=number)
    uow.loaded.subscriptions[wait.id] = uow.changes.new_subscriptions[wait.id] = joined


def _found_back(uow: UnitOfWork, execution: Execution, wait: e.WaitStarted) -> PublishedRow | None:
    """The oldest kept event that the wait may have; those published earlier in this very batch count, too."""
    at, question = key_of(execution.org, wait), look_back_query_of(wait)
    for event in uow.loaded.look_backs.get(at, {}).get(question, ()):
        if _may_have(uow, wait, event):
            return event
    fresh = uow.fresh_events.get(at)
    for event, matcher in fresh.about(required_equality_of(wait.where)) if fresh is not None else ():
        if (
            _may_have(uow, wait, event)
            and question.admits(event.id, event.published_at)
            and matcher.satisfies(wait.where)
        ):
            return event
    return None


def _may_have(uow: UnitOfWork, wait: e.WaitStarted, event: PublishedRow) -> bool:
    """Whether it is still there, and there for an execution of this age."""
    if event.id not in uow.loaded.published or event.expires_at <= uow.now:
        return False
    return not event.created_before or event.id > wait.born


def take_kept(uow: UnitOfWork, event: PublishedRow, *, consume: bool) -> None:
    """A kept event was given to somebody; perhaps nobody else may have it."""
    event.delivered += 1
    if consume or event.consume:
        forget(uow, event)
    else:
        uow.changes.published[event.id] = event


def forget(uow: UnitOfWork, event: PublishedRow) -> None:
    """Its row goes; what becomes of the event is another matter."""
    uow.loaded.published.pop(event.id, None)
    uow.changes.published.pop(event.id, None)
    uow.changes.deleted_published.append(event.id)
    counted = uow.loaded.event_keys.get((event.org, event.key))
    if counted is not None:
        counted.retained = max(counted.retained - 1, 0)
        uow.changes.event_keys[event.org, event.key] = counted


# --- sending ------------------------------------------------------------------------------------------------------


def send(uow: UnitOfWork, publication: Publication, candidates: list[int] | None, number: int = 0) -> Sent:
    """Give it to those who wait, the longest waiting first; keep it for those who look back; start what it starts.

    Without `candidates` those who wait are not known: all of them are reached page by page. So they are while an
    earlier one is on its way to the same key: nobody may get the later one first.
    """
    number = number or next_id(uow)
    bound = number if publication.kind in EVENT_KINDS else uow.loaded.last_id + 1
    matcher = PayloadMatcher(publication.data)
    delivered = cursor = 0
    consumed = done = False
    if candidates is not None and (publication.org, publication.kind, publication.key) not in uow.loaded.under_way:
        round_ = DeliveryRound(publication, matcher, number, bound)
        delivered, consumed, cursor, cut = _hand_out(uow, round_, candidates)
        done = consumed or (len(candidates) < PAGE and not cut)
        if done and not consumed:
            more, consumed, last, cut = _hand_out(uow, round_, _new_waits(uow, publication, matcher))
            delivered += more
            cursor, done = max(cursor, last), not cut
    started: tuple[str, ...] = ()
    if not consumed and (done or not publication.consume):
        started = _start(uow, publication, matcher, number)
        consumed = bool(started) and publication.consume
    retained = not consumed and publication.kind in EVENT_KINDS and publication.delivery is not DeliveryMode.WAITERS
    retained = retained and uow.config.limits.events_per_key > 0
    if retained:
        _keep(uow, publication, number, delivered + len(started))
    if not done:
        _put_off(uow, publication, number, delivered, cursor=cursor, bound=bound, kept=retained)
    return Sent(number, delivered, retained, started, done)


def _new_waits(uow: UnitOfWork, publication: Publication, matcher: PayloadMatcher) -> list[int]:
    """Waits of this very batch that it may be for."""
    found: list[int] = []
    for demand, waits in uow.fresh_waits.get((publication.org, publication.kind, publication.key), {}).items():
        if demand is None or _value_at(publication, matcher, demand[0]) == demand[1]:
            found += waits
    return sorted(found)


def _value_at(publication: Publication, matcher: PayloadMatcher, path: str) -> str | None:
    return matcher.value_at(path) if publication.correlation is None else publication.correlation


class DeliveryRound(NamedTuple):
    """One round of handing out: to waits with numbers below `bound`, and to those that have asked for the past."""

    publication: Publication
    matcher: PayloadMatcher
    number: int
    bound: int


class Delivered(NamedTuple):
    """How many got it, whether one of them has used it up, the last wait that was looked at, and whether it stopped
    there because the filters had taken too much for one transaction."""

    delivered: int = 0
    consumed: bool = False
    last: int = 0
    cut: bool = False


def _hand_out(uow: UnitOfWork, round_: DeliveryRound, candidates: Iterable[int]) -> Delivered:
    publication, matcher, number, bound = round_
    delivered = last = 0
    for wait_id in candidates:
        if matcher.steps > STEPS:
            return Delivered(delivered, False, last, True)
        last = wait_id
        wait = uow.loaded.subscriptions.get(wait_id)
        if wait is None or not _in_time(uow, wait, number, bound) or not matcher.satisfies(wait.where):
            continue
        execution = uow.loaded.executions.get(wait.execution_id)
        if execution is None or not execution.is_open:
            continue
        if not _deliver(uow, execution, wait, round_):
            continue
        delivered += 1
        if publication.consume or wait.consume:
            return Delivered(delivered, True, last)
    return Delivered(delivered, False, last)


def _in_time(uow: UnitOfWork, wait: SubscriptionRow, number: int, bound: int) -> bool:
    """Whether the wait was there when it was sent, or has asked for the past."""
    if wait.id < bound or (wait.joins is not None and wait.joins <= number):
        return True
    question = uow.look_back_queries.get(wait.id)
    return question is not None and question.admits(number, uow.now)


def _deliver(uow: UnitOfWork, execution: Execution, wait: SubscriptionRow, round_: DeliveryRound) -> bool:
    """Whether it got there. An event that does not have the shape of a promise is none for that promise."""
    publication, matcher, number, _ = round_
    if wait.promise is not None:
        promise = uow.loaded.promises.get((execution.id, wait.promise))
        if promise is None or not matcher.has_shape(promise.shape):
            return False
        by = Settlement(by="event", idempotency_key=publication.idempotency_key, event_id=number)
        settled = promises.Settled(PromiseState.RESOLVED, value=publication.data, by=by)
        return promises.settle(uow, execution, promise, settled)
    uow.drop_wait(execution, wait.wait_no)
    if publication.kind is SubscriptionKind.BROADCAST:
        body: e.EventBody = e.BroadcastReceived(wait_no=wait.wait_no, name=publication.key, broadcast_id=number)
    else:
        body = e.EventReceived(
            wait_no=wait.wait_no,
            key=publication.key,
            event_id=number,
            data=publication.data,
            correlation=publication.correlation,
        )
    event = uow.append(execution, body)
    if publication.consume or wait.consume:
        # Nobody else can have it any more: its program must not close over it unseen.
        execution.call_seq = event.seq
    wake(uow, execution)
    return True


def _put_off(
    uow: UnitOfWork, publication: Publication, number: int, delivered: int, *, cursor: int, bound: int, kept: bool
) -> None:
    """More wait for it than one transaction should reach, or it has to wait its turn: the rest gets it page by page.

    For a broadcast the rest are all who wait by now: a program's own waits come before what it throws.
    """
    at = (publication.org, publication.kind, publication.key)
    uow.loaded.under_way.setdefault(at, set()).add(number)
    for wait_id in [wait_id for waits in uow.fresh_waits.get(at, {}).values() for wait_id in waits]:
        wait = uow.loaded.subscriptions.get(wait_id)
        if wait is not None and wait.joins is None and wait.id >= bound and _in_time(uow, wait, number, bound):
            _join(uow, wait, number)
    uow.changes.deliveries[number] = DeliveryRow(
        id=number,
        org=publication.org,
        kind=publication.kind,
        key=publication.key,
        data=publication.data,
        sent_at=uow.now,
        cursor=cursor,
        bound=bound,
        delivered=delivered,
        correlation=publication.correlation,
        consume=publication.consume,
        kept=kept,
        idempotency_key=publication.idempotency_key,
    )
    uow.note_due(uow.now)


def continue_deliveries(uow: UnitOfWork) -> bool:
    """The next page of everything that is on its way; whether there may be more. A page is gone through once: what
    comes a second time in one batch finds nobody."""
    for delivery, page, more in uow.loaded.deliveries:
        continue_delivery(uow, delivery, page, more=more)
    return bool(uow.loaded.deliveries)


def continue_delivery(uow: UnitOfWork, delivery: DeliveryRow, page: list[int], *, more: bool) -> None:
    """The next page of one that was put off. One that only one may have, and somebody took it from among the kept
    meanwhile, goes no further."""
    if delivery.done_at is not None:
        return
    publication = Publication(
        org=delivery.org,
        kind=delivery.kind,
        key=delivery.key,
        data=delivery.data,
        correlation=delivery.correlation,
        consume=delivery.consume,
        idempotency_key=delivery.idempotency_key,
    )
    matcher = PayloadMatcher(delivery.data)
    kept = uow.loaded.published.get(delivery.id)
    single = delivery.consume or delivery.kind is SubscriptionKind.MESSAGE
    if delivery.kept and kept is None and single:
        page, more = [], False
    round_ = DeliveryRound(publication, matcher, delivery.id, delivery.bound)
    delivered, consumed, last, cut = _hand_out(uow, round_, page)
    delivery.cursor = max(delivery.cursor, last)
    more = more or cut
    if not consumed and not more and (kept is not None or not single):
        others, consumed, last, more = _hand_out(uow, round_, _new_waits(uow, publication, matcher))
        delivery.cursor = max(delivery.cursor, last)
        delivered += others
    delivery.delivered += delivered
    started: tuple[str, ...] = ()
    if delivery.consume and not consumed and not more:
        started = _start(uow, publication, matcher, delivery.id)
    _update_kept(uow, kept, delivered + len(started), consumed=consumed or bool(started))
    uow.changes.deliveries[delivery.id] = delivery
    if consumed or not more:
        _arrive(uow, delivery)
    else:
        uow.note_due(uow.now)


def _update_kept(uow: UnitOfWork, kept: PublishedRow | None, delivered: int, *, consumed: bool) -> None:
    if kept is None or not delivered:
        return
    kept.delivered += delivered
    uow.changes.published[kept.id] = kept
    if consumed:
        forget(uow, kept)


def _arrive(uow: UnitOfWork, delivery: DeliveryRow) -> None:
    """It has reached everybody; what was sent later may go now."""
    delivery.done_at = uow.now
    uow.delivered.append(delivery)
    at = (delivery.org, delivery.kind, delivery.key)
    left = uow.loaded.under_way.get(at, set())
    left.discard(delivery.id)
    if not left:
        uow.loaded.under_way.pop(at, None)


# --- keeping ------------------------------------------------------------------------------------------------------


def _keep(uow: UnitOfWork, publication: Publication, number: int, delivered: int) -> None:
    ttl_s = uow.config.event_retention_s if publication.expire_after_s is None else publication.expire_after_s
    event = PublishedRow(
        id=number,
        org=publication.org,
        key=publication.key,
        data=publication.data,
        published_at=uow.now,
        expires_at=uow.now + int(ttl_s * MICRO),
        correlation=publication.correlation,
        created_before=publication.delivery is DeliveryMode.CREATED_BEFORE,
        consume=publication.consume,
        delivered=delivered,
    )
    uow.loaded.published[number] = uow.changes.published[number] = event
    uow.fresh_events.setdefault((event.org, event.key, event.correlation), FreshEvents()).add(event)
    at = (publication.org, publication.key)
    counted = uow.loaded.event_keys.setdefault(at, EventKeyRow(org=publication.org, key=publication.key))
    counted.retained += 1
    uow.changes.event_keys[at] = counted
    oldest = uow.loaded.oldest.setdefault(at, [])
    while counted.retained > uow.config.limits.events_per_key and oldest:
        victim = oldest.pop(0)
        if victim.expires_at <= uow.now:
            drop(uow, victim, "expired")
        elif drop(uow, victim, "dropped"):
            counted.dropped += 1
    # Last: those on their way can't be dropped, and it is not to make room for itself.
    oldest.append(event)


def drop(uow: UnitOfWork, event: PublishedRow, reason: str) -> bool:
    """Keep it no longer, unless it is gone or still on its way. If nobody ever got it, somebody may want to know."""
    kind = SubscriptionKind.EVENT if event.correlation is None else SubscriptionKind.MESSAGE
    if event.id not in uow.loaded.published or event.id in uow.loaded.under_way.get((event.org, kind, event.key), ()):
        return False
    forget(uow, event)
    if not event.delivered:
        dead = DeadEvent(
            id=event.id,
            org=event.org,
            key=event.key,
            data=event.data,
            published_at=event.published_at,
            correlation=event.correlation,
            reason=reason,
            at=uow.now,
        )
        uow.loaded.dead_events[event.id] = dead
        uow.changes.dead_events.append(dead)
    return True


# --- starting -----------------------------------------------------------------------------------------------------


def _start(uow: UnitOfWork, publication: Publication, matcher: PayloadMatcher, number: int) -> tuple[str, ...]:
    """Begin the workflows that events of this key start: all of them, or the first if only one may have the event."""
    if publication.kind is not SubscriptionKind.EVENT:
        return ()
    found = [
        trigger
        for trigger in uow.loaded.triggers.get((publication.org, publication.key), [])
        if matcher.satisfies(trigger.where)
    ]
    return tuple(
        _start_by_trigger(uow, publication, trigger, number)
        for trigger in (found[:1] if publication.consume else found)
    )


def _start_by_trigger(uow: UnitOfWork, publication: Publication, trigger: TriggerRow, number: int) -> str:
    new_id = new_execution_id(uow)
    start_execution(
        uow,
        NewExecution(
            org=publication.org,
            kind=trigger.kind,
            version=trigger.version,
            execution_id=new_id,
            workflow_id=new_id,
            key=False,
            input=publication.data,
            queue=trigger.queue,
            event_id=number,
        ),
    )
    return new_id
