"""What one caller may take of the gRPC door: requests a second, size of messages; the same settings as for HTTP."""

from __future__ import annotations

import grpc
import pytest

from holdfast import Server
from holdfast.client.remote.http_client import HttpClient as HttpCaller
from holdfast.config import ServerConfig
from holdfast.errors import TooManyRequests
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.rest.system_views import MeView
from tests.conftest import QUICK
from tests.grpc_server import Caller, make_key

LIST = pb.ListWorkflowsRequest()


def server(url, **settings):
    return Server(
        url,
        config=QUICK,
        server=ServerConfig(port=0, grpc_port=0, **settings),
        auth=AuthSettings(mode=AuthMode.AUTO, failures_per_minute=3),
    )


async def test_requests_per_second_count_per_key(database_url):
    """Refused with RESOURCE_EXHAUSTED and a hint; another key is not concerned."""
    async with server(database_url, requests_per_second=2) as running:
        one, two = [await make_key(running.engine, Role.READER) for _ in range(2)]
        async with Caller(running.grpc.address, one) as first, Caller(running.grpc.address, two) as second:
            for _ in range(2):
                await first("ListWorkflows", LIST)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await first("ListWorkflows", LIST)
            await second("ListWorkflows", LIST)
    trailer = dict(refused.value.trailing_metadata())
    assert ("RESOURCE_EXHAUSTED", "too_many_requests") == (refused.value.code().name, trailer["holdfast-code"])
    assert 1 <= int(trailer["grpc-retry-pushback-ms"]) <= 500


async def test_both_listeners_count_together(database_url):
    """What was used up over gRPC is not there over HTTP."""
    async with server(database_url, requests_per_second=1) as running:
        key = await make_key(running.engine, Role.READER)
        async with Caller(running.grpc.address, key) as call:
            await call("ListWorkflows", LIST)
        caller = HttpCaller(running.url, key)
        with pytest.raises(TooManyRequests):
            await caller.get("/api/me", MeView)
        await caller.close()


async def test_opening_a_session_counts_too(database_url):
    """A worker that opens one after the other is held back."""
    async with server(database_url, requests_per_second=1) as running:
        key = await make_key(running.engine, Role.WORKER)
        async with Caller(running.grpc.address, key) as call:
            await call.session().open()
            assert ("RESOURCE_EXHAUSTED", "too_many_requests") == await call.session().end()


async def test_the_size_of_a_message_is_a_setting(database_url):
    """One that is too large is refused, and the connection stays."""
    async with server(database_url, grpc_message_bytes=10_000) as running, Caller(running.grpc.address) as call:
        large = pb.StartWorkflowRequest(workflow_kind="x", workflow_input=b'"%s"' % (b"x" * 10_000))
        assert "RESOURCE_EXHAUSTED" == (await call.refusal("StartWorkflow", large))[0]
        await call("ListWorkflows", LIST)


async def test_documents_have_the_same_limits_as_over_http(database_url):
    async with server(database_url, document_depth=5) as running, Caller(running.grpc.address) as call:
        deep = pb.StartWorkflowRequest(workflow_kind="x", workflow_input=b"[" * 6 + b"]" * 6)
        assert ("INVALID_ARGUMENT", "invalid_request") == await call.refusal("StartWorkflow", deep)


async def test_callers_behind_a_trusted_proxy_are_told_apart(database_url):
    """By what the proxy says; without trust they are one."""

    async def told(running, *addresses):
        async with Caller(running.grpc.address, "hf_wrong") as call:
            metadata = [[("x-forwarded-for", address)] for address in addresses]
            return [(await call.refusal("ListWorkflows", LIST, metadata=each))[1] for each in metadata]

    async with server(database_url, trusted_proxies=("127.0.0.0/8",)) as running:
        await make_key(running.engine, Role.ADMIN)
        codes = await told(running, *["203.0.113.1"] * 4, "203.0.113.2")
        assert ["unauthenticated"] * 3 + ["too_many_requests", "unauthenticated"] == codes
    async with server(database_url) as running:
        assert "too_many_requests" == (await told(running, *(f"203.0.113.{n}" for n in range(4))))[-1]
