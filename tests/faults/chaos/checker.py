"""The account of a chaos run: histories against what callers were told and what bodies really did.

Adds to `holdfast.testing.invariants` what only the books know. All must be at rest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import msgspec

from holdfast.errors import ProgramError
from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DeadLetter, State
from holdfast.testing.histories import replay
from holdfast.testing.invariants import Record, Violation, check, check_growth
from holdfast.testing.simulation.programs import ATTEMPTS
from tests.faults.chaos.app import WORKFLOWS
from tests.faults.chaos.books import Body, Books, Called
from tests.faults.chaos.caller import digest
from tests.faults.chaos.metronome import Stall, stalled_us

LATE_US = 2_000_000
STEP_TRIES = 3


@dataclass(frozen=True)
class Run:
    """What is judged. `sent_away`: processes that may have handed back attempts they had begun.

    `calm_at` and `calm_since` are one moment, by the machine's clock and by the database's: from then on nothing was
    disturbed, and all leases lost before had passed. From `whole_since` on, by the database's clock, nothing was locked
    by anybody who was gone: whatever was due could be fired, except while the machine was busy with itself (`stalls`).
    """

    records: Sequence[Record]
    before: Sequence[Record]
    dead: Sequence[DeadLetter]
    books: Books
    faults: int
    sent_away: AbstractSet[str]
    calm_at: int
    calm_since: int
    whole_since: int
    stalls: list[Stall]


def judge(run: Run) -> list[Violation]:
    """All that is wrong. What a broken history does to the account is a finding, too."""
    found = check(run.records, at_rest=True) + check_growth(run.before, run.records)
    for record in run.records:
        found.extend(_guarded(record.head.id, partial(_one, record, run)))
    for chain in _chains(run.records):
        found.extend(_guarded(chain[-1].head.id, partial(_one_chain, chain, run)))
    for account in (_attempts, _step_runs, _signals, _starts, _ends, _promises, _broadcasts, _transfers, _reads):
        found.extend(_guarded("", partial(account, run)))
    found.extend(_answers(run.books))
    return sorted(set(found))


def _guarded(key: str, account: Callable[[], Iterable[Violation]]) -> list[Violation]:
    try:
        return list(account())
    except Exception as error:
        return [Violation("CHECK", key, 0, f"can't be judged: {error!r}")]


def _one(record: Record, run: Run) -> Iterator[Violation]:
    yield from _ended(record)
    yield from _replays(record)
    yield from _timers(record, run)
    yield from _results(record, run.books)


def _one_chain(chain: Sequence[Record], run: Run) -> Iterator[Violation]:
    yield from _order(chain, run.books)
    yield from _consumed(chain, run.dead)


def _chains(records: Sequence[Record]) -> list[list[Record]]:
    """The runs that have followed each other."""
    by_id = {record.head.id: record for record in records}
    found = []
    for record in records:
        if record.head.state is State.CONTINUED:
            continue
        chain = [record]
        while (before := by_id.get(_before(chain[0]))) is not None:
            chain.insert(0, before)
        found.append(chain)
    return found


def _before(record: Record) -> str:
    started = record.history[0].body
    return (started.continued_from or "") if isinstance(started, e.WorkflowStarted) else ""


def _new_signals(record: Record) -> Iterator[tuple[HistoryEvent, e.SignalReceived]]:
    """Those that came to this run, not those the run before left."""
    for event in record.history:
        if isinstance(event.body, e.SignalReceived) and event.body.carried_from is None:
            yield event, event.body


# --- one execution ------------------------------------------------------------------------------------------------


def _ended(record: Record) -> Iterator[Violation]:
    """Whatever was waited for has been given: all have come to their end."""
    head = record.head
    if head.stuck is not None:
        yield Violation("I18", head.id, head.stuck.event_seq, f"stuck: {head.stuck.code}: {head.stuck.message}")
    elif head.is_open:
        waits = [f"{wait.kind} {wait.name or wait.number}" for wait in head.waiting_for]
        yield Violation("I16", head.id, 0, f"never ended; {head.status}, waits for {waits}, {head.ready}")


def _replays(record: Record) -> Iterator[Violation]:
    try:
        replay(WORKFLOWS, record.history, execution_id=record.head.id)
    except ProgramError as error:
        yield Violation("I18", record.head.id, getattr(error, "event_seq", 0), f"does not replay: {error}")
    except Exception as error:
        yield Violation("I18", record.head.id, 0, f"can't be replayed: {error!r}")


def _timers(record: Record, run: Run) -> Iterator[Violation]:
    """Once all is whole again, a timer fires within two seconds of its instant."""
    due: dict[int, int] = {}
    for event in record.history:
        if isinstance(event.body, e.TimerStarted):
            # A turn that was recorded late may have started it when it was due already.
            due[event.body.timer_no] = max(event.body.fire_at, event.at)
        elif isinstance(event.body, e.TimerFired):
            since = max(due[event.body.timer_no], run.whole_since)
            late = event.at - since - stalled_us(run.stalls, since, event.at)
            if late > LATE_US:
                yield Violation("I13", record.head.id, event.seq, f"fired {late / 1e6:.1f} s late")


def _results(record: Record, books: Books) -> Iterator[Violation]:
    """What is recorded was returned, by the recorded attempt."""
    key = record.head.id
    for event in record.history:
        body = event.body
        if isinstance(body, e.TaskCompleted):
            bodies = [run for run in books.tasks.get((key, body.task_no), ()) if run.attempt == body.attempt]
            yield from _returned(event, key, f"attempt {body.attempt} of task {body.task_no}", body.result, bodies)
        elif isinstance(body, e.StepCompleted):
            yield from _returned(event, key, f"step {body.name}", body.result, books.steps.get((key, body.name), []))


def _returned(
    event: HistoryEvent, key: str, what: str, result: msgspec.Raw, bodies: Sequence[Body]
) -> Iterator[Violation]:
    value = msgspec.json.decode(result)
    if not any(run.value == value and run.ended_at is not None for run in bodies):
        yield Violation("I11", key, event.seq, f"{what} is recorded with {value}, which no body has returned: {bodies}")


# --- bodies -------------------------------------------------------------------------------------------------------


def _attempts(run: Run) -> Iterator[Violation]:
    """Each attempt begins once; none begins before the one before it is over, unless that one's worker was lost."""
    for (key, number), bodies in run.books.tasks.items():
        counts = Counter(body.attempt for body in bodies)
        kept = Counter(body.attempt for body in bodies if body.process not in run.sent_away)
        if kept and max(kept.values()) > 1:
            yield Violation("I11", key, 0, f"task {number}: an attempt was begun more than once: {dict(counts)}")
        if max(counts) > ATTEMPTS and not bodies[0].label.partition(" ")[2]:
            yield Violation("I12", key, 0, f"task {number} was tried {max(counts)} times; {ATTEMPTS} are allowed")
        if max(counts) > ATTEMPTS + run.faults:
            yield Violation("I12", key, 0, f"task {number} was tried {max(counts)} times, with {run.faults} faults")
        yield from _overlaps(key, number, sorted(bodies, key=lambda body: body.attempt), run.calm_at)


def _overlaps(key: str, number: int, bodies: Sequence[Body], calm_at: int) -> Iterator[Violation]:
    for first, second in pairwise(bodies):
        calm = first.began_at > calm_at
        if calm and first.ended_at is not None and second.began_at < first.ended_at:
            text = f"task {number}: attempt {second.attempt} began while {first.attempt} ran, and nothing was wrong"
            yield Violation("I11", key, 0, text)


def _step_runs(run: Run) -> Iterator[Violation]:
    for (key, label), bodies in run.books.steps.items():
        if len(bodies) > STEP_TRIES * (1 + run.faults):
            yield Violation("I12", key, 0, f"step {label} ran {len(bodies)} times, with {run.faults} faults")
        if all(body.began_at > run.calm_at for body in bodies) and len([b for b in bodies if b.ended_at]) > 1:
            yield Violation("I12", key, 0, f"step {label} has ended {len(bodies)} times, and nothing was wrong")


# --- callers ------------------------------------------------------------------------------------------------------


def _signals(run: Run) -> Iterator[Violation]:
    """An accepted signal was received once, where the answer says; one of unknown fate at most once; else never."""
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for record in run.records:
        for event, body in _new_signals(record):
            places[body.request_id or ""].append((record.head.id, event.seq))
    for called in run.books.of("signal", "signal_with_start"):
        found = places.get(called.id, [])
        where = found[0] if found else ("", 0)
        if called.outcome == "ok" and len(found) != 1:
            yield Violation("I06", where[0], where[1], f"signal {called.call} was accepted, and is at {found}")
        elif called.outcome == "ok" and not _is_there(called, where):
            yield Violation("I06", *where, f"signal {called.call} was answered {called.answers[0]}")
        elif called.outcome == "unknown" and len(found) > 1:
            yield Violation("I07", *where, f"signal {called.call} is there more than once: {found}")
        elif called.outcome == "refused" and found:
            yield Violation("I07", *where, f"signal {called.call} was refused ({called.refused}), and is there")


def _is_there(called: Called, where: tuple[str, int]) -> bool:
    answer = called.answers[0]
    return bool(
        answer["signal_event_sequence"] == where[1] and answer.get("workflow_execution_id", where[0]) == where[0]
    )


def _order(chain: Sequence[Record], books: Books) -> Iterator[Violation]:
    """What was answered before another was sent comes before it."""
    came: list[Called] = []
    for record in chain:
        came += [books.calls[body.request_id] for _, body in _new_signals(record) if body.request_id in books.calls]
    by_name: dict[str, list[Called]] = defaultdict(list)
    for called in came:
        by_name[called.call["name"]].append(called)
    for calls in by_name.values():
        latest = calls[0] if calls else None
        for called in calls:
            assert latest is not None, "there is a first"
            if called.answered_at and called.answered_at < latest.invoked_at:
                yield Violation("I08", chain[-1].head.id, 0, f"{latest.id} overtook {called.id}")
            latest = max(latest, called, key=lambda each: each.invoked_at)


def _consumed(chain: Sequence[Record], letters: Sequence[DeadLetter]) -> Iterator[Violation]:
    """The k-th that a program takes of a name is the k-th it was sent; the others are dead letters."""
    key = chain[-1].head.id
    end = chain[-1].history[-1].body
    if not isinstance(end, e.WorkflowCompleted) or chain[-1].head.kind == "transfer":
        return
    result = msgspec.json.decode(end.result)
    taken: dict[str, list[str]] = defaultdict(list)
    if chain[-1].head.kind == "bag":
        taken["item"] = result
    else:
        for entry in result:
            if entry[0] == "got":
                taken[entry[1]].append(entry[2])
    came: dict[str, list[str]] = defaultdict(list)
    for record in chain:
        for _, body in _new_signals(record):
            came[body.signal_name].append(msgspec.json.decode(body.signal_value))
    buried = Counter(letter.signal_name for letter in letters if letter.execution_id == key)
    for name in taken.keys() | came.keys():
        if taken[name] != came[name][: len(taken[name])]:
            yield Violation("I09", key, 0, f"{name}: took {taken[name]} of {came[name]}")
        left = len(came[name]) - len(taken[name])
        if left != buried[name]:
            yield Violation("I06", key, 0, f"{name}: {left} signals were not taken, {buried[name]} are dead letters")


def _starts(run: Run) -> Iterator[Violation]:
    by_id = {record.head.id: record for record in run.records}
    begun: dict[str, list[str]] = defaultdict(list)
    for record in run.records:
        started = record.history[0].body
        if isinstance(started, e.WorkflowStarted) and started.request_id is not None:
            begun[started.request_id].append(record.head.id)
    for called in run.books.of("start", "signal_with_start"):
        found = begun.get(called.id, [])
        if called.outcome == "refused" and found:
            yield Violation("I17", found[0], 1, f"{called.call['id']} was refused ({called.refused}), and began this")
        if called.outcome != "ok":
            continue
        key, created = called.answers[0]["workflow_execution_id"], called.answers[0]["workflow_created"]
        if key not in by_id or by_id[key].head.workflow_id != called.call["workflow_id"]:
            yield Violation("I17", key, 0, f"{called.call['id']} was answered with it: not there, or another's")
        if found != ([key] if created else []):
            yield Violation("I17", key, 0, f"{called.call['id']} was answered with it ({created=}), and began {found}")


def _ends(run: Run) -> Iterator[Violation]:
    """Whoever was told that he has cancelled or terminated something has."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for record in run.records:
        for event in record.history:
            if isinstance(event.body, e.CancelRequested | e.WorkflowTerminated):
                reasons[event.body.reason].append(record.head.id)
    for called in run.books.of("cancel", "terminate"):
        found = reasons.get(called.id, [])
        if called.outcome == "ok" and called.answers[0]["changed"] and len(found) != 1:
            yield Violation("F27", called.call["execution_id"], 0, f"{called.call} was accepted, and is at {found}")
        elif len(found) > 1 or (called.outcome == "refused" and found):
            yield Violation("F27", found[0], 0, f"{called.call} ({called.outcome}) is at {found}")


def _promises(run: Run) -> Iterator[Violation]:
    """A promise is settled once, and everybody is told the same."""
    told: dict[str, set[str]] = defaultdict(set)
    firsts: Counter[str] = Counter()
    for called in run.books.of("settle", "settle one"):
        if called.answers:
            answer = called.answers[0]
            told[answer["promise_id"]].add(f"{answer['state']} {answer['value']}")
            firsts[answer["promise_id"]] += not answer["already_resolved"]
    for record in run.records:
        for event in record.history:
            if isinstance(event.body, e.PromiseResolved):
                value = msgspec.json.decode(event.body.value)
                told[f"{record.head.id}:{event.body.name}"].add(f"RESOLVED {value}")
    for key, values in told.items():
        if len(values) > 1 or firsts[key] > 1:
            text = f"promise {key} was settled {firsts[key]} times, to {sorted(values)}"
            yield Violation("I14", key.partition(":")[0], 0, text)


def _broadcasts(run: Run) -> Iterator[Violation]:
    """A broadcast reaches as many as it says. Nobody gets one twice by one wait: the histories tell."""
    got: Counter[int] = Counter()
    for record in run.records:
        got.update(event.body.broadcast_id for event in record.history if isinstance(event.body, e.BroadcastReceived))
    for called in run.books.of("broadcast"):
        for answer in called.answers:
            if got[answer["broadcast_id"]] != answer["delivered"]:
                text = f"{called.id} says {answer['delivered']}; {got[answer['broadcast_id']]} got it"
                yield Violation("I26", "", 0, text)


def _transfers(run: Run) -> Iterator[Violation]:
    """No money comes or goes, whatever is made again or taken back. What was asked to stop may have been cut between
    the deed and its record; that is what its idempotency key is for, and is not counted."""
    for record in run.records:
        if record.head.kind != "transfer" or record.head.state is State.TERMINATED:
            continue
        moved = 0
        for event in record.history:
            if isinstance(event.body, e.TaskCompleted):
                bodies = run.books.tasks[record.head.id, event.body.task_no]
                moved += int(bodies[0].label.split()[1])
        if moved:
            yield Violation("I21", record.head.id, 0, f"{moved} came from nowhere, or is gone")


def _answers(books: Books) -> Iterator[Violation]:
    """All answers under one key are the same; another call with it is refused."""
    for called in books.calls.values():
        told = {_plain(answer) for answer in called.answers}
        if called.what not in {"cancel", "terminate", "read"} and len(told) > 1:
            yield Violation("I23", "", 0, f"{called.call} was answered {sorted(told)}")
        for complaint in called.complaints:
            yield Violation("I23", "", 0, f"{called.call}: {complaint}")


def _plain(answer: Mapping[str, object]) -> str:
    """Without how far a delivery had come."""
    kept = {name: value for name, value in answer.items() if name not in {"delivered", "done"}}
    return msgspec.json.encode(kept, order="deterministic").decode()


def _reads(run: Run) -> Iterator[Violation]:
    """What a caller has read is the beginning of what there is."""
    by_id = {record.head.id: record for record in run.records}
    for called in run.books.of("read"):
        for answer in called.answers:
            record = by_id.get(called.call["execution_id"])
            if record is None or digest(record.history[: answer["events"]]) != answer["digest"]:
                text = f"{called.id} has read {answer['events']} events that are now different"
                yield Violation("I25", called.call["execution_id"], 0, text)
