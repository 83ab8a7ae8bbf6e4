"""What has really happened: which bodies ran, and what callers asked for and were told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Attempt:
    """One run of a task's body, or of a step's, on a node. It has ended if it has returned its value."""

    execution_id: str
    number: int
    label: str
    attempt: int
    value: str
    began_at: int
    ended_at: int | None = None
    node: str = ""


@dataclass(slots=True)
class Call:
    """What a caller has asked for, under one request id, until it knew. `answers` are all it was given."""

    what: str
    request_id: str
    workflow_id: str
    name: str
    invoked_at: int
    answers: list[Any] = field(default_factory=list)
    refused: str = ""
    unheard: int = 0
    """How often nothing was heard of it: it may still be done, even if a repeat was refused meanwhile."""
    refused_again: str = ""
    """How a repeat was refused, after the call had been answered."""
    returned_at: int = 0
    execution_id: str = ""
    outcome: Any = None
    """What came of an update, as its caller was told."""
    known: int = 0
    """How many events its caller had seen of the execution that is to be done again."""
    reapply: bool = True
    """Whether that takes along what came after the event it goes back to."""


class Ledger:
    """Kept outside of all nodes: nothing that happens to them is lost here. `clock` is the true time, which never
    jumps; `where` says which node runs just now."""

    def __init__(self, clock: Callable[[], int], where: Callable[[], str] = lambda: "") -> None:
        self._clock = clock
        self._where = where
        self._values = 0
        self.steps: dict[tuple[str, str], list[Attempt]] = {}
        self.attempts: dict[tuple[str, int], list[Attempt]] = {}
        self.calls: list[Call] = []
        self.notes: list[tuple[int, str]] = []
        self.errors: list[str] = []
        """What callers saw that no caller should."""

    def note(self, text: str) -> None:
        self.notes.append((self._clock(), text))

    def _value(self) -> str:
        self._values += 1
        return f"v{self._values}"

    def step_began(self, execution_id: str, label: str) -> tuple[str, int]:
        runs = self.steps.setdefault((execution_id, label), [])
        run = Attempt(execution_id, 0, label, len(runs) + 1, self._value(), self._clock(), None, self._where())
        runs.append(run)
        self.note(f"step {label} of {execution_id} runs: {run.value}")
        return run.value, run.attempt

    def step_ended(self, execution_id: str, label: str, value: str) -> None:
        for run in self.steps[execution_id, label]:
            if run.value == value:
                run.ended_at = self._clock()

    def attempt_began(self, execution_id: str, task_no: int, attempt: int, label: str) -> str:
        run = Attempt(execution_id, task_no, label, attempt, self._value(), self._clock(), None, self._where())
        self.attempts.setdefault((execution_id, task_no), []).append(run)
        self.note(f"attempt {attempt} of task {task_no} ({label}) of {execution_id} runs: {run.value}")
        return run.value

    def attempt_ended(self, execution_id: str, task_no: int, attempt: int, value: str) -> None:
        for run in self.attempts[execution_id, task_no]:
            if run.value == value:
                run.ended_at = self._clock()
