"""`holdfast queue`, `workers`, `dead-letters`, `audit` and `org`."""

from __future__ import annotations

import asyncio

import pytest

from tests.database_access import change


@pytest.fixture(autouse=True)
def _database(cli, engine):
    """One with its schema."""


def test_a_queue_is_paused_and_resumed(cli, engine):
    """The list, the doctor and the record say so; what waits runs afterwards."""
    paused = cli.json("queue", "pause", "default", "--reason", "the bank is down")
    started = cli("workflow", "start", "greeting", "--input", '"Ada"').stdout
    [listed] = cli.lines("queue", "list")

    assert {"queue": "default", "paused": True, "changed": True} == paused
    assert started
    assert ("default", 1, True, "the bank is down") == (
        listed["queue"],
        listed["turns"],
        listed["paused"],
        listed["pause"]["reason"],
    )
    said = cli("doctor", code=None).stdout
    assert "queue 'default' is paused" in said
    assert "holdfast queue resume default" in said
    assert "was paused before" in cli("queue", "pause", "default").stdout
    assert "goes on" in cli("queue", "resume", "default").stdout
    assert "was not paused" in cli("queue", "resume", "default").stdout
    assert ["queues.resume", "queues.pause"] == [act["action"] for act in cli.lines("audit", "list")]
    assert {"rows": 2, "whole": True, "first_bad": None} == cli.json("audit", "verify")


def test_the_doctor_says_why_one_does_not_move(cli, engine):
    """The queue is paused: with the reason, and what to do."""
    cli("queue", "pause", "default", "--reason", "maintenance")
    started = cli.json("workflow", "start", "greeting", "--input", '"Ada"')
    told = cli.json("doctor", started["workflow_execution_id"])

    finding = told["findings"][1]
    assert ("note", "queue_paused") == (finding["level"], finding["code"])
    assert "the queue is paused" in finding["text"]
    assert "maintenance" in finding["text"]
    assert "holdfast queue resume default" == finding["next"]


def test_a_worker_is_paused_and_drained(cli, engine):
    [worker] = cli.lines("workers", "list")
    name = worker["worker_id"]

    assert "is paused" in cli("workers", "pause", name, "--reason", "look at it").stdout
    assert "look at it" in cli("workers", "list").stdout
    assert "at work again" in cli("workers", "resume", name).stdout
    assert "is draining" in cli("workers", "drain", name).stdout
    assert "[worker_draining]" in cli.refused("workers", "resume", name, code=7)
    assert "[worker_not_found]" in cli.refused("workers", "pause", "nobody", code=4)
    assert "worker_paused" in {found["code"] for found in cli.json("doctor", code=0)["findings"]}


def test_dead_letters_are_listed_sent_again_and_removed(cli, engine):
    """A signal that came too late for one execution is given to the next."""
    cli("queue", "pause", "default")  # no turn sees the signals
    started = cli.json("workflow", "start", "waiting", "--input", '"never"', "--workflow-id", "w")
    first = started["workflow_execution_id"]
    for number in ("1", "2"):
        cli("workflow", "signal", first, "other", "--input", number)
    cli("workflow", "terminate", first)
    cli("queue", "resume", "default")
    cli("workflow", "start", "waiting", "--input", '"other"', "--workflow-id", "w")
    newer, older = cli.lines("dead-letters", "list", first)

    assert [2, 1] == [newer["signal_value"], older["signal_value"]]
    sent = cli.json("dead-letters", "redeliver", first, str(older["sequence"]))
    assert sent["workflow_execution_id"] != first
    assert "is removed" in cli("dead-letters", "remove", first, str(newer["sequence"])).stdout
    assert [] == cli.lines("dead-letters", "list")
    assert "[dead_letter_not_found]" in cli.refused("dead-letters", "remove", first, str(newer["sequence"]), code=4)


def test_a_changed_record_is_found_out(cli, database_url):
    """By its number, and by the exit code."""
    for name in ("a", "b", "c"):
        cli("key", "create", name, "--role", "reader")
    asyncio.run(change(database_url, "UPDATE holdfast_audit SET actor = 'somebody' WHERE seq = 2"))

    assert {"rows": 3, "whole": False, "first_bad": 2} == cli.json("audit", "verify", code=1)
    assert "act 2 is missing or was changed" in cli("audit", "verify", code=1).stdout


def test_the_record_is_listed_from_its_end(cli):
    for name in ("a", "b", "c"):
        cli("key", "create", name, "--role", "reader")

    assert [3, 2] == [act["sequence"] for act in cli.lines("audit", "list", "-n", "2")]
    assert [3, 2, 1] == [act["sequence"] for act in cli.lines("audit", "list", "-n", "0")]
    assert "operator" in cli("audit", "list").stdout


def test_orgs_are_made_listed_and_closed(cli):
    """A closed one gets no keys any more."""
    cli("org", "create", "acme")
    assert "operator" in cli("audit", "list", "--org", "acme").stdout
    assert ["acme"] == [found["org"] for found in cli.lines("org", "list")]
    assert 1 == cli("org", "close", "acme", stdin="n\n", code=1).exit_code
    assert cli.json("org", "close", "acme", "--yes")["closed_at"] is not None
    assert "[org_closed]" in cli.refused("key", "create", "k", "--role", "reader", "--org", "acme", code=7)
    assert "closed" in cli("org", "list").stdout
    assert "--db" in cli.refused("org", "list", "--server", "http://127.0.0.1:1", code=2)


def test_an_org_is_deleted(cli):
    """Only if its name is typed, or --yes is said; its keys are dead and its name is not given again."""
    cli("key", "create", "k", "--role", "admin", "--org", "acme")
    assert 1 == cli("org", "delete", "acme", stdin="other\n", code=1).exit_code
    assert 1 == len(cli.lines("key", "list", "--org", "acme"))
    assert {"org": "acme", "deleted": True} == cli.json("org", "delete", "acme", "--yes")
    assert "[org_closed]" in cli.refused("key", "create", "k", "--role", "admin", "--org", "acme", code=7)
    assert ["orgs.delete", "keys.create"] == [act["action"] for act in cli.lines("audit", "list", "--org", "acme")]
