"""Starting: one open execution per workflow id."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from holdfast import EngineConfig, WorkflowContext, WorkflowStatus, workflow
from holdfast.errors import ExecutionNotFound, UnknownWorkflowKind
from tests.conftest import until


@workflow
async def wait_for_go(ctx: WorkflowContext, answer: str = "none") -> str:
    await ctx.wait_for_signal("go")
    return answer


@workflow
async def double(ctx: WorkflowContext, number: int) -> int:
    return 2 * number


@workflow(kind="versioned", version="1")
async def first_version(ctx: WorkflowContext) -> str:
    return "one"


@workflow(kind="versioned", version="2")
async def second_version(ctx: WorkflowContext) -> str:
    return "two"


async def test_a_started_workflow_runs_to_its_result(engine):
    """Start gives a handle on a new execution, whose result is what the function returned."""
    client = (await engine(workflows=[double])).client
    handle = await client.start_workflow(double, 21)

    assert handle.created
    assert 7 == UUID(handle.id).version
    assert handle.id == handle.workflow_id
    assert 42 == await handle.result(timeout=10)
    assert WorkflowStatus.COMPLETED == await handle.status()


async def test_the_workflow_may_be_given_as_its_kind(engine):
    """A caller that does not have the function names its kind."""
    client = (await engine(workflows=[double])).client

    assert 42 == await (await client.start_workflow("double", 21)).result(timeout=10)


async def test_the_history_starts_with_what_was_asked_for(engine):
    """WORKFLOW_STARTED is event 1 and carries kind, version, workflow id, queue, input and metadata."""
    client = (await engine(workflows=[double])).client
    handle = await client.start_workflow(double, 21, workflow_id="w", metadata={"team": "blue"})
    await handle.result(timeout=10)
    first = (await handle.history())[0]

    assert (1, "WORKFLOW_STARTED") == (first.seq, first.type)
    body = first.body
    assert ("double", "1", "w", "default", b"21") == (
        body.kind,
        body.version,
        body.workflow_id,
        body.queue,
        bytes(body.input),
    )
    assert {"team": "blue"} == body.metadata


async def test_the_same_workflow_id_finds_the_open_execution(engine):
    """A second start with the id of an open execution answers with that one and changes nothing."""
    client = (await engine(workflows=[wait_for_go])).client
    first = await client.start_workflow(wait_for_go, "first", workflow_id="w")
    await until(lambda: is_waiting(first))
    before = await first.history()
    second = await client.start_workflow(wait_for_go, "second", workflow_id="w")

    assert (first.id, True) == (first.id, first.created)
    assert (first.id, False) == (second.id, second.created)
    assert before == await first.history()
    await first.signal("go")
    assert "first" == await second.result(timeout=10)


async def test_a_closed_workflow_id_starts_a_fresh_execution(engine):
    """When the execution of a workflow id is closed, the same id starts another one."""
    client = (await engine(workflows=[double])).client
    first = await client.start_workflow(double, 1, workflow_id="w")
    await first.result(timeout=10)
    second = await client.start_workflow(double, 2, workflow_id="w")

    assert second.created
    assert first.id != second.id
    assert (2, 4) == (await first.result(timeout=10), await second.result(timeout=10))
    assert second.id == (await client.find_workflow("w")).id


async def test_two_hundred_racing_starts_make_one_execution(engine):
    """However many start the same workflow id at once, one of them creates it and all get it."""
    client = (await engine(workflows=[wait_for_go])).client
    handles = await asyncio.gather(*(client.start_workflow(wait_for_go, workflow_id="w") for _ in range(200)))

    assert 1 == len({handle.id for handle in handles})
    assert 1 == sum(handle.created for handle in handles)
    assert 1 == len((await client.list_workflows()).items)


async def test_without_a_workflow_id_every_start_is_a_new_execution(engine):
    """Nothing ties two starts together unless the caller says so."""
    client = (await engine(workflows=[double])).client
    handles = [await client.start_workflow(double, 1) for _ in range(3)]

    assert 3 == len({handle.id for handle in handles})
    assert all(handle.created for handle in handles)


async def test_ids_grow_with_time(engine):
    """Execution ids sort in the order of the starts, so that lists can be paged by them."""
    client = (await engine(workflows=[double])).client
    ids = []
    for number in range(5):
        ids.append((await client.start_workflow(double, number)).id)
        await asyncio.sleep(0.002)  # ids are ordered by the millisecond

    assert sorted(ids) == ids


async def test_without_a_version_the_newest_registered_one_is_started(engine):
    """A start by kind takes the version registered last; a start by function takes the function's own."""
    client = (await engine(workflows=[first_version, second_version])).client

    assert "one" == await (await client.start_workflow(first_version)).result(timeout=10)
    assert "two" == await (await client.start_workflow(second_version)).result(timeout=10)
    assert "one" == await (await client.start_workflow("versioned", version="1")).result(timeout=10)


async def test_a_later_engine_makes_its_version_the_newest(engine):
    """A deploy of version 2 changes what a start by kind gives."""
    old = await engine(workflows=[first_version])
    assert "one" == await (await old.client.start_workflow("versioned")).result(timeout=10)
    await old.shutdown()
    new = await engine(workflows=[second_version])

    assert "two" == await (await new.client.start_workflow("versioned")).result(timeout=10)


async def test_an_unknown_version_is_refused(engine):
    """The refusal names the versions there are, and nothing is started."""
    client = (await engine(workflows=[first_version])).client
    with pytest.raises(UnknownWorkflowKind, match=r"no version '9'.*known: 1"):
        await client.start_workflow("versioned", version="9")

    assert () == (await client.list_workflows()).items


async def test_an_engine_without_workflows_starts_what_another_has_registered(engine):
    """A client process needs no code of the workflow: the kind is known to the database."""
    await engine(workflows=[double])
    client = (await engine()).client

    assert 42 == await (await client.start_workflow("double", 21)).result(timeout=10)


async def test_find_gives_the_execution_of_a_workflow_id(engine):
    """The open one, with the declared result type; an unknown id is an error."""
    client = (await engine(workflows=[wait_for_go])).client
    started = await client.start_workflow(wait_for_go, workflow_id="w")

    assert started.id == (await client.find_workflow("w")).id
    with pytest.raises(ExecutionNotFound, match="'nobody'"):
        await client.find_workflow("nobody")


def now_of(engine):
    """By the clock of the database, which may not be that of this machine."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=engine.storage.clock())


async def test_the_view_tells_what_was_started(engine):
    """`describe` shows ids, kind, metadata, times and what the execution waits for."""
    running = await engine(workflows=[wait_for_go])
    before = now_of(running)
    handle = await running.client.start_workflow(wait_for_go, "a", workflow_id="w", priority=3, metadata={"k": "v"})
    await until(lambda: is_waiting(handle))
    view = await handle.describe()

    assert (handle.id, "w", "wait_for_go", "1") == (
        view.workflow_execution_id,
        view.workflow_id,
        view.kind,
        view.version,
    )
    assert (3, {"k": "v"}, None, 0) == (view.priority, view.metadata, view.closed_at, view.signal_count)
    assert before <= view.created_at <= view.updated_at <= now_of(running)
    assert [("signal", "go")] == [(wait.kind, wait.name) for wait in view.waiting_for]
    assert "test_start.py" in view.waiting_for[0].line


async def test_orgs_do_not_see_each_other(engine):
    """The same workflow id in two orgs is two executions, and neither org finds the other's."""
    blue = (await engine(workflows=[wait_for_go], org="blue")).client
    red = (await engine(workflows=[wait_for_go], org="red")).client
    mine = await blue.start_workflow(wait_for_go, workflow_id="w")
    theirs = await red.start_workflow(wait_for_go, workflow_id="w")

    assert mine.id != theirs.id
    with pytest.raises(ExecutionNotFound):
        await red.workflow(mine.id).status()
    with pytest.raises(ExecutionNotFound):
        await red.workflow(mine.id).signal("go")
    with pytest.raises(ExecutionNotFound):
        await red.workflow(mine.id).history()
    assert [theirs.id] == [view.workflow_execution_id for view in (await red.list_workflows()).items]


@pytest.mark.sqlite_only("only SQLite has databases in memory")
async def test_memory_is_a_database_of_its_own(engine):
    """`sqlite://` needs no file, and two of them share nothing."""
    one = (await engine(workflows=[double], url="sqlite://", config=EngineConfig())).client
    two = (await engine(workflows=[double], url="sqlite://", config=EngineConfig())).client

    assert 42 == await (await one.start_workflow(double, 21)).result(timeout=10)
    assert () == (await two.list_workflows()).items


async def is_waiting(handle):
    return await handle.status() is WorkflowStatus.WAITING
