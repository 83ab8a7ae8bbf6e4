"""Whether a query has only looked: a picture of the data it could reach, before and after.

Owns the walk over containers, dataclasses, structs and objects with attributes. It is bounded: what lies beyond so many
parts is not compared. Nothing is copied but small values, and no code of the user's is called.
"""

from __future__ import annotations

import asyncio
import logging
import random
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final

import msgspec

from holdfast.replay.machine import Machine

MAX_PARTS: Final = 100_000

_VALUES: Final = frozenset({str, int, float, bytes, bool, complex, type(None)})
# Code, and things that change by being looked at.
_OPAQUE: Final = (
    type,
    FunctionType,
    MethodType,
    BuiltinFunctionType,
    ModuleType,
    asyncio.AbstractEventLoop,
    logging.Logger,
    logging.LoggerAdapter,
    Machine,
)


def snapshot_of(*roots: Any) -> list[Any]:
    """What these objects consist of, in one list: two pictures are equal if nothing was changed in between.

    A picture keeps what it shows alive, so that no new object can be taken for an old one.
    """
    shown: list[Any] = []
    seen: set[int] = set()
    stack: list[Any] = list(reversed(roots))
    while stack and len(shown) < MAX_PARTS:
        part = stack.pop()
        kind: Any = type(part)
        if kind in _VALUES:
            shown.append(kind)
            shown.append(part)
            continue
        shown.append(Same(part))
        readers = _readers(kind)
        if not readers or id(part) in seen:
            continue
        seen.add(id(part))
        children = [child for read in readers for child in read(part)]
        shown.append(len(children))
        children.reverse()
        stack += children
    return shown


class Same:
    """Equal only to the same object, whatever its own idea of equality."""

    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        self._of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._of is other._of

    def __hash__(self) -> int:
        return id(self._of)


@lru_cache(maxsize=4096)
def _readers(kind: type[Any]) -> tuple[Callable[[Any], Iterable[Any]], ...]:
    """What finds the parts of such objects; nothing for those that have none, or are not looked into."""
    if issubclass(kind, _OPAQUE) or hasattr(kind, "__holdfast_workflow_context__"):
        return ()
    found = [read for known, read in _KNOWN if issubclass(kind, known)]
    if kind.__dictoffset__:
        found.append(_attributes)
    for cls in kind.__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = vars(cls).get(_mangled(cls, name))
            if isinstance(member, MemberDescriptorType):
                found.append(partial(_slot, member))
    return tuple(found)


def _attributes(part: Any) -> Iterator[Any]:
    with suppress(AttributeError):  # asyncio's futures have room for some, but none to show
        yield from _items(object.__getattribute__(part, "__dict__"))


def _slot(member: MemberDescriptorType, part: Any) -> Iterator[Any]:
    with suppress(AttributeError):  # not set
        yield member.__get__(part)


def _items(part: dict[Any, Any]) -> Iterator[Any]:
    for key, value in dict.items(part):
        yield key
        yield value


def _mangled(cls: type[Any], name: str) -> str:
    return f"_{cls.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name


_KNOWN: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (dict, _items),
    (OrderedDict, OrderedDict.__iter__),  # keeps its order apart from the dict's
    (list, list.__iter__),
    (tuple, tuple.__iter__),
    (set, set.__iter__),
    (frozenset, frozenset.__iter__),
    (deque, deque.__iter__),
    (bytearray, lambda part: (bytes(part),)),
    (array, lambda part: (part.tobytes(),)),
    (msgspec.Struct, lambda part: (getattr(part, name) for name in part.__struct_fields__)),
    (random.Random, lambda part: (repr(part.getstate()),)),
    (asyncio.Future, lambda part: (part.done(),)),
)
