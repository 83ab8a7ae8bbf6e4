"""APP: what can be named, and what is said when it can't be loaded."""

import sys
from pathlib import Path

import pytest

from holdfast.cli.apps import load_app
from holdfast.errors import InvalidDefinition

TEXT = """
from holdfast import task, workflow

@workflow
async def order(ctx, x=None):
    pass

@task
def pack(item: str) -> str:
    return item

both = [order, pack]
by_name = {"order": order}
number = 7
strange = [order, 7]
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module of this test alone, in the folder the command is run in."""
    name = f"shop_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(TEXT)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / f"{name}_flows.py").write_text(TEXT)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    return name


def kinds(text: str) -> tuple[list[str], list[str]]:
    registry = load_app(text).registry
    return [found.kind for found in registry.workflows], [found.kind for found in registry.tasks]


def test_a_module_gives_all_that_is_decorated_in_it(shop):
    """By name or as a file, in a package or not."""
    assert (["order"], ["pack"]) == kinds(shop)
    assert (["order"], ["pack"]) == kinds(f"{shop}.py")
    assert (["order"], ["pack"]) == kinds(f"package/{shop}_flows.py")


def test_an_attribute_gives_what_it_is_or_holds(shop):
    """A workflow, a task, a list, a mapping."""
    assert (["order"], []) == kinds(f"{shop}:order")
    assert ([], ["pack"]) == kinds(f"{shop}:pack")
    assert (["order"], ["pack"]) == kinds(f"{shop}:both")
    assert (["order"], []) == kinds(f"{shop}:by_name")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere", "there is no module 'nowhere'"),
        ("nowhere.py", "there is no file nowhere.py"),
        ("{shop}:", "is not an app"),
        ("{shop}:missing", "its workflows and tasks: order, pack"),
        ("{shop}:number", "no workflow, task or list of them"),
        ("{shop}:strange", "holds 7"),
        ("json", "has no workflows and no tasks"),
    ],
)
def test_what_can_not_be_found_is_named(shop, name, says):
    """With what there is instead."""
    with pytest.raises(InvalidDefinition, match=says):
        load_app(name.format(shop=shop))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_module_at_all", r"broken_\d+\.py:1: ModuleNotFoundError.*no_such_module_at_all"),
        ("x = 1\nraise RuntimeError('no config')", r"broken_\d+\.py:2: RuntimeError: no config"),
        ("def f(:\n    pass", r"broken_\d+\.py:1: "),
        ("import sys\nsys.exit(3)", "ends the program when it is imported"),
        ("from holdfast import workflow\n\n@workflow\nasync def f():\n    pass", "has no ctx parameter"),
        (TEXT + "\n@workflow(kind='order')\nasync def second(ctx):\n    pass\n", "is defined twice"),
    ],
)
def test_a_module_that_breaks_is_named_with_the_line(shop, text, says):
    """Not with a traceback."""
    name = f"broken_{abs(hash(text))}"
    Path(f"{name}.py").write_text(text)

    with pytest.raises(InvalidDefinition, match=says):
        load_app(name)


def test_the_command_says_it_in_one_line(cli, shop):
    """And ends with 2."""
    assert "there is no module 'nowhere'" in cli.refused("worker", "nowhere", code=2)
    assert "there is no module 'nowhere'" in cli.refused("dev", "nowhere", code=2)
