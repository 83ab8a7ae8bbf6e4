"""What has really happened: which bodies ran, and what callers asked for and were told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Attempt:
    """One run of a task's body, or of a step's."""

    execution_id: str
    number: int
    label: str
    attempt: int
    value: str
    began_at: int
    ended_at: int | None = None


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
    returned_at: int = 0
    execution_id: str = ""


class Ledger:
    """Kept outside of all nodes: nothing that happens to them is lost here."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
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
        run = Attempt(execution_id, 0, label, len(runs) + 1, self._value(), self._clock())
        runs.append(run)
        self.note(f"step {label} of {execution_id} runs: {run.value}")
        return run.value, run.attempt

    def step_ended(self, execution_id: str, label: str, value: str) -> None:
        for run in self.steps[execution_id, label]:
            if run.value == value:
                run.ended_at = self._clock()

    def attempt_began(self, execution_id: str, task_no: int, attempt: int, label: str) -> str:
        run = Attempt(execution_id, task_no, label, attempt, self._value(), self._clock())
        self.attempts.setdefault((execution_id, task_no), []).append(run)
        self.note(f"attempt {attempt} of task {task_no} ({label}) of {execution_id} runs: {run.value}")
        return run.value

    def attempt_ended(self, execution_id: str, task_no: int, attempt: int, value: str) -> None:
        for run in self.attempts[execution_id, task_no]:
            if run.value == value:
                run.ended_at = self._clock()
