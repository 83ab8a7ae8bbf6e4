"""Record what the holder of an execution did: turns, finished steps, and perhaps its end.

Refused whole when the lease has passed on. A turn run ahead of a finished step is dropped when something else came in
between; a closing turn is sent back while there is a signal or cancel it has not seen, at most three times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.contract.workers import CompleteTurn, TurnAnswer, TurnVerdict
from holdfast.engine.messages.matching import plan_publication
from holdfast.engine.operation import Operation
from holdfast.engine.rules import commands
from holdfast.engine.rules.closing import dead_letter, dead_letter_unread, drop_waits
from holdfast.engine.rules.leases import check_here, check_holder, give_up_slot, release_lease
from holdfast.engine.rules.retained_events import plan_look_back
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.engine.turns.checks import refusal_of
from holdfast.errors import InvalidRequest
from holdfast.model import commands as c
from holdfast.model.commands import Turn
from holdfast.model.events import TurnCompleted
from holdfast.model.executions import DEADLINE_NO, OPEN_STATES, Execution
from holdfast.store.protocol import LoadPlan

CLOSE_ROUNDS = 3
CLOSING = frozenset(c.CLOSING)
RECORDED, UNREAD = TurnVerdict.RECORDED, TurnVerdict.UNREAD
_SENT = frozenset({c.Publish, c.ThrowBroadcast})


class Complete(Operation[CompleteTurn, TurnAnswer]):
    __slots__ = ("_matches", "_refusal")
    RETRY_ON_OUTAGE = True
    RELEASES_SLOT = "turn"

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        plan.executions.add(request.execution_id)
        self._matches: dict[int, int] = {}
        turns = request.turns if request.after_steps is None else (*request.turns, request.after_steps)
        self._refusal = refusal_of(turns)
        if self._refusal is not None:
            return
        for turn in turns:
            for command in turn.commands:
                if type(command) in _SENT:
                    self._matches[id(command)] = len(plan.matches)
                    plan_publication(plan, request.org, command)  # type: ignore[arg-type]  # one of those
                need = _NEEDS.get(type(command))
                if need is not None:
                    need(plan, request, command)

    def decide(self, uow: UnitOfWork) -> TurnAnswer:
        request = self.request
        execution = uow.execution(request.org, request.execution_id)
        check_here(uow, execution, check_holder(execution, request.token))
        if self._refusal is not None:
            raise self._refusal
        turns, ahead, verdict = self._judge(execution)
        unseen = execution.last_seq > request.base_seq
        first_seq = execution.last_seq + 1
        last = ahead or (turns[-1] if turns else None)
        releasing = request.waiting_for is not None and verdict is RECORDED and not unseen
        for seq, reason in request.refused:
            dead_letter(uow, execution, seq, reason)
        for turn in turns:
            self._record_turn(uow, execution, turn, keep_row=not turn.commands, releasing=releasing and turn is last)
        for step in request.steps:
            # Recorded alone, it is all that tells of the turn that has asked for it, and of what that had seen.
            execution.seen_seq = max(execution.seen_seq, step.up_to)
            uow.append(execution, step)
        if ahead is not None:
            # Empty, it will be recorded by the next commit: most often by the step that it has asked for.
            self._record_turn(uow, execution, ahead, keep_row=False, releasing=releasing)
        closed = execution.state not in OPEN_STATES
        if not closed:
            self._settle(uow, execution, verdict, releasing)
        # Before what follows: the worker numbers its own rows by this answer, and is told of the rest as news.
        answer = TurnAnswer(verdict, first_seq, execution.last_seq, execution.ready is None, closed)
        if uow.deferred_look_backs or uow.deferred:
            uow.run_deferred()
        return answer

    def on_refused(self, uow: UnitOfWork) -> None:
        give_up_slot(uow, self.request.execution_id)

    def _judge(self, execution: Execution) -> tuple[tuple[Turn, ...], Turn | None, TurnVerdict]:
        """Which turns may be recorded as they are."""
        request = self.request
        turns, ahead = request.turns, request.after_steps
        if request.base_seq > execution.last_seq:
            raise InvalidRequest(
                f"base_seq {request.base_seq} lies beyond the history ({execution.last_seq})", field="base_seq"
            )
        self._check_shape()
        if ahead is not None and execution.last_seq > request.base_seq:
            return turns, None, TurnVerdict.STEPS_ONLY
        if turns and ahead is None and _closes(turns[-1]) and not _continues(turns[-1]):
            unread = execution.call_seq > request.base_seq
            if unread and execution.close_rounds < CLOSE_ROUNDS:
                return turns[:-1], None, UNREAD
        return turns, ahead, RECORDED

    def _check_shape(self) -> None:
        """Nothing may follow the end, and a turn ahead must have seen the last step and no more."""
        request = self.request
        ahead = request.after_steps
        end = ahead if ahead is not None else request.turns[-1] if request.turns else None
        seq = request.base_seq + len(request.steps)
        for turn in request.turns:
            seq += len(turn.commands) or 1
            for command in turn.commands:
                if type(command) in CLOSING and (turn is not end or command is not turn.commands[-1]):
                    raise InvalidRequest("nothing may follow the command that ends the workflow", field="commands")
        if ahead is None:
            if request.steps and end is not None and _closes(end):
                raise InvalidRequest("nothing may follow the command that ends the workflow", field="steps")
        elif ahead.up_to != seq or not CLOSING.isdisjoint(map(type, ahead.commands[:-1])):
            raise InvalidRequest(f"a turn ahead must have seen event {seq}, and end with its end", field="after_steps")

    def _record_turn(
        self, uow: UnitOfWork, execution: Execution, turn: Turn, *, keep_row: bool, releasing: bool
    ) -> None:
        up_to = turn.up_to
        execution.seen_seq = max(execution.seen_seq, up_to)
        for command in turn.commands:
            if type(command) in CLOSING:
                self._prepare_end(uow, execution, command)
            if self._matches and isinstance(command, c.Publish | c.ThrowBroadcast):
                candidates = uow.loaded.matches[self._matches[id(command)]]
                commands.send(uow, execution, command, up_to, candidates)
            else:
                commands.APPLY[type(command)](uow, execution, command, up_to)
        # A turn that leaves no row of its own is recorded by this one: replay must know that it took place.
        if (releasing or keep_row) and execution.state in OPEN_STATES:
            uow.append(
                execution,
                TurnCompleted(
                    up_to=up_to,
                    scheduled_at=turn.scheduled_at,
                    started_at=turn.started_at,
                    worker=self.request.worker,
                    waiting_for=self.request.waiting_for or () if releasing else (),
                ),
            )

    def _prepare_end(self, uow: UnitOfWork, execution: Execution, command: c.Command) -> None:
        """Nothing can be appended after the end: what was put off comes first, then the signals nobody has read."""
        request = self.request
        # What it waits for it no longer wants: an event that only one may have is not wasted on it.
        if execution.open_waits:
            drop_waits(uow, execution)
        if uow.deferred_look_backs or uow.deferred:
            uow.run_deferred()
        if not isinstance(command, c.ContinueWorkflow):
            dead_letter_unread(uow, execution, request.unread, request.base_seq)
            return
        fresh = [event for event in uow.appended.get(execution.id, ()) if event.seq > request.base_seq]
        uow.loaded.unread.setdefault(execution.id, []).extend(fresh)

    def _settle(self, uow: UnitOfWork, execution: Execution, verdict: TurnVerdict, releasing: bool) -> None:
        execution.close_rounds = execution.close_rounds + 1 if verdict is UNREAD else 0
        if execution.crashes or execution.stuck is not None:
            uow.mark_state_changed(execution)
        if execution.crashes:
            execution.crashes = 0
            if execution.ready is not None and execution.ready.worker is not None:
                uow.place.cleared(execution.ready.worker, execution)
        execution.stuck = None
        uow.touch(execution)
        if releasing:
            execution.waiting_for = self.request.waiting_for or ()
            # Nothing was unseen: what follows the turn's last event are its own rows.
            execution.seen_seq = execution.last_seq
            release_lease(uow, execution)


def _closes(turn: Turn) -> bool:
    return bool(turn.commands) and type(turn.commands[-1]) in CLOSING


def _continues(turn: Turn) -> bool:
    """Whether it ends with the next run, which takes over what nobody has read: that is never refused."""
    return isinstance(turn.commands[-1], c.ContinueWorkflow)


def _need_task(plan: LoadPlan, request: CompleteTurn, command: c.CancelTask) -> None:
    plan.tasks.add((request.execution_id, command.task_no))


def _need_timer(plan: LoadPlan, request: CompleteTurn, command: c.CancelTimer) -> None:
    plan.timers.add((request.execution_id, command.timer_no))


def _need_for_child(plan: LoadPlan, request: CompleteTurn, command: c.StartChild) -> None:
    plan.definitions.add((request.org, command.kind))
    plan.numbering = True
    plan.executions.add(command.child_execution_id)
    if command.workflow_id is not None:
        plan.workflow_keys.add((request.org, command.workflow_id))


def _need_child(plan: LoadPlan, request: CompleteTurn, command: c.CancelChild) -> None:
    plan.children.add((request.execution_id, command.child_no))


def _need_target(plan: LoadPlan, request: CompleteTurn, command: c.SignalExternal) -> None:
    if command.child_no:
        plan.children.add((request.execution_id, command.child_no))
    else:
        plan.workflow_keys.add((request.org, command.target))
        plan.executions.add(command.target)


def _need_next_run(plan: LoadPlan, request: CompleteTurn, command: c.ContinueWorkflow) -> None:
    plan.unread[request.execution_id] = (request.base_seq, request.unread)
    plan.timers.add((request.execution_id, DEADLINE_NO))
    plan.definitions.add((request.org, command.kind))
    plan.numbering = True


def _need_promise(plan: LoadPlan, request: CompleteTurn, command: c.CreatePromise | c.CancelPromise) -> None:
    plan.promises.add((request.execution_id, command.name))
    if isinstance(command, c.CreatePromise) and command.event_key is not None:
        plan.topics.add((request.org, command.event_key))
        plan.numbering = True


def _need_for_wait(plan: LoadPlan, request: CompleteTurn, command: c.StartWait) -> None:
    plan.numbering = True
    plan.topics.add((request.org, command.key))
    if command.since_at is not None:
        plan_look_back(plan, request.org, command)


def _need_wait(plan: LoadPlan, request: CompleteTurn, command: c.CancelWait) -> None:
    plan.waits.add((request.execution_id, command.wait_no))


_NEEDS: dict[type[Any], Callable[[LoadPlan, CompleteTurn, Any], None]] = {
    c.CancelTask: _need_task,
    c.CancelTimer: _need_timer,
    c.StartChild: _need_for_child,
    c.CancelChild: _need_child,
    c.SignalExternal: _need_target,
    c.ContinueWorkflow: _need_next_run,
    c.CreatePromise: _need_promise,
    c.CancelPromise: _need_promise,
    c.StartWait: _need_for_wait,
    c.CancelWait: _need_wait,
}
