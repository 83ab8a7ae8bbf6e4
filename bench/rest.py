"""A server alone, as `holdfast server` runs it, and callers in another process, over HTTP.

Signal-with-start, one call at a time for each caller; no worker is there, so that taking calls is all that is done. The
yardstick is the same door's health check: what a call costs that does nothing. Then the same at half of the aim, for
the time an answer takes. Then streams of histories and as many long polls, one of each for every execution: what each
stream takes in memory, what all of them cost while nothing happens, and how long after a call a signal is there.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.figures import Figure, percentile
from bench.load import at_pace, by_callers
from bench.setting import Setting, config
from holdfast import Engine, Server, ServerConfig, WorkflowContext, workflow
from holdfast.cli.running import run_fast

FULL = {"calls": 10_000, "callers": 64, "paced_s": 5, "streams": 1_000, "idle_s": 5}
QUICK = {"calls": 2_000, "callers": 64, "paced_s": 1, "streams": 200, "idle_s": 1}

AIM = 3_000
SIGNALS_PER_S = 200
PATH = "/api/orgs/default/workflow-executions"


@workflow
async def letters(ctx: WorkflowContext) -> None:
    while True:
        await ctx.wait_for_signal("letter", int)


def run(setting: Setting) -> list[Figure]:
    found = run_fast(_measure(setting))
    return [
        Figure(
            name="signal-with-start over HTTP",
            figure=found["signals"],
            unit="calls/s",
            yardstick=found["checks"],
            yardstick_name="health checks/s",
            at_least=setting.aim(AIM),
        ),
        Figure(name=f"an answer at {AIM // 2:,} calls/s, p50", figure=found["paced_p50"], unit="ms"),
        Figure(
            name=f"an answer at {AIM // 2:,} calls/s, p99",
            figure=found["paced_p99"],
            unit="ms",
            at_most=setting.aim(50),
        ),
        Figure(name="memory of a stream", figure=found["stream_kb"], unit="kB"),
        Figure(name="idle streams, processor", figure=found["idle_percent"], unit="%"),
        Figure(name="signal to stream, p99", figure=found["stream_p99"], unit="ms", at_most=setting.aim(200)),
        Figure(name="signal to long poll, p99", figure=found["poll_p99"], unit="ms", at_most=setting.aim(200)),
    ]


async def _measure(setting: Setting) -> dict[str, float]:
    async with Engine(setting.url(), workflows=[letters], config=config()):
        pass  # now the kind is known
    anywhere = ServerConfig(port=0, grpc_port=None, access_log=False)
    async with Server(setting.url(), config=config(), server=anywhere) as server:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        port = int(server.url.rpartition(":")[2])
        process = context.Process(target=_call, args=(theirs, port, dict(setting.parameters)), daemon=True)
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
            ours.send("signal")
            found |= await asyncio.to_thread(ours.recv)
        finally:
            ours.close()
            await asyncio.to_thread(process.join, 10)
    setting.tell(f"{found['signals']:,.0f} signal-with-start calls/s, {found['checks']:,.0f} health checks/s")
    setting.tell(f"at {AIM // 2:,}/s p50 {found['paced_p50']:.1f} ms, p99 {found['paced_p99']:.1f} ms")
    setting.tell(f"{found['stream_kb']:.0f} kB a stream, {found['idle_percent']:.1f} % of a processor while idle")
    setting.tell(f"signal to stream p99 {found['stream_p99']:.1f} ms, to long poll p99 {found['poll_p99']:.1f} ms")
    return found


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _call(test: Connection, port: int, parameters: dict[str, Any]) -> None:
    with suppress(EOFError):
        run_fast(_Caller(test, port, parameters).run())


class _Caller:
    """The other process."""

    def __init__(self, test: Connection, port: int, parameters: dict[str, Any]) -> None:
        self._test = test
        self._port = port
        self._parameters = parameters
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def run(self) -> None:
        calls, callers = self._parameters["calls"], self._parameters["callers"]
        await by_callers(callers, calls // 10, self._send)
        signals = await by_callers(callers, calls, self._send)
        checks = await by_callers(callers, calls, self._look)
        paced = await at_pace(AIM / 2, self._parameters["paced_s"] * AIM // 2, self._send)
        self._test.send(
            {
                "signals": calls / signals.seconds,
                "checks": calls / checks.seconds,
                "paced_p50": percentile(paced, 50) * 1000,
                "paced_p99": percentile(paced, 99) * 1000,
            }
        )
        await asyncio.to_thread(self._test.recv)
        boxes = [await self._box(number) for number in range(self._parameters["streams"])]
        for box in boxes:
            await box.open(self._port)
        self._test.send("opened")
        await asyncio.to_thread(self._test.recv)
        self._test.send(await self._deliveries(boxes))
        await asyncio.to_thread(self._test.recv)

    async def _ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(_request(method, path, body))
        data = await _answer(reader)
        self._idle.append((reader, writer))
        return data

    async def _send(self, number: int) -> bytes:
        body = {
            "workflow_id": f"box-{number % 1_000}",
            "workflow_kind": "letters",
            "signal_name": "letter",
            "signal_value": number,
        }
        return await self._ask("POST", f"{PATH}/signal-with-start", json.dumps(body).encode())

    async def _look(self, _: int) -> None:
        await self._ask("GET", "/healthz")

    async def _box(self, number: int) -> _Box:
        found = json.loads(await self._send(number))
        return _Box(number, found["workflow_execution_id"], found["signal_event_sequence"])

    async def _deliveries(self, boxes: list[_Box]) -> dict[str, float]:
        async def one(number: int, box: _Box) -> tuple[float, float]:
            await asyncio.sleep(number / SIGNALS_PER_S)
            began = time.perf_counter()
            sent = asyncio.ensure_future(self._send(box.number))
            stream, poll = await asyncio.gather(box.streamed(), box.polled())
            await sent
            return stream - began, poll - began

        found = await asyncio.gather(*(one(number, box) for number, box in enumerate(boxes)))
        return {
            "stream_p99": percentile([stream for stream, _ in found], 99) * 1000,
            "poll_p99": percentile([poll for _, poll in found], 99) * 1000,
        }


class _Box:
    """An execution that one stream and one long poll watch."""

    def __init__(self, number: int, execution_id: str, last: int) -> None:
        self.number = number
        self._path = f"{PATH}/{execution_id}"
        self._last = last

    async def open(self, port: int) -> None:
        self._stream, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_request("GET", f"{self._path}/events", also=f"last-event-id: {self._last}\r\n"))
        await self._stream.readuntil(b": holdfast\n\n")
        self._poll, polling = await asyncio.open_connection("127.0.0.1", port)
        polling.write(_request("GET", f"{self._path}/history?after={self._last}&wait=30"))
        self._kept = (writer, polling)

    async def streamed(self) -> float:
        await self._stream.readuntil(b"event: SIGNAL_RECEIVED")
        return time.perf_counter()

    async def polled(self) -> float:
        assert b"SIGNAL_RECEIVED" in await _answer(self._poll)
        return time.perf_counter()


def _request(method: str, path: str, body: bytes = b"", *, also: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n{also}"
    return head.encode() + b"content-type: application/json\r\n\r\n" + body


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert b" 200 " in head, head
    return await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r")[0]))
