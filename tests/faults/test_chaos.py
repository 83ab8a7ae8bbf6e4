"""Real processes on a real server, and everything that can happen to them at once; then the account.

HOLDFAST_SEED=n repeats the faults of a run, HOLDFAST_CHAOS_S=seconds makes it longer, HOLDFAST_CHAOS_DIR=folder says
where its books and logs are kept, HOLDFAST_CHAOS_MUTANTS=1 runs it with planted bugs, too, to see that it notices.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path

import asyncpg
import pytest

from holdfast import Engine, Status
from holdfast.assembly import open_store
from holdfast.errors import Unavailable
from holdfast.model.events import encode_body
from holdfast.model.executions import Execution
from holdfast.store.protocol import ExecutionQuery
from holdfast.testing.histories import export_history
from holdfast.testing.invariants import Record, Violation, read
from holdfast.testing.mutants import VARIABLE
from holdfast.testing.postgres import LocalPostgres
from tests.conftest import NOTHING
from tests.faults.chaos import checker
from tests.faults.chaos.app import LEASE_S, Book, config
from tests.faults.chaos.books import read_books
from tests.faults.chaos.caller import Caller
from tests.faults.chaos.metronome import Metronome, stalled_s
from tests.faults.chaos.nemesis import LEAVE_S, SERVER, Cluster, Nemesis
from tests.faults.chaos.proxy import Proxy

TROUBLE_S = float(os.environ.get("HOLDFAST_CHAOS_S", "30"))
SEED = int(os.environ.get("HOLDFAST_SEED") or random.SystemRandom().randrange(1_000_000))
REST_S = 60.0
# A connection that was held to the last is given up, with its locks, after seven seconds; then leases pass.
HELD_S = 7.0
AFTERMATH_S = HELD_S + 2 * LEASE_S
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


@pytest.mark.slow
@pytest.mark.timeout(TROUBLE_S + LEAVE_S + 3 * REST_S)
async def test_nothing_is_lost_or_done_twice_whatever_happens(tmp_path: Path):
    """Four workers and two callers; kills, stops, lost connections, lost answers, a server that crashes."""
    folder = Path(os.environ.get("HOLDFAST_CHAOS_DIR") or tmp_path)
    found = await asyncio.wait_for(chaos(folder, SEED, TROUBLE_S), TROUBLE_S + LEAVE_S + 2.5 * REST_S)

    assert not found, f"{len(found)} violations; repeat with HOLDFAST_SEED={SEED}; books and logs are in {folder}"


@pytest.mark.slow
@pytest.mark.skipif("HOLDFAST_CHAOS_MUTANTS" not in os.environ, reason="takes minutes: HOLDFAST_CHAOS_MUTANTS=1")
@pytest.mark.timeout(MUTANT_RUNS * (MUTANT_S + LEAVE_S + 3 * REST_S))
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
        found = await chaos(folder, SEED + number, MUTANT_S, settings)
        if any(violation.invariant not in {"LOG", "FAULTS", "I13"} for violation in found):
            return
    raise AssertionError(f"{mutant}: nothing was noticed, from HOLDFAST_SEED={SEED}")


async def chaos(folder: Path, seed: int, seconds: float, settings: dict[str, str] | None = None) -> list[Violation]:
    """One run; what is wrong at its end."""
    with LocalPostgres(settings={**SERVER, **(settings or {})}) as server:
        url = server.create_database("chaos")
        async with Proxy(server.port) as proxy:
            cluster = Cluster(folder, server, proxy, url, seed)
            try:
                found = await _run(cluster, seed, seconds)
            finally:
                await cluster.kill_all()
        return found + [Violation("LOG", "", 0, text) for text in _deadlocks(server)]


async def _run(cluster: Cluster, seed: int, seconds: float) -> list[Violation]:
    began = time.monotonic()
    await cluster.start_all()
    nemesis = Nemesis(cluster, seed)
    trouble = asyncio.ensure_future(nemesis.rage(seconds))
    await asyncio.sleep(seconds / 2)
    before = await _read_in_between(cluster.url)
    await trouble
    calm_at, calm_since = _microseconds(), await _now(cluster.url)
    async with Metronome(cluster.url) as metronome, Engine(cluster.url, config=config()) as engine:
        found = [Violation("I16", "", 0, f"does not end: {text}") for text in await _leave(cluster, cluster.callers)]
        found += await _give_until_rest(engine, cluster)
        found += [Violation("I16", "", 0, f"does not end: {text}") for text in await _leave(cluster, cluster.workers)]
        records = await read(engine.storage)
        dead = await engine.storage.dead_letters("default", limit=1_000_000)
        found += [Violation("I19", "", 0, text) for text in await _left_behind(cluster.url)]
    lost_us = int(AFTERMATH_S * 1e6)
    faults = nemesis.fired()
    books = read_books(cluster.folder)
    found += checker.judge(
        checker.Run(
            records=records,
            before=before,
            dead=dead,
            books=books,
            faults=sum(faults.values()),
            sent_away=cluster.sent_away,
            calm_at=calm_at + lost_us,
            calm_since=calm_since + lost_us,
            whole_since=calm_since + int(HELD_S * 1e6),
            stalls=metronome.stalls,
        )
    )
    found += [Violation("FAULTS", "", 0, f"never happened: {kind}") for kind, count in faults.items() if not count]
    found += [Violation("LOG", "", 0, text) for text in [*cluster.complaints, *_errors(cluster.folder)]]
    _tell(seed, faults, records, [called.outcome for called in books.calls.values()], time.monotonic() - began)
    print(f"  the machine stalled {len(metronome.stalls)} times, {stalled_s(metronome.stalls):.1f} s in all")
    _show(cluster.folder, found, records)
    return found


def _microseconds() -> int:
    return time.monotonic_ns() // 1000


async def _now(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))
    finally:
        await connection.close()


async def _read_in_between(url: str) -> list[Record]:
    """What has been read once must never change. Whoever reads here does nothing else."""
    store = open_store(url, config())
    while True:
        try:
            await store.open(NOTHING)
            break
        except Unavailable:
            await asyncio.sleep(0.1)
    try:
        heads = await store.list_executions(ExecutionQuery(org="default", limit=300))
        return [Record(head=head, history=await store.history("default", head.id)) for head in heads]
    finally:
        await store.close()


async def _leave(cluster: Cluster, names: Sequence[str]) -> list[str]:
    return await cluster.stop(list(names), LEAVE_S)


# --- rest ---------------------------------------------------------------------------------------------------------


async def _give_until_rest(engine: Engine, cluster: Cluster) -> list[Violation]:
    """Let everything come to rest, then give what is waited for, until nothing is open."""
    giver = Caller(engine.client, Book(cluster.folder / "giver.calls"), "", "giver", asyncio.Event())
    give_up_at = time.monotonic() + REST_S
    for _ in range(ROUNDS):
        while moving := await _moving(cluster.url):
            if time.monotonic() > give_up_at:
                return [Violation("I16", key, 0, f"does not come to rest within {REST_S} s") for key in moving[:20]]
            await asyncio.sleep(0.1)
        waiting = [view.workflow_execution_id async for view in engine.client.iter_workflows(status=Status.WAITING)]
        if not waiting:
            return []
        heads = await engine.storage.executions("default", waiting)
        for head in heads.values():
            await _give(giver, head)
    return [Violation("I16", "", 0, f"not done after {ROUNDS} rounds")]


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


async def _give(giver: Caller, head: Execution) -> None:
    for wait in head.waiting_for:
        match wait.kind:
            case "signal":
                value = "end" if wait.name == "item" else "given"
                await giver.give("signal", execution_id=head.id, name=wait.name, value=value)
            case "promise":
                await giver.give("settle one", promise_id=f"{head.id}:{wait.name}", value="given")
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


def _tell(seed: int, faults: dict[str, int], records: Sequence[Record], outcomes: list[str], took_s: float) -> None:
    events = sum(len(record.history) for record in records)
    print(f"chaos, HOLDFAST_SEED={seed}: {len(records)} executions, {events} events, {len(outcomes)} calls")
    print("  outcomes: " + ", ".join(f"{kind} {outcomes.count(kind)}" for kind in ("ok", "refused", "unknown")))
    print("  faults: " + ", ".join(f"{kind} {count}" for kind, count in faults.items()) + f"; {took_s:.0f} s")


def _show(folder: Path, found: Sequence[Violation], records: Sequence[Record]) -> None:
    """The violations, and the histories of the first executions they name."""
    for violation in found[:50]:
        print(violation)
    by_id = {record.head.id: record for record in records}
    named = list(dict.fromkeys(violation.execution_id for violation in found if violation.execution_id in by_id))
    for key in named:
        record = by_id[key]
        (folder / f"{key}.json").write_text(export_history(record.history, execution_id=key))
    for key in named[:SHOWN]:
        print(by_id[key].head)
        for event in by_id[key].history:
            print(f"  {event.seq} {event.at} {event.type} {encode_body(event.body).decode()}"[:300])
