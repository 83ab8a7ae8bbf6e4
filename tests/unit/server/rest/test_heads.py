"""HEAD answers as GET does, without a body."""

from __future__ import annotations

import asyncio

from holdfast.server.operations import OPERATIONS
from tests.conftest import until
from tests.rest_server import EXECUTIONS, ORG
from tests.unit.server.rest.test_executions import is_waiting, start


async def test_head_answers_as_get_without_a_body(api):
    """Status, type and length of the answer are those of GET."""
    execution_id = await start(api)
    await until(lambda: is_waiting(api, execution_id))
    one = f"{EXECUTIONS}/{execution_id}"
    for path in ("/healthz", f"{ORG}/definitions", one, f"{EXECUTIONS}/nobody", "/api/openapi.json", "/nowhere"):
        head = await api.call("HEAD", path, headers={"x-request-id": "same"})
        got = await api.get(path, headers={"x-request-id": "same"})
        assert b"" == head.data, path
        for name in ("content-type", "content-length"):
            assert got.headers[name] == head.headers[name], path
        assert got.status == head.status, path


async def test_head_on_a_stream_ends(api):
    """It would go on for ever; who asks for its headers gets just those."""
    async with asyncio.timeout(20):
        head = await api.call("HEAD", f"{EXECUTIONS}/events")
    assert (200, "text/event-stream", b"") == (head.status, head.headers["content-type"], head.data)


async def test_head_changes_nothing(api):
    """Where there is no GET, there is no HEAD."""
    posts = {op.path for op in OPERATIONS if op.method != "GET"} - {op.path for op in OPERATIONS if op.method == "GET"}
    path = next(path for path in sorted(posts) if "{" not in path.replace("{org}", ""))
    head = await api.call("HEAD", path.replace("{org}", "default"))
    assert 405 == head.status
    assert "HEAD" not in head.headers["allow"]


async def test_a_page_lists_head_where_there_is_get(api):
    answer = await api.call("PUT", EXECUTIONS)
    assert (405, "GET, HEAD, POST") == (answer.status, answer.headers["allow"])
