"""What the tests of the command line share: a command run as a shell would, and an engine that works meanwhile."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast import SyncEngine, TaskContext, WorkflowContext, query, signal, task, update, workflow
from holdfast.cli.main import main
from holdfast.model.values import RetryPolicy
from tests.conftest import PATIENCE_S, QUICK


@dataclass
class Cli:
    """Runs `holdfast …`. Every command gets the test's database unless it names its own place."""

    url: str | None = None

    def __call__(self, *arguments: str, code: int | None = 0, stdin: str | bytes | None = None) -> Result:
        environment = {"HOLDFAST_DATABASE_URL": self.url} if self.url is not None else {}
        ended = CliRunner(env=environment).invoke(main, arguments, input=stdin)
        if code is not None:
            assert code == ended.exit_code, (
                f"{arguments} ended with {ended.exit_code}: {ended.output}{ended.exception!r}"
            )
        return ended

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code).stdout)

    def lines(self, *arguments: str, code: int = 0) -> list[Any]:
        return [json.loads(line) for line in self(*arguments, "--json", code=code).stdout.splitlines()]

    def refused(self, *arguments: str, code: int) -> str:
        """The one line that says why; nothing went to standard output."""
        ended = self(*arguments, code=code)
        assert ("", 1) == (ended.stdout, len(ended.stderr.splitlines())), ended.output
        return ended.stderr


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("HOLDFAST_") and "TEST" not in name]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cli(database_url: str) -> Cli:
    return Cli(database_url)


@workflow
async def greeting(ctx: WorkflowContext, name: str) -> str:
    return f"Hello, {name}!"


@workflow
async def waiting(ctx: WorkflowContext, until: str) -> Any:
    return await ctx.wait_for_signal(until)


@workflow
async def failing(ctx: WorkflowContext) -> None:
    raise ValueError("no such luck")


@workflow
async def promising(ctx: WorkflowContext) -> Any:
    return await ctx.promise("approval")


@workflow
async def listening(ctx: WorkflowContext) -> Any:
    return await ctx.wait_for_event("paid", where="input.amount > 100")


@workflow
async def rounds(ctx: WorkflowContext, left: int) -> str:
    if left:
        ctx.continue_as_new(left - 1)
    return "round"


@workflow
async def charging(ctx: WorkflowContext, number: int) -> Any:
    return await ctx.task(charge, number)


@task(retry=RetryPolicy(initial_interval_s=600, jitter=False))
async def charge(number: int) -> int:
    raise ConnectionError("the bank does not answer")


@task
def greet(name: str, others: str = "all") -> str:
    return f"Hello, {name}, {others}"


TOKENS: list[str] = []


@workflow
async def deferring(ctx: WorkflowContext) -> Any:
    return await ctx.task(defer)


@task(retry=RetryPolicy(max_attempts=1))
async def defer(context: TaskContext) -> Any:
    TOKENS.append(context.complete_later())


@workflow
class Counter:
    def __init__(self) -> None:
        self.count = 0

    async def run(self, ctx: WorkflowContext, first: int) -> int:
        self.count = first
        await ctx.wait_until(lambda: self.count > 100)
        return self.count

    @query
    def current(self) -> int:
        return self.count

    @update
    async def add(self, number: int) -> int:
        if number < 0:
            raise ValueError("only upwards")
        self.count += number
        return self.count

    @signal
    def start_again(self) -> None:
        self.count = 0


WORKFLOWS: list[Any] = [greeting, waiting, failing, promising, listening, rounds, charging, deferring, Counter]
TASKS: list[Any] = [charge, defer, greet]


@pytest.fixture
def engine(database_url: str) -> Iterator[SyncEngine]:
    """Works in a thread of its own while commands are run."""
    with SyncEngine(database_url, workflows=WORKFLOWS, tasks=TASKS, config=QUICK) as running:
        yield running


def until_waiting(engine: SyncEngine, workflow_id: str, *statuses: str) -> None:
    """Until a workflow has run its first turn and waits; or until it has one of these statuses."""
    deadline = time.monotonic() + PATIENCE_S
    while engine.client.find_workflow(workflow_id).status() not in (statuses or ("WAITING",)):
        assert time.monotonic() < deadline, f"{workflow_id} does not wait"
        time.sleep(0.005)
