"""A task's output over HTTP: pages, and a stream that a browser can follow and take up again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Client, TaskContext, WorkflowContext, task, workflow
from holdfast.errors import EngineStopped
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from tests.conftest import until
from tests.rest_server import EXECUTIONS, ORG, make_key, rest_server

GO: list[asyncio.Event] = []
TASKS = f"{ORG}/tasks"


@task
async def speaks(ctx: TaskContext, count: int) -> None:
    for number in range(count):
        ctx.emit({"line": f"{number}\nmore"})
    ctx.heartbeat(progress=0.5)
    await GO[-1].wait()
    ctx.emit("done")


@workflow
async def speaking(ctx: WorkflowContext, count: int) -> None:
    await ctx.task(speaks, count)


@pytest.fixture(autouse=True)
def go():
    GO.append(asyncio.Event())
    return GO[-1]


@pytest.fixture
async def running(engine):
    return await engine(workflows=[speaking], tasks=[speaks])


async def begun(running, count=3):
    """An execution whose task has said everything but its last word."""
    handle = await running.client.start_workflow(speaking, count)

    async def has_spoken():
        row = await running._local.store.task("default", handle.id, 1)
        return row is not None and row.output_seq == count

    await until(has_spoken)
    return f"{EXECUTIONS}/{handle.id}/tasks/1"


async def everything(frames):
    taken = []
    while (frame := await frames.next()) is not None:
        taken.append(frame)
    return taken


async def test_a_task_is_told_to_its_end(running, go):
    """Only output has a number; the stream ends after `ended`."""
    async with rest_server(running) as api:
        path = await begun(running)
        async with api.stream(f"{path}/events") as frames:
            told: list[Any] = [await frames.next() for _ in range(4)]
            go.set()
            told += await everything(frames)

    assert b"text/event-stream" in frames.head
    assert [1, 2, 3, 4] == [frame.id for frame in told if frame.event == "output"]
    assert {None} == {frame.id for frame in told if frame.event != "output"}
    assert {"attempt", "output", "progress", "ended"} >= {frame.event for frame in told}
    assert ["attempt", "ended"] == [told[0].event, told[-1].event]
    assert {"line": "0\nmore"} == told[1].data["value"]
    assert {"kind": "ended", "attempt": 1, "status": "completed"} == {
        name: value for name, value in told[-1].data.items() if name != "at"
    }


async def test_a_reader_comes_back_where_it_was(running, go):
    async with rest_server(running) as api:
        path = await begun(running)
        go.set()
        async with api.stream(f"{path}/events", last=2) as frames:
            by_header = await everything(frames)
        async with api.stream(f"{path}/events?after=2") as frames:
            by_query = await everything(frames)

    assert [3, 4] == [frame.id for frame in by_header if frame.event == "output"]
    assert [3, 4] == [frame.id for frame in by_query if frame.event == "output"]


async def test_pages(running):
    async with rest_server(running) as api:
        path = await begun(running)
        one = (await api.get(f"{path}/output?limit=2")).json
        two = (await api.get(f"{path}/output?after=2")).json

    assert ([1, 2], True) == ([chunk["sequence"] for chunk in one["chunks"]], one["more"])
    assert ([3], False) == ([chunk["sequence"] for chunk in two["chunks"]], two["more"])
    assert ({"line": "0\nmore"}, 1, 0) == tuple(one["chunks"][0][name] for name in ("value", "attempt", "dropped"))


async def test_what_is_not_there_is_refused_before_the_stream_starts(running):
    async with rest_server(running) as api:
        path = await begun(running)
        other = path.removesuffix("/1")
        answers = [
            (await api.get(f"{EXECUTIONS}/nobody/tasks/1/events")),
            (await api.get(f"{other}/2/events")),
            (await api.get(f"{other}/2/output")),
            (await api.get(f"{other}/x/events")),
            (await api.get(f"{path}/events", headers={"last-event-id": "x"})),
        ]

    codes = ["execution_not_found", "task_not_found", "task_not_found", "invalid_request", "invalid_request"]
    assert codes == [answer.json["code"] for answer in answers]
    assert [404, 404, 404, 422, 422] == [answer.status for answer in answers]


async def test_another_orgs_key_gets_the_answer_for_what_is_not_there(running):
    """Nobody learns from the answer that there is such an execution elsewhere."""
    rival = await make_key(running, Role.READER, "rival")
    async with rest_server(running, auth=AuthSettings(mode=AuthMode.KEYS)) as api:
        path = await begun(running)
        real = path.replace("/orgs/default/", "/orgs/rival/")
        made_up = f"{EXECUTIONS}/{'0' * 36}/tasks/1".replace("/orgs/default/", "/orgs/rival/")
        for what in ("output", "events"):
            found = await api.get(f"{real}/{what}", key=rival)
            nothing = await api.get(f"{made_up}/{what}", key=rival)
            elsewhere = await api.get(f"{path}/{what}", key=rival)

            assert (404, "execution_not_found") == (found.status, found.json["code"])
            assert (found.status, found.json["code"]) == (nothing.status, nothing.json["code"])
            assert elsewhere.status in {403, 404}


async def test_a_task_on_its_own_is_followed_by_either_of_its_ids(running, go):
    """Also before its first attempt has begun."""
    go.set()
    async with rest_server(running) as api:
        handle = await running.client.start_task(speaks, 2, task_id="T-1")
        async with api.stream(f"{TASKS}/T-1/events") as frames:
            told = await everything(frames)
        page = (await api.get(f"{TASKS}/{handle.workflow_execution_id}/output")).json
        nobody = await api.get(f"{TASKS}/nobody/events")

    assert [1, 2, 3] == [frame.id for frame in told if frame.event == "output"]
    assert ("ended", "completed") == (told[-1].event, told[-1].data["status"])
    assert [1, 2, 3] == [chunk["sequence"] for chunk in page["chunks"]]
    assert (404, "task_not_found") == (nobody.status, nobody.json["code"])


async def test_a_client_that_is_closed_ends_its_followers(running, go):
    """A stream of its own does not outlive it."""
    async with rest_server(running) as api:
        path = await begun(running, 1)
        client = await Client.connect(api.url)
        updates = client.follow_task(path.split("/")[-3], 1)
        heard = [await anext(updates) for _ in range(2)]
        waiting = asyncio.ensure_future(_until_ended(updates))
        await client.close()
        with pytest.raises(EngineStopped):
            await asyncio.wait_for(waiting, 10)

    assert ["attempt", "output"] == [update.kind for update in heard]


async def _until_ended(updates):
    async for _ in updates:
        pass
