"""Callers in another process, over HTTP: signal-with-start, one call at a time each.

One process has the engine, its worker and the HTTP door; the other has the callers, on kept connections. The yardstick
is the same door's health check: what a call costs that does nothing. Then 1,000 streams of one history are opened: what
each takes in memory, and what all of them cost while nothing happens.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.load import by_callers
from bench.setting import Setting, config
from holdfast import Server, ServerConfig, WorkflowContext, workflow

FULL = {"calls": 10_000, "callers": 64, "streams": 1_000, "idle_s": 10}
QUICK = {"calls": 2_000, "callers": 64, "streams": 300, "idle_s": 2}

PATH = "/api/orgs/default/workflow-executions"


@workflow
async def letters(ctx: WorkflowContext) -> None:
    while True:
        await ctx.wait_for_signal("letter", int)


def run(setting: Setting) -> list[Figure]:
    found = asyncio.run(_measure(setting))
    return [
        Figure(
            name="signal-with-start over HTTP",
            figure=found["signals"],
            unit="calls/s",
            yardstick=found["checks"],
            yardstick_name="health checks/s",
        ),
        Figure(name="memory of a stream", figure=found["stream_kb"], unit="kB"),
        Figure(name="idle streams, processor", figure=found["idle_percent"], unit="%"),
    ]


async def _measure(setting: Setting) -> dict[str, float]:
    anywhere = ServerConfig(port=0, grpc_port=None, access_log=False)
    async with Server(setting.url(), workflows=[letters], config=config(), server=anywhere) as server:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        port = int(server.url.rpartition(":")[2])
        arguments = (theirs, port, setting["calls"], setting["callers"], setting["streams"])
        process = context.Process(target=_call, args=arguments, daemon=True)
        process.start()
        theirs.close()
        try:
            found: dict[str, float] = await asyncio.to_thread(ours.recv)
            before = _memory()
            ours.send("open")
            await asyncio.to_thread(ours.recv)
            found["stream_kb"] = (_memory() - before) / setting["streams"] / 1000
            used = _processor_s()
            await asyncio.sleep(setting["idle_s"])
            found["idle_percent"] = (_processor_s() - used) / setting["idle_s"] * 100
        finally:
            ours.close()
            await asyncio.to_thread(process.join, 10)
    setting.tell(f"{found['signals']:,.0f} signal-with-start calls/s, {found['checks']:,.0f} health checks/s")
    setting.tell(f"{found['stream_kb']:.0f} kB a stream, {found['idle_percent']:.1f} % of a processor while idle")
    return found


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _call(test: Connection, port: int, count: int, callers: int, streams: int) -> None:
    with suppress(EOFError):
        asyncio.run(_calls(test, port, count, callers, streams))


async def _calls(test: Connection, port: int, count: int, callers: int, streams: int) -> None:
    idle: list[Any] = []

    async def ask(method: str, path: str, body: bytes = b"") -> bytes:
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
        writer.write(head.encode() + b"content-type: application/json\r\n\r\n" + body)
        answered = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert b" 200 " in answered, answered
        data: bytes = await reader.readexactly(int(answered.partition(b"content-length: ")[2].partition(b"\r")[0]))
        idle.append((reader, writer))
        return data

    async def send(number: int) -> None:
        body = {
            "workflow_id": f"box-{number % 1_000}",
            "workflow_kind": "letters",
            "signal_name": "letter",
            "signal_value": number,
        }
        await ask("POST", f"{PATH}/signal-with-start", json.dumps(body).encode())

    async def look(_: int) -> None:
        await ask("GET", "/healthz")

    await by_callers(callers, count // 10, send)
    signals = await by_callers(callers, count, send)
    checks = await by_callers(callers, count, look)
    listed = json.loads(await ask("GET", f"{PATH}?limit=1"))
    followed = listed["items"][0]["workflow_execution_id"]
    test.send({"signals": count / signals.seconds, "checks": count / checks.seconds})
    await asyncio.to_thread(test.recv)
    opened = []
    for _ in range(streams):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        writer.write(f"GET {PATH}/{followed}/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
        await reader.readuntil(b"event: WORKFLOW_STARTED")
        opened.append(writer)
    test.send("opened")
    await asyncio.to_thread(test.recv)
