"""The client at the other end of a connection: what it does when that is bad, and whom it trusts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from holdfast import Client, WorkflowContext, workflow
from holdfast.api.auth import AuthMode, AuthSettings
from holdfast.client.remote.caller import Caller
from holdfast.client.remote.connection import read_url
from holdfast.client.remote.http_api import HttpApi
from holdfast.contract.execution_reads import CountExecutions
from holdfast.contract.executions import SignalWorkflow, StartWorkflow
from holdfast.errors import (
    ExecutionNotFound,
    Forbidden,
    InvalidRequest,
    InvalidServer,
    ServerUnreachable,
    Unauthenticated,
    UnexpectedAnswer,
    by_code,
    revived,
)
from holdfast.model.keys import Role
from tests.conftest import until
from tests.http_door import http_door, make_key
from tests.tcp_proxy import TcpProxy


@workflow
async def collects(ctx: WorkflowContext, count: int) -> list[int]:
    return [await ctx.wait_for_signal("item", int) for _ in range(count)]


@pytest.fixture
async def running(engine):
    return await engine(workflows=[collects])


@pytest.fixture
async def door(running):
    async with http_door(running) as opened:
        yield opened


async def test_a_lost_answer_is_asked_for_again_and_nothing_is_done_twice(running, door):
    """Connections are cut again and again while signals are sent: each is there once."""
    async with TcpProxy(door.port) as proxy, Client.connect(f"http://127.0.0.1:{proxy.port}") as client:
        handle = await client.start_workflow(collects, 200)
        few = asyncio.Semaphore(20)

        async def send(number: int) -> None:
            async with few:
                if number % 13 == 12:
                    proxy.cut()
                await handle.signal("item", number)

        await asyncio.gather(*(send(number) for number in range(200)))
        received = await handle.result(timeout=30)

    assert sorted(received) == list(range(200))
    assert proxy.connections > 15


async def test_an_answer_that_never_came_back(running, door):
    """The server has done it, the answer is lost on the way: the repeat gets the first one's answer."""
    caller = Caller(door.url, None)
    api = HttpApi(caller)
    started = await api.call(StartWorkflow(org="default", kind="collects", input=Raw(b"5"), request_id="r"))
    first = await api.call(
        SignalWorkflow(
            org="default", workflow_execution_id=started.workflow_execution_id, signal_name="item", request_id="s"
        )
    )
    again = await api.call(
        SignalWorkflow(
            org="default", workflow_execution_id=started.workflow_execution_id, signal_name="item", request_id="s"
        )
    )
    await caller.close()

    assert first == again


async def test_a_result_is_waited_for_through_a_restart_of_the_server(running, door):
    async with TcpProxy(door.port) as proxy, Client.connect(f"http://127.0.0.1:{proxy.port}") as client:
        handle = await client.start_workflow(collects, 1)
        waiting = asyncio.create_task(handle.result())
        await until(lambda: running._local.outcomes.awaited)
        proxy.refuses = True
        proxy.cut()
        await running.client.workflow(handle.id).signal("item", 7)
        proxy.refuses = False

        assert [7] == await asyncio.wait_for(waiting, 20)


async def test_a_server_that_is_not_there():
    caller = Caller("http://127.0.0.1:1", None, retry_s=0.1)
    with pytest.raises(ServerUnreachable, match="can't be reached"):
        await HttpApi(caller).call(CountExecutions(org="default"))


async def test_what_can_not_be_repeated_is_not(door):
    """A call without a request id that was sent and lost is left to the caller."""
    async with TcpProxy(door.port) as proxy, Client.connect(f"http://127.0.0.1:{proxy.port}") as client:
        proxy.hold()
        removing = asyncio.create_task(client.remove_event(1))
        await until(lambda: proxy.held)
        proxy.cut()
        with pytest.raises(ServerUnreachable):
            await removing


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "localhost:8233",
        "ftp://localhost",
        "http://",
        "http://a:b@localhost",
        "http://h:port",
        "http://h?x",
    ],
)
def test_addresses_that_are_none(url):
    with pytest.raises(InvalidServer):
        read_url(url)


def test_an_address_with_a_path_is_behind_a_proxy():
    assert ("h", 443, True, "/holdfast") == read_url("https://h/holdfast/")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.1 302 Found\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\noops",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
    ],
)
async def test_whoever_answers_is_not_trusted_a91(answer):
    async def answering(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answering, "127.0.0.1", 0)
    with pytest.raises(UnexpectedAnswer):
        await Client.connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    server.close()


async def test_the_key_decides_the_org(running):
    blue, reader = await make_key(running, Role.WRITER, "blue"), await make_key(running, Role.READER)
    async with http_door(running, auth=AuthSettings(mode=AuthMode.KEYS)) as door:
        with pytest.raises(Unauthenticated):
            await Client.connect(door.url)
        with pytest.raises(Unauthenticated):
            await Client.connect(door.url, api_key="hf_wrong")
        with pytest.raises(InvalidServer):
            await Client.connect(door.url, api_key="two words")
        async with Client.connect(door.url, api_key=blue, org="default") as client:
            assert "blue" == client.org
        async with Client.connect(door.url, api_key=reader) as client:
            with pytest.raises(Forbidden):
                await client.start_workflow("collects", 1)


async def test_a_transaction_can_not_be_joined_from_afar(door):
    async with Client.connect(door.url) as client:
        with pytest.raises(InvalidRequest, match="same process"):
            await client.start_workflow(collects, 1, using=object())


async def test_a_client_that_is_closed(door):
    client = await Client.connect(door.url)
    assert await client.count_workflows() is not None
    await client.close()
    api: Any = client.api
    assert [] == api._caller._connections._idle


async def test_blocking_callers(door, running):
    async with Client.connect(door.url) as client:
        handle = await asyncio.to_thread(client.sync.start_workflow, collects, 1)
        await asyncio.to_thread(handle.signal, "item", 3)
        assert [3] == await asyncio.to_thread(handle.result)


async def test_ids_with_every_character(door):
    async with Client.connect(door.url) as client:
        for workflow_id in ("a/b", "a?b#c", "ä ö%20", "..", "../x", "+&=;", "events", "count", "\U0001f600"):
            handle = await client.start_workflow(collects, 1, workflow_id=workflow_id)
            assert handle.id == (await client.find_workflow(workflow_id)).id


async def test_errors_are_the_same_classes(door):
    async with Client.connect(door.url) as client:
        with pytest.raises(ExecutionNotFound) as refused:
            await client.workflow("nobody").describe()

    assert {"execution_id": "nobody"} == refused.value.details


def test_errors_come_back_as_what_they_were():
    assert ExecutionNotFound is by_code("execution_not_found")
    invalid: Any = revived("invalid_request", "no", {"field": "x", "more": 1})
    strange = revived("from_the_future", "no", {"more": 1})

    assert ("x", {"field": "x", "more": 1}) == (invalid.field, invalid.details)
    assert ("no", {"more": 1}) == (strange.message, strange.details)
