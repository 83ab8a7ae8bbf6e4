"""What the README and the docs say is run, or compared with the code."""

import ast
import dataclasses
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from holdfast import config, errors
from holdfast.model.events import EVENT_TYPES, TurnEvent

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
NAMED = re.compile(r"`(?P<file>[a-z_/]+\.py)(?:: (?P<name>[A-Za-z_.]+))?`")
CODES_WITHOUT_CLASS = {
    "worker_crashes",
    "internal_error",
    "worker_lost",
    "start_to_close_timeout",
    "schedule_to_close_timeout",
    "heartbeat_timeout",
}


class Block(NamedTuple):
    line: int
    info: str
    code: str


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found = FENCE.finditer(text)
    return [Block(text.count("\n", 0, match.start("code")) + 1, match["info"], match["code"]) for match in found]


def _runnable(page: Path) -> list[Block]:
    return [block for block in _blocks(page) if block.info == "python"]


def _prose(page: Path) -> str:
    return FENCE.sub("", page.read_text("utf-8"))


# --- examples -----------------------------------------------------------------------------------------------------


@pytest.mark.sqlite_only("the examples name their databases themselves")
@pytest.mark.parametrize("page", [page for page in PAGES if _runnable(page)], ids=_name)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    """A page's blocks, one after another in one namespace, are a program without errors or warnings."""
    script = tmp_path / "page.py"
    script.write_text(_as_script(page), "utf-8")
    monkeypatch.chdir(tmp_path)

    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.sqlite_only("the examples name their databases themselves")
def test_the_first_example_of_the_readme_greets(tmp_path, monkeypatch, capsys):
    """The smallest complete program prints what a reader expects."""
    script = tmp_path / "hello.py"
    script.write_text(_runnable(ROOT / "README.md")[0].code, "utf-8")
    monkeypatch.chdir(tmp_path)

    runpy.run_path(str(script), run_name="__main__")

    assert "Hello, world!\n" == capsys.readouterr().out


def test_a_block_that_is_not_run_says_why():
    """`python no-run` carries its reason, and is Python all the same."""
    for page in PAGES:
        for block in _blocks(page):
            if block.info.startswith("python") and block.info != "python":
                assert re.fullmatch(r"python no-run: .+", block.info), f"{_name(page)}:{block.line} {block.info}"
                ast.parse(block.code)


def _as_script(page: Path) -> str:
    """The blocks at the lines they have on the page, so that a traceback names the page's line."""
    lines: list[str] = []
    for block in _runnable(page):
        lines += [""] * (block.line - 1 - len(lines))
        lines += block.code.splitlines()
    return "\n".join(lines) + "\n"


# --- links and names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_between_pages_resolve(page):
    """A link to a file of the project leads to a file, one with an anchor to a heading."""
    broken = []
    for match in LINK.finditer(_prose(page)):
        target, _, anchor = match["target"].partition("#")
        if target.startswith(("http://", "https://")):
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in _anchors(path)):
            broken.append(match["target"])

    assert [] == broken


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_files_and_names_in_the_text_exist(page):
    """`engine/rules/leases.py: grant` is a file of the package and a name in it."""
    missing = []
    for match in NAMED.finditer(_prose(page)):
        path = _found(match["file"])
        if not path.exists() or (match["name"] and match["name"] not in _names(path)):
            missing.append(match[0])

    assert [] == missing


def _found(name: str) -> Path:
    """A file of the package, or one of the repository by its path from the root."""
    return ROOT / name if (ROOT / name).exists() else SOURCE / name


def test_every_page_is_reached_from_the_readme():
    """Nothing is written that nobody finds."""
    linked = {LINK_.partition("#")[0] for LINK_ in _targets(ROOT / "README.md")}

    assert [] == [_name(page) for page in PAGES[1:] if _name(page) not in linked]


def test_the_readme_lists_the_commands_of_make():
    """The table repeats `make help`, target by target."""
    targets = re.findall(r"^([a-z]+):.*?## (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)

    assert targets == re.findall(r"^\| `make ([a-z]+)` \| (.+?) \|$", _prose(ROOT / "README.md"), re.MULTILINE)


def _targets(page: Path) -> Iterator[str]:
    return (match["target"] for match in LINK.finditer(_prose(page)))


def _anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _names(path: Path) -> set[str]:
    """What a module defines: functions, classes with their methods and fields, constants."""
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        found.update(_defined(node))
        if isinstance(node, ast.ClassDef):
            found.update(f"{node.name}.{name}" for member in node.body for name in _defined(member))
    return found


def _defined(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))


# --- reference ----------------------------------------------------------------------------------------------------


def test_events_page_has_every_event_with_its_fields():
    """Types, who writes them and their fields are those of the code."""
    expected = {
        name: (issubclass(cls, TurnEvent), [field.name for field in msgspec.structs.fields(cls)])
        for name, cls in EVENT_TYPES.items()
    }

    assert expected == {name: (by_worker, fields) for name, by_worker, fields in _documented_events()}


def _documented_events() -> Iterator[tuple[str, bool, list[str]]]:
    engine, _, worker = _prose(ROOT / "docs" / "events.md").partition("\n## Written by the worker\n")
    for part, by_worker in ((engine, False), (worker, True)):
        for section in part.split("\n### ")[1:]:
            yield section.partition("\n")[0], by_worker, re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_errors_page_has_every_code_with_its_class():
    """Every exception of the tree is there once, under its code."""
    rows = re.findall(r"^\| `(\w+)` \| \*?(\w+)\*? \|", _prose(ROOT / "docs" / "errors.md"), re.MULTILINE)

    assert sorted((cls.code, cls.__name__) for cls in _error_classes()) == sorted(rows)


def test_errors_page_has_the_codes_without_a_class():
    """Codes of stuck executions and failed attempts that no exception carries."""
    _, _, section = _prose(ROOT / "docs" / "errors.md").partition("\n## Codes without a class\n")
    written = set(re.findall(r"^\| `(\w+)` \| `", section, re.MULTILINE))
    in_code = {
        code
        for path in SOURCE.rglob("*.py")
        if "testing" not in path.parts
        for code in re.findall(r'(?:Failure|StuckReason)\([^)]*?code="(\w+)"', path.read_text("utf-8"))
    }

    assert CODES_WITHOUT_CLASS == written
    assert in_code <= written


def test_errors_page_names_the_exceptions_without_a_code():
    """Control flow and the verdict users raise are explained as well."""
    text = _prose(ROOT / "docs" / "errors.md")
    others = [
        name
        for name, cls in vars(errors).items()
        if isinstance(cls, type) and issubclass(cls, BaseException) and not issubclass(cls, errors.HoldfastError)
    ]

    assert others
    assert [] == [name for name in others if f"`{name}`" not in text]


def _error_classes() -> list[type[errors.HoldfastError]]:
    return [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.HoldfastError)]


@pytest.mark.parametrize(
    "cls", [config.EngineConfig, config.Limits, config.StoreConfig, config.WorkerConfig, config.TelemetryConfig]
)
def test_settings_page_has_every_setting_with_its_default(cls):
    """Names, order and defaults are those of the code."""
    _, _, rest = _prose(ROOT / "docs" / "settings.md").partition(f"\n## {cls.__name__}\n")
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \|", rest.partition("\n## ")[0], re.MULTILINE)

    assert [(field.name, _shown(field)) for field in dataclasses.fields(cls)] == rows


def test_settings_page_has_every_record():
    """A new record of settings needs a section."""
    records = [name for name, cls in vars(config).items() if dataclasses.is_dataclass(cls)]

    assert sorted(records) == sorted(re.findall(r"^## (\w+)$", _prose(ROOT / "docs" / "settings.md"), re.MULTILINE))


def _shown(field: dataclasses.Field) -> str:
    if field.default is dataclasses.MISSING:
        return f"{field.type}()"  # a record of its own, annotated as text
    return repr(field.default)


def test_glossary_rows_are_unique():
    """One word, one meaning."""
    words = re.findall(r"^\| ([^|`]+?|`\w+`) \|", _prose(ROOT / "docs" / "glossary.md"), re.MULTILINE)

    assert words
    assert sorted(set(words)) == sorted(words)


def test_the_readme_keeps_a_place_for_figures():
    """`make bench` results go between these two marks."""
    text = (ROOT / "README.md").read_text("utf-8")

    assert 1 == text.count("<!-- figures -->")
    assert text.index("<!-- figures -->") < text.index("<!-- /figures -->")


def test_the_readme_names_the_oldest_supported_python():
    """The page promises what the package demands."""
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert "Python 3.11 or newer" in (ROOT / "README.md").read_text("utf-8")
