"""The account of a chaos run: histories against what callers were told and what bodies really did.

Adds to `verification.invariants` what only the books know, and counts in `Run.data` how much there was of
everything. All must be at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from holdfast.errors import ProgramError
from holdfast.model import events as e
from holdfast.model.executions import State
from holdfast.testing.histories import replay
from verification.chaos import answers, bodies
from verification.chaos.app import WORKFLOWS
from verification.chaos.metronome import stalled_us
from verification.chaos.run import Run, count
from verification.invariants import Record, Violation, check, check_growth

LATE_US: Final = 2_000_000
_ALL: Final[tuple[Callable[[Run], Iterable[Violation]], ...]] = (
    bodies.attempts,
    bodies.step_runs,
    bodies.transfers,
    answers.signals,
    answers.starts,
    answers.overlaps,
    answers.ends,
    answers.promises,
    answers.broadcasts,
    answers.same_answers,
    answers.reads,
)


def judge(run: Run) -> list[Violation]:
    """All that is wrong. What a broken history does to the account is a finding, too."""
    found = _guarded("", partial(check, run.records, at_rest=True))
    for before in run.before:
        found += check_growth(before, run.records)
    for record in run.records:
        found += _guarded(record.execution_row.id, partial(_one, record, run))
    for chain in _chains(run.records):
        found += _guarded(chain[-1].execution_row.id, partial(_one_chain, chain, run))
    for account in _ALL:
        found += _guarded("", partial(account, run))
    found += _guarded("", partial(_counted, run))
    return sorted(set(found))


def _guarded(key: str, account: Callable[[], Iterable[Violation]]) -> list[Violation]:
    try:
        return list(account())
    except Exception as error:
        return [Violation("CHECK", key, 0, f"can't be judged: {error!r}")]


def _counted(run: Run) -> list[Violation]:
    count(run)
    return []


def _one(record: Record, run: Run) -> Iterator[Violation]:
    yield from _ended(record)
    yield from _replays(record, run)
    yield from _timers(record, run)
    yield from bodies.results(record, run)


def _one_chain(chain: Sequence[Record], run: Run) -> Iterator[Violation]:
    yield from answers.order(chain, run)
    yield from answers.consumed(chain, run)


def _chains(records: Sequence[Record]) -> list[list[Record]]:
    """The runs that have followed each other."""
    by_id = {record.execution_row.id: record for record in records}
    found = []
    for record in records:
        if record.execution_row.state is State.CONTINUED:
            continue
        chain = [record]
        while (before := by_id.get(_before(chain[0]))) is not None and before not in chain:
            chain.insert(0, before)
        found.append(chain)
    return found


def _before(record: Record) -> str:
    started = record.history[0].body if record.history else None
    return (started.continued_from or "") if isinstance(started, e.WorkflowStarted) else ""


# --- one execution ------------------------------------------------------------------------------------------------


def _ended(record: Record) -> Iterator[Violation]:
    """Whatever was waited for has been given: all have come to their end."""
    execution_row = record.execution_row
    if execution_row.stuck is not None:
        yield Violation(
            "I18",
            execution_row.id,
            execution_row.stuck.event_seq,
            f"stuck: {execution_row.stuck.code}: {execution_row.stuck.message}",
        )
    elif execution_row.is_open:
        waits = [f"{wait.kind} {wait.name or wait.number}" for wait in execution_row.waiting_for]
        yield Violation(
            "I16", execution_row.id, 0, f"never ended; {execution_row.status}, waits for {waits}, {execution_row.ready}"
        )


def _replays(record: Record, run: Run) -> Iterator[Violation]:
    try:
        replay(WORKFLOWS, record.history, execution_id=record.execution_row.id)
        run.data["I18 replays"] += 1
    except ProgramError as error:
        yield Violation("I18", record.execution_row.id, getattr(error, "event_seq", 0), f"does not replay: {error}")
    except Exception as error:
        yield Violation("I18", record.execution_row.id, 0, f"can't be replayed: {error!r}")


def _timers(record: Record, run: Run) -> Iterator[Violation]:
    """Once all is whole again, a timer fires within two seconds of its instant, and so does a time limit."""
    due: dict[tuple[str, int], int] = {}
    for event in record.history:
        match event.body:
            case e.WorkflowStarted(expires_at=int(at)):
                due["run", 0] = max(at, event.at)
            case e.TimerStarted(timer_no=number, fire_at=at):
                # A turn that was recorded late may have started it when it was due already.
                due["timer", number] = max(at, event.at)
            case e.PromiseCreated(promise_no=number, expires_at=int(at)):
                due["promise", number] = max(at, event.at)
            case e.WorkflowTimedOut():
                yield from _in_time(record, run, event.seq, due.get(("run", 0)), "limits")
            case e.PromiseTimedOut(promise_no=number):
                yield from _in_time(record, run, event.seq, due.get(("promise", number)), "limits")
            case e.TimerFired(timer_no=number):
                yield from _in_time(record, run, event.seq, due.get(("timer", number)), "timers")


def _in_time(record: Record, run: Run, seq: int, due: int | None, what: str) -> Iterator[Violation]:
    at = record.history[seq - 1].at
    if due is None or at < run.whole_since:
        return
    run.data["I13 timers once whole" if what == "timers" else "I13 time limits once whole"] += 1
    since = max(due, run.whole_since)
    late = at - since - stalled_us(run.stalls, since, at)
    if late > LATE_US:
        yield Violation("I13", record.execution_row.id, seq, f"fired {late / 1e6:.1f} s late")
