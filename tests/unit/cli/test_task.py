"""`holdfast task` for standalone tasks."""

import time

import pytest

from tests.conftest import PATIENCE_S
from tests.unit.cli.conftest import TOKENS


def until_status(cli, task_id, status):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        shown = cli.json("task", "show", task_id)
        if shown["status"] == status:
            return shown
        assert time.monotonic() < deadline, shown


def test_a_task_is_started_and_shown(cli, engine):
    """By its kind, with an id of one's own; a second start finds it."""
    started = cli.json("task", "start", "charge", "--input", "7", "--id", "c:7", "--metadata", "a=b", "--priority", "2")
    found = cli("task", "start", "charge", "--input", "7", "--id", "c:7").stdout
    while not (shown := cli.json("task", "show", "c:7"))["last_failure"]:
        pass

    assert ("c:7", True) == (started["task_id"], started["task_created"])
    assert found.startswith("found charge c:7 (")
    assert ("charge", [7], {"a": "b"}, 2, 1) == (
        shown["task_kind"],
        shown["args"],
        shown["metadata"],
        shown["priority_seconds"],
        shown["attempt"],
    )
    text = cli("task", "show", started["workflow_execution_id"]).stdout
    assert "ConnectionError: the bank does not answer" in text
    assert "next attempt" in text


def test_a_result_is_waited_for(cli, engine):
    """It is printed as JSON; without one the command ends with 5."""
    assert (
        '"Hello, Ada, you"\n' == cli("task", "start", "greet", "--input", '"Ada"', "--input", '"you"', "--wait").stdout
    )
    document = cli.json("task", "start", "greet", "--input", '"Ada"', "--wait")
    ended = cli("task", "start", "charge", "--input", "7", "--max-attempts", "1", "--wait", code=5)

    assert ("COMPLETED", "Hello, Ada, all") == (document["status"], document["result"])
    assert "the bank does not answer [task_failed]" in ended.stderr


def test_a_task_is_completed_and_failed_by_its_id(cli, engine):
    """As by its token, which is not needed; a second completion comes too late."""
    TOKENS.clear()
    for id_ in ("d:1", "d:2"):
        cli("task", "start", "defer", "--id", id_, "--max-attempts", "1")
        until_status(cli, id_, "WAITING")
    assert "holdfast task complete d:1" in cli("task", "show", "d:1").stdout
    cli("task", "complete", "d:1", "--input", "42")
    cli("task", "fail", "d:2", "--error", "no time")

    assert 42 == until_status(cli, "d:1", "COMPLETED")["result"]
    assert "no time" == until_status(cli, "d:2", "FAILED")["last_failure"]["message"]
    assert "[stale_attempt]" in cli.refused("task", "complete", "d:1", code=7)


def test_why_it_does_not_move_is_told_in_its_words(cli, engine):
    """A task that nobody takes wants a worker with that task; one that was deferred is completed by its id."""
    cli("task", "start", "defer", "--id", "d:1")
    cli("task", "start", "defer", "--id", "d:2", "--queue", "nobody")
    until_status(cli, "d:1", "WAITING")
    deferred, [pending] = cli("workflow", "show", "d:1").stdout, cli.json("workflow", "show", "d:2")["findings"]

    assert "holdfast task complete d:1 --input JSON" in deferred
    assert ("note", "run a worker with task 'defer' on queue 'nobody'") == (
        pending["level"],
        pending["next"].partition(":")[0],
    )


def test_a_task_is_cancelled(cli, engine):
    """A second time changes nothing, and the exit code says so."""
    cli("task", "start", "defer", "--id", "d")
    until_status(cli, "d", "WAITING")

    assert "d is asked to stop\n" == cli("task", "cancel", "d", "--reason", "enough").stdout
    assert "nothing was changed" in cli("task", "cancel", "d", code=1).stdout
    until_status(cli, "d", "CANCELLED")


def test_tasks_are_listed(cli, engine):
    """Those of their own with --standalone; as before, all that are unfinished without."""
    cli("task", "start", "greet", "--input", '"Ada"', "--id", "g", "--wait")
    cli("task", "start", "defer", "--id", "d")
    until_status(cli, "d", "WAITING")

    assert ["d", "g"] == [row["task_id"] for row in cli.lines("task", "list", "--standalone")]
    assert ["g"] == [row["task_id"] for row in cli.lines("task", "list", "--standalone", "-s", "completed")]
    assert ["d"] == [row["task_id"] for row in cli.lines("task", "list", "--standalone", "--kind", "defer")]
    assert [] == cli.lines("task", "list", "--standalone", "--queue", "other")
    limited = cli("task", "list", "--standalone", "--limit", "1")
    assert ("there are more" in limited.stderr, "greet" in limited.stdout) == (True, False)
    assert ["defer"] == [row["task_kind"] for row in cli.lines("task", "list")]
    assert ["defer"] == [row["task_kind"] for row in cli.lines("task", "list", "d")]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("start", "chrage"), 4, "[unknown_task_kind]"),
        (("show", "nothing"), 4, "[task_not_found]"),
        (("cancel", "nothing"), 4, "[task_not_found]"),
        (("complete", "nothing"), 4, "[task_not_found]"),
        (("start", "charge", "--metadata", "holdfast.task_kind=x"), 2, "engine's own"),
    ],
)
def test_what_can_not_be_is_refused(cli, engine, arguments, code, told):
    """In one line, with the code."""
    assert told in cli.refused("task", *arguments, code=code)


def test_filters_are_for_standalone_tasks(cli, engine):
    """They would be ignored otherwise."""
    assert "--standalone" in cli("task", "list", "--kind", "defer", code=2).stderr
    assert "leave ID out" in cli("task", "list", "x", "--standalone", code=2).stderr
