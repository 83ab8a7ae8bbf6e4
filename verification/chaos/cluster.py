"""The processes of a chaos run, on one PostgreSQL server behind a proxy."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from verification.chaos.proxy import Proxy
from verification.postgres import LocalPostgres

ROOT = Path(__file__).parents[2]
WORKERS = 4
CALLERS = 2
SPARES = 2
UP_S = 30.0
LEAVE_S = 30.0

# An immediate stop, or a kill, must lose nothing that was committed; that the data is in memory makes it quick.
SERVER = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "autovacuum": "on"}
# Says in which order things really happened: the time of an event is taken before its rows are locked.
SERVER["track_commit_timestamp"] = "on"


class Cluster:
    """Four workers and two callers. Each has a name and, after every kill, another life."""

    def __init__(self, folder: Path, server: LocalPostgres, proxy: Proxy, url: str, seed: int) -> None:
        self.folder = folder
        self.server = server
        self.proxy = proxy
        self.url = url
        self._seed = seed
        self._lives: Counter[str] = Counter()
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self._meant: set[int] = set()
        self._spares: list[asyncio.subprocess.Process] = []
        self._watching: list[asyncio.Task[None]] = []
        self.sent_away: set[str] = set()  # as they are called in the books
        self.complaints: list[str] = []

    @property
    def workers(self) -> list[str]:
        return [name for name in self.processes if name.startswith("worker")]

    @property
    def callers(self) -> list[str]:
        return [name for name in self.processes if name.startswith("caller")]

    async def start_all(self) -> None:
        names = [f"worker{n}" for n in range(1, WORKERS + 1)] + [f"caller{n}" for n in range(1, CALLERS + 1)]
        for _ in range(len(names) + SPARES):
            await self.spare()
        for name in names:
            await self.start(name)
        await self.until_up(names)

    async def until_up(self, names: Iterable[str]) -> None:
        """Until they take part; bounded, because one that never does is for the account."""
        with suppress(TimeoutError):
            async with asyncio.timeout(UP_S):
                while not all(self._is_up(name) for name in names):
                    await asyncio.sleep(0.02)

    def _is_up(self, name: str) -> bool:
        process = self.processes[name]
        return (self.folder / f"{name}-{process.pid}.up").exists() or process.returncode is not None

    async def start(self, name: str) -> None:
        self._lives[name] += 1
        options = {
            "url": self.proxy.url_of(self.url, name),
            "folder": str(self.folder),
            "name": name,
            "life": self._lives[name],
            "seed": self._seed,
        }
        if not self._spares:
            await self.spare()
        process = self._spares.pop(0)
        assert process.stdin is not None, "it is a pipe"
        process.stdin.write(json.dumps(options).encode() + b"\n")
        self.processes[name] = process
        self._watching.append(asyncio.ensure_future(self._watch(name, process)))

    async def spare(self) -> None:
        """A process that waits to be told who it is."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "verification.chaos.process",
            stdin=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._spares.append(process)

    async def _watch(self, name: str, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        if process.pid not in self._meant:
            self.complaints.append(f"{name} ended by itself, with {code}")

    def send(self, name: str, what: signal.Signals) -> bool:
        """Whether there was anybody to get it."""
        process = self.processes[name]
        if process.returncode is not None:
            return False
        if what in {signal.SIGKILL, signal.SIGTERM}:
            self._meant.add(process.pid)
        try:
            process.send_signal(what)
        except ProcessLookupError:
            return False
        return True

    def stands_still(self, name: str) -> bool:
        try:
            stat = Path(f"/proc/{self.processes[name].pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    async def stop(self, names: list[str], within_s: float) -> list[str]:
        """Ask them to end; those that have not, or not well, by then."""
        await self.until_up(names)
        for name in names:
            self.send(name, signal.SIGCONT)
            self.send(name, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await asyncio.gather(*(self.processes[name].wait() for name in names))
        return [f"{name}: {code}" for name in names if (code := self.processes[name].returncode) != 0]

    async def kill_all(self) -> None:
        for name in self.processes:
            self.send(name, signal.SIGKILL)
        for process in self._spares:
            process.kill()
        for process in (*self.processes.values(), *self._spares):
            await process.wait()
        await asyncio.gather(*self._watching)
