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
from holdfast.contract.workers import News, TurnWork, Work
from holdfast.engine import desk as desks
from holdfast.engine.desk import Desk, Tally
from holdfast.engine.idempotency import decide_once
from holdfast.engine.leftovers import Leftovers, Portions, do_all
from holdfast.engine.operation import Operation
from holdfast.engine.refill import plan_refills
from holdfast.engine.rules.workspace import Entropy, Workspace
from holdfast.errors import NOT_NOW, EngineStopped, HoldfastError
from holdfast.model.events import TurnEvent
from holdfast.model.executions import RequestRow
from holdfast.model.values import Token
from holdfast.store.protocol import Changes, Loaded, LoadPlan

Answer = TypeVar("Answer")
log = logging.getLogger("holdfast.engine")

AnyFuture = asyncio.Future[Any] | concurrent.futures.Future[Any]
PATIENT_RETRY_S = 0.25
TELL_EVERY_S = 10.0
PORTION = 32
"""How many callers are answered, or pieces of work handed out, before the writer may go on."""
LARGE = 128
"""A batch of so many is large enough: what every transaction costs is little beside what its rows cost."""


_org = attrgetter("org")
_org_and_id = attrgetter("org", "id")


class Member(msgspec.Struct, eq=False):
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

    def __init__(self, ws: Workspace, expired: set[str]) -> None:
        self.expired = expired
        self.closed = ws.closed
        self.delivered = ws.delivered
        self.appended = ws.appended
        self.changes = ws.changes
        self.opened: list[tuple[str, str]] = list(map(_org_and_id, ws.changes.new_executions))
        self.orgs = _orgs(ws.changes)
        self.due_at = ws.due_at
        self.work: list[tuple[str, Work]] = []
        self._hand_over(ws)
        for execution in ws.told.values():
            if execution.id not in ws.granted and execution.ready is not None and execution.ready.worker is not None:
                tail = tuple(event for event in ws.appended[execution.id] if not isinstance(event.body, TurnEvent))
                self.work.append((execution.ready.worker, News(execution.id, execution.last_seq, tail)))
        self.work.extend(ws.work)

    def _hand_over(self, ws: Workspace) -> None:
        appended = ws.appended
        for execution_id, execution in ws.granted.items():
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


class Audience(Protocol):
    """Whoever else in this process has to know of a commit. On the event loop."""

    @property
    def doubts(self) -> int:
        """How often it was learned that another process has written."""

    def opened(self, executions: Sequence[tuple[str, str]], doubts: int) -> None:
        """Before anybody is answered: these have been begun, by a decision made after so many doubts."""

    def committed(self, effects: Effects, portion: int) -> Portions:
        """After all were answered. Wakes so many at a time."""

    def went_back(self) -> None:
        """The database has lost what it had committed."""


def _orgs(changes: Changes) -> set[str]:
    """Whose executions are not as they were."""
    orgs = set(map(_org, changes.new_executions))
    orgs.update(map(_org, changes.changed_executions.values()))
    orgs.update(map(_org, changes.ready.values()))
    return orgs


def _settle_all(members: Iterable[Member]) -> None:
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

    __slots__ = ("_doubts", "_effects", "_members", "_queue", "_refills", "_tally")

    def __init__(self, queue: OperationQueue, members: list[Member]) -> None:
        self._queue = queue
        self._members = members

    @property
    def waiting_since(self) -> float:
        """Those who wait until the database can be used again are in no hurry, however old they are."""
        hasty = (member.since for member in self._members if not member.operation.PATIENT)
        return next(hasty, self._members[-1].since)

    def plan(self) -> LoadPlan:
        plan = LoadPlan(retained_per_key=self._queue.config.limits.events_per_key)
        freed = []
        for member in self._members:
            operation = member.operation
            member.once = plan_operation(operation, plan)
            freed.append(operation.FREES)
        self._refills = plan_refills(self._queue.desk, plan, freed.count("turn"), freed.count("task"))
        return plan

    def decide(self, loaded: Loaded) -> Changes:
        queue = self._queue
        self._doubts = queue.audience.doubts
        self._tally = Tally(queue.desk)
        ws = Workspace(loaded, queue.config, self._tally, queue.entropy)
        for refill in self._refills:
            refill.begin(ws, self._tally)
        for member in self._members:
            operation = member.operation
            try:
                member.answer = decide_once(operation, ws) if member.once else operation.decide(ws)
                member.refusal = None
            except HoldfastError as refusal:
                member.refusal = refusal
                operation.undecided(ws)
        for refill in self._refills:
            refill.finish(ws, self._tally)
        if self._tally.left or loaded.turns_left:
            ws.expect(loaded.now + desks.LEFT_FOR)
        ws.expect(loaded.claim_again_at)
        self._effects = Effects(ws, self._tally.retired)
        return ws.changes

    def committed(self) -> None:
        self._tally.apply()
        self._queue.settle(self)

    def answer(self, portion: int) -> Portions:
        """Tell the callers, so many at a time, and this process what the commit means. On the event loop."""
        if self._effects.expired:
            yield from self.hand_out(portion)  # its last words to a session that is closed now
        audience = self._queue.audience
        audience.opened(self._effects.opened, self._doubts)
        members = self._members
        for first in range(0, len(members), portion):
            _settle_all(members[first : first + portion])
            yield
        yield from audience.committed(self._effects, portion)

    def hand_out(self, portion: int) -> Portions:
        """Give workers of this process what the commit means for them. On the event loop, after `answer`."""
        work, self._effects.work = self._effects.work, []
        for first in range(0, len(work), portion):
            self._queue.desk.deliver(work[first : first + portion])
            yield

    def failed(self, error: BaseException) -> None:
        """Refuse, except those who wait until the database can be used again: their work is done and must not be
        lost."""
        patient = [m for m in self._members if m.operation.PATIENT] if isinstance(error, NOT_NOW) else []
        hasty = [m for m in self._members if m not in patient] if patient else self._members
        for member in hasty:
            member.refusal = error
        self._queue.call(lambda: _settle_all(hasty))
        if patient:
            self._queue.put_back(patient, error)

    def doubted(self, error: BaseException) -> None:
        """Those who report finished work wait until it is known: they could only report it twice."""
        hasty = [member for member in self._members if not member.operation.PATIENT]
        for member in hasty:
            member.refusal = error
        self._queue.call(lambda: _settle_all(hasty))

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
    plan.want(RequestRow, (operation.request.org, operation.request.request_id))
    return True


class OperationQueue:
    """Where operations wait for the next transaction. `submit` is for the event loop, `submit_from_thread` for
    others."""

    def __init__(
        self,
        config: EngineConfig,
        desk: Desk,
        entropy: Entropy,
        audience: Audience,
    ) -> None:
        self.config = config
        self.desk = desk
        self.entropy = entropy
        self.audience = audience
        self.make_batch: Callable[[OperationQueue, list[Member]], OperationBatch] = OperationBatch
        self.taken = 0
        self._waiting: deque[Member] = deque()
        self._committed: deque[OperationBatch] = deque()
        self._leftovers: Leftovers | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: Callable[[], None] = lambda: None
        self._told_at = -TELL_EVERY_S

    @property
    def waiting(self) -> int:
        """How many operations wait for a transaction."""
        return len(self._waiting)

    def start(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None], *, on_loop: bool = False) -> None:
        """`on_loop`: the store's writer is a task of this loop, and says when it waits (`meanwhile`)."""
        self._loop = loop
        self._wake = wake
        self._leftovers = Leftovers(loop) if on_loop else None

    def stop(self) -> None:
        """No more operations; those that wait are refused."""
        self._loop = None
        if self._leftovers is not None:
            self._leftovers.do_all()
        waiting, self._waiting = self._waiting, deque()
        self._refuse(waiting)

    def submit(self, operation: Operation[Any, Answer]) -> asyncio.Future[Answer]:
        loop = self._loop
        if loop is None:
            raise EngineStopped
        future: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append(Member(operation, future, loop.time()))
        self._wake()
        return future

    def submit_from_thread(self, operation: Operation[Any, Answer]) -> concurrent.futures.Future[Answer]:
        loop = self._loop
        if loop is None:
            raise EngineStopped
        future: concurrent.futures.Future[Answer] = concurrent.futures.Future()
        self._waiting.append(Member(operation, future, loop.time()))
        self._wake()
        return future

    def take(self) -> OperationBatch | None:
        waiting = self._waiting
        if not waiting:
            if self._leftovers is not None:
                self._leftovers.soon()
            return None
        limit = self.config.store.batch_size
        if self._leftovers is not None:
            # Half of a crowd: the others are written while these run, or all of them would wait for all.
            limit = min(limit, max(LARGE, (len(waiting) + 1) // 2))
        members = [waiting.popleft() for _ in range(min(limit, len(waiting)))]
        self.taken += len(members)
        return self.make_batch(self, members)

    def meanwhile(self, *, writing: bool) -> None:
        if self._leftovers is not None:
            self._leftovers.meanwhile(writing=writing)

    def went_back(self) -> None:
        self.call(self.audience.went_back)

    def refuse_late(self, before: float, error: Exception) -> None:
        """Except those who wait until the database can be used again. One after another goes through the queue: threads
        put in meanwhile what is new."""
        late = []
        for _ in range(len(self._waiting)):
            member = self._waiting.popleft()
            if member.since < before and not member.operation.PATIENT:
                member.refusal = error
                late.append(member)
            else:
                self._waiting.append(member)
        self.call(lambda: _settle_all(late))

    def settle(self, batch: OperationBatch) -> None:
        """From the writer. Waking the loop is a system call: under load several commits share one."""
        if self._leftovers is not None:
            self._leftovers.add(batch.answer(PORTION), batch.hand_out(PORTION))
            return
        self._committed.append(batch)
        if len(self._committed) == 1:
            self.call(self._answer_all)

    def _answer_all(self) -> None:
        committed = self._committed
        while committed:
            # Answered before it is taken out: a batch that comes meanwhile needs no wake-up of its own.
            batch, whole = committed[0], self.config.store.batch_size
            do_all(batch.answer(whole))
            do_all(batch.hand_out(whole))
            committed.popleft()

    def call(self, callback: Callable[[], object]) -> None:
        """Run something on the event loop, from the writer."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        loop.call_soon_threadsafe(callback)

    def put_back(self, members: list[Member], error: BaseException) -> None:
        """Try these again a little later. From the writer."""
        loop = self._loop
        if loop is None:
            self._refuse(members)
            return
        if loop.time() - self._told_at >= TELL_EVERY_S:
            self._told_at = loop.time()
            log.warning("%d reports of finished work wait for the database: %s", len(members), error)

        def again() -> None:
            if self._loop is None:
                self._refuse(members)
            else:
                for member in members:
                    member.since = loop.time()  # each time they have as long as anybody
                self._waiting.extendleft(reversed(members))
                self._wake()

        loop.call_soon_threadsafe(loop.call_later, PATIENT_RETRY_S, again)

    def _refuse(self, members: Iterable[Member]) -> None:
        for member in members:
            member.refusal = EngineStopped()
        _settle_all(members)
