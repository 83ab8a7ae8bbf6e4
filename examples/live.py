"""The live log of the demo: follows the histories on a database and tells what is new in them.

It only reads, through the same client as any application. Nothing in the workflows knows about it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import NamedTuple

from examples.lines import Story, clock, paint, task_line
from holdfast import Client
from holdfast import events as e
from holdfast.types import ExecutionInfo, PendingTask

PAUSE_S = 0.1
WIDTH = 18


class Line(NamedTuple):
    at: int
    name: str
    what: str
    colour: str = ""


def tell(line: Line) -> None:
    print(f"{paint(clock(line.at), 'grey')}  {line.name:<{WIDTH}} {paint(line.what, line.colour)}", flush=True)


class Follower(logging.Handler):
    """`seen` says up to which event an execution's history is old news.

    As a logging handler it also takes what workflows and tasks say to their own loggers.
    """

    def __init__(self, client: Client, seen: dict[str, int]) -> None:
        super().__init__(logging.INFO)
        self._client = client
        self._seen = seen
        self._stories: dict[str, Story] = {}
        self._tasks: dict[tuple[str, int], tuple[int, bool, float | None]] = {}
        self._records: list[logging.LogRecord] = []
        self._looking = asyncio.Lock()  # two looks at once would tell everything twice

    async def follow(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(PAUSE_S)

    async def look(self) -> None:
        """Tell what is new since the last look, in the order in which it happened."""
        async with self._looking:
            for line in sorted(await self._news(), key=lambda line: line.at):
                tell(line)

    async def _news(self) -> list[Line]:
        page = await self._client.list_workflows()
        lines: list[Line] = []
        for view in page.items:
            if view.history_length > self._seen.get(view.workflow_execution_id, 0):
                lines += await self._new_events(view)
            if any(wait.kind == "task" for wait in view.waiting_for):
                lines += await self._new_attempts(view)
        lines += self._spoken({view.workflow_execution_id: view.workflow_id for view in page.items})
        return lines

    def emit(self, record: logging.LogRecord) -> None:
        """From any thread; told at the next look."""
        self._records.append(record)

    def _spoken(self, names: dict[str, str]) -> list[Line]:
        """What was said by the executions of this look; the others have to wait for theirs."""
        records, self._records = self._records, []
        self._records += [record for record in records if _execution_id(record) not in names]
        return [_spoken(record, names) for record in records if _execution_id(record) in names]

    async def _new_events(self, view: ExecutionInfo) -> list[Line]:
        execution_id = view.workflow_execution_id
        seen = self._seen.get(execution_id, 0)
        story = self._stories.get(execution_id)
        if story is None:
            # What is old is read once more, not told: it says which task number is which task.
            story = self._stories[execution_id] = Story()
            events = await self._client.history(execution_id)
        else:
            events = await self._client.history(execution_id, after=seen)
        self._seen[execution_id] = events[-1].seq
        told = [(event, story.line(event)) for event in events]
        return [
            Line(event.at, view.workflow_id, *line) for event, line in told if event.seq > seen and _is_worth(event)
        ]

    async def _new_attempts(self, view: ExecutionInfo) -> list[Line]:
        """A failed attempt that will be repeated is in no history; the waiting task shows it."""
        lines = []
        for task in await self._client.workflow(view.workflow_execution_id).pending_tasks():
            key = (task.workflow_execution_id, task.task_no)
            state = (task.attempt, not task.running, task.progress)
            changed = self._tasks.get(key, state if task.running else None) != state
            self._tasks[key] = state
            if changed and (_has_failed(task) or task.progress is not None):
                colour = "yellow" if _has_failed(task) else "grey"
                told = task_line(task, datetime.now(UTC))
                lines.append(Line(time.time_ns() // 1_000, view.workflow_id, told, colour))
        return lines


def _has_failed(task: PendingTask) -> bool:
    return not task.running and task.attempt > 0


def _is_worth(event: e.HistoryEvent) -> bool:
    """Left out: that a workflow waits for the task it has just queued, and timers that only limit something."""
    match event.body:
        case e.TurnCompleted():
            return any(wait.kind == "signal" for wait in event.body.waiting_for)
        case e.TimerStarted() | e.TimerCancelled():
            return False
    return True


def _execution_id(record: logging.LogRecord) -> str:
    return getattr(record, "workflow_execution_id", "")


def _spoken(record: logging.LogRecord, names: dict[str, str]) -> Line:
    name = names[_execution_id(record)]
    text = record.getMessage()
    if hasattr(record, "workflow_kind"):
        text = text.removeprefix(f"[{record.workflow_kind} {name}] ")
    elif hasattr(record, "task"):
        text = f"task {record.task}: {text}"
    colour = "yellow" if record.levelno >= logging.WARNING else "grey"
    return Line(int(record.created * 1_000_000), name, text, colour)
