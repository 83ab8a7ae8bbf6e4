"""Server-sent events and long polls: nothing missed, nothing twice, cheap, and ended when they must be."""

from __future__ import annotations

import asyncio

from holdfast import Engine
from holdfast.config import ServerConfig
from holdfast.contract.keys import RevokeKey
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from tests.conftest import QUICK, until
from tests.rest_server import EXECUTIONS, ORG, make_key
from tests.unit.server.rest.conftest import WORKFLOWS
from tests.unit.server.rest.test_executions import start

END = {"signal_name": "message", "signal_value": {"end": True}}
MORE = {"signal_name": "message", "signal_value": {"text": "line\nline"}}


async def everything(frames):
    taken = []
    while (frame := await frames.next()) is not None:
        taken.append(frame)
    return taken


async def test_a_history_is_told_to_its_end(api):
    """What is there, what comes, and then `end`."""
    execution_id = await start(api)
    async with api.stream(f"{EXECUTIONS}/{execution_id}/events") as frames:
        first = await frames.next()
        await api.post(f"{EXECUTIONS}/{execution_id}/signal", MORE)
        await api.post(f"{EXECUTIONS}/{execution_id}/signal", END)
        told = [first, *await everything(frames)]
    history = (await api.get(f"{EXECUTIONS}/{execution_id}/history")).json["events"]

    assert b"text/event-stream" in frames.head
    assert "end" == told[-1].event
    assert [event["sequence"] for event in history] == [frame.id for frame in told[:-1]]
    assert history == [frame.data for frame in told[:-1]]
    assert [event["type"] for event in history] == [frame.event for frame in told[:-1]]


async def test_a_reader_comes_back_where_it_was(api):
    execution_id = await start(api)
    await api.post(f"{EXECUTIONS}/{execution_id}/signal", END)
    await api.get(f"{EXECUTIONS}/{execution_id}/result?wait=20")
    async with api.stream(f"{EXECUTIONS}/{execution_id}/events") as frames:
        whole = await everything(frames)
    for last in range(len(whole)):
        async with api.stream(f"{EXECUTIONS}/{execution_id}/events", last=last) as frames:
            assert whole[last:] == await everything(frames)
    async with api.stream(f"{EXECUTIONS}/{execution_id}/events?after=2") as frames:
        assert whole[2:] == await everything(frames)


async def test_events_of_another_process_are_told(api, running, database_url):
    execution_id = await start(api)
    async with (
        Engine(database_url, config=QUICK) as elsewhere,
        api.stream(f"{EXECUTIONS}/{execution_id}/events") as frames,
    ):
        await frames.next()
        await elsewhere.client.signal_workflow(execution_id, "message", {"end": True})
        told = await everything(frames)

    assert ["SIGNAL_RECEIVED", "STATE_CHANGED", "WORKFLOW_COMPLETED", "end"] == [frame.event for frame in told][-4:]


async def test_payloads_with_line_breaks_stay_whole(api):
    data = b'{"workflow_kind": "asks", "workflow_input": {\r\n"a":\n1}}'
    execution_id = (await api.call("POST", EXECUTIONS, data=data)).json["workflow_execution_id"]
    async with api.stream(f"{EXECUTIONS}/{execution_id}/events") as frames:
        assert {"a": 1} == (await frames.next()).data["data"]["input"]


async def test_an_unknown_execution_is_refused_before_the_stream_starts(api):
    answer = await api.get(f"{EXECUTIONS}/nobody/events")
    bad = await api.get(f"{EXECUTIONS}/nobody/events", headers={"last-event-id": "x"})

    assert (404, 422) == (answer.status, bad.status)


async def test_a_list_is_followed(api):
    """What is there, what is new, what changes, and what no longer belongs to it."""
    first = await start(api, workflow_id="a")
    async with api.stream(f"{EXECUTIONS}/events?status=WAITING&status=PENDING&status=RUNNING") as frames:
        assert first == (await frames.next()).data["workflow_execution_id"]
        second = await start(api, workflow_id="b")
        await api.post(f"{EXECUTIONS}/{first}/signal", END)
        seen: set[str] = set()
        gone: set[str] = set()
        while not (second in seen and first in gone):
            frame = await frames.next()
            {"execution": seen, "removed": gone}[frame.event].add(frame.data["workflow_execution_id"])


async def test_many_streams_cost_one_reader(api, running, monkeypatch):
    """300 followers of one execution and of one list: an event is read for none of them, a change once for all."""
    execution_id = await start(api)
    await until(lambda: _waits(api, execution_id))
    async with (
        _many(api, f"{EXECUTIONS}/{execution_id}/events", 200) as histories,
        _many(api, f"{EXECUTIONS}/events", 100) as lists,
    ):
        for frames in (*histories, *lists):
            await frames.next()
        reads = _count_reads(running, monkeypatch)
        await api.post(f"{EXECUTIONS}/{execution_id}/signal", END)
        told = await asyncio.gather(*(everything(frames) for frames in histories))
        changed = await asyncio.gather(*(_until_completed(frames) for frames in lists))

    assert {"end"} == {frames[-1].event for frames in told}
    assert 1 == len({tuple(frame.id for frame in frames) for frames in told})
    assert all(changed)
    assert reads["history"] <= 5
    assert 1 <= reads["list_executions"] <= 5


class _many:  # noqa: N801 - used like a function
    def __init__(self, api, path, count):
        self._streams = [api.stream(path) for _ in range(count)]

    async def __aenter__(self):
        return await asyncio.gather(*(stream.__aenter__() for stream in self._streams))

    async def __aexit__(self, *error):
        await asyncio.gather(*(stream.__aexit__(*error) for stream in self._streams))


async def _waits(api, execution_id):
    return (await api.get(f"{EXECUTIONS}/{execution_id}")).json["status"] == "WAITING"


async def _until_completed(frames):
    while True:
        frame = await frames.next()
        if frame.data["status"] == "COMPLETED":
            return True


def _count_reads(engine, monkeypatch):
    reads = {"history": 0, "list_executions": 0}

    def counted(name):
        method = getattr(engine.storage, name)

        async def read(*args, **options):
            reads[name] += 1
            return await method(*args, **options)

        return read

    for name in reads:
        monkeypatch.setattr(engine.storage, name, counted(name))
    return reads


async def test_a_sign_of_life(open_api):
    """A connection on which nothing happens is not taken for dead."""
    api = await open_api(config=ServerConfig(port=0, heartbeat_s=0.01))
    execution_id = await start(api, "asks")
    async with api.stream(f"{EXECUTIONS}/{execution_id}/events") as frames:
        assert b": still here" in await asyncio.wait_for(frames._reader.readuntil(b"still here"), 20)


async def test_a_caller_who_goes_away_leaves_nothing(api, running):
    execution_id = await start(api, "asks")
    async with api.stream(f"{EXECUTIONS}/{execution_id}/events") as frames:
        await frames.next()
        assert 1 == api.server._app.open_requests.count
    polling = asyncio.create_task(api.get(f"{EXECUTIONS}/{execution_id}/result?wait=30"))
    await until(lambda: running._local.result_waiters.awaited)
    polling.cancel()

    await until(lambda: api.server._app.open_requests.count == 0)
    assert {} == running._local.feeds._feeds
    await until(lambda: not running._local.result_waiters.awaited)


async def test_a_key_that_ends_takes_its_streams_with_it_a09(running, open_api):
    admin, reader = await make_key(running, Role.ADMIN), await make_key(running, Role.READER)
    api = await open_api(auth=AuthSettings(mode=AuthMode.KEYS))
    body = {"workflow_kind": "asks"}
    execution_id = (await api.post(EXECUTIONS, body, key=admin)).json["workflow_execution_id"]
    key_id = (await api.get("/api/me", key=reader)).json["key_id"]
    async with api.stream(f"{EXECUTIONS}/{execution_id}/events", key=reader) as frames:
        await frames.next()
        polling = asyncio.create_task(api.get(f"{EXECUTIONS}/{execution_id}/result?wait=30", key=reader))
        await until(lambda: api.server._app.open_requests.count == 2)
        await running.engine_api().keys.revoke(RevokeKey(org="default", key_id=key_id))
        told = await everything(frames)
        polled = await polling
    refused = await api.get(EXECUTIONS, key=reader)

    assert ("problem", "unauthenticated") == (told[-1].event, told[-1].data["code"])
    assert (401, 401) == (polled.status, refused.status)


async def test_there_are_only_so_many(open_api):
    api = await open_api(config=ServerConfig(port=0, streams=1))
    execution_id = await start(api, "asks")
    async with api.stream(f"{EXECUTIONS}/{execution_id}/events") as frames:
        await frames.next()
        answer = await api.get(f"{EXECUTIONS}/{execution_id}/result?wait=5")

    assert (429, "too_many_requests") == (answer.status, answer.json["code"])
    assert "retry-after" in answer.headers


async def test_a_reader_that_never_reads_costs_no_memory_a85(api, running):
    """It is told when it reads: until then nothing piles up for it."""
    execution_id = await start(api)
    async with api.stream(f"{EXECUTIONS}/{execution_id}/events") as frames:
        await frames.next()
        for _ in range(20):
            await asyncio.gather(
                *(running.client.signal_workflow(execution_id, "message", {"text": "x" * 50_000}) for _ in range(10))
            )
        remembered = len(running._local.feeds._feeds[execution_id].events)
        await running.client.signal_workflow(execution_id, "message", {"end": True})
        told = await everything(frames)

    assert remembered <= 64
    numbers = [frame.id for frame in told[:-1]]
    assert numbers == list(range(2, 2 + len(numbers)))
    assert "end" == told[-1].event


async def test_streams_end_when_the_server_stops(running, open_api):
    api = await open_api()
    execution_id = await start(api, "asks")
    async with api.stream(f"{EXECUTIONS}/{execution_id}/events") as frames, api.stream(f"{ORG}/nothing") as none:
        await frames.next()
        assert 404 == none.status
        polling = asyncio.create_task(api.get(f"{EXECUTIONS}/{execution_id}/result?wait=30"))
        await until(lambda: api.server._app.open_requests.count == 2)
        await api.server.stop()
        await everything(frames)
        polled = await polling

    assert (503, "engine_stopped") == (polled.status, polled.json["code"])


async def test_a_feed_ends_with_its_engine(database_url):
    async with Engine(database_url, workflows=WORKFLOWS, config=QUICK) as engine:
        handle = await engine.client.start_workflow("asks")
        following = asyncio.create_task(_all(engine.engine_api().feeds.history("default", handle.id)))
        watching = asyncio.ensure_future(engine.engine_api().feeds.changed("default", 10**9))
        await until(lambda: engine._local.feeds._feeds and engine._local.feeds._watchers)
    outcomes = await asyncio.gather(following, watching, return_exceptions=True)

    assert ["EngineStopped"] * 2 == [type(outcome).__name__ for outcome in outcomes]


async def _all(feed):
    return [events async for events in feed]
