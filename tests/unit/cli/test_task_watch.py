"""`holdfast task watch`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from holdfast import RetryPolicy, SyncEngine, TaskContext, WorkflowContext, task, workflow
from tests.conftest import PATIENCE_S, QUICK


@task(retry=RetryPolicy(initial_interval_s=0.01, jitter=False, max_attempts=2))
async def speaks(ctx: TaskContext, fails: bool = False) -> None:
    ctx.emit("Hello, ")
    ctx.emit("\x1b[31mworld\n")
    ctx.emit({"n": 1})
    ctx.heartbeat(progress=0.5)
    if fails:
        raise ValueError("no such luck")


@workflow
async def speaking(ctx: WorkflowContext, fails: bool) -> None:
    await ctx.task(speaks, fails)


@pytest.fixture
def engine(database_url: str) -> Iterator[SyncEngine]:
    with SyncEngine(database_url, workflows=[speaking, standing], tasks=[speaks, stands], config=QUICK) as running:
        yield running


def done(engine, *, fails=False):
    handle = engine.client.start_workflow(speaking, fails, workflow_id="S-1")
    try:
        handle.result()
    except Exception:
        assert fails
    return handle.id


def test_what_a_task_said_is_printed_to_its_end(cli, engine):
    """Its words alone on standard output, and nothing that a terminal would obey."""
    done(engine)
    ended = cli("task", "watch", "S-1", "1")

    assert ["Hello, ", "\\x1b[31mworld\\n", '{"n":1}'] == ended.stdout.splitlines()
    assert ["-- attempt 1", "-- completed"] == ended.stderr.splitlines()


def test_words_one_after_the_other(cli, engine):
    done(engine)

    assert 'Hello, \\x1b[31mworld\n{"n":1}\n' == cli("task", "watch", "S-1", "1", "--raw").stdout


def test_lines_for_scripts(cli, engine):
    """By execution id, too; `--after` leaves out what is known."""
    execution_id = done(engine)
    lines = cli.lines("task", "watch", execution_id, "1", "--after", "1")

    assert ["attempt", "output", "output", "ended"] == [line["kind"] for line in lines]
    assert [2, 3] == [line["sequence"] for line in lines if line["kind"] == "output"]


def test_the_exit_code_tells_how_it_ended(cli, engine):
    done(engine, fails=True)
    ended = cli("task", "watch", "S-1", "1", code=5)

    assert "-- failed: ValueError: no such luck" == ended.stderr.splitlines()[-1]
    assert ["-- attempt 1", "-- attempt 2"] == [line for line in ended.stderr.splitlines() if "attempt" in line]


def test_what_is_not_there(cli, engine):
    done(engine)

    assert "no task 7" in cli.refused("task", "watch", "S-1", "7", code=4)
    cli.refused("task", "watch", "nobody", "1", code=4)
    cli.refused("task", "watch", "nobody", code=4)


@task(retry=RetryPolicy(max_attempts=1))
async def stands(ctx: TaskContext) -> None:
    ctx.heartbeat(progress=0.5)
    ctx.emit("half of it")
    await asyncio.Event().wait()


@workflow
async def standing(ctx: WorkflowContext) -> None:
    await ctx.task(stands)


def begun(engine):
    """A task that is half done, and stays so."""
    handle = engine.client.start_workflow(standing, workflow_id="S-2")
    deadline = time.monotonic() + PATIENCE_S
    while not any(row.progress for row in handle.pending_tasks()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_progress_is_shown_while_the_task_runs(cli, engine):
    """On standard error where there is no terminal; watching ends in time, the task goes on."""
    begun(engine)
    ended = cli("task", "watch", "S-2", "1", "--timeout", "2", code=8)

    assert "half of it\n" == ended.stdout
    assert ["-- attempt 1", "-- progress 50%"] == ended.stderr.splitlines()[:2]


def test_a_terminal_gets_a_bar(cli, engine, monkeypatch):
    """Below what the task says."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    begun(engine)
    ended = cli("task", "watch", "S-2", "1", "--timeout", "2", code=8)

    assert "half of it" in ended.stdout
    assert "50%" in ended.stdout
    assert "-- progress" not in ended.stderr
