"""Executions among each other: one open run per workflow id, one effect per request, runs that follow each other,
signals from one to another. Parents and children are in `families`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from verification.invariants.families import check_families
from verification.invariants.records import Record, Violation, as_stored, own_events, own_reset

Requests = Mapping[tuple[str, str], Sequence[tuple[str, int]]]
Records = Mapping[str, Record]


def check_among(records: Sequence[Record], *, at_rest: bool) -> Iterator[Violation]:
    by_id = {record.execution_row.id: record for record in records}
    yield from _open_twice(records)
    yield from _repeated("I03", "started", _requests(records, e.WorkflowStarted))
    yield from _repeated("I07", "brought a signal", _requests(records, e.SignalReceived))
    for record in records:
        yield from _copies(record, by_id)
        yield from _continued(record, by_id)
        yield from _carried(record, by_id)
        if e.SignalReceived in record.kinds:
            yield from _redelivered(record, by_id)
            yield from _received(record, by_id)
        if e.ExternalSignalDelivered in record.kinds:
            yield from _sent(record, by_id)
    yield from check_families(records, by_id, at_rest=at_rest)


def _open_twice(records: Sequence[Record]) -> Iterator[Violation]:
    found: dict[tuple[str, str], str] = {}
    for execution_row in (record.execution_row for record in records if record.execution_row.is_open):
        first = found.setdefault((execution_row.org, execution_row.workflow_id), execution_row.id)
        if first != execution_row.id:
            yield Violation(
                "I17",
                execution_row.id,
                0,
                f"workflow id {execution_row.workflow_id!r} has another open execution: {first}",
            )


def _requests(records: Sequence[Record], kind: type[e.WorkflowStarted | e.SignalReceived]) -> Requests:
    """Where each request id of an org has had its effect: execution and number. Copies and what was carried from one
    run to the next tell of that effect once more."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for record in records:
        for event in own_events(record) if kind in record.kinds else ():
            body = event.body
            if (
                isinstance(body, kind)
                and body.request_id is not None
                and not (isinstance(body, e.SignalReceived) and body.carried_from is not None)
            ):
                found.setdefault((record.execution_row.org, body.request_id), []).append(
                    (record.execution_row.id, event.seq)
                )
    return found


def _repeated(invariant: str, effect: str, requests: Requests) -> Iterator[Violation]:
    for (_, request_id), places in requests.items():
        seen = {places[0][0]}
        for execution_id, seq in places[1:]:
            if execution_id in seen and invariant == "I07":
                continue  # told by the history itself
            seen.add(execution_id)
            first = f"{places[0][0]} #{places[0][1]}"
            yield Violation(invariant, execution_id, seq, f"request {request_id!r} has also {effect} at {first}")


# --- runs that follow each other ----------------------------------------------------------------------------------


def _copies(record: Record, by_id: Records) -> Iterator[Violation]:
    """What a reset or fork has taken over is what the other execution has; it only has not been asked for again."""
    reset = own_reset(record)
    if reset is None:
        return
    body = reset.body
    assert isinstance(body, e.WorkflowReset), "found by type"
    if body.event_seq != reset.seq - 1:
        text = f"says that {body.event_seq} events were copied; it follows {reset.seq - 1}"
        yield Violation("I01", record.execution_row.id, reset.seq, text)
    source = by_id.get(body.from_execution_id)
    if source is None:
        return
    for copy, original in zip(record.history[: reset.seq - 1], source.history, strict=False):
        if _nameless(copy) != _nameless(original):
            text = f"{copy.type} is a copy and differs from {source.execution_row.id} #{original.seq}"
            yield Violation("I01", record.execution_row.id, copy.seq, text)
    if len(source.history) < reset.seq - 1:
        text = f"{reset.seq - 1} events were copied from {source.execution_row.id}, which has {len(source.history)}"
        yield Violation("I01", record.execution_row.id, reset.seq, text)


def _nameless(event: HistoryEvent) -> object:
    body = event.body
    if isinstance(body, e.WorkflowStarted):
        body = structs.replace(body, request_id=None, seed=None)
    elif isinstance(body, e.PromiseCreated):
        body = structs.replace(body, token_hash="")
    return as_stored(HistoryEvent(event.seq, event.at, body))


def _continued(record: Record, by_id: Records) -> Iterator[Violation]:
    """A run and the next one name each other."""
    last = record.history[-1] if record.history else None
    if last is not None and isinstance(last.body, e.WorkflowContinued):
        successor = by_id.get(last.body.new_execution_id)
        first = successor.history[0].body if successor is not None and successor.history else None
        if not isinstance(first, e.WorkflowStarted) or first.continued_from != record.execution_row.id:
            text = f"goes on as {last.body.new_execution_id}, which is not there or follows another one"
            yield Violation("I06", record.execution_row.id, last.seq, text)
    if own_reset(record) is None and record.history and isinstance(record.history[0].body, e.WorkflowStarted):
        before = by_id.get(record.history[0].body.continued_from or "")
        end = before.history[-1].body if before is not None and before.history else None
        if before is not None and getattr(end, "new_execution_id", None) != record.execution_row.id:
            text = f"follows {before.execution_row.id}, which did not go on as this one"
            yield Violation("I06", record.execution_row.id, 1, text)


def _carried(record: Record, by_id: Records) -> Iterator[Violation]:
    """Calls the run before has not read: the same ones, in order, each once, none left behind."""
    taken = [
        event
        for event in own_events(record)
        if isinstance(event.body, _CALLS)
        and event.body.carried_from is not None
        and getattr(event.body, "redelivered_from", None) is None
    ]
    reset = own_reset(record)
    source = by_id.get(_source(record))
    if source is None:
        if taken and not _source(record):
            yield Violation(
                "I06", record.execution_row.id, taken[0].seq, f"{taken[0].type} was carried over from nowhere"
            )
        return
    numbers = [_from(event) for event in taken]
    if numbers != sorted(set(numbers)):
        yield Violation(
            "I06", record.execution_row.id, taken[0].seq, f"was carried over in another order, or twice: {numbers}"
        )
    originals = {event.seq: event for event in source.history}
    answered = {event.body.update_id for event in source.history if isinstance(event.body, _VERDICTS)}
    for event in taken:
        original = originals.get(_from(event))
        if original is None or _content(original) != _content(event):
            original_of = f"#{_from(event)} of {source.execution_row.id}"
            text = f"{event.type} was carried over from {original_of}, which is something else"
            yield Violation("I06", record.execution_row.id, event.seq, text)
        elif reset is None and isinstance(event.body, e.UpdateRequested) and event.body.update_id in answered:
            text = (
                f"update {event.body.update_id!r} was carried over, although {source.execution_row.id} had answered it"
            )
            yield Violation("I06", record.execution_row.id, event.seq, text)
    end = source.history[-1].body
    if reset is None and isinstance(end, e.WorkflowContinued):
        yield from _left_behind(record, source, end.up_to, set(numbers))


_CALLS = (e.SignalReceived, e.UpdateRequested)
_VERDICTS = (e.UpdateAccepted, e.UpdateRejected)


def _redelivered(record: Record, by_id: Records) -> Iterator[Violation]:
    """A dead letter is received as it was."""
    for event in own_events(record):
        body = event.body
        source = by_id.get(body.redelivered_from or "") if isinstance(body, e.SignalReceived) else None
        if source is None:
            continue
        original = next((found for found in source.history if found.seq == _from(event)), None)
        if original is None or _content(original) != _content(event):
            text = f"was redelivered from #{_from(event)} of {source.execution_row.id}, which is something else"
            yield Violation("I06", record.execution_row.id, event.seq, text)


def _left_behind(record: Record, source: Record, seen: int, carried: set[int]) -> Iterator[Violation]:
    """What came after the last turn's last event can't have been read."""
    for event in source.history[seen:]:
        if isinstance(event.body, e.SignalReceived | e.UpdateRequested) and event.seq not in carried:
            text = f"{event.type} #{event.seq} of {source.execution_row.id} was read by nobody and not carried over"
            yield Violation("I06", record.execution_row.id, 1, text)


def _source(record: Record) -> str:
    """Whose calls may have been carried over into this history."""
    reset = own_reset(record)
    if reset is not None:
        assert isinstance(reset.body, e.WorkflowReset), "found by type"
        return reset.body.from_execution_id
    started = record.history[0].body if record.history else None
    return (started.continued_from or "") if isinstance(started, e.WorkflowStarted) else ""


def _from(event: HistoryEvent) -> int:
    number: int = getattr(event.body, "carried_from", 0)
    return number


def _content(event: HistoryEvent) -> object:
    """A call without the number it had before."""
    if isinstance(event.body, e.SignalReceived):
        return event.type, e.encode_body(structs.replace(event.body, carried_from=None, redelivered_from=None))
    if isinstance(event.body, e.UpdateRequested):
        return event.type, e.encode_body(structs.replace(event.body, carried_from=None))
    return event.type, b""


# --- signals from one to another ----------------------------------------------------------------------------------


def _sent(record: Record, by_id: Records) -> Iterator[Violation]:
    """A delivered signal is where the sender was told it is. A reset has not sent again what it has copied."""
    senders = _line(record, by_id)
    asked = {
        event.body.signal_no: event.body
        for event in record.history
        if isinstance(event.body, e.ExternalSignalInitiated)
    }
    for event in record.history:
        body = event.body
        if not isinstance(body, e.ExternalSignalDelivered) or body.target_execution_id not in by_id:
            continue
        target, sent = by_id[body.target_execution_id], asked.get(body.signal_no)
        there = _at(target, body.signal_event_sequence)
        if (
            not isinstance(there, e.SignalReceived)
            or there.sender not in senders
            or sent is None
            or there.signal_name != sent.signal_name
            or bytes(there.signal_value) != bytes(sent.signal_value)
        ):
            text = f"signal {body.signal_no} is not #{body.signal_event_sequence} of {target.execution_row.id}"
            yield Violation("I06", record.execution_row.id, event.seq, text)


def _line(record: Record, by_id: Records) -> set[str]:
    """The execution and those whose past it has taken over, each from the one before."""
    found: set[str] = set()
    waiting = [record.execution_row.id]
    while waiting:
        execution_id = waiting.pop()
        if execution_id in found:
            continue
        found.add(execution_id)
        history = by_id[execution_id].history if execution_id in by_id else ()
        waiting += [event.body.from_execution_id for event in history if isinstance(event.body, e.WorkflowReset)]
    return found


def _received(record: Record, by_id: Records) -> Iterator[Violation]:
    """A signal from a workflow is known to its sender, which was told of it in the same transaction."""
    for event in own_events(record):
        body = event.body
        if not isinstance(body, e.SignalReceived) or body.sender is None or body.carried_from is not None:
            continue
        if body.sender not in by_id:
            continue
        told = [
            answer
            for answer in by_id[body.sender].history
            if isinstance(answer.body, e.ExternalSignalDelivered)
            and (answer.body.target_execution_id, answer.body.signal_event_sequence)
            == (record.execution_row.id, event.seq)
        ]
        if len(told) != 1:
            text = f"sent by {body.sender}, which was told so {len(told)} times"
            yield Violation("I06", record.execution_row.id, event.seq, text)


def _at(record: Record, seq: int) -> e.EventBody | None:
    return record.history[seq - 1].body if 1 <= seq <= len(record.history) else None
