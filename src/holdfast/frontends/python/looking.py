"""Whether a query has only looked: a picture of the data it could reach, before and after.

Owns the walk over containers, dataclasses, structs and objects with attributes. It is bounded: what lies beyond so many
parts is not compared. Nothing is copied but small values, and no code of the user's is called.
"""

from __future__ import annotations

import asyncio
import logging
import random
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import msgspec

from holdfast.replay.machine import Machine

MAX_PARTS: Final = 100_000

_VALUES: Final = (str, int, float, bytes, bool, complex, type(None))
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


def picture(*roots: Any) -> list[Any]:
    """What these objects consist of, in one list: two pictures are equal if nothing was changed in between.

    A picture keeps what it shows alive, so that no new object can be taken for an old one.
    """
    shown: list[Any] = []
    seen: set[int] = set()
    stack: list[Any] = list(reversed(roots))
    while stack and len(shown) < MAX_PARTS:
        part = stack.pop()
        kind = type(part)
        if kind in _VALUES:
            shown.append((kind, part))
            continue
        shown.append(Same(part))
        if id(part) in seen or issubclass(kind, _OPAQUE) or hasattr(kind, "__holdfast_workflow_context__"):
            continue
        seen.add(id(part))
        children = list(_parts(part))
        shown.append(len(children))
        stack.extend(reversed(children))
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


def _parts(part: Any) -> Iterator[Any]:
    for kind, parts_of in _KNOWN:
        if isinstance(part, kind):
            yield from parts_of(part)
    with suppress(AttributeError):
        yield from _items(object.__getattribute__(part, "__dict__"))
    for cls in type(part).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = vars(cls).get(_mangled(cls, name))
            if member is not None and name not in ("__dict__", "__weakref__"):
                with suppress(AttributeError):  # not set
                    yield member.__get__(part, cls)


def _items(part: dict[Any, Any]) -> Iterator[Any]:
    for key, value in dict.items(part):
        yield key
        yield value


def _mangled(cls: type[Any], name: str) -> str:
    return f"_{cls.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name


_KNOWN: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (dict, _items),
    (list, list.__iter__),
    (tuple, tuple.__iter__),
    (set, set.__iter__),
    (frozenset, frozenset.__iter__),
    (deque, deque.__iter__),
    (bytearray, lambda part: (bytes(part),)),
    (array, lambda part: (part.tobytes(),)),
    (msgspec.Struct, lambda part: (getattr(part, name) for name in part.__struct_fields__)),
    (random.Random, lambda part: (part.getstate(),)),
    (asyncio.Future, lambda part: (part.done(),)),
)
