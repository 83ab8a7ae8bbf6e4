"""`holdfast migrate`: what it prints, what it changes, how it ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.main import COMMANDS, main
from holdfast.config import StoreConfig
from holdfast.errors import SchemaTooOld
from holdfast.store.postgres import migrate as postgres
from holdfast.store.sqlite import migrate as sqlite
from holdfast.store.sqlite.connections import Database


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'app.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def names(url: str) -> list[str]:
    known = sqlite.migrations() if url.startswith("sqlite") else postgres.migrations()
    return [migration.name for migration in known]


def test_the_schema_is_made_once(url):
    """The second time there is nothing to do."""
    first, second = run("migrate", url), run("migrate", url)

    assert (0, [f"applied  {name}" for name in names(url)]) == (first.exit_code, first.output.splitlines())
    assert (0, 1) == (second.exit_code, len(second.output.splitlines()))
    assert second.output.endswith("is up to date\n")


def test_checking_says_what_is_missing_and_changes_nothing(url):
    """It ends with 1 while something is missing."""
    before, again = run("migrate", url, "--check"), run("migrate", url, "--check")
    run("migrate", url)
    after = run("migrate", url, "--check")

    assert (1, [f"missing  {name}" for name in names(url)]) == (before.exit_code, before.output.splitlines())
    assert before.output == again.output
    assert (0, True) == (after.exit_code, after.output.endswith("is up to date\n"))


def test_the_url_may_come_from_the_environment(url, monkeypatch):
    """Where no list of processes shows its password."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", url)

    assert 0 == run("migrate").exit_code
    assert "up to date" in run("migrate", "--check").output


@pytest.mark.parametrize(
    ("url", "code", "says"),
    [
        ("mysql://u:hush@h/app", 2, "postgresql://"),
        ("postgresql+asyncpg://u:hush@h/app", 2, "scheme"),
        ("postgresql://u:hush@h", 2, "names no database"),
        ("sqlite://", 2, "in memory"),
        ("sqlite:////nowhere/at/all/app.db", 2, "does not exist"),
    ],
)
def test_what_can_not_be_migrated_is_said_in_one_line(url, code, says):
    """With the code of the error, and never with a password."""
    ended = run("migrate", url)

    assert (code, 1) == (ended.exit_code, len(ended.output.splitlines()))
    assert says in ended.output
    assert "[invalid_database_url]" in ended.output
    assert "hush" not in ended.output


def test_a_database_that_can_not_be_used_ends_with_3(tmp_path):
    """A text file is no database."""
    (tmp_path / "notes.txt").write_text("shopping list\n" * 1000)
    ended = run("migrate", f"sqlite:///{tmp_path / 'notes.txt'}")

    assert (3, True) == (ended.exit_code, "[storage_corrupt]" in ended.output)


def test_a_file_that_is_behind_is_refused_when_it_may_not_be_changed(tmp_path):
    """Until the command has been run."""
    path = tmp_path / "app.db"
    database = Database(path, StoreConfig(migrate=False), lambda: 0)

    with pytest.raises(SchemaTooOld, match=r"lacks 0001_initial.*holdfast migrate URL"):
        database.open_writer()
    run("migrate", f"sqlite:///{path}")
    database.open_writer().close()


def test_every_command_can_be_loaded_and_says_what_it_does():
    """The list of commands is right."""
    ended = run("--help")

    assert 0 == ended.exit_code
    assert all(f"  {name}  " in ended.output for name in COMMANDS)


def test_every_command_is_on_its_page():
    """And nothing else is."""
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")

    assert sorted(COMMANDS) == sorted(re.findall(r"^\| `holdfast ([\w-]+)", page, re.MULTILINE))


def test_help_loads_nothing_that_it_does_not_need():
    """No engine, no driver; neither does the package itself."""
    program = (
        "import sys\nfrom holdfast.cli.main import main\nmain(['--help'], standalone_mode=False)\n"
        "print([name for name in ('asyncpg', 'msgspec', 'sqlite3', 'holdfast.assembly') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert said.endswith("[]\n")


def test_the_package_can_be_run():
    """`python -m holdfast` is the same command."""
    said = subprocess.run([sys.executable, "-m", "holdfast", "--version"], capture_output=True, text=True, check=True)

    assert said.stdout.startswith("holdfast ")
