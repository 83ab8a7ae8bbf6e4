"""Standalone tasks over gRPC: what goes in, what comes out, and whose they are."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import grpc
import msgspec
import pytest

from holdfast import RetryPolicy, TaskContext, WorkflowContext, task, workflow
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from holdfast.transport.grpc import holdfast_pb2 as pb
from tests.conftest import OpenEngine, until
from tests.grpc_server import Caller, grpc_api, make_key


@task
async def pair(left: str, right: str) -> str:
    return f"{left} {right}"


@task
async def big(size: int) -> str:
    return "x" * size


@task(retry=RetryPolicy(max_attempts=1))
async def later(ctx: TaskContext) -> Any:
    ctx.complete_later()


@workflow
async def waits(ctx: WorkflowContext) -> None:
    await ctx.wait_for_signal("never")


OPTIONS: dict[str, Any] = {"workflows": [waits], "tasks": [pair, big, later]}


async def found(call: Caller, task_id: str) -> pb.StandaloneTask:
    return (await call("GetTask", pb.GetTaskRequest(task_id=task_id))).task


async def has_status(call: Caller, task_id: str, status: str) -> bool:
    return (await found(call, task_id)).status == status


async def left_to_others(call: Caller, task_id: str, attempts: int = 1) -> None:
    await call(
        "StartTask",
        pb.StartTaskRequest(
            task_kind="later",
            task_id=task_id,
            retry=pb.RetryPolicy(max_attempts=attempts, initial_interval_seconds=0),
        ),
    )
    await until(lambda: has_status(call, task_id, "WAITING"))


async def test_task_is_started_and_seen_to_its_end(engine: OpenEngine):
    """By its task id and by its execution's; everything it was started with is told, and GetResult waits for it."""
    async with grpc_api(await engine(**OPTIONS)) as (_, call):
        request = pb.StartTaskRequest(
            task_kind="pair",
            task_id="p",
            args=[b'"a"', b'"b"'],
            metadata={"tier": "gold"},
            priority_seconds=3,
            retry=pb.RetryPolicy(max_attempts=4, non_retryable=["ValueError"]),
            start_to_close_seconds=5,
            heartbeat_timeout_seconds=2,
        )
        started = await call("StartTask", request)
        ended = await call(
            "GetResult", pb.GetResultRequest(workflow_execution_id=started.workflow_execution_id, wait_seconds=10)
        )
        by_id = await found(call, "p")
        by_execution = await call("GetTask", pb.GetTaskRequest(workflow_execution_id=started.workflow_execution_id))

        assert ("p", True) == (started.task_id, started.task_created)
        assert (True, "COMPLETED") == (ended.closed, ended.status)
        assert by_id == by_execution.task
        assert ("pair", "COMPLETED", b'"a b"', [b'"a"', b'"b"'], {"tier": "gold"}, 3) == (
            by_id.task_kind,
            by_id.status,
            by_id.result,
            list(by_id.args),
            dict(by_id.metadata),
            by_id.priority_seconds,
        )
        assert (4, ["ValueError"], 1.0, True) == (
            by_id.retry.max_attempts,
            list(by_id.retry.non_retryable),
            by_id.retry.initial_interval_seconds,
            by_id.retry.jitter,
        )
        assert (5.0, 2.0, False) == (
            by_id.start_to_close_seconds,
            by_id.heartbeat_timeout_seconds,
            by_id.HasField("schedule_to_close_seconds"),
        )


async def test_task_that_is_not_over_is_found_again(engine: OpenEngine):
    """One task for one id, unless the caller wants to be refused; an idempotency key makes a repeat harmless."""
    async with grpc_api(await engine(**OPTIONS)) as (_, call):
        await left_to_others(call, "l")
        again = pb.StartTaskRequest(task_kind="later", task_id="l")
        assert not (await call("StartTask", again)).task_created
        again.if_running = "fail"
        assert "ABORTED" == (await call.refusal("StartTask", again))[0]

        key = [("idempotency-key", "k")]
        answers = [await call("StartTask", pb.StartTaskRequest(task_kind="later"), metadata=key) for _ in range(2)]
        assert answers[0].workflow_execution_id == answers[1].workflow_execution_id
        assert [True, False] == [answer.idempotency_key_new for answer in answers]


async def test_attempt_that_was_left_is_completed_once(engine: OpenEngine):
    """The same call again under its key is answered, another one is refused."""
    async with grpc_api(await engine(**OPTIONS)) as (_, call):
        await left_to_others(call, "l")
        request = pb.CompleteTaskRequest(task_id="l", result=b"7", idempotency_key="k")
        answers = [await call("CompleteTask", request) for _ in range(2)]
        late = await call.refusal("CompleteTask", pb.CompleteTaskRequest(task_id="l", result=b"8"))

        assert [True, False] == [answer.idempotency_key_new for answer in answers]
        assert ("ABORTED", "stale_attempt") == late
        await until(lambda: has_status(call, "l", "COMPLETED"))
        assert b"7" == (await found(call, "l")).result


async def test_attempt_that_was_left_is_failed(engine: OpenEngine):
    """It is tried again as its policy says, but not if the error forbids it; the task tells why."""
    async with grpc_api(await engine(**OPTIONS)) as (_, call):
        await left_to_others(call, "l", attempts=3)
        await call("FailTask", pb.FailTaskRequest(task_id="l", error="not yet"))
        await until(lambda: second_attempt(call, "l"))
        assert ("TaskFailed", "not yet") == ((await found(call, "l")).error_type, (await found(call, "l")).error)

        await call("FailTask", pb.FailTaskRequest(task_id="l", error="no", error_type="Refused", non_retryable=True))
        await until(lambda: has_status(call, "l", "FAILED"))
        last = await found(call, "l")
        assert ("Refused", "no", 2) == (last.error_type, last.error, last.attempt)


async def second_attempt(call: Caller, task_id: str) -> bool:
    now = await found(call, task_id)
    return now.status == "WAITING" and now.attempt == 2


async def test_tasks_are_listed_page_by_page(engine: OpenEngine):
    """The newest first, by kind, status and metadata; the cursor belongs to the list it came from."""
    async with grpc_api(await engine(**OPTIONS)) as (_, call):
        for number in range(5):
            await call(
                "StartTask",
                pb.StartTaskRequest(task_kind="later", task_id=f"t{number}", metadata={"odd": str(number % 2)}),
            )
        await call("StartTask", pb.StartTaskRequest(task_kind="pair", task_id="p", args=[b'"a"', b'"b"']))
        await until(lambda: has_status(call, "p", "COMPLETED"))

        pages: list[list[str]] = []
        cursor = ""
        while not pages or cursor:
            page = await call("ListTasks", pb.ListTasksRequest(task_kind="later", limit=2, cursor=cursor))
            pages.append([one.task_id for one in page.tasks])
            cursor = page.next_cursor
        odd = await call("ListTasks", pb.ListTasksRequest(metadata={"odd": "1"}, limit=1))
        done = await call("ListTasks", pb.ListTasksRequest(statuses=["COMPLETED"]))
        wrong = pb.ListTasksRequest(task_kind="pair", cursor=odd.next_cursor)

        assert [["t4", "t3"], ["t2", "t1"], ["t0"]] == pages
        assert (["t3"], ["p"]) == ([one.task_id for one in odd.tasks], [one.task_id for one in done.tasks])
        assert ("INVALID_ARGUMENT", "invalid_cursor") == await call.refusal("ListTasks", wrong)


async def test_page_ends_before_it_is_too_large(engine: OpenEngine):
    """Results of a megabyte: a client with the usual limit of 4 MiB reads all pages, and misses none."""
    async with grpc_api(await engine(**OPTIONS)) as (_, call):
        for number in range(5):
            request = pb.StartTaskRequest(task_kind="big", task_id=f"b{number}", args=[b"900000"])
            await call("StartTask", request)
            await until(partial(has_status, call, f"b{number}", "COMPLETED"))

        listed, cursor, pages = [], "", 0
        while not pages or cursor:
            page = await call("ListTasks", pb.ListTasksRequest(cursor=cursor))
            listed += [one.task_id for one in page.tasks]
            cursor, pages = page.next_cursor, pages + 1

        assert [f"b{number}" for number in reversed(range(5))] == listed
        assert 3 == pages


REFUSED = [
    ("StartTask", pb.StartTaskRequest(), "task_kind"),
    ("StartTask", pb.StartTaskRequest(task_kind="pair", args=[b"1", b"{"]), "args"),
    ("StartTask", pb.StartTaskRequest(task_kind="pair", args=[b'"\\u0000"']), "args"),
    ("StartTask", pb.StartTaskRequest(task_kind="pair", if_running="perhaps"), "if_running"),
    ("StartTask", pb.StartTaskRequest(task_kind="pair", start_at=-1), "start_at"),
    ("StartTask", pb.StartTaskRequest(task_kind="pair", retry=pb.RetryPolicy(max_attempts=0)), "retry.max_attempts"),
    (
        "StartTask",
        pb.StartTaskRequest(task_kind="pair", retry=pb.RetryPolicy(max_interval_seconds=float("nan"))),
        "retry.max_interval_seconds",
    ),
    ("StartTask", pb.StartTaskRequest(task_kind="pair", start_to_close_seconds=-1), "start_to_close"),
    ("StartTask", pb.StartTaskRequest(task_kind="pair", metadata={"holdfast.task_kind": "x"}), "metadata"),
    ("GetTask", pb.GetTaskRequest(), "task_id"),
    ("ListTasks", pb.ListTasksRequest(limit=-1), "limit"),
    ("ListTasks", pb.ListTasksRequest(statuses=["BUSY"]), "statuses"),
    ("CompleteTask", pb.CompleteTaskRequest(task_id="x", result=b"{"), "result"),
    ("FailTask", pb.FailTaskRequest(), "task_id"),
    ("FailTask", pb.FailTaskRequest(task_id="l", error="\0"), "error"),
]


@pytest.mark.parametrize(("name", "request_", "field"), REFUSED)
async def test_bad_request_names_its_field_and_changes_nothing(
    engine: OpenEngine, name: str, request_: Any, field: str
):
    """INVALID_ARGUMENT, and there is no more than there was."""
    async with grpc_api(await engine(**OPTIONS)) as (_, call):
        await left_to_others(call, "l")
        assert ("INVALID_ARGUMENT", field) == await refused_field(call, name, request_)
        listed = await call("ListTasks", pb.ListTasksRequest())
        assert [("l", "WAITING", 1)] == [(one.task_id, one.status, one.attempt) for one in listed.tasks]


async def refused_field(call: Caller, name: str, request: Any) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(name, request)
    trailer = dict(caught.value.trailing_metadata() or ())
    return caught.value.code().name, msgspec.json.decode(trailer["holdfast-details-bin"]).get("field", "")


async def test_what_is_no_task_of_this_org_is_not_found(engine: OpenEngine):
    """An unknown id, an execution that is no task, another org's task: NOT_FOUND from every call that names one."""
    opened = await engine(**OPTIONS)
    mine, theirs = await make_key(opened, Role.ADMIN), await make_key(opened, Role.ADMIN, "other")
    async with (
        grpc_api(opened, auth=AuthSettings(mode=AuthMode.KEYS)) as (server, _),
        Caller(server.address, mine) as call,
        Caller(server.address, theirs) as stranger,
    ):
        await left_to_others(call, "l")
        flow = await call("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="waits", workflow_id="w"))
        tries = [(call, "unknown"), (call, "w"), (call, flow.workflow_execution_id), (stranger, "l")]
        for caller, task_id in tries:
            refusals = await asyncio.gather(
                caller.refusal("GetTask", pb.GetTaskRequest(task_id=task_id)),
                caller.refusal("CompleteTask", pb.CompleteTaskRequest(task_id=task_id, result=b"1")),
                caller.refusal("FailTask", pb.FailTaskRequest(task_id=task_id, error="no")),
            )
            assert {("NOT_FOUND", "task_not_found")} == set(refusals)
        assert [] == list((await stranger("ListTasks", pb.ListTasksRequest())).tasks)
        assert "WAITING" == (await found(call, "l")).status
