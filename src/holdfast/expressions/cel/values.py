"""The values of CEL: which Python type stands for which, when two are equal, which comes first.

JSON values are themselves: None, bool, int, float, str, list, dict. The rest has a type here. `bool` is never a number,
whatever Python thinks, and so types are compared with `is`. Keys of a map that are true or false are wrapped for the
same reason; they come from map literals alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from holdfast.errors import ExpressionFailed
from holdfast.expressions.cel.budget import LEFT, MAX_DEPTH, Frame, charge_scan, spent

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
UINT_MAX = (1 << 64) - 1


class UInt(int):
    """An unsigned number of 64 bits."""

    __slots__ = ()


class Timestamp(NamedTuple):
    """An instant: nanoseconds since 1970, UTC."""

    nanos: int


class Duration(NamedTuple):
    """A span of time in nanoseconds; may be negative."""

    nanos: int


class CelType(NamedTuple):
    """A type as a value: what `type(x)` gives."""

    name: str


class BoolKey(NamedTuple):
    """True or false as the key of a map."""

    value: bool


NULL = type(None)
TYPE_NAMES: dict[type, str] = {
    NULL: "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    CelType: "type",
}
NUMBERS = frozenset({int, float, UInt})
_ORDERED = frozenset({bool, str, bytes, Timestamp, Duration})
_PLAIN = frozenset({NULL, bool, Timestamp, Duration, CelType})
_SEQUENCES = frozenset({str, bytes})


def type_name(value: Any) -> str:
    """The CEL name of a value's type."""
    return kind_name(type(value))


def kind_name(kind: type | None) -> str:
    """The CEL name of a type; `dyn` when it is not known before the payload is."""
    if kind is None:
        return "dyn"
    return TYPE_NAMES.get(kind, f"python {kind.__name__}")


def equal(left: Any, right: Any, frame: Frame, depth: int = 0) -> bool:
    """Deep equality. Numbers of any type compare by value; other values of different types are unequal."""
    kind, other = type(left), type(right)
    if kind in NUMBERS:
        return other in NUMBERS and bool(left == right)
    if kind is not other:
        return False
    if kind in _SEQUENCES:
        if len(left) != len(right):
            return False
        charge_scan(frame, len(left))
        return bool(left == right)
    if kind in _PLAIN:
        return bool(left == right)
    if kind is not list and kind is not dict:
        raise ExpressionFailed(f"a value of type {type_name(left)} is not JSON")
    if depth >= MAX_DEPTH:
        raise ExpressionFailed(f"values nested deeper than {MAX_DEPTH} levels can't be compared")
    if len(left) != len(right):
        return False
    return _equal_lists(left, right, frame, depth) if kind is list else _equal_maps(left, right, frame, depth)


def _equal_lists(left: list[Any], right: list[Any], frame: Frame, depth: int) -> bool:
    for one, two in zip(left, right, strict=True):
        frame[LEFT] -= 4
        if frame[LEFT] < 0:
            raise spent()
        if not equal(one, two, frame, depth + 1):
            return False
    return True


def _equal_maps(left: dict[Any, Any], right: dict[Any, Any], frame: Frame, depth: int) -> bool:
    for key, value in left.items():
        frame[LEFT] -= 4
        if frame[LEFT] < 0:
            raise spent()
        if key not in right or not equal(value, right[key], frame, depth + 1):
            return False
    return True


def check_ordered(left: Any, right: Any, frame: Frame, op: str) -> None:
    """Whether one of the two can come before the other at all; else an error."""
    kind, other = type(left), type(right)
    if kind in NUMBERS and other in NUMBERS:
        return
    if kind is not other or kind not in _ORDERED:
        raise no_overload(op, left, right)
    if kind in _SEQUENCES:
        charge_scan(frame, min(len(left), len(right)))


def ordered(kind: type | None, other: type | None) -> bool:
    """Whether values of these types, as far as known, may be compared with `<`."""
    if kind is None or other is None:
        known = kind or other
        return known is None or known in NUMBERS or known in _ORDERED
    return (kind in NUMBERS and other in NUMBERS) or (kind is other and kind in _ORDERED)


def map_key(value: Any) -> Any:
    """A value as the key under which a map would have it. A double finds the whole number it is equal to."""
    kind = type(value)
    if kind is bool:
        return BoolKey(value)
    if kind is float:
        return int(value) if math.isfinite(value) and value.is_integer() else None
    return value if kind in {str, int, UInt} else None


def no_overload(name: str, *args: Any) -> ExpressionFailed:
    """What is said when an operator or function has no meaning for the types it got."""
    return ExpressionFailed(f"`{name}` is not defined for {', '.join(map(type_name, args)) or 'nothing'}")


def not_bool(value: Any) -> ExpressionFailed:
    return ExpressionFailed(f"true or false was expected here, not a value of type {type_name(value)}")
