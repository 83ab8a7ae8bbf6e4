"""Values inside a payload, as texts to search by: a path is a JSON list of keys, equal values have equal texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw


def path_text(path: tuple[str, ...]) -> str:
    return msgspec.json.encode(path).decode()


def value_text(value: Any) -> str | None:
    """The same text for values that are equal in a filter (1 and 1.0 are); None for what can't be searched by."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"s{value}"
    if isinstance(value, int):
        return f"n{value}"
    if isinstance(value, float):
        return f"n{int(value)}" if value.is_integer() else f"n{value!r}"
    return None


def reader(data: Raw) -> Callable[[str], str | None]:
    """From a path to the text of the value there; the payload is decoded once, when somebody first asks."""
    payload: list[Any] = []

    def value_at(path: str) -> str | None:
        if not payload:
            payload.append(msgspec.json.decode(data))
        found = payload[0]
        for key in msgspec.json.decode(path):
            if not isinstance(found, dict) or key not in found:
                return None
            found = found[key]
        return value_text(found)

    return value_at
