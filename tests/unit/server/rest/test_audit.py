"""The record of acts: what an admin does is in it, and no secret ever is."""

from __future__ import annotations

import json

import pytest

from holdfast.model.api_key_text import hash_key
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from holdfast.server.operations import OPERATIONS
from tests.rest_server import EXECUTIONS, ORG, make_key
from tests.unit.server.rest.test_executions import start

PLANTED = "planted-4711-payload"
ADMINS = [operation for operation in OPERATIONS if operation.role is Role.ADMIN and operation.method == "POST"]


@pytest.fixture
async def admin(running):
    return await make_key(running, Role.ADMIN)


@pytest.fixture
async def guarded(admin, open_api):
    return await open_api(auth=AuthSettings(mode=AuthMode.KEYS))


async def acts(api, key):
    return (await api.get(f"{ORG}/audit?limit=1000", key=key)).json["acts"]


async def test_every_act_of_an_admin_is_recorded_and_holds_no_secret(guarded, running, admin):
    """Every operation that only an admin may call, with what must not be kept put wherever there is room for it."""
    [worker] = (await guarded.get(f"{ORG}/workers", key=admin)).json["workers"]
    secrets = {admin}
    for operation in ADMINS:
        execution_id = await begin(guarded, admin)
        other = (await guarded.post(f"{ORG}/keys", {"name": "other", "role": "writer"}, key=admin)).json
        secrets.add(other["text"])
        names = {"org": "default", "workflow_execution_id": execution_id, "key_id": other["key"]["key_id"]}
        path = operation.path.format(**names, queue=admin, worker_id=worker["worker_id"])
        body = {**(operation.example or {}), **put_into(operation, admin)}
        answer = await guarded.post(path, body, key=admin)
        assert answer.status < 500, (operation.name, answer.data)
        if answer.status < 300 and "text" in answer.json:
            secrets.add(answer.json["text"])
    recorded = await acts(guarded, admin)
    text = json.dumps(recorded)

    assert len(ADMINS) == len({act["action"] for act in recorded})
    for secret in secrets:
        assert secret not in text
        assert str(hash_key(secret)) not in text
    assert PLANTED not in text
    assert "ct_" not in text
    assert (await running.keys.verify_audit("default")).is_whole


async def begin(api, key):
    """An execution whose input and signals must stay where they are."""
    body = {"workflow_kind": "chatbot-conversation", "workflow_input": {"secret": PLANTED}}
    execution_id = (await api.post(EXECUTIONS, body, key=key)).json["workflow_execution_id"]
    signal = {"signal_name": "message", "signal_value": {"text": PLANTED}}
    await api.post(f"{EXECUTIONS}/{execution_id}/signal", signal, key=key)
    return execution_id


def put_into(operation, secret):
    """A key in every text that may be given freely."""
    free = {"reason", "name"}
    return {name: f"see {secret}" for name in operation.body.__struct_fields__ if name in free}


async def test_what_is_refused_is_recorded_as_refused(guarded, admin):
    """First that it was begun, then why it was not done."""
    await guarded.post(f"{EXECUTIONS}/nobody/reset", {"to_event": 1}, key=admin)
    refused, begun = (await acts(guarded, admin))[:2]

    assert ("reset_workflow", "nobody", "execution_not_found") == (
        refused["action"],
        refused["subject"],
        refused["outcome"],
    )
    assert ("reset_workflow", "nobody", "begun") == (begun["action"], begun["subject"], begun["outcome"])


async def test_a_call_that_is_not_allowed_is_not_recorded(guarded, running, admin):
    """A reader can't fill the record."""
    reader = await make_key(running, Role.READER)
    before = len(await acts(guarded, admin))
    assert 403 == (await guarded.post(f"{ORG}/queues/q/pause", {}, key=reader)).status
    assert 403 == (await guarded.post(f"{ORG}/recover", {}, key=reader)).status
    assert before == len(await acts(guarded, admin))


async def test_without_keys_the_server_records_nothing(api):
    """On one's own machine there is nobody whose acts these would be; what records itself names the operator."""
    execution_id = await start(api)
    await api.post(f"{EXECUTIONS}/{execution_id}/reset", {"to_event": 1})
    await api.post(f"{ORG}/queues/q/pause", {})
    recorded = (await api.get(f"{ORG}/audit")).json["acts"]
    assert [("queues.pause", "operator")] == [(act["action"], act["actor"]) for act in recorded]
