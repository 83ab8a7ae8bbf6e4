"""Facts about the source itself: what every file must be, whatever it does."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "holdfast"

MAX_LINES = 600
EXECUTABLE_FORMATS = {"cloudpickle", "dill", "jsonpickle", "marshal", "pickle", "shelve", "yaml"}
EXECUTING_BUILTINS = {"eval", "exec"}
# In two pieces, because this file is read like any other.
REGISTRY_HOSTS = [b"pypi" + b".org", b"python" + b"hosted.org", b"npmjs" + b".org", b"npmjs" + b".com"]


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed, by its path from the root."""
    return {_from_root(path): ast.parse(path.read_text("utf-8")) for path in _sources()}


def test_every_module_opens_with_a_docstring(modules):
    """A reader learns what a module owns from its first lines."""
    assert [] == [name for name, tree in modules.items() if not ast.get_docstring(tree)]


def test_no_module_imports_a_format_that_can_carry_code(modules):
    """Values from outside are read as data: no format is loaded that could run something."""
    assert [] == [
        f"{name}:{line} imports {imported}"
        for name, tree in modules.items()
        for line, imported in _imports(tree)
        if imported.partition(".")[0] in EXECUTABLE_FORMATS
    ]


def test_no_module_calls_eval_or_exec(modules):
    """Text from outside is never run as Python."""
    assert [] == [
        f"{name}:{node.lineno} calls {called}"
        for name, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (called := _builtin_name(node.func)) in EXECUTING_BUILTINS
    ]


def test_no_module_is_longer_than_600_lines():
    """A module that needs more is two modules; only the list of all exceptions is one on purpose."""
    lengths = {_from_root(path): len(path.read_text("utf-8").splitlines()) for path in _sources()}
    del lengths["src/holdfast/errors.py"]

    assert {} == {name: length for name, length in lengths.items() if length > MAX_LINES}


def test_the_package_says_that_it_is_typed():
    """Without py.typed, type checkers ignore every annotation at a user's."""
    assert (PACKAGE / "py.typed").is_file()


def test_no_file_names_a_package_registry():
    """Where packages come from is the installing machine's business, not the project's."""
    assert [] == [
        f"{_from_root(path)} names {host.decode()}"
        for path in _project_files()
        for host in REGISTRY_HOSTS
        if host in path.read_bytes()
    ]


def _sources() -> list[Path]:
    sources = sorted(PACKAGE.rglob("*.py"))
    assert sources, f"no source under {PACKAGE}: these tests would prove nothing"
    return sources


def _project_files() -> list[Path]:
    """What git tracks or would track next."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("without git nobody knows which files belong to the project")
    paths = [ROOT / name.decode() for name in listing.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file()]


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""


def _builtin_name(called: ast.expr) -> str:
    """The name of the builtin a call reaches: `eval(…)` and `builtins.eval(…)`, but not `rule.eval(…)`."""
    match called:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="builtins"), attr=name):
            return name
    return ""


def _from_root(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
