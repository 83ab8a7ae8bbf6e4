from __future__ import annotations

import io
import json
import logging

import pytest

import holdfast
from holdfast import TaskContext, WorkflowContext
from holdfast.telemetry import JsonFormatter, json_logs

log = logging.getLogger("an.application")


@holdfast.task
async def noisy(ctx: TaskContext, word: str) -> str:
    log.info("in a task: %s", word)
    ctx.logger.info("of a task")
    return word


@holdfast.task
def noisy_thread(word: str) -> str:
    log.info("in a thread: %s", word)
    return word


def noisy_step() -> None:
    log.info("in a step")


@holdfast.workflow
async def talkative(ctx: WorkflowContext) -> None:
    await ctx.run(noisy_step, name="noise")
    ctx.logger.info("after a step", extra={"colour": "red"})
    await ctx.task(noisy, "hi")
    await ctx.task(noisy_thread, "ho")


@pytest.fixture
def lines():
    stream = io.StringIO()
    root = logging.getLogger()
    level = root.level
    handler = json_logs(logging.INFO, stream)
    yield lambda: {line["message"]: line for line in map(json.loads, stream.getvalue().splitlines())}
    root.removeHandler(handler)
    root.setLevel(level)


async def test_records_name_what_they_are_about(engine, lines):
    """In steps, tasks, threads and workflow code, whichever logger is used."""
    running = await engine(workflows=[talkative], tasks=[noisy, noisy_thread])
    handle = await running.client.start_workflow(talkative, workflow_id="w-1")
    await handle.result()

    found = lines()
    always = {"org": "default", "workflow_execution_id": handle.id}
    step = found["in a step"]
    assert step.items() >= (always | {"workflow_id": "w-1", "workflow_kind": "talkative", "step": "noise"}).items()
    assert step["attempt"] == 1
    assert step["session"]
    for message, kind, number in (("in a task: hi", "noisy", 1), ("in a thread: ho", "noisy_thread", 2)):
        about = {"task": kind, "task_no": number, "attempt": 1, "logger": "an.application", "level": "INFO"}
        assert found[message].items() >= (always | about).items()
    assert found["of a task"].items() >= (always | {"task": "noisy", "logger": "holdfast.task"}).items()
    said = found["[talkative w-1] after a step"]
    assert said.items() >= (always | {"workflow_id": "w-1", "colour": "red"}).items()
    assert "step" not in said


def test_a_record_outside_of_bodies_has_no_such_fields(lines):
    """What is about nothing names nothing."""
    log.warning("plain")

    assert set(lines()["plain"]) == {"time", "level", "logger", "message"}


def test_an_exception_is_one_line(lines):
    """A traceback does not break the lines."""
    try:
        raise ValueError("no\nway")
    except ValueError:
        log.exception("bad")

    assert "ValueError: no\nway" in lines()["bad"]["exception"]


def test_values_that_are_not_json_are_shown_as_text():
    """Logging never fails because of what is logged."""
    record = logging.makeLogRecord({"msg": "x", "thing": object, "level": "mine"})

    line = json.loads(JsonFormatter().format(record))
    assert line["thing"] == "<class 'object'>"
    assert line["level"] != "mine"
