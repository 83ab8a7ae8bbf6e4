"""What a caller may say about a start or a list, checked and in the words of the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from holdfast.errors import InvalidRequest
from holdfast.model.durations import Duration, time_limit_s
from holdfast.model.executions import Status
from holdfast.replay.definition import AnyWorkflow, definition_of

Workflow = str | type[Any] | AnyWorkflow
Choice = TypeVar("Choice", bound=StrEnum)


def choice(kind: type[Choice], value: Choice | str, field: str) -> Choice:
    """One of a few known words."""
    if type(value) is kind:
        return value
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(repr(str(word)) for word in kind)
        raise InvalidRequest(f"{field} must be one of {known}, not {value!r:.50}", field=field) from None


def timeout_of(given: Duration | None, declared: float | None) -> float | None:
    """The execution timeout that is given, or the one the workflow declares."""
    return declared if given is None else time_limit_s(given, "execution_timeout")


def beginning_at(start_at: datetime | None) -> datetime | None:
    given: object = start_at
    if not isinstance(given, datetime | None):
        raise InvalidRequest(f"start_at must be a datetime, not {given!r:.50}", field="start_at")
    return zoned(start_at, "start_at")


def zoned(when: datetime | None, field: str) -> datetime | None:
    """An instant: one without a time zone could be any."""
    if when is not None and when.tzinfo is None:
        raise InvalidRequest(f"{field} needs a time zone: {when!r}", field=field)
    return when


def tags(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    if metadata is None:
        return None
    given: object = metadata
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"metadata must map text to text, not {given!r:.50}", field="metadata")
    for pair in metadata.items():
        if not all(isinstance(item, str) for item in pair):
            raise InvalidRequest(f"metadata must map text to text: {pair[0]!r}: {pair[1]!r}", field="metadata")
    return dict(metadata)


def resolved(workflow: Workflow) -> tuple[str, str | None, Any, float | None]:
    """Kind, declared version, result type and declared timeout of what a caller may give as a workflow."""
    if isinstance(workflow, str):
        return workflow, None, Any, None
    definition = definition_of(workflow)
    if definition is None:
        raise InvalidRequest(
            f"{workflow!r} is not a workflow: decorate it with @workflow, or give its kind as text", field="workflow"
        )
    return definition.kind, definition.version, definition.result_type, definition.execution_timeout_s


def statuses(status: Status | str | Sequence[Status | str]) -> tuple[Status, ...]:
    wanted = (status,) if isinstance(status, str) else tuple(status)
    try:
        return tuple(Status(item) for item in wanted)
    except ValueError as error:
        known = ", ".join(Status)
        raise InvalidRequest(f"{error}; known: {known}", field="status") from error
