"""What bodies have really done against what the histories say of it: results, and how often they had to run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import msgspec

from holdfast.model import events as e
from verification.invariants import Record, Violation
from verification.invariants.records import own_events
from verification.simulation.ledger import Attempt, Ledger
from verification.simulation.programs import ATTEMPTS, SLOW
from verification.simulation.redone import Lines

STEP_TRIES: Final = 3


@dataclass(frozen=True)
class Trouble:
    """What may cost a node what it runs: all nodes, if it has no name. Times are true ones, in microseconds; whatever
    was lost is noticed within `lease` after it."""

    node: str
    began_at: int
    ended_at: int
    lease: int

    def excuses(self, first: Attempt, second: Attempt) -> bool:
        """Whether the second run may be due to it."""
        return (
            self.node in {"", first.node, second.node}
            and self.began_at <= second.began_at
            and first.began_at <= self.ended_at + self.lease
        )


def check_bodies(
    lines: Lines, ledger: Ledger, troubles: Sequence[Trouble], *, disruptions: int, handed_back: bool
) -> Iterator[Violation]:
    """`disruptions`: how many faults may have cost a running body; `handed_back`: whether attempts may have been."""
    for key, record in lines.by_id.items():
        yield from _results(record, ledger, lines.lines[key])
    for (key, number), runs in ledger.attempts.items():
        yield from _attempts(key, number, runs, handed_back=handed_back)
        yield from _needless(key, number, runs, troubles)
    for (key, label), runs in ledger.steps.items():
        # Whoever takes over the past before its outcome runs it once more.
        due = 1 + lines.heirs.get(key, 0)
        if len(runs) > STEP_TRIES * (due + disruptions):
            yield Violation("I12", key, 0, f"step {label} ran {len(runs)} times, with {disruptions} faults")
        ended = sum(run.ended_at is not None for run in runs)
        if ended > due and not disruptions:
            yield Violation("I12", key, 0, f"step {label} has ended {ended} times without a fault")


def _results(record: Record, ledger: Ledger, line: Sequence[str]) -> Iterator[Violation]:
    """What was recorded is what a body has returned. A step that was asked for before a reset has the id of then."""
    key = record.execution_row.id
    for event in own_events(record):
        body = event.body
        if isinstance(body, e.TaskCompleted):
            value = msgspec.json.decode(body.result)
            runs = ledger.attempts.get((key, body.task_no), [])
            if not any(run.value == value and run.attempt == body.attempt and run.ended_at is not None for run in runs):
                text = f"task {body.task_no} is recorded with {value} of attempt {body.attempt}, which returned no such"
                yield Violation("I11", key, event.seq, text)
        elif isinstance(body, e.StepCompleted):
            value = msgspec.json.decode(body.result)
            runs = [run for one in line for run in ledger.steps.get((one, body.name), ())]
            if not any(run.value == value and run.ended_at is not None for run in runs):
                yield Violation("I11", key, event.seq, f"step {body.name} is recorded with {value}: nobody returned it")


def _attempts(key: str, number: int, runs: Sequence[Attempt], *, handed_back: bool) -> Iterator[Violation]:
    """Attempts are numbered from 1, each begins once unless it was handed back, and there are no more than allowed."""
    counts = Counter(run.attempt for run in runs)
    if max(counts) > ATTEMPTS:
        yield Violation("I12", key, 0, f"task {number} was tried {max(counts)} times; {ATTEMPTS} are allowed")
    if not handed_back and max(counts.values()) > 1:
        yield Violation("I11", key, 0, f"task {number}: an attempt was begun more than once: {dict(counts)}")


def _needless(key: str, number: int, runs: Sequence[Attempt], troubles: Sequence[Trouble]) -> Iterator[Violation]:
    """What returns a value is not run again, neither afterwards nor meanwhile, unless its worker was lost. The slow
    ones run into their time limit."""
    for first, second in pairwise(runs):
        if first.ended_at is None or first.label.startswith(SLOW):
            continue
        if any(trouble.excuses(first, second) for trouble in troubles):
            continue
        if second.began_at < first.ended_at:
            text = f"task {number}: attempt {second.attempt} began while {first.attempt} ran, and no worker was lost"
            yield Violation("I11", key, 0, text)
        else:
            text = f"task {number}: attempt {second.attempt} began though {first.attempt} had returned {first.value}"
            yield Violation("I12", key, 0, text)
