"""Values inside a payload, as texts to search by: a path is a JSON list of keys, equal values have equal texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from holdfast.expressions.cel.analysis import equality_key, lookup


def path_text(path: tuple[str, ...]) -> str:
    return msgspec.json.encode(path).decode()


def reader(data: Raw) -> Callable[[str], str | None]:
    """From a path to the text of the value there; the payload is decoded once, when somebody first asks."""
    payload: list[Any] = []

    def value_at(path: str) -> str | None:
        if not payload:
            payload.append(msgspec.json.decode(data))
        found, value = lookup(payload[0], msgspec.json.decode(path))
        return equality_key(value) if found else None

    return value_at
