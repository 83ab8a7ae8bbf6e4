"""What can be said about a filter without a payload: the equalities that every match must satisfy.

`input.order == "o-1" && input.total > 5` can only be true where `order` is "o-1". Whoever keeps many filters finds the
few that may match by that value, instead of trying all. The analysis is sound and not complete: what it reports must
hold, and there may be more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from holdfast.expressions.cel.values import UInt
from holdfast.expressions.syntax import Binary, Chain, Index, Literal, Member, Name, Node, Unary

_LONG = 100
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class Equality(NamedTuple):
    """The payload must have this value at this path, or the filter does not match."""

    path: tuple[str, ...]
    value: str | int | float | bool | None


class Demand(NamedTuple):
    """An equality as it was written; without a literal when only `x` or `!x` says it."""

    equality: Equality
    literal: Literal | None


def required_equalities(tree: Node) -> tuple[Equality, ...]:
    """All equalities among the conjuncts, in the order of the text, each once."""
    return each_once(demand.equality for demand in demands(tree))


def each_once(equalities: Iterable[Equality]) -> tuple[Equality, ...]:
    unique = {(one.path, equality_key(one.value)): one for one in equalities}
    return tuple(unique.values())


def demands(tree: Node) -> Iterator[Demand]:
    """The equalities among the conjuncts, in the order of the text."""
    for part in conjuncts(tree):
        found = _demand(part)
        if found is not None:
            yield found


def conjuncts(tree: Node) -> Iterator[Node]:
    """The parts that all have to be true for the whole to be true."""
    if isinstance(tree, Chain) and tree.op == "&&":
        for part in tree.parts:
            yield from conjuncts(part)
    else:
        yield tree


def _demand(node: Node) -> Demand | None:
    literal: Literal | None = None
    value: Any
    match node:
        case Binary(op="==", left=left, right=Literal(value=value) as literal) if _indexable(value):
            path = input_path(left)
        case Binary(op="==", left=Literal(value=value) as literal, right=right) if _indexable(value):
            path = input_path(right)
        case Unary(op="!", operand=operand):
            path, value = input_path(operand), False  # anything but true and false is an error there
        case _:
            path, value = input_path(node), True
    return Demand(Equality(path, value), literal) if path else None


def _indexable(value: Any) -> bool:
    return not isinstance(value, bytes)


def input_path(node: Node) -> tuple[str, ...] | None:
    """`input.a["b"].c` as ("a", "b", "c"); None for anything else."""
    match node:
        case Name(name="input"):
            return ()
        case Member(target=target, name=name):
            above = input_path(target)
            return None if above is None else (*above, name)
        case Index(target=target, key=Literal(value=str(name))):
            above = input_path(target)
            return None if above is None else (*above, name)
    return None


def lookup(payload: Any, path: Sequence[str]) -> tuple[bool, Any]:
    """The value at a path, as a filter would find it: (True, value), or (False, None) when there is none."""
    value = payload
    for name in path:
        if type(value) is not dict or name not in value:
            return False, None
        value = value[name]
    return True, value


def equality_key(value: Any) -> str | None:
    """A short text that equal values share: 1 and 1.0 have the same, 1 and "1" and true have not.

    None for lists and maps, which no literal is equal to. Long texts are hashed, so that a key fits into an index; as
    different values may then, in theory, share one, a filter found by key still has to be evaluated.
    """
    if value is None:
        return "null"
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is str:
        return f"s:{value}" if len(value) <= _LONG and _storable(value) else _hashed("h:", value)
    if kind is int or kind is UInt:
        return _number_key(int(value))
    return _double_key(value) if kind is float else None


def _double_key(value: float) -> str:
    if not math.isfinite(value):
        return f"n:{value!r}"
    return _number_key(int(value)) if value.is_integer() else f"n:{value!r}"


def _number_key(value: int) -> str:
    """Large numbers in hexadecimal: Python refuses to write thousands of decimal digits."""
    return f"n:{value}" if -(1 << 64) < value < 1 << 64 else _hashed("n:h", hex(value))


def _hashed(prefix: str, text: str) -> str:
    return prefix + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _storable(text: str) -> bool:
    """Whether every database takes the text as it is."""
    return _UNSTORABLE.search(text) is None
