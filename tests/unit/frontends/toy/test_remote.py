"""Snapshots of programs that run elsewhere, and ends of the wire that do not know them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast import Engine, WorkerConfig
from holdfast.api.grpc import worker_service
from holdfast.api.grpc.histories import history_page
from holdfast.assembly import RemoteWorker
from holdfast.client.remote import histories
from holdfast.wire.grpc import holdfast_pb2 as pb
from holdfast.wire.grpc import reports
from tests.conftest import OpenEngine
from tests.grpc_door import open_server
from tests.unit.engine.records import check_all, waiting
from tests.unit.frontends.toy.language import toy
from tests.unit.frontends.toy.programs import BUSY, COUNT, HALVES, double
from tests.unit.frontends.toy.test_engine import Reads, check_snapshot, run_busy, snapshot_of

COLD = WorkerConfig(lease_s=2.0, shutdown_grace_s=0.5, cached_executions=0)


@asynccontextmanager
async def remote(api: Engine, *workflows: Any) -> AsyncIterator[RemoteWorker]:
    server = await open_server(api)
    try:
        async with RemoteWorker(server.url, workflows=workflows, tasks=[double], config=COLD) as worker:
            yield worker
    finally:
        await server.stop()


async def test_a_remote_worker_stores_and_reads_snapshots(engine: OpenEngine):
    """Each of its turns begins with one; the server reads no old events for it."""
    api = await engine()
    async with remote(api, COUNT):
        handle = await api.client.start_workflow(COUNT)
        for _ in range(40):
            await handle.signal("next", 1)
            await waiting(handle)
        await check_snapshot(api, handle, COUNT)
        reads = Reads(api)
        await handle.signal("next", 1_000_000)
        assert await handle.result(timeout=20) == 1_000_040
        assert (1, True) == (reads.snapshots, 0 < len(reads.events) < 10)
        assert await snapshot_of(api, handle) is None
    await check_all(api)


async def test_a_busy_program_runs_elsewhere(engine: OpenEngine):
    """With everything a toy can wait for, evicted after every turn."""
    api = await engine()
    async with remote(api, BUSY, HALVES):
        _, result = await run_busy(api.client)
    assert result == 65


async def test_a_large_snapshot_comes_in_parts(engine: OpenEngine):
    """Both ways, and larger than what a message may have."""
    keeps = toy("keeps", "signal first word\nsignal second other\nreturn word")
    api = await engine()
    word = "x" * 6 * 1024 * 1024
    async with remote(api, keeps):
        handle = await api.client.start_workflow(keeps)
        await handle.signal("first", word)
        await waiting(handle)
        stored = await snapshot_of(api, handle)
        assert stored is not None
        assert len(stored.state) > len(word)
        await handle.signal("second", 1)
        assert await handle.result(timeout=20) == word


async def test_a_server_that_knows_no_snapshots_gives_the_whole_history(
    engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
):
    """It reads the question as one for the first page, and drops what it is sent."""

    async def older(workers: Any, org: str, message: Any, most: int) -> pb.GetHistoryResponse:
        return await history_page(workers.history, org, message, most)

    monkeypatch.setattr(worker_service, "loaded_page", older)
    monkeypatch.setattr(histories, "HISTORY_PAGE", 7)
    monkeypatch.setattr(reports, "snapshot", lambda *_: None)
    api = await engine()
    async with remote(api, COUNT):
        handle = await api.client.start_workflow(COUNT)
        for _ in range(10):
            await handle.signal("next", 1)
            await waiting(handle)
        assert await snapshot_of(api, handle) is None
        await handle.signal("next", 1_000_000)
        assert await handle.result(timeout=20) == 1_000_010


async def test_a_history_after_its_snapshot_comes_in_pages(engine: OpenEngine, monkeypatch: pytest.MonkeyPatch):
    """A program that stores one now and then has more to read than fits on a page."""
    monkeypatch.setattr(histories, "HISTORY_PAGE", 7)
    rare = toy("rare", "\n".join(" ".join(line) for line in COUNT.lines), every=40)
    api = await engine()
    async with remote(api, rare):
        handle = await api.client.start_workflow(rare)
        for _ in range(30):
            await handle.signal("next", 1)
            await waiting(handle)
        stored = await snapshot_of(api, handle)
        assert stored is not None
        await handle.signal("next", 1_000_000)
        assert await handle.result(timeout=20) == 1_000_030
