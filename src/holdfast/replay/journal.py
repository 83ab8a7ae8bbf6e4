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
    c.CompleteWorkflow: e.WorkflowCompleted,
    c.FailWorkflow: e.WorkflowFailed,
    c.CancelWorkflow: e.WorkflowCancelled,
}
COMMAND_EVENTS = tuple(RECORDED_AS.values())
STEP_EVENTS = (e.StepCompleted, e.StepFailed)


def describe(item: Any) -> str:
    """A command or its event in a few words, the same for both."""
    match item:
        case c.ScheduleTask() | e.TaskScheduled():
            return f"task {item.task_no} {item.kind!r}"
        case c.CancelTask() | e.TaskCancelRequested():
            return f"cancel task {item.task_no}"
        case c.StartTimer() | e.TimerStarted():
            return f"timer {item.timer_no}"
        case c.CancelTimer() | e.TimerCancelled():
            return f"cancel timer {item.timer_no}"
        case e.StepCompleted() | e.StepFailed():
            return f"step {item.step_no} {item.name!r}"
        case c.CompleteWorkflow() | e.WorkflowCompleted():
            return "complete the workflow"
        case c.FailWorkflow() | e.WorkflowFailed():
            return "fail the workflow"
        case c.CancelWorkflow() | e.WorkflowCancelled():
            return "cancel the workflow"
    return type(item).__name__


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
    """The recorded commands of one turn, in order."""

    __slots__ = ("_rows", "up_to")

    def __init__(self, up_to: int, rows: Iterable[e.HistoryEvent]) -> None:
        self.up_to = up_to
        self._rows = deque(rows)

    def match(self, command: c.Command) -> DeterminismError | None:
        """The program has asked for `command`: is it what was recorded next?"""
        if not self._rows:
            return mismatch(self.up_to, None, command)
        row = self._rows.popleft()
        if type(row.body) is RECORDED_AS[type(command)] and describe(row.body) == describe(command):
            return None
        return mismatch(row.seq, row.body, command)

    def finish(self) -> DeterminismError | None:
        """The program has gone quiet: was anything recorded that it did not ask for?"""
        if not self._rows:
            return None
        row = self._rows[0]
        return mismatch(row.seq, row.body, "nothing more in this turn")
