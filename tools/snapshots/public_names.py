"""The names that applications import, with what each one offers: signatures, fields, members, and the exception tree.

Annotations are shown as they are written, so the text is the same on every version of Python. Where a class lives and
which of its bases a method comes from is not shown: that is not public.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from importlib import import_module
from itertools import chain
from textwrap import dedent
from typing import Any, ForwardRef, cast, get_overloads

import msgspec

from holdfast import errors

MODULES = ("holdfast", "holdfast.testing", "holdfast.telemetry")
WIDTH = 90
"""Of a signature on one line; a longer one has a line for each parameter."""


def public_names() -> dict[str, str]:
    texts = {f"names/{module}.txt": "\n".join(_module(module)) for module in MODULES}
    texts["names/holdfast.errors.txt"] = "\n".join(_tree(_roots(), "")) + "\n"
    return texts


def _module(name: str) -> Iterator[str]:
    module = import_module(name)
    for public in sorted(module.__all__):
        value = getattr(module, public)
        yield from _class(public, value) if inspect.isclass(value) else _value(public, value)
        yield ""


def _value(name: str, value: object) -> Iterator[str]:
    yield from _function(name, value) if callable(value) else [f"{name}: {type(value).__name__}"]


# --- classes ------------------------------------------------------------------------------------------------------


def _class(name: str, cls: type) -> Iterator[str]:
    yield f"class {name}{_kind(cls)}"
    if issubclass(cls, Enum):
        yield from (f"    {member.name} = {member.value!r}" for member in cls)
    elif is_record(cls):
        yield from (f"    {field}" for field in fields_of(cls))
    elif "__init__" in _members(cls, private={"__init__"}):
        yield from (f"    {line}" for line in _function("__init__", cls.__init__))
    members = _members(cls, private=set())
    shown = set(_field_names(cls)) | (set(cls.__members__) if issubclass(cls, Enum) else set())
    yield from (f"    {name}  (attribute)" for name in sorted(_attributes(cls) - shown - set(members)))
    for member in sorted(set(members) - shown):
        yield from (f"    {line}" for line in _member(member, members[member]))


def _attributes(cls: type) -> set[str]:
    """The public names that `__init__` gives to `self`: not every class can be made here and looked at."""
    written = [vars(base)["__init__"] for base in filter(_is_ours, cls.__mro__) if "__init__" in vars(base)]
    trees = [
        ast.parse(dedent(inspect.getsource(one))) for one in written if inspect.isfunction(one) and _has_source(one)
    ]
    return {
        node.attr
        for node in chain.from_iterable(map(ast.walk, trees))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not node.attr.startswith("_")
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    }


def _has_source(function: Callable[..., Any]) -> bool:
    """A data class makes its own from text that is in no file."""
    return not function.__code__.co_filename.startswith("<")


def _kind(cls: type) -> str:
    foreign = [base.__name__ for base in cls.__mro__[1:] if not _is_ours(base) and base is not object]
    return f" ({foreign[0]})" if foreign else " (dataclass)" if dataclasses.is_dataclass(cls) else ""


def _members(cls: type, private: set[str]) -> dict[str, Any]:
    """What the class and its bases of Holdfast's own define, the nearest definition of each name."""
    found: dict[str, Any] = {}
    for base in filter(_is_ours, cls.__mro__):
        for name, member in vars(base).items():
            if name in private or not name.startswith("_"):
                found.setdefault(name, member)
    return found


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "holdfast"


def _member(name: str, member: Any) -> Iterable[str]:
    match member:
        case property():
            returns = inspect.get_annotations(cast("Any", member.fget)).get("return", "")
            return [f"{name}: {_annotation(returns)}  (property)"]
        case classmethod() | staticmethod():
            return [f"{line}  ({type(member).__name__})" for line in _function(name, member.__func__)]
    if inspect.isfunction(member):
        return _function(name, member)
    if inspect.isclass(member):
        return [f"class {name}"]
    return [] if _is_slot(member) else [f"{name} = {_default(member)}"]


def _is_slot(member: object) -> bool:
    return inspect.ismemberdescriptor(member) or inspect.isgetsetdescriptor(member)


# --- records ------------------------------------------------------------------------------------------------------


def is_record(cls: type) -> bool:
    return issubclass(cls, msgspec.Struct) or dataclasses.is_dataclass(cls) or hasattr(cls, "_fields")


def fields_of(cls: type) -> list[str]:
    """The fields of a struct, a data class or a named tuple, as they are written."""
    written: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        written |= inspect.get_annotations(base)
    defaults = _defaults(cls)
    return [
        f"{name}: {_annotation(written[name])}{f' = {defaults[name]}' if name in defaults else ''}"
        for name in _field_names(cls)
    ]


def _field_names(cls: type) -> tuple[str, ...]:
    if issubclass(cls, msgspec.Struct):
        return cls.__struct_fields__
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return tuple(getattr(cls, "_fields", ()))


def _defaults(cls: type) -> dict[str, str]:
    if issubclass(cls, msgspec.Struct):
        names = cls.__struct_fields__[len(cls.__struct_fields__) - len(cls.__struct_defaults__) :]
        pairs = zip(names, cls.__struct_defaults__, strict=True)
        return {name: _default(value) for name, value in pairs if value is not msgspec.NODEFAULT}
    if dataclasses.is_dataclass(cls):
        given = {field.name: field for field in dataclasses.fields(cls)}
        missing = dataclasses.MISSING
        plain = {name: _default(field.default) for name, field in given.items() if field.default is not missing}
        made = {name: "made anew" for name, field in given.items() if field.default_factory is not missing}
        return plain | made
    return {name: _default(value) for name, value in getattr(cls, "_field_defaults", {}).items()}


# --- functions ----------------------------------------------------------------------------------------------------


def _function(name: str, function: Any) -> Iterator[str]:
    prefix = "async " if _is_async(function) else ""
    for one in get_overloads(function) or [function]:
        yield f"{prefix}{name}{_signature(one)}"


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _signature(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    parts: list[str] = []
    stars = slash = False
    for parameter in signature.parameters.values():
        if parameter.name in {"self", "cls"}:
            continue
        if slash and parameter.kind is not parameter.POSITIONAL_ONLY:
            parts.append("/")
        slash = parameter.kind is parameter.POSITIONAL_ONLY
        if parameter.kind is parameter.KEYWORD_ONLY and not stars:
            parts.append("*")
        stars = stars or parameter.kind in {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL}
        parts.append(_parameter(parameter))
    returns = (
        "" if signature.return_annotation is signature.empty else f" -> {_annotation(signature.return_annotation)}"
    )
    parts = [*parts, "/"] if slash else parts
    line = f"({', '.join(parts)}){returns}"
    return line if len(line) <= WIDTH else "(" + "".join(f"\n        {part}," for part in parts) + f"\n    ){returns}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars: dict[Any, str] = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    star = stars.get(parameter.kind, "")
    type_ = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
    default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
    return f"{star}{parameter.name}{type_}{default}"


def _annotation(annotation: Any) -> str:
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if inspect.isclass(annotation) else str(annotation).replace("typing.", "")


def _default(value: Any) -> str:
    match value:
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case set() | frozenset():
            return f"{{{', '.join(sorted(map(_default, value)))}}}"
        case msgspec.Raw():
            return f"Raw({bytes(value)!r})"
    if inspect.isclass(value) or inspect.isfunction(value):
        return str(value.__name__)
    text = repr(value)
    return f"<{type(value).__name__}>" if " at 0x" in text else text


# --- exceptions ---------------------------------------------------------------------------------------------------


def _roots() -> list[type]:
    classes = [
        value for value in vars(errors).values() if inspect.isclass(value) and value.__module__ == errors.__name__
    ]
    return [cls for cls in classes if issubclass(cls, BaseException) and not any(map(_is_ours, cls.__bases__))]


def _tree(classes: Iterable[Any], indent: str) -> Iterator[str]:
    for cls in sorted(classes, key=lambda cls: cls.__name__):
        others = [base.__name__ for base in cls.__bases__ if not _is_ours(base)]
        code = getattr(cls, "code", "")
        yield f"{indent}{cls.__name__}{f' {code}' if code else ''}{f' ({chr(44).join(others)})' if others else ''}"
        own: dict[str, Any] = dict(vars(cls))
        if "__init__" in own:
            yield from (f"{indent}    . {line}" for line in _function("__init__", own["__init__"]))
        public = [name for name in own if not name.startswith("_") and name != "code"]
        yield from (f"{indent}    . {line}" for name in sorted(public) for line in _member(name, own[name]))
        yield from _tree([below for below in cls.__subclasses__() if _is_ours(below)], indent + "    ")
