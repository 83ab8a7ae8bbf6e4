"""Bad input: each kind is refused with a typed error that names the cause, and nothing has changed."""

import asyncio
import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from holdfast import Engine, EngineConfig, Limits, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.errors import (
    ExecutionNotFound,
    InvalidDatabaseUrl,
    InvalidDefinition,
    InvalidRequest,
    PayloadNotEncodable,
    PayloadTooLarge,
    SchemaTooNew,
    StorageCorrupt,
    StorageError,
    UnknownWorkflowKind,
)
from tests.conftest import QUICK, until

SMALL = EngineConfig(store=QUICK.store, worker=QUICK.worker, limits=Limits(payload_bytes=1_000))


@dataclass
class Order:
    number: int
    lines: list[object]


@workflow
async def wait_for_go(ctx: WorkflowContext, value: object = None) -> object:
    return await ctx.wait_for_signal("go")


@pytest.fixture
async def client(engine):
    return (await engine(workflows=[wait_for_go], config=SMALL)).client


async def refused(call, error, match):
    with pytest.raises(error, match=match) as caught:
        await call
    assert caught.value.code == error.code
    return caught.value


async def nothing_there(client):
    return () == (await client.list_workflows()).items and {} == {
        k: v for k, v in (await client.count_workflows()).items() if v
    }


# --- who and what -----------------------------------------------------------------------------------------------------


async def test_an_unknown_workflow_kind(client):
    """Says which kind, and what to do."""
    error = await refused(client.start_workflow("nothing"), UnknownWorkflowKind, r"'nothing'.*workflows=\[")

    assert {"kind": "nothing"} == error.details
    assert await nothing_there(client)


@pytest.mark.parametrize("call", ["status", "describe", "history", "result", "cancel", "terminate", "resume", "signal"])
async def test_an_unknown_execution(client, call):
    """Every method of a handle on nothing says that there is no such execution."""
    nobody = client.workflow(str(uuid4()))
    arguments = ("go",) if call == "signal" else ()
    error = await refused(getattr(nobody, call)(*arguments), ExecutionNotFound, nobody.id)

    assert {"execution_id": nobody.id} == error.details


@pytest.mark.parametrize("call", ["pending_tasks", "pending_timers"])
async def test_the_rows_of_an_unknown_execution(client, call):
    """An empty list would look like an execution with nothing pending."""
    nobody = client.workflow(str(uuid4()))
    await refused(getattr(nobody, call)(), ExecutionNotFound, nobody.id)


@pytest.mark.parametrize("nonsense", ["", "x" * 1_000, "a\nb", "\ud800", "'; DROP TABLE holdfast_executions", 7, None])
@pytest.mark.parametrize("call", ["status", "history", "result", "cancel", "terminate", "signal"])
async def test_what_is_no_execution_id(client, call, nonsense):
    """Whatever is given as an id, the answer is a typed error: not found, or not valid."""
    arguments = ("go",) if call == "signal" else ()
    with pytest.raises((ExecutionNotFound, InvalidRequest)):
        await getattr(client.workflow(nonsense), call)(*arguments)
    with pytest.raises((ExecutionNotFound, InvalidRequest)):
        await client.find_workflow(nonsense)


@pytest.mark.parametrize("given", [42, None, print, dict, lambda ctx: None])
async def test_what_is_no_workflow(client, given):
    """A function without @workflow, or no function at all."""
    error = await refused(client.start_workflow(given), InvalidRequest, "not a workflow.*@workflow")

    assert "workflow" == error.field
    assert await nothing_there(client)


# --- values -----------------------------------------------------------------------------------------------------------

UNENCODABLE = [
    (object(), "input", "type object"),
    ({"a": [1, {2}, print]}, r"input\.a\[2\]", "function"),
    (Order(1, [1, object()]), r"input\.lines\[1\]", "type object"),
    (float("nan"), "input", "nan"),
    ({"a": float("inf")}, r"input\.a", "inf"),
    ("\ud800", "input", "surrogate"),
]


@pytest.mark.parametrize(("value", "path", "reason"), UNENCODABLE)
async def test_an_input_without_durable_form(client, value, path, reason):
    """The error carries the path to the part that can't be stored."""
    error = await refused(client.start_workflow(wait_for_go, value), PayloadNotEncodable, f"{path}.*{reason}")

    assert error.field.startswith("input")
    assert await nothing_there(client)


async def test_a_signal_value_without_durable_form(client):
    """The field is `signal_value`; the history stays as it is."""
    handle = await client.start_workflow(wait_for_go)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    before = await handle.history()
    error = await refused(handle.signal("go", {"x": print}), PayloadNotEncodable, r"signal_value\.x")

    assert "signal_value.x" == error.field
    assert before == await handle.history()


async def test_a_value_that_contains_itself(client):
    """Found, not followed for ever."""
    loop: list[object] = []
    loop.append(loop)
    await refused(client.start_workflow(wait_for_go, loop), PayloadNotEncodable, "contains itself")


@pytest.mark.parametrize("field", ["input", "workflow_input", "signal_value"])
async def test_a_payload_beyond_the_limit(client, field):
    """1,000 bytes are allowed here: 1,001 are refused with both numbers."""
    fits, too_large = "x" * 998, "x" * 999
    calls = {
        "input": lambda value: client.start_workflow(wait_for_go, value),
        "workflow_input": lambda value: client.signal_with_start_workflow("w", wait_for_go, value, signal_name="x"),
        "signal_value": lambda value: client.signal_with_start_workflow(
            "w", wait_for_go, signal_name="x", signal_value=value
        ),
    }
    error = await refused(calls[field](too_large), PayloadTooLarge, f"{field}: 1001 bytes, 1000 are allowed")

    assert (field, 1001, 1000) == (error.field, error.details["size"], error.details["limit"])
    assert await nothing_there(client)
    await calls[field](fits)


SURROGATE = "\ud800"


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("metadata", {"metadata": {"a": SURROGATE}}),
        ("metadata", {"metadata": {SURROGATE: "a"}}),
        ("priority", {"priority": "high"}),
        ("priority", {"priority": 1.5}),
        ("priority", {"priority": 2**63}),
        ("version", {"version": SURROGATE}),
        ("version", {"version": 2}),
    ],
)
async def test_start_options_that_no_database_takes(client, field, options):
    """Refused at the door, by name, and never as an error of the driver."""
    with pytest.raises((InvalidRequest, UnknownWorkflowKind), match=field):
        await client.start_workflow(wait_for_go, **options)
    with pytest.raises((InvalidRequest, UnknownWorkflowKind), match=field):
        await client.signal_with_start_workflow("w", wait_for_go, signal_name="go", **options)

    assert await nothing_there(client)


@pytest.mark.parametrize("verb", ["cancel", "terminate"])
@pytest.mark.parametrize("reason", [SURROGATE, 7])
async def test_a_reason_that_can_not_be_kept(client, verb, reason):
    """Not text or not Unicode: refused, and the execution goes on."""
    handle = await client.start_workflow(wait_for_go)
    with pytest.raises(InvalidRequest, match="reason"):
        await getattr(handle, verb)(reason)

    await handle.signal("go", "on")
    assert "on" == await handle.result(timeout=10)


@pytest.mark.parametrize("metadata", [{"a": 1}, {1: "a"}, {"a": None}])
async def test_metadata_that_is_not_text(client, metadata):
    """Text to text, nothing else."""
    error = await refused(client.start_workflow(wait_for_go, metadata=metadata), InvalidRequest, "text to text")

    assert "metadata" == error.field
    assert await nothing_there(client)


# --- names ------------------------------------------------------------------------------------------------------------

BAD_NAMES = ["", "x" * 256, "ü" * 128, "new\nline", "nul\0", "esc\x1b", "del\x7f", "\ud800", 7]


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_bad_workflow_ids(client, name):
    """1 to 255 bytes of text without control characters."""
    for call in (
        client.start_workflow(wait_for_go, workflow_id=name),
        client.signal_with_start_workflow(name, wait_for_go, signal_name="go"),
    ):
        error = await refused(call, InvalidRequest, "workflow_id")
        assert "workflow_id" == error.field
    assert await nothing_there(client)


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("field", ["queue", "request_id", "signal_name"])
async def test_other_bad_names(client, field, name):
    """Queues, request ids and signal names follow the same rule; nothing is started or appended."""
    options = {"signal_name": "go", field: name}
    error = await refused(client.signal_with_start_workflow("w", wait_for_go, **options), InvalidRequest, field)

    assert field == error.field
    assert await nothing_there(client)


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_bad_names_of_a_plain_signal(client, name):
    """Signal name and request id of a plain signal are checked like those of a signal-with-start."""
    handle = await client.start_workflow(wait_for_go)
    await until(lambda: has_status(handle, WorkflowStatus.WAITING))
    before = await handle.history()
    await refused(handle.signal(name), InvalidRequest, "signal_name")
    await refused(handle.signal("go", request_id=name), InvalidRequest, "request_id")

    assert before == await handle.history()


@pytest.mark.parametrize("kind", ["", "x" * 256, "a\nb"])
async def test_bad_workflow_kinds(client, kind):
    """A kind is a name like any other."""
    error = await refused(client.start_workflow(kind), InvalidRequest, "workflow_kind")

    assert "workflow_kind" == error.field


@pytest.mark.parametrize("name", ["a", "x" * 255, "ü" * 127, "with space", "emoji 🙂", "a/b:c?d=é"])
async def test_good_names(client, name):
    """Everything else is allowed, for every kind of name."""
    answer = await client.signal_with_start_workflow(name, wait_for_go, signal_name=name, request_id=name)

    assert answer.workflow_created
    assert answer.workflow_execution_id == (await client.find_workflow(name)).id


# --- inside a workflow ------------------------------------------------------------------------------------------------

BAD_DURATIONS = [-1, -0.001, float("nan"), float("inf"), timedelta(days=-1), 11 * 366 * 86_400, "1", None, True]


NO_DURATION: Any = "1"  # None would mean: no limit


@pytest.mark.parametrize("duration", BAD_DURATIONS)
async def test_a_bad_duration_fails_the_workflow_where_it_stands(engine, duration):
    """Sleeps from nothing to ten years. The error is catchable, and no timer is recorded."""

    @workflow
    async def sleeper(ctx: WorkflowContext) -> list[str]:
        caught = []
        for ask in (
            lambda: ctx.sleep(duration),
            lambda: ctx.wait_for_signal("x", timeout=NO_DURATION if duration is None else duration),
        ):
            try:
                await ask()
            except InvalidRequest as error:
                caught.append(error.code)
        return caught

    client = (await engine(workflows=[sleeper])).client
    handle = await client.start_workflow(sleeper)

    assert ["invalid_duration"] * 2 == await handle.result(timeout=10)
    assert ["WORKFLOW_STARTED", "WORKFLOW_COMPLETED"] == [event.type for event in await handle.history()]


async def test_sleep_until_needs_a_zone(engine):
    """An instant without a time zone is none."""

    @workflow
    async def sleeper(ctx: WorkflowContext) -> str:
        try:
            await ctx.sleep_until(datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point
        except InvalidRequest as error:
            return f"{error.field}: {error}"
        return ""

    client = (await engine(workflows=[sleeper])).client
    answer = await (await client.start_workflow(sleeper)).result(timeout=10)

    assert answer.startswith("instant: sleep_until needs a datetime with a time zone")


async def test_a_result_without_durable_form_fails_the_workflow(engine):
    """The failure names the place."""

    @workflow
    async def broken(ctx: WorkflowContext) -> object:
        return {"answer": print}

    client = (await engine(workflows=[broken])).client
    handle = await client.start_workflow(broken)
    await until(lambda: has_status(handle, WorkflowStatus.FAILED))
    failure = (await handle.history())[-1].body.failure

    assert ("PayloadNotEncodable", "payload_not_encodable") == (failure.type, failure.code)
    assert "result.answer" in failure.message


async def test_arguments_without_durable_form(engine):
    """A task asked for with such a value is not scheduled; the error is catchable."""

    @task
    async def work(value: object) -> None: ...

    @workflow
    async def broken(ctx: WorkflowContext) -> str:
        try:
            await ctx.task(work, print)
        except PayloadNotEncodable as error:
            return error.field
        return ""

    client = (await engine(workflows=[broken], tasks=[work])).client
    handle = await client.start_workflow(broken)

    assert "args[0]" == await handle.result(timeout=10)
    assert "TASK_SCHEDULED" not in [event.type for event in await handle.history()]


NO_FUNCTION: Any = None


@pytest.mark.parametrize("given", [print, 42, None])
async def test_what_is_no_task(engine, given):
    """ctx.task and ctx.run say what they need."""

    @workflow
    async def broken(ctx: WorkflowContext) -> list[str]:
        caught = []
        for ask in (lambda: ctx.task(given), lambda: ctx.run(NO_FUNCTION)):
            try:
                await ask()
            except InvalidRequest as error:
                caught.append(error.field)
        return caught

    client = (await engine(workflows=[broken])).client

    assert ["task", "fn"] == await (await client.start_workflow(broken)).result(timeout=10)


@pytest.mark.parametrize(
    "options",
    [
        {"queue": ""},
        {"queue": SURROGATE},
        {"queue": "x" * 256},
        {"priority": "high"},
        {"priority": 2**63},
        {"retry": 3},
        {"start_to_close": 0},
        {"heartbeat_timeout": -1},
    ],
)
async def test_bad_options_of_a_task(engine, options):
    """Refused where they are given, before anything is recorded; the workflow can go on."""

    @task
    async def work() -> None: ...

    @workflow
    async def broken(ctx: WorkflowContext) -> str:
        try:
            await ctx.task(work, **options)
        except InvalidRequest as error:
            return error.field
        return "nothing was wrong"

    client = (await engine(workflows=[broken], tasks=[work])).client
    handle = await client.start_workflow(broken)

    assert next(iter(options)) == await handle.result(timeout=5)
    assert ["WORKFLOW_STARTED", "WORKFLOW_COMPLETED"] == [event.type for event in await handle.history()]


@pytest.mark.parametrize("name", ["", "x" * 256, SURROGATE, 7])
async def test_bad_names_inside_a_workflow(engine, name):
    """Task kinds, step names and signal names follow the rule of all names."""

    @workflow
    async def broken(ctx: WorkflowContext) -> list[str]:
        caught = []
        for ask in (
            lambda: ctx.task(name),
            lambda: ctx.run(str, name=name or "\n"),
            lambda: ctx.wait_for_signal(name, timeout=0.01),
        ):
            try:
                await ask()
            except InvalidRequest as error:
                caught.append(error.field)
            except TimeoutError:
                caught.append("waited")
        return caught

    client = (await engine(workflows=[broken])).client
    handle = await client.start_workflow(broken)

    assert ["task", "name", "signal_name"] == await handle.result(timeout=5)


# --- definitions ------------------------------------------------------------------------------------------------------


def test_two_workflows_of_one_kind():
    """Both places are named."""

    @workflow(kind="same")
    async def one(ctx: WorkflowContext) -> None: ...

    @workflow(kind="same")
    async def two(ctx: WorkflowContext) -> None: ...

    with pytest.raises(InvalidDefinition, match=r"'same'.*defined twice.*test_refusals\.py:\d+.*test_refusals\.py:\d+"):
        Engine("sqlite://", workflows=[one, two])


def test_two_tasks_of_one_kind():
    """As for workflows."""

    @task(kind="same")
    async def one() -> None: ...

    @task(kind="same")
    async def two() -> None: ...

    with pytest.raises(InvalidDefinition, match="task 'same' is defined twice") as refused:
        Engine("sqlite://", tasks=[one, two])
    assert "invalid_definition" == refused.value.code


def test_undecorated_functions():
    """The message says which decorator is missing, or which list is the right one."""

    async def plain(ctx: WorkflowContext) -> None: ...

    with pytest.raises(InvalidDefinition, match="@workflow"):
        Engine("sqlite://", workflows=[plain])
    with pytest.raises(InvalidDefinition, match="@task"):
        Engine("sqlite://", tasks=[plain])
    with pytest.raises(InvalidDefinition, match=r"pass it in workflows=\["):
        Engine("sqlite://", tasks=[wait_for_go])


# --- the database -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "",
        "chat.db",
        "/tmp/chat.db",
        "mysql://localhost/x",
        "sqlite:chat.db",
        "sqlite://host/chat.db",
        "sqlite:///chat.db?mode=ro",
        "sqlite:///chat.db#x",
        Path("chat.db"),
        None,
        3,
    ],
)
def test_a_bad_database_url(url, tmp_path, monkeypatch):
    """Says what a URL looks like; no file is made."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidDatabaseUrl, match=r"sqlite:///|text") as refused:
        Engine(url)

    assert ("invalid_database_url", "url") == (refused.value.code, refused.value.field)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.sqlite_only("files and folders that are no databases")
async def test_a_folder_that_does_not_exist(tmp_path):
    """The folder is named; nothing is created."""
    with pytest.raises(InvalidDatabaseUrl, match=r"nowhere.*does not exist"):
        await Engine(f"sqlite:///{tmp_path}/nowhere/a.db").open()

    assert [] == list(tmp_path.iterdir())


@pytest.mark.sqlite_only("files and folders that are no databases")
async def test_a_folder_instead_of_a_file(tmp_path):
    """A folder is no database."""
    with pytest.raises(StorageError, match="is a folder"):
        await Engine(f"sqlite:///{tmp_path}").open()


@pytest.mark.sqlite_only("files and folders that are no databases")
async def test_a_file_that_is_no_database(tmp_path):
    """Another file's content is left as it is."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, and longer than a header of one hundred bytes " * 5)
    before = path.read_bytes()
    with pytest.raises(StorageCorrupt, match=r"notes\.txt") as refused:
        await Engine(f"sqlite:///{path}").open()

    assert "storage_corrupt" == refused.value.code
    assert before == path.read_bytes()


@pytest.mark.sqlite_only("compares the file; for PostgreSQL tests/stores/test_postgres_migrate.py says it")
async def test_a_database_of_a_newer_holdfast(engine, database):
    """Refused before anything is read or written: the older code does not know what it means."""
    running = await engine(workflows=[wait_for_go])
    await running.shutdown()
    connection = sqlite3.connect(database)
    connection.execute("INSERT INTO holdfast_schema_version VALUES (9999, '9999_future', 'x', 0)")
    connection.commit()
    connection.close()
    before = database.read_bytes()
    with pytest.raises(SchemaTooNew, match=r"version 9999.*upgrade") as refused:
        await engine(workflows=[wait_for_go])

    assert "schema_too_new" == refused.value.code
    assert before == database.read_bytes()


@pytest.mark.sqlite_only("files and folders that are no databases")
async def test_an_engine_that_could_not_start_leaves_nothing_running(tmp_path):
    """After the refusal there is no thread, task or open file that would keep the process alive."""
    before = asyncio.all_tasks()
    bad = Engine(f"sqlite:///{tmp_path}")
    with pytest.raises(StorageError):
        await bad.open()
    await bad.shutdown()

    assert before == asyncio.all_tasks()


async def has_status(handle, status):
    return await handle.status() is status
