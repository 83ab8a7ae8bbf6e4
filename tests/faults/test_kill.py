"""kill -9 with a thousand workflows in flight: what was acknowledged stays, what was recorded happened, all finish."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast import Engine, EngineConfig, WorkerConfig
from holdfast.model import events as e
from holdfast.model.executions import State
from tests.conftest import OpenEngine, until
from tests.faults.conftest import Spawn, lines, sound_records, value_of
from verification.invariants import Record, check_growth, read

COUNT = 1_000
KILLS = 3


@pytest.mark.slow
async def test_nothing_is_lost_when_the_process_is_killed_again_and_again(
    spawn: Spawn, folder: Path, database_url: str
):
    """A thousand workflows survive several kills: all finish, every step and task recorded once, with a true result."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    options: dict[str, Any] = {
        "count": COUNT,
        "seed": seed,
        "worker": {"lease_s": 1.0},
        "engine": {"crash_attempts": 100},
        "store": {"synchronous": "normal"},
    }
    before: Sequence[Record] = ()
    for _ in range(KILLS):
        process = await spawn("run_crowd", **options)
        # Progress, not time: the kill is to hit a crowd at work, on a slow machine too.
        await more_answers(folder, chance.randrange(50, 700))
        await process.kill()
        after = await sound_records(database_url)
        assert [] == check_growth(before, after)
        before = after

    process = await spawn("run_crowd", **options)
    await until(lambda: lines(folder, "done"), timeout=90)
    assert 0 == await process.ended()

    records = await sound_records(database_url)
    assert [] == check_growth(before, records)
    assert [State.COMPLETED] * COUNT == [record.execution_row.state for record in records]
    assert [] == not_as_acknowledged(records, [*lines(folder, "acknowledged"), *lines(folder, "repeated")])
    assert [] == not_as_it_happened(records, lines(folder, "ledger"))


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 2])
async def test_work_lost_with_a_killed_process_is_taken_up_side_by_side(
    kills: int, engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Long steps and tasks that went down with a process all begin again; none waits for another one's end."""
    options: dict[str, Any] = {"worker": {"lease_s": 0.5}}
    worker = await spawn("work", **options)
    api = await engine(config=EngineConfig(worker=WorkerConfig(lease_s=0.5)))
    handles = [
        await api.client.start_workflow(kind, "gate", workflow_id=f"{kind}-{number}")
        for number in range(5)
        for kind in ("long_step", "long_chore")
    ]
    for number in range(1, kills + 1):
        await all_begun(folder, 10 * number)
        await worker.kill()
        worker = await spawn("work", **options)

    await all_begun(folder, 10 * (kills + 1))
    (folder / "gate").touch()

    for handle in handles:
        await handle.result(timeout=20)
    await sound_records(database_url)


async def all_begun(folder: Path, count: int) -> None:
    await until(lambda: len(lines(folder, "begun")) >= count)


@pytest.mark.slow
async def test_next_attempt_knows_how_far_the_killed_one_got(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """What a task told with its last heartbeat reaches the attempt after a kill."""
    options: dict[str, Any] = {"worker": {"lease_s": 0.5}}
    worker = await spawn("work", **options)
    api = await engine()
    handle = await api.client.start_workflow("resumes", "gate")

    async def told() -> bool:
        return any(row.details is not None for row in await handle.pending_tasks())

    await until(told)
    await worker.kill()
    await spawn("work", **options)

    assert [2, 7] == await handle.result(timeout=20)
    await sound_records(database_url)


@pytest.mark.slow
async def test_workers_killed_and_suspended_at_random_lose_nothing(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Two workers, one or the other killed or suspended beyond its lease again and again: all finish, nothing twice."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    options: dict[str, Any] = {"worker": {"lease_s": 0.5}, "engine": {"crash_attempts": 100}}
    workers = [await spawn("work", **options) for _ in range(2)]
    api = await engine()
    kinds = ("steps", "chores", "naps")
    handles = [
        await api.client.start_workflow(kind, f"{kind}-{number}", workflow_id=f"{kind}-{number}")
        for number in range(100)
        for kind in kinds
    ]
    waiting = asyncio.gather(*(handle.result(timeout=60) for handle in handles))
    for _ in range(6):
        worker = chance.randrange(2)
        if chance.random() < 0.5:
            await workers[worker].kill()
            workers[worker] = await spawn("work", **options)
        else:
            workers[worker].suspend()
            await asyncio.wait([waiting], timeout=chance.uniform(0.4, 1.2))
            workers[worker].wake()
        await asyncio.wait([waiting], timeout=chance.uniform(0.0, 0.5))

    try:
        await waiting
    except TimeoutError:
        raise AssertionError(await unfinished(api)) from None

    records = await sound_records(database_url)
    assert [State.COMPLETED] * len(handles) == [record.execution_row.state for record in records]
    assert [] == not_as_it_happened(records, lines(folder, "ledger"))


async def unfinished(api: Engine) -> str:
    """What is still open, who holds it, and whether anybody was told that the rest is over."""
    execution_rows = [record.execution_row for record in await read(api.storage)]
    still_open = [
        f"{row.workflow_id} {row.status} seq {row.last_seq} seen {row.seen_seq} epoch {row.epoch} crashes "
        f"{row.crashes} ready {row.ready} waits {row.waiting_for}"
        for row in execution_rows
        if row.is_open
    ]
    return f"{len(still_open)} of {len(execution_rows)} are open:\n" + "\n".join(still_open)


def answers(folder: Path) -> int:
    """How many questions have had their first answer."""
    file = folder / "acknowledged"
    return file.read_bytes().count(b"\n") if file.exists() else 0


async def more_answers(folder: Path, count: int) -> None:
    enough = answers(folder) + count
    await until(lambda: answers(folder) >= enough, timeout=60)


def not_as_acknowledged(records: Sequence[Record], acknowledged: Sequence[list[Any]]) -> list[str]:
    """Answers that the database does not bear out."""
    by_id = {record.execution_row.id: record for record in records}
    wrong = []
    for what, key, _, execution_id, *rest in acknowledged:
        record = by_id.get(execution_id)
        if record is None or record.execution_row.workflow_id != key:
            wrong.append(f"{what} {key}: no such execution {execution_id}")
        elif what == "signal" and (rest[0] > len(record.history) or _signal(record.history[rest[0] - 1]) != rest[1]):
            wrong.append(f"signal {key}: {rest[1]!r} is not number {rest[0]}")
        elif what == "result" and value_of(_completed(record).result) != rest[0]:
            wrong.append(f"result {key}: {rest[0]!r} is not what is recorded")
    return wrong


def _signal(event: e.HistoryEvent) -> Any:
    return value_of(event.body.signal_value) if isinstance(event.body, e.SignalReceived) else None


def _completed(record: Record) -> e.WorkflowCompleted:
    body = record.history[-1].body
    assert isinstance(body, e.WorkflowCompleted)
    return body


def not_as_it_happened(records: Sequence[Record], ledger: Sequence[list[Any]]) -> list[str]:
    """Recorded results that no call of the body returned (for tasks: not the attempt that is recorded)."""
    returned: defaultdict[tuple[Any, ...], set[str]] = defaultdict(set)
    for *words, value in ledger:
        returned[tuple(words)].add(value)
    wrong = []
    for record in records:
        key = record.execution_row.workflow_id
        for event in record.history:
            match event.body:
                case e.StepCompleted(name=name, result=result):
                    call: tuple[Any, ...] = (key, int(name.removeprefix("note-")))
                case e.TaskCompleted(task_no=number, attempt=attempt, result=result):
                    call = (key, number, attempt)
                case _:
                    continue
            if value_of(result) not in returned[call]:
                wrong.append(f"{key} #{event.seq}: {call} never returned {value_of(result)}")
    return wrong
