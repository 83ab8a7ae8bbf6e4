"""The doctor's look at what runs: workers, executions that do not move, tasks nobody takes, what was never read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING

from holdfast.cli import words
from holdfast.cli.diagnosis import LATE, UNCLAIMED, Finding, Level, Sessions, sessions_of
from holdfast.cli.words import length, since
from holdfast.cli.workflow.listing import executions
from holdfast.contract.instants import micros

if TYPE_CHECKING:
    from holdfast.cli.doors import Door
    from holdfast.client.client import Client
    from holdfast.contract.execution_reads import ExecutionInfo, PendingTask
    from holdfast.contract.queues import PauseInfo

SHOWN = 5
LOOKED_AT = 500
MANY_ATTEMPTS = 5


async def look_around(door: Door, client: Client) -> list[Finding]:
    now = await door.now()
    counts = await client.count_workflows()
    told = ", ".join(f"{number} {status.lower()}" for status, number in sorted(counts.items()) if number) or "none"
    found = [Finding.of(Level.OK, f"{door.name}, org {client.org!r} can be asked; executions: {told}")]
    sessions = await sessions_of(client, now)
    found += _workers(sessions, now, has_open=any(number for status, number in counts.items() if status.is_open))
    found += _paused(sessions, now)
    found += await _stuck(client)
    found += await _unclaimed(client, now, sessions)
    found += await _waiting(client, now, sessions)
    return found + await _unread(client)


def _workers(sessions: Sessions, now: int, *, has_open: bool) -> list[Finding]:
    lost = [row for row in sessions.workers if micros(row.lease_until) <= now]
    found = [
        Finding.of(Level.OK, f"worker {row.id} is there since {since(row.started_at, now)}") for row in sessions.alive
    ]
    if not sessions.alive:
        level = Level.BAD if has_open else Level.NOTE
        found.append(Finding.of(level, "no worker is connected to this database", "start one: holdfast worker APP"))
    found += [
        Finding.of(
            Level.BAD,
            f"worker {row.id} was lost {length(now - micros(row.lease_until))} ago, and what it held is not taken back",
            "holdfast recover",
        )
        for row in lost
    ]
    return found


def _paused(sessions: Sessions, now: int) -> list[Finding]:
    return [
        *(
            Finding.of(
                Level.NOTE,
                f"queue {queue.name!r} is paused since {since(queue.pause.since, now)}{_reason(queue.pause)}",
                f"holdfast queue resume {quote(queue.name)}",
                "queue_paused",
            )
            for queue in sessions.queues
            if queue.pause is not None
        ),
        *(
            Finding.of(
                Level.NOTE,
                f"worker {worker.id} is {pause.mode.value} since {since(pause.since, now)}{_reason(pause)}",
                f"holdfast workers resume {quote(worker.id)}" if pause.mode == "paused" else "stop it when it is done",
                "worker_paused",
            )
            for worker in sessions.workers
            if (pause := worker.pause) is not None
        ),
    ]


def _reason(pause: PauseInfo) -> str:
    return f": {words.short(pause.reason, 300)}" if pause.reason else ""


async def _stuck(client: Client) -> list[Finding]:
    stuck = [execution async for execution in executions(client, LOOKED_AT, status=("STUCK",))]
    found = []
    for execution in stuck[:SHOWN]:
        reason = execution.stuck
        why = f": {reason.message} [{reason.code}]" if reason is not None else ""
        found.append(
            Finding.of(
                Level.BAD,
                words.short(f"{execution.workflow_id} ({execution.kind}) is stuck{why}", 400),
                f"holdfast workflow show {execution.id}",
            )
        )
    if len(stuck) > SHOWN:
        found.append(Finding.of(Level.BAD, f"{len(stuck) - SHOWN} more are stuck", "holdfast workflow list -s stuck"))
    return found


async def _unclaimed(client: Client, now: int, sessions: Sessions) -> list[Finding]:
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    async for execution in executions(client, LOOKED_AT, status=("PENDING",)):
        if sessions.pause_of(execution.queue) is not None:
            continue
        ready_since = execution.ready_since or execution.updated_at
        if micros(max(ready_since, execution.not_before or ready_since)) < now - UNCLAIMED:
            groups[execution.kind, execution.version, execution.queue].append(micros(ready_since))
    return [
        Finding.of(
            Level.BAD,
            f"{len(times)} executions of kind {kind!r} version {version!r} have news that no worker takes, the oldest "
            f"since {since(min(times), now)}",
            f"run a worker with this kind and version: holdfast worker APP --queue {quote(queue)}",
        )
        for (kind, version, queue), times in sorted(groups.items())
    ]


async def _waiting(client: Client, now: int, sessions: Sessions) -> list[Finding]:
    late = 0
    tasks: list[tuple[ExecutionInfo, PendingTask]] = []
    async for execution in executions(client, LOOKED_AT, status=("WAITING",)):
        due = [micros(wait.until) for wait in execution.waiting_for if wait.until is not None]
        late += any(at < now - LATE for at in due)
        if execution.open_tasks:
            rows = await client.workflow(execution.id).pending_tasks()
            tasks += [(execution, row) for row in rows if sessions.pause_of(row.queue) is None]
    found = []
    if late:
        found.append(
            Finding.of(
                Level.BAD,
                f"{late} executions have timers that should have fired: nothing runs on this database",
                "start a worker, a server or `holdfast dev`",
            )
        )
    return [*found, *_unclaimed_tasks(tasks, now), *_failing_tasks(tasks)]


def _unclaimed_tasks(tasks: Iterable[tuple[ExecutionInfo, PendingTask]], now: int) -> list[Finding]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for _, row in tasks:
        queued_at = micros(max(row.scheduled_at, row.not_before or row.scheduled_at))
        if not row.running and not row.deferred and queued_at < now - UNCLAIMED:
            groups[row.kind, row.queue].append(queued_at)
    return [
        Finding.of(
            Level.BAD,
            f"{len(times)} tasks {kind!r} on queue {queue!r} wait for a worker, the oldest since "
            f"{since(min(times), now)}",
            f"run a worker that has this task: holdfast worker APP --queue {quote(queue)}",
        )
        for (kind, queue), times in sorted(groups.items())
    ]


def _failing_tasks(tasks: Iterable[tuple[ExecutionInfo, PendingTask]]) -> list[Finding]:
    failing = [(one, row) for one, row in tasks if row.last_failure is not None and row.attempt >= MANY_ATTEMPTS]
    return [
        Finding.of(
            Level.NOTE,
            f"task {row.kind!r} of {execution.workflow_id} has failed {row.attempt} times: "
            f"{words.failure(row.last_failure)}",
            f"holdfast workflow show {execution.id}",
        )
        for execution, row in failing[:SHOWN]
    ]


async def _unread(client: Client) -> list[Finding]:
    found = []
    letters = await client.dead_letters(limit=100)
    if letters:
        found.append(
            Finding.of(
                Level.NOTE,
                f"{_many(len(letters))} signals were never read, the last of them {letters[0].signal_name!r} of "
                f"{letters[0].execution_id}",
                f"holdfast workflow mailbox {letters[0].execution_id}",
            )
        )
    events = await client.dead_events(limit=100)
    if events:
        found.append(
            Finding.of(
                Level.NOTE,
                f"{_many(len(events))} events were published that nobody ever got, the last of key {events[0].key!r}",
                f"holdfast event dead; holdfast event explain {events[0].id}",
            )
        )
    return found


def _many(number: int) -> str:
    return f"{number} or more" if number == 100 else str(number)
