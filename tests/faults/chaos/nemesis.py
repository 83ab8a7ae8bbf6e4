"""Processes on one PostgreSQL server behind a proxy, and what is done to them: what, when and to whom is the seed's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import asyncpg

from holdfast.testing.postgres import LocalPostgres
from tests.faults.chaos.app import LEASE_S
from tests.faults.chaos.proxy import Cut, Proxy

ROOT = Path(__file__).parents[3]
WORKERS = 4
CALLERS = 2
SPARES = 2
UP_S = 30.0
LEAVE_S = 45.0

# An immediate stop, or a kill, must lose nothing that was committed; that the data is in memory makes it quick.
SERVER = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "autovacuum": "on"}


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
            "tests.faults.chaos.process",
            stdin=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._spares.append(process)

    async def _watch(self, name: str, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        if process.pid not in self._meant:
            self.complaints.append(f"{name} ended by itself, with {code}")

    def send(self, name: str, what: signal.Signals) -> None:
        process = self.processes[name]
        if what in {signal.SIGKILL, signal.SIGTERM}:
            self._meant.add(process.pid)
        with suppress(ProcessLookupError):
            process.send_signal(what)

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


class Nemesis:
    """Trouble. COMMITs are hit by chance, all other faults in rounds, so that none is left out."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._rng = Random(f"nemesis {seed}")
        self.counts: Counter[str] = Counter()
        self.calm = True
        self._jobs: list[asyncio.Task[None]] = []
        self._busy: set[str] = set()  # names of processes that are stopped or dead just now
        self._odds: dict[Cut | str, float] = {
            Cut.BEFORE: 0.008,
            Cut.DURING: 0.008,
            Cut.AFTER: 0.012,
            Cut.HELD_BEFORE: 0.0006,
            Cut.HELD_AFTER: 0.0006,
            "killed at COMMIT": 0.002,
        }
        self._faults: dict[str, Callable[[], Awaitable[None]]] = {
            "worker killed": self._kill_worker,
            "caller killed": self._kill_caller,
            "worker stopped": self._stop_worker,
            "worker sent away": self._send_away,
            "sessions ended": self._end_sessions,
            "server restarted": self._restart_server,
            "server killed": self._kill_server,
            "connections cut": self._cut_connections,
            "network blocked": self._block,
        }
        cluster.proxy.choose = self._at_commit

    @property
    def kinds(self) -> list[str]:
        return [*self._faults, *map(str, self._odds)]

    def fired(self) -> dict[str, int]:
        counts = self.counts + self._cluster.proxy.counts
        return {kind: counts[kind] for kind in self.kinds}

    async def rage(self, seconds: float) -> None:
        """For so long, and at least two rounds of everything."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self.calm = False
        rounds = 0
        while loop.time() < end or rounds < 2:
            kinds = list(self._faults)
            self._rng.shuffle(kinds)
            for kind in kinds:
                await asyncio.sleep(self._rng.uniform(0.3, 1.3))
                self._note(kind)
                await self._faults[kind]()
                self.counts[kind] += 1
            rounds += 1
        await self._force_rare()
        self.calm = True
        self._cluster.proxy.heal()
        await asyncio.gather(*self._jobs)

    async def _force_rare(self) -> None:
        """What chance has left out happens to the next COMMITs."""
        missing = [kind for kind in self._odds if not self.fired()[str(kind)]]
        for kind in missing:
            self._odds = dict.fromkeys(self._odds, 0.0) | {kind: 1.0}
            with suppress(TimeoutError):
                async with asyncio.timeout(UP_S):
                    while not self.fired()[str(kind)]:
                        await asyncio.sleep(0.005)
        self._odds = dict.fromkeys(self._odds, 0.0)

    def _at_commit(self, name: str) -> Cut | None:
        if self.calm:
            return None
        chance = self._rng.random()
        for kind, odds in self._odds.items():
            chance -= odds
            if chance >= 0:
                continue
            self._note(f"{kind}: {name}")
            if isinstance(kind, Cut):
                return kind
            if name in self._cluster.processes and name not in self._busy:
                self.counts[kind] += 1
                self._kill(name)
            break
        return None

    def _note(self, text: str) -> None:
        now = datetime.now(UTC).isoformat(" ", "milliseconds")
        with (self._cluster.folder / "nemesis.log").open("a") as log:
            log.write(f"{now} {text}\n")

    def _later(self, job: Awaitable[None]) -> None:
        self._jobs.append(asyncio.ensure_future(job))

    # --- what can happen ---

    def _one_of(self, names: list[str]) -> str | None:
        free = [name for name in names if name not in self._busy]
        return self._rng.choice(free) if free else None

    def _kill(self, name: str) -> None:
        self._note(f"kill {name}")
        self._busy.add(name)
        self._cluster.send(name, signal.SIGKILL)
        self._later(self._replace(name))

    async def _replace(self, name: str) -> None:
        await self._cluster.processes[name].wait()
        await asyncio.sleep(self._rng.uniform(0.0, 0.5))
        await self._cluster.start(name)
        await self._cluster.until_up([name])
        await self._cluster.spare()
        self._note(f"{name} is up again")
        self._busy.discard(name)

    async def _kill_worker(self) -> None:
        if name := self._one_of(self._cluster.workers):
            self._kill(name)

    async def _send_away(self) -> None:
        """As a deploy does, in the middle of all this."""
        if name := self._one_of(self._cluster.workers):
            self._busy.add(name)
            self._later(self._renew(name))

    async def _renew(self, name: str) -> None:
        self._note(f"send {name} away")
        process = self._cluster.processes[name]
        self._cluster.sent_away.add(f"{name}-{process.pid}")
        if bad := await self._cluster.stop([name], LEAVE_S):
            self._cluster.complaints.append(f"sent away, and did not leave in peace: {bad}")
            self._cluster.send(name, signal.SIGKILL)
        await self._replace(name)

    async def _kill_caller(self) -> None:
        if name := self._one_of(self._cluster.callers):
            self._kill(name)

    async def _stop_worker(self) -> None:
        if name := self._one_of(self._cluster.workers):
            self._busy.add(name)
            self._later(self._suspend(name, self._rng.uniform(1.2, 2.5) * LEASE_S))

    async def _suspend(self, name: str, seconds: float) -> None:
        self._note(f"stop {name} for {seconds:.1f} s")
        self._cluster.send(name, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self._cluster.send(name, signal.SIGCONT)
        self._busy.discard(name)

    async def _end_sessions(self) -> None:
        count = self._rng.choice((1, 1, 3, 100))
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            connection = await asyncpg.connect(self._cluster.url, timeout=5)
            try:
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE pid <> "
                    "pg_backend_pid() AND backend_type = 'client backend' ORDER BY random() LIMIT $1) AS found",
                    count,
                )
            finally:
                await connection.close()

    async def _restart_server(self) -> None:
        await asyncio.to_thread(self._cluster.server.restart, "immediate")

    async def _kill_server(self) -> None:
        await asyncio.to_thread(self._cluster.server.kill)
        await asyncio.sleep(self._rng.uniform(0.0, 0.5))
        await asyncio.to_thread(self._cluster.server.start)

    async def _cut_connections(self) -> None:
        """All of one process, or all there are."""
        self._cluster.proxy.cut_all(self._rng.choice([*self._cluster.processes, None]))

    async def _block(self) -> None:
        """Sometimes for longer than a lease."""
        self._cluster.proxy.block()
        await asyncio.sleep(self._rng.choice((0.1, 0.5, 1.2 * LEASE_S)))
        self._cluster.proxy.heal()
