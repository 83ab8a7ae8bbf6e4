"""What must hold at the end of a scenario: the invariants of the histories, and of histories and ledger together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.engine.rules.look_backs import question_of
from holdfast.engine.turns.complete import CLOSE_ROUNDS
from holdfast.errors import ProgramError
from holdfast.model import events as e
from holdfast.model.executions import State
from holdfast.testing.histories import replay_definitions
from holdfast.testing.invariants import Record, Violation, check
from holdfast.testing.memory import MemoryDatabase
from holdfast.testing.simulation.ledger import Call, Ledger
from holdfast.testing.simulation.node import ORG
from holdfast.testing.simulation.programs import ATTEMPTS, REGISTRY

STEP_TRIES = 3
LATE_US = 2_000_000


@dataclass(frozen=True)
class Circumstances:
    """What has to be known of a scenario to judge it: how many faults may each have cost a running body, whether
    attempts may have been handed back, since when all was calm, and whether (`replayed`) to replay every history."""

    disruptions: int
    handed_back: bool
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
    for key in sorted(database.heads):
        head = database.head(key)
        assert head is not None, "just found"
        made.append(
            Record(
                head=head,
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
    chains = _chains(records)
    for judge in (_open, _unseen, _replays, _results, _timers):
        for record in records:
            found.extend(judge(record, ledger, given))
    found.extend(_tries(ledger, given))
    found.extend(_signals(records, ledger, chains))
    found.extend(_consumed(database, chains))
    found.extend(_answers(ledger))
    found.extend(_promises(records, ledger))
    found.extend(_sent(database, records, ledger))
    found.extend(_starts(database, ledger))
    found.extend(_overlaps(records))
    found.extend(_cancels(records, ledger))
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
        question = question_of(started)
        for row in database.published.values():
            fits = (row.org, row.key, row.correlation) == (wait.org, wait.key, started.correlation)
            if fits and row.expires_at > now and question.admits(row.id, row.published_at) and not row.created_before:
                text = f"waits for {wait.kind} {wait.key!r} and has missed {row.id}"
                found.append(Violation("I26", wait.execution_id, 0, text))
    return found


def _chains(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The runs that have followed each other, by the id of the last one."""
    by_id = {record.head.id: record for record in records}
    found = {}
    for record in records:
        if record.head.state is State.CONTINUED:
            continue
        chain = [record]
        while True:
            started = chain[0].history[0].body if chain[0].history else None
            before = by_id.get(getattr(started, "continued_from", None) or "")
            if before is None or before in chain:
                break
            chain.insert(0, before)
        found[record.head.id] = chain
    return found


# --- one execution ------------------------------------------------------------------------------------------------


def _open(record: Record, _: Ledger, __: Circumstances) -> Iterator[Violation]:
    """Everything comes to its end: whatever was waited for has been given."""
    head = record.head
    if head.stuck is not None and head.stuck.code != "worker_crashes":
        yield Violation("I18", head.id, head.stuck.event_seq, f"stuck: {head.stuck.message}")
    elif head.is_open:
        waits = [f"{wait.kind} {wait.name or wait.number}" for wait in head.waiting_for]
        yield Violation("I16", head.id, 0, f"never ended; {head.status}, waits for {waits}, {head.ready}")


def _unseen(record: Record, _: Ledger, __: Circumstances) -> Iterator[Violation]:
    """A program does not close over what it was sent and has not seen, unless it has been tried in vain."""
    last = record.history[-1].body if record.history else None
    if not isinstance(last, e.WorkflowCompleted | e.WorkflowFailed | e.WorkflowCancelled):
        return
    for event in record.history[last.up_to :]:
        if getattr(event.body, "sender", None) == record.head.id:
            continue  # its last turn has sent it to itself
        if isinstance(event.body, e.SignalReceived | e.UpdateRequested | e.CancelRequested):
            if record.head.close_rounds < CLOSE_ROUNDS:
                yield Violation("I06", record.head.id, event.seq, f"closed without having seen this {event.type}")
            return


def _replays(record: Record, _: Ledger, given: Circumstances) -> Iterator[Violation]:
    """From nothing, the program makes exactly the recorded moves."""
    if not given.replayed:
        return
    try:
        replay_definitions(REGISTRY.workflows, record.history, execution_id=record.head.id, org=ORG)
    except ProgramError as error:
        yield Violation("I18", record.head.id, getattr(error, "event_seq", 0), f"does not replay: {error}")
    except Exception as error:  # noqa: BLE001 - whatever a broken history does to it is a finding
        yield Violation("I18", record.head.id, 0, f"can't be replayed: {error!r}")


def _results(record: Record, ledger: Ledger, _: Circumstances) -> Iterator[Violation]:
    """What was recorded is what a body has returned."""
    key = record.head.id
    for event in record.history:
        body = event.body
        if isinstance(body, e.TaskCompleted):
            value = msgspec.json.decode(body.result)
            runs = ledger.attempts.get((key, body.task_no), [])
            if not any(run.value == value and run.attempt == body.attempt and run.ended_at is not None for run in runs):
                text = f"task {body.task_no} is recorded with {value} of attempt {body.attempt}, which returned no such"
                yield Violation("I11", key, event.seq, text)
        elif isinstance(body, e.StepCompleted):
            value = msgspec.json.decode(body.result)
            runs = ledger.steps.get((key, body.name), [])
            if not any(run.value == value and run.ended_at is not None for run in runs):
                yield Violation("I11", key, event.seq, f"step {body.name} is recorded with {value}: nobody returned it")


def _tries(ledger: Ledger, given: Circumstances) -> Iterator[Violation]:
    """Bodies run no more often than they must."""
    for (key, number), runs in ledger.attempts.items():
        counts = Counter(run.attempt for run in runs)
        if max(counts) > ATTEMPTS:
            yield Violation("I12", key, 0, f"task {number} was tried {max(counts)} times; {ATTEMPTS} are allowed")
        if not given.handed_back and max(counts.values()) > 1:
            yield Violation("I11", key, 0, f"task {number}: an attempt was begun more than once: {dict(counts)}")
    for (key, label), runs in ledger.steps.items():
        if len(runs) > STEP_TRIES * (1 + given.disruptions):
            yield Violation("I12", key, 0, f"step {label} ran {len(runs)} times, with {given.disruptions} faults")
        ended = sum(run.ended_at is not None for run in runs)
        if ended > 1 and not given.disruptions:
            yield Violation("I12", key, 0, f"step {label} has ended {ended} times without a fault")


def _timers(record: Record, _: Ledger, given: Circumstances) -> Iterator[Violation]:
    """When all is calm, timers fire in time."""
    due: dict[int, int] = {}
    for event in record.history if e.TimerFired in record.kinds else ():
        if isinstance(event.body, e.TimerStarted):
            due[event.body.timer_no] = event.body.fire_at
        elif isinstance(event.body, e.TimerFired):
            late = event.at - max(due.get(event.body.timer_no, event.at), given.calm_since)
            if late > LATE_US:
                yield Violation("I13", record.head.id, event.seq, f"fired {late / 1e6:.1f} s late")


# --- callers ------------------------------------------------------------------------------------------------------


def _signals(records: Sequence[Record], ledger: Ledger, chains: dict[str, list[Record]]) -> Iterator[Violation]:
    """An accepted signal is received once, a refused one never; in the order in which senders were answered."""
    received: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for record in records:
        for event in record.history if e.SignalReceived in record.kinds else ():
            if isinstance(event.body, e.SignalReceived) and event.body.carried_from is None:
                received[event.body.request_id or ""].append((record.head.id, event.seq))
    sent = [call for call in ledger.calls if call.what == "signal"]
    for call in sent:
        found = received.get(call.request_id, [])
        if call.answers and len(found) != 1:
            yield Violation("I06", call.execution_id, 0, f"signal {call.request_id} was accepted and is at {found}")
        if not call.answers and found:
            yield Violation("I07", found[0][0], found[0][1], f"signal {call.request_id} was refused ({call.refused})")
    for chain in chains.values():
        places: dict[str, int] = {}
        for record in chain if sent else ():
            for event in record.history:
                if isinstance(event.body, e.SignalReceived) and event.body.carried_from is None:
                    places[event.body.request_id or ""] = len(places)
        yield from _in_order(chain[-1].head.id, [call for call in sent if call.request_id in places], places)


def _in_order(key: str, calls: list[Call], places: dict[str, int]) -> Iterator[Violation]:
    for first in calls:
        for second in calls:
            if (
                first.name == second.name
                and first.returned_at < second.invoked_at
                and places[first.request_id] > places[second.request_id]
            ):
                yield Violation("I08", key, 0, f"{second.request_id} overtook {first.request_id}")


def _consumed(database: MemoryDatabase, chains: dict[str, list[Record]]) -> Iterator[Violation]:
    """The k-th signal that a program takes of a name is the k-th it was sent; the rest are dead letters."""
    for key, chain in chains.items():
        end = chain[-1].history[-1].body if chain[-1].history else None
        if not isinstance(end, e.WorkflowCompleted):
            continue
        taken: dict[str, list[str]] = defaultdict(list)
        for entry in msgspec.json.decode(end.result):
            if entry[0] == "got":
                taken[entry[1]].append(entry[2])
        came: dict[str, list[str]] = defaultdict(list)
        for record in chain:
            for event in record.history:
                body = event.body
                if isinstance(body, e.SignalReceived) and body.carried_from is None:
                    came[body.signal_name].append(msgspec.json.decode(body.signal_value))
        for name in taken.keys() | came.keys():
            if taken[name] != came[name][: len(taken[name])]:
                yield Violation("I09", key, 0, f"{name}: took {taken[name]} of {came[name]}")
            left = len(came[name]) - len(taken[name])
            dead = sum(
                isinstance(event.body, e.SignalReceived)
                and event.body.signal_name == name
                and (key, event.seq) in database.dead_letters
                for event in chain[-1].history
            )
            if left != dead:
                yield Violation("I06", key, 0, f"{name}: {left} signals were not taken, {dead} are dead letters")


def _answers(ledger: Ledger) -> Iterator[Violation]:
    """Every answer under one request id is the same."""
    for call in ledger.calls:
        if len(call.answers) < 2 or call.what in {"cancel", "terminate"}:
            continue
        told = {_plain(answer) for answer in call.answers}
        if len(told) > 1:
            yield Violation("I23", call.execution_id, 0, f"{call.what} {call.request_id} was answered {sorted(told)}")


def _plain(answer: Any) -> str:
    """Without what may differ: whether the key was new, and how far a delivery had come."""
    fields = msgspec.json.decode(msgspec.json.encode(answer))
    for name in ("idempotency_key_new", "delivered", "done"):
        fields.pop(name, None)
    return msgspec.json.encode(fields, order="deterministic").decode()


def _promises(records: Sequence[Record], ledger: Ledger) -> Iterator[Violation]:
    """A promise is settled once, and everybody is told the same."""
    values: dict[str, set[str]] = defaultdict(set)
    firsts: Counter[str] = Counter()
    for call in ledger.calls:
        if call.what == "settle" and call.answers:
            answer = call.answers[0]
            values[answer.promise_id].add(f"{answer.state} {bytes(answer.value).decode()}")
            firsts[answer.promise_id] += not answer.already_resolved
    for record in records:
        for event in record.history if e.PromiseResolved in record.kinds else ():
            body = event.body
            if isinstance(body, e.PromiseResolved):
                values[f"{record.head.id}:{body.name}"].add(f"RESOLVED {bytes(body.value).decode()}")
    for key, told in values.items():
        if len(told) > 1 or firsts[key] > 1:
            text = f"promise {key} was settled {firsts[key]} times, to {sorted(told)}"
            yield Violation("I14", key.partition(":")[0], 0, text)


def _sent(database: MemoryDatabase, records: Sequence[Record], ledger: Ledger) -> Iterator[Violation]:
    """A broadcast reaches as many as it says; an event that only one may have reaches one; nobody gets one twice."""
    got: Counter[int] = Counter()
    for record in records:
        if record.kinds.isdisjoint((e.BroadcastReceived, e.EventReceived)):
            continue
        mine: Counter[int] = Counter()
        for event in record.history:
            body = event.body
            if isinstance(body, e.BroadcastReceived):
                got[body.broadcast_id] += 1
            elif isinstance(body, e.EventReceived):
                mine[body.event_id] += 1
        for event_id, count in mine.items():
            together = sum(isinstance(event.body, e.WaitStarted) for event in record.history)
            if count > together:
                yield Violation("I26", record.head.id, 0, f"got event {event_id} {count} times")
    for call in ledger.calls:
        if call.what == "broadcast" and call.answers:
            answer = call.answers[-1]
            if got[answer.broadcast_id] != answer.delivered:
                text = f"broadcast {answer.broadcast_id} says {answer.delivered}, {got[answer.broadcast_id]} got it"
                yield Violation("I26", "", 0, text)
    for row in database.deliveries.values():
        if row.done_at is None:
            yield Violation("I19", "", 0, f"{row.kind} {row.key} ({row.id}) is still on its way")


def _starts(database: MemoryDatabase, ledger: Ledger) -> Iterator[Violation]:
    """What a start has answered is there."""
    for call in ledger.calls:
        if call.what == "start" and call.answers and call.execution_id not in database.heads:
            yield Violation("I17", call.execution_id, 0, f"start {call.request_id} was answered with it: not there")


def _overlaps(records: Sequence[Record]) -> Iterator[Violation]:
    """A workflow id has never had two open executions at one time."""
    ends: dict[str, int] = {}
    for record in sorted(records, key=lambda record: (record.history[0].at, record.history[-1].at)):
        workflow_id = record.head.workflow_id
        if record.history[0].at < ends.get(workflow_id, 0):
            yield Violation("I17", record.head.id, 1, f"began while another execution of {workflow_id!r} was open")
        ends[workflow_id] = max(ends.get(workflow_id, 0), record.history[-1].at)


def _cancels(records: Sequence[Record], ledger: Ledger) -> Iterator[Violation]:
    """Whoever was told that he has changed something has."""
    by_id = {record.head.id: record for record in records}
    for call in ledger.calls:
        if call.what not in {"cancel", "terminate"} or not any(answer.changed for answer in call.answers):
            continue
        wanted = e.CancelRequested if call.what == "cancel" else e.WorkflowTerminated
        record = by_id.get(call.execution_id)
        if record is None or not any(isinstance(event.body, wanted) for event in record.history):
            yield Violation("I27", call.execution_id, 0, f"{call.what} was accepted; the history does not know it")
