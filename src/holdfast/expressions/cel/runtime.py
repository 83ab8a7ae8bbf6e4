"""The closures a compiled filter is made of. Each takes a frame and gives a value or raises `ExpressionFailed`.

An error in one side of `&&` or `||` does not count when the other side decides alone: that is CEL's rule, and it makes
the order of the sides meaningless. A spent budget is no such error and always ends the evaluation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.errors import ExpressionFailed
from holdfast.expressions.cel.budget import Frame, charge
from holdfast.expressions.cel.logic import decided
from holdfast.expressions.cel.patterns import Pattern
from holdfast.expressions.cel.values import (
    NUMBERS,
    CelType,
    UInt,
    check_ordered,
    equal,
    map_key,
    no_overload,
    not_bool,
    type_name,
)

Run = Callable[[Frame], Any]
Text = Callable[[], str]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


# --- reaching into values -----------------------------------------------------------------------------------------


def member(target: Run, name: str, text: Text) -> Run:
    """`target.name`"""

    def run(frame: Frame) -> Any:
        value = target(frame)
        if type(value) is not dict:
            raise ExpressionFailed(f"`{text()}` has no fields: it is a value of type {type_name(value)}")
        try:
            return value[name]
        except KeyError:
            raise ExpressionFailed(f"`{text()}` has no field `{name}`") from None

    return run


def named(target: Run, name: str, text: Text) -> Run:
    """`target["name"]`"""

    def run(frame: Frame) -> Any:
        value = target(frame)
        if type(value) is dict and name in value:
            return value[name]
        return _indexed(value, name, text)

    return run


def index(target: Run, key: Run, text: Text) -> Run:
    """`target[key]`"""
    return lambda frame: _indexed(target(frame), key(frame), text)


def _indexed(value: Any, key: Any, text: Text) -> Any:
    if type(value) is dict:
        found = value.get(_key(key, "[]", value), _MISSING)
        if found is _MISSING:
            raise ExpressionFailed(f"`{text()}` has no key {_shown(key)}")
        return found
    if type(value) is not list:
        raise ExpressionFailed(f"`{text()}` has no index: it is a value of type {type_name(value)}")
    place = map_key(key) if type(key) in NUMBERS else None
    if place is None:
        raise ExpressionFailed(f"a list is reached by a whole number, not by {_shown(key)}")
    if not 0 <= place < len(value):
        raise ExpressionFailed(f"`{text()}` has no item {_shown(place)}: it has {len(value)}")
    return value[place]


_MISSING = object()


def _key(key: Any, name: str, container: Any) -> Any:
    found = map_key(key)
    if found is None and type(key) is not float:
        raise no_overload(name, container, key)
    return found


def _shown(key: Any) -> str:
    """A key for a message; a payload's may be very long."""
    if type(key) is str:
        return f'"{key[:40]}"'
    return str(key) if type(key) in {int, UInt} and abs(key) < 1 << 64 else type_name(key)


def has(target: Run, name: str, text: Text) -> Run:
    """`has(target.name)`"""

    def run(frame: Frame) -> bool:
        value = target(frame)
        if type(value) is not dict:
            raise ExpressionFailed(f"`{text()}` has no fields: it is a value of type {type_name(value)}")
        return name in value

    return run


def map_of(entries: Sequence[tuple[Run, Run]]) -> Run:
    """`{key: value, …}`"""

    def run(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_run, value_run in entries:
            given = key_run(frame)
            key = None if type(given) is float else map_key(given)
            if key is None:
                raise ExpressionFailed(f"a value of type {type_name(given)} can't be a key")
            if key in found:
                raise ExpressionFailed(f"a map has the key {_shown(given)} twice")
            found[key] = value_run(frame)
        return found

    return run


def contained(needle: Run, container: Run) -> Run:
    """`needle in container`"""

    def run(frame: Frame) -> bool:
        value, within = needle(frame), container(frame)
        if type(within) is dict:
            return _key(value, "in", within) in within
        if type(within) is not list:
            raise no_overload("in", value, within)
        if type(value) is str:
            charge(frame, (len(within) >> 3) * (1 + (len(value) >> 8)))
            return value in within  # text equals nothing but text, so Python's own search is right, and fast
        charge(frame, len(within))
        return any(equal(value, item, frame) for item in within)

    return run


def type_of(operand: Run) -> Run:
    """`type(operand)`"""
    return lambda frame: CelType(type_name(operand(frame)))


# --- comparing ----------------------------------------------------------------------------------------------------


def equals(left: Run, right: Run, *, same: bool) -> Run:
    """`left == right`, or `!=`"""
    return lambda frame: equal(left(frame), right(frame), frame) is same


def equals_constant(operand: Run, value: Any, *, same: bool) -> Run | None:
    """The same with a plain constant on one side, where Python's own comparison gives CEL's answer."""
    kind = type(value)
    if kind is str:
        return (lambda frame: operand(frame) == value) if same else (lambda frame: operand(frame) != value)
    if value is None or kind is bool:
        return (lambda frame: operand(frame) is value) if same else (lambda frame: operand(frame) is not value)
    if kind not in NUMBERS:
        return None

    def run(frame: Frame) -> bool:
        found = operand(frame)
        return (type(found) in NUMBERS and found == value) is same

    return run


def equals_text(operand: Run, slot: int, *, same: bool) -> Run:
    """The same with a text of the frame on one side."""
    if same:
        return lambda frame: operand(frame) == frame[slot]
    return lambda frame: operand(frame) != frame[slot]


def compared(op: str, left: Run, right: Run) -> Run:
    """`left < right` and its kin"""
    compare = _COMPARE[op]

    def run(frame: Frame) -> bool:
        one, two = left(frame), right(frame)
        check_ordered(one, two, frame, op)
        return compare(one, two)

    return run


def compared_with_number(op: str, operand: Run, value: float) -> Run:
    """The same with a number on the right."""
    compare = _COMPARE[op]

    def run(frame: Frame) -> bool:
        found = operand(frame)
        if type(found) not in NUMBERS:
            raise no_overload(op, found, value)
        return compare(found, value)

    return run


# --- logic --------------------------------------------------------------------------------------------------------


def negated(operand: Run) -> Run:
    """`!operand`"""

    def run(frame: Frame) -> bool:
        value = operand(frame)
        if value is True:
            return False
        if value is False:
            return True
        raise not_bool(value)

    return run


def both(parts: Sequence[Run]) -> Run:
    """`a && b && …`: false if any is, whatever the others say"""
    return _decided(parts, decider=False)


def either(parts: Sequence[Run]) -> Run:
    """`a || b || …`: true if any is"""
    return _decided(parts, decider=True)


def _decided(parts: Sequence[Run], *, decider: bool) -> Run:
    runs = tuple(parts)

    def run(frame: Frame) -> bool:
        return decided(runs, frame, decider)

    return run


def conditional(test: Run, then: Run, otherwise: Run) -> Run:
    """`test ? then : otherwise`"""

    def run(frame: Frame) -> Any:
        value = test(frame)
        if value is True:
            return then(frame)
        if value is False:
            return otherwise(frame)
        raise not_bool(value)

    return run


# --- calls --------------------------------------------------------------------------------------------------------


def dispatched(name: str, table: dict[tuple[type, ...], Callable[..., Any]], args: Sequence[Run]) -> Run:
    """A function or operator whose meaning depends on the types it meets."""
    if len(args) == 2:
        return _dispatched_on_two(name, table, *args)
    runs = tuple(args)

    def run(frame: Frame) -> Any:
        values = [arg(frame) for arg in runs]
        do = table.get(tuple(map(type, values)))
        if do is None:
            raise no_overload(name, *values)
        return do(frame, *values)

    return run


def _dispatched_on_two(name: str, table: dict[tuple[type, ...], Callable[..., Any]], left: Run, right: Run) -> Run:
    def run(frame: Frame) -> Any:
        one, two = left(frame), right(frame)
        do = table.get((type(one), type(two)))
        if do is None:
            raise no_overload(name, one, two)
        return do(frame, one, two)

    return run


def matching(text: Run, pattern: Pattern) -> Run:
    """`text.matches(pattern)`"""

    def run(frame: Frame) -> bool:
        value = text(frame)
        if type(value) is not str:
            raise no_overload("matches", value)
        charge(frame, (len(value) + 1) * pattern.cost)
        return pattern.found_in(value)

    return run
