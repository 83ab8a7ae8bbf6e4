"""`all`, `exists`, `exists_one`, `map`, `filter`: what is done with each element of a list, or each key of a map.

A round costs what its body costs, paid before it runs: this is the only place where anything runs more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from holdfast.expressions.cel.budget import LEFT, Frame, spent
from holdfast.expressions.cel.logic import decided
from holdfast.expressions.cel.values import BoolKey, no_overload, not_bool

Run = Callable[[Frame], Any]


class Macro(NamedTuple):
    """How a macro is written and what makes its closure: from the range, the element's slot, the bodies, their cost."""

    usage: str
    args: tuple[int, ...]
    result: type
    make: Callable[[Run, int, Sequence[Run], int], Run]


def _rounds(name: str, items: Run, slot: int, cost: int, frame: Frame) -> Iterator[Any]:
    """Puts one element after another into its slot, and pays for what will be done with it."""
    found = items(frame)
    if type(found) is not list and type(found) is not dict:
        raise no_overload(name, found)
    for item in found:
        frame[LEFT] -= cost
        if frame[LEFT] < 0:
            raise spent()
        value = item.value if type(item) is BoolKey else item
        frame[slot] = value
        yield value


def _quantified(name: str, decider: bool) -> Callable[[Run, int, Sequence[Run], int], Run]:
    """`all` is a long `&&`, `exists` a long `||`."""

    def make(items: Run, slot: int, bodies: Sequence[Run], cost: int) -> Run:
        (body,) = bodies

        def run(frame: Frame) -> bool:
            return decided((body for _ in _rounds(name, items, slot, cost, frame)), frame, decider)

        return run

    return make


def _exists_one(items: Run, slot: int, bodies: Sequence[Run], cost: int) -> Run:
    (body,) = bodies

    def run(frame: Frame) -> bool:
        return sum(_true(body(frame)) for _ in _rounds("exists_one", items, slot, cost, frame)) == 1

    return run


def _map(items: Run, slot: int, bodies: Sequence[Run], cost: int) -> Run:
    *tests, body = bodies

    def run(frame: Frame) -> list[Any]:
        rounds = _rounds("map", items, slot, cost, frame)
        return [body(frame) for _ in rounds if all(_true(test(frame)) for test in tests)]

    return run


def _filter(items: Run, slot: int, bodies: Sequence[Run], cost: int) -> Run:
    (body,) = bodies

    def run(frame: Frame) -> list[Any]:
        return [value for value in _rounds("filter", items, slot, cost, frame) if _true(body(frame))]

    return run


def _true(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise not_bool(value)


_EXISTS_ONE = Macro("list.exists_one(x, condition)", (2,), bool, _exists_one)

MACROS: dict[str, Macro] = {
    "all": Macro("list.all(x, condition)", (2,), bool, _quantified("all", decider=False)),
    "exists": Macro("list.exists(x, condition)", (2,), bool, _quantified("exists", decider=True)),
    "exists_one": _EXISTS_ONE,
    "existsOne": _EXISTS_ONE,
    "map": Macro("list.map(x, value) or list.map(x, condition, value)", (2, 3), list, _map),
    "filter": Macro("list.filter(x, condition)", (2,), list, _filter),
}
