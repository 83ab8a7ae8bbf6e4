"""The public surface is the table in `holdfast/__init__.py`; what is not in it is nobody's business."""

import ast
import dataclasses
import json
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest

import holdfast

ROOT = Path(__file__).parents[2]
RECORDS = sorted(name for names in holdfast.RECORDS.values() for name in names.split())
CLASSES = [
    name for name in [*holdfast.__all__, *RECORDS] if isinstance(getattr(holdfast, name), type) and name != "Payload"
]
ERRORS = [name for name in CLASSES if issubclass(getattr(holdfast, name), Exception)]


def in_a_fresh_python(code: str) -> object:
    """What the code prints, as JSON, in an interpreter that has imported nothing of ours."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


def test_what_follows_from_the_table_is_up_to_date():
    """Run `make generate` after a change of the table."""
    subprocess.run([sys.executable, "-m", "tools.public_names", "--check"], check=True, cwd=ROOT)


def test_all_is_the_table():
    """`__all__` names exactly what users import and make or catch, sorted, each once."""
    listed = [name for names in holdfast.NAMES.values() for name in names.split()]

    assert sorted(listed) == holdfast.__all__
    assert len(set(listed) | set(RECORDS) | set(holdfast.MODULES)) == len(listed) + len(RECORDS) + len(holdfast.MODULES)


def test_few_names():
    """A name more is a decision: about fifty, the exceptions that users catch, and the records in a module apart."""
    assert (46, 36) >= (len(holdfast.__all__) - len(ERRORS), len(ERRORS))


@pytest.mark.parametrize("name", [*holdfast.__all__, *RECORDS])
def test_every_name_resolves(name):
    """Each name is there, and made by Holdfast."""
    value = getattr(holdfast, name)

    assert name == "Payload" or getattr(value, "__module__", "holdfast").split(".")[0] in {"holdfast", "types"}


@pytest.mark.parametrize("name", RECORDS)
def test_records_are_in_a_module_of_their_own(name):
    """They are attributes of `holdfast` all the same."""
    assert getattr(holdfast, name) is getattr(holdfast.types, name)
    assert name in holdfast.types.__all__
    assert name not in dir(holdfast)


@pytest.mark.parametrize("module", sorted(holdfast.MODULES))
def test_modules_are_attributes(module):
    """`except holdfast.errors.X` works after nothing but `import holdfast`."""
    assert in_a_fresh_python(f"import holdfast, json; print(json.dumps(holdfast.{module}.__name__))")


def test_dir_lists_what_is_public():
    assert sorted([*holdfast.__all__, *holdfast.MODULES, "__version__"]) == dir(holdfast)


def test_version():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert declared == holdfast.__version__


def test_star_import_gives_the_list():
    """`from holdfast import *` loads every listed name and nothing else."""
    code = "import json; from holdfast import *; print(json.dumps(sorted(set(globals()) - {'json'})))"
    found = in_a_fresh_python(code)

    assert isinstance(found, list)
    assert holdfast.__all__ == [name for name in found if not name.startswith("__")]


def test_an_unknown_name_is_an_attribute_error():
    """A name that is not on the list fails as in any other module."""
    with pytest.raises(AttributeError, match="no attribute 'workflows'"):
        _ = holdfast.workflows


# --- where classes say they are from ---


@pytest.mark.parametrize("name", [name for name in CLASSES if name in holdfast.__all__])
def test_classes_are_called_by_their_public_name(name):
    """Except records, whose annotations are read where they stand, and exceptions, whose module is public."""
    value = getattr(holdfast, name)
    record = dataclasses.is_dataclass(value) or issubclass(value, msgspec.Struct)

    assert ("holdfast" == value.__module__) == (not record and name not in ERRORS)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_can_be_pickled_by_their_public_name(name):
    value = getattr(holdfast, name)

    assert value is pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("name", [name for name in CLASSES if getattr(holdfast, name).__annotations__])
def test_annotations_of_records_can_be_read(name):
    """By `typing.get_type_hints`, and by msgspec where they are its structs."""
    value = getattr(holdfast, name)
    hints = get_type_hints(value)

    assert set(value.__annotations__) <= set(hints)
    assert not issubclass(value, msgspec.Struct) or set(value.__struct_fields__) <= set(hints)


# --- light ---


def test_importing_is_light():
    """`import holdfast` loads no event loop, no codec, no metadata and no database driver."""
    code = "import holdfast, json, sys; print(json.dumps(sorted(sys.modules)))"
    loaded = in_a_fresh_python(code)

    assert isinstance(loaded, list)
    assert {"asyncio", "msgspec", "sqlite3", "importlib.metadata"}.isdisjoint(loaded)
    assert ["holdfast"] == [name for name in loaded if name.startswith("holdfast")]


def test_the_decorators_load_no_database():
    """A module of workflows can be imported where there is no database driver at all."""
    code = "import holdfast, json, sys; holdfast.workflow, holdfast.task; print(json.dumps(sorted(sys.modules)))"
    loaded = in_a_fresh_python(code)

    assert isinstance(loaded, list)
    assert "sqlite3" not in loaded


# --- what docs and examples import ---

PUBLIC_MODULES = {"holdfast", "holdfast.testing.pytest_plugin"} | {f"holdfast.{name}" for name in holdfast.MODULES}


def imports_of(path: Path) -> Iterator[str]:
    text = path.read_text()
    programs = [text] if path.suffix == ".py" else re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for program in programs:
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
            elif isinstance(node, ast.Import):
                yield from (name.name for name in node.names)


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.py"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_docs_and_examples_import_what_is_public(path):
    """A page for those who write a front-end is about the inside of the package."""
    if path.name == "writing-a-front-end.md":
        return
    found = {module for module in imports_of(path) if module.partition(".")[0] == "holdfast"}

    assert set() == found - PUBLIC_MODULES
