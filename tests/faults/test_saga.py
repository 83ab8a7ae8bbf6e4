"""kill -9 in the middle of a saga: what is recorded as done is undone, once each in the record, and nothing else."""

from __future__ import annotations

import random
import secrets
from pathlib import Path
from typing import Any

import pytest

from holdfast import WorkflowHandle
from holdfast.model import events as e
from holdfast.model.executions import State
from tests.conftest import OpenEngine, until
from tests.faults import saga_app
from tests.faults.conftest import Process, Spawn, lines, sound_records, value_of
from tests.replay.recording import check_whole
from verification.invariants import Record

OPTIONS: dict[str, Any] = {
    "module": "tests.faults.saga_app",
    "worker": {"lease_s": 0.5},
    "engine": {"crash_attempts": 100},
}
GATES = [f"{what}-{place}" for what in ("book", "undo") for place in saga_app.PLACES]

pytestmark = pytest.mark.slow


def open_gates(folder: Path, *but: str) -> None:
    for gate in GATES:
        if gate not in but:
            (folder / gate).touch()


async def begun(folder: Path, what: str, place: str, worker: Process) -> None:
    await until(lambda: [what, place, worker.pid] in lines(folder, "begun"))


async def closed(handle: WorkflowHandle) -> bool:
    return not (await handle.status()).is_open


def booked(record: Record) -> list[str]:
    """The numbers of the recorded bookings, in order."""
    kinds = kinds_of(record)
    done = [event.body for event in record.history if isinstance(event.body, e.TaskCompleted)]
    return [value_of(body.result) for body in done if kinds[body.task_no] == "book"]


def undone(record: Record) -> list[str]:
    """The numbers whose undoing is recorded as asked for and as done, in order."""
    asked = [event.body for event in record.history if isinstance(event.body, e.TaskScheduled)]
    undos = {body.task_no: value_of(body.input)[0] for body in asked if body.kind == "cancel_booking"}
    done = [event.body.task_no for event in record.history if isinstance(event.body, e.TaskCompleted)]
    assert list(undos) == [number for number in done if number in undos]
    return list(undos.values())


def kinds_of(record: Record) -> dict[int, str]:
    asked = [event.body for event in record.history if isinstance(event.body, e.TaskScheduled)]
    return {body.task_no: body.kind for body in asked}


@pytest.mark.parametrize("case", [(gate, end) for gate in GATES for end in ("failure", "cancel")], ids="-".join)
async def test_killed_in_the_middle_of_work_or_of_compensation(
    case: tuple[str, str], engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Wherever the process dies, and whether the saga fails or is cancelled while nobody works on it."""
    moment, end = case
    what, place = moment.split("-")
    open_gates(folder, moment)
    worker = await spawn("work", **OPTIONS)
    api = await engine()
    handle = await api.client.start_workflow("trip")
    await begun(folder, what, place, worker)
    await worker.kill()
    cancelled = end == "cancel" and await handle.cancel()

    worker = await spawn("work", **OPTIONS)
    if not (cancelled and what == "book"):  # then it is taken back, and may or may not begin before that
        await begun(folder, what, place, worker)
    open_gates(folder)
    await until(lambda: closed(handle))

    (record,) = await sound_records(database_url)
    assert undone(record) == booked(record)[::-1]
    if what == "undo" or end == "failure":
        assert list(saga_app.PLACES) == [number[0] for number in booked(record)]
    assert (State.CANCELLED if cancelled else State.FAILED) == record.execution_row.state
    ledger = [(line[0], line[1]) for line in lines(folder, "ledger")]
    assert {("undo", number) for number in undone(record)} <= set(ledger)
    assert {("book", number) for number in booked(record)} <= set(ledger)
    check_whole(saga_app.trip, record.history, record.execution_row.id)


async def test_sagas_cancelled_and_killed_at_random(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """Many sagas, kills and cancels at any moment: in every record, the bookings are undone in reverse, once each."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    open_gates(folder)
    api = await engine()
    worker = await spawn("work", **OPTIONS)
    handles = [await api.client.start_workflow("trip") for _ in range(150)]
    for _ in range(3):
        before = len(lines(folder, "ledger"))
        for handle in chance.sample(handles, 40):
            await handle.cancel()
        await until(lambda: len(lines(folder, "ledger")) >= before + chance.randrange(100))  # noqa: B023
        await worker.kill()
        worker = await spawn("work", **OPTIONS)

    for handle in handles:
        await until(lambda: closed(handle), timeout=60)  # noqa: B023

    records = await sound_records(database_url)
    assert {State.FAILED, State.CANCELLED} == {record.execution_row.state for record in records}
    assert [] == [record.execution_row.id for record in records if undone(record) != booked(record)[::-1]]
