"""What callers were told against what the histories say: each accepted call has its effect once, and keeps it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.contract.calls import UpdateStatus
from holdfast.model import events as e
from verification.invariants import Record, Violation
from verification.invariants.records import own_events
from verification.memory import MemoryDatabase
from verification.simulation.ledger import Call, Ledger
from verification.simulation.node import ORG
from verification.simulation.redone import Lines, identity_of

Chains = Mapping[str, Sequence[Record]]


def check_answers(database: MemoryDatabase, ledger: Ledger, chains: Chains, lines: Lines) -> Iterator[Violation]:
    """`chains` are the runs that have followed each other, by the id of the last one."""
    records = list(lines.by_id.values())
    yield from _signals(records, ledger, chains)
    for chain in chains.values():
        yield from _consumed(database, chain, lines)
    yield from _answers(ledger)
    yield from _promises(records, ledger)
    yield from _updates(records, ledger)
    yield from _sent(database, lines, ledger)
    yield from _starts(database, ledger)
    yield from _cancels(records, ledger)
    yield from _keys(database, records, ledger)


# --- signals ------------------------------------------------------------------------------------------------------


def _signals(records: Sequence[Record], ledger: Ledger, chains: Chains) -> Iterator[Violation]:
    """An accepted signal is received once, a refused one never; in the order in which senders were answered."""
    received: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for record in records:
        for event in own_events(record) if e.SignalReceived in record.kinds else ():
            if isinstance(event.body, e.SignalReceived) and event.body.carried_from is None:
                received[event.body.request_id or ""].append((record.execution_row.id, event.seq))
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
                if isinstance(event.body, e.SignalReceived):
                    places.setdefault(event.body.request_id or "", len(places))
        yield from _in_order(chain[-1].execution_row.id, [call for call in sent if call.request_id in places], places)


def _in_order(key: str, calls: list[Call], places: dict[str, int]) -> Iterator[Violation]:
    for first in calls:
        for second in calls:
            if (
                first.name == second.name
                and first.returned_at < second.invoked_at
                and places[first.request_id] > places[second.request_id]
            ):
                yield Violation("I08", key, 0, f"{second.request_id} overtook {first.request_id}")


def _consumed(database: MemoryDatabase, chain: Sequence[Record], lines: Lines) -> Iterator[Violation]:
    """What a program says at its end is what it was given: the k-th signal that it takes of a name is the k-th it was
    sent, the others are dead letters, or with whoever goes on after a reset; values are those of the histories."""
    key = chain[-1].execution_row.id
    end = chain[-1].history[-1].body if chain[-1].history else None
    if not isinstance(end, e.WorkflowCompleted):
        return
    log = msgspec.json.decode(end.result)
    taken: dict[str, list[str]] = defaultdict(list)
    for entry in log:
        if entry[0] == "got":
            taken[entry[1]].append(entry[2])
    came: dict[str, dict[object, str]] = defaultdict(dict)
    given: set[bytes] = set()
    left_out = {identity for record in chain for identity in lines.left_out(record)}
    for record in chain:
        for event in record.history:
            body = event.body
            if isinstance(body, e.SignalReceived) and identity_of(body) not in left_out:
                # Carried over from one to the next it is still the same.
                came[body.signal_name].setdefault(identity_of(body), msgspec.json.decode(body.signal_value))
            elif type(body) in _GIVEN:
                given.add(msgspec.json.encode(_GIVEN[type(body)](body)))
    for entry in log:
        if entry[0] in _LOGGED and entry[1] != "failed" and msgspec.json.encode(entry) not in given:
            invariant = "I14" if entry[0] in _OF_PROMISES else "I11"
            yield Violation(invariant, key, 0, f"the program was given {entry}, which no history knows")
    places = {
        identity_of(event.body): event.seq for event in chain[-1].history if isinstance(event.body, e.SignalReceived)
    }
    settled = lines.settled.get(key, set())
    letters = {seq for (owner, seq), letter in database.dead_letters.items() if owner == key and not letter.settled}
    for name in sorted(taken.keys() | came.keys()):
        values, count = list(came[name].values()), len(taken[name])
        if taken[name] != values[:count]:
            yield Violation("I09", key, 0, f"{name}: took {taken[name]} of {values}")
        left = [places.get(identity, 0) for identity in list(came[name])[count:]]
        dead = [
            event.seq
            for event in chain[-1].history
            if isinstance(event.body, e.SignalReceived) and event.body.signal_name == name and event.seq in letters
        ]
        if dead != [seq for seq in left if seq not in settled]:
            yield Violation("I06", key, 0, f"{name}: {left} were not taken, {dead} are dead letters")


_GIVEN: dict[type[e.EventBody], Any] = {
    e.StepCompleted: lambda body: ["step", body.result],
    e.TaskCompleted: lambda body: ["task", body.result],
    e.ChildCompleted: lambda body: ["child", body.result],
    e.PromiseResolved: lambda body: ["promise", body.name, body.value],
    e.PromiseRejected: lambda body: ["rejected", body.name, _rejected(body)],
    e.PromiseTimedOut: lambda body: ["late", body.name],
}
"""How a program that is given such an outcome puts it down."""
_OF_PROMISES = frozenset({"promise", "rejected", "late"})
_LOGGED = frozenset({"step", "task", "child", *_OF_PROMISES})


def _rejected(body: e.PromiseRejected) -> str:
    return f"promise {body.name!r} was rejected: {body.failure.type}: {body.failure.message}"


# --- all calls ----------------------------------------------------------------------------------------------------


def _answers(ledger: Ledger) -> Iterator[Violation]:
    """Every answer under one request id is the same, and what was answered once is never refused."""
    for call in ledger.calls:
        if call.refused_again:
            text = f"{call.what} {call.request_id} was accepted, and then refused: {call.refused_again}"
            yield Violation("I23", call.execution_id, 0, text)
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


# --- promises and updates -----------------------------------------------------------------------------------------


def _promises(records: Sequence[Record], ledger: Ledger) -> Iterator[Violation]:
    """A promise is settled once, and everybody is told the same."""
    values: dict[str, set[str]] = defaultdict(set)
    firsts: Counter[str] = Counter()
    for call in ledger.calls:
        if call.what == "settle" and call.answers:
            answer = call.answers[0]
            given = answer.failure.message if answer.failure is not None else bytes(answer.value).decode()
            values[answer.promise_id].add(f"{answer.state} {given}")
            firsts[answer.promise_id] += not answer.already_resolved
    for record in records:
        if record.kinds.isdisjoint(_SETTLED):
            continue
        for event in record.history:
            if type(event.body) in _SETTLED:
                body: Any = event.body
                values[f"{record.execution_row.id}:{body.name}"].add(_SETTLED[type(body)](body))
    for key, told in values.items():
        if len(told) > 1 or firsts[key] > 1:
            text = f"promise {key} was settled {firsts[key]} times, to {sorted(told)}"
            yield Violation("I14", key.partition(":")[0], 0, text)


_SETTLED: dict[type[e.EventBody], Any] = {
    e.PromiseResolved: lambda body: f"RESOLVED {bytes(body.value).decode()}",
    e.PromiseRejected: lambda body: f"REJECTED {body.failure.message}",
    e.PromiseTimedOut: lambda _: "TIMED_OUT null",
}


def _updates(records: Sequence[Record], ledger: Ledger) -> Iterator[Violation]:
    """An accepted update is in one history, a refused one in none; what its caller was told is what came of it, if
    need be in one of the executions that have taken it over."""
    asked: dict[str, list[str]] = defaultdict(list)
    ends: dict[str, set[str]] = defaultdict(set)
    for record in records:
        if e.UpdateRequested not in record.kinds:
            continue
        for event in own_events(record):
            match event.body:
                case e.UpdateRequested(update_id=number, carried_from=None):
                    asked[number].append(record.execution_row.id)
                case e.UpdateCompleted(update_id=number, result=result):
                    ends[number].add(f"{UpdateStatus.COMPLETED} {bytes(result).decode()}")
                case e.UpdateFailed(update_id=number, failure=failure):
                    ends[number].add(f"{UpdateStatus.FAILED} {failure.message}")
                case e.UpdateRejected(update_id=number, failure=failure):
                    ends[number].add(f"{UpdateStatus.REJECTED} {failure.message}")
    redone = any(e.WorkflowReset in record.kinds for record in records)
    for call in ledger.calls:
        if call.what != "update":
            continue
        found = asked[call.request_id]
        if len(found) > 1 or (call.answers and not found) or (found and not call.answers and not call.unheard):
            text = f"update {call.request_id} was answered {call.answers} ({call.refused}), and is in {found}"
            yield Violation("I06", call.execution_id, 0, text)
        if call.outcome is not None and not _came_true(call, ends[call.request_id], redone=redone):
            text = f"update {call.request_id}: told {call.outcome}, recorded {sorted(ends[call.request_id])}"
            yield Violation("I23", call.execution_id, 0, text)


def _came_true(call: Call, ends: set[str], *, redone: bool) -> bool:
    outcome = call.outcome
    given = outcome.failure.message if outcome.failure is not None else bytes(outcome.result).decode()
    if outcome.status is UpdateStatus.FAILED and outcome.failure.code == "execution_closed":
        return not ends or redone
    told = f"{outcome.status} {given}"
    return told in ends and (redone or len(ends) == 1)


# --- messages, starts, ends ---------------------------------------------------------------------------------------


def _sent(database: MemoryDatabase, lines: Lines, ledger: Ledger) -> Iterator[Violation]:
    """A broadcast reaches as many as it says; an event that only one may have reaches one; nobody gets one twice. What
    somebody has taken over from another one was received by that one."""
    got: Counter[int] = Counter()
    perhaps: Counter[int] = Counter()
    for record in lines.by_id.values():
        if record.kinds.isdisjoint((e.BroadcastReceived, e.EventReceived)):
            continue
        for broadcast_id, is_sure in lines.own_broadcasts(record):
            (got if is_sure else perhaps)[broadcast_id] += 1
        mine = Counter(event.body.event_id for event in record.history if isinstance(event.body, e.EventReceived))
        for event_id, count in mine.items():
            together = sum(isinstance(event.body, e.WaitStarted) for event in record.history)
            if count > together:
                yield Violation("I26", record.execution_row.id, 0, f"got event {event_id} {count} times")
    for call in ledger.calls:
        if call.what == "broadcast" and call.answers:
            answer = call.answers[-1]
            if not 0 <= answer.delivered - got[answer.broadcast_id] <= perhaps[answer.broadcast_id]:
                text = f"broadcast {answer.broadcast_id} says {answer.delivered}, {got[answer.broadcast_id]} got it"
                yield Violation("I26", "", 0, text)
    for row in database.deliveries.values():
        if row.done_at is None:
            yield Violation("I19", "", 0, f"{row.kind} {row.key} ({row.id}) is still on its way")


def _starts(database: MemoryDatabase, ledger: Ledger) -> Iterator[Violation]:
    """What a start has answered is there."""
    for call in ledger.calls:
        if call.what == "start" and call.answers and call.execution_id not in database.execution_rows:
            yield Violation("I17", call.execution_id, 0, f"start {call.request_id} was answered with it: not there")


def _cancels(records: Sequence[Record], ledger: Ledger) -> Iterator[Violation]:
    """Whoever was told that he has changed something has."""
    by_id = {record.execution_row.id: record for record in records}
    for call in ledger.calls:
        if call.what not in {"cancel", "terminate"} or not any(answer.changed for answer in call.answers):
            continue
        wanted = e.CancelRequested if call.what == "cancel" else e.WorkflowTerminated
        record = by_id.get(call.execution_id)
        if record is None or not any(isinstance(event.body, wanted) for event in record.history):
            yield Violation("I27", call.execution_id, 0, f"{call.what} was accepted; the history does not know it")


def _keys(database: MemoryDatabase, records: Sequence[Record], ledger: Ledger) -> Iterator[Violation]:
    """An idempotency key is kept with the effect of its call, and not without: one that was refused leaves none."""
    signalled = {
        event.body.request_id
        for record in records
        if e.SignalReceived in record.kinds
        for event in record.history
        if isinstance(event.body, e.SignalReceived)
    }
    for call in ledger.calls:
        row = database.requests.get((ORG, _key(call)))
        if row is None:
            if call.answers and call.what not in {"cancel", "terminate"}:
                yield Violation("I19", call.execution_id, 0, f"{call.what} {call.request_id}: its key is gone")
        elif not call.answers and not call.unheard:
            text = f"{call.what} {call.request_id} was refused ({call.refused}), and its key is kept"
            yield Violation("I19", call.execution_id, 0, text)
        elif call.what == "signal" and call.request_id not in signalled:
            yield Violation("I19", call.execution_id, 0, f"the key of signal {call.request_id} is kept without it")
    for row in database.requests.values():
        if row.execution_id is not None and row.execution_id not in database.execution_rows:
            text = f"key {row.request_id} is kept for this execution, which is not there"
            yield Violation("I19", row.execution_id, 0, text)


def _key(call: Call) -> str:
    return f"update:{call.execution_id}:{call.request_id}" if call.what == "update" else call.request_id
