"""Real processes on a real server, and everything that can happen to them at once; then the account.

HOLDFAST_SEED=n gives the faults of a run again: the same ones, in the same order, to the same processes; when exactly
they strike is the machine's. HOLDFAST_CHAOS_S=seconds makes it longer, HOLDFAST_CHAOS_DIR=folder says where its books
and logs are kept, HOLDFAST_CHAOS_MUTANTS=1 runs it with planted bugs, too, to see that it notices.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import pytest

from holdfast import Engine, WorkflowStatus
from holdfast.frontends.python.definitions import Registry
from holdfast.model.events import encode_body
from holdfast.model.executions import Execution
from holdfast.testing.histories import export_history
from verification.chaos import app, checker
from verification.chaos.app import Book, config
from verification.chaos.books import Books, read_books
from verification.chaos.caller import Caller
from verification.chaos.cluster import LEAVE_S, SERVER, Cluster
from verification.chaos.metronome import Metronome, stalled_s
from verification.chaos.nemesis import HELD_S, Nemesis, microseconds
from verification.chaos.proxy import Proxy
from verification.chaos.run import AFTER_S, Run, missing
from verification.chaos.watcher import Watcher, read_again
from verification.invariants import Record, Violation, check
from verification.mutants import VARIABLE
from verification.postgres import LocalPostgres
from verification.simulation.programs import REGISTRY

TROUBLE_S = float(os.environ.get("HOLDFAST_CHAOS_S", "30"))
# With the usual thirty seconds of trouble, this is less than three minutes.
LIMIT_S = TROUBLE_S + 140
SEED = int(os.environ.get("HOLDFAST_SEED") or random.SystemRandom().randrange(1_000_000))
# Callers go on until there is something that was begun when no fault could have anything to do with it any more.
CALM_S = AFTER_S + 8.0
REST_S = 40.0
ROUNDS = 60
SHOWN = 5
LOSES_COMMITS = "the server forgets what it has answered"
MUTANTS = (
    "lost_commit_counts_as_failed",
    "lost_commit_counts_as_committed",
    "heads_not_locked",
    "no_fencing",
    LOSES_COMMITS,
)
MUTANT_S = 20.0
MUTANT_RUNS = 3
# Nobody is left who could have made these.
EMPTY = ("ready", "tasks", "timers", "subscriptions", "workers")


def test_workers_know_every_task_and_workflow_of_the_simulation():
    """A program may ask for any of them; what no worker takes is waited for in vain."""
    known = Registry(app.WORKFLOWS, app.TASKS)
    assert set(REGISTRY.tasks) < set(known.tasks)
    assert set(REGISTRY.workflows) < set(known.workflows)


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S + 10)
async def test_nothing_is_lost_or_done_twice_whatever_happens(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    """Four workers and two callers; kills, stops, lost connections, lost answers, a server that crashes."""
    folder = Path(os.environ.get("HOLDFAST_CHAOS_DIR") or tmp_path)
    async with asyncio.timeout(LIMIT_S):
        outcome = await chaos(folder, SEED, TROUBLE_S)

    # Told at the end of all tests, also when all is well.
    record_property("chaos", outcome.lines)
    found = outcome.found
    assert not found, f"{len(found)} violations; repeat with HOLDFAST_SEED={SEED}; books and logs are in {folder}"


@pytest.mark.slow
@pytest.mark.skipif("HOLDFAST_CHAOS_MUTANTS" not in os.environ, reason="takes minutes: HOLDFAST_CHAOS_MUTANTS=1")
@pytest.mark.timeout(MUTANT_RUNS * (MUTANT_S + 150))
@pytest.mark.parametrize("mutant", MUTANTS)
async def test_a_planted_bug_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str):
    """What only real processes and a real server can bring to light. A few runs at most: it is a matter of chance."""
    settings = {}
    if mutant == LOSES_COMMITS:
        settings = {"synchronous_commit": "off", "wal_writer_delay": "10s"}
    else:
        monkeypatch.setenv(VARIABLE, mutant)
    for number in range(MUTANT_RUNS):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcome = await chaos(folder, SEED + number, MUTANT_S, settings)
        if any(violation.invariant not in {"LOG", "FAULTS", "DATA", "I13"} for violation in outcome.found):
            return
    raise AssertionError(f"{mutant}: nothing was noticed, from HOLDFAST_SEED={SEED}")


@dataclass
class Outcome:
    """What was wrong, and what is told of the run."""

    found: list[Violation] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def blame(self, invariant: str, *texts: str) -> None:
        self.found += [Violation(invariant, "", 0, text) for text in texts]


async def chaos(folder: Path, seed: int, seconds: float, settings: dict[str, str] | None = None) -> Outcome:
    """One run."""
    with LocalPostgres(settings={**SERVER, **(settings or {})}) as server:
        url = server.create_database("chaos")
        async with Proxy(server.port) as proxy:
            cluster = Cluster(folder, server, proxy, url, seed)
            try:
                outcome = await _run(cluster, seed, seconds)
            finally:
                await cluster.kill_all()
        outcome.blame("LOG", *_deadlocks(server))
    for line in outcome.lines:
        print(line)
    return outcome


async def _run(cluster: Cluster, seed: int, seconds: float) -> Outcome:
    began = time.monotonic()
    outcome = Outcome()
    await cluster.start_all()
    nemesis = Nemesis(cluster, seed)
    metronome = Metronome(cluster.url)
    async with Watcher(cluster.url, metronome.stalls) as watcher:
        await nemesis.rage(seconds)
        held_s = await nemesis.until_whole()
        if held_s > HELD_S + 1:
            outcome.blame("I16", f"a connection on which nothing passes was held for {held_s:.1f} s")
        whole_at, whole_since = microseconds(), await _now(cluster.url)
        async with metronome, Engine(cluster.url, config=config()) as engine:
            watcher.whole_since = whole_since
            await asyncio.sleep(CALM_S)
            outcome.blame("I16", *await _leave(cluster, cluster.callers))
            rest = _Rest(engine, cluster, outcome)
            await rest.give()
            outcome.blame("I16", *await _leave(cluster, cluster.workers))
            records = await read_again(engine.storage, {})  # all of it: what was read before must still be there
            committed = await _committed(cluster.url)
            dead = await engine.storage.dead_letters("default", limit=1_000_000)
            outcome.blame("I19", *await _left_behind(cluster.url))
    run = Run(
        records=records,
        before=[*watcher.read, *rest.read],
        committed=committed,
        dead=dead,
        books=read_books(cluster.folder),
        hits=nemesis.hits,
        sent_away=cluster.sent_away,
        whole_at=whole_at,
        whole_since=whole_since,
        stalls=metronome.stalls,
        data=watcher.data,
    )
    run.data["I16 open runs at rest"] += rest.open_runs
    outcome.found += watcher.found + checker.judge(run) + missing(run.data)
    faults = nemesis.fired()
    outcome.blame("FAULTS", *(f"never happened: {kind}" for kind, count in faults.items() if not count))
    outcome.blame("LOG", *cluster.complaints, *_errors(cluster.folder))
    outcome.found = sorted(set(outcome.found))
    outcome.lines = [
        *_summary(seed, faults, run, time.monotonic() - began),
        *_timing(watcher, metronome, run.books),
        "  data: " + ", ".join(f"{name} {count}" for name, count in sorted(run.data.items())),
    ]
    _show(cluster.folder, outcome.found, records)
    return outcome


async def _now(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))
    finally:
        await connection.close()


async def _committed(url: str) -> dict[str, tuple[int, int]]:
    connection = await asyncpg.connect(url)
    try:
        at = "(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000)::bigint"
        rows = await connection.fetch(f"SELECT execution_id, min({at}), max({at}) FROM holdfast_events GROUP BY 1")
        return {key: (first, last) for key, first, last in rows}
    finally:
        await connection.close()


async def _leave(cluster: Cluster, names: Sequence[str]) -> list[str]:
    return [f"does not end: {text}" for text in await cluster.stop(list(names), LEAVE_S)]


# --- rest ---------------------------------------------------------------------------------------------------------


class _Rest:
    """Lets everything come to rest, looks at it, and gives what is waited for, until nothing is open."""

    def __init__(self, engine: Engine, cluster: Cluster, outcome: Outcome) -> None:
        self._engine = engine
        self._cluster = cluster
        self._outcome = outcome
        self._giver = Caller(engine.client, Book(cluster.folder / "giver.calls"), "", "giver", asyncio.Event())
        self._known: dict[str, Record] = {}
        self.read: list[list[Record]] = []
        self.open_runs = 0

    async def give(self) -> None:
        give_up_at = time.monotonic() + REST_S
        for _ in range(ROUNDS):
            while moving := await _moving(self._cluster.url):
                if time.monotonic() > give_up_at:
                    self._outcome.blame("I16", *(f"{key} does not come to rest" for key in moving[:20]))
                    return
                await asyncio.sleep(0.1)
            records = await read_again(self._engine.storage, self._known)
            self._outcome.found += check(records, at_rest=True)
            self.read.append(records)
            self.open_runs += sum(record.execution_row.is_open for record in records)
            waiting = [
                record.execution_row for record in records if record.execution_row.status is WorkflowStatus.WAITING
            ]
            if not waiting:
                return
            for execution_row in waiting:
                await _give(self._giver, execution_row)
        self._outcome.blame("I16", f"not done after {ROUNDS} rounds")


async def _moving(url: str) -> list[str]:
    """Executions for which something is under way that needs no caller."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT execution_id FROM holdfast_ready UNION SELECT execution_id FROM holdfast_tasks "
            "UNION SELECT execution_id FROM holdfast_timers UNION SELECT key FROM holdfast_deliveries "
            "WHERE done_at IS NULL UNION SELECT id FROM holdfast_executions WHERE closed_at IS NOT NULL "
            "AND open_children > 0"
        )
        return [row[0] for row in rows]
    finally:
        await connection.close()


async def _give(giver: Caller, execution_row: Execution) -> None:
    for wait in execution_row.waiting_for:
        match wait.kind:
            case "signal":
                value = "end" if wait.name == "item" else "given"
                await giver.give("signal", execution_id=execution_row.id, name=wait.name, value=value)
            case "promise":
                await giver.give("settle one", promise_id=f"{execution_row.id}:{wait.name}", value="given")
            case "event":
                await giver.give("publish", name=wait.name, value="given")
            case "message":
                for key in ("k", "l"):
                    await giver.give("message", name=wait.name, key=key, value="given")
            case "broadcast":
                await giver.give("broadcast", name=wait.name)


async def _left_behind(url: str) -> list[str]:
    """Rows that nobody will ever need. Our own connections are the only ones."""
    connection = await asyncpg.connect(url)
    try:
        counts = {table: await connection.fetchval(f"SELECT count(*) FROM holdfast_{table}") for table in EMPTY}
        found = [f"{count} rows are left in holdfast_{table}" for table, count in counts.items() if count]
        if count := await connection.fetchval("SELECT count(*) FROM holdfast_deliveries WHERE done_at IS NULL"):
            found.append(f"{count} deliveries are still on their way")
        if count := await connection.fetchval(
            "SELECT count(*) FROM holdfast_requests r WHERE execution_id IS NOT NULL "
            "AND NOT EXISTS (SELECT FROM holdfast_executions x WHERE x.id = r.execution_id)"
        ):
            found.append(f"{count} idempotency keys have no execution")
        strangers = await connection.fetch(
            "SELECT application_name, state, query FROM pg_stat_activity WHERE datname = current_database() "
            "AND (application_name LIKE 'worker%' OR application_name LIKE 'caller%' OR state LIKE 'idle in trans%')"
        )
        return found + [f"a session is left: {tuple(row)}" for row in strangers]
    finally:
        await connection.close()


# --- the report ---------------------------------------------------------------------------------------------------


def _errors(folder: Path) -> list[str]:
    """What the engine itself calls an error is one, and so is a task that nobody has ended. Futures that the driver
    drops when a connection breaks are not."""
    return [
        f"{path.name}: {line}"
        for path in sorted(folder.glob("*.log"))
        for line in path.read_text(errors="replace").splitlines()
        if re.search(r"^\S+ \S+ (ERROR|CRITICAL) (holdfast|chaos|asyncio: Task)", line)
    ]


def _deadlocks(server: LocalPostgres) -> list[str]:
    return [line for line in server.log.splitlines() if "deadlock detected" in line]


def _summary(seed: int, faults: Mapping[str, int], run: Run, took_s: float) -> list[str]:
    outcomes = [called.outcome for called in run.books.calls.values()]
    told = ", ".join(f"{outcomes.count(kind)} {kind}" for kind in ("ok", "refused", "unknown"))
    events = sum(len(record.history) for record in run.records)
    size = f"{len(run.records)} executions, {events} events, {len(outcomes)} calls ({told}), {took_s:.0f} s"
    kinds = ", ".join(f"{kind} {count}" for kind, count in faults.items())
    return [f"chaos, HOLDFAST_SEED={seed}: {size}", f"  {sum(faults.values())} faults: {kinds}"]


def _timing(watcher: Watcher, metronome: Metronome, books: Books) -> list[str]:
    oldest = ", ".join(f"{what} {age / 1e6:.1f} s" for what, age in sorted(watcher.oldest_us.items()))
    stalls = f"{len(metronome.stalls)} stalls of the machine, {stalled_s(metronome.stalls):.1f} s"
    own = f"{sum(map(len, books.stalls.values()))} of processes, stopped ones included"
    return [f"  longest due once all was whole: {oldest}; {stalls}, {own}"]


def _show(folder: Path, found: Sequence[Violation], records: Sequence[Record]) -> None:
    """The violations, and the histories of the first executions they name."""
    for violation in found[:50]:
        print(violation)
    by_id = {record.execution_row.id: record for record in records}
    named = list(dict.fromkeys(violation.execution_id for violation in found if violation.execution_id in by_id))
    for key in named:
        record = by_id[key]
        (folder / f"{key}.json").write_text(export_history(record.history, execution_id=key))
    for key in named[:SHOWN]:
        print(by_id[key].execution_row)
        for event in by_id[key].history:
            print(f"  {event.seq} {event.at} {event.type} {encode_body(event.body).decode()}"[:300])
