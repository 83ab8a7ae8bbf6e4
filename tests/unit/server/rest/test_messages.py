"""Promises, events, broadcasts and messages over HTTP."""

from __future__ import annotations

from functools import partial

import pytest

from tests.conftest import until
from tests.rest_server import EXECUTIONS, ORG
from tests.unit.server.rest.test_executions import start, status_of


async def pending(api, workflow_id="w"):
    """A promise that waits to be settled, and its execution."""
    execution_id = await start(api, "asks", workflow_id=workflow_id)

    async def made():
        return (await api.get(f"{EXECUTIONS}/{execution_id}/promises")).json["promises"]

    return execution_id, (await until(made))[0]["promise_id"]


async def result(api, execution_id):
    return (await api.get(f"{EXECUTIONS}/{execution_id}/result?wait=20")).json


@pytest.mark.parametrize("prefix", [ORG, "/api/v1"])
async def test_a_promise_is_resolved_by_id_003_19(api, prefix):
    execution_id, promise_id = await pending(api)
    body = {"promise_id": promise_id, "value": {"ok": True}, "idempotency_key": "k"}
    first = await api.post(f"{prefix}/promises/resolve", body)
    again = await api.post(f"{prefix}/promises/resolve", body)
    other = await api.post(f"{prefix}/promises/resolve", {"promise_id": promise_id, "value": 2})

    assert (200, False, True) == (first.status, first.json["already_resolved"], first.json["idempotency_key_new"])
    assert (False, False) == (again.json["already_resolved"], again.json["idempotency_key_new"])
    assert (True, {"ok": True}) == (other.json["already_resolved"], other.json["value"])
    assert {"ok": True} == (await result(api, execution_id))["result"]


@pytest.mark.parametrize("prefix", [ORG, "/api/v1"])
async def test_a_promise_is_completed_by_name_003_11(api, prefix):
    execution_id, _ = await pending(api, "order/7")
    path = f"{prefix}/workflows/order%2F7/promises/answer/complete"
    answer = await api.post(path, {"request_id": "r", "result": 5})

    assert (200, "RESOLVED") == (answer.status, answer.json["state"])
    assert 5 == (await result(api, execution_id))["result"]


@pytest.mark.parametrize("error", ["no time", {"type": "Busy", "message": "no time"}])
async def test_a_promise_is_rejected(api, error):
    execution_id, promise_id = await pending(api)
    answer = await api.post("/api/v1/promises/reject", {"promise_id": promise_id, "error": error})

    assert (200, "REJECTED") == (answer.status, answer.json["state"])
    ended = await result(api, execution_id)
    assert "FAILED" == ended["status"]
    assert "no time" in ended["failure"]["message"]


async def test_a_token_completes_003_10(api, running):
    execution_id, _ = await pending(api)
    from holdfast.model.tokens import promise_token

    token = promise_token(running.token_key("default", execution_id), "default", execution_id, "answer")
    assert token.startswith("ct_")
    wrong = await api.post("/api/v1/promises/complete", {"token": "ct_wrong", "result": 1})
    answer = await api.post("/api/v1/promises/complete", {"token": token, "request_id": "r", "result": 1})

    assert (404, "promise_not_found") == (wrong.status, wrong.json["code"])
    assert b"ct_wrong" not in wrong.data
    assert (200, "RESOLVED") == (answer.status, answer.json["state"])


@pytest.mark.parametrize("path", [f"{ORG}/events", "/api/v1/events"])
async def test_an_event_is_published_003_12(api, path):
    execution_id = await start(api, "listens")
    await until(lambda: _waits(api, execution_id))
    other = await api.post(path, {"key": "order", "data": {"id": 8}})
    body = {"key": "order", "data": {"id": 7}, "idempotency_key": "k"}
    first = await api.post(path, body)
    again = await api.post(path, body)

    assert (0, 1) == (other.json["delivered"], first.json["delivered"])
    assert (first.json["event_id"], False) == (again.json["event_id"], again.json["idempotency_key_new"])
    assert {"id": 7} == (await result(api, execution_id))["result"]


async def _waits(api, execution_id):
    return (await api.get(f"{EXECUTIONS}/{execution_id}/waits")).json["waits"]


async def test_events_are_listed_replayed_and_removed(api):
    execution_id = await start(api, "listens")
    await until(lambda: _waits(api, execution_id))
    event_id = (await api.post(f"{ORG}/events", {"key": "order", "data": {"id": 8}})).json["event_id"]
    listed = (await api.get(f"{ORG}/events?key=order")).json["events"]
    one = (await api.get(f"{ORG}/events/{event_id}")).json
    key = (await api.get(f"{ORG}/event-keys/order")).json
    waits = (await api.get(f"{ORG}/event-keys/order/waits")).json["waits"]
    replayed = await api.post(f"{ORG}/events/{event_id}/replay")
    removed = await api.call("DELETE", f"{ORG}/events/{event_id}")
    gone = await api.get(f"{ORG}/events/{event_id}")

    assert [event_id] == [event["event_id"] for event in listed]
    assert ({"id": 8}, "kept", 1) == (one["data"], one["status"], key["retained"])
    assert [(execution_id, "input.id == 7")] == [(w["workflow_execution_id"], w["where"]) for w in waits]
    assert (404, 204, b"", 404) == (replayed.status, removed.status, removed.data, gone.status)
    assert [] == (await api.get(f"{ORG}/dead-events")).json["events"]


@pytest.mark.parametrize("spelling", ["SignalName", "signal_name"])
async def test_a_broadcast_wakes_everybody_001_40(api, spelling):
    ids = [await start(api, "hears") for _ in range(2)]
    for execution_id in ids:
        await until(partial(_waits, api, execution_id))
    answer = await api.post(f"{ORG}/signal", {spelling: "closing"})
    nobody = await api.post(f"{ORG}/signal", {spelling: "closing"})

    assert (200, 2, 2) == (answer.status, answer.json["DeliveredCount"], answer.json["delivered_count"])
    assert (200, 0) == (nobody.status, nobody.json["DeliveredCount"])
    for execution_id in ids:
        assert "heard" == (await result(api, execution_id))["result"]


async def test_a_broadcast_needs_one_name(api):
    none = await api.post(f"{ORG}/signal", {})
    two = await api.post(f"{ORG}/signal", {"SignalName": "a", "signal_name": "b"})

    assert [(422, "SignalName")] * 2 == [(answer.status, answer.json["field"]) for answer in (none, two)]


async def test_a_message_is_kept_for_one(api):
    answer = await api.post(f"{ORG}/messages", {"name": "invoice", "correlation_key": "7", "data": 1})

    assert (200, 0, True) == (answer.status, answer.json["delivered"], answer.json["retained"])


async def test_result_and_error_together_are_refused(api):
    execution_id, _ = await pending(api)
    answer = await api.post(f"{ORG}/workflows/w/promises/answer/complete", {"result": 1, "error": "x"})

    assert (422, "error") == (answer.status, answer.json["field"])
    assert "WAITING" == await status_of(api, execution_id)
