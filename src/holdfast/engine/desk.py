"""The worker sessions of this process: what they can take, and the post that waits for them.

Counting happens in the store's writer only: a `Tally` is made for each decision and applied when its batch has
committed, so a rolled-back decision leaves no trace. Post is handed over on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from holdfast.contract.workers import RegisterWorker, Work
from holdfast.errors import EngineStopped
from holdfast.model.executions import Execution, TaskRow
from holdfast.store.protocol import TaskClaim, TurnClaim


class Session:
    """One registered worker of this process."""

    __slots__ = ("draining", "free_tasks", "free_turns", "post", "queues", "request", "task_kinds", "waiter")

    def __init__(self, request: RegisterWorker) -> None:
        self.request = request
        self.queues = frozenset(request.queues)
        self.task_kinds = frozenset(request.task_kinds)
        self.free_turns = request.turn_slots
        self.free_tasks = request.task_slots
        self.draining = False
        self.post: list[Work] = []
        self.waiter: asyncio.Future[list[Work]] | None = None

    def turn_claim(self) -> TurnClaim | None:
        if self.draining or self.free_turns <= 0 or not self.request.builds:
            return None
        return TurnClaim(self.request.org, self.request.queues, self.request.builds, self.free_turns)

    def task_claim(self) -> TaskClaim | None:
        if self.draining or self.free_tasks <= 0 or not self.task_kinds:
            return None
        return TaskClaim(self.request.org, self.request.queues, self.request.task_kinds, self.free_tasks)


class Desk:
    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}

    def open(self, request: RegisterWorker) -> None:
        # Copied, not changed: the writer may be walking through the old one.
        self.sessions = {**self.sessions, request.session: Session(request)}

    def close(self, session_id: str) -> None:
        session = self.sessions.get(session_id)
        self.sessions = {key: kept for key, kept in self.sessions.items() if key != session_id}
        if session is not None and session.waiter is not None and not session.waiter.done():
            session.waiter.set_exception(EngineStopped(f"worker session {session_id} has ended"))

    def drain(self, session_id: str) -> None:
        session = self.sessions.get(session_id)
        if session is not None:
            session.draining = True

    def poll(self, session_id: str, loop: asyncio.AbstractEventLoop) -> asyncio.Future[list[Work]]:
        waiter: asyncio.Future[list[Work]] = loop.create_future()
        session = self.sessions.get(session_id)
        if session is None:
            waiter.set_exception(EngineStopped(f"worker session {session_id} is not registered here"))
        elif session.post:
            waiter.set_result(session.post)
            session.post = []
        else:
            session.waiter = waiter
        return waiter

    def deliver(self, work: Iterable[tuple[str, Work]]) -> None:
        """Put work into the sessions' post and wake those who wait for it. On the event loop."""
        touched = set()
        for session_id, item in work:
            session = self.sessions.get(session_id)
            if session is not None:
                session.post.append(item)
                touched.add(session_id)
        for session_id in touched:
            session = self.sessions[session_id]
            waiter = session.waiter
            if waiter is not None and not waiter.done():
                session.waiter = None
                waiter.set_result(session.post)
                session.post = []


class Tally:
    """Placements made by one decision: what the desk has, less what this decision has given away.

    `missed` says that a session knew the work but was full: it has to be claimed when a slot is free again.
    """

    __slots__ = ("_desk", "_tasks", "_turns", "missed")

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._turns: dict[str, int] = {}
        self._tasks: dict[str, int] = {}
        self.missed = False

    def for_turn(self, execution: Execution) -> str | None:
        key = (execution.kind, execution.version)
        for session_id, session in self._desk.sessions.items():
            request = session.request
            if session.draining or request.org != execution.org or key not in request.builds:
                continue
            taken = self._turns.get(session_id, 0)
            if execution.queue in session.queues:
                if session.free_turns > taken:
                    self._turns[session_id] = taken + 1
                    return session_id
                self.missed = True
        return None

    def for_task(self, task: TaskRow) -> str | None:
        for session_id, session in self._desk.sessions.items():
            if session.draining or session.request.org != task.org or task.kind not in session.task_kinds:
                continue
            taken = self._tasks.get(session_id, 0)
            if task.queue in session.queues:
                if session.free_tasks > taken:
                    self._tasks[session_id] = taken + 1
                    return session_id
                self.missed = True
        return None

    def is_local(self, session: str) -> bool:
        return session in self._desk.sessions

    def turn_taken(self, session: str) -> None:
        self._turns[session] = self._turns.get(session, 0) + 1

    def task_taken(self, session: str) -> None:
        self._tasks[session] = self._tasks.get(session, 0) + 1

    def turn_done(self, session: str) -> None:
        self._turns[session] = self._turns.get(session, 0) - 1

    def task_done(self, session: str) -> None:
        self._tasks[session] = self._tasks.get(session, 0) - 1

    def apply(self) -> None:
        """The decision is committed."""
        for session_id, taken in self._turns.items():
            session = self._desk.sessions.get(session_id)
            if session is not None:
                session.free_turns -= taken
        for session_id, taken in self._tasks.items():
            session = self._desk.sessions.get(session_id)
            if session is not None:
                session.free_tasks -= taken
