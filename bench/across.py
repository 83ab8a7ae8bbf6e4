"""From a signal to the reaction of the workflow's code, where another process sends the signal.

The sender is a process with a client and no worker; the workflows live here. One signal at a time, each when the one
before has come to rest. With hints the receiver is told by NOTIFY; without (`notify=off`, as behind a transaction
pooler) it looks by itself once a second, and a signal comes at any moment of that.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import time
from multiprocessing.connection import Connection

from bench.figures import Figure, percentile
from bench.listening import EAR, listener
from bench.setting import Setting, config
from holdfast import Engine
from holdfast.store.postgres.notifications import BROKEN_POLL_S

FULL = {"workflows": 100, "samples": 1_000, "rest_s": 0.005, "samples_without_hints": 30}
QUICK = FULL | {"samples": 150, "samples_without_hints": 4}

_READY_S = 60.0


def run(setting: Setting) -> list[Figure]:
    told = asyncio.run(_measure(setting, setting.url("hints"), setting["samples"], setting["rest_s"]))
    polls = f"{setting.url('polls')}?notify=off"
    polled = asyncio.run(_measure(setting, polls, setting["samples_without_hints"], BROKEN_POLL_S / 2))
    commit_ms = setting.commit_seconds(100) * 10
    return [
        Figure(
            name="signal to reaction across processes, p50",
            figure=percentile(told, 50),
            unit="ms",
            yardstick=commit_ms,
            yardstick_name="bare commit, ms",
            at_most=15.0,
        ),
        Figure(name="signal to reaction across processes, p99", figure=percentile(told, 99), unit="ms"),
        Figure(name="the same without hints, p50", figure=percentile(polled, 50), unit="ms"),
        Figure(name="the same without hints, worst", figure=max(polled), unit="ms"),
    ]


async def _measure(setting: Setting, url: str, samples: int, rest_s: float) -> list[float]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    sender = spawn.Process(target=_send, args=(url, theirs))
    async with Engine(url, workflows=[listener], config=config()) as engine:
        handles = await asyncio.gather(*(engine.client.start_workflow(listener) for _ in range(setting["workflows"])))
        ids = [handle.id for handle in handles]
        sender.start()
        try:
            await asyncio.to_thread(_receive, ours)
            found = await _reactions(ours, ids, samples, rest_s)
        finally:
            ours.send(None)
            await asyncio.to_thread(sender.join)
    setting.tell(f"p50 {percentile(found, 50):.2f} ms, p99 {percentile(found, 99):.2f} ms")
    return found


async def _reactions(pipe: Connection, ids: list[str], samples: int, rest_s: float) -> list[float]:
    """Milliseconds from the sender's call to the workflow's code: both read the same monotonic clock of the machine."""
    chance = random.Random(1)
    found = []
    for number in range(samples):
        heard = EAR.expect(number)
        pipe.send((chance.choice(ids), number))
        async with asyncio.timeout(_READY_S):
            reacted_at = await heard
        found.append((reacted_at - await asyncio.to_thread(_receive, pipe)) * 1e3)
        await asyncio.sleep(chance.uniform(0.0, 2 * rest_s))
    return found


def _receive(pipe: Connection) -> float:
    if not pipe.poll(_READY_S):
        raise TimeoutError("the sender does not answer")
    moment: float = pipe.recv()
    return moment


def _send(url: str, pipe: Connection) -> None:
    asyncio.run(_send_until_told(url, pipe))


async def _send_until_told(url: str, pipe: Connection) -> None:
    """Signals as they are asked for; the answer is when the call was made."""
    async with Engine(url, config=config()) as engine:
        pipe.send(time.perf_counter())
        while (asked := await asyncio.to_thread(pipe.recv)) is not None:
            execution_id, number = asked
            began = time.perf_counter()
            await engine.client.workflow(execution_id).signal("ping", number)
            pipe.send(began)
