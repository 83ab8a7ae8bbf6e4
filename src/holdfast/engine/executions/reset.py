"""Take an execution back to an event: it ends, and a new one goes on from there in its place."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.executions import ResetExecution, RetryExecution, StartAnswer
from holdfast.engine.executions.rebuild import Rebuild
from holdfast.engine.rules import resets
from holdfast.engine.rules.closing import CLOSED, close_externally, dead_letter, dead_letter_unread
from holdfast.engine.rules.starts import NewExecution, insert_execution, new_execution_id
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.events import HistoryEvent, SignalReceived, WorkflowReset, WorkflowTerminated
from holdfast.model.executions import Execution, State
from holdfast.store.protocol import LoadPlan


class Reset(Rebuild[ResetExecution | RetryExecution]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        super().plan(plan)
        signals = (event.seq for event in self.source.prefix.events if isinstance(event.body, SignalReceived))
        plan.dead_letters.update((self.source.execution_id, seq) for seq in signals)

    def decide(self, uow: UnitOfWork) -> StartAnswer:
        request = self.request
        reapply = request.reapply_signals if isinstance(request, ResetExecution) else True
        return self.replace(uow, reapply=reapply, anew=False)

    def replace(self, uow: UnitOfWork, *, reapply: bool, anew: bool) -> StartAnswer:
        request, source = self.request, self.source
        old = uow.execution(request.org, source.execution_id)
        self.check_free(uow, old.workflow_id, but=old.id)
        still_open = self.open_children(uow)
        carried = self.carried(uow, still_open, calls=reapply)
        new_id = new_execution_id(uow)
        new_execution = self.new_execution(old, new_id, self.deadline(uow, anew=anew))
        if old.is_open:
            new_execution = _in_the_family(new_execution, old)
        new = insert_execution(uow, new_execution)
        prefix = self.prefix_for(new_id)
        resets.take_over(uow, new, prefix, seed=old.id)
        for number, child in still_open.items():
            resets.move_child(uow, number, child, new, prefix)
        if old.is_open:
            if not reapply:
                # Nobody has read them, and nobody will: what is left out is not dropped in silence.
                dead_letter_unread(uow, old, (), max(old.seen_seq, new.last_seq))
            reason = request.reason or f"reset to event {new.last_seq}"
            end = WorkflowTerminated(reason=reason, successor=new_id)
            close_externally(uow, old, State.TERMINATED, end, successor=new_id)
            if new.parent_id is not None:
                uow.loaded.children[new.parent_id, new.child_no] = new_id
        elif old.state is not State.CONTINUED:
            # The last event of one that continued says who goes on in its place; that stays.
            old.successor = new_id
            uow.mark_state_changed(old)
        self._settle_dead_letters(uow, old, carried)
        reset = WorkflowReset(
            from_execution_id=old.id, event_seq=new.last_seq, workflow_id=new.workflow_id, reason=request.reason
        )
        resets.continue_from(uow, new, prefix, reset, carried)
        return StartAnswer(new_id, new.workflow_id, True)

    def _settle_dead_letters(self, uow: UnitOfWork, old: Execution, carried: list[HistoryEvent]) -> None:
        """What the new one finds in its queues must not be received again, as a dead letter of the old one. A letter
        that a handler of the past has refused is in no queue."""
        again = {event.seq for event in carried if isinstance(event.body, SignalReceived)}
        for (execution_id, seq), (letter, _) in uow.loaded.dead_letters.items():
            left = letter.reason == CLOSED or (old.closed_at is not None and letter.at >= old.closed_at)
            if execution_id == old.id and left and seq <= len(self.source.prefix.events):
                again.add(seq)
        uow.changes.settled_letters.extend((old.id, seq) for seq in sorted(again))
        self._take_back_dead_letters(uow, old, again)

    def _take_back_dead_letters(self, uow: UnitOfWork, old: Execution, again: set[int]) -> None:
        """It may have been closed in this transaction, or is just now: its letters are not written yet."""
        changes, prefix = uow.changes, self.source.prefix.events
        taken = again | {event.seq for event in prefix}
        changes.dead_letters = [
            letter
            for letter in changes.dead_letters
            if letter.execution_id != old.id or letter.seq not in taken or letter.reason != CLOSED
        ]
        pending = [asked for asked in changes.dead_letter if asked[0] == old.id]
        if not pending:
            return
        changes.dead_letter = [asked for asked in changes.dead_letter if asked[0] != old.id]
        left = [event.seq for event in self.tail(uow) if isinstance(event.body, SignalReceived)]
        for _, seen, reason in pending:
            for seq in left:
                if seq > seen and seq not in again:
                    dead_letter(uow, old, seq, reason)


def _in_the_family(new_execution: NewExecution, old: Execution) -> NewExecution:
    """Its parent waits for the new one instead. One that was closed before has told its parent already."""
    return structs.replace(
        new_execution, parent_id=old.parent_id, child_no=old.child_no, on_parent_close=old.on_parent_close
    )
