"""The definitions that one worker knows, of all front-ends together."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any, TypeVar

from holdfast.errors import InvalidDefinition
from holdfast.model.standalone import is_reserved
from holdfast.replay.definition import Definition, TaskDefinition, called, definition_of, task_definition

K = TypeVar("K")
D = TypeVar("D", Definition, TaskDefinition)


class Registry:
    """The workflows and tasks one worker knows: definitions, or what they hang on. Passing the same one twice is the
    same as passing it once.

    With tasks comes the built-in workflow that runs one on its own: it is no part of `workflows`.
    """

    __slots__ = ("_tasks", "_workflows")

    def __init__(self, workflows: Iterable[Any] = (), tasks: Iterable[Any] = ()) -> None:
        self._workflows: dict[tuple[str, str], Definition] = {}
        self._tasks: dict[str, TaskDefinition] = {}
        for given in workflows:
            found = definition_of(given) or _refuse_undecorated(given, "workflow", task_definition(given))
            _add(self._workflows, (found.kind, found.version), found, "kind or version")
        for given in tasks:
            known = task_definition(given) or _refuse_undecorated(given, "task", definition_of(given))
            _add(self._tasks, known.kind, known, "kind")

    @property
    def workflows(self) -> tuple[Definition, ...]:
        return tuple(self._workflows.values())

    @property
    def tasks(self) -> tuple[TaskDefinition, ...]:
        return tuple(self._tasks.values())

    @property
    def builds(self) -> dict[tuple[str, str], str]:
        """The build of every kind and version that can be run here."""
        return {(found.kind, found.version): found.build for found in (*self.workflows, *self._built_in())}

    def _built_in(self) -> tuple[Definition, ...]:
        return tuple({id(found): found for found in (task.standalone() for task in self.tasks)}.values())

    def workflow(self, kind: str, version: str) -> Definition | None:
        known = self._workflows.get((kind, version))
        if known is not None or not is_reserved(kind):
            return known
        return next((found for found in self._built_in() if (found.kind, found.version) == (kind, version)), None)

    def task(self, kind: str) -> TaskDefinition | None:
        return self._tasks.get(kind)


def _add(known: dict[K, D], key: K, definition: D, remedy: str) -> None:
    first = known.setdefault(key, definition)
    if first.target is not definition.target:
        raise InvalidDefinition(
            f"{definition} is defined twice: at {first.place} and at {definition.place}; "
            f"give one of them another {remedy}",
            field="kind",
            places=(first.place, definition.place),
        )


def _refuse_undecorated(fn: Any, wanted: str, other: Definition | TaskDefinition | None) -> Any:
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
