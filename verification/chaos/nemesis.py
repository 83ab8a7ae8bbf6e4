"""What is done to the processes of a chaos run, and to their server: what, when and to whom is the seed's.

A fault counts when it has hit somebody, not when it was meant to. Each purpose draws from numbers of its own, so that
what happens at one COMMIT does not change what happens in the next round.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

import asyncpg

from verification.chaos.app import LEASE_S
from verification.chaos.cluster import LEAVE_S, UP_S, Cluster
from verification.chaos.proxy import Cut

# A connection that is held is given up, with its locks, when its server has waited for five seconds, or when its client
# has for two and a little: see the settings of `app.config` and of the PostgreSQL store.
HELD_S = 7.0
AGAIN = 5
AT_COMMIT = "killed at COMMIT"

_SESSIONS = (
    "SELECT pid, application_name FROM pg_stat_activity WHERE backend_type = 'client backend' "
    "AND (application_name LIKE 'worker%' OR application_name LIKE 'caller%') ORDER BY application_name, pid"
)


@dataclass(frozen=True)
class Hit:
    """A fault that has happened, from when to when by the machine's clock, in microseconds, and to whom; without names
    to all, be it that nobody could get through, be it that rows stayed locked."""

    kind: str
    at: int
    until: int
    names: frozenset[str] | None


def microseconds() -> int:
    return time.monotonic_ns() // 1000


class Nemesis:
    """Trouble. COMMITs are hit by chance, all other faults in rounds, so that none is left out."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._seed = seed
        self._chances: dict[str, Random] = {}
        self.hits: list[Hit] = []
        self.missed: Counter[str] = Counter()
        self.calm = True
        self._jobs: list[asyncio.Task[None]] = []
        self._busy: set[str] = set()  # names of processes that are stopped or dead just now
        self._odds: dict[Cut | str, float] = {
            Cut.BEFORE: 0.008,
            Cut.DURING: 0.008,
            Cut.AFTER: 0.012,
            Cut.HELD_BEFORE: 0.0006,
            Cut.HELD_AFTER: 0.0006,
            AT_COMMIT: 0.002,
        }
        self._faults: dict[str, Callable[[str, Random], Awaitable[bool]]] = {
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
        cluster.proxy.struck = self._struck

    @property
    def kinds(self) -> list[str]:
        return [*self._faults, *map(str, self._odds)]

    def fired(self) -> dict[str, int]:
        counts = Counter(hit.kind for hit in self.hits)
        return {kind: counts[kind] for kind in self.kinds}

    def chance(self, purpose: str) -> Random:
        """The numbers of one purpose: the same for the same seed, whatever was drawn for others."""
        return self._chances.setdefault(purpose, Random(f"{self._seed} {purpose}"))

    async def rage(self, seconds: float) -> None:
        """For so long, and at least two rounds of everything; then once more what has not hit anybody."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self.calm = False
        rounds = 0
        while loop.time() < end or rounds < 2:
            kinds = list(self._faults)
            self.chance("rounds").shuffle(kinds)
            for kind in kinds:
                await asyncio.sleep(self.chance("pauses").uniform(0.3, 1.3))
                await self._do(kind)
            rounds += 1
        await self._force_rare()
        await self._repeat_missed()
        self.calm = True
        self._cluster.proxy.heal()
        await self._all_done()

    async def _do(self, kind: str) -> None:
        self._note(kind)
        if not await self._faults[kind](kind, self.chance(kind)):
            self._note(f"{kind}: nobody was hit")
            self.missed[kind] += 1

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

    async def _repeat_missed(self) -> None:
        for _ in range(AGAIN):
            await self._all_done()
            for kind in self._faults:
                if not self.fired()[kind]:
                    await self._do(kind)

    async def _all_done(self) -> None:
        while self._jobs:
            await asyncio.gather(*(self._jobs.pop() for _ in range(len(self._jobs))))

    async def until_whole(self) -> float:
        """Until nobody holds a connection on which nothing passes; how long that took."""
        began = time.monotonic()
        while self._cluster.proxy.held and time.monotonic() < began + 2 * HELD_S:
            await asyncio.sleep(0.02)
        return time.monotonic() - began

    # --- at a COMMIT ---

    def _at_commit(self, name: str) -> Cut | None:
        if self.calm:
            return None
        chance = self.chance(f"COMMITs of {name}").random()
        for kind, odds in self._odds.items():
            chance -= odds
            if chance >= 0:
                continue
            self._note(f"{kind}: {name}")
            if isinstance(kind, Cut):
                return kind
            if name in self._cluster.processes and name not in self._busy:
                self._busy.add(name)
                self._later(self._kill_now(kind, name))
            break
        return None

    def _struck(self, cut: Cut, name: str) -> None:
        """One that is held may hold rows that others need."""
        held = cut in {Cut.HELD_BEFORE, Cut.HELD_AFTER}
        self._hit(str(cut), microseconds(), None if held else [name], after_s=HELD_S if held else 0.0)

    # --- what can happen: whether anybody was hit ---

    def _hit(self, kind: str, at: int, names: Iterable[str] | None, after_s: float = 0.0) -> bool:
        until = microseconds() + int(after_s * 1e6)
        self.hits.append(Hit(kind, at, until, None if names is None else frozenset(names)))
        return True

    def _note(self, text: str) -> None:
        now = datetime.now(UTC).isoformat(" ", "milliseconds")
        with (self._cluster.folder / "nemesis.log").open("a") as log:
            log.write(f"{now} {text}\n")

    def _later(self, job: Awaitable[None]) -> None:
        self._jobs.append(asyncio.ensure_future(job))

    def _one_of(self, names: list[str], rng: Random) -> str | None:
        """The first that is free, in an order that does not depend on who is."""
        order = rng.sample(sorted(names), len(names))
        return next((name for name in order if name not in self._busy), None)

    async def _kill_now(self, kind: str, name: str) -> None:
        await self._kill(kind, name)

    async def _kill(self, kind: str, name: str) -> bool:
        self._note(f"kill {name}")
        self._busy.add(name)
        at, process = microseconds(), self._cluster.processes[name]
        self._cluster.send(name, signal.SIGKILL)
        killed = await process.wait() == -signal.SIGKILL
        self._later(self._replace(name))
        return killed and self._hit(kind, at, [name])

    async def _replace(self, name: str) -> None:
        await self._cluster.processes[name].wait()
        await asyncio.sleep(self.chance("deaths").uniform(0.0, 0.5))
        await self._cluster.start(name)
        await self._cluster.until_up([name])
        await self._cluster.spare()
        self._note(f"{name} is up again")
        self._busy.discard(name)

    async def _kill_worker(self, kind: str, rng: Random) -> bool:
        name = self._one_of(self._cluster.workers, rng)
        return name is not None and await self._kill(kind, name)

    async def _kill_caller(self, kind: str, rng: Random) -> bool:
        name = self._one_of(self._cluster.callers, rng)
        return name is not None and await self._kill(kind, name)

    async def _send_away(self, kind: str, rng: Random) -> bool:
        """As a deploy does, in the middle of all this."""
        name = self._one_of(self._cluster.workers, rng)
        if name is None or self._cluster.processes[name].returncode is not None:
            return False
        self._busy.add(name)
        self._later(self._renew(kind, name))
        return True

    async def _renew(self, kind: str, name: str) -> None:
        self._note(f"send {name} away")
        at, process = microseconds(), self._cluster.processes[name]
        self._cluster.sent_away.add(f"{name}-{process.pid}")
        if bad := await self._cluster.stop([name], LEAVE_S):
            self._cluster.complaints.append(f"sent away, and did not leave in peace: {bad}")
            self._cluster.send(name, signal.SIGKILL)
        else:
            self._hit(kind, at, [name])
        await self._replace(name)

    async def _stop_worker(self, kind: str, rng: Random) -> bool:
        seconds = rng.uniform(1.2, 2.5) * LEASE_S
        name = self._one_of(self._cluster.workers, rng)
        if name is None or not self._cluster.send(name, signal.SIGSTOP):
            return False
        self._busy.add(name)
        self._later(self._suspend(kind, name, seconds))
        return True

    async def _suspend(self, kind: str, name: str, seconds: float) -> None:
        """Counts if it has stood still for longer than its lease. What it had locked stays so."""
        self._note(f"stop {name} for {seconds:.1f} s")
        at = microseconds()
        await asyncio.sleep(seconds)
        if self._cluster.stands_still(name) and microseconds() - at > LEASE_S * 1e6:
            self._hit(kind, at, None)
        self._cluster.send(name, signal.SIGCONT)
        self._busy.discard(name)

    async def _end_sessions(self, kind: str, rng: Random) -> bool:
        count, at = rng.choice((1, 1, 3, 100)), microseconds()
        ended: list[str] = []
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            connection = await asyncpg.connect(self._cluster.url, timeout=5)
            try:
                there = await connection.fetch(_SESSIONS)
                for pid, name in rng.sample(there, min(count, len(there))):
                    if await connection.fetchval("SELECT pg_terminate_backend($1)", pid):
                        ended.append(name)
            finally:
                await connection.close()
        return bool(ended) and self._hit(kind, at, ended)

    async def _restart_server(self, kind: str, _: Random) -> bool:
        at, before = microseconds(), self._cluster.server.pid
        await asyncio.to_thread(self._cluster.server.restart, "immediate")
        return self._cluster.server.pid != before and self._hit(kind, at, None)

    async def _kill_server(self, kind: str, rng: Random) -> bool:
        at, before = microseconds(), self._cluster.server.pid
        await asyncio.to_thread(self._cluster.server.kill)
        await asyncio.sleep(rng.uniform(0.0, 0.5))
        await asyncio.to_thread(self._cluster.server.start)
        return self._cluster.server.pid != before and self._hit(kind, at, None)

    async def _cut_connections(self, kind: str, rng: Random) -> bool:
        """All of one process, or all there are."""
        name = rng.choice([*sorted(self._cluster.processes), None])
        at, count = microseconds(), self._cluster.proxy.cut_all(name)
        return count > 0 and self._hit(kind, at, None if name is None else [name])

    async def _block(self, kind: str, rng: Random) -> bool:
        """Sometimes for longer than a lease."""
        at = microseconds()
        self._cluster.proxy.block()
        await asyncio.sleep(rng.choice((0.1, 0.5, 1.2 * LEASE_S)))
        return self._cluster.proxy.heal() > 0 and self._hit(kind, at, None)
