"""From one type to another: `int()`, `uint()`, `double()`, `string()`, `bool()`, `bytes()`.

Text is read by our own patterns, not by Python's constructors, which also take `1_000` and digits of other scripts.
"""

from __future__ import annotations

import math
import re

from holdfast.errors import ExpressionFailed
from holdfast.expressions.cel.budget import Frame, charge_copy
from holdfast.expressions.cel.operators import Overload, Overloads, checked_int, checked_uint
from holdfast.expressions.cel.times import (
    duration_text,
    from_seconds,
    parse_duration,
    parse_timestamp,
    seconds_of,
    timestamp_text,
)
from holdfast.expressions.cel.values import Duration, Timestamp, UInt

_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|inf|infinity|nan)", re.IGNORECASE
)
_LONGEST = 400
_TRUE = frozenset({"true", "True", "TRUE", "t", "1"})
_FALSE = frozenset({"false", "False", "FALSE", "f", "0"})


def _not(text: str, what: str) -> ExpressionFailed:
    return ExpressionFailed(f"{text[:40]!r} is not {what}")


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise _not(text, "a whole number")
    return int(text)


def _double(text: str) -> float:
    if len(text) > _LONGEST or not _DOUBLE.fullmatch(text):
        raise _not(text, "a number")
    return float(text)


def _bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _not(text, "true or false")


def _truncated(value: float) -> int:
    # The double next to the limits would already be beyond them, so the bounds themselves are refused as well.
    if not -9.2233720368547758e18 < value < 1.8446744073709552e19:
        raise ExpressionFailed("a double does not fit into 64 bits")
    return math.trunc(value)


def _as_double(value: int) -> float:
    return float(checked_int(value))


def double_text(value: float) -> str:
    """As Go's shortest form has it: an exponent from a million on and below a ten-thousandth."""
    if not math.isfinite(value):
        return repr(value)
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if not digits:
        return f"{sign}0"
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """Digits with the decimal point after so many of them."""
    if not -4 < point <= max(6, 0):
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{digits[0]}{tail}e{'-' if point < 1 else '+'}{abs(point - 1):02}"
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return digits.ljust(point, "0")
    return f"{digits[:point]}.{digits[point:]}"


def _text_of_bytes(frame: Frame, value: bytes) -> str:
    charge_copy(frame, len(value))
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ExpressionFailed("these bytes are not UTF-8") from None


def _bytes_of_text(frame: Frame, value: str) -> bytes:
    charge_copy(frame, len(value) * 2)
    return value.encode("utf-8", "surrogatepass")


CONVERSIONS: dict[str, Overloads] = {
    "int": {
        (int,): Overload(lambda _, value: checked_int(value), int),
        (UInt,): Overload(lambda _, value: checked_int(int(value)), int),
        (float,): Overload(lambda _, value: checked_int(_truncated(value)), int),
        (str,): Overload(lambda _, value: checked_int(_whole(value)), int),
        (Timestamp,): Overload(lambda _, value: seconds_of(value), int),
    },
    "uint": {
        (int,): Overload(lambda _, value: checked_uint(value), UInt),
        (UInt,): Overload(lambda _, value: value, UInt),
        (float,): Overload(lambda _, value: checked_uint(_truncated(value) if value >= 0 else -1), UInt),
        (str,): Overload(lambda _, value: checked_uint(_whole(value)), UInt),
    },
    "double": {
        (int,): Overload(lambda _, value: _as_double(value), float),
        (UInt,): Overload(lambda _, value: float(value), float),
        (float,): Overload(lambda _, value: value, float),
        (str,): Overload(lambda _, value: _double(value), float),
    },
    "string": {
        (str,): Overload(lambda _, value: value, str),
        (bool,): Overload(lambda _, value: "true" if value else "false", str),
        (int,): Overload(lambda _, value: str(checked_int(value)), str),
        (UInt,): Overload(lambda _, value: str(int(value)), str),
        (float,): Overload(lambda _, value: double_text(value), str),
        (bytes,): Overload(_text_of_bytes, str),
        (Timestamp,): Overload(lambda _, value: timestamp_text(value), str),
        (Duration,): Overload(lambda _, value: duration_text(value), str),
    },
    "bool": {
        (bool,): Overload(lambda _, value: value, bool),
        (str,): Overload(lambda _, value: _bool(value), bool),
    },
    "bytes": {
        (bytes,): Overload(lambda _, value: value, bytes),
        (str,): Overload(_bytes_of_text, bytes),
    },
    "timestamp": {
        (Timestamp,): Overload(lambda _, value: value, Timestamp),
        (str,): Overload(lambda _, value: parse_timestamp(value), Timestamp),
        (int,): Overload(lambda _, value: from_seconds(checked_int(value)), Timestamp),
    },
    "duration": {
        (Duration,): Overload(lambda _, value: value, Duration),
        (str,): Overload(lambda _, value: parse_duration(value), Duration),
    },
}
