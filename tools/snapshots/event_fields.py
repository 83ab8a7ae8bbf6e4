"""What a stored event looks like: for each type its version and the names and types of its JSON fields.

Histories are kept for ever and read by later versions, and by earlier ones while both run on one database.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.model.events import EVENT_TYPES, EventBody
from tools.snapshots.public_names import fields_of


def event_fields() -> dict[str, str]:
    lines = (line for name in sorted(EVENT_TYPES) for line in ("", *_event(name, EVENT_TYPES[name])))
    return {"events.txt": "\n".join(lines).lstrip() + "\n"}


def _event(name: str, cls: type[EventBody]) -> Iterator[str]:
    yield f"{name} version {cls.VERSION}{', ends the execution' if cls.TERMINAL else ''}"
    stored = dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
    for field in fields_of(cls):
        own, _, rest = field.partition(":")
        yield f"    {stored[own]}:{rest}"
