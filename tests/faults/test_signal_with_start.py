"""Many processes, one workflow id."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import pairwise

import asyncpg
import pytest

from holdfast.model.events import SignalReceived, WorkflowCompleted
from tests.conftest import PATIENCE_S, OpenEngine
from tests.faults import app
from tests.faults.conftest import Process, Spawn, read_all, sound_records, value_of
from verification.invariants import Record

PROCESSES, EACH = 4, 50
TOTAL = PROCESSES * EACH

Answers = list[tuple[str, bool, int]]


async def send_together(spawn: Spawn, database_url: str, kind: str = "collect") -> list[Answers]:
    """The answers each process got, in the order in which it called. None is given before all calls are under way."""
    senders: list[Process] = [
        await spawn("send_items", name=f"p{number}", kind=kind, count=EACH, total=TOTAL) for number in range(PROCESSES)
    ]
    async with nobody_writes(database_url):
        for sender in senders:
            sender.tell()
        assert ["sent"] * PROCESSES == await asyncio.gather(*(sender.line() for sender in senders))
    return [json.loads(text) for text in await asyncio.gather(*(sender.line() for sender in senders))]


@asynccontextmanager
async def nobody_writes(database_url: str) -> AsyncIterator[None]:
    """Whoever wants to write waits for the end of the block."""
    if database_url.startswith("sqlite:///"):
        with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"), timeout=PATIENCE_S)) as file:
            file.execute("BEGIN IMMEDIATE")
            yield
        return
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            await connection.execute("LOCK TABLE holdfast_executions IN EXCLUSIVE MODE")
            yield
    finally:
        await connection.close()


def check_answers(answers: list[Answers]) -> None:
    everything = [answer for each in answers for answer in each]
    assert 1 == len({execution_id for execution_id, _, _ in everything})
    assert 1 == sum(created for _, created, _ in everything)
    assert TOTAL == len({sequence for _, _, sequence in everything})
    for each in answers:
        assert all(earlier[2] < later[2] for earlier, later in pairwise(each))


@pytest.mark.slow
async def test_concurrent_calls_from_four_processes_meet_in_one_execution(
    engine: OpenEngine, spawn: Spawn, database_url: str
):
    """200 calls at once, by 4 processes: one execution, signals numbered 2 to 201, each caller's in its order."""
    await (await engine(workflows=[app.collect])).shutdown()

    answers = await send_together(spawn, database_url)

    check_answers(answers)
    assert list(range(2, TOTAL + 2)) == sorted(sequence for each in answers for _, _, sequence in each)
    (record,) = await sound_records(database_url)
    assert ["WORKFLOW_STARTED"] + ["SIGNAL_RECEIVED"] * TOTAL == [event.type for event in record.history]


@pytest.mark.slow
async def test_signals_that_race_with_a_running_execution_all_arrive_in_order(
    engine: OpenEngine, spawn: Spawn, database_url: str
):
    """The same while a worker runs the execution: it gets every value once, in the order of the history."""
    working = await engine(workflows=[app.collect])

    answers = await send_together(spawn, database_url)

    check_answers(answers)
    result = await working.client.workflow(answers[0][0][0], app.collect).result(timeout=20)
    (record,) = await read_all(database_url)
    values = [event.body.signal_value for event in record.history if isinstance(event.body, SignalReceived)]
    assert [value_of(value) for value in values] == result
    assert TOTAL == len(set(result))
    for number in range(PROCESSES):
        assert [f"p{number}-{item}" for item in range(EACH)] == [
            item for item in result if item.startswith(f"p{number}-")
        ]
    await sound_records(database_url)


@pytest.mark.slow
async def test_signals_that_race_with_the_end_are_read_or_dead_letters(
    engine: OpenEngine, spawn: Spawn, database_url: str
):
    """Executions that end whenever they can: every acknowledged signal was read once or is a dead letter."""
    working = await engine(workflows=[app.collect_some])

    answers = await send_together(spawn, database_url, "collect_some")
    last = await working.client.find_workflow("bag")
    await last.result(timeout=20)

    records = {record.execution_row.id: record for record in await sound_records(database_url)}
    accounted: list[str] = []
    for record in records.values():
        end = record.history[-1].body
        assert isinstance(end, WorkflowCompleted)
        dead = [letter.seq for letter in await working.client.dead_letters(record.execution_row.id)]
        accounted += value_of(end.result)
        accounted += [sent(record, seq) for seq in dead]
    assert sorted(f"p{number}-{item}" for number in range(PROCESSES) for item in range(EACH)) == sorted(accounted)
    for number, each in enumerate(answers):
        assert [f"p{number}-{item}" for item in range(EACH)] == [sent(records[where], seq) for where, _, seq in each]
    assert len(records) == sum(created for each in answers for _, created, _ in each)


def sent(record: Record, seq: int) -> str:
    body = record.history[seq - 1].body
    assert isinstance(body, SignalReceived)
    return str(value_of(body.signal_value))
