"""`holdfast promise`, `task`, `event`, `broadcast` and `message`."""

from tests.unit.cli.conftest import TOKENS, until_waiting


def test_a_promise_is_settled_once(cli, engine):
    """By its name or its id; the second settlement is answered with the first."""
    cli("workflow", "start", "promising", "--workflow-id", "P-1")
    until_waiting(engine, "P-1")
    [open_one] = cli.lines("promise", "list")
    first = cli.json("promise", "resolve", "approval", "--workflow-id", "P-1", "--input", '{"yes": true}')
    second = cli.json("promise", "reject", open_one["promise_id"], "--error", "no")

    assert ("RESOLVED", False) == (first["state"], first["already_resolved"])
    assert ("RESOLVED", True, {"yes": True}) == (second["state"], second["already_resolved"], second["value"])
    assert [] == cli.lines("promise", "list")
    assert ["RESOLVED"] == [row["state"] for row in cli.lines("promise", "list", "P-1")]
    assert "approval" in cli("promise", "list", "P-1").stdout


def test_a_rejected_promise_fails_its_workflow(cli, engine):
    """With the error that was given."""
    cli("workflow", "start", "promising", "--workflow-id", "P-1")
    until_waiting(engine, "P-1")
    cli("promise", "reject", "approval", "--workflow-id", "P-1", "--error", "not today")

    assert "not today" in cli.refused("workflow", "result", "P-1", code=5)


def test_a_promise_nobody_has_made_is_refused(cli, engine):
    """Unless it may come early."""
    cli("workflow", "start", "waiting", "--workflow-id", "P-1", "--input", '"go"')
    until_waiting(engine, "P-1")
    call = ("promise", "resolve", "approval", "--workflow-id", "P-1")

    assert "[promise_not_found]" in cli.refused(*call, code=4)
    assert "RESOLVED" == cli.json(*call, "--allow-early")["state"]


def test_a_task_is_completed_by_its_token(cli, engine):
    """The token is all that is needed."""
    TOKENS.clear()
    cli("workflow", "start", "deferring", "--workflow-id", "D-1")
    until_waiting(engine, "D-1")
    while not any(row["deferred"] and not row["running"] for row in cli.lines("task", "list", "D-1")):
        pass
    shown = cli("workflow", "show", "D-1").stdout
    cli("task", "complete", TOKENS[0], "--input", "42")

    assert "holdfast task complete TOKEN" in shown
    assert "42\n" == cli("workflow", "result", "D-1").stdout
    assert "[promise_not_found]" in cli.refused("task", "complete", "ct_nothing", code=4)


def test_a_task_is_failed_by_its_token(cli, engine):
    """Its workflow is told why."""
    TOKENS.clear()
    cli("workflow", "start", "deferring", "--workflow-id", "D-1")
    until_waiting(engine, "D-1")
    while not any(row["deferred"] for row in cli.lines("task", "list", "D-1")):
        pass
    cli("task", "fail", TOKENS[0], "--error", "the printer burns")

    assert "the printer burns" in cli.refused("workflow", "result", "D-1", code=5)


def test_an_event_reaches_who_waits_for_it(cli, engine):
    """One that the filter refuses is kept, and explained."""
    cli("workflow", "start", "listening", "--workflow-id", "L-1")
    until_waiting(engine, "L-1")
    little = cli.json("event", "publish", "paid", "--input", '{"amount": 5}')
    explained = cli("event", "explain", str(little["event_id"])).stdout
    much = cli.json("event", "publish", "paid", "--input", '{"amount": 500}')

    assert (0, True, 1) == (little["delivered"], little["retained"], much["delivered"])
    assert "input.amount" in explained
    assert {"amount": 500} == cli.json("workflow", "result", "L-1")["result"]


def test_events_are_listed_and_removed(cli, engine):
    """The newest first."""
    for number in (1, 2, 3):
        cli("event", "publish", "key", "--input", str(number))
    cli("event", "publish", "other")
    listed = cli.lines("event", "list", "--key", "key")
    cli("event", "remove", str(listed[0]["event_id"]))

    assert [3, 2, 1] == [event["data"] for event in listed]
    assert [2, 1] == [event["data"] for event in cli.lines("event", "list", "--key", "key")]
    assert 2 == len(cli("event", "list", "-n", "1").stdout.splitlines())
    assert "there are none" in cli("event", "dead").stdout
    assert "[event_not_found]" in cli.refused("event", "remove", str(listed[0]["event_id"]), code=4)
    assert "[event_not_found]" in cli.refused("event", "replay", "999999", code=4)


def test_broadcasts_and_messages_say_who_got_them(cli, engine):
    """Nobody, here: the broadcast is gone, the message is kept."""
    assert 0 == cli.json("broadcast", "all-clear")["delivered"]
    sent = cli.json("message", "order-paid", "ORDER-1", "--input", "1")

    assert (False, True) == (sent["delivered"], sent["retained"])
    assert "kept for the first who asks" in cli("message", "order-paid", "ORDER-2").stdout
