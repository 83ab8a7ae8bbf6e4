"""Fields that may be left out, and those that take only some values."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from holdfast.errors import InvalidRequest
from holdfast.model.executions import WorkflowStatus
from holdfast.model.values import IfClosed, IfRunning

DEFAULT_QUEUE: Final = "default"
FAR: Final = 2**62

Choice = TypeVar("Choice", IfRunning, IfClosed, WorkflowStatus)


def choice(text: str, choices: type[Choice], field: str) -> Choice:
    try:
        return choices(text)
    except ValueError as error:
        known = ", ".join(choices)
        raise InvalidRequest(f"{field} must be one of {known}, not {text!r:.50}", field=field) from error


def given(message: Any, field: str) -> Any:
    """The value of an optional field; None if it was not set."""
    return getattr(message, field) if message.HasField(field) else None


def instant(value: int | None, field: str) -> int | None:
    if value is not None and not 0 <= value < FAR:
        raise InvalidRequest(f"{field} must be microseconds since 1970, not {value}", field=field)
    return value
