"""Events, waits and tasks of an execution as short lines for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime

from holdfast import events as e
from holdfast.types import Payload, PendingTask, Wait, WaitingFor

SHORT = 76
COLOURS = {"grey": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def paint(text: str, colour: str) -> str:
    """Coloured on a terminal, plain everywhere else."""
    if not colour or not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\033[{COLOURS[colour]}m{text}\033[0m"


def clock(at: datetime | int) -> str:
    """An instant as local time of day; those in histories are microseconds."""
    when = at if isinstance(at, datetime) else datetime.fromtimestamp(at / 1_000_000, UTC)
    return when.astimezone().strftime("%H:%M:%S")


def value(payload: Payload) -> str:
    text = bytes(payload).decode()
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


def waits_line(waits: Iterable[Wait | WaitingFor]) -> str:
    """What an execution waits for; timers, which mostly limit something else, come last."""
    return ", ".join(_wait(wait) for wait in sorted(waits, key=lambda wait: wait.kind == "timer"))


def _wait(wait: Wait | WaitingFor) -> str:
    until = wait.until if isinstance(wait, WaitingFor) else wait.until_at
    return f"{wait.kind} {wait.name}" if until is None else f"{wait.name} at {clock(until)}"


def task_line(task: PendingTask, now: datetime) -> str:
    """A task that is not finished."""
    progress = "" if task.progress is None else f", {task.progress:.0%} done"
    reason = "" if task.last_failure is None else f" ({task.last_failure.message})"
    if task.running:
        return f"task {task.kind}: attempt {task.attempt} running{progress}"
    if task.attempt == 0:
        return f"task {task.kind}: waiting for a worker"
    if task.not_before is not None and task.not_before > now:
        pause_s = (task.not_before - now).total_seconds()
        return f"task {task.kind}: attempt {task.attempt} failed{reason}; next in {pause_s:.1f} s{progress}"
    return f"task {task.kind}: attempt {task.attempt} failed{reason}; waiting for a worker{progress}"


class Story:
    """Tells the events of one execution; remembers which number was which task."""

    def __init__(self) -> None:
        self._kinds: dict[int, str] = {}
        self._fire_at: dict[int, int] = {}

    def line(self, event: e.HistoryEvent) -> tuple[str, str]:
        """What happened, and a colour for it."""
        body = event.body
        match body:
            case e.WorkflowStarted():
                return f"started {body.kind} {value(body.input)}", "blue"
            case e.SignalReceived():
                return f"signal {body.signal_name} {value(body.signal_value)}", "blue"
            case e.CancelRequested():
                return f"asked to cancel: {body.reason or 'no reason given'}", "yellow"
            case e.TurnCompleted():
                if not body.waiting_for:
                    return "turn recorded", "grey"
                return f"waiting for {waits_line(body.waiting_for)}", "cyan"
            case e.WorkflowCompleted():
                return f"completed: {value(body.result)}", "green"
            case e.WorkflowFailed():
                return f"failed: {body.failure.type}: {body.failure.message}", "red"
            case e.WorkflowCancelled() | e.WorkflowTerminated():
                return f"{body.TYPE.removeprefix('WORKFLOW_').lower()}: {body.reason or 'no reason given'}", "yellow"
        return self._work(body)

    def _work(self, body: e.EventBody) -> tuple[str, str]:
        match body:
            case e.StepCompleted():
                return f"step {body.name} done: {value(body.result)}", ""
            case e.StepFailed():
                return f"step {body.name} failed after {body.attempts} attempts: {body.failure.message}", "red"
            case e.TaskScheduled():
                self._kinds[body.task_no] = body.kind
                return f"task {body.kind} queued", ""
            case e.TaskCompleted():
                attempts = f" (attempt {body.attempt})" if body.attempt > 1 else ""
                return f"task {self._kind(body.task_no)} done{attempts}: {value(body.result)}", ""
            case e.TaskFailed():
                reason = f"{body.failure.type}: {body.failure.message}"
                return f"task {self._kind(body.task_no)} failed after {body.attempt} attempts: {reason}", "red"
            case e.TaskCancelRequested():
                return f"task {self._kind(body.task_no)} cancelled", "yellow"
            case e.TimerStarted():
                self._fire_at[body.timer_no] = body.fire_at
                return f"timer set for {clock(body.fire_at)}", "grey"
            case e.TimerFired():
                return f"timer of {clock(self._fire_at.get(body.timer_no, 0))} fired", "yellow"
            case e.TimerCancelled():
                return f"timer of {clock(self._fire_at.get(body.timer_no, 0))} not needed any more", "grey"
        return body.TYPE, ""

    def _kind(self, task_no: int) -> str:
        return self._kinds.get(task_no, f"number {task_no}")
