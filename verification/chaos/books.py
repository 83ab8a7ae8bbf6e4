"""What the processes of a chaos run have written down: calls and their answers, bodies that ran."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verification.chaos.app import read_book
from verification.chaos.metronome import Stall


@dataclass
class Called:
    """One call under its request id. Times are those of the machine's monotonic clock, in microseconds."""

    call: dict[str, Any]
    invoked_at: int
    answers: list[dict[str, Any]] = field(default_factory=list)
    answered_at: int = 0
    refused: str = ""
    complaints: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.call["id"])

    @property
    def what(self) -> str:
        return str(self.call["what"])

    @property
    def outcome(self) -> str:
        return "ok" if self.answers else "refused" if self.refused else "unknown"


@dataclass
class Body:
    """One run of a body: of attempt `attempt` of a task, or of a step. `ended_at`: it has returned; `failed_at`: it has
    raised or was cancelled, where the body tells."""

    label: str
    attempt: int
    value: str
    began_at: int
    process: str
    ended_at: int | None = None
    failed_at: int | None = None

    @property
    def over_at(self) -> int | None:
        return self.ended_at or self.failed_at


@dataclass
class Books:
    calls: dict[str, Called]
    tasks: dict[tuple[str, int], list[Body]]
    steps: dict[tuple[str, str], list[Body]]
    stalls: dict[str, list[Stall]] = field(default_factory=lambda: defaultdict(list))
    """From when to when a process did not come to run."""

    def of(self, *what: str) -> list[Called]:
        return [called for called in self.calls.values() if called.what in what]


def read_books(folder: Path) -> Books:
    books = Books({}, defaultdict(list), defaultdict(list))
    for path in sorted(folder.glob("*.calls")):
        _read_calls(path, books)
    for path in sorted(folder.glob("*.ledger")):
        _read_ledger(path, books)
    return books


def _read_calls(path: Path, books: Books) -> None:
    for at, what, *words in read_book(path):
        if what == "call":
            books.calls[words[0]["id"]] = Called(words[0], at)
            continue
        called = books.calls[words[0]]
        if what == "ok":
            called.answers.append(words[1])
            called.answered_at = called.answered_at or at
        elif what == "refused":
            called.refused = words[1]
        elif what == "mismatch":
            called.complaints.append(words[1])


def _read_ledger(path: Path, books: Books) -> None:
    open_bodies: dict[str, Body] = {}
    for at, what, execution_id, *words in read_book(path):
        if what == "stalled":
            books.stalls[path.stem].append((execution_id, at))
        elif what == "task":
            number, attempt, label, value = words
            open_bodies[value] = body = Body(label, attempt, value, at, path.stem)
            books.tasks[execution_id, number].append(body)
        elif what == "step":
            label, value = words
            open_bodies[value] = body = Body(label, 0, value, at, path.stem)
            books.steps[execution_id, label].append(body)
        elif what == "task failed":
            open_bodies[words[-1]].failed_at = at
        else:
            open_bodies[words[-1]].ended_at = at
