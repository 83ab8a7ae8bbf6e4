"""Lists of executions: filters, pages, cursors, counts."""

import asyncio
from datetime import datetime, timedelta

import pytest

from holdfast import Status, WorkflowContext, workflow
from holdfast.errors import InvalidCursor, InvalidRequest
from tests.conftest import until


@workflow
async def wait_for_go(ctx: WorkflowContext) -> None:
    await ctx.wait_for_signal("go")


@workflow
async def finish(ctx: WorkflowContext) -> None:
    """Ends at once."""


@workflow
async def break_down(ctx: WorkflowContext) -> None:
    raise ValueError("no")


@pytest.fixture
async def client(engine):
    return (await engine(workflows=[wait_for_go, finish, break_down])).client


async def started(client, workflow, number, **options):
    """That many executions, oldest first, each with an id of a later millisecond."""
    handles = []
    for _ in range(number):
        handles.append(await client.start_workflow(workflow, **options))
        await asyncio.sleep(0.0015)
    return [handle.id for handle in handles]


async def listed(client, **filters):
    return [view.workflow_execution_id for view in (await client.list_workflows(**filters)).items]


async def settled(client, **counts):
    """Wait until there are that many executions of each status."""
    wanted = {Status[name]: number for name, number in counts.items()}
    await until(lambda: counted(client, wanted))


async def counted(client, wanted):
    return wanted == {status: number for status, number in (await client.count_workflows()).items() if number}


async def test_the_newest_come_first(client):
    """A list without filters shows all executions of the org, newest first."""
    ids = await started(client, finish, 5)

    assert ids[::-1] == await listed(client)


async def test_an_empty_list_has_no_next_page(client):
    """Nothing there: no items, no cursor."""
    page = await client.list_workflows()

    assert ((), None) == (page.items, page.next_cursor)


async def test_filter_by_status(client):
    """One status, by name or as a member, or several of them."""
    waiting = await started(client, wait_for_go, 2)
    done = await started(client, finish, 2)
    failed = await started(client, break_down, 1)
    await settled(client, WAITING=2, COMPLETED=2, FAILED=1)

    assert waiting[::-1] == await listed(client, status="WAITING")
    assert done[::-1] == await listed(client, status=Status.COMPLETED)
    assert failed + done[::-1] == await listed(client, status=[Status.COMPLETED, "FAILED"])
    assert [] == await listed(client, status=Status.STUCK)


async def test_those_without_a_result_say_why(client):
    """Of a page in one go: what failed with its error, what was ended with the reason."""
    await started(client, break_down, 1, workflow_id="failed")
    await started(client, wait_for_go, 1, workflow_id="ended")
    await started(client, finish, 1, workflow_id="done")
    await (await client.find_workflow("ended")).terminate("enough")
    await settled(client, FAILED=1, TERMINATED=1, COMPLETED=1)

    found = {view.workflow_id: view.failure for view in (await client.list_workflows()).items}
    assert ("ValueError", "no") == (found["failed"].type, found["failed"].message)
    assert ("WorkflowTerminated", "enough") == (found["ended"].type, found["ended"].message)
    assert found["done"] is None


async def test_filter_by_kind(client):
    """One kind or several."""
    one = await started(client, finish, 2)
    two = await started(client, wait_for_go, 1)
    await started(client, break_down, 1)

    assert one[::-1] == await listed(client, kind="finish")
    assert two + one[::-1] == await listed(client, kind=["finish", "wait_for_go"])
    assert [] == await listed(client, kind="nothing")


async def test_filter_by_workflow_id(client):
    """All executions that ever had the id, open and closed."""
    first = await client.start_workflow(finish, workflow_id="w")
    await first.result(timeout=10)
    await asyncio.sleep(0.002)
    second = await client.start_workflow(wait_for_go, workflow_id="w")
    await client.start_workflow(wait_for_go, workflow_id="other")

    assert [second.id, first.id] == await listed(client, workflow_id="w")


async def test_filter_by_queue(client):
    """Executions of other queues are left out."""
    await started(client, finish, 1)
    apart = await started(client, finish, 2, queue="apart")

    assert apart[::-1] == await listed(client, queue="apart")


async def test_filter_by_time(client):
    """From an instant, included, to another, excluded."""
    ids = await started(client, finish, 4)
    views = {view.workflow_execution_id: view.created_at for view in (await client.list_workflows()).items}
    start, end = views[ids[1]], views[ids[3]]

    assert [ids[2], ids[1]] == await listed(client, created_from=start, created_before=end)
    assert ids[:0:-1] == await listed(client, created_from=start)
    assert [ids[0]] == await listed(client, created_before=start)
    assert [] == await listed(client, created_from=end + timedelta(days=1))


async def test_filters_combine(client):
    """Everything that is given has to hold."""
    await started(client, finish, 2)
    wanted = await started(client, finish, 1, queue="default", workflow_id="w")
    await started(client, break_down, 1)
    await settled(client, COMPLETED=3, FAILED=1)

    assert wanted == await listed(client, status="COMPLETED", kind="finish", workflow_id="w", queue="default")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
async def test_pages_follow_one_another_without_gap_or_repeat(client, size):
    """Whatever the page size, the pages together are the list; the last one has no cursor."""
    ids = await started(client, finish, 7)
    seen, cursor, pages = [], None, 0
    while True:
        page = await client.list_workflows(limit=size, cursor=cursor)
        seen += [view.workflow_execution_id for view in page.items]
        pages += 1
        cursor = page.next_cursor
        if cursor is None:
            break

    assert ids[::-1] == seen
    assert -(-7 // size) == pages


async def test_pages_of_a_filter_hold_only_what_matches(client):
    """Filter and page together."""
    ids = []
    for _ in range(4):
        ids += await started(client, finish, 1)
        await started(client, wait_for_go, 1)
    await settled(client, COMPLETED=4, WAITING=4)

    found = [view.workflow_execution_id async for view in client.iter_workflows(status="COMPLETED", limit=3)]
    assert ids[::-1] == found


async def test_new_executions_do_not_disturb_the_pages(client):
    """What is started between two pages is newer than the first and appears on neither."""
    ids = await started(client, finish, 4)
    first = await client.list_workflows(limit=2)
    await started(client, finish, 3)
    second = await client.list_workflows(limit=2, cursor=first.next_cursor)

    assert ids[1::-1] == [view.workflow_execution_id for view in second.items]


async def test_a_cursor_belongs_to_its_list(client):
    """With other filters, or in another org, it is refused: it would give wrong pages."""
    await started(client, finish, 3)
    cursor = (await client.list_workflows(kind="finish", limit=1)).next_cursor
    for filters in ({}, {"kind": "wait_for_go"}, {"kind": "finish", "status": "COMPLETED"}):
        with pytest.raises(InvalidCursor, match="another list") as refused:
            await client.list_workflows(cursor=cursor, limit=1, **filters)
        assert ("invalid_cursor", "cursor") == (refused.value.code, refused.value.field)

    assert 1 == len((await client.list_workflows(kind="finish", cursor=cursor, limit=1)).items)


async def test_a_cursor_of_another_org_is_refused(engine, client):
    """The org is part of what a cursor is bound to."""
    other = (await engine(workflows=[finish], org="other")).client
    await started(client, finish, 2)
    cursor = (await client.list_workflows(limit=1)).next_cursor
    with pytest.raises(InvalidCursor):
        await other.list_workflows(cursor=cursor, limit=1)


@pytest.mark.parametrize("cursor", ["", "x", "!!!", "bm90IGEgY3Vyc29y", "ÿ", "AAAA" * 100])
async def test_what_is_no_cursor_is_refused(client, cursor):
    """Text that no list made is refused, whatever it looks like."""
    await started(client, finish, 1)
    with pytest.raises(InvalidCursor):
        await client.list_workflows(cursor=cursor)


async def test_the_page_size_may_change(client):
    """A cursor is a place in the list; how much is read from there is the caller's choice each time."""
    ids = await started(client, finish, 5)
    first = await client.list_workflows(limit=1)
    rest = await client.list_workflows(limit=10, cursor=first.next_cursor)

    assert ids[3::-1] == [view.workflow_execution_id for view in rest.items]


@pytest.mark.parametrize("limit", [0, -1, 1_001])
async def test_a_page_size_out_of_range_is_refused(client, limit):
    """From 1 to 1,000."""
    with pytest.raises(InvalidRequest, match="between 1 and 1000") as refused:
        await client.list_workflows(limit=limit)

    assert "limit" == refused.value.field


async def test_an_unknown_status_is_refused(client):
    """The error names those there are."""
    with pytest.raises(InvalidRequest, match="known: PENDING, RUNNING") as refused:
        await client.list_workflows(status="SLEEPING")

    assert "status" == refused.value.field


async def test_a_time_without_a_zone_is_refused(client):
    """Nobody could say which instant it is."""
    with pytest.raises(InvalidRequest, match="created_from needs a time zone"):
        await client.list_workflows(created_from=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


async def test_counts_by_status(client):
    """One number per status that occurs."""
    await started(client, wait_for_go, 2)
    await started(client, finish, 3)

    await settled(client, WAITING=2, COMPLETED=3)


async def test_history_in_parts(client):
    """`after` and `limit` read a slice; an unknown execution is an error, a slice beyond the end is empty."""
    handle = await client.start_workflow(wait_for_go)
    await handle.signal("go")
    await handle.result(timeout=10)
    whole = await handle.history()

    assert whole[1:3] == await handle.history(after=1, limit=2)
    assert [] == await handle.history(after=len(whole))
