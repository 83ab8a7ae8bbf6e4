"""Faults count when they have hit somebody, and what is drawn for one purpose does not hang on another."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.conftest import until
from verification.chaos.cluster import Cluster
from verification.chaos.nemesis import Nemesis
from verification.chaos.proxy import Cut, Proxy


def nemesis(folder: Path, seed: int = 1) -> Nemesis:
    """With nobody to strike, and a server that does not restart."""

    def nothing(*_: object) -> None: ...

    server = SimpleNamespace(pid=1, restart=nothing, kill=nothing, start=nothing)
    made: Any = SimpleNamespace(
        folder=folder,
        proxy=Proxy(0),
        server=server,
        url="postgresql://127.0.0.1:1/nowhere",
        workers=[],
        callers=[],
        processes={},
    )
    return Nemesis(cast("Cluster", made), seed)


async def test_a_fault_that_hits_nobody_does_not_count(tmp_path: Path):
    """Nor does it end the trouble: whoever asks is told."""
    trouble = nemesis(tmp_path, 30)  # the one with which it takes no time

    for kind in trouble.kinds[:9]:
        await trouble._do(kind)

    assert {0} == set(trouble.fired().values())
    assert 9 == sum(trouble.missed.values())


async def test_what_happens_at_commits_does_not_change_the_rounds(tmp_path: Path):
    """The same seed gives the same rounds, however many COMMITs there are between them."""
    busy, idle = nemesis(tmp_path), nemesis(tmp_path)
    busy.calm = False

    drawn = []
    for trouble in (busy, idle):
        for _ in range(50 if trouble is busy else 0):
            trouble._at_commit("worker1")
        drawn.append([trouble.chance(kind).random() for kind in ("rounds", "pauses", *trouble.kinds)])

    assert drawn[0] == drawn[1]
    assert drawn[0] != [nemesis(tmp_path, 2).chance(kind).random() for kind in ("rounds", "pauses", *busy.kinds)]


COMMIT = b"Q" + struct.pack("!I", 4 + 7) + b"COMMIT\0"
HELLO = struct.pack("!II", 8, 196_608)


@pytest.mark.parametrize("answered", [True, False])
async def test_a_cut_after_the_answer_counts_when_there_is_one(answered: bool):
    """A server that is gone before it could answer has not been cut off after its COMMIT."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(HELLO + COMMIT))
        if answered:
            writer.write(b"done")
        writer.close()

    server = await asyncio.start_server(cast("Callable[..., Awaitable[None]]", serve), "127.0.0.1", 0)
    async with server, Proxy(server.sockets[0].getsockname()[1], lambda _: Cut.AFTER) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(HELLO + COMMIT)

        assert b"" == await _all(reader)
        assert answered == await until(lambda: proxy.commits) * proxy.counts[Cut.AFTER]
        writer.close()


async def _all(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""
