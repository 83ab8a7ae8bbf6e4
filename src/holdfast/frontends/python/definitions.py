"""`@workflow` and `@task`: what a function or class says about itself, read once when it is decorated.

Owns the definitions and the registry of those one worker knows. What is decorated stays the same, callable function or
class; its definition hangs on it as an attribute. Nothing here runs user code or knows an event loop.

Whatever can't work is refused here, at import time, with the place in the source and the way to put it right.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from types import FunctionType
from typing import Any, TypeVar, overload

from msgspec.structs import replace

from holdfast.errors import InvalidDefinition, InvalidDuration
from holdfast.frontends.python.handlers import NO_HANDLERS, Handlers, handlers_of, mark_of
from holdfast.frontends.python.introspection import (
    ROLES,
    TASK,
    WORKFLOW,
    Names,
    build_of,
    called,
    caller_names,
    checked_function,
    checked_text,
    context_type,
    invalid,
    is_task_context,
    is_workflow_context,
    kind_of,
    parameters_of,
    place_of,
    resolved,
)
from holdfast.frontends.python.triggers import EventTrigger, StartOn, triggers_of
from holdfast.model.standalone import is_reserved
from holdfast.model.values import DEFAULT_TIMEOUTS, TEN_YEARS_S, RetryPolicy, TaskTimeouts

F = TypeVar("F", bound=Callable[..., Any])
Duration = float | int | timedelta


@dataclass(frozen=True, slots=True, eq=False)
class WorkflowDefinition:
    """A workflow kind + version as a Python function, or as a class: then `fn` is its `run`. `build` changes with the
    source text of the function, or of the class and its bases."""

    kind: str
    version: str
    fn: Callable[..., Any]
    is_async: bool
    takes_input: bool
    has_default: bool
    input_type: Any
    result_type: Any
    build: str
    execution_timeout_s: float | None = None
    cls: type[Any] | None = None
    init_takes_context: bool = False
    handlers: Handlers = NO_HANDLERS
    triggers: tuple[EventTrigger, ...] = ()

    def __str__(self) -> str:
        return f"workflow {self.kind!r} version {self.version!r}"

    @property
    def target(self) -> Any:
        """What was decorated."""
        return self.cls or self.fn

    @property
    def place(self) -> str:
        """Where it is written, as file:line."""
        return place_of(self.target)


@dataclass(frozen=True, slots=True, eq=False)
class TaskDefinition:
    """A task kind as a Python function. `parameter_types` leaves out the context; `required` have no default."""

    kind: str
    fn: Callable[..., Any]
    is_async: bool
    wants_context: bool
    parameter_types: tuple[Any, ...]
    required: int
    result_type: Any
    queue: str | None
    retry: RetryPolicy | None
    timeouts: TaskTimeouts | None

    def __str__(self) -> str:
        return f"task {self.kind!r}"

    @property
    def target(self) -> Any:
        return self.fn

    @property
    def place(self) -> str:
        """Where it is written, as file:line."""
        return place_of(self.fn)


# --- the decorators -----------------------------------------------------------------------------------------------


@overload
def workflow(
    target: F,
    /,
    *,
    kind: str | None = None,
    version: str = "1",
    execution_timeout: Duration | None = None,
    start_on: StartOn | None = None,
) -> F: ...
@overload
def workflow(
    *,
    kind: str | None = None,
    version: str = "1",
    execution_timeout: Duration | None = None,
    start_on: StartOn | None = None,
) -> Callable[[F], F]: ...
def workflow(
    target: Any = None,
    /,
    *,
    kind: str | None = None,
    version: str = "1",
    execution_timeout: Duration | None = None,
    start_on: StartOn | None = None,
) -> Any:
    """Make `async def fn(ctx)` or `async def fn(ctx, input)` a workflow; a plain `def` where it needs no waiting.

    Or a class with such a method, `async def run(self, ctx, input)`, and handlers by `@signal`, `@query` and `@update`.
    Each execution has an instance of its own, made without arguments, or with ctx if `__init__` takes it.

    `kind` defaults to the name of the function or class. Types of input and result come from the annotations.
    `execution_timeout` limits the whole execution where a start does not say otherwise. `start_on` names events that
    start it: their key, `EventTrigger(key, where)`, or several of these; the event's data is the input.
    """
    limit_s = None if execution_timeout is None else time_limit_s(execution_timeout, "execution_timeout")
    if target is None:
        return lambda target: _define_workflow(target, kind, version, limit_s, start_on, local=caller_names())
    return _define_workflow(target, kind, version, limit_s, start_on, local=caller_names())


@overload
def task(
    fn: F,
    /,
    *,
    kind: str | None = None,
    queue: str | None = None,
    retry: RetryPolicy | None = None,
    start_to_close: Duration | None = None,
    schedule_to_close: Duration | None = None,
    heartbeat_timeout: Duration | None = None,
) -> F: ...
@overload
def task(
    *,
    kind: str | None = None,
    queue: str | None = None,
    retry: RetryPolicy | None = None,
    start_to_close: Duration | None = None,
    schedule_to_close: Duration | None = None,
    heartbeat_timeout: Duration | None = None,
) -> Callable[[F], F]: ...
def task(
    fn: Any = None,
    /,
    *,
    kind: str | None = None,
    queue: str | None = None,
    retry: RetryPolicy | None = None,
    start_to_close: Duration | None = None,
    schedule_to_close: Duration | None = None,
    heartbeat_timeout: Duration | None = None,
) -> Any:
    """Make a function, `async def` or plain `def`, a task. A first parameter annotated `TaskContext` gets the context.

    `start_to_close` limits one attempt, `schedule_to_close` all of them, `heartbeat_timeout` the body's silence.
    """
    timeouts = task_timeouts(start_to_close, schedule_to_close, heartbeat_timeout)
    if fn is None:
        return lambda fn: _define_task(fn, kind, queue, retry, timeouts=timeouts, local=caller_names())
    return _define_task(fn, kind, queue, retry, timeouts=timeouts, local=caller_names())


def workflow_definition(obj: Any) -> WorkflowDefinition | None:
    """The definition of a function or class decorated with `@workflow`, None for anything else."""
    definition: WorkflowDefinition | None = _attached(obj, WORKFLOW)
    return definition


def task_definition(obj: Any) -> TaskDefinition | None:
    """The definition of a function decorated with `@task`, None for anything else."""
    definition: TaskDefinition | None = _attached(obj, TASK)
    return definition


def duration_s(value: Duration, field: str) -> float:
    """A duration in seconds, from 0 to ten years."""
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise InvalidDuration(
            f"{field} must be a number of seconds or a timedelta, not {value!r}", field=field, value=value
        )
    if not 0 <= number <= TEN_YEARS_S:  # NaN fails this as well
        # repr refuses integers of more than 4300 digits, and nobody would read them.
        shown = "a far larger number" if isinstance(value, int) and value.bit_length() > 100 else repr(value)
        raise InvalidDuration(f"{field} must lie between 0 and ten years, not {shown}", field=field, value=value)
    return float(number)


def task_timeouts(
    start_to_close: Duration | None = None,
    schedule_to_close: Duration | None = None,
    heartbeat_timeout: Duration | None = None,
    *,
    base: TaskTimeouts | None = None,
) -> TaskTimeouts | None:
    """`base` (or the defaults) with what is given here in its place; `base` itself when nothing is given."""
    given = {
        name: time_limit_s(value, field)
        for name, field, value in (
            ("start_to_close_s", "start_to_close", start_to_close),
            ("schedule_to_close_s", "schedule_to_close", schedule_to_close),
            ("heartbeat_s", "heartbeat_timeout", heartbeat_timeout),
        )
        if value is not None
    }
    return replace(base or DEFAULT_TIMEOUTS, **given) if given else base


def time_limit_s(value: Duration, field: str) -> float:
    """A duration in seconds that something can finish in."""
    seconds = duration_s(value, field)
    if not seconds:
        raise InvalidDuration(f"{field} must be more than 0: nothing could ever finish", field=field, value=value)
    return seconds


# --- the registry -------------------------------------------------------------------------------------------------


class Registry:
    """The workflows and tasks one worker knows. Passing the same function twice is the same as passing it once.

    With tasks comes the built-in workflow that runs one on its own: it is no part of `workflows`.
    """

    __slots__ = ("_tasks", "_workflows")

    def __init__(self, workflows: Iterable[Callable[..., Any]] = (), tasks: Iterable[Callable[..., Any]] = ()) -> None:
        self._workflows: dict[tuple[str, str], WorkflowDefinition] = {}
        self._tasks: dict[str, TaskDefinition] = {}
        for fn in workflows:
            found = workflow_definition(fn) or _refuse_undecorated(fn, "workflow", task_definition(fn))
            _add(self._workflows, (found.kind, found.version), found, "kind or version")
        for fn in tasks:
            known = task_definition(fn) or _refuse_undecorated(fn, "task", workflow_definition(fn))
            _add(self._tasks, known.kind, known, "kind")

    @property
    def workflows(self) -> tuple[WorkflowDefinition, ...]:
        return tuple(self._workflows.values())

    @property
    def tasks(self) -> tuple[TaskDefinition, ...]:
        return tuple(self._tasks.values())

    @property
    def builds(self) -> dict[tuple[str, str], str]:
        """The build of every kind and version that can be run here."""
        return {(found.kind, found.version): found.build for found in (*self.workflows, *self._built_in())}

    def _built_in(self) -> tuple[WorkflowDefinition, ...]:
        from holdfast.frontends.python.standalone import RUN_TASK  # noqa: PLC0415 - it is made by this module

        return (RUN_TASK,) if self.tasks else ()

    def workflow(self, kind: str, version: str) -> WorkflowDefinition | None:
        known = self._workflows.get((kind, version))
        if known is not None or not is_reserved(kind):
            return known
        return next((found for found in self._built_in() if (found.kind, found.version) == (kind, version)), None)

    def task(self, kind: str) -> TaskDefinition | None:
        return self._tasks.get(kind)


K = TypeVar("K")
D = TypeVar("D", WorkflowDefinition, TaskDefinition)


def _add(known: dict[K, D], key: K, definition: D, remedy: str) -> None:
    first = known.setdefault(key, definition)
    if first.target is not definition.target:
        raise InvalidDefinition(
            f"{definition} is defined twice: at {first.place} and at {definition.place}; "
            f"give one of them another {remedy}",
            field="kind",
            places=(first.place, definition.place),
        )


def _refuse_undecorated(fn: Any, wanted: str, other: WorkflowDefinition | TaskDefinition | None) -> Any:
    field = f"{wanted}s"
    if other is not None:
        is_a = "task" if wanted == "workflow" else "workflow"
        raise InvalidDefinition(
            f"{field}: {called(fn)} is a {is_a}: pass it in {is_a}s=[...]", field=field, place=other.place
        )
    if isinstance(fn, FunctionType) or (isinstance(fn, type) and wanted == "workflow"):
        raise InvalidDefinition(f"{field}: {called(fn)} is not a {wanted}: decorate it with @{wanted}", field=field)
    raise InvalidDefinition(
        f"{field}: {fn!r:.100} is not a {wanted}: pass functions decorated with @{wanted}", field=field
    )


def _attached(obj: Any, attribute: str) -> Any:
    # Only what hangs on the function itself: a class or a mock that answers to every name is no definition.
    found = getattr(obj, "__dict__", {}).get(attribute)
    if found is not None and found.target is not obj:
        # functools.wraps copies attributes, so the wrapper would be taken for the workflow and never run.
        raise InvalidDefinition(
            f"{called(obj)} wraps a function that is already decorated: put @{ROLES[attribute]} on the outside",
            place=found.place,
        )
    return found


# --- reading functions and classes ----------------------------------------------------------------------------------


def _define_workflow(
    target: Any, kind: str | None, version: str, limit_s: float | None, start_on: StartOn | None, *, local: Names
) -> Any:
    if isinstance(target, type):
        definition = _class_definition(target, kind, version, limit_s, local)
    else:
        fn = checked_function(target, "workflow")
        parameters = parameters_of(fn, "workflow")
        if parameters and parameters[0].name == "self":
            raise invalid(fn, "is a method: put @workflow on its class")
        definition = _definition(fn, fn, parameters, local, kind=kind, version=version, limit_s=limit_s)
    if start_on is not None:
        definition = dataclasses.replace(definition, triggers=triggers_of(target, start_on))
    setattr(target, WORKFLOW, definition)
    return target


def _definition(
    target: FunctionType | type[Any],
    fn: FunctionType,
    parameters: list[inspect.Parameter],
    local: Names,
    *,
    kind: str | None,
    version: str,
    limit_s: float | None,
) -> WorkflowDefinition:
    """What a function says, or the `run` of a class. `parameters` are those that get ctx and the input."""
    if not parameters:
        raise invalid(fn, f"has no ctx parameter: write `async def {_shown(fn, target)}`")
    if len(parameters) > 2:
        names = ", ".join(parameter.name for parameter in parameters[1:])
        raise invalid(fn, f"takes more than one input ({names}): a workflow takes ctx and one input; use a dataclass")
    first = context_type(fn, parameters[0].name, local)
    if isinstance(first, type) and first.__module__ == "builtins" and first is not object:
        raise invalid(
            fn,
            f"has no ctx parameter: its first one, {parameters[0].name}, is annotated {first.__name__}; "
            "put ctx before it",
        )
    takes_input = len(parameters) == 2
    return WorkflowDefinition(
        kind=kind_of(target, kind),
        version=checked_text(target, "version", version),
        fn=fn,
        is_async=inspect.iscoroutinefunction(fn),
        takes_input=takes_input,
        has_default=takes_input and parameters[1].default is not parameters[1].empty,
        input_type=resolved(fn, parameters[1].name, local) if takes_input else Any,
        result_type=resolved(fn, "return", local),
        build=build_of(target),
        execution_timeout_s=limit_s,
    )


def _shown(fn: FunctionType, target: Any) -> str:
    return (
        "fn(ctx)` or `async def fn(ctx, input)"
        if fn is target
        else "run(self, ctx)` or `async def run(self, ctx, input)"
    )


def _class_definition(
    cls: type[Any], kind: str | None, version: str, limit_s: float | None, local: Names
) -> WorkflowDefinition:
    if WORKFLOW in vars(cls):
        raise invalid(cls, "is already a workflow: decorate it once")
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise invalid(cls, f"is abstract and can't be made: implement {', '.join(missing)}")
    run = inspect.getattr_static(cls, "run", None)
    if run is None:
        raise invalid(cls, "has no run method: write `async def run(self, ctx)` or `async def run(self, ctx, input)`")
    if not isinstance(run, FunctionType):
        raise invalid(
            cls, f"has a run that is no plain method but a {type(run).__name__}: write `async def run(self, ctx)`"
        )
    if mark_of(run) is not None:
        raise invalid(cls, "has a run that is a handler: run is the workflow itself; give the handler another name")
    names = {**local, **vars(cls), cls.__name__: cls}
    parameters = parameters_of(checked_function(run, "workflow"), "workflow")
    read = _definition(cls, run, parameters[1:], names, kind=kind, version=version, limit_s=limit_s)
    return dataclasses.replace(
        read, cls=cls, init_takes_context=_init_takes_context(cls, names), handlers=handlers_of(cls, names)
    )


def _init_takes_context(cls: type[Any], local: Names) -> bool:
    init = inspect.getattr_static(cls, "__init__")
    if not isinstance(init, FunctionType):
        return False  # object's own, or that of a base written in C
    parameters = list(inspect.signature(init).parameters.values())[1:]
    takes_context = (
        bool(parameters) and parameters[0].kind in _POSITIONAL and is_workflow_context(init, parameters[0].name, local)
    )
    for parameter in parameters[takes_context:]:
        if parameter.default is parameter.empty and parameter.kind not in _REST:
            raise invalid(
                init,
                f"needs {parameter.name}: an instance is made with ctx or with nothing; "
                "give it a default, or take the value as the input of run",
            )
    return takes_context


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _define_task(
    fn: Any,
    kind: str | None,
    queue: str | None,
    retry: RetryPolicy | None,
    *,
    timeouts: TaskTimeouts | None,
    local: Names,
) -> Any:
    checked = checked_function(fn, "task")
    parameters = parameters_of(checked, "task")
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise invalid(checked, f"has retry={retry!r}: pass a RetryPolicy, as in retry=RetryPolicy(max_attempts=3)")
    wants_context = bool(parameters) and is_task_context(checked, parameters[0].name, local)
    values = parameters[1:] if wants_context else parameters
    definition = TaskDefinition(
        kind=kind_of(checked, kind),
        fn=checked,
        is_async=inspect.iscoroutinefunction(checked),
        wants_context=wants_context,
        parameter_types=tuple(resolved(checked, parameter.name, local) for parameter in values),
        required=sum(parameter.default is parameter.empty for parameter in values),
        result_type=resolved(checked, "return", local),
        queue=None if queue is None else checked_text(checked, "queue", queue),
        retry=retry,
        timeouts=timeouts,
    )
    setattr(checked, TASK, definition)
    return fn
