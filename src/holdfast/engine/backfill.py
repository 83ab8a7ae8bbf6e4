"""Handing waiting work to sessions that have room, in the transaction that makes the room.

A batch that ends turns or tasks frees slots. If work is waiting, the same batch loads as much of it as will fit, oldest
first, and hands it out: before its operations as far as there is room already, after them with the slots they have
freed, and then what they themselves have made and could not place. A long queue is worked off at the speed of commits.
"""

from __future__ import annotations

from collections import deque

from holdfast.engine.dispatcher import Dispatcher, Session, SlotReservations
from holdfast.engine.rules.leases import grant
from holdfast.engine.rules.tasks import start_attempt
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.executions import Execution, TaskRow
from holdfast.store.protocol import LoadPlan, TaskClaim, TaskKey, TurnClaim

MOST = 1_000


class Backfill:
    """What one batch may hand to one session. Made when the batch is planned, used when it is decided."""

    __slots__ = ("_session", "_task_index", "_task_limit", "_tasks", "_turn_index", "_turn_limit", "_turns")

    def __init__(self, dispatcher: Dispatcher, session: Session, plan: LoadPlan, freed: tuple[int, int]) -> None:
        self._session = session
        request = session.request
        freed_turns, freed_tasks = freed
        self._turn_limit = self._task_limit = 0
        if session.more_turns and request.builds:
            self._turn_limit = min(max(session.free_turns, 0) + freed_turns, MOST)
        if session.more_tasks and request.task_kinds:
            self._task_limit = min(max(session.free_tasks, 0) + freed_tasks, MOST)
        if self._turn_limit:
            self._turn_index = len(plan.turn_claims)
            # One suspect at a time, and none while it holds one.
            plan.turn_claims.append(
                TurnClaim(
                    request.org,
                    dispatcher.open_queues(session),
                    request.builds,
                    self._turn_limit,
                    dispatcher.sticky_policy(),
                    suspect_from=dispatcher.suspect_from,
                    suspects=int(session.suspect is None),
                )
            )
        if self._task_limit:
            self._task_index = len(plan.task_claims)
            plan.task_claims.append(
                TaskClaim(request.org, dispatcher.open_queues(session), request.task_kinds, self._task_limit)
            )

    def start(self, uow: UnitOfWork, reservations: SlotReservations) -> None:
        """Before the operations. If nothing older is left waiting, they may place their work at once."""
        self._turns: deque[str] = deque(uow.loaded.turn_claims[self._turn_index] if self._turn_limit else ())
        self._tasks: deque[TaskKey] = deque(uow.loaded.task_claims[self._task_index] if self._task_limit else ())
        found_tasks = len(self._tasks)
        # Suspects that have to wait are found again and again: they do not mean that there is more.
        found_turns = len(self._turns) - self._hand_out(uow, reservations)
        if self._turn_limit:
            reservations.more_turns[self._session.id] = bool(self._turns) or found_turns >= self._turn_limit
        if self._task_limit:
            reservations.more_tasks[self._session.id] = bool(self._tasks) or found_tasks >= self._task_limit

    def finish(self, uow: UnitOfWork, reservations: SlotReservations) -> None:
        """After the operations."""
        session = self._session
        if self._turns or self._tasks:
            self._hand_out(uow, reservations)
        elif not reservations.unplaced_turns and not reservations.unplaced_tasks:
            return
        turns = reservations.unplaced_turns.get(session.id, [])
        tasks = reservations.unplaced_tasks.get(session.id, [])
        if not self._turns and not reservations.more_turns.get(session.id, session.more_turns):
            turns = [found for found in turns if not _give_turn(uow, reservations, session, found)]
        if not self._tasks and not reservations.more_tasks.get(session.id, session.more_tasks):
            tasks = [found for found in tasks if not _give_task(uow, reservations, session, found)]
        if self._turns or turns:
            reservations.more_turns[session.id] = True
        if self._tasks or tasks:
            reservations.more_tasks[session.id] = True

    def _hand_out(self, uow: UnitOfWork, reservations: SlotReservations) -> int:
        """How many suspects were passed over."""
        passed_over = 0
        while self._turns and reservations.has_turn_slot(self._session):
            execution = uow.loaded.executions[self._turns.popleft()]
            passed_over += not reservations.may_suspect(self._session, execution)
            _give_turn(uow, reservations, self._session, execution)
        while self._tasks and reservations.has_task_slot(self._session):
            task = uow.loaded.tasks.get(self._tasks.popleft())
            if task is not None:
                _give_task(uow, reservations, self._session, task)
        return passed_over


def _give_turn(uow: UnitOfWork, reservations: SlotReservations, session: Session, execution: Execution) -> bool:
    """Lease it, unless there is no room. What an operation has closed or leased meanwhile needs no lease."""
    if not execution.is_open or execution.ready is None or execution.ready.worker is not None:
        return True
    if not reservations.has_turn_slot(session):
        return False
    if reservations.may_suspect(session, execution):
        grant(uow, execution, session.id)
        reservations.turn_taken(session.id, execution)
    return True


def _give_task(uow: UnitOfWork, reservations: SlotReservations, session: Session, task: TaskRow) -> bool:
    current = uow.loaded.tasks.get((task.execution_id, task.task_no))
    if current is not task or task.worker is not None or task.not_before_at > uow.now:
        return True
    if not reservations.has_task_slot(session):
        return False
    start_attempt(uow, task, session.id)
    reservations.task_taken(session.id)
    return True


def plan_backfills(dispatcher: Dispatcher, plan: LoadPlan, freed_turns: int, freed_tasks: int) -> list[Backfill]:
    return [
        Backfill(dispatcher, session, plan, (freed_turns, freed_tasks))
        for session in dispatcher.sessions.values()
        if not session.takes_nothing
    ]
