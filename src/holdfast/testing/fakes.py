"""Bodies that a test puts in the place of the real ones, for tasks by kind and for steps by function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from holdfast.errors import InvalidRequest
from holdfast.frontends.python.definitions import Registry, TaskDefinition, task_definition
from holdfast.frontends.python.task_context import TaskContext
from holdfast.model.validation import check_name

UNSET: Any = object()
MOST_ARGUMENTS = 64


class Fake:
    """One stand-in. `calls` has the arguments of every call, in order."""

    def __init__(self, answer: Callable[..., Any], *, times: int | None, wants_context: bool) -> None:
        self._answer = answer
        self._times = times
        self._wants_context = wants_context
        self.calls: list[tuple[Any, ...]] = []

    @property
    def used_up(self) -> bool:
        return self._times is not None and len(self.calls) >= self._times

    async def call(self, context: TaskContext | None, args: tuple[Any, ...]) -> Any:
        self.calls.append(args)
        answer = self._answer(context, *args) if self._wants_context else self._answer(*args)
        return await answer if inspect.isawaitable(answer) else answer


def make_fake(result: Any, error: Any, fn: Callable[..., Any] | None, times: int | None) -> Fake:
    """Exactly one of `result`, `error` and `fn` says what the stand-in does."""
    if sum(given is not UNSET for given in (result, error)) + (fn is not None) != 1:
        raise InvalidRequest("give one of result=, error= and fn=: what the fake does", field="fake")
    if times is not None and (type(times) is not int or times < 1):
        raise InvalidRequest(f"times must be a whole number of at least 1, not {times!r:.50}", field="times")
    if fn is not None:
        if not callable(fn):
            raise InvalidRequest(f"fn must be a function, not {type(fn).__name__}", field="fn")
        return Fake(fn, times=times, wants_context=_wants_context(fn))
    if error is not UNSET:
        return Fake(_raising(checked_error(error)), times=times, wants_context=False)
    return Fake(lambda *_: result, times=times, wants_context=False)


def checked_error(error: Any) -> BaseException:
    """An exception as somebody may give it: itself, or its class."""
    made = error() if isinstance(error, type) and issubclass(error, BaseException) else error
    if not isinstance(made, BaseException):
        raise InvalidRequest(f"error must be an exception, not {error!r:.50}", field="error")
    return made


def _raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail


def _wants_context(fn: Callable[..., Any]) -> bool:
    try:
        first = next(iter(inspect.signature(fn).parameters.values()), None)
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    note = first.annotation if first is not None else None
    if isinstance(note, str):
        return note.strip("'\" ").rpartition(".")[2] == "TaskContext"
    return getattr(note, "__holdfast_task_context__", False) is True


class FakeableRegistry(Registry):
    """A registry whose bodies can be replaced. The newest fake counts until it is used up."""

    __slots__ = ("_stand_ins", "_steps")

    def __init__(self, workflows: Iterable[Callable[..., Any]] = (), tasks: Iterable[Callable[..., Any]] = ()) -> None:
        super().__init__(workflows, tasks)
        self._stand_ins: dict[str, list[Fake]] = {}
        self._steps: list[tuple[Callable[..., Any], list[Fake]]] = []

    def fake(self, target: Callable[..., Any] | str, fake: Fake) -> str | None:
        """Put it in place. The task kind it stands for, if that is not among the registered ones."""
        definition = None if isinstance(target, str) else task_definition(target)
        if definition is None and not isinstance(target, str):
            self._fake_step(target, fake)
            return None
        kind = definition.kind if definition is not None else str(target)
        check_name(kind, "task")
        self._stand_ins.setdefault(kind, []).append(fake)
        if definition is not None:
            self._fake_step(definition.fn, fake)
        if kind in self._tasks:
            return None
        self._tasks[kind] = definition or _any_task(kind)
        return kind

    def only(self, kind: str) -> Registry:
        """This registry, as a worker sees it that runs one kind of task and nothing else."""
        return _OneTask(self, kind)

    def _fake_step(self, fn: Any, fake: Fake) -> None:
        if not callable(fn):
            raise InvalidRequest(
                f"a fake stands for a task, a task kind or a step's function, not {type(fn).__name__}", field="task"
            )
        for known, fakes in self._steps:
            if known == fn:
                fakes.append(fake)
                return
        self._steps.append((fn, [fake]))

    def task(self, kind: str) -> TaskDefinition | None:
        definition = super().task(kind)
        fake = _newest(self._stand_ins.get(kind, []))
        if definition is None or fake is None:
            return definition

        async def body(context: TaskContext, *args: Any) -> Any:
            return await fake.call(context, args)

        return replace(definition, fn=body, is_async=True, wants_context=True)

    def step_body(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        fakes = next((fakes for known, fakes in self._steps if known == fn), [])
        if _newest(fakes) is None:
            return fn

        async def body(*args: Any) -> Any:
            # Looked for again at each attempt: a fake that fails twice gives way to the next on the third.
            fake = _newest(fakes)
            if fake is not None:
                return await fake.call(None, args)
            answer = fn(*args)
            return await answer if inspect.isawaitable(answer) else answer

        return body


class _OneTask(Registry):
    __slots__ = ("_all", "_kind")

    def __init__(self, everything: FakeableRegistry, kind: str) -> None:
        super().__init__()
        self._all = everything
        self._kind = kind

    @property
    def tasks(self) -> tuple[TaskDefinition, ...]:
        found = self._all.task(self._kind)
        return () if found is None else (found,)

    def task(self, kind: str) -> TaskDefinition | None:
        return self._all.task(kind)


def _newest(fakes: list[Fake]) -> Fake | None:
    return next((fake for fake in reversed(fakes) if not fake.used_up), None)


def _any_task(kind: str) -> TaskDefinition:
    """A task nobody has described: any arguments, any result."""

    async def unknown(*_: Any) -> Any:
        raise InvalidRequest(f"every fake of task {kind!r} is used up, and there is no real body here", field="task")

    return TaskDefinition(
        kind=kind,
        fn=unknown,
        is_async=True,
        wants_context=False,
        parameter_types=(Any,) * MOST_ARGUMENTS,
        required=0,
        result_type=Any,
        queue=None,
        retry=None,
        timeouts=None,
    )
