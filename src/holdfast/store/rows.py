"""Rows to records and back, for every store: columns in the order of the record's fields.

Binding None or bytes costs the driver four times as much as text or a number (it looks for an adapter each time), so on
the hot tables JSON is bound as text, and an absent value as '' or 0, which the statement turns into NULL.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from holdfast.model.events import HistoryEvent, SignalReceived, decode_body, encode_body
from holdfast.model.executions import (
    DeadLetter,
    DefinitionRow,
    Execution,
    OutputRow,
    Ready,
    RequestRow,
    State,
    StuckReason,
    TaskRow,
    TimerRow,
    WorkerRow,
)
from holdfast.model.values import NULL, Failure, RetryPolicy, TaskTimeouts, Wait

EXECUTION_COLUMNS: Final = tuple(name for name in Execution.__struct_fields__ if name != "ready")
_EXECUTION_WIDTH: Final = len(EXECUTION_COLUMNS)
TASK_COLUMNS: Final = TaskRow.__struct_fields__
REQUEST_COLUMNS: Final = RequestRow.__struct_fields__

Row = tuple[Any, ...]

_STATES: Final = {state.value: state for state in State}

_encode = msgspec.json.Encoder().encode
_decode_waits = msgspec.json.Decoder(tuple[Wait, ...]).decode
_decode_stuck = msgspec.json.Decoder(StuckReason).decode
_decode_metadata = msgspec.json.Decoder(dict[str, str]).decode
_decode_retry = msgspec.json.Decoder(RetryPolicy).decode
_decode_timeouts = msgspec.json.Decoder(TaskTimeouts).decode
_decode_failure = msgspec.json.Decoder(Failure).decode


def _text(value: Any) -> str:
    return _encode(value).decode()


def execution_to_row(e: Execution) -> Row:
    return (
        e.id,
        e.org,
        e.workflow_id,
        e.kind,
        e.version,
        e.queue,
        e.priority,
        str(e.state),
        e.created_at,
        e.updated_at,
        e.closed_at or 0,
        e.last_seq,
        e.seen_seq,
        e.call_seq,
        e.signal_count,
        e.open_tasks,
        e.open_timers,
        e.open_children,
        e.open_waits,
        e.epoch,
        e.nonce,
        e.crashes,
        e.close_rounds,
        1 if e.cancel_requested else 0,
        _text(e.waiting_for) if e.waiting_for else "",
        _text(e.stuck) if e.stuck is not None else "",
        _text(e.metadata) if e.metadata is not None else "",
        e.parent_id or "",
        e.child_no,
        e.on_parent_close or "",
        e.successor or "",
    )


def state_to_row(e: Execution) -> Row:
    """What changes of a head when its state does."""
    return (
        e.id,
        e.version,
        e.queue,
        e.priority,
        str(e.state),
        e.updated_at,
        e.closed_at or 0,
        e.last_seq,
        e.seen_seq,
        e.call_seq,
        e.signal_count,
        e.open_tasks,
        e.open_timers,
        e.open_children,
        e.open_waits,
        e.epoch,
        e.nonce,
        e.crashes,
        e.close_rounds,
        1 if e.cancel_requested else 0,
        _text(e.waiting_for) if e.waiting_for else "",
        _text(e.stuck) if e.stuck is not None else "",
        _text(e.metadata) if e.metadata is not None else "",
        e.parent_id or "",
        e.child_no,
        e.on_parent_close or "",
        e.successor or "",
    )


def progress_to_row(e: Execution) -> Row:
    """What changes of a head while its state stays."""
    return (
        e.id,
        e.updated_at,
        e.last_seq,
        e.seen_seq,
        e.call_seq,
        e.signal_count,
        e.open_tasks,
        e.open_timers,
        e.open_children,
        e.open_waits,
        e.epoch,
        e.nonce,
        e.close_rounds,
        1 if e.cancel_requested else 0,
        _text(e.waiting_for) if e.waiting_for else "",
    )


def ready_to_row(e: Execution, ready: Ready) -> Row:
    return (
        e.id,
        e.org,
        e.queue,
        e.priority,
        e.kind,
        e.version,
        ready.since_at,
        ready.not_before_at,
        ready.worker or "",
        1 if ready.pending_events else 0,
        ready.avoid_build or "",
    )


def row_to_execution(row: Row) -> Execution:
    """The columns of a head, then those of its ready row."""
    execution_row = row_to_bare_execution(row[:_EXECUTION_WIDTH])
    if row[_EXECUTION_WIDTH] is not None:
        execution_row.ready = row_to_ready(*row[_EXECUTION_WIDTH:])
    return execution_row


def row_to_bare_execution(row: Row) -> Execution:
    """Without its ready row. Most of a head is as it began: what is not given need not be set."""
    execution_id, org, workflow_id, kind, version, queue, priority, state, created_at, updated_at = row[:10]
    closed_at, last_seq, seen_seq, epoch, nonce = row[10], row[11], row[12], row[19], row[20]
    execution_row = Execution(
        id=execution_id,
        org=org,
        workflow_id=workflow_id,
        kind=kind,
        version=version,
        queue=queue,
        priority=priority,
        state=_STATES[state],
        created_at=created_at,
        updated_at=updated_at,
        last_seq=last_seq,
        epoch=epoch,
        nonce=nonce,
    )
    if closed_at is not None:
        execution_row.closed_at = closed_at
    if seen_seq:
        execution_row.seen_seq = seen_seq
    counts, rest = row[13:19], row[21:]
    if any(counts):
        (
            execution_row.call_seq,
            execution_row.signal_count,
            execution_row.open_tasks,
            execution_row.open_timers,
            *more,
        ) = counts
        execution_row.open_children, execution_row.open_waits = more
    if any(rest):
        _set_rest(execution_row, rest)
    return execution_row


def _set_rest(execution_row: Execution, rest: Row) -> None:
    crashes, close_rounds, cancel_requested, waiting_for, stuck, metadata, *family = rest
    execution_row.crashes = crashes
    execution_row.close_rounds = close_rounds
    execution_row.cancel_requested = cancel_requested == 1
    if waiting_for:
        execution_row.waiting_for = _decode_waits(waiting_for)
    if stuck is not None:
        execution_row.stuck = _decode_stuck(stuck)
    if metadata is not None:
        execution_row.metadata = _decode_metadata(metadata)
    execution_row.parent_id, execution_row.child_no, execution_row.on_parent_close, execution_row.successor = family


def row_to_ready(
    since_at: int, not_before_at: int, worker: str | None, pending_events: Any, avoid_build: str | None
) -> Ready:
    ready = Ready(since_at=since_at, worker=worker)
    if not_before_at:
        ready.not_before_at = not_before_at
    if pending_events:
        ready.pending_events = True
    if avoid_build is not None:
        ready.avoid_build = avoid_build
    return ready


def event_to_row(execution_id: str, event: HistoryEvent) -> Row:
    body = event.body
    return (execution_id, event.seq, body.TYPE, body.VERSION, event.at, encode_body(body).decode())


def row_to_event(seq: int, at: int, type_name: str, version: int, data: bytes | str) -> HistoryEvent:
    return HistoryEvent(seq, at, decode_body(type_name, version, data))


def task_to_row(t: TaskRow) -> Row:
    return (
        t.execution_id,
        t.task_no,
        t.org,
        t.kind,
        t.queue,
        t.priority,
        bytes(t.input).decode(),
        _text(t.retry),
        _text(t.timeouts),
        t.scheduled_at,
        t.not_before_at,
        t.attempt,
        t.nonce,
        t.worker or "",
        t.started_at,
        t.heartbeat_at,
        t.due_at,
        bytes(t.details).decode() if t.details is not None else "",
        t.progress,
        _text(t.last_failure) if t.last_failure is not None else "",
        1 if t.deferred else 0,
        t.output_seq,
    )


def row_to_task(row: Row) -> TaskRow:
    fields = dict(zip(TASK_COLUMNS, row, strict=True))
    fields["input"] = Raw(fields["input"])
    fields["retry"] = _decode_retry(fields["retry"])
    fields["timeouts"] = _decode_timeouts(fields["timeouts"])
    if fields["details"] is not None:
        fields["details"] = Raw(fields["details"])
    if fields["last_failure"] is not None:
        fields["last_failure"] = _decode_failure(fields["last_failure"])
    fields["deferred"] = fields["deferred"] == 1
    return TaskRow(**fields)


def output_to_row(row: OutputRow) -> Row:
    return (row.execution_id, row.task_no, row.seq, row.attempt, row.at, bytes(row.data).decode())


def row_to_output(row: Row) -> OutputRow:
    return OutputRow(execution_id=row[0], task_no=row[1], seq=row[2], attempt=row[3], at=row[4], data=Raw(row[5]))


def row_to_timer(row: Row) -> TimerRow:
    return TimerRow(execution_id=row[0], timer_no=row[1], org=row[2], fire_at=row[3], promise=row[4])


def row_to_worker(row: Row) -> WorkerRow:
    return WorkerRow(id=row[0], org=row[1], host=row[2], pid=row[3], started_at=row[4], lease_until_at=row[5])


def row_to_definition(row: Row) -> DefinitionRow:
    return DefinitionRow(org=row[0], kind=row[1], version=row[2], build=row[3], registered_at=row[4])


def row_to_request(row: Row) -> RequestRow:
    return RequestRow(**dict(zip(REQUEST_COLUMNS, row, strict=True)))


def request_to_row(r: RequestRow) -> Row:
    return (
        r.org,
        r.request_id,
        r.fingerprint,
        r.answer,
        r.created_at,
        r.ttl,
        r.expires_at,
        r.execution_id or "",
        r.subject or "",
    )


def row_to_dead_letter(row: Row) -> tuple[DeadLetter, SignalReceived | None]:
    """With its signal, unless a part of the history has been removed."""
    signal = row_to_event(row[1], *row[6:10]).body if row[7] is not None else None
    if not isinstance(signal, SignalReceived):
        signal = None
    letter = DeadLetter(
        execution_id=row[0],
        seq=row[1],
        org=row[2],
        reason=row[3],
        at=row[4],
        settled=bool(row[5]),
        signal_name=signal.signal_name if signal is not None else "",
        signal_value=signal.signal_value if signal is not None else NULL,
        received_at=row[6] or 0,
    )
    return letter, signal
