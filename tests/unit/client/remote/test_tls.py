"""Workers over TLS."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast import RemoteWorker, WorkflowContext, workflow
from holdfast.errors import ServerUnreachable
from holdfast.server.grpc.settings import GrpcSettings
from tests.conftest import OpenEngine
from tests.grpc_server import open_server

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate")


@workflow
async def answers(ctx: WorkflowContext) -> int:
    return 42


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[bytes, bytes]:
    """A certificate for this machine that signs itself, and its key."""
    key, made = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command: list[Any] = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-keyout",
        key,
        "-out",
        made,
    ]
    subprocess.run([*command, *subject], check=True, capture_output=True)
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
                await RemoteWorker(url, workflows=[answers], connect_timeout_s=0.1).open()
    finally:
        await server.stop()
