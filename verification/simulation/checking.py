"""What must hold at the end of a scenario: the invariants of the histories, and of histories and ledger together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.engine.rules.retained_events import look_back_query_of
from holdfast.engine.turns.complete import CLOSE_ROUNDS
from holdfast.errors import Evicted, ProgramError
from holdfast.model import events as e
from holdfast.model.executions import State
from holdfast.testing.histories import replay_definitions
from verification.invariants import Record, Violation, check
from verification.memory import MemoryDatabase
from verification.simulation.answers import check_answers
from verification.simulation.bodies import Trouble, check_bodies
from verification.simulation.ledger import Ledger
from verification.simulation.letters import check_letters
from verification.simulation.node import ORG
from verification.simulation.programs import REGISTRY
from verification.simulation.redone import Lines, check_redone

LATE_US: Final = 2_000_000


@dataclass(frozen=True)
class Circumstances:
    """What has to be known of a scenario to judge it: how many faults may each have cost a running body, whether
    attempts may have been handed back, what troubled which node, since when all was calm, and whether (`replayed`) to
    replay every history."""

    disruptions: int
    handed_back: bool
    troubles: Sequence[Trouble]
    calm_since: int
    replayed: bool


def records_of(database: MemoryDatabase) -> list[Record]:
    """Every execution, with its rows, as of this moment."""
    tasks, timers, waits, promises = (defaultdict[str, list[Any]](list) for _ in range(4))
    for table, found in (
        (database.tasks, tasks),
        (database.timers, timers),
        (database.subscriptions, waits),
        (database.promises, promises),
    ):
        for row in table.values():
            found[row.execution_id].append(row)
    made = []
    for key in sorted(database.execution_rows):
        execution_row = database.execution_row(key)
        assert execution_row is not None, "just found"
        made.append(
            Record(
                execution_row=execution_row,
                history=database.history(key),
                tasks=tasks[key],
                timers=timers[key],
                waits=waits[key],
                promises=promises[key],
            )
        )
    return made


def check_all(
    database: MemoryDatabase, ledger: Ledger, given: Circumstances, records: Sequence[Record]
) -> list[Violation]:
    """All that is wrong at the end. Nothing moves any more."""
    found = check(records, at_rest=True)
    if any(violation.invariant in {"I01", "I03"} for violation in found):
        return found  # the rest reads histories by their numbers
    for judge in (_open, _unseen, _replays, _timers):
        for record in records:
            found.extend(judge(record, given))
    lines = Lines(records)
    found.extend(
        check_bodies(lines, ledger, given.troubles, disruptions=given.disruptions, handed_back=given.handed_back)
    )
    chains = _chains(records)
    found.extend(check_letters(database.dead_letters, lines, chains))
    found.extend(check_answers(database, ledger, chains, lines))
    found.extend(check_redone(ledger, lines))
    return found


def missed_events(database: MemoryDatabase, now: int) -> list[Violation]:
    """Waits at rest, for which there is an event that they may have. Nothing is under way."""
    found = []
    for wait in database.subscriptions.values():
        started = next(
            event.body
            for event in database.history(wait.execution_id)
            if isinstance(event.body, e.WaitStarted | e.PromiseCreated)
            and wait.wait_no in (getattr(event.body, "wait_no", None), -getattr(event.body, "promise_no", 0))
        )
        if not isinstance(started, e.WaitStarted) or started.since_at is None or started.where is not None:
            continue
        question = look_back_query_of(started)
        for row in database.published.values():
            fits = (row.org, row.key, row.correlation) == (wait.org, wait.key, started.correlation)
            if fits and row.expires_at > now and question.admits(row.id, row.published_at) and not row.created_before:
                text = f"waits for {wait.kind} {wait.key!r} and has missed {row.id}"
                found.append(Violation("I26", wait.execution_id, 0, text))
    return found


def _chains(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The runs that have followed each other, by the id of the last one."""
    by_id = {record.execution_row.id: record for record in records}
    found = {}
    for record in records:
        if record.execution_row.state is State.CONTINUED:
            continue
        chain = [record]
        while True:
            started = chain[0].history[0].body if chain[0].history else None
            before = by_id.get(getattr(started, "continued_from", None) or "")
            if before is None or before in chain:
                break
            chain.insert(0, before)
        found[record.execution_row.id] = chain
    return found


# --- one execution ------------------------------------------------------------------------------------------------


def _open(record: Record, _: Circumstances) -> Iterator[Violation]:
    """Everything comes to its end: whatever was waited for has been given."""
    execution_row = record.execution_row
    if execution_row.stuck is not None and execution_row.stuck.code != "worker_crashes":
        yield Violation("I18", execution_row.id, execution_row.stuck.event_seq, f"stuck: {execution_row.stuck.message}")
    elif execution_row.is_open:
        waits = [f"{wait.kind} {wait.name or wait.number}" for wait in execution_row.waiting_for]
        yield Violation(
            "I16", execution_row.id, 0, f"never ended; {execution_row.status}, waits for {waits}, {execution_row.ready}"
        )


def _unseen(record: Record, _: Circumstances) -> Iterator[Violation]:
    """A program does not close over what it was sent and has not seen, unless it has been tried in vain."""
    last = record.history[-1].body if record.history else None
    if not isinstance(last, e.WorkflowCompleted | e.WorkflowFailed | e.WorkflowCancelled):
        return
    for event in record.history[last.up_to :]:
        if getattr(event.body, "sender", None) == record.execution_row.id:
            continue  # its last turn has sent it to itself
        if isinstance(event.body, e.SignalReceived | e.UpdateRequested | e.CancelRequested):
            if record.execution_row.close_rounds < CLOSE_ROUNDS:
                yield Violation(
                    "I06", record.execution_row.id, event.seq, f"closed without having seen this {event.type}"
                )
            return


def _replays(record: Record, given: Circumstances) -> Iterator[Violation]:
    """From nothing, the program makes exactly the recorded moves."""
    if not given.replayed:
        return
    try:
        replay_definitions(REGISTRY.workflows, record.history, execution_id=record.execution_row.id, org=ORG)
    except ProgramError as error:
        yield Violation("I18", record.execution_row.id, getattr(error, "event_seq", 0), f"does not replay: {error}")
    except (Exception, Evicted) as error:  # noqa: BLE001 - whatever a broken history does to it is a finding
        yield Violation("I18", record.execution_row.id, 0, f"can't be replayed: {error!r}")


def _timers(record: Record, given: Circumstances) -> Iterator[Violation]:
    """When all is calm, timers fire in time. One that is due already when it is recorded, as after a turn that another
    node had to end or after a reset, fires then."""
    due: dict[int, int] = {}
    for event in record.history if e.TimerFired in record.kinds else ():
        if isinstance(event.body, e.TimerStarted):
            due[event.body.timer_no] = max(event.body.fire_at, event.at)
        elif isinstance(event.body, e.WorkflowReset):
            due = {number: max(at, event.at) for number, at in due.items()}
        elif isinstance(event.body, e.TimerFired):
            late = event.at - max(due.get(event.body.timer_no, event.at), given.calm_since)
            if late > LATE_US:
                yield Violation("I13", record.execution_row.id, event.seq, f"fired {late / 1e6:.1f} s late")
