"""`@workflow` and `@task`: what a function says about itself, read once when it is decorated.

Owns the definitions and the registry of those one worker knows. A decorated function stays the same, callable function;
its definition hangs on it as an attribute. Nothing here runs user code or knows an event loop.

Whatever can't work is refused here, at import time, with the place in the source and the way to put it right.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, TypeVar, get_type_hints, overload

from msgspec.structs import replace

from holdfast.errors import InvalidDefinition, InvalidDuration
from holdfast.model.values import DEFAULT_TIMEOUTS, TEN_YEARS_S, RetryPolicy, TaskTimeouts

F = TypeVar("F", bound=Callable[..., Any])
Duration = float | int | timedelta

_WORKFLOW: Final = "__holdfast_workflow__"
_TASK: Final = "__holdfast_task__"
_ROLES: Final = {_WORKFLOW: "workflow", _TASK: "task"}
_NAME_BYTES: Final = 255


@dataclass(frozen=True, slots=True, eq=False)
class WorkflowDefinition:
    """A workflow kind + version as a Python function. `build` changes with the function's own source text."""

    kind: str
    version: str
    fn: Callable[..., Any]
    is_async: bool
    takes_input: bool
    has_default: bool
    input_type: Any
    result_type: Any
    build: str

    def __str__(self) -> str:
        return f"workflow {self.kind!r} version {self.version!r}"

    @property
    def place(self) -> str:
        """Where it is written, as file:line."""
        return _place(self.fn)


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
    def place(self) -> str:
        """Where it is written, as file:line."""
        return _place(self.fn)


# --- the decorators -----------------------------------------------------------------------------------------------


@overload
def workflow(fn: F, /, *, kind: str | None = None, version: str = "1") -> F: ...
@overload
def workflow(*, kind: str | None = None, version: str = "1") -> Callable[[F], F]: ...
def workflow(fn: Any = None, /, *, kind: str | None = None, version: str = "1") -> Any:
    """Make `async def fn(ctx)` or `async def fn(ctx, input)` a workflow; a plain `def` where it needs no waiting.

    `kind` defaults to the function's name. Types of input and result come from the annotations.
    """
    if fn is None:
        return lambda fn: _define_workflow(fn, kind, version, _caller())
    return _define_workflow(fn, kind, version, _caller())


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
        return lambda fn: _define_task(fn, kind, queue, retry, timeouts=timeouts, frame=_caller())
    return _define_task(fn, kind, queue, retry, timeouts=timeouts, frame=_caller())


def workflow_definition(obj: Any) -> WorkflowDefinition | None:
    """The definition of a function decorated with `@workflow`, None for anything else."""
    definition: WorkflowDefinition | None = _attached(obj, _WORKFLOW)
    return definition


def task_definition(obj: Any) -> TaskDefinition | None:
    """The definition of a function decorated with `@task`, None for anything else."""
    definition: TaskDefinition | None = _attached(obj, _TASK)
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
        name: _time_limit(value, field)
        for name, field, value in (
            ("start_to_close_s", "start_to_close", start_to_close),
            ("schedule_to_close_s", "schedule_to_close", schedule_to_close),
            ("heartbeat_s", "heartbeat_timeout", heartbeat_timeout),
        )
        if value is not None
    }
    return replace(base or DEFAULT_TIMEOUTS, **given) if given else base


def _time_limit(value: Duration, field: str) -> float:
    seconds = duration_s(value, field)
    if not seconds:
        raise InvalidDuration(f"{field} must be more than 0: no attempt could ever finish", field=field, value=value)
    return seconds


# --- the registry -------------------------------------------------------------------------------------------------


class Registry:
    """The workflows and tasks one worker knows. Passing the same function twice is the same as passing it once."""

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

    def workflow(self, kind: str, version: str) -> WorkflowDefinition | None:
        return self._workflows.get((kind, version))

    def task(self, kind: str) -> TaskDefinition | None:
        return self._tasks.get(kind)


K = TypeVar("K")
D = TypeVar("D", WorkflowDefinition, TaskDefinition)


def _add(known: dict[K, D], key: K, definition: D, remedy: str) -> None:
    first = known.setdefault(key, definition)
    if first.fn is not definition.fn:
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
            f"{field}: {_called(fn)} is a {is_a}: pass it in {is_a}s=[...]", field=field, place=other.place
        )
    if isinstance(fn, FunctionType):
        raise InvalidDefinition(f"{field}: {_called(fn)} is not a {wanted}: decorate it with @{wanted}", field=field)
    raise InvalidDefinition(
        f"{field}: {fn!r:.100} is not a {wanted}: pass functions decorated with @{wanted}", field=field
    )


def _attached(obj: Any, attribute: str) -> Any:
    # Only what hangs on the function itself: a class or a mock that answers to every name is no definition.
    found = getattr(obj, "__dict__", {}).get(attribute)
    if found is not None and found.fn is not obj:
        # functools.wraps copies attributes, so the wrapper would be taken for the workflow and never run.
        raise InvalidDefinition(
            f"{_called(obj)} wraps a function that is already decorated: put @{_ROLES[attribute]} on the outside",
            place=found.place,
        )
    return found


# --- reading a function -------------------------------------------------------------------------------------------


def _define_workflow(fn: Any, kind: str | None, version: str, frame: FrameType) -> Any:
    checked = _checked_function(fn, "workflow")
    parameters = _parameters(checked, "workflow")
    if not parameters:
        raise _invalid(checked, "has no ctx parameter: write `async def fn(ctx)` or `async def fn(ctx, input)`")
    if len(parameters) > 2:
        names = ", ".join(parameter.name for parameter in parameters[1:])
        raise _invalid(
            checked, f"takes more than one input ({names}): a workflow takes ctx and one input; use a dataclass"
        )
    context_type = _context_type(checked, parameters[0].name, frame)
    if isinstance(context_type, type) and context_type.__module__ == "builtins" and context_type is not object:
        raise _invalid(
            checked,
            f"has no ctx parameter: its first one, {parameters[0].name}, is annotated {context_type.__name__}; "
            "put ctx before it",
        )
    takes_input = len(parameters) == 2
    definition = WorkflowDefinition(
        kind=_kind(checked, kind),
        version=_text(checked, "version", version),
        fn=checked,
        is_async=inspect.iscoroutinefunction(checked),
        takes_input=takes_input,
        has_default=takes_input and parameters[1].default is not parameters[1].empty,
        input_type=_resolved(checked, parameters[1].name, frame) if takes_input else Any,
        result_type=_resolved(checked, "return", frame),
        build=_build(checked),
    )
    setattr(checked, _WORKFLOW, definition)
    return fn


def _define_task(
    fn: Any,
    kind: str | None,
    queue: str | None,
    retry: RetryPolicy | None,
    *,
    timeouts: TaskTimeouts | None,
    frame: FrameType,
) -> Any:
    checked = _checked_function(fn, "task")
    parameters = _parameters(checked, "task")
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise _invalid(checked, f"has retry={retry!r}: pass a RetryPolicy, as in retry=RetryPolicy(max_attempts=3)")
    wants_context = bool(parameters) and _is_task_context(checked, parameters[0].name, frame)
    values = parameters[1:] if wants_context else parameters
    definition = TaskDefinition(
        kind=_kind(checked, kind),
        fn=checked,
        is_async=inspect.iscoroutinefunction(checked),
        wants_context=wants_context,
        parameter_types=tuple(_resolved(checked, parameter.name, frame) for parameter in values),
        required=sum(parameter.default is parameter.empty for parameter in values),
        result_type=_resolved(checked, "return", frame),
        queue=None if queue is None else _text(checked, "queue", queue),
        retry=retry,
        timeouts=timeouts,
    )
    setattr(checked, _TASK, definition)
    return fn


def _checked_function(fn: Any, role: str) -> FunctionType:
    if isinstance(fn, type):
        raise InvalidDefinition(
            f"@{role} on the class {fn.__qualname__}: a function is needed, `async def fn(...)`", field=role
        )
    if isinstance(fn, str):
        raise InvalidDefinition(f"@{role}({fn!r}): the kind is a keyword, @{role}(kind={fn!r})", field=role)
    if not callable(fn):
        raise InvalidDefinition(f"@{role} on {fn!r:.100}: it is not callable; a function is needed", field=role)
    if not isinstance(fn, FunctionType):
        raise InvalidDefinition(
            f"@{role} on {fn!r:.100}: a function is needed; write a `def` that calls it", field=role
        )
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise _invalid(fn, f"is a generator (it contains `yield`): a {role} returns its result once, with `return`")
    for attribute, known_role in _ROLES.items():
        # Put on the function itself or copied onto a wrapper: either way its decorator came too early or twice.
        if attribute in fn.__dict__:
            raise _invalid(fn, f"is already a {known_role}: decorate it once, on the outside")
    return fn


def _parameters(fn: FunctionType, role: str) -> list[inspect.Parameter]:
    """The positional parameters; refuses those that nothing could ever fill."""
    positional = []
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(parameter)
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            raise _invalid(fn, f"takes {parameter}: a {role} is called with named positions; list its parameters")
        elif parameter.default is parameter.empty:
            raise _invalid(
                fn,
                f"has the keyword-only parameter {parameter.name} without a default: "
                f"a {role} gets positional arguments; give it a default or move it before the `*`",
            )
    return positional


def _kind(fn: FunctionType, kind: str | None) -> str:
    if kind is None and fn.__name__ == "<lambda>":
        raise _invalid(fn, 'has no name of its own: pass kind="..." or write a `def`')
    return _text(fn, "kind", fn.__name__ if kind is None else kind)


def _text(fn: FunctionType, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _invalid(fn, f"has {name}={value!r}: {name} is text, as in {name}={str(value)!r}", field=name)
    if not value or not value.isprintable() or len(value.encode()) > _NAME_BYTES:
        raise _invalid(fn, f"has {name}={value!r:.60}: use 1 to {_NAME_BYTES} bytes of printable text", field=name)
    return value


def _build(fn: FunctionType) -> str:
    """Twelve hex digits of the source text, or of the compiled code where there is no source (REPL, frozen apps)."""
    import hashlib  # noqa: PLC0415 - brings OpenSSL with it, which a program without workflows need not load

    try:
        content = inspect.getsource(fn)
    except (OSError, TypeError, SyntaxError, IndexError):
        content = repr(_code_content(fn.__code__))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _code_content(part: Any) -> Any:
    """What a code object does, without addresses, line numbers or anything in hash order."""
    if isinstance(part, CodeType):
        return part.co_code.hex(), part.co_names, part.co_varnames, tuple(map(_code_content, part.co_consts))
    if isinstance(part, tuple):
        return tuple(map(_code_content, part))
    if isinstance(part, frozenset):
        return sorted(repr(_code_content(item)) for item in part)
    return part


def _caller() -> FrameType:
    """The frame in which the decorator is applied: where a name that is not global may be found."""
    return sys._getframe(2)  # noqa: SLF001 - inspect.currentframe is the same with an Optional around it


# --- annotations --------------------------------------------------------------------------------------------------


def _annotation(fn: FunctionType, name: str) -> Any:
    return fn.__annotations__.get(name, Any)


def _resolved(fn: FunctionType, name: str, frame: FrameType) -> Any:
    """One annotation as a type. One by one, because ctx is often annotated with a name that only type checkers see."""
    if name not in fn.__annotations__:
        return Any
    holder = type("_", (), {"__annotations__": {name: fn.__annotations__[name]}})
    scope = _scope(fn)
    try:
        return get_type_hints(holder, scope, {}, include_extras=True)[name]
    except Exception:  # noqa: BLE001 - an annotation is any expression; the second attempt reports what is wrong with it
        # Perhaps a class written inside the same function as the workflow, as tests do.
        local = dict(frame.f_locals)
    try:
        return get_type_hints(holder, scope, local, include_extras=True)[name]
    except Exception as error:
        what = "its result" if name == "return" else f"the parameter {name}"
        raise _invalid(
            fn,
            f"annotates {what} as {_annotation(fn, name)!r}, which can't be resolved ({error}): "
            "import the name at run time, not only for type checkers, or correct it",
            field=name,
        ) from error


def _scope(fn: Any) -> dict[str, Any]:
    while hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__  # annotations were written where the innermost function was
    return dict(fn.__globals__)


def _context_type(fn: FunctionType, name: str, frame: FrameType) -> Any:
    try:
        return _resolved(fn, name, frame)
    except InvalidDefinition:
        return Any  # known to type checkers only, which is enough


def _is_task_context(fn: FunctionType, name: str, frame: FrameType) -> bool:
    annotation = _annotation(fn, name)
    if isinstance(annotation, str) and annotation.strip("'\" ").rpartition(".")[2] == "TaskContext":
        return True
    return getattr(_resolved(fn, name, frame), "__holdfast_task_context__", False) is True


# --- words --------------------------------------------------------------------------------------------------------


def _invalid(fn: FunctionType, problem: str, *, field: str = "") -> InvalidDefinition:
    return InvalidDefinition(f"{_called(fn)} {problem}", field=field, place=_place(fn))


def _called(fn: Any) -> str:
    return f"{getattr(fn, '__qualname__', fn)} ({_place(fn)})"


def _place(fn: Any) -> str:
    code = getattr(fn, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else "unknown place"
