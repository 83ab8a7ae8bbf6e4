"""Executions over HTTP: started, signalled, looked at, ended, asked."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import until
from tests.rest_server import EXECUTIONS, ORG

# As the first source document gives it.
SIGNAL_WITH_START = {
    "workflow_id": "conversation:conv-123",
    "workflow_kind": "chatbot-conversation",
    "workflow_input": {"conversation_id": "conv-123", "user_id": "user-456"},
    "queue": "default",
    "signal_name": "message",
    "signal_value": {"text": "Hello!", "timestamp": 1706380800000},
    "metadata": {"channel": "web"},
}


async def start(api, kind="chatbot-conversation", **options):
    answer = await api.post(EXECUTIONS, {"workflow_kind": kind, **options})
    assert 201 == answer.status, answer.data
    return answer.json["workflow_execution_id"]


async def status_of(api, execution_id):
    return (await api.get(f"{EXECUTIONS}/{execution_id}")).json["status"]


async def test_signal_with_start_000_33_34(api):
    """The document's request, and the keys of its answer; the second call finds the first one's execution."""
    first = await api.post(f"{EXECUTIONS}/signal-with-start", SIGNAL_WITH_START)
    second = await api.post(f"{EXECUTIONS}/signal-with-start", SIGNAL_WITH_START)

    assert (200, "application/json") == (first.status, first.headers["content-type"])
    keys = {"workflow_execution_id", "workflow_created", "signal_event_sequence", "signal_delivered"}
    assert keys <= set(first.json)
    assert (True, 2, True) == tuple(
        first.json[key] for key in ("workflow_created", "signal_event_sequence", "signal_delivered")
    )
    assert first.json["workflow_execution_id"] == second.json["workflow_execution_id"]
    assert not second.json["workflow_created"]
    assert second.json["signal_event_sequence"] > 2


async def test_signal_with_start_takes_what_grpc_takes_000_81(api):
    body = {
        **SIGNAL_WITH_START,
        "priority_seconds": 5,
        "workflow_version": "1",
        "idempotency_key_ttl_seconds": 60,
        "idempotency_key": "k",
    }
    first = await api.post(f"{EXECUTIONS}/signal-with-start", body)
    again = await api.post(f"{EXECUTIONS}/signal-with-start", body)

    assert (200, True, True) == (first.status, first.json["idempotency_key_used"], first.json["idempotency_key_new"])
    assert not again.json["idempotency_key_new"]
    assert first.json["signal_event_sequence"] == again.json["signal_event_sequence"]
    shown = (await api.get(f"{EXECUTIONS}/{first.json['workflow_execution_id']}")).json
    assert (5, "1", {"channel": "web"}) == (shown["priority_seconds"], shown["workflow_version"], shown["metadata"])


async def test_signal_000_35(api):
    execution_id = await start(api)
    answer = await api.post(f"{EXECUTIONS}/{execution_id}/signal", {"signal_name": "message", "signal_value": {}})

    assert (200, {"signal_event_sequence", "signal_delivered"}) == (answer.status, set(answer.json))


async def test_the_idempotency_key_is_a_header_too(api):
    """A header, `request_id` and `idempotency_key` mean the same; two that differ are refused."""
    body = {"workflow_kind": "asks"}
    first = await api.post(EXECUTIONS, body, headers={"Idempotency-Key": "k"})
    again = await api.post(EXECUTIONS, {**body, "request_id": "k"})
    both = await api.post(EXECUTIONS, {**body, "idempotency_key": "x"}, headers={"Idempotency-Key": "k"})

    assert first.json["workflow_execution_id"] == again.json["workflow_execution_id"]
    assert (422, "idempotency_key") == (both.status, both.json["field"])


async def test_the_result_is_waited_for(api):
    execution_id = await start(api)
    early = await api.get(f"{EXECUTIONS}/{execution_id}/result")
    waiting = asyncio.create_task(api.get(f"{EXECUTIONS}/{execution_id}/result?wait=20"))
    await api.post(f"{EXECUTIONS}/{execution_id}/signal", {"signal_name": "message", "signal_value": {"end": True}})
    late = await waiting

    assert (False, None) == (early.json["closed"], early.json["result"])
    assert (True, "COMPLETED", 1) == (late.json["closed"], late.json["status"], late.json["result"])
    assert "WORKFLOW_COMPLETED" == late.json["last_event"]["type"]


async def test_history_is_waited_for_and_paged(api):
    execution_id = await start(api)
    await until(lambda: is_waiting(api, execution_id))
    whole = (await api.get(f"{EXECUTIONS}/{execution_id}/history")).json
    last = whole["events"][-1]["sequence"]
    waiting = asyncio.create_task(
        api.get(f"{EXECUTIONS}/{execution_id}/history?after={last}&wait=20&type=SIGNAL_RECEIVED")
    )
    await api.post(f"{EXECUTIONS}/{execution_id}/signal", {"signal_name": "message", "signal_value": {}})
    page = (await api.get(f"{EXECUTIONS}/{execution_id}/history?limit=1")).json

    assert [last + 1] == [event["sequence"] for event in (await waiting).json["events"]]
    assert (["WORKFLOW_STARTED"], True) == ([event["type"] for event in page["events"]], page["more"])
    assert whole["events"][0]["at"].endswith("Z")


async def is_waiting(api, execution_id):
    return await status_of(api, execution_id) == "WAITING"


async def test_lists_have_filters_and_cursors(api):
    ids = [await start(api, workflow_id=f"w/{i}", metadata={"n": str(i % 2)}) for i in range(5)]
    await start(api, "asks")
    page = (await api.get(f"{EXECUTIONS}?workflow_kind=chatbot-conversation&limit=2")).json
    rest = (await api.get(f"{EXECUTIONS}?workflow_kind=chatbot-conversation&limit=3&cursor={page['next_cursor']}")).json
    even = (await api.get(f"{EXECUTIONS}?metadata=n%3D0")).json
    found = (await api.get(f"{ORG}/workflows/w%2F3")).json
    future = (datetime.now(UTC) + timedelta(days=1)).isoformat().replace("+", "%2B")
    later = (await api.get(f"{EXECUTIONS}?created_from={future}")).json
    counts = (await api.get(f"{EXECUTIONS}/count")).json

    assert ids[::-1] == [item["workflow_execution_id"] for item in (*page["items"], *rest["items"])]
    assert rest["next_cursor"] is None
    assert {ids[0], ids[2], ids[4]} == {item["workflow_execution_id"] for item in even["items"]}
    assert ids[3] == found["workflow_execution_id"]
    assert ([], 6) == (later["items"], counts["total"])


async def test_a_cursor_of_another_list_is_refused_a19(api):
    for i in range(3):
        await start(api, workflow_id=f"w{i}")
    cursor = (await api.get(f"{EXECUTIONS}?limit=1")).json["next_cursor"]
    other_list = await api.get(f"{EXECUTIONS}?limit=1&queue=other&cursor={cursor}")
    other_org = await api.get(f"/api/orgs/other/workflow-executions?limit=1&cursor={cursor}")
    edited = await api.get(f"{EXECUTIONS}?limit=1&cursor={cursor[:-4]}AAAA")

    answers = (other_list, other_org, edited)
    assert [(422, "invalid_cursor", "cursor")] * 3 == [(a.status, a.json["code"], a.json["field"]) for a in answers]


async def test_queries_and_updates(api):
    execution_id = await start(api, "basket")
    one = f"{EXECUTIONS}/{execution_id}"
    added = await api.post(f"{one}/updates", {"update_name": "add", "input": "tea", "update_id": "u", "wait": 20})
    again = await api.get(f"{one}/updates/u?wait=20")
    failed = await api.post(f"{one}/updates", {"update_name": "add", "input": "", "wait": 20})
    asked = await api.post(f"{one}/query", {"query_name": "content"})
    unknown = await api.post(f"{one}/query", {"query_name": "nothing"})
    nobody = await api.get(f"{one}/updates/other")

    assert ("COMPLETED", 1) == (added.json["status"], added.json["result"])
    assert ("COMPLETED", 1) == (again.json["status"], again.json["result"])
    assert ("FAILED", "ValueError") == (failed.json["status"], failed.json["failure"]["type"])
    assert ["tea"] == asked.json["result"]
    assert (404, "unknown_query") == (unknown.status, unknown.json["code"])
    assert (404, "update_not_found") == (nobody.status, nobody.json["code"])


async def test_ending_and_taking_up_again(api):
    execution_id = await start(api, "asks", workflow_id="w")
    one = f"{EXECUTIONS}/{execution_id}"
    await until(lambda: is_waiting(api, execution_id))
    forked = await api.post(f"{one}/fork", {"at_event": 1, "workflow_id": "other"})
    ended = await api.post(f"{one}/terminate", {"reason": "enough"})
    twice = await api.post(f"{one}/terminate")
    signalled = await api.post(f"{one}/signal", {"signal_name": "x"})
    retried = await api.post(f"{one}/retry", {})
    cancelled = await api.post(f"{EXECUTIONS}/{retried.json['workflow_execution_id']}/cancel", {})
    resumed = await api.post(f"{one}/resume")

    assert (201, True) == (forked.status, forked.json["workflow_created"])
    assert [True, False, True] == [answer.json["changed"] for answer in (ended, twice, cancelled)]
    assert (409, "execution_closed") == (signalled.status, signalled.json["code"])
    assert (201, False) == (retried.status, resumed.json["changed"])


async def test_what_an_execution_shows(api):
    execution_id = await start(api, "asks")
    one = f"{EXECUTIONS}/{execution_id}"
    await until(lambda: is_waiting(api, execution_id))
    promises = (await api.get(f"{one}/promises")).json["promises"]

    assert [("answer", "PENDING")] == [(promise["name"], promise["state"]) for promise in promises]
    for what, key in (("tasks", "tasks"), ("timers", "timers"), ("waits", "waits"), ("dead-letters", "dead_letters")):
        assert [] == (await api.get(f"{one}/{what}")).json[key]
    assert {} == (await api.get(f"{one}/state")).json["state"]
    assert [] == (await api.get(f"{one}/mailbox")).json["signals"]


async def test_unread_signals_are_seen_and_redelivered(api):
    execution_id = await start(api, "asks", workflow_id="w")
    one = f"{EXECUTIONS}/{execution_id}"
    await api.post(f"{one}/signal", {"signal_name": "x", "signal_value": 5})
    await until(lambda: is_waiting(api, execution_id))
    mailbox = (await api.get(f"{one}/mailbox")).json
    await api.post(f"{one}/terminate")
    await api.post(f"{one}/bury-unread")
    letters = (await api.get(f"{ORG}/dead-letters")).json["dead_letters"]
    other = await start(api, "asks", workflow_id="v")
    moved = await api.post(f"{one}/dead-letters/{letters[0]['sequence']}/redeliver", {"to": "v"})
    gone = await api.call("DELETE", f"{one}/dead-letters/{letters[0]['sequence']}")

    assert ({"x": 1}, [5]) == (mailbox["counts"], [signal["signal_value"] for signal in mailbox["signals"]])
    assert [("x", 5)] == [(letter["signal_name"], letter["signal_value"]) for letter in letters]
    assert other == moved.json["workflow_execution_id"]
    assert (404, "dead_letter_not_found") == (gone.status, gone.json["code"])


@pytest.mark.parametrize("path", ["", "/history", "/state", "/result", "/tasks", "/timers", "/waits", "/promises"])
async def test_an_unknown_execution_is_not_found(api, path):
    answer = await api.get(f"{EXECUTIONS}/nobody{path}")

    assert (404, "execution_not_found") == (answer.status, answer.json["code"])
    assert "application/problem+json" == answer.headers["content-type"]
    assert answer.json["request_id"] == answer.headers["x-request-id"]


async def test_payloads_stay_as_they_are(api):
    """Large integers, order of keys, spaces: what was sent is what comes back."""
    data = b'{"workflow_kind": "asks", "workflow_input": {"b": 12345678901234567890, "a": [1.50, "\\u00e4\\n"]}}'
    execution_id = (await api.call("POST", EXECUTIONS, data=data)).json["workflow_execution_id"]
    history = await api.get(f"{EXECUTIONS}/{execution_id}/history?limit=1")

    assert b'{"b": 12345678901234567890, "a": [1.50, "\\u00e4\\n"]}' in history.data
