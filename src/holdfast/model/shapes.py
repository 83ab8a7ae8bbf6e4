"""What a value must look like, in a form that can be stored, and whether a value looks like that.

A shape is what is left of a type hint when its Python is taken away: enough to refuse, where a value comes in, what the
workflow could not read. It never refuses what the hint accepts; where that is not certain it says `any`.

Promises: whatever a shape says, checking a value raises nothing. A shape that can't be read, because something newer
has written it, accepts everything.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import namedtuple
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args

import msgspec
from msgspec import Meta, Raw

from holdfast.errors import InvalidRequest, PromiseValueInvalid
from holdfast.model.values import NULL

MAX_SHAPE_BYTES: Final = 4096

Kind = Literal[
    "any",
    "null",
    "bool",
    "int",
    "float",
    "str",
    "bytes",
    "datetime",
    "date",
    "time",
    "timedelta",
    "uuid",
    "decimal",
]
KINDS: Final[frozenset[str]] = frozenset(get_args(Kind))


class _Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="is", forbid_unknown_fields=True):
    """A shape that needs more than a word."""


class Bounded(_Part, frozen=True, kw_only=True, tag="bounded"):
    """A single value within bounds."""

    of: Kind
    gt: int | float | None = None
    ge: int | float | None = None
    lt: int | float | None = None
    le: int | float | None = None
    multiple_of: int | float | None = None
    min_length: int | None = None
    max_length: int | None = None
    tz: bool | None = None


class OneOf(_Part, frozen=True, kw_only=True, tag="one_of"):
    """One of these values."""

    of: tuple[int | str | None, ...]


class Either(_Part, frozen=True, kw_only=True, tag="either"):
    of: tuple[Shape, ...]


class Array(_Part, frozen=True, kw_only=True, tag="array"):
    of: Shape
    min_length: int | None = None
    max_length: int | None = None


class Tuple(_Part, frozen=True, kw_only=True, tag="tuple"):
    """An array with a shape for each place; the last `optional` ones may be missing."""

    of: tuple[Shape, ...]
    optional: int = 0


class Map(_Part, frozen=True, kw_only=True, tag="map"):
    """An object with any names; `key` is what they must look like."""

    key: Shape
    of: Shape
    min_length: int | None = None
    max_length: int | None = None


class Object(_Part, frozen=True, kw_only=True, tag="object"):
    """An object with these names. One that is `closed` has no others."""

    fields: dict[str, Shape]
    optional: dict[str, Shape] = {}
    closed: bool = False
    tag_field: str | None = None
    tag: int | str | None = None


Shape = Kind | Bounded | OneOf | Either | Array | Tuple | Map | Object


class Misfit(NamedTuple):
    """Where in the value, as `.orders[2].amount`, and what is wrong there."""

    path: str
    reason: str


def stored(shape: Shape) -> Raw:
    """The form it is kept in; `null` for one that accepts everything.

    Raises ValueError or TypeError if it is too large, or not one that values can be checked against.
    """
    if shape == "any":
        return NULL
    data = _ENCODE(shape)
    if len(data) > MAX_SHAPE_BYTES:
        raise ValueError(f"a shape of {len(data)} bytes, {MAX_SHAPE_BYTES} are allowed")
    _checker(data)
    return Raw(data)


def check_shape(shape: Raw, field: str) -> None:
    """Refuse a shape that values can't be checked against."""
    data = bytes(shape)
    if data == b"null":
        return
    if len(data) > MAX_SHAPE_BYTES:
        raise InvalidRequest(f"{field}: a shape of {len(data)} bytes, {MAX_SHAPE_BYTES} are allowed", field=field)
    try:
        _checker(data)
    except Exception as error:
        raise InvalidRequest(
            f"{field}: not a shape that values can be checked against: {error}", field=field
        ) from error


def misfit(shape: Raw, value: Raw) -> Misfit | None:
    """The first place where the value does not have the shape, if there is one."""
    data = bytes(shape)
    if data == b"null":
        return None
    try:
        checker = _checker(data)
    except Exception:  # noqa: BLE001 - a shape from the future
        return None
    try:
        checker.decode(value)
    except msgspec.ValidationError as error:
        reason, found, place = str(error).rpartition(" - at `$")
        return Misfit(place.rstrip("`"), reason) if found else Misfit("", str(error))
    except Exception:  # noqa: BLE001 - nested too deep to be looked at from here; who reads it may have more room
        return None
    return None


def check_value(promise_id: str, shape: Raw, value: Raw) -> None:
    """Refuse a value that the workflow which has made the promise could not read."""
    wrong = misfit(shape, value)
    if wrong is not None:
        field = f"value{wrong.path}"
        raise PromiseValueInvalid(
            f"promise {promise_id} is still pending: {field}: {wrong.reason}; settle it with a value of the type that "
            "its workflow asks for",
            field=field,
            reason=wrong.reason,
            promise_id=promise_id,
        )


# --- shapes as types ----------------------------------------------------------------------------------------------
# msgspec reads the value as a type that is made from the shape, with the very rules it reads users' types by.


@lru_cache(maxsize=256)
def _checker(shape: bytes) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_type_of(_DECODE(shape)))


_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder(Shape).decode

_TYPES: Final[dict[str, Any]] = {
    "any": Raw,  # passed over, not read: not even a number that is too large for Python is refused
    "null": None,
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "bytes": bytes,
    "datetime": dt.datetime,
    "date": dt.date,
    "time": dt.time,
    "timedelta": dt.timedelta,
    "uuid": uuid.UUID,
    "decimal": Decimal,
}


def _type_of(shape: Shape) -> Any:
    match shape:
        case str():
            return _TYPES[shape]
        case Bounded():
            return _within(_TYPES[shape.of], shape, "gt", "ge", "lt", "le", "multiple_of", *_LENGTHS, "tz")
        case OneOf():
            return Literal[shape.of]
        case Either():
            parts = tuple(_type_of(part) for part in shape.of)
            return Raw if Raw in parts else Union[parts]  # noqa: UP007 - the parts are not known here
        case Array():
            return _within(list[_type_of(shape.of)], shape, *_LENGTHS)  # type: ignore[misc]
        case Tuple():
            return _tuple_of(shape)
        case Map():
            key = str if shape.key == "any" else _type_of(shape.key)
            return _within(dict[key, _type_of(shape.of)], shape, *_LENGTHS)  # type: ignore[valid-type,misc]
        case Object():
            return _object_of(shape)


_LENGTHS: Final = ("min_length", "max_length")


def _within(kind: Any, shape: Bounded | Array | Map, *names: str) -> Any:
    bounds = {name: bound for name in names if (bound := getattr(shape, name)) is not None}
    return Annotated[kind, Meta(**bounds)] if bounds else kind


def _tuple_of(shape: Tuple) -> Any:
    items = [_type_of(item) for item in shape.of]
    if not shape.optional:
        return tuple[tuple(items)]  # type: ignore[misc]
    names = [f"item_{i}" for i in range(len(items))]
    made = namedtuple("made", names, defaults=(None,) * shape.optional)  # type: ignore[misc]  # noqa: PYI024
    made.__annotations__ = dict(zip(names, items, strict=True))
    return made


def _object_of(shape: Object) -> Any:
    """A struct. Its fields have names of their own, since not everything that JSON can name is a name in Python."""
    fields: list[Any] = []
    names: dict[str, str] = {}
    for name, part in shape.fields.items():
        names[f"field_{len(names)}"] = name
        fields.append((f"field_{len(fields)}", _type_of(part)))
    for name, part in shape.optional.items():
        names[f"field_{len(names)}"] = name
        fields.append((f"field_{len(fields)}", _type_of(part), None))
    return msgspec.defstruct(
        "Object",
        fields,
        rename=names,
        kw_only=True,
        tag_field=shape.tag_field,
        tag=shape.tag,
        forbid_unknown_fields=shape.closed,
    )
