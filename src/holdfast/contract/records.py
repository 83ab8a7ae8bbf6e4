"""Records as an application reads them: plain values where the engine has put raw JSON.

A payload that people look at is a field annotated `Any`. The engine puts `Raw` there, JSON decoding gives plain values,
and `plain` makes the two alike. A field annotated `Raw` stays as it is: its reader decodes it with a type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, get_args, get_origin

import msgspec
from msgspec import Raw, structs

from holdfast.model.payloads import decode

R = TypeVar("R", bound=msgspec.Struct)
_Reader = Callable[[Any, str], Any]

_ENCODE: Final = msgspec.json.Encoder().encode
_READERS: Final[dict[type[Any], tuple[tuple[str, _Reader], ...]]] = {}


def plain(record: R) -> R:
    """The record with its payloads decoded, also those in records, tuples and dicts inside it."""
    readers = _READERS.get(type(record))
    if readers is None:
        readers = _READERS[type(record)] = tuple(_readers_of(type(record)))
    read = {name: reader(getattr(record, name), name) for name, reader in readers}
    return structs.replace(record, **read) if read else record


def raw(value: Any) -> Raw:
    """A payload of a record as JSON, whether it came as such or was decoded."""
    return value if isinstance(value, Raw) else Raw(_ENCODE(value))


def _readers_of(kind: type[msgspec.Struct]) -> list[tuple[str, _Reader]]:
    found = [(field.name, _reader(field.type)) for field in structs.fields(kind)]
    return [(name, reader) for name, reader in found if reader is not None]


def _reader(annotation: Any) -> _Reader | None:
    """How to read a field of this type; None if there can't be a payload in it."""
    if annotation is Any:
        return _decoded
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return _nested
    inner = next(filter(None, map(_reader, get_args(annotation))), None)
    origin = get_origin(annotation)
    if inner is not None and origin is tuple:
        return lambda value, name: tuple(inner(item, name) for item in value) if isinstance(value, tuple) else value
    if inner is not None and origin is dict:
        return lambda value, name: {k: inner(v, name) for k, v in value.items()} if isinstance(value, dict) else value
    return inner


def _decoded(value: Any, name: str) -> Any:
    return decode(value, field=name) if isinstance(value, Raw) else value


def _nested(value: Any, _: str) -> Any:
    return plain(value) if isinstance(value, msgspec.Struct) else value
