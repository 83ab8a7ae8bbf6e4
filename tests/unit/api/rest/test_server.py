"""The server itself: how it starts, what it bears, how it stops, what it writes down."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
import sys

import pytest

from holdfast import Client, Server, ServerConfig
from holdfast.api.auth import AuthMode, AuthSettings
from holdfast.contract.execution_reads import CountExecutions
from holdfast.errors import InvalidServer, UnprotectedServer
from holdfast.model.keys import Role
from tests.certificates import self_signed
from tests.conftest import QUICK, until
from tests.http_door import EXECUTIONS, make_key
from tests.unit.api.rest.conftest import WORKFLOWS
from tests.unit.api.rest.test_executions import start

ANY = ServerConfig(port=0, grpc_port=None)


async def test_a_server_is_an_engine_with_doors(database_url):
    async with Server(database_url, workflows=WORKFLOWS, config=QUICK, server=ANY) as server:
        async with Client.connect(server.url) as client:
            handle = await client.start_workflow("asks", workflow_id="w")
            assert handle.id == (await server.client.find_workflow("w")).id
        port = int(server.url.rpartition(":")[2])
    with pytest.raises(OSError, match=r"."):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    with pytest.raises(InvalidServer):
        server.url  # noqa: B018 - it raises


async def test_both_doors_open_and_close(database_url):
    async with Server(
        database_url, workflows=WORKFLOWS, config=QUICK, server=ServerConfig(port=0, grpc_port=0)
    ) as server:
        assert server.grpc is not None
        assert server.grpc.port != int(server.url.rpartition(":")[2])


async def test_others_are_not_let_in_without_keys(database_url):
    server = Server(database_url, config=QUICK, server=ServerConfig(host="0.0.0.0", port=0, grpc_port=None))
    with pytest.raises(UnprotectedServer, match="key"):
        await server.start_up()
    assert not server.engine._running


async def test_a_port_that_is_taken(door, running, open_door):
    with pytest.raises(InvalidServer, match="another server"):
        await open_door(config=ServerConfig(port=door.port))


@pytest.mark.parametrize(
    "settings",
    [
        {"tls_key": "key.pem"},
        {"tls_certificate": "nowhere.pem"},
        {"host": "256.256.256.256"},
    ],
)
async def test_settings_that_can_not_work(open_door, settings):
    with pytest.raises((InvalidServer, UnprotectedServer)):
        await open_door(config=ServerConfig(port=0, **settings))


async def test_tls(tmp_path, running, open_door):
    certificate, key = self_signed(tmp_path)
    door = await open_door(config=ServerConfig(port=0, tls_certificate=str(certificate), tls_key=str(key)))
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with Client.connect(door.url, tls=trusting) as client:
        assert {} == {status: n for status, n in (await client.count_workflows()).items() if n}
    with pytest.raises(InvalidServer, match="trusted"):
        await Client.connect(door.url)


async def test_requests_under_way_finish_when_it_stops(running, open_door, monkeypatch):
    door = await open_door()
    begun, go_on = asyncio.Event(), asyncio.Event()
    handlers = running._local.api._handlers
    count = handlers[CountExecutions]

    async def slow(request, using):
        begun.set()
        await go_on.wait()
        return await count(request, using)

    monkeypatch.setitem(handlers, CountExecutions, slow)
    counting = asyncio.create_task(door.get(f"{EXECUTIONS}/count"))
    await begun.wait()
    stopping = asyncio.create_task(door.server.stop())
    await until(lambda: _refuses(door))
    go_on.set()
    await stopping

    assert (200, 0) == ((await counting).status, (await counting).json["total"])


async def _refuses(door):
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", door.port)
    except OSError:
        return True
    writer.close()
    return False


async def test_what_takes_longer_than_the_grace_is_cut_off(running, open_door, monkeypatch):
    door = await open_door(config=ServerConfig(port=0, shutdown_grace_s=0.05))

    async def never(request, using):
        await asyncio.Event().wait()

    monkeypatch.setitem(running._local.api._handlers, CountExecutions, never)
    counting = asyncio.create_task(door.get(f"{EXECUTIONS}/count"))
    await until(lambda: door.server._uvicorn.server_state.tasks)
    await door.server.stop()
    assert (503, "engine_stopped") == ((await counting).status, (await counting).json["code"])


async def test_headers_that_are_too_large_a04(door):
    small = await door.get(EXECUTIONS, headers={"x-much": "x" * 10_000})
    large = await door.get(EXECUTIONS, headers={"x-much": "x" * 17_000})
    path = await door.get(EXECUTIONS + "/" + "x" * 5_000)
    endless = await door.raw(b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 20_000)

    assert [200, 431, 431, 431] == [small.status, large.status, path.status, endless.status]


async def test_headers_that_never_end_a84(open_door):
    door = await open_door(config=ServerConfig(port=0, header_timeout_s=0.05))
    silent = await door.raw(b"")
    slow = await door.raw(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")

    assert [408, 408] == [silent.status, slow.status]


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        b"GET /healthz HTTP/9.9\r\nhost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"hello\r\n\r\n",
    ],
)
async def test_what_is_no_proper_http_is_refused_a84(door, sent):
    reply = await door.raw(sent)
    assert 400 == reply.status


async def test_a_connection_is_kept_and_used_again(door):
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    for _ in range(3):
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"200 OK" in head
        assert b"alive" in await reader.readexactly(18)
    writer.close()


async def test_too_many_requests(open_door):
    door = await open_door(config=ServerConfig(port=0, requests_per_second=3))
    answers = [await door.get(EXECUTIONS) for _ in range(8)]
    refused = [answer for answer in answers if answer.status == 429]

    assert 200 == answers[0].status
    assert refused
    assert {"too_many_requests"} == {answer.json["code"] for answer in refused}
    assert int(refused[0].headers["retry-after"]) >= 1
    assert 200 == (await door.get("/healthz")).status


async def test_request_ids_are_echoed_if_they_are_sane(door):
    for given, kept in (("abc-1", True), ("x" * 129, False), ("a b", False), ('"><script>', False)):
        answer = await door.get(EXECUTIONS, headers={"x-request-id": given})
        assert kept is (given == answer.headers["x-request-id"])


async def test_the_access_log_has_no_secrets(running, open_door, caplog):
    key = await make_key(running, Role.ADMIN)
    door = await open_door(auth=AuthSettings(mode=AuthMode.KEYS))
    caplog.set_level(logging.DEBUG)
    await door.get(f"{EXECUTIONS}?workflow_id={key}", key=key)
    await door.get(f"{EXECUTIONS}/{key}", key=key)
    await door.get(f"/api/v1/{key}%0d%0aforged", key=key, headers={"x-request-id": "mine"})
    await door.post("/api/v1/promises/complete", {"token": "ct_secret", "result": 1}, key=key)
    lines = [json.loads(record.message) for record in caplog.records if record.name == "holdfast.access"]

    assert key not in caplog.text
    assert "ct_secret" not in caplog.text
    assert ["list_workflows", "get_workflow", None, "complete_promise_v1"] == [line["operation"] for line in lines]
    assert ("mine", 404) == (lines[2]["request_id"], lines[2]["status"])
    assert all(line["key_id"] for line in lines if line["operation"])


async def test_a_fault_of_our_own_is_told_without_details(door, running, monkeypatch, caplog):
    async def broken(request, using):
        raise RuntimeError("secret of the house")

    monkeypatch.setitem(running._local.api._handlers, CountExecutions, broken)
    answer = await door.get(f"{EXECUTIONS}/count")

    assert (500, "internal_error") == (answer.status, answer.json["code"])
    assert b"secret of the house" not in answer.data
    assert "secret of the house" in caplog.text
    assert answer.json["request_id"] in caplog.text


async def test_pages_come_from_here_alone(door):
    page = await door.get("/api/docs")
    api = await door.get("/api/openapi.json")

    assert (200, 200) == (page.status, api.status)
    assert "3.1.0" == api.json["openapi"]
    assert b"http" not in page.data.replace(b"http-equiv", b"")
    assert "default-src 'none'" in page.headers["content-security-policy"]


async def test_pages_can_be_left_out_a79(open_door):
    door = await open_door(config=ServerConfig(port=0, documentation=False))
    assert [404, 404] == [(await door.get(path)).status for path in ("/api/docs", "/api/openapi.json")]


async def test_health(door, running, monkeypatch):
    from holdfast.errors import StorageBusy

    async def away(*given):
        raise StorageBusy

    fine = await door.get("/readyz")
    monkeypatch.setattr(running._local.store, "read", away)
    busy = await door.get("/readyz")

    assert (200, 503, "storage_busy") == (fine.status, busy.status, busy.json["code"])
    assert 200 == (await door.get("/healthz")).status


async def test_a_probe_does_not_wait_for_a_database_that_is_silent(door, running, monkeypatch):
    monkeypatch.setattr("holdfast.engine.system.READY_S", 0.01)
    monkeypatch.setattr(running._local.store, "read", lambda *given: asyncio.Event().wait())
    answer = await door.get("/readyz")

    assert (503, "storage_busy") == (answer.status, answer.json["code"])


async def test_the_door_needs_no_engine_to_be_light():
    """`import holdfast` loads none of it."""
    code = (
        "import sys, holdfast; sys.exit(any(m.split('.')[0] in {'uvicorn', 'httptools', 'grpc'} for m in sys.modules))"
    )
    running = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert 0 == await running.wait()


async def test_long_polls_are_capped_a78(door):
    execution_id = await start(door, "asks")
    answer = await door.get(f"{EXECUTIONS}/{execution_id}/result?wait=31")
    assert (422, "wait") == (answer.status, answer.json["field"])
