"""Processes that the tests start, stop, suspend and kill, and the files in which those tell what they did."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from msgspec import Raw

from holdfast.assembly import SystemClock, open_store
from tests.conftest import NOTHING, PATIENCE_S, QUICK
from tests.faults import app
from verification.invariants import Record, check, read

ROOT = Path(__file__).parents[2]


class Process:
    """One run of `tests.faults.app`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def line(self) -> str:
        """The next line it prints; "" when it has ended."""
        assert self._process.stdout is not None
        return (await asyncio.wait_for(self._process.stdout.readline(), 2 * PATIENCE_S)).decode().strip()

    def tell(self, word: str = "go") -> None:
        """Let it go on."""
        assert self._process.stdin is not None
        self._process.stdin.write(word.encode() + b"\n")

    async def copy(self, **options: Any) -> int:
        """Of one that makes copies of itself: the number of the next one's process."""
        self.tell(json.dumps(options))
        return int(await self.line())

    async def copy_ended(self) -> list[Any]:
        """How the copy ended, and what it had said."""
        ended: list[Any] = json.loads(await self.line())
        return ended

    def suspend(self) -> None:
        """Stop it where it is; returns when it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    async def kill(self) -> None:
        """End it as a power cut would, and wait until it is gone."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.communicate()

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    async def stop(self) -> int:
        """Ask it to end, and wait until it has."""
        self.terminate()
        return await self.ended()

    async def ended(self, within_s: float = 2 * PATIENCE_S) -> int:
        await asyncio.wait_for(self._process.communicate(), within_s)
        assert self._process.returncode is not None
        return self._process.returncode

    async def ended_at_last(self) -> int:
        """Wait for its end, however long it takes."""
        return await self._process.wait()

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None


class Spawn(Protocol):
    async def __call__(
        self, role: str, *, env: dict[str, str] | None = None, module: str = "tests.faults.app", **options: Any
    ) -> Process:
        """A process of the application, once it has said that it is ready."""
        ...


@pytest.fixture
async def spawn(tmp_path: Path, database_url: str) -> AsyncIterator[Spawn]:
    """Starts processes on the test's database. Those still there at the end are killed; their logs are shown."""
    processes: list[Process] = []
    log = tmp_path / "log"

    async def start(
        role: str, *, env: dict[str, str] | None = None, module: str = "tests.faults.app", **options: Any
    ) -> Process:
        arguments = json.dumps({"db": database_url, "folder": str(tmp_path), **options})
        with log.open("ab") as errors:
            started = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                role,
                arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                env={**os.environ, **(env or {})},
            )
        process = Process(started)
        processes.append(process)
        assert await process.line() == "ready", log.read_text()
        return process

    yield start
    for process in processes:
        await process.kill()
    if log.exists():
        print(log.read_text()[-20_000:])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the bodies write and look for their gates, in this process too."""
    monkeypatch.setattr(app, "FOLDER", tmp_path)
    return tmp_path


def lines(folder: Path, name: str) -> list[list[Any]]:
    """What was written to a file of the folder. A line cut off by a kill does not count."""
    try:
        text = (folder / name).read_bytes()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith(b"\n")]


def value_of(payload: Raw) -> Any:
    return json.loads(bytes(payload))


async def read_all(database_url: str) -> list[Record]:
    """Everything in a database, by a reader that runs nothing and fires nothing."""
    store = open_store(database_url, QUICK, SystemClock())
    await store.open(NOTHING)
    try:
        return await read(store)
    finally:
        await store.close()


async def sound_records(database_url: str) -> list[Record]:
    """Everything in a database, after a check of all invariants."""
    records = await read_all(database_url)
    assert [] == [str(violation) for violation in check(records)]
    return records
