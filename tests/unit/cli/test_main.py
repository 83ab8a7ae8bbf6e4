"""The command itself: help that costs nothing, errors in one line, places, completion."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from holdfast import errors
from holdfast.cli import exit_codes
from holdfast.cli.main import COMMANDS, main
from holdfast.cli.target import shown_server, shown_url
from tests.unit.cli.conftest import Cli

PAGE = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text("utf-8")
APP = "from holdfast import task\n\n\n@task\ndef rest() -> None: ...\n"


def commands(group: click.Group = main, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def loaded_by(program: str) -> list[str]:
    heavy = ("asyncio", "msgspec", "rich", "sqlite3", "asyncpg", "uvicorn", "grpc", "holdfast.assembly")
    text = f"import sys\n{program}\nprint([name for name in {heavy} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    found: list[str] = json.loads(said.splitlines()[-1].replace("'", '"'))
    return found


@pytest.mark.parametrize("arguments", [["--help"], ["workflow", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments):
    """No engine, no driver, no rich: a list of commands is there at once."""
    program = f"from holdfast.cli.main import main\nmain({arguments}, standalone_mode=False)"

    assert [] == loaded_by(program)


def test_a_command_that_draws_nothing_loads_no_rich():
    """JSON for scripts, and plain text where no terminal is."""
    program = (
        "from click.testing import CliRunner\nfrom holdfast.cli.main import main\nCliRunner().invoke(main, ['version'])"
    )

    assert "rich" not in loaded_by(program)


def test_every_command_has_help_that_says_what_it_does():
    """And the list says of each what its help says first, or shorter."""
    for path, command in commands():
        ended = Cli()(*path.split(), "--help")
        assert command.help, path
        assert f"Usage: main {path}" in ended.output.replace("holdfast", "main")


def test_every_command_and_option_is_on_its_page():
    """And nothing else is."""
    sections = dict(re.findall(r"^### holdfast ([a-z -]+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
    shared = set(re.findall(r"`(--[a-z-]+)", PAGE.partition("## For every command")[2].partition("\n## ")[0]))
    expected = {path: own_options(command) - shared for path, command in commands()}

    assert sorted(expected) == sorted(sections)
    documented = {path: set(re.findall(r"`(?:-\w, )?(--[a-z-]+)", text)) - shared for path, text in sections.items()}
    assert expected == documented


def own_options(command: click.Command) -> set[str]:
    return {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    }


def test_every_exit_code_is_on_the_page():
    """With the meaning that the code has."""
    codes = {value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}

    assert codes == {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidRequest("x"), 2),
        (errors.InvalidDatabaseUrl("x"), 2),
        (errors.StorageBusy("x"), 3),
        (errors.ServerUnreachable("x"), 3),
        (errors.ExecutionNotFound("x"), 4),
        (errors.WorkflowFailed("x"), 5),
        (errors.UpdateRejected("x"), 5),
        (errors.Unauthenticated("x"), 6),
        (errors.Forbidden("x"), 6),
        (errors.ExecutionClosed("x"), 7),
    ],
)
def test_errors_have_exit_codes(error, code):
    """Scripts tell them apart without reading."""
    assert code == exit_codes.Refused(error).exit_code


def test_a_fault_is_one_line_unless_the_traceback_is_wanted(monkeypatch, cli):
    """--debug shows it, on any command, before or after its name."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("holdfast.cli.target.Target.read", broken)

    assert "ZeroDivisionError: oh; this is a fault of Holdfast" in cli.refused("workflow", "list", code=70)
    assert isinstance(cli("workflow", "list", "--debug", code=1).exception, ZeroDivisionError)
    assert isinstance(cli("--debug", "workflow", "list", code=1).exception, ZeroDivisionError)


def test_ctrl_c_ends_with_130(monkeypatch, cli):
    """And with no traceback."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.target.Target.read", interrupted)

    assert "interrupted\n" == cli("workflow", "list", code=130).stderr


def test_without_a_place_the_command_says_where_it_looks():
    """Options, environment, a file in this folder."""
    said = Cli().refused("workflow", "list", code=2)

    assert all(name in said for name in ("--server", "--db", "HOLDFAST_SERVER", "HOLDFAST_DATABASE_URL", "holdfast.db"))


@pytest.mark.sqlite_only("the default is a file of SQLite")
def test_the_file_of_this_folder_is_the_default(cli, tmp_path):
    """It is called holdfast.db; --db may be a path."""
    cli("migrate", f"sqlite:///{tmp_path}/holdfast.db")

    assert [] == Cli().lines("workflow", "list")
    assert [] == Cli().lines("workflow", "list", "--db", "holdfast.db")
    assert [] == Cli().lines("workflow", "list", "--db", f"sqlite:///{tmp_path}/holdfast.db")


@pytest.mark.sqlite_only("PostgreSQL makes no databases by itself")
def test_looking_makes_no_database(tmp_path):
    """A wrong path is an error, not an empty list."""
    said = Cli().refused("workflow", "list", "--db", "typo.db", code=2)

    assert ("there is no database typo.db" in said, []) == (True, list(tmp_path.iterdir()))
    assert "in memory" in Cli().refused("workflow", "list", "--db", "sqlite://", code=2)


@pytest.mark.sqlite_only("a file that is an empty database; PostgreSQL's are in tests/stores")
def test_looking_does_not_change_the_schema(tmp_path):
    """An older database is for `holdfast migrate`: others may be at work on it."""
    (tmp_path / "old.db").touch()

    assert "[schema_too_old]" in Cli().refused("workflow", "list", "--db", "old.db", code=3)


def test_server_and_database_exclude_each_other():
    """One of them is meant."""
    said = Cli().refused("workflow", "list", "--db", "x.db", "--server", "http://localhost:1", code=2)

    assert "not both" in said


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:hush@h:1/app?sslpassword=hush&search_path=a", "postgresql://h:1/app?search_path=a"),
        ("postgres:///app?user=u&password=hush&host=/run/pg", "postgres:///app?host=/run/pg"),
        ("postgresql://u:p@ss:hush@h/app", "postgresql://…"),
        ("postgresql://u:pa/hush@h/app", "postgresql://…"),
        ("postgresql:/u:hush@h/app", "postgresql://…"),
        ("postgresql://u:hush@h:1/app?password=hush", "postgresql://…"),
        ("u:hush@h:5432/app", "the database"),
        ("mysql://u:hush@h/app", "the database"),
        ("sqlite:////srv/app.db", "sqlite:////srv/app.db"),
    ],
)
def test_passwords_are_not_shown(url, shown):
    """Of a database that is named, and of one that can't even be: where a password ends in that, nobody knows."""
    assert shown == shown_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@ss:hush@h/app",
        "postgresql://u:pa/hush@h/app",
        "postgresql:/u:hush@h/app",
        "postgresql://u:hush@h",
        "u:hush@h:5432/app",
        "mysql://u:hush@h/app",
        "host=h user=u password=hush dbname=d",
    ],
)
@pytest.mark.parametrize(
    "command", [("workflow", "list", "--db"), ("doctor", "--db"), ("migrate",), ("server", "--db")]
)
def test_no_command_shows_the_password_of_a_wrong_url(command, url):
    """Neither as the place it works on nor in what it says about it."""
    ended = Cli()(*command, url, code=None)

    assert ("hush" in ended.output, "[invalid_database_url]" in ended.output) == (False, True)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h:8233", "http://h:8233"),
        ("http://h:8233/flows?key=hush", "http://h:8233/flows"),
        ("http://u:hush@h:8233", "http://…"),
        ("grpc://hush@h:7234", "grpc://…"),
        ("http://u:hu/sh@[h", "http://…"),
        ("hush@h:8233", "the server"),
        ("h:8233", "the server"),
    ],
)
def test_keys_in_the_address_of_a_server_are_not_shown(url, shown):
    """They do not belong there."""
    assert shown == shown_server(url)


@pytest.mark.parametrize(
    "url", ["http://u:hush@h:8233", "http://u:hush@[h", "http://h/?key=hush", "grpc://hush@h:1", "hush@h"]
)
@pytest.mark.parametrize("command", [("workflow", "list"), ("doctor",), ("worker", "app.py")])
def test_no_command_shows_the_key_in_the_address_of_a_server(command, url, tmp_path):
    """Whoever wrote one there is told what an address looks like."""
    (tmp_path / "app.py").write_text(APP)
    ended = Cli()(*command, "--server", url, code=None)

    assert ("hush" in ended.output, "[invalid_server]" in ended.output) == (False, True)


@pytest.mark.parametrize("command", [["server", "--db"], ["worker", "app.py", "--db"], ["dev", "app.py", "--db"]])
def test_settings_of_a_connection_are_not_a_file(command, tmp_path):
    """Nothing is made, and the password is not shown."""
    (tmp_path / "app.py").write_text(APP)
    said = Cli().refused(*command, "host=h user=u password=hush dbname=d", code=2)

    assert ("postgresql://" in said, "hush" in said) == (True, False)
    assert {"app.py", "__pycache__"} >= {file.name for file in tmp_path.iterdir()}


@pytest.mark.parametrize("scheme", ["mysql", "psql"])
def test_unknown_schemes_are_named_with_the_known_ones(scheme):
    """They are not taken for files."""
    said = Cli().refused("doctor", "--db", f"{scheme}://u:hush@h/d", code=2)

    assert all(known in said for known in (f"{scheme}://", "sqlite:///", "postgresql://"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_taught_to_complete(shell):
    """The script of each asks the command itself."""
    assert "_HOLDFAST_COMPLETE" in Cli()("completion", shell).stdout


def test_commands_are_completed():
    """Down to the options."""
    said = subprocess.run(
        [sys.executable, "-m", "holdfast"],
        env={"_HOLDFAST_COMPLETE": "bash_complete", "COMP_WORDS": "holdfast workflow si", "COMP_CWORD": "2"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert ["plain,signal", "plain,signal-with-start"] == said.split()


def test_version_says_what_is_there():
    """For reports of what went wrong."""
    found = json.loads(Cli()("version", "--json").stdout)

    assert {"holdfast", "python", "sqlite", "click", "msgspec"} <= set(found)


def test_the_list_of_commands_is_short():
    """Each with one line."""
    assert all(len(text) < 80 for _, text in COMMANDS.values())
