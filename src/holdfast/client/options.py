"""What a caller may say about a start or a list, checked and in the words of the contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from holdfast.client.views import microseconds
from holdfast.errors import InvalidRequest
from holdfast.frontends.python.definitions import Duration, time_limit_s, workflow_definition
from holdfast.model.executions import WorkflowStatus

Workflow = str | type[Any] | Callable[..., Any]
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


def start_instant(start_at: datetime | None) -> int | None:
    if start_at is None:
        return None
    given: object = start_at
    if not isinstance(given, datetime):
        raise InvalidRequest(f"start_at must be a datetime, not {given!r:.50}", field="start_at")
    return microseconds(start_at, "start_at")


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
    definition = workflow_definition(workflow)
    if definition is None:
        raise InvalidRequest(
            f"{workflow!r} is not a workflow: decorate it with @workflow, or give its kind as text", field="workflow"
        )
    return definition.kind, definition.version, definition.result_type, definition.execution_timeout_s


def statuses(status: WorkflowStatus | str | Sequence[WorkflowStatus | str]) -> tuple[WorkflowStatus, ...]:
    wanted = (status,) if isinstance(status, str) else tuple(status)
    try:
        return tuple(WorkflowStatus(item) for item in wanted)
    except ValueError as error:
        known = ", ".join(WorkflowStatus)
        raise InvalidRequest(f"{error}; known: {known}", field="status") from error
