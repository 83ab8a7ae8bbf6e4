"""Group commit: operations that wait together become one transaction.

    submit ─► queue ─► (store's writer) take ─► plan ─► load ─► decide ─► write ─► commit ─► answers, post, outcomes

Callers are answered only after the commit. A refusal is an answer: it never spoils the batch. An idempotency key is
stored with the effect of its request, so that a retry after a lost answer gets the first answer again.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import msgspec

from holdfast.config import EngineConfig
from holdfast.contract.workers import PendingEvents, TurnWork, Work
from holdfast.engine import dispatcher as dispatching
from holdfast.engine.backfill import plan_backfills
from holdfast.engine.dispatcher import Dispatcher, SlotReservations
from holdfast.engine.idempotency import decide_once
from holdfast.engine.operation import Operation
from holdfast.engine.post_commit import Chunks, PostCommitQueue, run_all
from holdfast.engine.rules.unit_of_work import Entropy, UnitOfWork
from holdfast.errors import NOT_NOW, EngineStopped, HoldfastError
from holdfast.model.events import TurnEvent
from holdfast.model.values import Token
from holdfast.store.protocol import Changes, Loaded, LoadPlan

Answer = TypeVar("Answer")
log = logging.getLogger("holdfast.engine")

AnyFuture = asyncio.Future[Any] | concurrent.futures.Future[Any]
OUTAGE_RETRY_S = 0.25
LOG_EVERY_S = 10.0
CHUNK = 32
"""How many callers are answered, or pieces of work handed out, before the writer may go on."""
LARGE = 128
"""A batch of so many is large enough: what every transaction costs is little beside what its rows cost."""


_org = attrgetter("org")
_org_and_id = attrgetter("org", "id")


class PendingOperation(msgspec.Struct, eq=False):
    """An operation and whoever waits for its answer."""

    operation: Operation[Any, Any]
    future: AnyFuture
    since: float = 0.0
    """When it was submitted, by the loop's clock."""
    once: bool = False
    """Whether its request carries an idempotency key; known when it is planned."""
    answer: Any = None
    refusal: BaseException | None = None


class Effects:
    """What a committed batch means for this process, beyond the answers."""

    __slots__ = ("appended", "changes", "closed", "delivered", "due_at", "expired", "opened", "orgs", "work")

    def __init__(self, uow: UnitOfWork, expired: set[str]) -> None:
        self.expired = expired
        self.closed = uow.closed
        self.delivered = uow.delivered
        self.appended = uow.appended
        self.changes = uow.changes
        self.opened: list[tuple[str, str]] = list(map(_org_and_id, uow.changes.new_executions))
        self.orgs = _orgs(uow.changes)
        self.due_at = uow.due_at
        self.work: list[tuple[str, Work]] = []
        self._hand_over(uow)
        for execution in uow.notified.values():
            if execution.id not in uow.granted and execution.ready is not None and execution.ready.worker is not None:
                tail = tuple(event for event in uow.appended[execution.id] if not isinstance(event.body, TurnEvent))
                self.work.append((execution.ready.worker, PendingEvents(execution.id, execution.last_seq, tail)))
        self.work.extend(uow.work)

    def _hand_over(self, uow: UnitOfWork) -> None:
        appended = uow.appended
        for execution_id, execution in uow.granted.items():
            ready = execution.ready
            if ready is None or ready.worker is None:
                continue
            work = TurnWork(
                execution_id,
                execution.workflow_id,
                execution.kind,
                execution.version,
                Token(execution.epoch, execution.nonce),
                execution.last_seq,
                tuple(appended.get(execution_id, ())),
                ready.since_at,
            )
            self.work.append((ready.worker, work))


class CommitListener(Protocol):
    """Whoever else in this process has to know of a commit. On the event loop."""

    @property
    def peer_writes(self) -> int:
        """How often it was learned that another process has written."""

    def opened(self, executions: Sequence[tuple[str, str]], peer_writes: int) -> None:
        """Before anybody is answered: these have been begun, by a decision made after so many doubts."""

    def committed(self, effects: Effects, chunk: int) -> Chunks:
        """After all were answered. Wakes so many at a time."""

    def data_loss_detected(self) -> None:
        """The database has lost what it had committed."""


def _orgs(changes: Changes) -> set[str]:
    """Whose executions are not as they were."""
    orgs = set(map(_org, changes.new_executions))
    orgs.update(map(_org, changes.changed_executions.values()))
    orgs.update(map(_org, changes.ready.values()))
    return orgs


def _settle_all(members: Iterable[PendingOperation]) -> None:
    for member in members:
        future = member.future
        if future.done():
            continue
        if member.refusal is None:
            future.set_result(member.answer)
        else:
            future.set_exception(member.refusal)


class OperationBatch:
    """The members of one transaction."""

    __slots__ = ("_backfills", "_effects", "_members", "_peer_writes", "_queue", "_reservations")

    def __init__(self, queue: OperationQueue, members: list[PendingOperation]) -> None:
        self._queue = queue
        self._members = members

    @property
    def waiting_since(self) -> float:
        """Those who wait until the database can be used again are in no hurry, however old they are."""
        failing = (member.since for member in self._members if not member.operation.RETRY_ON_OUTAGE)
        return next(failing, self._members[-1].since)

    def plan(self) -> LoadPlan:
        plan = LoadPlan(retained_per_key=self._queue.config.limits.events_per_key)
        freed = []
        for member in self._members:
            operation = member.operation
            member.once = plan_operation(operation, plan)
            freed.append(operation.RELEASES_SLOT)
        self._backfills = plan_backfills(self._queue.dispatcher, plan, freed.count("turn"), freed.count("task"))
        return plan

    def decide(self, loaded: Loaded) -> Changes:
        queue = self._queue
        self._peer_writes = queue.listener.peer_writes
        self._reservations = SlotReservations(queue.dispatcher)
        uow = UnitOfWork(loaded, queue.config, self._reservations, queue.entropy)
        for backfill in self._backfills:
            backfill.start(uow, self._reservations)
        for member in self._members:
            operation = member.operation
            try:
                member.answer = decide_once(operation, uow) if member.once else operation.decide(uow)
                member.refusal = None
            except HoldfastError as refusal:
                member.refusal = refusal
                operation.on_refused(uow)
        for backfill in self._backfills:
            backfill.finish(uow, self._reservations)
        if self._reservations.left or loaded.turns_left:
            uow.note_due(loaded.now + dispatching.STICKY_US)
        uow.note_due(loaded.claim_again_at)
        self._effects = Effects(uow, self._reservations.retired)
        return uow.changes

    def committed(self) -> None:
        self._reservations.apply()
        self._queue.settle(self)

    def answer(self, chunk: int) -> Chunks:
        """Tell the callers, so many at a time, and this process what the commit means. On the event loop."""
        if self._effects.expired:
            yield from self.hand_out(chunk)  # its last words to a session that is closed now
        listener = self._queue.listener
        listener.opened(self._effects.opened, self._peer_writes)
        members = self._members
        for first in range(0, len(members), chunk):
            _settle_all(members[first : first + chunk])
            yield
        yield from listener.committed(self._effects, chunk)

    def hand_out(self, chunk: int) -> Chunks:
        """Give workers of this process what the commit means for them. On the event loop, after `answer`."""
        work, self._effects.work = self._effects.work, []
        for first in range(0, len(work), chunk):
            self._queue.dispatcher.deliver(work[first : first + chunk])
            yield

    def failed(self, error: BaseException) -> None:
        """Refuse, except those who wait until the database can be used again: their work is done and must not be
        lost."""
        retrying = [m for m in self._members if m.operation.RETRY_ON_OUTAGE] if isinstance(error, NOT_NOW) else []
        failing = [m for m in self._members if m not in retrying] if retrying else self._members
        for member in failing:
            member.refusal = error
        self._queue.call(lambda: _settle_all(failing))
        if retrying:
            self._queue.put_back(retrying, error)

    def commit_in_doubt(self, error: BaseException) -> None:
        """Those who report finished work wait until it is known: they could only report it twice."""
        failing = [member for member in self._members if not member.operation.RETRY_ON_OUTAGE]
        for member in failing:
            member.refusal = error
        self._queue.call(lambda: _settle_all(failing))

    def split(self) -> Sequence[OperationBatch]:
        """Two halves: whoever looks for a guilty one splits them again, and few transactions find it among many."""
        middle = len(self._members) // 2
        parts = (self._members[:middle], self._members[middle:])
        return [self._queue.make_batch(self._queue, members) for members in parts if members]


def plan_operation(operation: Operation[Any, Any], plan: LoadPlan) -> bool:
    """What the operation needs. Whether its request may have been made before: then `decide_once` decides it."""
    operation.plan(plan)
    if operation.ANSWER is None or operation.request.request_id is None:
        return False
    plan.requests.add((operation.request.org, operation.request.request_id))
    return True


class OperationQueue:
    """Where operations wait for the next transaction. `submit` is for the event loop, `submit_from_thread` for
    others."""

    def __init__(
        self,
        config: EngineConfig,
        dispatcher: Dispatcher,
        entropy: Entropy,
        listener: CommitListener,
    ) -> None:
        self.config = config
        self.dispatcher = dispatcher
        self.entropy = entropy
        self.listener = listener
        self.make_batch: Callable[[OperationQueue, list[PendingOperation]], OperationBatch] = OperationBatch
        self.taken = 0
        self._waiting: deque[PendingOperation] = deque()
        self._committed: deque[OperationBatch] = deque()
        self._post_commit: PostCommitQueue | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: Callable[[], None] = lambda: None
        self._logged_at = -LOG_EVERY_S

    @property
    def waiting(self) -> int:
        """How many operations wait for a transaction."""
        return len(self._waiting)

    def start(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None], *, on_loop: bool = False) -> None:
        """`on_loop`: the store's writer is a task of this loop, and says when it waits (`writer_idle`)."""
        self._loop = loop
        self._wake = wake
        self._post_commit = PostCommitQueue(loop) if on_loop else None

    def stop(self) -> None:
        """No more operations; those that wait are refused."""
        self._loop = None
        if self._post_commit is not None:
            self._post_commit.run_all()
        waiting, self._waiting = self._waiting, deque()
        self._refuse(waiting)

    def submit(self, operation: Operation[Any, Answer]) -> asyncio.Future[Answer]:
        loop = self._loop
        if loop is None:
            raise EngineStopped
        future: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append(PendingOperation(operation, future, loop.time()))
        self._wake()
        return future

    def submit_from_thread(self, operation: Operation[Any, Answer]) -> concurrent.futures.Future[Answer]:
        loop = self._loop
        if loop is None:
            raise EngineStopped
        future: concurrent.futures.Future[Answer] = concurrent.futures.Future()
        self._waiting.append(PendingOperation(operation, future, loop.time()))
        self._wake()
        return future

    def take(self) -> OperationBatch | None:
        waiting = self._waiting
        if not waiting:
            if self._post_commit is not None:
                self._post_commit.run_soon()
            return None
        limit = self.config.store.batch_size
        if self._post_commit is not None:
            # Half of a crowd: the others are written while these run, or all of them would wait for all.
            limit = min(limit, max(LARGE, (len(waiting) + 1) // 2))
        members = [waiting.popleft() for _ in range(min(limit, len(waiting)))]
        self.taken += len(members)
        return self.make_batch(self, members)

    def writer_idle(self, *, writing: bool) -> None:
        if self._post_commit is not None:
            self._post_commit.writer_idle(writing=writing)

    def data_loss_detected(self) -> None:
        self.call(self.listener.data_loss_detected)

    def refuse_late(self, before: float, error: Exception) -> None:
        """Except those who wait until the database can be used again. One after another goes through the queue: threads
        put in meanwhile what is new."""
        late = []
        for _ in range(len(self._waiting)):
            member = self._waiting.popleft()
            if member.since < before and not member.operation.RETRY_ON_OUTAGE:
                member.refusal = error
                late.append(member)
            else:
                self._waiting.append(member)
        self.call(lambda: _settle_all(late))

    def settle(self, batch: OperationBatch) -> None:
        """From the writer. Waking the loop is a system call: under load several commits share one."""
        if self._post_commit is not None:
            self._post_commit.add(batch.answer(CHUNK), batch.hand_out(CHUNK))
            return
        self._committed.append(batch)
        if len(self._committed) == 1:
            self.call(self._answer_all)

    def _answer_all(self) -> None:
        committed = self._committed
        while committed:
            # Answered before it is taken out: a batch that comes meanwhile needs no wake-up of its own.
            batch, whole = committed[0], self.config.store.batch_size
            run_all(batch.answer(whole))
            run_all(batch.hand_out(whole))
            committed.popleft()

    def call(self, callback: Callable[[], object]) -> None:
        """Run something on the event loop, from the writer."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        loop.call_soon_threadsafe(callback)

    def put_back(self, members: list[PendingOperation], error: BaseException) -> None:
        """Try these again a little later. From the writer."""
        loop = self._loop
        if loop is None:
            self._refuse(members)
            return
        if loop.time() - self._logged_at >= LOG_EVERY_S:
            self._logged_at = loop.time()
            log.warning("%d reports of finished work wait for the database: %s", len(members), error)

        def again() -> None:
            if self._loop is None:
                self._refuse(members)
            else:
                for member in members:
                    member.since = loop.time()  # each time they have as long as anybody
                self._waiting.extendleft(reversed(members))
                self._wake()

        loop.call_soon_threadsafe(loop.call_later, OUTAGE_RETRY_S, again)

    def _refuse(self, members: Iterable[PendingOperation]) -> None:
        for member in members:
            member.refusal = EngineStopped()
        _settle_all(members)
