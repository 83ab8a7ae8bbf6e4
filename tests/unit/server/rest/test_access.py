"""Who may do what, for every operation of the table: none can be forgotten."""

from __future__ import annotations

import json

import pytest

from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from holdfast.server.operations import OPERATIONS
from tests.rest_server import EXECUTIONS, ORG, make_key

KEYED = [operation for operation in OPERATIONS if operation.role is not None]
OPEN = {"healthz", "readyz"}
ANYTHING = {"org": "default", "event_id": "1", "sequence": "1", "task_no": "1"}


def path_of(operation, **values):
    path = operation.path
    for name in operation.parameters:
        path = path.replace(f"{{{name}}}", values.get(name, ANYTHING.get(name, "nobody")))
    return path


def call_of(operation):
    """A body that is taken, so that what is refused is refused for another reason."""
    if operation.body is None:
        return None
    return json.dumps(operation.example or {}).encode()


@pytest.fixture
async def keys(running):
    return {role: await make_key(running, role) for role in Role}


@pytest.fixture
async def guarded(running, keys, open_api):
    return await open_api(auth=AuthSettings(mode=AuthMode.KEYS, failures_per_minute=100_000))


async def test_only_these_are_open():
    assert OPEN == {operation.name for operation in OPERATIONS if operation.role is None}


async def test_without_a_key_nothing_is_done_a01_a05(guarded, keys):
    """Neither without one, nor with one anywhere but in its header."""
    admin = keys[Role.ADMIN]
    refused = 0
    for operation in KEYED:
        path, data = path_of(operation), call_of(operation)
        none = await guarded.call(operation.method, path, data=data)
        in_query = await guarded.call(operation.method, f"{path}?api_key={admin}&key={admin}", data=data)
        cookie = await guarded.call(operation.method, path, data=data, headers={"cookie": f"authorization={admin}"})
        for answer in (none, in_query, cookie):
            assert (401, "unauthenticated") == (answer.status, answer.json["code"]), operation.name
            assert "Bearer" == answer.headers["www-authenticate"]
            assert admin.encode() not in answer.data
        refused += 1
    assert refused == len(OPERATIONS) - len(OPEN)


async def test_wrong_keys_are_all_answered_alike_a03_a04(guarded, keys):
    key = keys[Role.ADMIN]
    wrong = [key[:-1], key + "x", key.upper(), key[:10] + "x" + key[11:], "", "ü", "x" * 5000]
    answers = [await guarded.get(EXECUTIONS, headers={"authorization": f"Bearer {text}"}) for text in wrong]

    assert {401} == {answer.status for answer in answers}
    bodies = {answer.data.replace(answer.json["request_id"].encode(), b"") for answer in answers}
    assert 1 == len(bodies)


async def test_two_keys_are_one_too_many_a06(guarded, keys):
    given = [("authorization", f"Bearer {keys[Role.ADMIN]}"), ("authorization", f"Bearer {keys[Role.READER]}")]
    answer = await guarded.get(EXECUTIONS, headers=given)

    assert 400 == answer.status


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_on_every_operation_a11(guarded, keys, role):
    """Refused with 403 exactly where the role is not enough, and never let through elsewhere."""
    cells = 0
    for operation in KEYED:
        if operation.streams and role.allows(operation.role):
            continue  # these answer for ever
        answer = await guarded.call(operation.method, path_of(operation), data=call_of(operation), key=keys[role])
        allowed = role.allows(operation.role)
        assert (answer.status == 403) is not allowed, (operation.name, answer.status, answer.data)
        assert answer.status < 500 or answer.json["code"] == "no_worker", (operation.name, answer.data)
        cells += 1
    assert cells >= len([operation for operation in KEYED if not operation.streams])


async def test_another_org_is_like_one_that_does_not_exist_a16(running, guarded, keys):
    """Byte for byte, on every operation with an org in its path."""
    await make_key(running, Role.ADMIN, "other")
    for operation in KEYED:
        if "org" not in operation.parameters:
            continue
        real, unknown = [
            await guarded.call(
                operation.method, path_of(operation, org=org), data=call_of(operation), key=keys[Role.ADMIN]
            )
            for org in ("other", "nobody")
        ]
        assert (404, "route_not_found") == (real.status, real.json["code"]), operation.name
        cut = [a.data.replace(a.json["request_id"].encode(), b"") for a in (real, unknown)]
        assert cut[0] == cut[1], operation.name


async def test_an_id_of_another_org_is_like_an_unknown_one_a15(running, guarded, keys):
    """For every operation on an execution: a real id of another org, and one that nobody has."""
    other = await make_key(running, Role.ADMIN, "other")
    await running.engine_api().workers.register(_worker_of("other"))
    started = await guarded.post(
        "/api/orgs/other/workflow-executions", {"workflow_kind": "asks", "workflow_id": "w"}, key=other
    )
    real = started.json["workflow_execution_id"]
    unknown = real[:-6] + "ffffff"
    tried = 0
    for operation in KEYED:
        if "workflow_execution_id" not in operation.parameters:
            continue
        answers = []
        for execution_id in (real, unknown):
            path = path_of(operation, workflow_execution_id=execution_id)
            answer = await guarded.call(operation.method, path, data=call_of(operation), key=keys[Role.ADMIN])
            text = answer.data.replace(answer.json["request_id"].encode(), b"").replace(execution_id.encode(), b"ID")
            answers.append((answer.status, text))
        assert answers[0] == answers[1], operation.name
        assert 404 == answers[0][0], operation.name
        tried += 1
    assert tried > 20


def _worker_of(org):
    from holdfast.contract.workers import RegisterWorker

    return RegisterWorker(
        org=org,
        session="s-other",
        host="h",
        pid=1,
        builds={("asks", "1"): "b"},
        turn_slots=0,
        task_slots=0,
        lease_s=30.0,
    )


async def test_fields_that_are_nobodys_business_are_refused_a17(api):
    """In every body: what decides about org, state or rights is never taken from it."""
    for operation in OPERATIONS:
        if operation.body is None:
            continue
        for field in ("org", "org_id", "created_at", "seq", "epoch", "by", "address", "status"):
            if field in operation.body.__struct_fields__:
                continue
            body = {**(operation.example or {}), field: "x"}
            answer = await api.call(operation.method, path_of(operation), body)
            assert (422, "malformed_body", field) == (
                answer.status,
                answer.json["code"],
                answer.json["field"],
            ), operation.name


async def test_filters_are_never_sql_a18(api):
    await api.post(EXECUTIONS, {"workflow_kind": "asks", "workflow_id": "mine"})
    for text in ("' OR '1'='1", "x'; DROP TABLE holdfast_executions; --", "%", "_", "%25' ESCAPE '", "mine' --"):
        for field in ("workflow_id", "queue", "workflow_kind"):
            from urllib.parse import quote

            answer = await api.get(f"{EXECUTIONS}?{field}={quote(text)}")
            assert (200, []) == (answer.status, answer.json["items"]), (field, text)


async def test_without_keys_only_this_machine_by_its_name_is_answered(api):
    """A page elsewhere whose name was made to point here gets nothing."""
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example"):
        answer = await api.get(EXECUTIONS, headers={"host": host})
        assert (403, "forbidden") == (answer.status, answer.json["code"])
    for host in ("localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8233"):
        assert 200 == (await api.get(EXECUTIONS, headers={"host": host})).status


async def test_no_answer_is_for_other_origins_a81(api):
    answer = await api.get(EXECUTIONS, headers={"origin": "https://evil.example"})
    asked = await api.call("OPTIONS", EXECUTIONS, headers={"origin": "https://evil.example"})

    assert not [name for reply in (answer, asked) for name in reply.headers if name.startswith("access-control")]
    assert 405 == asked.status


async def test_keys_over_http(guarded, keys):
    admin = keys[Role.ADMIN]
    made = await guarded.post(f"{ORG}/keys", {"name": "shop", "role": "writer"}, key=admin)
    text, key_id = made.json["text"], made.json["key"]["key_id"]
    used = await guarded.get("/api/me", key=text)
    shown = await guarded.get(f"{ORG}/keys/{key_id}", key=admin)
    rotated = await guarded.post(f"{ORG}/keys/{key_id}/rotate", {"overlap_seconds": 0}, key=admin)
    revoked = await guarded.post(f"{ORG}/keys/{key_id}/revoke", key=admin)
    listed = await guarded.get(f"{ORG}/keys", key=admin)
    audit = await guarded.get(f"{ORG}/audit", key=admin)
    checked = await guarded.get(f"{ORG}/audit/verification", key=admin)
    more = await guarded.post(f"{ORG}/keys", {"name": "x", "role": "owner"}, key=admin)

    assert (201, "writer", key_id) == (made.status, used.json["role"], used.json["key_id"])
    assert text.encode() not in shown.data + listed.data + audit.data
    assert (200, "revoked") == (revoked.status, revoked.json["state"])
    assert rotated.json["text"] != text
    assert key_id in {key["key_id"] for key in listed.json["keys"]}
    assert {"keys.create", "keys.rotate", "keys.revoke"} <= {act["action"] for act in audit.json["acts"]}
    assert checked.json["whole"]
    assert (422, "role") == (more.status, more.json["field"])


async def test_an_org_is_deleted_by_its_admin_a27(running, guarded, keys):
    """With its name as confirmation; from then on none of its keys counts, and no other org's is concerned."""
    admin, reader = [await make_key(running, role, "acme") for role in (Role.ADMIN, Role.READER)]
    path = "/api/orgs/acme"
    unsure = await guarded.call("DELETE", path, {"confirm": "ACME"}, key=admin)
    not_allowed = await guarded.call("DELETE", path, {"confirm": "acme"}, key=reader)
    elsewhere = await guarded.call("DELETE", path, {"confirm": "acme"}, key=keys[Role.ADMIN])
    deleted = await guarded.call("DELETE", path, {"confirm": "acme"}, key=admin)

    assert (422, "confirm") == (unsure.status, unsure.json["field"])
    assert [403, 404] == [not_allowed.status, elsewhere.status]
    assert (202, "acme") == (deleted.status, deleted.json["org"])
    assert [401, 401] == [(await guarded.get("/api/me", key=key)).status for key in (admin, reader)]
    assert 200 == (await guarded.get("/api/me", key=keys[Role.READER])).status


async def test_without_keys_an_org_is_not_deleted_over_http_a27(api):
    """On a machine of one's own nobody has shown that it is his."""
    answer = await api.call("DELETE", ORG, {"confirm": "default"})
    assert (403, "forbidden") == (answer.status, answer.json["code"])
