"""A server that is about to stop: it tells its workers, hands out nothing more, and takes their reports for a while."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast import ServerConfig
from holdfast.server.grpc.settings import GrpcSettings
from holdfast.transport.grpc import holdfast_pb2 as pb
from tests.conftest import OpenEngine
from tests.grpc_server import WorkerStream, grpc_api
from tests.unit.server.grpc.test_worker_sessions import KINDS, completed, history, known, start, task_of, task_report

RETRY_ON_OUTAGE = GrpcSettings(port=0, common=ServerConfig(shutdown_grace_s=600))
"""Longer than any test takes: what ends, ends for another reason."""


async def leaving(stream: WorkerStream) -> pb.Leaving:
    while not (message := await stream.read()).HasField("leaving"):
        pass
    return message.leaving


async def test_server_that_goes_waits_for_the_report_of_a_task(engine: OpenEngine):
    """The worker is told how long there is; its report is recorded and answered, and then the session ends."""
    async with grpc_api(await known(engine), settings=RETRY_ON_OUTAGE) as (server, call):
        stream = call.session()
        await stream.open(**KINDS, lease_seconds=3600)
        work = await task_of(call, stream)
        stopping = asyncio.ensure_future(server.stop())

        assert 600 == (await leaving(stream)).within_seconds
        await stream.ask(task_report(work, 2, b'"done"'))
        answers: list[int] = []
        while not (message := await stream.read()).HasField("ended"):
            answers += [answer.id for answer in message.answers if not answer.HasField("error")]

        assert ([2], "unavailable") == (answers, message.ended.code)
        await stopping


async def test_server_that_goes_waits_for_the_report_of_a_turn(engine: OpenEngine):
    """What the worker decides is recorded: the execution ends, though its server is about to."""
    opened = await known(engine)
    async with grpc_api(opened, settings=RETRY_ON_OUTAGE) as (server, call):
        stream = call.session()
        await stream.open(**KINDS, lease_seconds=3600)
        execution_id = await start(call)
        turn = (await stream.work()).turn
        stopping = asyncio.ensure_future(server.stop())
        await leaving(stream)

        await stream.ask(completed(turn))
        answer = await stream.answer()
        await stopping

    assert ("recorded", "COMPLETED") == (answer.turn.verdict, await opened.client.workflow(execution_id).status())


async def test_server_that_goes_hands_out_nothing_more(engine: OpenEngine):
    """What is started meanwhile waits for others, and whoever comes is sent away."""
    opened = await known(engine)
    async with grpc_api(opened, settings=RETRY_ON_OUTAGE) as (server, call):
        stream = call.session()
        await stream.open(**KINDS, lease_seconds=3600)
        await start(call, "held")
        turn = (await stream.work()).turn
        stopping = asyncio.ensure_future(server.stop())
        await leaving(stream)

        later = await start(call, "later")
        newcomer = call.session()
        await newcomer.write(pb.WorkerMessage(open=pb.OpenSession(host="h", lease_seconds=5)))
        assert ("UNAVAILABLE", "unavailable") == await newcomer.end()
        await stream.ask(completed(turn))
        work: list[Any] = []
        while not (message := await stream.read()).HasField("ended"):
            work += message.work
        await stopping

        assert [] == work
    assert "PENDING" == await opened.client.workflow(later).status()


async def test_server_that_goes_does_not_wait_for_the_idle(engine: OpenEngine):
    """A session that holds nothing is told, and ended at once."""
    async with grpc_api(await known(engine), settings=RETRY_ON_OUTAGE) as (server, call):
        stream = call.session()
        await stream.open(**KINDS)

        await server.stop()

        assert (await stream.read()).HasField("leaving")
        assert "unavailable" == (await stream.read()).ended.code


async def test_server_that_goes_does_not_wait_for_who_is_gone(engine: OpenEngine):
    """The worker ends its stream: its turn is free for others at once, though its lease is long."""
    opened = await known(engine)
    async with grpc_api(opened, settings=RETRY_ON_OUTAGE) as (server, call):
        stream = call.session()
        await stream.open(**KINDS, lease_seconds=3600)
        execution_id = await start(call)
        await stream.work()
        stopping = asyncio.ensure_future(server.stop())
        await leaving(stream)

        stream.call.cancel()
        await stopping

    assert "PENDING" == await opened.client.workflow(execution_id).status()


async def test_worker_that_does_not_know_the_message_loses_nothing(engine: OpenEngine):
    """It goes on until it is sent away; what it held is shown to another server and recorded there, once."""
    opened, other = await known(engine), await engine()
    brief = GrpcSettings(port=0, common=ServerConfig(shutdown_grace_s=0.1))
    async with (
        grpc_api(opened, settings=brief) as (server, call),
        grpc_api(other, settings=RETRY_ON_OUTAGE) as (_, call_other),
    ):
        stream = call.session()
        session = await stream.open(**KINDS, lease_seconds=3600)
        work = await task_of(call, stream)

        await server.stop()
        while not (await stream.read()).HasField("ended"):
            pass
        second = call_other.session()
        await second.open(
            **KINDS, replaces=session.session, replaces_proof=session.proof, leftovers=[task_report(work, 9, b'"done"')]
        )
        assert work.workflow_execution_id == (await second.work()).turn.workflow_execution_id

        events = (await history(call_other, work.workflow_execution_id)).events
        assert [True] == [b'"done"' in event.body for event in events if event.type == "TASK_COMPLETED"]
