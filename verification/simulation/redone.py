"""What has been reset, forked or retried: who took over whose past, and whether all that belongs to it went along."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from verification.invariants import Record, Violation
from verification.invariants.records import own_events, own_reset
from verification.simulation.ledger import Call, Ledger

REDO = frozenset({"reset", "fork", "retry"})
Records = Mapping[str, Record]


class Lines:
    """Who took over whose past. `lines` are, by id, the execution and those whose past it has, the nearest first;
    `heirs` say how many have taken over the past of one; `settled` which signals of one went to another, and are no
    dead letters any more."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.by_id = {record.execution_row.id: record for record in records}
        self.resets = {key: reset for key, record in self.by_id.items() if (reset := _reset(record)) is not None}
        self.lines = {key: self._line(key) for key in self.by_id}
        self.heirs: dict[str, int] = defaultdict(int)
        self.settled: dict[str, set[int]] = defaultdict(set)
        for key, reset in self.resets.items():
            for source in self.lines[key][1:]:
                self.heirs[source] += 1
            if not reset.fork:
                went = self.settled[reset.from_execution_id]
                went.update(range(1, reset.event_seq + 1), carried(self.by_id[key], e.SignalReceived))

    def _line(self, key: str) -> list[str]:
        found = [key]
        while (reset := self.resets.get(found[-1])) is not None and reset.from_execution_id not in found:
            found.append(reset.from_execution_id)
        return found

    def left_out(self, record: Record) -> set[object]:
        """Signals of those whose past this one has, that it has not got."""
        sources = [self.by_id[key] for key in self.lines[record.execution_row.id][1:]]
        if not sources:
            return set()
        return {identity for source in sources for identity in _identities(source)} - _identities(record)

    def own_broadcasts(self, record: Record) -> Iterator[tuple[int, bool]]:
        """The numbers of those that came to this execution, without those that it has taken over: what was given to the
        other one after the cut follows the reset at once. A fork may get one at the very moment at which the other one
        does, or take it over from that one: then nobody can tell, and it is not sure (False)."""
        reset = own_reset(record)
        before: set[tuple[int, int]] = set()
        if reset is not None:
            source = self.by_id[self.lines[record.execution_row.id][1]]
            before = {
                (event.body.wait_no, event.body.broadcast_id)
                for event in source.history[reset.seq - 1 :]
                if isinstance(event.body, e.BroadcastReceived)
            }
        is_fork = record.execution_row.id in self.resets and self.resets[record.execution_row.id].fork
        for event in own_events(record):
            body = event.body
            if reset is not None and (event.at > reset.at or isinstance(body, e.TurnEvent)):
                before.clear()
            if isinstance(body, e.BroadcastReceived):
                taken_over = (body.wait_no, body.broadcast_id) in before
                if is_fork or not taken_over:
                    yield body.broadcast_id, not taken_over


def identity_of(signal: e.SignalReceived) -> object:
    return signal.request_id or (signal.sender, bytes(signal.signal_value))


def _identities(record: Record) -> set[object]:
    return {identity_of(event.body) for event in record.history if isinstance(event.body, e.SignalReceived)}


def _reset(record: Record) -> e.WorkflowReset | None:
    event = own_reset(record)
    return event.body if event is not None and isinstance(event.body, e.WorkflowReset) else None


def carried(record: Record, kind: type[e.SignalReceived | e.UpdateRequested]) -> list[int]:
    """The numbers that what was taken along had in the execution whose past this one has."""
    reset = own_reset(record)
    assert reset is not None, "it has another one's past"
    return [
        event.body.carried_from
        for event in record.history[reset.seq :]
        if isinstance(event.body, kind)
        and event.body.carried_from is not None
        and getattr(event.body, "redelivered_from", None) is None
    ]


def check_redone(ledger: Ledger, lines: Lines) -> Iterator[Violation]:
    """Each call has made one execution or, if it was refused, none; and that has what it is to have."""
    calls = {call.request_id: call for call in ledger.calls if call.what in REDO}
    if not calls and not lines.resets:
        return
    made: dict[str, list[str]] = defaultdict(list)
    for key, reset in lines.resets.items():
        name = reset.workflow_id if reset.fork else reset.reason
        made[name].append(key)
        if name not in calls:
            yield Violation("I23", key, reset.event_seq + 1, f"nobody has asked for it ({name})")
    for name, call in calls.items():
        yield from _made(call, made[name])
        for key in made[name]:
            record, reset = lines.by_id[key], lines.resets[key]
            if reset.from_execution_id != call.execution_id:
                text = f"{call.what} {name} of {call.execution_id} has the past of {reset.from_execution_id}"
                yield Violation("I03", key, reset.event_seq + 1, text)
                continue
            source = lines.by_id[call.execution_id]
            for kind in (e.SignalReceived, e.UpdateRequested):
                yield from _taken_along(call, record, source, kind)
            yield from _given(record, source, reset.event_seq)


def _made(call: Call, made: Sequence[str]) -> Iterator[Violation]:
    answered = {answer.workflow_execution_id for answer in call.answers}
    if len(made) > 1 or (call.answers and answered != set(made)) or (made and not call.answers and not call.unheard):
        text = f"{call.what} {call.request_id} was answered {sorted(answered)} ({call.refused}), and made {made}"
        yield Violation("I23", call.execution_id, 0, text)


def _taken_along(
    call: Call, record: Record, source: Record, kind: type[e.SignalReceived | e.UpdateRequested]
) -> Iterator[Violation]:
    """What came after the cut, and all of it, if it was to go along. One that is forked goes on: of what it got later
    nobody can say whether that was before the fork."""
    reset = own_reset(record)
    assert reset is not None, "made by a call"
    found = carried(record, kind)
    later = [event for event in source.history[reset.seq - 1 :] if isinstance(event.body, kind)]
    refused = {event.body.update_id for event in source.history if isinstance(event.body, e.UpdateRejected)}
    due = [event.seq for event in later if getattr(event.body, "update_id", None) not in refused]
    allowed = {event.seq for event in later} if call.what == "fork" else set(due)
    if not call.reapply:
        if found:
            text = f"{call.what} {call.request_id} was to leave out what came later: {found}"
            yield Violation("I07", record.execution_row.id, reset.seq, text)
        return
    sure = {seq for seq in due if call.what != "fork" or seq <= call.known}
    if found != sorted(set(found)) or not sure <= set(found) <= allowed:
        missing = f"{kind.TYPE} {due} of {source.execution_row.id}"
        text = f"{call.what} {call.request_id}: {missing} came later, {found} went along"
        yield Violation("I06", record.execution_row.id, reset.seq, text)


def _given(record: Record, source: Record, cut: int) -> Iterator[Violation]:
    """Children that were started before the cut, and whose end is known to the one whose past it is: their end is what
    it was. No other child is started in their place."""
    started = {event.body.child_no: event for event in source.history[:cut] if isinstance(event.body, e.ChildStarted)}
    ends = _ends(source.history)
    mine = _ends(record.history)
    for number in started.keys() & ends.keys():
        if number not in mine or e.encode_body(mine[number].body) != e.encode_body(ends[number].body):
            text = f"child {number} had ended before {source.execution_row.id} was done again; that is not its outcome"
            yield Violation("I15", record.execution_row.id, mine[number].seq if number in mine else 0, text)


def _ends(history: Sequence[HistoryEvent]) -> dict[int, HistoryEvent]:
    return {event.body.child_no: event for event in history if isinstance(event.body, e.ChildCompleted | e.ChildFailed)}
