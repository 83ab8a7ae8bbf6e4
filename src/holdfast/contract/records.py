"""Records whose payloads people look at: as they come out of the engine, and as plain values."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Raw, structs

R = TypeVar("R")


def plain(record: R) -> R:
    """The record with every payload in it decoded. One that came as JSON is that already."""
    found: Any = _plain(record)
    return found  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    if isinstance(value, Raw):
        return msgspec.json.decode(value)
    if isinstance(value, tuple):
        return tuple(map(_plain, value)) if type(value) is tuple else value
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {name: new for name, old in fields.items() if (new := _plain(old)) is not old}
        return structs.replace(value, **changed) if changed else value
    return value
