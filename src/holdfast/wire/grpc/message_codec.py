"""Between structs of the contract and protobuf messages, by their field lists: nothing here knows an operation.

A field is found by its public name (`contract.operation.public_name`, or what a struct's `rename` says). What a message
does not carry gets the struct's default: a field with presence that is not set, or an empty one without presence.

| in the struct | in the message |
| --- | --- |
| text, enum | string |
| number, truth value | int64, double, bool |
| datetime | int64: microseconds since 1970 |
| payload (`Raw`, `Any`), anything else | bytes: JSON |
| struct | message |
| tuple | repeated |
| dict with text keys | map |
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache, reduce
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import Raw, structs

from holdfast.contract.instants import instant, micros
from holdfast.errors import InvalidRequest
from holdfast.wire.grpc.names import ATTRIBUTES
from holdfast.wire.grpc.payloads import payload

Convert = Callable[[Any, str], Any]
_ENCODE: Final = msgspec.json.Encoder().encode
_LATEST: Final = 2**62


class Kind(NamedTuple):
    """What a field is, apart from being optional. `of` is the struct, enum, item or value type."""

    name: str
    of: Any = None
    optional: bool = False


def kind_of(annotation: Any) -> Kind:
    """Read an annotation of a struct's field."""
    optional = False
    if get_origin(annotation) in {Union, types.UnionType}:
        parts = [part for part in get_args(annotation) if part not in {type(None), msgspec.UnsetType}]
        optional = len(parts) < len(get_args(annotation))
        if len(parts) > 1:
            return Kind("json", reduce(operator.or_, parts), optional)
        annotation = parts[0]
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    name, of = _plain_kind(annotation)
    return Kind(name, of, optional)


def _plain_kind(kind: Any) -> tuple[str, Any]:
    origin = get_origin(kind)
    if origin is tuple:
        return "tuple", get_args(kind)[0]
    if origin is dict:
        return "dict", get_args(kind)[1]
    if kind in {bool, int, float, str, datetime}:
        return kind.__name__, kind
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "enum", kind
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return "struct", kind
    if kind in {Raw, Any}:
        return "payload", kind
    return "json", kind


class _Field(NamedTuple):
    attribute: str
    public: str
    has_presence: bool
    default: Any
    read: Convert
    write: Convert
    repeated: bool
    is_map: bool


class MessageCodec:
    """`attributes` are fields of the message that have another name than the struct's: message field to attribute."""

    def __init__(self, struct: type[msgspec.Struct], message: Any, attributes: Mapping[str, str] = {}) -> None:
        self._struct = struct
        self._message = message
        by_attribute = {attribute: name for name, attribute in attributes.items()}
        in_message = message.DESCRIPTOR.fields_by_name
        self._fields = [
            _compiled(field, in_message[name])
            for field in structs.fields(struct)
            if (name := by_attribute.get(field.name, field.encode_name)) in in_message
        ]

    def read(self, message: Any, **others: Any) -> Any:
        """The struct that a message stands for. Raises InvalidRequest, naming the message's field."""
        values = dict(others)
        for field in self._fields:
            if field.attribute not in values:
                value = _read(field, message)
                if value is not msgspec.NODEFAULT:
                    values[field.attribute] = value
        return self._struct(**values)

    def write(self, record: Any) -> Any:
        message = self._message()
        for field in self._fields:
            value = getattr(record, field.attribute)
            if value is not None and value is not msgspec.UNSET:
                _write(field, message, value)
        return message


def _compiled(field: structs.FieldInfo, found: Any) -> _Field:
    kind = kind_of(field.type)
    default: Any = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    read, write = _conversions(kind, found)
    is_map = found.message_type is not None and found.message_type.GetOptions().map_entry
    if default is msgspec.NODEFAULT and kind.optional:
        default = None
    return _Field(field.name, found.name, found.has_presence, default, read, write, kind.name == "tuple", is_map)


def _read(field: _Field, message: Any) -> Any:
    """NODEFAULT if the struct's own default is meant."""
    if field.has_presence and not message.HasField(field.public):
        return msgspec.NODEFAULT if field.default is not msgspec.NODEFAULT else None
    value = getattr(message, field.public)
    if not field.has_presence and not value and field.default is not msgspec.NODEFAULT:
        return msgspec.NODEFAULT
    return field.read(value, field.public)


def _write(field: _Field, message: Any, value: Any) -> None:
    try:
        _put(field, message, field.write(value, field.public))
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        raise InvalidRequest(f"{field.public} can't be sent: {error}"[:500], field=field.public) from error


def _put(field: _Field, message: Any, made: Any) -> None:
    if field.is_map:
        getattr(message, field.public).update(made)
    elif field.repeated:
        getattr(message, field.public).extend(made)
    elif hasattr(made, "DESCRIPTOR"):
        getattr(message, field.public).CopyFrom(made)
    else:
        setattr(message, field.public, made)


def _conversions(kind: Kind, found: Any) -> tuple[Convert, Convert]:
    if kind.name == "tuple":
        read, write = _conversions(kind_of(kind.of), found)
        return (
            lambda values, name: tuple([read(value, name) for value in values]),
            lambda values, name: [write(value, name) for value in values],
        )
    if kind.name == "dict":
        read, write = _conversions(kind_of(kind.of), found.message_type.fields_by_name["value"])
        return (
            lambda values, name: {key: read(value, name) for key, value in values.items()},
            lambda values, name: {str(key): write(value, name) for key, value in values.items()},
        )
    if kind.name == "struct":
        struct, message = kind.of, found.message_type._concrete_class  # noqa: SLF001 - protobuf has no other name for it
        # Found when it is needed: a message may contain itself.
        return lambda value, _: codec_of(struct, message).read(value), lambda value, _: codec_of(struct, message).write(
            value
        )
    if kind.name == "float" and found.cpp_type in {found.CPPTYPE_INT64, found.CPPTYPE_INT32}:
        return _same, lambda value, _: math.ceil(value)
    return _SCALARS[kind.name](kind.of)


@cache
def codec_of(struct: type[msgspec.Struct], message: Any) -> MessageCodec:
    return MessageCodec(struct, message, ATTRIBUTES.get(message.DESCRIPTOR.name, {}))


def _same(value: Any, _: str) -> Any:
    return value


def _text(_: Any) -> tuple[Convert, Convert]:
    return _same, _same


def _instants(_: Any) -> tuple[Convert, Convert]:
    def read(value: int, name: str) -> datetime:
        if not 0 <= value < _LATEST:
            raise InvalidRequest(f"{name} must be microseconds since 1970, not {value}", field=name)
        return instant(value)

    return read, lambda value, _: micros(value)


def _choices(enum: Any) -> tuple[Convert, Convert]:
    def read(value: str, name: str) -> Any:
        try:
            return enum(value)
        except ValueError as error:
            known = ", ".join(enum)
            raise InvalidRequest(f"{name} must be one of {known}, not {value!r:.50}", field=name) from error

    return read, lambda value, _: str(value)


def _payloads(kind: Any) -> tuple[Convert, Convert]:
    def plain(value: bytes, name: str) -> Any:
        return msgspec.json.decode(payload(value, name))

    return payload if kind is Raw else plain, _json_bytes


def _json(kind: Any) -> tuple[Convert, Convert]:
    decode = msgspec.json.Decoder(kind).decode

    def read(value: bytes, name: str) -> Any:
        try:
            return decode(value)
        except (ValueError, RecursionError) as error:
            raise InvalidRequest(f"{name} can't be read: {error}"[:500], field=name) from error

    return read, _json_bytes


def _json_bytes(value: Any, _: str) -> bytes:
    return bytes(value) if isinstance(value, Raw) else _ENCODE(value)


_SCALARS: Final[dict[str, Callable[[Any], tuple[Convert, Convert]]]] = {
    "str": _text,
    "int": _text,
    "float": _text,
    "bool": _text,
    "datetime": _instants,
    "enum": _choices,
    "payload": _payloads,
    "json": _json,
}
