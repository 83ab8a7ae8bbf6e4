"""Arithmetic: which types each operator takes and what it does with them.

As CEL has it, there is no mixing: a whole number and a double are compared with each other, but not added. Whole
numbers have 64 bits, and what does not fit is an error, never another number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.errors import ExpressionFailed
from holdfast.expressions.cel.budget import Frame, charge, charge_copy
from holdfast.expressions.cel.times import between, instant, span
from holdfast.expressions.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, UInt


class Overload(NamedTuple):
    """What is done for certain types of arguments, and the type of the result; None when that depends."""

    run: Callable[..., Any]
    result: type | None


Overloads = dict[tuple[type, ...], Overload]


def checked_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise ExpressionFailed("a whole number does not fit into 64 bits")


def checked_uint(value: int) -> UInt:
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise ExpressionFailed("an unsigned number does not fit into 64 bits")


def _divide(left: int, right: int) -> int:
    """Towards zero, as CEL and C have it; Python's own goes down."""
    if right == 0:
        raise ExpressionFailed("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    """With the sign of the left side."""
    if right == 0:
        raise ExpressionFailed("remainder of a division by zero")
    if left == INT_MIN and right == -1:
        raise ExpressionFailed("a whole number does not fit into 64 bits")  # the quotient does not, and so CEL says
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


_WHOLE: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "%": _remainder,
}
_DOUBLE: dict[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide_doubles,
}


def _on_ints(do: Callable[[int, int], int]) -> Callable[[Frame, int, int], int]:
    def run(_frame: Frame, left: int, right: int) -> int:
        # A payload may bring larger numbers than 64 bits; they compare, but nothing is computed with them.
        if INT_MIN <= left <= INT_MAX and INT_MIN <= right <= INT_MAX:
            result = do(left, right)
            if INT_MIN <= result <= INT_MAX:
                return result
        raise ExpressionFailed("a whole number does not fit into 64 bits")

    return run


def _on_uints(do: Callable[[int, int], int]) -> Callable[[Frame, UInt, UInt], UInt]:
    return lambda _frame, left, right: checked_uint(do(int(left), int(right)))


def _on_doubles(do: Callable[[float, float], float]) -> Callable[[Frame, float, float], float]:
    return lambda _frame, left, right: do(left, right)


def _join_texts(frame: Frame, left: Any, right: Any) -> Any:
    charge_copy(frame, len(left) + len(right))
    return left + right


def _join_lists(frame: Frame, left: list[Any], right: list[Any]) -> list[Any]:
    charge(frame, len(left) + len(right))
    return left + right


ARITHMETIC: dict[str, Overloads] = {
    op: {
        (int, int): Overload(_on_ints(do), int),
        (UInt, UInt): Overload(_on_uints(do), UInt),
    }
    for op, do in _WHOLE.items()
}
for _op, _do in _DOUBLE.items():
    ARITHMETIC[_op][float, float] = Overload(_on_doubles(_do), float)
ARITHMETIC["+"] |= {
    (str, str): Overload(_join_texts, str),
    (bytes, bytes): Overload(_join_texts, bytes),
    (list, list): Overload(_join_lists, list),
    (Timestamp, Duration): Overload(lambda _, at, by: instant(at.nanos + by.nanos), Timestamp),
    (Duration, Timestamp): Overload(lambda _, by, at: instant(at.nanos + by.nanos), Timestamp),
    (Duration, Duration): Overload(lambda _, one, two: span(one.nanos + two.nanos), Duration),
}
ARITHMETIC["-"] |= {
    (Timestamp, Timestamp): Overload(lambda _, to, since: between(to, since), Duration),
    (Timestamp, Duration): Overload(lambda _, at, by: instant(at.nanos - by.nanos), Timestamp),
    (Duration, Duration): Overload(lambda _, one, two: span(one.nanos - two.nanos), Duration),
}

NEGATION: Overloads = {
    (int,): Overload(lambda _, value: checked_int(-value), int),
    (float,): Overload(lambda _, value: -value, float),
}
