"""What a worker can run and a client can name: the definitions of workflows and tasks, whatever front-end made them.

A front-end derives its own definition from `Definition` and either gives it to users as it is or hangs it on what they
have written (`attach`): worker and client find it there by `definition_of` and need not know the front-end. Nothing
here runs user code, and nothing heavy is imported: every program that defines a workflow loads this module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from holdfast.errors import InvalidDefinition
from holdfast.model.values import RetryPolicy, TaskTimeouts

if TYPE_CHECKING:
    from holdfast.replay.machine import Machine
    from holdfast.replay.program import Program

WORKFLOW: Final = "__holdfast_workflow__"
TASK: Final = "__holdfast_task__"
HANDLER: Final = "__holdfast_handler__"
ROLES: Final = {WORKFLOW: "workflow", TASK: "task", HANDLER: "handler"}
"""Under which attribute a front-end keeps a definition on what a user has written, and what that is then called."""


class EventStart(Protocol):
    """Events of a key start a workflow, if they satisfy the filter; on `queue`, or on the worker's first one."""

    @property
    def key(self) -> str: ...

    @property
    def where(self) -> str | None: ...

    @property
    def queue(self) -> str | None: ...


class ProgramEnvironment(msgspec.Struct, frozen=True):
    """What a program is told of its execution besides its history. `token_key` gives the key from which the tokens of
    an execution's promises are made; see model.tokens."""

    org: str
    execution_id: str
    token_key: Callable[[str], bytes]
    propagate_child_failures: bool = True


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Definition(ABC):
    """A workflow kind + version. `build` must change whenever the same history could lead to other commands.

    `result_type` is what the client reads a result as. `snapshots` says that its programs may give snapshots of their
    state: only then is one looked for before a program is rebuilt.
    """

    kind: str
    version: str
    build: str
    result_type: Any = Any
    execution_timeout_s: float | None = None
    triggers: Sequence[EventStart] = ()
    snapshots: bool = False

    def __str__(self) -> str:
        return f"workflow {self.kind!r} version {self.version!r}"

    @property
    def target(self) -> Any:
        """What a user has written: two definitions of one target are the same."""
        return self

    @property
    def place(self) -> str:
        """Where it is written, for people."""
        return "unknown place"

    @abstractmethod
    def make_program(self, machine: Machine, environment: ProgramEnvironment) -> Program:
        """A program of this kind that has seen nothing yet."""

    def program_maker(self, environment: ProgramEnvironment) -> Callable[[Machine], Program]:
        return lambda machine: self.make_program(machine, environment)


AnyWorkflow = Callable[..., Any] | Definition
"""A workflow as a user may give it: what its definition hangs on, or the definition itself."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskDefinition:
    """A task kind as a Python function. `parameter_types` leaves out the context; `required` have no default.

    `standalone` gives the workflow that runs one such task on its own: see model.standalone.
    """

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
    standalone: Callable[[], Definition]

    def __str__(self) -> str:
        return f"task {self.kind!r}"

    @property
    def target(self) -> Any:
        return self.fn

    @property
    def place(self) -> str:
        """Where it is written, as file:line."""
        return place_of(self.fn)


class HandlerDefinition(Protocol):
    """What a client needs of a handler that it is given in the place of a name. `role`: signal, query or update."""

    @property
    def role(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def answer_type(self) -> Any: ...


# --- on what users have written -------------------------------------------------------------------------------------


def attach(target: Any, definition: Definition | TaskDefinition) -> None:
    """Hang a definition on what a user has written, where worker and client look for it."""
    setattr(target, WORKFLOW if isinstance(definition, Definition) else TASK, definition)


def definition_of(obj: Any) -> Definition | None:
    """The definition that hangs on a function or class, or the definition itself; None for anything else."""
    if isinstance(obj, Definition):
        return obj
    definition: Definition | None = _attached(obj, WORKFLOW)
    return definition


def task_definition(obj: Any) -> TaskDefinition | None:
    """The definition of a function decorated with `@task`, None for anything else."""
    definition: TaskDefinition | None = _attached(obj, TASK)
    return definition


def handler_definition(obj: Any) -> HandlerDefinition | None:
    """What a handler's decorator has noted on this function or method, if one has."""
    definition: HandlerDefinition | None = _own(getattr(obj, "__func__", obj), HANDLER)
    return definition


def _attached(obj: Any, attribute: str) -> Any:
    found = _own(obj, attribute)
    if found is not None and found.target is not obj:
        # functools.wraps copies attributes, so the wrapper would be taken for the workflow and never run.
        raise InvalidDefinition(
            f"{called(obj)} wraps a function that is already decorated: put @{ROLES[attribute]} on the outside",
            place=found.place,
        )
    return found


def _own(obj: Any, attribute: str) -> Any:
    """Only what hangs on the object itself: a class or a mock that answers to every name is no definition."""
    return getattr(obj, "__dict__", {}).get(attribute)


# --- words ----------------------------------------------------------------------------------------------------------


def called(fn: Any) -> str:
    return f"{getattr(fn, '__qualname__', fn)} ({place_of(fn)})"


def place_of(obj: Any) -> str:
    """Where it is written, as file:line. That of a class is its first function's: classes do not keep their own."""
    first = next(filter(_is_written, functions_of(obj)), None) if isinstance(obj, type) else obj
    code = getattr(first, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else "unknown place"


def functions_of(cls: type[Any]) -> list[FunctionType]:
    """The functions written in this class itself."""
    members = (getattr(member, "__func__", member) for member in vars(cls).values())
    return [member for member in members if isinstance(member, FunctionType)]


def _is_written(fn: FunctionType) -> bool:
    """And not made by a decorator such as @dataclass."""
    return not fn.__code__.co_filename.startswith("<")
