"""The functions a filter may call, by name: what they take, what they give, how they are written.

A function is written `f(x)` or `x.f()`; FORMS says which. `matches`, `dyn` and `type` are the compiler's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.expressions.cel.budget import Frame, charge, charge_copy, charge_scan
from holdfast.expressions.cel.conversions import CONVERSIONS
from holdfast.expressions.cel.operators import Overload, Overloads
from holdfast.expressions.cel.times import duration_part, timestamp_part
from holdfast.expressions.cel.values import Duration, Timestamp

_UPPER = "".join(map(chr, range(ord("A"), ord("Z") + 1)))
_TO_LOWER = str.maketrans(_UPPER, _UPPER.lower())
_TO_UPPER = str.maketrans(_UPPER.lower(), _UPPER)
_BLANK = " \t\n\v\f\r\x85\xa0"


def _contains(frame: Frame, text: str, part: str) -> bool:
    # Python's search is quadratic while both are short, and linear beyond: both bounds were measured on bad cases.
    charge(frame, min(len(text) * len(part) >> 9, (len(text) >> 6) + 6000))
    return part in text


def _starts(frame: Frame, text: str, part: str) -> bool:
    charge_scan(frame, len(part))
    return text.startswith(part)


def _ends(frame: Frame, text: str, part: str) -> bool:
    charge_scan(frame, len(part))
    return text.endswith(part)


def _translate(table: dict[int, int]) -> Callable[[Frame, str], str]:
    def translated(frame: Frame, text: str) -> str:
        charge_copy(frame, len(text))
        return text.translate(table)

    return translated


def _trim(frame: Frame, text: str) -> str:
    charge_copy(frame, len(text))
    return text.strip(_BLANK)


def _size(_frame: Frame, value: Any) -> int:
    return len(value)


def _timestamp_part(name: str) -> Callable[..., int]:
    return lambda _frame, *args: timestamp_part(name, *args)


def _duration_part(name: str) -> Callable[..., int]:
    return lambda _frame, value: duration_part(name, value)


FUNCTIONS: dict[str, Overloads] = {
    **CONVERSIONS,
    "size": {(kind,): Overload(_size, int) for kind in (str, bytes, list, dict)},
    "contains": {(str, str): Overload(_contains, bool)},
    "startsWith": {(str, str): Overload(_starts, bool)},
    "endsWith": {(str, str): Overload(_ends, bool)},
    "lowerAscii": {(str,): Overload(_translate(_TO_LOWER), str)},
    "upperAscii": {(str,): Overload(_translate(_TO_UPPER), str)},
    "trim": {(str,): Overload(_trim, str)},
}
_OF_BOTH = ("getHours", "getMinutes", "getSeconds", "getMilliseconds")
for _part in ("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", *_OF_BOTH):
    FUNCTIONS[_part] = {
        (Timestamp,): Overload(_timestamp_part(_part), int),
        (Timestamp, str): Overload(_timestamp_part(_part), int),
    }
for _part in _OF_BOTH:
    FUNCTIONS[_part][(Duration,)] = Overload(_duration_part(_part), int)

GLOBAL = "f(x)"
MEMBER = "x.f()"
FORMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(FUNCTIONS, (MEMBER,)),
    **dict.fromkeys((*CONVERSIONS, "dyn", "type"), (GLOBAL,)),
    "size": (GLOBAL, MEMBER),
    "matches": (GLOBAL, MEMBER),
}
