"""Workers and callers in other processes, over gRPC.

One process has the engine and its gRPC door. First a worker in another process runs workflows of one task (and of one
step) that are started next to the engine; then callers in another process send signal-with-start, one call at a time
each, while no worker is there. The yardstick is the same door's health check: what a call costs that does nothing.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from typing import Any

from bench.figures import Figure, percentile
from bench.load import at_pace, by_callers
from bench.setting import Setting, config
from bench.throughput import increment_task, one_step, one_task
from holdfast import Engine, RemoteWorker, WorkflowContext, workflow
from holdfast.cli.running import hand_over_soon, run_fast
from holdfast.server.auth import open_authenticator
from holdfast.server.grpc.server import GrpcServer
from holdfast.server.grpc.settings import GrpcSettings
from holdfast.transport.grpc import holdfast_pb2 as pb

FULL = {"callers": 256, "workflows": 10_000, "warm_up": 1_000, "calls": 10_000, "call_callers": 64}
QUICK = {"callers": 256, "workflows": 1_500, "warm_up": 500, "calls": 2_000, "call_callers": 64}

PACE = 750
SIGNAL = "/holdfast.v1.WorkflowDispatch/SignalWithStartWorkflow"
HEALTH = "/grpc.health.v1.Health/Check"


@workflow
async def mailbox(ctx: WorkflowContext) -> None:
    while True:
        await ctx.wait_for_signal("letter", int)


def run(setting: Setting) -> list[Figure]:
    tasks_s, steps_s, calls = run_fast(_measure(setting))
    count = setting["workflows"]
    return [
        Figure(
            name="one-task workflows, remote worker",
            figure=count / tasks_s,
            unit="workflows/s",
            at_least=setting.aim(1_500),
        ),
        Figure(name="one-step workflows, remote worker", figure=count / steps_s, unit="workflows/s"),
        Figure(
            name="signal-with-start calls",
            figure=calls["signals"],
            unit="calls/s",
            yardstick=calls["checks"],
            yardstick_name="health checks/s",
            at_least=setting.aim(1_500),
        ),
        Figure(name="an answer at 750 calls/s, p50", figure=calls["paced_p50"], unit="ms"),
        Figure(name="an answer at 750 calls/s, p99", figure=calls["paced_p99"], unit="ms", at_most=setting.aim(50)),
    ]


async def _measure(setting: Setting) -> tuple[float, float, dict[str, float]]:
    callers, warm_up, count = setting["callers"], setting["warm_up"], setting["workflows"]
    async with Engine(setting.url(), config=config()) as engine, _app(engine) as api:
        seconds = []
        async with _process(_work, api.url):
            for kind in (one_task, one_step):

                async def call(number: int, kind: Any = kind) -> None:
                    handle = await engine.client.start_workflow(kind, number)
                    assert await handle.result() == number + 1

                await by_callers(callers, warm_up, call)
                seconds.append((await by_callers(callers, count, call)).seconds)
                setting.tell(f"{count / seconds[-1]:,.0f} workflows/s of {kind.__name__} with a remote worker")
        async with _process(_ask, api.address, setting["calls"], setting["call_callers"]) as caller:
            caller.send("go")
            calls: dict[str, float] = await asyncio.to_thread(caller.recv)
        setting.tell(f"{calls['signals']:,.0f} signal-with-start calls/s, {calls['checks']:,.0f} health checks/s")
        return seconds[0], seconds[1], calls


@asynccontextmanager
async def _app(engine: Engine) -> AsyncIterator[GrpcServer]:
    guard = await open_authenticator(engine.engine_api().keys)
    api = GrpcServer(engine.engine_api(), guard, GrpcSettings(port=0), token_key=engine.token_key)
    await api.start()
    try:
        yield api
    finally:
        await api.stop()


@asynccontextmanager
async def _process(role: Any, *arguments: Any) -> AsyncIterator[Connection]:
    """Another process that has said that it is ready; it goes when its end of the pipe is closed."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=role, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        assert await asyncio.to_thread(ours.recv) == "ready"
        yield ours
    finally:
        ours.close()
        await asyncio.to_thread(process.join, 10)


def _work(test: Connection, url: str) -> None:
    async def work() -> None:
        async with RemoteWorker(url, workflows=[one_task, one_step, mailbox], tasks=[increment_task]):
            test.send("ready")
            while True:
                await asyncio.to_thread(test.recv)

    hand_over_soon()
    try:
        asyncio.run(work())
    except EOFError:
        return


def _ask(test: Connection, target: str, count: int, callers: int) -> None:
    import grpc  # noqa: PLC0415 - only this process calls
    from grpc_health.v1 import health_pb2  # noqa: PLC0415

    async def ask() -> dict[str, float]:
        async with grpc.aio.insecure_channel(target) as channel:
            signal = channel.unary_unary(
                SIGNAL,
                pb.SignalWithStartWorkflowRequest.SerializeToString,
                pb.SignalWithStartWorkflowResponse.FromString,
            )
            check = channel.unary_unary(
                HEALTH, health_pb2.HealthCheckRequest.SerializeToString, health_pb2.HealthCheckResponse.FromString
            )

            async def send(number: int) -> None:
                await signal(
                    pb.SignalWithStartWorkflowRequest(
                        workflow_id=f"box-{number % 1_000}",
                        workflow_kind="mailbox",
                        signal_name="letter",
                        signal_value=b"%d" % number,
                    )
                )

            async def look(_: int) -> None:
                await check(health_pb2.HealthCheckRequest())

            await by_callers(callers, count // 10, send)
            signals = await by_callers(callers, count, send)
            checks = await by_callers(callers, count, look)
            paced = await at_pace(PACE, count // 3, send)
            return {
                "signals": count / signals.seconds,
                "checks": count / checks.seconds,
                "paced_p50": percentile(paced, 50) * 1000,
                "paced_p99": percentile(paced, 99) * 1000,
            }

    test.send("ready")
    test.recv()
    test.send(run_fast(ask()))
