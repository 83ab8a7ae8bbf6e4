"""`holdfast workflow show` and `holdfast doctor`: why something does not move, and what to do."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import Server, ServerConfig, SyncEngine, workflow
from holdfast.cli.target import Target
from tests.conftest import QUICK
from tests.unit.cli.conftest import charging, until_waiting, waiting
from tests.unit.engine.test_events import Clock


def findings(page: Any) -> list[tuple[str, str, str]]:
    return [(found["level"], found["text"], found["next"]) for found in page["findings"]]


def test_show_says_what_is_waited_for_and_what_to_do(cli, engine):
    """A signal: with the line of code, since when, and the command that sends it."""
    cli("workflow", "start", "waiting", "--workflow-id", "W 1", "--input", '"go"')
    until_waiting(engine, "W 1")
    [(level, text, step)] = findings(cli.json("workflow", "show", "W 1"))
    shown = cli("workflow", "show", "W 1").stdout

    assert ("ok", True, True) == (level, "signal 'go' (" in text, "conftest.py:" in text)
    assert "send it: holdfast workflow signal 'W 1' go --input JSON" == step
    assert all(part in shown for part in ("WAITING", "waiting version 1", "last ", step))


def test_show_says_why_a_task_is_tried_again(cli, engine):
    """Attempts, the last failure, when it is tried next."""
    cli("workflow", "start", "charging", "--workflow-id", "P-1", "--input", "1")
    until_waiting(engine, "P-1")
    _until_attempt(cli, "P-1")
    page = cli.json("workflow", "show", "P-1")
    [(level, text, _)] = findings(page)
    shown = cli("workflow", "show", "P-1").stdout

    assert ("note", True) == (level, "ConnectionError: the bank does not answer" in text)
    assert (1, "charge") == (page["tasks"][0]["attempt"], page["tasks"][0]["task_kind"])
    assert "tried again in" in shown
    assert "charge" in cli("task", "list").stdout


def _until_attempt(cli: Any, workflow_id: str) -> None:
    while not any(task["last_failure"] for task in cli.lines("task", "list", workflow_id)):
        pass


def test_show_says_that_no_worker_has_the_code(cli, database_url):
    """The kind and version it takes, and the queue."""
    with SyncEngine(database_url, workflows=[waiting], config=QUICK):
        pass
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    [(level, text, step)] = findings(cli.json("workflow", "show", "W-1"))

    assert ("bad", True) == (level, "no worker is connected to this database" in text)
    assert "kind 'waiting' version '1' on queue 'default'" in step


def test_show_says_why_it_is_stuck(cli, database_url):
    """Both sides of the mismatch, the event, both lines; and that a fixed deploy is enough."""

    @workflow(kind="changing")
    async def before(ctx, x=None):
        await ctx.sleep(3600)

    @workflow(kind="changing")
    async def after(ctx, x=None):
        await ctx.task("other")

    with SyncEngine(database_url, workflows=[before], config=QUICK) as engine:
        cli("workflow", "start", "changing", "--workflow-id", "S-1")
        until_waiting(engine, "S-1")
    with SyncEngine(database_url, workflows=[after], config=QUICK) as engine:
        cli("workflow", "signal", "S-1", "wake")
        until_waiting(engine, "S-1", "STUCK")
        [(level, text, step)] = findings(cli.json("workflow", "show", "S-1"))
        shown = cli("workflow", "show", "S-1").stdout
        checked = cli("doctor", code=1).stdout

    assert ("bad", True) == (level, "[nondeterminism]" in text)
    assert "holdfast workflow resume S-1" in step
    assert all(part in shown for part in ("STUCK", "recorded", "attempted"))
    assert "S-1 (changing) is stuck" in checked


def test_show_says_how_a_closed_one_ended(cli, engine):
    """With the traceback, and how to try again."""
    cli("workflow", "start", "failing", "--workflow-id", "F-1")
    cli("workflow", "result", "F-1", code=5)
    [(level, text, step)] = findings(cli.json("workflow", "show", "F-1"))
    shown = cli("workflow", "show", "F-1").stdout

    assert ("bad", True, True) == (level, "ValueError: no such luck" in text, "holdfast workflow retry" in step)
    assert 'raise ValueError("no such luck")' in shown


def test_show_says_what_an_event_lacks(cli, engine):
    """The event that came nearest, and the part of the filter that refused it."""
    cli("workflow", "start", "listening", "--workflow-id", "L-1")
    until_waiting(engine, "L-1")
    cli("event", "publish", "paid", "--input", '{"amount": 50}')
    [(_, text, step)] = findings(cli.json("workflow", "show", "L-1"))

    assert ("input.amount > 100" in text, "the nearest, event" in text) == (True, True)
    assert "publish it: holdfast event publish paid --input JSON" == step


def test_show_gives_the_command_for_a_promise(cli, engine):
    """Which works."""
    cli("workflow", "start", "promising", "--workflow-id", "P-1")
    until_waiting(engine, "P-1")
    [(_, _, step)] = findings(cli.json("workflow", "show", "P-1"))
    cli(*step.partition("holdfast ")[2].replace("JSON", "true").split())

    assert "true\n" == cli("workflow", "result", "P-1").stdout


def test_looking_fires_no_timer(cli, database_url):
    """A late timer is reported, not fired by the look at it."""

    @workflow
    async def sleeping(ctx, x=None):
        await ctx.sleep(2)

    with SyncEngine(database_url, workflows=[sleeping], config=QUICK) as engine:
        cli("workflow", "start", "sleeping", "--workflow-id", "T-1")
        until_waiting(engine, "T-1")
    before = cli.lines("workflow", "history", "T-1")
    due = datetime.fromisoformat(next(e["data"]["fire_at"] for e in before if e["type"] == "TIMER_STARTED"))
    while datetime.now(UTC) < due:
        time.sleep(0.01)
    cli("workflow", "show", "T-1")
    cli("doctor", code=1)
    after = cli.lines("workflow", "history", "T-1")
    report = cli.json("recover")

    assert before == after
    assert 1 == report["timers_fired"]


def test_text_of_others_can_not_command_the_terminal(cli, database_url):
    """Escape sequences in ids, errors and reasons are shown, not obeyed."""
    evil = "\x1b]0;gotcha\x07\x1b[2J"

    @workflow
    async def shouting(ctx, x=None):
        raise ValueError(evil)

    with SyncEngine(database_url, workflows=[shouting], config=QUICK):
        cli("workflow", "start", "shouting", "--workflow-id", "W\u202e")
        refused = cli("workflow", "result", "W\u202e", code=5).stderr
        printed = refused + "".join(
            cli("workflow", *command).output
            for command in (("list",), ("show", "W\u202e"), ("history", "W\u202e"), ("mailbox", "W\u202e"))
        )

    assert ("\\x1b]0;gotcha" in printed, any(char in printed for char in "\x1b\x07\u202e")) == (True, False)


def test_the_doctor_is_content_when_all_is_well(cli, engine):
    """It ends with 0 and names the workers it has found."""
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    until_waiting(engine, "W-1")
    page = cli.json("doctor")

    assert page["healthy"]
    assert any(text.startswith("worker ") for _, text, _ in findings(page))


def test_the_doctor_finds_executions_and_workers_missing(cli, database_url):
    """It ends with 1."""
    with SyncEngine(database_url, workflows=[charging], config=QUICK):
        pass
    cli("workflow", "start", "charging", "--input", "1")

    assert "no worker is connected" in cli("doctor", code=1).stdout


@pytest.mark.sqlite_only("files that are no databases, or empty ones")
def test_the_doctor_says_what_is_wrong_with_a_database(cli, tmp_path):
    """Nothing there, no database, an old schema: one finding with a next step, never an error."""
    (tmp_path / "notes.txt").write_text("shopping list\n" * 1000)
    (tmp_path / "empty.db").touch()

    assert "there is no database" in cli("doctor", "--db", "nowhere.db", code=1).stdout
    assert "[storage_corrupt]" in cli("doctor", "--db", "notes.txt", code=1).stdout
    assert "holdfast migrate" in cli("doctor", "--db", "empty.db", code=1).stdout


def test_the_doctor_explains_one_workflow(cli, engine):
    """The same findings as `workflow show`."""
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    until_waiting(engine, "W-1")

    assert "send it: holdfast workflow signal W-1 go" in cli("doctor", "W-1").stdout


async def test_the_clock_of_a_server_is_asked_for(database_url):
    """Leases are judged by it, not by the one of this machine."""
    clock = Clock()
    clock.move(-3600)
    config = ServerConfig(port=0, grpc_port=None)
    async with Server(database_url, config=QUICK, server=config, clock=clock) as server:
        told = await Target(server=server.url, api_key=None, db=None, org="default", as_json=True).now()

        assert abs(told - clock()) < 60_000_000
