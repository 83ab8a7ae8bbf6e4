"""What a function or class says about itself: its parameters, its annotations, its source text, its place.

Shared by the decorators of workflows, tasks and handlers. Nothing here runs user code. What can't work is refused with
the place in the source and the way to put it right.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any, Final, get_type_hints

from holdfast.errors import InvalidDefinition
from holdfast.model.standalone import PREFIX, is_reserved

WORKFLOW: Final = "__holdfast_workflow__"
TASK: Final = "__holdfast_task__"
HANDLER: Final = "__holdfast_handler__"
ROLES: Final = {WORKFLOW: "workflow", TASK: "task", HANDLER: "handler"}
"""Under which attribute a decorator keeps what it has read, and what it makes of the function."""

_NAME_BYTES: Final = 255
Names = Mapping[str, Any]
"""The local names at the place where a decorator is applied."""


def checked_function(fn: Any, role: str) -> FunctionType:
    if isinstance(fn, type):
        raise InvalidDefinition(
            f"@{role} on the class {fn.__qualname__}: a function is needed, `async def fn(...)`", field=role
        )
    if isinstance(fn, str):
        keyword = "kind" if role in ("workflow", "task") else "name"
        raise InvalidDefinition(f"@{role}({fn!r}): the {keyword} is a keyword, @{role}({keyword}={fn!r})", field=role)
    if not callable(fn):
        raise InvalidDefinition(f"@{role} on {fn!r:.100}: it is not callable; a function is needed", field=role)
    if not isinstance(fn, FunctionType):
        raise InvalidDefinition(
            f"@{role} on {fn!r:.100}: a function is needed; write a `def` that calls it", field=role
        )
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise invalid(fn, f"is a generator (it contains `yield`): a {role} returns its result once, with `return`")
    for attribute, known_role in ROLES.items():
        # Put on the function itself or copied onto a wrapper: either way its decorator came too early or twice.
        if attribute in fn.__dict__:
            raise invalid(fn, f"is already a {known_role}: decorate it once, on the outside")
    return fn


def parameters_of(fn: FunctionType, role: str) -> list[inspect.Parameter]:
    """The positional parameters; refuses those that nothing could ever fill."""
    positional = []
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(parameter)
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            raise invalid(fn, f"takes {parameter}: a {role} is called with named positions; list its parameters")
        elif parameter.default is parameter.empty:
            raise invalid(
                fn,
                f"has the keyword-only parameter {parameter.name} without a default: "
                f"a {role} gets positional arguments; give it a default or move it before the `*`",
            )
    return positional


def kind_of(fn: FunctionType | type[Any], kind: str | None) -> str:
    if kind is None and fn.__name__ == "<lambda>":
        raise invalid(fn, 'has no name of its own: pass kind="..." or write a `def`')
    chosen = checked_text(fn, "kind", fn.__name__ if kind is None else kind)
    if is_reserved(chosen):
        raise invalid(
            fn, f"has kind={chosen!r:.60}: what begins with {PREFIX!r} is the engine's own; take another", field="kind"
        )
    return chosen


def checked_text(fn: FunctionType | type[Any], name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid(fn, f"has {name}={value!r}: {name} is text, as in {name}={str(value)!r}", field=name)
    if not value or not value.isprintable() or len(value.encode()) > _NAME_BYTES:
        raise invalid(fn, f"has {name}={value!r:.60}: use 1 to {_NAME_BYTES} bytes of printable text", field=name)
    return value


def build_of(obj: FunctionType | type[Any]) -> str:
    """Twelve hex digits of the source text; of a class with those of its bases, where its handlers may come from.

    And of the events that this Holdfast knows: an execution that an older one has parked, because it could not read its
    history, is then tried at once by a newer one with the same workflows.
    """
    import hashlib  # noqa: PLC0415 - brings OpenSSL with it, which a program without workflows need not load

    from holdfast.model.events import EVENT_TYPES  # noqa: PLC0415 - as above: many types, none of them needed before

    parts = [base for base in obj.__mro__ if base is not object] if isinstance(obj, type) else [obj]
    known = [f"{name} {event.VERSION}" for name, event in sorted(EVENT_TYPES.items())]
    content = "\n".join([*(_content(part) for part in parts), *known])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _content(part: FunctionType | type[Any]) -> str:
    """The source text, or the compiled code where there is no source (REPL, frozen apps)."""
    try:
        return inspect.getsource(part)
    except (OSError, TypeError, SyntaxError, IndexError):
        functions = [part] if isinstance(part, FunctionType) else functions_of(part)
        return repr([_code_content(fn.__code__) for fn in functions])


def functions_of(cls: type[Any]) -> list[FunctionType]:
    """The functions written in this class itself."""
    members = (getattr(member, "__func__", member) for member in vars(cls).values())
    return [member for member in members if isinstance(member, FunctionType)]


def _code_content(part: Any) -> Any:
    """What a code object does, without addresses, line numbers or anything in hash order."""
    if isinstance(part, CodeType):
        return part.co_code.hex(), part.co_names, part.co_varnames, tuple(map(_code_content, part.co_consts))
    if isinstance(part, tuple):
        return tuple(map(_code_content, part))
    if isinstance(part, frozenset):
        return sorted(repr(_code_content(item)) for item in part)
    return part


def caller_names() -> Names:
    """The local names where the decorator is applied: where one that is not global may be found."""
    return sys._getframe(2).f_locals  # noqa: SLF001 - inspect.currentframe is the same with an Optional around it


# --- annotations --------------------------------------------------------------------------------------------------


def _annotation(fn: FunctionType, name: str) -> Any:
    return fn.__annotations__.get(name, Any)


def resolved(fn: FunctionType, name: str, local: Names) -> Any:
    """One annotation as a type. One by one, because ctx is often annotated with a name that only type checkers see."""
    if name not in fn.__annotations__:
        return Any
    holder = type("_", (), {"__annotations__": {name: fn.__annotations__[name]}})
    scope = _scope(fn)
    with suppress(Exception):  # an annotation is any expression; the second attempt reports what is wrong with it
        return get_type_hints(holder, scope, {}, include_extras=True)[name]
    try:  # perhaps a class written inside the same function as the workflow, as tests do
        return get_type_hints(holder, scope, dict(local), include_extras=True)[name]
    except Exception as error:
        what = "its result" if name == "return" else f"the parameter {name}"
        raise invalid(
            fn,
            f"annotates {what} as {_annotation(fn, name)!r}, which can't be resolved ({error}): "
            "import the name at run time, not only for type checkers, or correct it",
            field=name,
        ) from error


def _scope(fn: Any) -> dict[str, Any]:
    while hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__  # annotations were written where the innermost function was
    return dict(fn.__globals__)


def context_type(fn: FunctionType, name: str, local: Names) -> Any:
    try:
        return resolved(fn, name, local)
    except InvalidDefinition:
        return Any  # known to type checkers only, which is enough


def is_task_context(fn: FunctionType, name: str, local: Names) -> bool:
    return _is_context(fn, name, "TaskContext") or _marked(resolved(fn, name, local), "__holdfast_task_context__")


def is_workflow_context(fn: FunctionType, name: str, local: Names) -> bool:
    """Annotated as such, or called ctx."""
    if name == "ctx" or _is_context(fn, name, "WorkflowContext"):
        return True
    return _marked(context_type(fn, name, local), "__holdfast_workflow_context__")


def _is_context(fn: FunctionType, name: str, type_name: str) -> bool:
    annotation = _annotation(fn, name)
    return isinstance(annotation, str) and annotation.strip("'\" ").rpartition(".")[2] == type_name


def _marked(found: Any, mark: str) -> bool:
    return getattr(found, mark, False) is True


# --- words --------------------------------------------------------------------------------------------------------


def invalid(fn: FunctionType | type[Any], problem: str, *, field: str = "") -> InvalidDefinition:
    return InvalidDefinition(f"{called(fn)} {problem}", field=field, place=place_of(fn))


def called(fn: Any) -> str:
    return f"{getattr(fn, '__qualname__', fn)} ({place_of(fn)})"


def place_of(obj: Any) -> str:
    """Where it is written, as file:line. That of a class is its first function's: classes do not keep their own."""
    first = next(filter(_is_written, functions_of(obj)), None) if isinstance(obj, type) else obj
    code = getattr(first, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else "unknown place"


def _is_written(fn: FunctionType) -> bool:
    """And not made by a decorator such as @dataclass."""
    return not fn.__code__.co_filename.startswith("<")
