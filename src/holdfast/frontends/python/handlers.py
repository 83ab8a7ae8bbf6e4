"""`@signal`, `@query`, `@update`: the methods by which others reach a workflow that is written as a class.

A decorated method stays the same, callable function; what its decorator says is noted on it, and read for good when
`@workflow` reads the class: only then can all annotations be resolved and two handlers of one name be seen.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any, Concatenate, Final, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, overload

from holdfast.frontends.python.introspection import (
    HANDLER,
    Names,
    called,
    checked_function,
    checked_text,
    invalid,
    is_workflow_context,
    parameters_of,
    resolved,
)

M = TypeVar("M", bound=Callable[..., Any])
V = TypeVar("V", bound=Callable[..., Any])
P = ParamSpec("P")
S_contra = TypeVar("S_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

Role = Literal["signal", "query", "update"]
OWN_QUERIES: Final = ("__handlers__", "__mailbox__", "__stack__")
"""Queries that every workflow answers. Names with two underscores in front are kept for such."""


@dataclass(frozen=True, slots=True, eq=False)
class Handler:
    """One handler: what it takes and what it gives. `fn` is called with the instance first."""

    role: Role
    name: str
    fn: Callable[..., Any]
    is_async: bool
    wants_context: bool
    takes_value: bool
    has_default: bool
    value_type: Any
    result_type: Any
    validator: Handler | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.name!r}"


@dataclass(frozen=True, slots=True, eq=False)
class Handlers:
    """The handlers of one class, by name."""

    signals: Mapping[str, Handler] = field(default_factory=dict)
    queries: Mapping[str, Handler] = field(default_factory=dict)
    updates: Mapping[str, Handler] = field(default_factory=dict)


NO_HANDLERS: Final = Handlers()


@dataclass(slots=True, eq=False)
class Mark:
    """What a decorator has noted on a method until its class is read."""

    role: Role
    name: str
    fn: Any  # a FunctionType; type checkers take a function in a dataclass for a method
    validator: Any = None


# --- the decorators -----------------------------------------------------------------------------------------------


class UpdateMethod(Protocol, Generic[S_contra, P, R_co]):
    """A method decorated with `@update`, for type checkers: still a method, with a place for its validator."""

    def __call__(self, this: S_contra, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[P, R_co]: ...

    def validator(self, fn: V, /) -> V:
        """Make a plain `def` method the validator: it gets what the handler would get, and raises to refuse it."""
        ...


@overload
def signal(fn: M, /, *, name: str | None = None) -> M: ...
@overload
def signal(*, name: str | None = None) -> Callable[[M], M]: ...
def signal(fn: Any = None, /, *, name: str | None = None) -> Any:
    """Hand signals of this name to a method, `def` or `async def`; `name` defaults to the method's.

    It takes at most one value, and ctx first if it wants. An error in it fails the workflow.
    """
    return partial(_mark, role="signal", name=name) if fn is None else _mark(fn, role="signal", name=name)


@overload
def query(fn: M, /, *, name: str | None = None) -> M: ...
@overload
def query(*, name: str | None = None) -> Callable[[M], M]: ...
def query(fn: Any = None, /, *, name: str | None = None) -> Any:
    """Let a plain `def` method answer queries of this name. It only looks: what it changes is refused."""
    return partial(_mark, role="query", name=name) if fn is None else _mark(fn, role="query", name=name)


@overload
def update(
    fn: Callable[Concatenate[S_contra, P], R_co], /, *, name: str | None = None
) -> UpdateMethod[S_contra, P, R_co]: ...
@overload
def update(
    *, name: str | None = None
) -> Callable[[Callable[Concatenate[S_contra, P], R_co]], UpdateMethod[S_contra, P, R_co]]: ...
def update(fn: Any = None, /, *, name: str | None = None) -> Any:
    """Let a method, `def` or `async def`, answer updates of this name: its result, or its error, goes to the caller.

    `@the_method.validator` on a plain `def` looks at the value first; what it raises refuses the update.
    """
    return partial(_mark, role="update", name=name) if fn is None else _mark(fn, role="update", name=name)


def _mark(fn: Any, *, role: Role, name: str | None) -> Any:
    checked = checked_function(fn, role)
    known = checked_text(checked, "name", checked.__name__ if name is None else name)
    if known.startswith("__"):
        raise invalid(checked, f"has name={known!r}: names that begin with __ are Holdfast's own", field="name")
    if role == "query" and inspect.iscoroutinefunction(checked):
        raise invalid(checked, "is an `async def` query: a query only looks and can't wait; write `def`")
    _values(checked, role, {})
    mark = Mark(role, known, checked)
    setattr(checked, HANDLER, mark)
    if role == "update":
        checked.__dict__["validator"] = partial(_validate_with, mark)
    return checked


def _validate_with(mark: Mark, fn: Any) -> Any:
    checked = checked_function(fn, "validator")
    if inspect.iscoroutinefunction(checked):
        raise invalid(checked, "is an `async def` validator: it only looks and can't wait; write `def`")
    if checked.__name__ == mark.fn.__name__:
        raise invalid(checked, "has the name of the handler it validates and would replace it: give it another name")
    if mark.validator is not None:
        raise invalid(
            checked, f"is the second validator of update {mark.name!r}: join it with {called(mark.validator)}"
        )
    if _values(checked, "validator", {}) and not _values(mark.fn, "update", {}):
        raise invalid(checked, f"takes a value, but update {mark.name!r} has none: let it take self only")
    mark.validator = checked
    return fn


def _values(fn: FunctionType, role: str, local: Names) -> list[inspect.Parameter]:
    """The parameters without self and ctx: none or one."""
    parameters = parameters_of(fn, role)
    if not parameters:
        raise invalid(fn, "has no self: it has to be a method of a class decorated with @workflow")
    values = parameters[1:]
    if values and is_workflow_context(fn, values[0].name, local):
        values = values[1:]
    if len(values) > 1:
        names = ", ".join(parameter.name for parameter in values)
        raise invalid(fn, f"takes more than one value ({names}): it takes at most one; use a dataclass")
    return values


# --- reading a class ----------------------------------------------------------------------------------------------


def mark_of(member: Any) -> Mark | None:
    """What a handler's decorator has noted on this function, if one has."""
    found = getattr(getattr(member, "__func__", member), "__dict__", {}).get(HANDLER)
    return found if isinstance(found, Mark) else None


def handlers_of(cls: type[Any], local: Names) -> Handlers:
    """All handlers of a class, those of its bases first."""
    roles = {
        attribute: mark.role
        for base in reversed(cls.__mro__)
        for attribute, member in vars(base).items()
        if (mark := mark_of(member)) is not None
    }
    found: dict[Role, dict[str, Handler]] = {"signal": {}, "query": {}, "update": {}}
    for attribute, role in roles.items():
        member = inspect.getattr_static(cls, attribute)
        if member is None:
            continue  # `name = None` in a subclass takes the handler away
        mark = _checked_mark(cls, attribute, member, role)
        known = found[mark.role].setdefault(mark.name, _read(mark, local))
        if known.fn is not mark.fn:
            raise invalid(
                cls,
                f"has two {mark.role} handlers named {mark.name!r}: {called(known.fn)} and {called(mark.fn)}; "
                "rename one",
            )
    return Handlers(found["signal"], found["query"], found["update"])


def _checked_mark(cls: type[Any], attribute: str, member: Any, role: Role) -> Mark:
    mark = mark_of(member)
    if mark is None:
        raise invalid(
            cls,
            f"overrides the {role} handler {attribute} without being one itself: decorate it with @{role} as well, "
            f"or write `{attribute} = None` to have none",
        )
    if not isinstance(member, FunctionType):
        raise invalid(cls, f"has the {role} handler {attribute} as a {type(member).__name__}: make it a plain method")
    if mark.fn is not member:
        # functools.wraps copies attributes, so the wrapper would be taken for the handler and never run.
        raise invalid(cls, f"wraps the {role} handler {attribute}: put @{role} on the outside")
    return mark


def _read(mark: Mark, local: Names) -> Handler:
    validator = None if mark.validator is None else _read(Mark(mark.role, mark.name, mark.validator), local)
    values = _values(mark.fn, mark.role, local)
    return Handler(
        role=mark.role,
        name=mark.name,
        fn=mark.fn,
        is_async=inspect.iscoroutinefunction(mark.fn),
        wants_context=len(parameters_of(mark.fn, mark.role)) - 1 > len(values),
        takes_value=bool(values),
        has_default=bool(values) and values[0].default is not values[0].empty,
        value_type=resolved(mark.fn, values[0].name, local) if values else Any,
        result_type=resolved(mark.fn, "return", local),
        validator=validator,
    )
