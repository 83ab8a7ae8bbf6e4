"""`holdfast workflow …` on a database, while an engine works on it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.cli.conftest import until_waiting


def test_start_and_wait_prints_the_result(cli, engine):
    """The result alone is on standard output: it can be piped on."""
    ended = cli("workflow", "start", "greeting", "--input", '"Ada"', "--wait")

    assert '"Hello, Ada!"\n' == ended.stdout
    assert ended.stderr.startswith("started ")


def test_start_says_what_it_has_started(cli, engine):
    """The second start with the same workflow id finds the first one."""
    first = cli.json("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    second = cli.json("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')

    assert ("W-1", True, False) == (first["workflow_id"], first["workflow_created"], second["workflow_created"])
    assert first["workflow_execution_id"] == second["workflow_execution_id"]


def test_start_takes_what_the_client_takes(cli, engine):
    """Tags, a time to begin, an idempotency key."""
    later = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    options = ("--metadata", "shop=tea", "--metadata", "land=IN", "--start-at", later, "--idempotency-key", "k-1")
    for _ in range(2):
        started = cli.json("workflow", "start", "greeting", "--input", '"Ada"', *options)
    [found] = cli.lines("workflow", "list", "-m", "shop=tea")

    assert ({"shop": "tea", "land": "IN"}, "PENDING") == (found["metadata"], found["status"])
    assert found["start_at"] is not None
    assert (True, False) == (started["idempotency_key_used"], started["idempotency_key_new"])


def test_input_comes_from_a_file_or_standard_input(cli, engine, tmp_path):
    """@file and -."""
    (tmp_path / "name.json").write_text('"Grace"\n')

    assert '"Hello, Grace!"\n' == cli("workflow", "start", "greeting", "--input", "@name.json", "--wait").stdout
    assert '"Hello, Alan!"\n' == cli("workflow", "start", "greeting", "--input", "-", "--wait", stdin='"Alan"').stdout


def test_numbers_pass_as_they_are_written(cli, engine):
    """No number is rounded on the way."""
    number = "123456789012345678901234567890"
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    cli("workflow", "signal", "W-1", "go", "--input", number)
    [*_, received] = [
        event for event in cli("workflow", "history", "W-1", "--json").stdout.splitlines() if "SIGNAL_RECEIVED" in event
    ]

    assert f'"signal_value":{number}' in received


def test_a_workflow_is_signalled_and_its_result_waited_for(cli, engine):
    """By its workflow id or its execution id."""
    started = cli.json("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    signalled = cli.json("workflow", "signal", "W-1", "go", "--input", '{"by": "rail"}')
    result = cli("workflow", "result", started["workflow_execution_id"])

    assert signalled["signal_event_sequence"] > 1
    assert {"by": "rail"} == json.loads(result.stdout)


def test_signal_with_start_starts_once(cli, engine):
    """The second signal goes to the same execution."""
    call = ("workflow", "signal-with-start", "W-1", "waiting", "other", "--signal-input", "1", "--input", '"go"')
    first, second = cli.json(*call), cli.json(*call)

    assert (True, False) == (first["workflow_created"], second["workflow_created"])
    assert second["signal_event_sequence"] > first["signal_event_sequence"]


def test_list_filters(cli, engine):
    """By status, kind and number; the newest first."""
    for name in ("A", "B", "C"):
        cli("workflow", "start", "waiting", "--workflow-id", name, "--input", '"go"')
    cli("workflow", "start", "greeting", "--workflow-id", "D", "--input", '"x"', "--wait")

    assert ["C", "B", "A"] == [found["workflow_id"] for found in cli.lines("workflow", "list", "--open")]
    assert ["D"] == [found["workflow_id"] for found in cli.lines("workflow", "list", "-s", "completed")]
    assert ["D"] == [found["workflow_id"] for found in cli.lines("workflow", "list", "-k", "greeting")]
    assert [] == cli.lines("workflow", "list", "--before", "2h")
    limited = cli("workflow", "list", "-n", "2")
    assert ["D", "C"] == [line.split()[0] for line in limited.stdout.splitlines()[1:]]
    assert "--limit 0" in limited.stderr


def test_an_empty_list_says_so(cli, engine):
    """A person sees why there is nothing; a script sees nothing."""
    assert "no executions match in org 'default'" in cli("workflow", "list").stdout
    assert "" == cli("workflow", "list", "--json").stdout


def test_history_tells_every_event(cli, engine):
    """In words, or as the server gives them."""
    cli("workflow", "start", "greeting", "--workflow-id", "W-1", "--input", '"Ada"', "--wait")
    told = cli("workflow", "history", "W-1").stdout
    events = cli.lines("workflow", "history", "W-1")

    assert 'greeting version 1, input "Ada"' in told
    assert 'result "Hello, Ada!"' in told
    assert ["WORKFLOW_STARTED", "WORKFLOW_COMPLETED"] == [events[0]["type"], events[-1]["type"]]
    assert events[1:] == cli.lines("workflow", "history", "W-1", "--after", "1")


def test_a_failed_workflow_has_no_result(cli, engine):
    """The command ends with 5 and one line; with --json the document says how it ended."""
    cli("workflow", "start", "failing", "--workflow-id", "F-1")

    assert "ValueError: no such luck [workflow_failed]" in cli.refused("workflow", "result", "F-1", code=5)
    document = cli.json("workflow", "result", "F-1", code=5)
    assert ("FAILED", "ValueError") == (document["status"], document["failure"]["type"])


def test_waiting_ends_with_8_after_the_timeout(cli, engine):
    """The workflow goes on."""
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')

    assert "--timeout" in cli.refused("workflow", "result", "W-1", "--timeout", "50ms", code=8)
    cli("workflow", "signal", "W-1", "go")
    cli("workflow", "result", "W-1")


def test_watch_follows_to_the_end(cli, engine):
    """Through every execution that goes on in the place of another."""
    cli("workflow", "start", "rounds", "--workflow-id", "R-1", "--input", "2")
    cli("workflow", "result", "R-1")
    first = cli.lines("workflow", "list", "-k", "rounds")[-1]["workflow_execution_id"]
    types = [event["type"] for event in cli.lines("workflow", "watch", first)]

    assert 2 == types.count("WORKFLOW_CONTINUED_AS_NEW")
    assert "WORKFLOW_COMPLETED" == types[-1]


def test_watch_tells_how_it_ended(cli, engine):
    """With 5 if there is no result; with 8 if it has not ended."""
    cli("workflow", "start", "failing", "--workflow-id", "F-1")
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    until_waiting(engine, "W-1")

    assert "no such luck" in cli("workflow", "watch", "F-1", code=5).stdout
    assert "waits for signal 'go'" in cli("workflow", "watch", "W-1", "--timeout", "1", code=8).stdout


def test_cancel_and_terminate_say_whether_they_changed_anything(cli, engine):
    """The second time they end with 1."""
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')

    assert {"changed": True, "successor": None} == cli.json("workflow", "cancel", "W-1", "--reason", "enough")
    assert "the workflow was cancelled: enough" in cli.refused("workflow", "result", "W-1", code=5)
    assert "nothing was changed" in cli("workflow", "terminate", "W-1", code=1).stdout
    assert "not stuck" in cli("workflow", "resume", "W-1", code=1).stdout


def test_a_closed_workflow_is_tried_again(cli, engine):
    """In a new execution with the same workflow id."""
    first = cli.json("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    cli("workflow", "terminate", "W-1")
    again = cli.json("workflow", "retry", "W-1")
    cli("workflow", "signal", "W-1", "go", "--input", "7")

    assert first["workflow_execution_id"] != again["workflow_execution_id"]
    assert "7\n" == cli("workflow", "result", "W-1").stdout


def test_reset_and_fork_begin_with_the_past_of_another(cli, engine):
    """Up to an event where a turn ends; another one is refused, and the nearest is named."""
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    until_waiting(engine, "W-1")
    cli("workflow", "signal", "W-1", "go", "--input", "1")
    cli("workflow", "result", "W-1")
    turn = next(
        event["sequence"]
        for event in cli.lines("workflow", "history", "W-1")
        if event["type"] == "WORKFLOW_TASK_COMPLETED"
    )
    forked = cli.json("workflow", "fork", "W-1", "--at-event", str(turn), "--workflow-id", "W-2")
    reset = cli.json("workflow", "reset", "W-1", "--to-event", str(turn), "--drop-signals")

    assert ("W-2", "W-1") == (forked["workflow_id"], reset["workflow_id"])
    for name in ("W-1", "W-2"):
        cli("workflow", "signal", name, "go", "--input", "2")
        assert "2\n" == cli("workflow", "result", name).stdout
    assert "[invalid_reset_point]" in cli.refused("workflow", "fork", "W-1", "--at-event", "900", code=2)


def test_an_update_changes_the_workflow_and_answers(cli, engine):
    """A refused one ends with 5."""
    cli("workflow", "start", "Counter", "--workflow-id", "C-1", "--input", "1")

    assert "6\n" == cli("workflow", "update", "C-1", "add", "--input", "5").stdout
    assert "only upwards" in cli.refused("workflow", "update", "C-1", "add", "--input", "-1", code=5)
    assert {"status": "ACCEPTED"} == cli.json("workflow", "update", "C-1", "add", "--input", "1", "--no-wait")


def test_a_query_on_a_database_needs_the_code(cli, engine, tmp_path):
    """--app has it; the command takes on no work with it."""
    (tmp_path / "counter_app.py").write_text(
        "from holdfast import query, workflow\n\n"
        "@workflow\n"
        "class Counter:\n"
        "    async def run(self, ctx, first: int) -> int:\n"
        "        self.count = first\n"
        "        await ctx.wait_until(lambda: self.count > 100)\n"
        "        return self.count\n\n"
        "    @query\n"
        "    def current(self) -> int:\n"
        "        return self.count\n"
    )
    cli("workflow", "start", "Counter", "--workflow-id", "C-1", "--input", "41")
    until_waiting(engine, "C-1")

    assert "--app" in cli.refused("workflow", "query", "C-1", "current", code=3)
    assert "41\n" == cli("workflow", "query", "C-1", "current", "--app", "counter_app").stdout
    assert "[unknown_query]" in cli.refused("workflow", "query", "C-1", "nothing", "--app", "counter_app", code=4)


def test_the_mailbox_shows_what_was_not_read(cli, engine, tmp_path):
    """What a program has left only its code can tell; without it, a note says so."""
    (tmp_path / "waiting_app.py").write_text(
        "from holdfast import workflow\n\n"
        "@workflow\n"
        "async def waiting(ctx, until: str):\n"
        "    return await ctx.wait_for_signal(until)\n"
    )
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    cli("workflow", "signal", "W-1", "other", "--input", '{"n": 1}')
    until_waiting(engine, "W-1")
    asked = cli("workflow", "mailbox", "W-1", "--app", "waiting_app").stdout

    assert ('{"n":1}' in asked, "other" in asked) == (True, True)
    assert {"other": 1} == cli.json("workflow", "mailbox", "W-1", "--app", "waiting_app")["counts"]
    assert "try --app" in cli("workflow", "mailbox", "W-1").stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("show", "nobody"), 4, "holdfast workflow list"),
        (("start", "unknown-kind"), 4, "[unknown_workflow_kind]"),
        (("start", "greeting", "--input", "{'a': 1}"), 2, "line 1, column 2"),
        (("start", "greeting", "--input", "hello"), 2, "text needs quotes"),
        (("start", "greeting", "--input", ""), 2, "it is empty"),
        (("start", "greeting", "--input", "NaN"), 2, "not JSON"),
        (("start", "greeting", "--input", "@nowhere.json"), 2, "can't be read"),
        (("start", "greeting", "--start-at", "soon"), 2, "is not a time"),
        (("start", "greeting", "--metadata", "tea"), 2, "is not KEY=VALUE"),
        (("start", "greeting", "--priority", "high"), 2, "not a valid integer"),
        (("list", "--status", "asleep"), 2, "--status"),
        (("list", "--limit", "-1"), 2, "--limit"),
        (("result", "nobody", "--timeout", "soon"), 2, "is not a length of time"),
        (("shwo", "x"), 2, "Did you mean 'show'?"),
    ],
)
def test_what_can_not_be_done_is_said_in_one_line(cli, engine, arguments, code, says):
    """With the cause, a next step, and nothing on standard output."""
    assert says in cli.refused("workflow", *arguments, code=code)


def test_refusals_of_the_present_state_end_with_7(cli, engine):
    """Nothing was changed."""
    cli("workflow", "start", "greeting", "--workflow-id", "G-1", "--input", '"x"', "--wait")
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')
    start = ("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')

    assert "[execution_closed]" in cli.refused("workflow", "signal", "G-1", "x", code=7)
    assert "[workflow_already_running]" in cli.refused(*start, "--if-running", "fail", code=7)
    assert "[execution_open]" in cli.refused("workflow", "retry", "W-1", code=7)


def test_orgs_are_apart(cli, engine):
    """What one org has, another does not see."""
    cli("workflow", "start", "waiting", "--workflow-id", "W-1", "--input", '"go"')

    assert [] == cli.lines("workflow", "list", "--org", "other")
    cli.refused("workflow", "show", "W-1", "--org", "other", code=4)
