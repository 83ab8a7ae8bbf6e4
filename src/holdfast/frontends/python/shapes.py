"""From a type hint to the shape of what can be read as it.

What msgspec knows about a type is taken over as far as it is certain. Pydantic models and other foreign types have
rules of their own, which nobody but they know: `any`.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any, Final

from msgspec import Raw, inspect

from holdfast.model import shapes as s
from holdfast.model.payloads import is_read_by_msgspec
from holdfast.model.values import NULL

MAX_DEPTH: Final = 8
MAX_PARTS: Final = 400
"""More than fit into a shape that may be stored."""
MAX_VALUES_CHARS: Final = 1024


def shape_of(hint: Any) -> Raw:
    """What a value must look like to be read as `hint`; `null` if nothing is certain about it. Raises nothing."""
    if hint is Any:
        return NULL
    try:
        return _cached(hint)
    except TypeError:  # not hashable
        return _shape_of(hint)


def _shape_of(hint: Any) -> Raw:
    try:
        if not is_read_by_msgspec(hint):
            return NULL
        known = inspect.type_info(hint)
    except Exception:  # noqa: BLE001 - a hint that can't be used; whoever awaits the value is told
        return NULL
    for depth in range(MAX_DEPTH, 0, -1):
        try:
            return s.stored(_Reading(depth).read(known, 0))
        except Exception:  # noqa: BLE001, S112 - too large, or not to be checked as it is: less of it may do
            continue
    return NULL


_cached: Final = lru_cache(maxsize=1024)(_shape_of)


class _Reading:
    """One walk over a type. Below `depth`, and where a type is part of itself, it is `any`."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._parts = 0
        self._above: list[Any] = []

    def read(self, known: inspect.Type, level: int) -> s.Shape:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise ValueError("more parts than can be stored")
        plain = _PLAIN.get(type(known))
        if plain is not None:
            return plain
        if isinstance(known, inspect.UnionType):
            return self._either(known, level)
        if isinstance(known, inspect.LiteralType):
            return _one_of(tuple(known.values))
        if isinstance(known, inspect.EnumType):
            return _members(known.cls)
        bounded = _BOUNDED.get(type(known))
        if bounded is not None:
            return _within(bounded, known)
        return "any" if level >= self._depth else self._container(known, level + 1)

    def _either(self, known: inspect.UnionType, level: int) -> s.Shape:
        parts: list[s.Shape] = []
        for kind in known.types:
            part = self.read(kind, level)
            if part == "any":
                return "any"
            if part not in parts:
                parts.append(part)
        return s.Either(of=tuple(parts)) if len(parts) > 1 else parts[0]

    def _container(self, known: inspect.Type, level: int) -> s.Shape:
        match known:
            case inspect.ListType() | inspect.VarTupleType():
                of = self.read(known.item_type, level)
                return s.Array(of=of, min_length=known.min_length, max_length=known.max_length)
            case inspect.SetType() | inspect.FrozenSetType():
                return s.Array(of=self.read(known.item_type, level))  # how many are left is for the set to say
            case inspect.TupleType():
                return s.Tuple(of=tuple(self.read(item, level) for item in known.item_types))
            case inspect.DictType():
                return self._map(known, level)
            case inspect.StructType() if known.array_like:
                return s.Array(of="any")
            case inspect.NamedTupleType() | inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType():
                return self._record(known, level)
            case _:
                return "any"

    def _map(self, known: inspect.DictType, level: int) -> s.Shape:
        key, of = self.read(known.key_type, level), self.read(known.value_type, level)
        if key == "any":
            return s.Map(key=key, of=of)  # several names may become one key: how many, is not certain
        return s.Map(key=key, of=of, min_length=known.min_length, max_length=known.max_length)

    def _record(self, known: Any, level: int) -> s.Shape:
        if known.cls in self._above:
            return "any"
        self._above.append(known.cls)
        try:
            parts = [(field.encode_name, self.read(field.type, level), field.required) for field in known.fields]
        finally:
            self._above.pop()
        if isinstance(known, inspect.NamedTupleType):
            optional = sum(not required for _, _, required in parts)
            return s.Tuple(of=tuple(part for _, part, _ in parts), optional=optional)
        is_struct = isinstance(known, inspect.StructType)
        return s.Object(
            fields={name: part for name, part, required in parts if required},
            optional={name: part for name, part, required in parts if not required},
            closed=getattr(known, "forbid_unknown_fields", False),
            tag_field=known.tag_field if is_struct else None,
            tag=known.tag if is_struct else None,
        )


_PLAIN: Final[dict[type[Any], s.Kind]] = {
    inspect.AnyType: "any",
    inspect.CustomType: "any",
    inspect.RawType: "any",
    inspect.NoneType: "null",
    inspect.BoolType: "bool",
    inspect.DateType: "date",
    inspect.TimeDeltaType: "timedelta",
    inspect.UUIDType: "uuid",
    inspect.DecimalType: "decimal",
}
_BOUNDED: Final[dict[type[Any], s.Kind]] = {
    inspect.IntType: "int",
    inspect.FloatType: "float",
    inspect.StrType: "str",
    inspect.BytesType: "bytes",
    inspect.ByteArrayType: "bytes",
    inspect.MemoryViewType: "bytes",
    inspect.DateTimeType: "datetime",
    inspect.TimeType: "time",
}
_PLAIN_VALUES: Final[dict[type[Any], s.Kind]] = {int: "int", str: "str", type(None): "null"}
_BOUNDS: Final = frozenset(s.Bounded.__struct_fields__) - {"of"}


def _within(kind: s.Kind, known: inspect.Type) -> s.Shape:
    """Its bounds, except for a pattern: matching one can take for ever, and the engine serves many."""
    bounds = {name: bound for name in _BOUNDS if (bound := getattr(known, name, None)) is not None}
    return s.Bounded(of=kind, **bounds) if bounds else kind


def _members(kind: type[Enum]) -> s.Shape:
    """Its values, unless it makes something of other ones, too."""
    if kind._missing_.__func__ is not Enum._missing_.__func__:  # type: ignore[attr-defined]
        return "any"
    return _one_of(tuple(member.value for member in kind))


def _one_of(values: tuple[int | str | None, ...]) -> s.Shape:
    """The values; of what kind they are, if they are too many to be stored."""
    if sum(len(str(value)) + 3 for value in values) <= MAX_VALUES_CHARS:
        return s.OneOf(of=values)
    kinds = tuple(_PLAIN_VALUES[kind] for kind in dict.fromkeys(type(value) for value in values))
    return s.Either(of=kinds) if len(kinds) > 1 else kinds[0]
