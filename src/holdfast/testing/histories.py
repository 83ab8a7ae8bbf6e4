"""Histories outside a database: stored as JSON text, read back, replayed against the code.

The text is an object with `format` ("holdfast-history"), `format_version` (1), `execution_id`, `kind`, `version` and
`events`: each with its number `seq`, its time `at` (UTC, to the microsecond), its `type`, the `version` of that type
and its fields as `data`. Old type versions are brought up to date when they are read, as they are from a database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from holdfast.errors import DeterminismError, EventTooNew, InvalidHistory, InvalidRequest, UnknownWorkflowKind
from holdfast.model.events import EventBody, HistoryEvent, TurnEvent, WorkflowStarted, decode_body, encode_body
from holdfast.model.tokens import replay_key
from holdfast.replay.definition import AnyWorkflow, Definition, ProgramEnvironment
from holdfast.replay.journal import COMMAND_EVENTS
from holdfast.replay.machine import Machine
from holdfast.replay.program import Program
from holdfast.replay.registry import Registry

FORMAT = "holdfast-history"
FORMAT_VERSION = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """A history with what it takes to replay it."""

    execution_id: str
    kind: str
    version: str
    events: list[HistoryEvent]


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay has gone through: so many events and recorded turns, so many commands compared. `ended`: the
    program has come to its end."""

    execution_id: str
    kind: str
    version: str
    events: int
    turns: int
    commands: int
    ended: bool


class _Event(msgspec.Struct, forbid_unknown_fields=False):
    seq: int
    at: str
    type: str
    version: int
    data: msgspec.Raw


class _File(msgspec.Struct, forbid_unknown_fields=False):
    format: str
    format_version: int
    execution_id: str
    kind: str
    version: str
    events: list[_Event]


def export_history(
    events: Iterable[HistoryEvent], *, execution_id: str, kind: str | None = None, version: str | None = None
) -> str:
    """A history as readable JSON text. `kind` and `version` are those it was started with, unless given."""
    listed = _checked(list(events))
    started = listed[0].body
    assert isinstance(started, WorkflowStarted), "checked above"
    stored = _File(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        execution_id=execution_id,
        kind=kind or started.kind,
        version=version or started.version,
        events=[
            _Event(
                seq=event.seq,
                at=_text(event.at),
                type=event.type,
                version=event.body.VERSION,
                data=msgspec.Raw(encode_body(event.body)),
            )
            for event in listed
        ],
    )
    return msgspec.json.format(msgspec.json.encode(stored), indent=1).decode() + "\n"


def load_history(source: Path | str | Mapping[str, Any]) -> StoredHistory:
    """Read what `export_history` has written: a path, the text itself, or its object. Else InvalidHistory."""
    try:
        stored = msgspec.json.decode(_bytes(source), type=_File)
        if stored.format != FORMAT or stored.format_version > FORMAT_VERSION:
            raise InvalidHistory(
                f"this Holdfast reads {FORMAT} up to version {FORMAT_VERSION}, not {stored.format} "
                f"version {stored.format_version}",
                field="format",
            )
        events = [HistoryEvent(event.seq, _micros(event.at), _body(event)) for event in stored.events]
    except (msgspec.DecodeError, EventTooNew, ValueError) as error:
        raise InvalidHistory(f"this is not a stored history: {error}", field="history") from error
    return StoredHistory(stored.execution_id, stored.kind, stored.version, _checked(events))


def replay(
    workflow: AnyWorkflow | Iterable[AnyWorkflow],
    history: StoredHistory | Sequence[HistoryEvent] | Path | str | Mapping[str, Any],
    *,
    execution_id: str = "",
) -> ReplayReport:
    """Rebuild a workflow from a history: DeterminismError, with both sides and lines, if the code makes other moves.

    Of several workflows the one with the history's kind and version is taken; one given alone is taken whatever its
    version is, so that changed code can be tried on old histories.
    """
    alone = callable(workflow) or isinstance(workflow, Definition)
    given: Any = [workflow] if alone else workflow
    definitions = Registry(given).workflows
    if isinstance(history, StoredHistory):
        stored = history
    elif isinstance(history, Path | str | Mapping):
        stored = load_history(history)
    else:
        events = _checked(list(history))
        started = events[0].body
        assert isinstance(started, WorkflowStarted), "checked above"
        stored = StoredHistory(execution_id, started.kind, started.version, events)
    return replay_definitions(
        definitions, stored.events, execution_id=execution_id or stored.execution_id, any_version=alone
    )


def replay_definitions(
    definitions: Sequence[Definition],
    events: Sequence[HistoryEvent],
    *,
    execution_id: str,
    org: str = "default",
    any_version: bool = False,
) -> ReplayReport:
    """`replay` for those who have the definitions at hand."""
    started = events[0].body
    assert isinstance(started, WorkflowStarted), "every history begins so"
    definition = _fitting(definitions, started, any_version)
    machine = Machine(program_maker(definition, org, execution_id))
    try:
        machine.replay(events)
        ended = machine.ended
    except DeterminismError as error:
        error.add_note(f"while replaying execution {execution_id or '(no id given)'} of {definition}")
        raise
    finally:
        machine.close()
    turns = {event.body.up_to for event in events if isinstance(event.body, TurnEvent)}
    commands = sum(isinstance(event.body, COMMAND_EVENTS) for event in events)
    return ReplayReport(execution_id, started.kind, started.version, len(events), len(turns), commands, ended)


def program_maker(
    definition: Definition,
    org: str,
    execution_id: str,
    *,
    token_key: Callable[[str], bytes] = replay_key,
    propagate_child_failures: bool = True,
) -> Callable[[Machine], Program]:
    """What makes a program outside a worker. Without a `token_key` its promises' tokens are no good."""
    return definition.program_maker(ProgramEnvironment(org, execution_id, token_key, propagate_child_failures))


def _fitting(definitions: Sequence[Definition], started: WorkflowStarted, any_version: bool) -> Definition:
    for definition in definitions:
        if definition.kind == started.kind and (any_version or definition.version == started.version):
            return definition
    known = ", ".join(str(definition) for definition in definitions) or "none"
    raise UnknownWorkflowKind(
        f"the history is of workflow {started.kind!r} version {started.version!r}; given: {known}", kind=started.kind
    )


def _checked(events: list[HistoryEvent]) -> list[HistoryEvent]:
    if any(not isinstance(event, HistoryEvent) for event in events):
        raise InvalidRequest("a history is a list of HistoryEvent, as client.history() gives it", field="history")
    if not events or not isinstance(events[0].body, WorkflowStarted):
        raise InvalidHistory("a history begins with WORKFLOW_STARTED: give all of it", field="history")
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        raise InvalidHistory("events are missing: a history is numbered from 1 without gaps", field="history")
    return events


def _bytes(source: Path | str | Mapping[str, Any]) -> bytes:
    if isinstance(source, Mapping):
        return msgspec.json.encode(source)
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source.encode()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise InvalidHistory(f"the history can't be read: {error}", field="history") from error


def _body(event: _Event) -> EventBody:
    # Without the spaces put in for people: payloads are then what they were, byte for byte.
    return decode_body(event.type, event.version, msgspec.json.format(bytes(event.data), indent=-1))


def _text(at: int) -> str:
    return (_EPOCH + at * _MICROSECOND).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _micros(text: str) -> int:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise InvalidHistory(f"at: {text!r} has no time zone", field="at")
    return (found - _EPOCH) // _MICROSECOND
