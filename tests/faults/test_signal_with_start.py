"""Many processes, one workflow id."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.model.events import SignalReceived
from tests.conftest import OpenEngine
from tests.faults import app
from tests.faults.conftest import Process, Spawn, read_file, sound_records

PROCESSES, EACH = 4, 50
TOTAL = PROCESSES * EACH

Answers = list[tuple[str, bool, int]]


async def send_together(spawn: Spawn) -> list[Answers]:
    """The answers each process got, in the order in which it called."""
    senders: list[Process] = [
        await spawn("send_items", name=f"p{number}", count=EACH, total=TOTAL) for number in range(PROCESSES)
    ]
    for sender in senders:
        sender.tell()
    return [json.loads(text) for text in await asyncio.gather(*(sender.line() for sender in senders))]


def check_answers(answers: list[Answers]) -> None:
    everything = [answer for each in answers for answer in each]
    assert 1 == len({execution_id for execution_id, _, _ in everything})
    assert 1 == sum(created for _, created, _ in everything)
    assert TOTAL == len({sequence for _, _, sequence in everything})
    for each in answers:
        assert all(earlier[2] < later[2] for earlier, later in pairwise(each))


@pytest.mark.slow
async def test_concurrent_calls_from_four_processes_meet_in_one_execution(
    engine: OpenEngine, spawn: Spawn, database: Path
):
    """200 calls by 4 processes: one execution, 200 signals numbered 2 to 201, those of each caller in its order."""
    await (await engine(workflows=[app.collect])).shutdown()

    answers = await send_together(spawn)

    check_answers(answers)
    assert list(range(2, TOTAL + 2)) == sorted(sequence for each in answers for _, _, sequence in each)
    (record,) = await sound_records(database)
    assert ["WORKFLOW_STARTED"] + ["SIGNAL_RECEIVED"] * TOTAL == [event.type for event in record.history]


@pytest.mark.slow
async def test_signals_that_race_with_a_running_execution_all_arrive_in_order(
    engine: OpenEngine, spawn: Spawn, database: Path
):
    """The same while a worker runs the execution: it gets every value once, in the order of the history."""
    working = await engine(workflows=[app.collect])

    answers = await send_together(spawn)

    check_answers(answers)
    result = await working.client.workflow(answers[0][0][0], app.collect).result(timeout=20)
    (record,) = await read_file(database)
    sent = [event.body.signal_value for event in record.history if isinstance(event.body, SignalReceived)]
    assert [json.loads(bytes(value)) for value in sent] == result
    assert TOTAL == len(set(result))
    for number in range(PROCESSES):
        assert [f"p{number}-{item}" for item in range(EACH)] == [
            item for item in result if item.startswith(f"p{number}-")
        ]
    await sound_records(database)
