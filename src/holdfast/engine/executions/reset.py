"""Take an execution back to an event: it ends, and a new one goes on from there in its place."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.executions import ResetExecution, RetryExecution, StartAnswer
from holdfast.engine.executions.rebuild import Rebuild
from holdfast.engine.rules import rebuilding
from holdfast.engine.rules.closing import CLOSED, bury, bury_unread, end_from_outside
from holdfast.engine.rules.starting import Beginning, add_head, new_execution_id
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.events import HistoryEvent, SignalReceived, WorkflowReset, WorkflowTerminated
from holdfast.model.executions import Execution, State
from holdfast.store.protocol import LoadPlan


class Reset(Rebuild[ResetExecution | RetryExecution]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        super().plan(plan)
        signals = (event.seq for event in self.past.prefix.events if isinstance(event.body, SignalReceived))
        plan.dead_letters.update((self.past.execution_id, seq) for seq in signals)

    def decide(self, ws: Workspace) -> StartAnswer:
        request = self.request
        reapply = request.reapply_signals if isinstance(request, ResetExecution) else True
        return self.replace(ws, reapply=reapply, anew=False)

    def replace(self, ws: Workspace, *, reapply: bool, anew: bool) -> StartAnswer:
        request, past = self.request, self.past
        old = ws.execution(request.org, past.execution_id)
        self.check_free(ws, old.workflow_id, but=old.id)
        still_open = self.open_children(ws)
        carried = self.carried(ws, still_open, calls=reapply)
        new_id = new_execution_id(ws)
        beginning = self.beginning(old, new_id, self.deadline(ws, anew=anew))
        if old.is_open:
            beginning = _in_the_family(beginning, old)
        new = add_head(ws, beginning)
        prefix = self.prefix_for(new_id)
        rebuilding.take_over(ws, new, prefix, seed=old.id)
        for number, child in still_open.items():
            rebuilding.move_child(ws, number, child, new, prefix)
        if old.is_open:
            if not reapply:
                # Nobody has read them, and nobody will: what is left out is not dropped in silence.
                bury_unread(ws, old, (), max(old.seen_seq, new.last_seq))
            reason = request.reason or f"reset to event {new.last_seq}"
            end = WorkflowTerminated(reason=reason, successor=new_id)
            end_from_outside(ws, old, State.TERMINATED, end, successor=new_id)
            if new.parent_id is not None:
                ws.loaded.children[new.parent_id, new.child_no] = new_id
        elif old.state is not State.CONTINUED:
            # The last event of one that continued says who goes on in its place; that stays.
            old.successor = new_id
            ws.turn(old)
        self._settle_letters(ws, old, carried)
        reset = WorkflowReset(
            from_execution_id=old.id, event_seq=new.last_seq, workflow_id=new.workflow_id, reason=request.reason
        )
        rebuilding.go_on(ws, new, prefix, reset, carried)
        return StartAnswer(new_id, new.workflow_id, True)

    def _settle_letters(self, ws: Workspace, old: Execution, carried: list[HistoryEvent]) -> None:
        """What the new one finds in its queues must not be received again, as a dead letter of the old one. A letter
        that a handler of the past has refused is in no queue."""
        again = {event.seq for event in carried if isinstance(event.body, SignalReceived)}
        for (execution_id, seq), (letter, _) in ws.loaded.dead_letters.items():
            left = letter.reason == CLOSED or (old.closed_at is not None and letter.at >= old.closed_at)
            if execution_id == old.id and left and seq <= len(self.past.prefix.events):
                again.add(seq)
        ws.changes.settled_letters.extend((old.id, seq) for seq in sorted(again))
        self._unbury(ws, old, again)

    def _unbury(self, ws: Workspace, old: Execution, again: set[int]) -> None:
        """It may have been closed in this transaction, or is just now: its letters are not written yet."""
        changes, prefix = ws.changes, self.past.prefix.events
        taken = again | {event.seq for event in prefix}
        changes.dead_letters = [
            letter
            for letter in changes.dead_letters
            if letter.execution_id != old.id or letter.seq not in taken or letter.reason != CLOSED
        ]
        pending = [asked for asked in changes.bury if asked[0] == old.id]
        if not pending:
            return
        changes.bury = [asked for asked in changes.bury if asked[0] != old.id]
        left = [event.seq for event in self.tail(ws) if isinstance(event.body, SignalReceived)]
        for _, seen, reason in pending:
            for seq in left:
                if seq > seen and seq not in again:
                    bury(ws, old, seq, reason)


def _in_the_family(beginning: Beginning, old: Execution) -> Beginning:
    """Its parent waits for the new one instead. One that was closed before has told its parent already."""
    return structs.replace(
        beginning, parent_id=old.parent_id, child_no=old.child_no, on_parent_close=old.on_parent_close
    )
