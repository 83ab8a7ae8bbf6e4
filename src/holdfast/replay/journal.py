"""The comparison of what a program asks for with what its history records."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from holdfast.errors import DeterminismError
from holdfast.model import commands as c
from holdfast.model import events as e

RECORDED_AS: dict[type[Any], type[e.TurnEvent]] = {
    c.ScheduleTask: e.TaskScheduled,
    c.CancelTask: e.TaskCancelRequested,
    c.StartTimer: e.TimerStarted,
    c.CancelTimer: e.TimerCancelled,
    c.StartChild: e.ChildStarted,
    c.CancelChild: e.ChildCancelRequested,
    c.SignalExternal: e.ExternalSignalInitiated,
    c.CreatePromise: e.PromiseCreated,
    c.CancelPromise: e.PromiseCancelled,
    c.StartWait: e.WaitStarted,
    c.CancelWait: e.WaitCancelled,
    c.Publish: e.EventPublished,
    c.ThrowBroadcast: e.BroadcastThrown,
    c.AcceptUpdate: e.UpdateAccepted,
    c.RejectUpdate: e.UpdateRejected,
    c.CompleteUpdate: e.UpdateCompleted,
    c.FailUpdate: e.UpdateFailed,
    c.MarkPatch: e.PatchMarked,
    c.CompleteWorkflow: e.WorkflowCompleted,
    c.FailWorkflow: e.WorkflowFailed,
    c.CancelWorkflow: e.WorkflowCancelled,
    c.ContinueWorkflow: e.WorkflowContinued,
}
"""Which event records which command. Observations (see model.commands) are missing on purpose."""
COMMAND_EVENTS = tuple(RECORDED_AS.values())
STEP_EVENTS = (e.StepCompleted, e.StepFailed)


_WORDS: dict[type[Any], str] = {
    c.ScheduleTask: "task {0.task_no} {0.kind!r}",
    c.CancelTask: "cancel task {0.task_no}",
    c.StartTimer: "timer {0.timer_no}",
    c.CancelTimer: "cancel timer {0.timer_no}",
    c.StartChild: "child {0.child_no} {0.kind!r}",
    c.CancelChild: "cancel child {0.child_no}",
    c.SignalExternal: "signal {0.signal_name!r} to {0.target!r}",
    c.CreatePromise: "promise {0.promise_no} {0.name!r}",
    c.CancelPromise: "cancel promise {0.name!r}",
    c.StartWait: "wait {0.wait_no} for {0.kind} {0.key!r}",
    c.CancelWait: "cancel wait {0.wait_no}",
    c.Publish: "publish {0.key!r}",
    c.ThrowBroadcast: "broadcast {0.name!r}",
    c.AcceptUpdate: "accept update {0.update_id!r}",
    c.RejectUpdate: "reject update {0.update_id!r}",
    c.CompleteUpdate: "complete update {0.update_id!r}",
    c.FailUpdate: "fail update {0.update_id!r}",
    c.MarkPatch: "patch {0.patch_id!r}",
    c.CompleteWorkflow: "complete the workflow",
    c.FailWorkflow: "fail the workflow",
    c.CancelWorkflow: "cancel the workflow",
    c.ContinueWorkflow: "continue as new",
    e.StepCompleted: "step {0.step_no} {0.name!r}",
    e.StepFailed: "step {0.step_no} {0.name!r}",
}
_WORDS.update({event: _WORDS[command] for command, event in RECORDED_AS.items()})


def describe(item: Any) -> str:
    """A command or its event in a few words, the same for both."""
    words = _WORDS.get(type(item))
    return type(item).__name__ if words is None else words.format(item)


def mismatch(event_seq: int, recorded: Any, attempted: Any, *, line: str = "") -> DeterminismError:
    """Both sides, the event's number, and the source line of each."""
    was = describe(recorded) if recorded is not None else "nothing more in this turn"
    now = attempted if isinstance(attempted, str) else describe(attempted)
    was_line = getattr(recorded, "line", "")
    now_line = line or getattr(attempted, "line", "")
    return DeterminismError(
        f"event {event_seq} records: {was}{_at(was_line)}; the program now asks for: {now}{_at(now_line)}. Deploy "
        "code that makes the recorded moves, or give the changed workflow a new version",
        event_seq=event_seq,
        recorded=was,
        attempted=now,
        recorded_line=was_line,
        attempted_line=now_line,
    )


def _at(line: str) -> str:
    return f" ({line})" if line else ""


class Journal:
    """The recorded commands of one turn, in order. `matched` is the event of the command that was compared last."""

    __slots__ = ("_rows", "matched", "up_to")

    def __init__(self, up_to: int, rows: Iterable[e.HistoryEvent]) -> None:
        self.up_to = up_to
        self._rows = deque(rows)
        self.matched: Any = None

    def next_is_patch(self, patch_id: str) -> bool:
        """Whether the mark of this patch was recorded next."""
        return bool(self._rows) and self._rows[0].body == e.PatchMarked(
            up_to=self.up_to, patch_id=patch_id, line=getattr(self._rows[0].body, "line", "")
        )

    def match(self, command: c.Command) -> DeterminismError | None:
        """The program has asked for `command`: is it what was recorded next?"""
        if not self._rows:
            return mismatch(self.up_to, None, command)
        row = self._rows.popleft()
        if type(row.body) is RECORDED_AS[type(command)] and describe(row.body) == describe(command):
            self.matched = row.body
            return None
        if type(command) is c.ContinueWorkflow and type(row.body) is e.WorkflowFailed:
            return None  # nobody knew the workflow that was to take over
        return mismatch(row.seq, row.body, command)

    def finish(self) -> DeterminismError | None:
        """The program has gone quiet: was anything recorded that it did not ask for?"""
        if not self._rows:
            return None
        row = self._rows[0]
        return mismatch(row.seq, row.body, "nothing more in this turn")
