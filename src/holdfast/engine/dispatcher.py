"""The worker sessions of this process: what they can take, and the post that waits for them.

A session keeps the programs it has run lately. Where several processes share a database, an execution with a long
history is left for a moment to the process that has run it last: rebuilding its program costs more than the wait.

Counting happens in the store's writer only: a `SlotReservations` is made for each decision and applied when its batch
has committed, so a rolled-back decision leaves no trace. Post is handed over on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from holdfast.contract.workers import RegisterWorker, Work
from holdfast.errors import HoldfastError, SessionLost
from holdfast.model.executions import Execution, TaskRow
from holdfast.model.pauses import Pausable, Pause
from holdfast.store.protocol import StickyPolicy

NOTHING: frozenset[tuple[str, str]] = frozenset()
LONG_HISTORY = 500
STICKY_US = 100_000
REMEMBERED = 10_000


class Session:
    """One registered worker of this process."""

    __slots__ = (
        "draining",
        "earlier",
        "free_tasks",
        "free_turns",
        "held",
        "id",
        "more_tasks",
        "more_turns",
        "outbox",
        "paused",
        "paused_by_admin",
        "queues",
        "recent",
        "request",
        "suspect",
        "suspect_seen",
        "task_kinds",
        "waiter",
    )

    def __init__(self, request: RegisterWorker) -> None:
        self.id = request.session
        self.request = request
        # Whether work may be waiting in the store that this session could take: found by looking, set by missing.
        self.more_turns = bool(request.builds)
        self.more_tasks = bool(request.task_kinds)
        # An execution that the next loss would park runs alone among its like until it commits or outlives a
        # heartbeat: that loss then names the guilty one.
        self.suspect: str | None = None
        self.suspect_seen = False
        self.queues = frozenset(request.queues)
        self.task_kinds = frozenset(request.task_kinds)
        self.free_turns = request.turn_slots
        self.free_tasks = request.task_slots
        # The executions it runs. By name: another process may have taken one away, and nobody here has counted that.
        self.held: set[str] = set()
        self.draining = False
        self.paused = False
        # Paused or drained by somebody who looks after the org; `paused` is the worker's own wish, or a broken stream.
        self.paused_by_admin = False
        self.outbox: list[Work] = []
        self.waiter: asyncio.Future[list[Work]] | None = None
        self.recent: set[str] = set()
        self.earlier: set[str] = set()

    def remember(self, execution_ids: Iterable[str]) -> None:
        """It has just run these long executions, and most likely keeps their programs. They are forgotten by the
        thousand: to look for the one that was run longest ago would take far longer."""
        self.recent.update(execution_ids)
        if len(self.recent) > REMEMBERED // 2:
            self.earlier, self.recent = self.recent, set()

    def recheck_store(self) -> None:
        """Work may be waiting in the store."""
        self.more_turns = bool(self.request.builds)
        self.more_tasks = bool(self.request.task_kinds)

    @property
    def takes_nothing(self) -> bool:
        return self.draining or self.paused or self.paused_by_admin

    @property
    def could_take_more(self) -> bool:
        """Whether to look for waiting work at once."""
        if self.takes_nothing:
            return False
        return (self.more_turns and self.free_turns > 0) or (self.more_tasks and self.free_tasks > 0)


class Dispatcher:
    """`has_peers` tells whether other processes work on the same database; executions whose worker was lost
    `suspect_from` times in a row are handed out one at a time."""

    def __init__(self, has_peers: Callable[[], bool] = lambda: False, *, suspect_from: int) -> None:
        self.suspect_from = suspect_from
        self.sessions: dict[str, Session] = {}
        self.has_peers = has_peers
        self.paused_queues = NOTHING
        """By org and name. Replaced, never changed: the writer may be reading it."""
        self._paused_workers = NOTHING

    def sticky_policy(self) -> StickyPolicy | None:
        """Which waiting executions to leave to others for a moment; None if there are no others."""
        if not self.has_peers():
            return None
        kept = (kept for session in self.sessions.values() for kept in (session.recent, session.earlier) if kept)
        return StickyPolicy(LONG_HISTORY, STICKY_US, tuple(kept))

    def ran_here(self, execution_id: str) -> bool:
        sessions = self.sessions.values()
        return any(execution_id in session.recent or execution_id in session.earlier for session in sessions)

    def open(self, request: RegisterWorker) -> None:
        session = Session(request)
        session.paused_by_admin = (request.org, request.session) in self._paused_workers
        # Copied, not changed: the writer may be walking through the old one.
        self.sessions = {**self.sessions, request.session: session}

    def close(self, session_id: str, reason: HoldfastError) -> None:
        """The session is over; whoever polls for it is told why."""
        session = self.sessions.get(session_id)
        self.sessions = {key: kept for key, kept in self.sessions.items() if key != session_id}
        if session is not None and session.waiter is not None and not session.waiter.done():
            session.waiter.set_exception(reason)

    def drain(self, session_id: str) -> None:
        session = self.sessions.get(session_id)
        if session is not None:
            session.draining = True

    def pause(self, session_id: str, paused: bool) -> None:
        session = self.sessions.get(session_id)
        if session is not None:
            session.paused = paused
            if not paused:
                session.recheck_store()

    def apply_pauses(self, pauses: Iterable[Pause]) -> None:
        """All that is paused now. What goes on is looked for by whoever claims next."""
        found = list(pauses)
        if not found and not self.paused_queues and not self._paused_workers:
            return  # nothing is paused, as nearly always
        of = {what: frozenset((p.org, p.name) for p in found if p.what is what) for what in Pausable}
        self.paused_queues, self._paused_workers = of[Pausable.QUEUE], of[Pausable.WORKER]
        for session in self.sessions.values():
            session.paused_by_admin = (session.request.org, session.id) in self._paused_workers

    def open_queues(self, session: Session) -> tuple[str, ...]:
        """Those of its queues that are not paused."""
        paused, request = self.paused_queues, session.request
        if not paused:
            return request.queues
        return tuple(queue for queue in request.queues if (request.org, queue) not in paused)

    def poll(self, session_id: str, loop: asyncio.AbstractEventLoop) -> asyncio.Future[list[Work]]:
        waiter: asyncio.Future[list[Work]] = loop.create_future()
        session = self.sessions.get(session_id)
        if session is None:
            waiter.set_exception(SessionLost(f"worker session {session_id} is not registered here"))
        elif session.outbox:
            waiter.set_result(session.outbox)
            session.outbox = []
        else:
            session.waiter = waiter
        return waiter

    def deliver(self, work: Iterable[tuple[str, Work]]) -> None:
        """Put work into the sessions' post and wake those who wait for it. On the event loop."""
        touched = set()
        for session_id, item in work:
            session = self.sessions.get(session_id)
            if session is not None:
                session.outbox.append(item)
                touched.add(session_id)
        for session_id in touched:
            session = self.sessions[session_id]
            waiter = session.waiter
            if waiter is not None and not waiter.done():
                session.waiter = None
                waiter.set_result(session.outbox)
                session.outbox = []


class SlotReservations:
    """Placements made by one decision: what the desk has, less what this decision has given away.

    While older work is waiting for a session, new work is not placed past it: it queues up behind. What could not be
    placed is remembered, in case slots become free later in the same decision.
    """

    __slots__ = (
        "_beaten",
        "_dispatcher",
        "_ended",
        "_held",
        "_paused",
        "_suspects",
        "_tasks",
        "_turns",
        "left",
        "more_tasks",
        "more_turns",
        "retired",
        "unplaced_tasks",
        "unplaced_turns",
    )

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._turns: dict[str, int] = {}
        self._tasks: dict[str, int] = {}
        self.more_turns: dict[str, bool] = {}
        self.more_tasks: dict[str, bool] = {}
        self.unplaced_turns: dict[str, list[Execution]] = {}
        self.unplaced_tasks: dict[str, list[TaskRow]] = {}
        self.retired: set[str] = set()
        self._suspects: dict[str, str | None] = {}
        self._beaten: set[str] = set()
        self._ended: dict[str, list[str]] = {}
        self._held: dict[tuple[str, str], bool] = {}
        self._paused = dispatcher.paused_queues
        self.left = False

    def for_turn(self, execution: Execution) -> str | None:
        if self._paused and (execution.org, execution.queue) in self._paused:
            return None
        if (
            execution.last_seq >= LONG_HISTORY
            and self._dispatcher.has_peers()
            and not self._dispatcher.ran_here(execution.id)
        ):
            self.left = True
            return None
        key = (execution.kind, execution.version)
        for session_id, session in self._dispatcher.sessions.items():
            request = session.request
            if key not in request.builds or execution.queue not in session.queues or request.org != execution.org:
                continue
            if session.draining or session.paused or session.paused_by_admin or session_id in self.retired:
                continue
            if execution.crashes and not self.may_suspect(session, execution):
                continue
            taken = self._turns.get(session_id, 0)
            if session.free_turns > taken and not self.more_turns.get(session_id, session.more_turns):
                self.turn_taken(session_id, execution)
                return session_id
            self.unplaced_turns.setdefault(session_id, []).append(execution)
        return None

    def for_task(self, task: TaskRow) -> str | None:
        if self._paused and (task.org, task.queue) in self._paused:
            return None
        for session_id, session in self._dispatcher.sessions.items():
            if task.kind not in session.task_kinds or task.queue not in session.queues:
                continue
            if session.draining or session.paused or session.paused_by_admin or session_id in self.retired:
                continue
            if session.request.org != task.org:
                continue
            taken = self._tasks.get(session_id, 0)
            if session.free_tasks > taken and not self.more_tasks.get(session_id, session.more_tasks):
                self._tasks[session_id] = taken + 1
                return session_id
            self.unplaced_tasks.setdefault(session_id, []).append(task)
        return None

    def retire(self, session: str) -> None:
        """The session has expired: nothing more for it."""
        self.retired.add(session)

    def has_turn_slot(self, session: Session) -> bool:
        return session.free_turns > self._turns.get(session.id, 0)

    def has_task_slot(self, session: Session) -> bool:
        return session.free_tasks > self._tasks.get(session.id, 0)

    def is_local(self, session: str) -> bool:
        return session in self._dispatcher.sessions and session not in self.retired

    def local_sessions(self) -> list[str]:
        return list(self._dispatcher.sessions)

    def may_suspect(self, session: Session, execution: Execution) -> bool:
        """Whether the session may take it: one held when a worker was lost, only while it holds no other such."""
        return (
            execution.crashes < self._dispatcher.suspect_from or self._suspects.get(session.id, session.suspect) is None
        )

    def turn_taken(self, session: str, execution: Execution) -> None:
        self._count(session, execution.id, held=True)
        if execution.crashes >= self._dispatcher.suspect_from:
            self._suspects[session] = execution.id

    def task_taken(self, session: str) -> None:
        self._tasks[session] = self._tasks.get(session, 0) + 1

    def _count(self, session_id: str, execution_id: str, *, held: bool) -> None:
        """What is held once counts once, and is given back once."""
        key = session_id, execution_id
        before = self._held.get(key)
        if before is None:
            session = self._dispatcher.sessions.get(session_id)
            before = session is not None and execution_id in session.held
        if before is not held:
            self._held[key] = held
            self._turns[session_id] = self._turns.get(session_id, 0) + (1 if held else -1)

    def turn_lost(self, execution_id: str, holder: str | None) -> None:
        """A worker of this process has reported on a turn that is not its own any more. Who has it now is `holder`: if
        another process has taken it away, nobody here has counted that."""
        for session_id, session in self._dispatcher.sessions.items():
            if session_id != holder and execution_id in session.held:
                self._count(session_id, execution_id, held=False)

    def turn_done(self, session: str, execution: Execution) -> None:
        self._count(session, execution.id, held=False)
        if execution.last_seq >= LONG_HISTORY // 2:  # it may be long when it is claimed next
            self._ended.setdefault(session, []).append(execution.id)
        held = self._dispatcher.sessions.get(session)
        if self._suspects or (held is not None and held.suspect is not None):
            self.cleared(session, execution)

    def alive(self, session: str) -> None:
        """The session has sent a heartbeat. A suspect that it held at the last one, too, is none: what takes long is a
        step of it, not its death."""
        found = self._dispatcher.sessions.get(session)
        if found is None or found.suspect is None:
            return
        self._beaten.add(session)
        if found.suspect_seen:
            self._suspects[session] = None
            self.more_turns[session] = True

    def cleared(self, session: str, execution: Execution) -> None:
        """The execution has got through a turn, or is gone: the next suspect may be tried."""
        found = self._dispatcher.sessions.get(session)
        if found is not None and self._suspects.get(session, found.suspect) == execution.id:
            self._suspects[session] = None
            self.more_turns[session] = True

    def task_done(self, session: str) -> None:
        self._tasks[session] = self._tasks.get(session, 0) - 1

    def apply(self) -> None:
        """The decision is committed."""
        for session_id, execution_ids in self._ended.items():
            ended = self._dispatcher.sessions.get(session_id)
            if ended is not None:
                ended.remember(execution_ids)
        for (session_id, execution_id), is_held in self._held.items():
            holder = self._dispatcher.sessions.get(session_id)
            if holder is not None:
                (holder.held.add if is_held else holder.held.discard)(execution_id)
        for session_id, session in self._dispatcher.sessions.items():
            session.free_turns -= self._turns.get(session_id, 0)
            session.free_tasks -= self._tasks.get(session_id, 0)
            session.more_turns = self.more_turns.get(session_id, session.more_turns)
            session.more_tasks = self.more_tasks.get(session_id, session.more_tasks)
            session.draining = session.draining or session_id in self.retired
            if session_id in self._suspects:
                session.suspect = self._suspects[session_id]
                session.suspect_seen = False
            elif session_id in self._beaten:
                session.suspect_seen = session.suspect is not None
