"""The account of bodies: how often they ran, and whether what is recorded is what they have returned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from holdfast.frontends.python.definitions import Registry, TaskDefinition
from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import State
from verification.chaos.app import TASKS, WORKFLOWS
from verification.chaos.books import Body
from verification.chaos.run import Run
from verification.invariants import Record, Violation

STEP_TRIES: Final = 3
DEFINITIONS: Final[Mapping[str, TaskDefinition]] = {known.kind: known for known in Registry(WORKFLOWS, TASKS).tasks}
# What bodies are made to raise is something else.
UNMEANT: Final = frozenset({"AttributeError", "KeyError", "LookupError", "NameError", "OSError", "TypeError"})
# Their bodies also tell when they fail.
TELLS_FAILURES: Final = frozenset({"chore"})


def results(record: Record, run: Run) -> Iterator[Violation]:
    """What is recorded was returned, by the recorded attempt."""
    key, books = record.execution_row.id, run.books
    for event in record.history:
        body = event.body
        if isinstance(body, e.TaskCompleted):
            bodies = [each for each in books.tasks.get((key, body.task_no), ()) if each.attempt == body.attempt]
            yield from _returned(event, key, f"attempt {body.attempt} of task {body.task_no}", body.result, bodies)
        elif isinstance(body, e.StepCompleted):
            yield from _returned(event, key, f"step {body.name}", body.result, books.steps.get((key, body.name), []))
        elif isinstance(body, e.TaskFailed | e.StepFailed) and body.failure.type in UNMEANT:
            yield Violation("I11", key, event.seq, f"a body could not do what it was to do: {body.failure}")
            continue
        else:
            continue
        run.data["I11 results"] += 1


def _returned(
    event: HistoryEvent, key: str, what: str, result: msgspec.Raw, bodies: Sequence[Body]
) -> Iterator[Violation]:
    value = msgspec.json.decode(result)
    if not any(each.value == value and each.ended_at is not None for each in bodies):
        yield Violation("I11", key, event.seq, f"{what} is recorded with {value}, which no body has returned: {bodies}")


def attempts(run: Run) -> Iterator[Violation]:
    """Each attempt begins once, none before the one before it is over or lost, and no more than are allowed."""
    kinds = {
        (record.execution_row.id, event.body.task_no): event.body.kind
        for record in run.records
        for event in record.history
        if isinstance(event.body, e.TaskScheduled)
    }
    for (key, number), bodies in run.books.tasks.items():
        kind = kinds.get((key, number))
        if kind is None:
            yield Violation("I11", key, 0, f"task {number} ran, and nobody has asked for it")
            continue
        counts = Counter(body.attempt for body in bodies)
        kept = Counter(body.attempt for body in bodies if body.process not in run.sent_away)
        if kept and max(kept.values()) > 1:
            yield Violation("I11", key, 0, f"task {number}: an attempt was begun more than once: {dict(counts)}")
        retry = DEFINITIONS[kind].retry
        allowed = retry.max_attempts if retry is not None else None
        if allowed is not None and max(counts) > allowed:
            yield Violation("I12", key, 0, f"task {number} was tried {max(counts)} times; {allowed} are allowed")
        # Where an attempt has a time limit, the next may begin while it goes on without anybody having been lost.
        if DEFINITIONS[kind].timeouts is None:
            yield from _one_after_another(key, f"task {number}", kind, bodies, run)


def _one_after_another(key: str, what: str, kind: str, bodies: Sequence[Body], run: Run) -> Iterator[Violation]:
    for first, second in pairwise(sorted(bodies, key=lambda body: (body.attempt, body.began_at))):
        if first.process in run.sent_away or run.was_hit(first, second):
            run.data["I11 attempts after a lost one"] += 1
        elif first.ended_at is not None:
            text = (
                f"{what}: attempt {second.attempt} began, although {first.attempt} had returned and nothing was wrong"
            )
            yield Violation("I12", key, 0, text)
        elif kind in TELLS_FAILURES:
            run.data["I11 attempts after a failed one"] += 1
            if first.failed_at is None or second.began_at < first.failed_at:
                text = f"{what}: attempt {second.attempt} began while {first.attempt} ran, and nothing was wrong"
                yield Violation("I11", key, 0, text)


def step_runs(run: Run) -> Iterator[Violation]:
    """A step that has returned runs again only if a fault may have kept that from being recorded."""
    for (key, label), bodies in run.books.steps.items():
        failed = 0
        run.data["I12 steps in calm"] += all(run.is_calm(body.began_at) for body in bodies)
        for first, second in pairwise(sorted(bodies, key=lambda body: body.began_at)):
            if run.was_hit(first, second):
                failed = 0
                run.data["I12 steps run again"] += 1
            elif first.ended_at is not None:
                text = f"step {label} ran again, although it had returned and nothing was wrong: {first}, {second}"
                yield Violation("I12", key, 0, text)
            else:
                failed += 1
        if failed >= STEP_TRIES:
            yield Violation("I12", key, 0, f"step {label} ran {len(bodies)} times, {failed} of them without a fault")


def transfers(run: Run) -> Iterator[Violation]:
    """No money comes or goes, whatever is made again or taken back. What was asked to stop may have been cut between
    the deed and its record; that is what its idempotency key is for, and is not counted."""
    for record in run.records:
        if record.execution_row.kind != "transfer" or record.execution_row.state is State.TERMINATED:
            continue
        moved = 0
        for event in record.history:
            if isinstance(event.body, e.TaskCompleted):
                bodies = run.books.tasks[record.execution_row.id, event.body.task_no]
                moved += int(bodies[0].label.split()[1])
        run.data["I21 transfers"] += 1
        if moved:
            yield Violation("I21", record.execution_row.id, 0, f"{moved} came from nowhere, or is gone")
