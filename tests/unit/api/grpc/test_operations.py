"""Operations of the table over gRPC: the same requests, the same answers."""

from __future__ import annotations

from contextlib import asynccontextmanager

import grpc
import pytest

from holdfast.client.remote.grpc_api import GrpcApi
from holdfast.contract.queues import DrainWorker, ListQueues, ListWorkers, PauseQueue, ResumeQueue
from holdfast.errors import InvalidRequest, WorkerNotFound
from tests.grpc_door import open_server


@asynccontextmanager
async def connected(engine):
    server = await open_server(engine)
    api = GrpcApi(grpc.aio.insecure_channel(server.address), [])
    try:
        yield api
    finally:
        await api.close()
        await server.stop()


async def test_an_operation_answers_over_grpc_what_it_answers_in_process(engine):
    running = await engine()
    async with connected(running) as api:
        paused = await api.call(PauseQueue(org="default", queue="mail", reason="down"))
        assert (True, True, "down") == (paused.changed, paused.paused, paused.pause.reason)

        local = running.nouns().api
        for request in (ListQueues(org="default"), ListWorkers(org="default"), ResumeQueue(org="default", queue="x")):
            assert await local.call(request) == await api.call(request)


async def test_a_refusal_is_the_same_error(engine):
    async with connected(await engine()) as api:
        with pytest.raises(WorkerNotFound):
            await api.call(DrainWorker(org="default", worker_id="nobody"))
        with pytest.raises(InvalidRequest) as refused:
            await api.call(PauseQueue(org="default", queue="a\x01"))
        assert "queue" == refused.value.field
