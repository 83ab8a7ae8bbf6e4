"""Standalone tasks over plain HTTP: what goes in, what comes out, who may, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Engine, RetryPolicy, TaskContext, WorkflowContext, task, workflow
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from tests.conftest import QUICK, until
from tests.rest_server import EXECUTIONS, ORG, make_key, rest_server

TASKS = f"{ORG}/tasks"


@task
async def pair(left: str, right: str) -> str:
    return f"{left} {right}"


@task
def shout(word: Any = None) -> Any:
    return f"{word}!"


@task(retry=RetryPolicy(max_attempts=1))
async def later(ctx: TaskContext) -> Any:
    ctx.complete_later()


@workflow
async def waits(ctx: WorkflowContext) -> None:
    await ctx.wait_for_signal("never")


@pytest.fixture
async def running(database_url):
    async with Engine(database_url, workflows=[waits], tasks=[pair, shout, later], config=QUICK) as engine:
        yield engine


@pytest.fixture
async def api(running):
    async with rest_server(running) as opened:
        yield opened


async def begin(api, kind, **fields):
    answer = await api.post(TASKS, {"task_kind": kind, **fields})
    assert 201 == answer.status, answer.data
    return answer.json


async def left_to_others(api, task_id):
    await begin(api, "later", task_id=task_id, retry={"max_attempts": 1})

    async def waiting():
        return (await api.get(f"{TASKS}/{task_id}")).json["status"] == "WAITING"

    await until(waiting)


async def test_a_task_is_started_and_its_result_waited_for(api):
    """By its task id or its execution id; a path has either."""
    started = await begin(api, "shout", task_id="s/1", input="tea", metadata={"a": "b"})
    by_id = await api.get(f"{TASKS}/s%2F1/result?wait=20")
    by_execution = await api.get(f"{TASKS}/{started['workflow_execution_id']}/result")
    view = (await api.get(f"{TASKS}/s%2F1")).json

    assert ("s/1", True) == (started["task_id"], started["task_created"])
    assert by_id.json == by_execution.json
    assert ("COMPLETED", True, "tea!") == tuple(by_id.json[name] for name in ("status", "closed", "result"))
    assert ("shout", ["tea"], {"a": "b"}, 1) == tuple(
        view[name] for name in ("task_kind", "args", "metadata", "attempt")
    )


@pytest.mark.parametrize(
    ("fields", "result"),
    [({}, "None!"), ({"input": None}, "None!"), ({"args": []}, "None!"), ({"args": [[1]]}, "[1]!")],
)
async def test_one_argument_or_all_of_them(api, fields, result):
    """`input` is one, whatever it is; `args` are all."""
    started = await begin(api, "shout", **fields)

    assert result == (await api.get(f"{TASKS}/{started['task_id']}/result?wait=20")).json["result"]


async def test_several_arguments(api):
    """In their order, as options are in theirs."""
    started = await begin(api, "pair", args=["a", "b"], start_to_close_seconds=5, heartbeat_timeout_seconds=2)
    ended = (await api.get(f"{TASKS}/{started['task_id']}/result?wait=20")).json
    view = (await api.get(f"{TASKS}/{started['task_id']}")).json

    assert "a b" == ended["result"]
    assert {"start_to_close_s": 5.0, "heartbeat_s": 2.0} == view["timeouts"]


async def test_a_result_that_is_not_there_yet(api):
    """The answer says so; nobody waits who has not asked to."""
    await left_to_others(api, "l")
    answer = (await api.get(f"{TASKS}/l/result")).json

    assert ("WAITING", False, None) == (answer["status"], answer["closed"], answer["failure"])


async def test_complete_fail_and_cancel(api):
    """Each tells what came of it."""
    for name in ("one", "two", "three"):
        await left_to_others(api, name)
    completed = await api.post(f"{TASKS}/one/complete", {"result": 7, "idempotency_key": "k"})
    repeated = await api.post(f"{TASKS}/one/complete", {"result": 7}, headers={"Idempotency-Key": "k"})
    late = await api.post(f"{TASKS}/one/complete", {"result": 8})
    failed = await api.post(f"{TASKS}/two/fail", {"error": {"type": "Refused", "message": "no", "non_retryable": True}})
    cancelled = await api.post(f"{TASKS}/three/cancel", {"reason": "enough"})

    assert (200, "RESOLVED", True) == (completed.status, completed.json["state"], completed.json["idempotency_key_new"])
    assert (200, False) == (repeated.status, repeated.json["idempotency_key_new"])
    assert (409, "stale_attempt") == (late.status, late.json["code"])
    assert (200, "REJECTED") == (failed.status, failed.json["state"])
    assert (200, True) == (cancelled.status, cancelled.json["changed"])
    ends = [(await api.get(f"{TASKS}/{name}/result?wait=20")).json for name in ("one", "two", "three")]
    assert ["COMPLETED", "FAILED", "CANCELLED"] == [end["status"] for end in ends]
    assert (7, "Refused", "enough") == (ends[0]["result"], ends[1]["failure"]["type"], ends[2]["reason"])


async def test_tasks_are_listed(api):
    """The newest first, page by page, by status and kind."""
    made = [(await begin(api, "shout", input=number))["task_id"] for number in range(3)]
    for task_id in made:
        await api.get(f"{TASKS}/{task_id}/result?wait=20")
    await left_to_others(api, "l")
    page = (await api.get(f"{TASKS}?limit=2")).json
    rest = (await api.get(f"{TASKS}?limit=2&cursor={page['next_cursor']}")).json

    assert ["l", *reversed(made)] == [item["task_id"] for item in (*page["items"], *rest["items"])]
    assert ["l"] == [item["task_id"] for item in (await api.get(f"{TASKS}?status=WAITING")).json["items"]]
    assert 3 == len((await api.get(f"{TASKS}?task_kind=shout&status=COMPLETED&status=FAILED")).json["items"])


@pytest.mark.parametrize(
    ("fields", "status", "code", "field"),
    [
        ({"task_kind": "shuot"}, 404, "unknown_task_kind", None),
        ({"task_kind": "shout", "input": 1, "args": []}, 422, "invalid_request", "args"),
        ({"task_kind": "shout", "retry": {"max_attempts": 0}}, 422, "invalid_request", "max_attempts"),
        ({"task_kind": "shout", "retry": {"attempts": 3}}, 422, "malformed_body", None),
        ({"task_kind": "shout", "start_to_close_seconds": 0}, 422, "invalid_duration", "start_to_close"),
        ({"task_kind": "shout", "metadata": {"holdfast.x": "y"}}, 422, "invalid_request", "metadata"),
        ({"task_kind": ""}, 422, "invalid_request", "task_kind"),
        ({}, 422, "invalid_request", "body"),
    ],
)
async def test_bad_starts_are_refused(api, fields, status, code, field):
    """With a code, and the field if it is one; nothing is started."""
    answer = await api.post(TASKS, fields)

    assert (status, code) == (answer.status, answer.json["code"])
    assert field in (None, answer.json["field"])
    assert [] == (await api.get(TASKS)).json["items"]


async def test_the_engines_own_workflow_is_not_started_by_others(api):
    answer = await api.post(EXECUTIONS, {"workflow_kind": "holdfast.task", "workflow_input": {"kind": "shout"}})

    assert (422, "workflow_kind") == (answer.status, answer.json["field"])


async def test_a_task_of_another_org_is_like_an_unknown_one(running):
    """So is a workflow: byte for byte, whatever is asked about it. And a reader only reads."""
    keys = {role: await make_key(running, role) for role in (Role.READER, Role.WRITER)}
    other = await make_key(running, Role.WRITER, "other")
    async with rest_server(running, auth=AuthSettings(mode=AuthMode.KEYS)) as api:
        body = {"task_kind": "shout", "queue": "nobody"}
        real = (await api.post(TASKS, body, key=keys[Role.WRITER])).json["workflow_execution_id"]
        flow = (await api.post(EXECUTIONS, {"workflow_kind": "waits"}, key=keys[Role.WRITER])).json
        refused = await api.post(TASKS, body, key=keys[Role.READER])
        mine = await api.get(f"{TASKS}/{real}", key=keys[Role.READER])
        answers = set()
        for method, action, sent in (
            ("GET", "", None),
            ("GET", "/result", None),
            ("POST", "/complete", {"result": 1}),
            ("POST", "/fail", {"error": "no"}),
            ("POST", "/cancel", {}),
        ):
            asked = [("other", other, real), ("default", keys[Role.WRITER], flow["workflow_execution_id"])]
            for org, key, id_ in asked:
                answer = await api.call(method, f"/api/orgs/{org}/tasks/{id_}{action}", sent, key=key)
                answers.add(
                    (answer.status, answer.json["code"], answer.json["detail"].replace(id_, "ID").replace(org, "ORG"))
                )

    assert (403, 200) == (refused.status, mine.status)
    [(status, code, _)] = answers
    assert (404, "task_not_found") == (status, code)
