"""Workers over TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import RemoteWorker, WorkflowContext, workflow
from holdfast.api.grpc.settings import GrpcSettings
from holdfast.errors import ServerUnreachable
from tests.certificates import needs_openssl, self_signed
from tests.conftest import OpenEngine
from tests.grpc_door import open_server

pytestmark = needs_openssl


@workflow
async def answers(ctx: WorkflowContext) -> int:
    return 42


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[bytes, bytes]:
    made, key = self_signed(tmp_path)
    return made.read_bytes(), key.read_bytes()


async def test_worker_over_tls(engine: OpenEngine, certificate: tuple[bytes, bytes]):
    """It works with a certificate that the worker trusts; one that it does not trust, or none, is no server."""
    api = await engine()
    settings = GrpcSettings(port=0, tls_certificate=certificate[0], tls_key=certificate[1])
    server = await open_server(api, settings=settings)
    try:
        assert server.url.startswith("grpcs://")
        async with RemoteWorker(server.url, workflows=[answers], authority=certificate[0]):
            assert 42 == await (await api.client.start_workflow(answers)).result(timeout=10)
        for url in (server.url, server.url.replace("grpcs", "grpc")):
            with pytest.raises(ServerUnreachable):
                await RemoteWorker(url, workflows=[answers], connect_timeout_s=0.1).start_up()
    finally:
        await server.stop()
