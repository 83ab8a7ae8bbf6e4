"""Finds the workflows and tasks of an application: `module:attribute`, a module, or a file.

Of a module everything is taken that is decorated there or imported into it; of an attribute what it is, or what it
holds. Whatever goes wrong is said with the place where it did.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast.errors import HoldfastError, InvalidDefinition
from holdfast.replay.definition import definition_of, task_definition
from holdfast.replay.registry import Registry

_FIELD = "app"


@dataclass(frozen=True, slots=True)
class App:
    """What an application has to run."""

    name: str
    workflows: tuple[Callable[..., Any], ...]
    tasks: tuple[Callable[..., Any], ...]

    @property
    def registry(self) -> Registry:
        return Registry(self.workflows, self.tasks)


def load_app(text: str) -> App:
    """Import an application. Raises InvalidDefinition that says why it can't be."""
    name, colon, attribute = text.partition(":")
    if not name or (colon and not attribute):
        raise InvalidDefinition(f"{text!r} is not an app: use module, module:attribute or file.py", field=_FIELD)
    module = _imported(name)
    found = _attribute(module, attribute) if attribute else module
    items = list(_items(found, text))
    workflows = tuple({id(item): item for item in items if definition_of(item) is not None}.values())
    tasks = tuple({id(item): item for item in items if task_definition(item) is not None}.values())
    if not workflows and not tasks:
        raise InvalidDefinition(
            f"{text} has no workflows and no tasks: decorate functions with @workflow and @task, or name the module "
            "that has them",
            field=_FIELD,
        )
    app = App(text, workflows, tasks)
    _ = app.registry  # two of one kind are refused here, with both places
    return app


def _imported(name: str) -> ModuleType:
    module = _from_file(name) if name.endswith(".py") or "/" in name else name
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise InvalidDefinition(
                f"there is no module {error.name!r}: looked in {here} and where Python looks; "
                "go to the folder that has it, or set PYTHONPATH",
                field=_FIELD,
            ) from error
        raise _failed(module, error) from error
    except HoldfastError as error:  # a definition that was refused says where it is
        raise InvalidDefinition(f"{module} can't be imported: {error.message}", field=_FIELD) from error
    except SyntaxError as error:
        place = f"{error.filename}:{error.lineno}"
        raise InvalidDefinition(f"{module} can't be imported: {place}: {error.msg}", field=_FIELD) from error
    except Exception as error:  # somebody's module may raise anything
        raise _failed(module, error) from error
    except SystemExit as error:
        raise InvalidDefinition(
            f"{module} ends the program when it is imported: put that behind `if __name__ == '__main__':`",
            field=_FIELD,
        ) from error


def _from_file(name: str) -> str:
    path = Path(name)
    if not path.is_file():
        raise InvalidDefinition(f"there is no file {name}", field=_FIELD)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return path.stem


def _failed(module: str, error: Exception) -> InvalidDefinition:
    """With the line that raised: the last one that is no import machinery."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    place = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    return InvalidDefinition(
        f"{module} can't be imported: {place}{type(error).__name__}: {error} (--debug shows the traceback)",
        field=_FIELD,
    )


def _attribute(module: ModuleType, path: str) -> Any:
    found: Any = module
    for name in path.split("."):
        if not hasattr(found, name):
            here = ", ".join(_decorated(module)) or "none"
            raise InvalidDefinition(
                f"{module.__name__} has no attribute {path!r}; its workflows and tasks: {here}", field=_FIELD
            )
        found = getattr(found, name)
    return found


def _decorated(module: ModuleType) -> list[str]:
    return sorted(name for name, item in vars(module).items() if _is_definition(item))


def _is_definition(item: Any) -> bool:
    return definition_of(item) is not None or task_definition(item) is not None


def _items(found: Any, text: str) -> Iterable[Any]:
    if isinstance(found, ModuleType):
        return [item for item in vars(found).values() if _is_definition(item)]
    if _is_definition(found):
        return [found]
    if isinstance(found, Iterable) and not isinstance(found, str | bytes | type):
        items = list(found.values() if isinstance(found, dict) else found)
        strange = next((item for item in items if not _is_definition(item)), None)
        if strange is None:
            return items
        raise InvalidDefinition(
            f"{text} holds {strange!r:.80}, which is neither a workflow nor a task: decorate it", field=_FIELD
        )
    raise InvalidDefinition(
        f"{text} is {type(found).__name__} and no workflow, task or list of them: name one, or the module that has "
        "them",
        field=_FIELD,
    )
