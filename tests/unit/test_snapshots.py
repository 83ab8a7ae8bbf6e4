"""What others can see of Holdfast changes only on purpose: tests/snapshots is what they see now."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.api.rest.openapi import openapi
from tools import snapshots
from tools.snapshots import FOLDER, POSTGRES_SCHEMA, SNAPSHOTS
from tools.snapshots.schemas import postgres_schema

ROOT = Path(__file__).parents[2]

WITHOUT_RICH = """
import sys
sys.modules["rich"] = None
from tools.snapshots.command_help import command_help
import json
print(json.dumps(command_help()))
"""


@pytest.mark.parametrize("part", SNAPSHOTS)
def test_what_others_see_is_as_before(part):
    """Every difference is shown; whoever means it writes the snapshot anew."""
    differences = [snapshots.difference(name, text) for name, text in SNAPSHOTS[part]().items()]
    found = "\n\n".join(filter(None, differences))

    assert not found, f"\n{found}"


def test_the_tables_of_postgresql_are_as_before(migrated_databases):
    """Columns, keys and indexes, after all migrations."""
    with migrated_databases.one() as url:
        found = snapshots.difference(POSTGRES_SCHEMA, postgres_schema(url))

    assert not found, f"\n{found}"


def test_no_snapshot_is_left_over():
    """A file that nothing is compared with would promise what nobody holds."""
    made = {name for make in SNAPSHOTS.values() for name in make()}
    kept = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}

    assert made | {POSTGRES_SCHEMA} == kept


def test_the_parts_of_the_rest_description_are_the_whole():
    """Split for readers, it still says everything that the server says."""
    parts = {path.stem: json.loads(path.read_text("utf-8")) for path in (FOLDER / "openapi").iterdir()}
    whole: dict[str, Any] = parts.pop("document")
    whole["components"]["schemas"] = parts.pop("schemas")
    whole["paths"] = {}
    for paths in parts.values():
        for path, methods in paths.items():
            whole["paths"].setdefault(path, {}).update(methods)
    expected = json.loads(json.dumps(openapi()))
    expected["info"]["version"] = "any"

    assert expected == whole


def test_help_is_the_same_without_rich():
    """Rich draws tables; what a command is for is plain text."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_RICH], capture_output=True, check=True, text=True, cwd=ROOT)

    assert json.loads(done.stdout) == SNAPSHOTS["command help"]()


def test_a_difference_says_what_and_how_to_renew(tmp_path, monkeypatch):
    """A reader sees the changed lines and the one command that accepts them."""
    monkeypatch.setattr(snapshots, "FOLDER", tmp_path)
    (tmp_path / "x.txt").write_text("same\nold\n", "utf-8")

    assert "" == snapshots.difference("x.txt", "same\nold\n")
    found = snapshots.difference("x.txt", "same\nnew\n").splitlines()

    assert {"-old", "+new", "--- tests/snapshots/x.txt", "+++ the code"} <= set(found)
    assert "make generate" in found[-1]
