"""`holdfast export`: histories that the testing kit reads and replays."""

import json

from holdfast.testing import load_history, replay
from tests.unit.cli.conftest import greeting, until_waiting


def test_exported_histories_can_be_replayed(cli, engine, tmp_path):
    """Each line is one history, whole."""
    for name in ("A", "B"):
        cli("workflow", "start", "greeting", "--workflow-id", name, "--input", '"Ada"', "--wait")
    cli("workflow", "start", "waiting", "--workflow-id", "C", "--input", '"go"')
    until_waiting(engine, "C")
    ended = cli("export", "--output", "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text().splitlines()

    assert ("", 3, True) == (ended.stdout, len(lines), "3 histories written to all.jsonl" in ended.stderr)
    assert ["C", "B", "A"] == [json.loads(line)["workflow_id"] for line in lines]
    stored = load_history(lines[1])
    assert replay(greeting, stored).ended


def test_some_are_exported_to_standard_output(cli, engine):
    """By id or by filter."""
    for name in ("A", "B"):
        cli("workflow", "start", "greeting", "--workflow-id", name, "--input", '"Ada"', "--wait")
    one, none = cli("export", "B").stdout, cli("export", "--status", "FAILED").stdout

    assert ("B", "") == (json.loads(one)["workflow_id"], none)


def test_a_failed_export_leaves_the_file_as_it_was(cli, engine, tmp_path):
    """Nothing half written takes the place of what was there."""
    (tmp_path / "all.jsonl").write_text("before")
    cli.refused("export", "nobody", "-o", "all.jsonl", code=4)

    assert ["before"] == [path.read_text() for path in tmp_path.glob("*.jsonl*")]


def test_a_place_that_can_not_be_written_is_named(cli, engine):
    """In one line."""
    assert "nowhere" in cli.refused("export", "-o", "nowhere/all.jsonl", code=1)
