"""Why one execution does not move: what is known about it, and findings that each name a next step.

`examine` reads; `findings` only thinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING

from holdfast.cli import words
from holdfast.cli.words import length, since
from holdfast.model import events as e
from holdfast.model.executions import Execution, Status, TaskRow, TimerRow
from holdfast.model.messages import PromiseRow, PromiseState, SubscriptionRow
from holdfast.model.values import MICRO, Wait
from holdfast.wire.rest.reading import UNTOLD

if TYPE_CHECKING:
    from holdfast.cli.sessions import Sessions
    from holdfast.client.client import Client

LAST_EVENTS = 10
LATE = 5 * MICRO
"""A timer that is so much overdue is not just about to fire."""
UNCLAIMED = 10 * MICRO
"""News that nobody has taken for so long: there is no worker for it."""


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, and what to do about it."""

    level: Level
    text: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class Examined:
    """What was read about one execution. `sessions` is None where a server is asked."""

    execution: Execution
    now: int
    last_events: tuple[e.HistoryEvent, ...] = ()
    tasks: tuple[TaskRow, ...] = ()
    timers: tuple[TimerRow, ...] = ()
    promises: tuple[PromiseRow, ...] = ()
    waits: tuple[SubscriptionRow, ...] = ()
    children: dict[int, str] = field(default_factory=dict)
    refusals: dict[int, str] = field(default_factory=dict)
    sessions: Sessions | None = None

    @property
    def waits_since(self) -> int:
        """The end of its last turn."""
        turns = [event.at for event in self.last_events if isinstance(event.body, e.TurnCompleted)]
        return turns[-1] if turns else self.execution.updated_at


async def examine(client: Client, execution: Execution, *, sessions: Sessions | None, now: int) -> Examined:
    org, id_ = client.org, execution.id
    after = max(0, execution.last_seq - LAST_EVENTS)
    last = tuple(await client.executions.history(org, id_, after))
    if not execution.is_open:
        return Examined(execution, now, last, sessions=sessions)
    kinds = {wait.kind for wait in execution.waiting_for}
    children = await client.executions.history(org, id_, types=(e.ChildStarted.TYPE,)) if "child" in kinds else ()
    promises = await client.messages.promises(org, id_)
    waits = tuple(await client.messages.waits(org, id_))
    return Examined(
        execution=execution,
        now=now,
        last_events=last,
        tasks=tuple(await client.executions.tasks(org, id_)),
        timers=tuple(await client.executions.timers(org, id_)),
        promises=tuple(row for row in promises if row.state is PromiseState.PENDING),
        waits=waits,
        children={
            event.body.child_no: event.body.child_execution_id
            for event in children
            if isinstance(event.body, e.ChildStarted)
        },
        refusals=await _refusals(client, id_, waits),
        sessions=sessions,
    )


async def _refusals(client: Client, execution_id: str, waits: tuple[SubscriptionRow, ...]) -> dict[int, str]:
    """For each wait for an event: the one that came nearest, and what refused it."""
    told: dict[int, str] = {}
    for wait in waits[:LAST_EVENTS]:
        if wait.kind != "broadcast":
            explained = await client.explaining.wait(execution_id, wait.wait_no)
            if explained.nearest:
                nearest = explained.nearest[0]
                told[wait.wait_no] = f"the nearest, event {nearest.event_id}: {nearest.reason}"
    return told


def findings(seen: Examined) -> list[Finding]:
    """What to know about an execution, the most important first."""
    execution = seen.execution
    match execution.status:
        case Status.STUCK:
            return [_stuck(seen)]
        case Status.PENDING:
            return [_pending(seen)]
        case Status.RUNNING:
            return [_running(seen)]
        case Status.WAITING:
            waits = sorted(execution.waiting_for, key=lambda wait: wait.kind == "timer")
            found = [finding for wait in waits for finding in _waiting(seen, wait)]
            return found or [Finding(Level.BAD, "it waits, and says for nothing", "holdfast recover")]
    return [_closed(seen)]


def _stuck(seen: Examined) -> Finding:
    stuck = seen.execution.stuck
    id_ = quote(seen.execution.workflow_id)
    if stuck is None:
        return Finding(Level.BAD, "it is stuck, and nobody knows why", f"holdfast workflow resume {id_}")
    told = f"its code can't go on since {since(stuck.at)}: {stuck.message} [{stuck.code}]"
    if stuck.worker:
        told += f"; last tried by worker {stuck.worker}"
    return Finding(
        Level.BAD,
        told,
        "deploy code that fits its history, and it goes on by itself; or try again now: "
        f"holdfast workflow resume {id_}",
    )


def _pending(seen: Examined) -> Finding:
    execution, ready = seen.execution, seen.execution.ready
    assert ready is not None, "that is what pending means"
    if ready.not_before_at > seen.now:
        why = f"is tried again after {execution.crashes} crashes of its worker" if execution.crashes else "begins"
        return Finding(Level.NOTE, f"it {why} at {since(ready.not_before_at)}")
    told = f"it has news since {since(ready.since_at)}, and no worker has taken it"
    wanted = f"a worker with kind {execution.kind!r} version {execution.version!r} on queue {execution.queue!r}"
    run = f"run {wanted}: holdfast worker APP --queue {quote(execution.queue)}"
    if seen.sessions is not None and not seen.sessions.knows(execution.kind, execution.version):
        return Finding(Level.BAD, f"{told}; no worker ever had this kind and version", run)
    if seen.sessions is not None and not seen.sessions.alive:
        return Finding(Level.BAD, f"{told}; no worker is connected to this database", run)
    level = Level.BAD if seen.now - ready.since_at > UNCLAIMED else Level.NOTE
    return Finding(level, told, run)


def _running(seen: Examined) -> Finding:
    ready = seen.execution.ready
    assert ready is not None, "that is what running means"
    holder = "" if ready.worker in {None, UNTOLD} else f" {ready.worker}"
    told = f"{'a worker' if not holder else 'worker' + holder} runs its code since {since(ready.since_at)}"
    if seen.sessions is not None and ready.worker is not None:
        row = seen.sessions.worker(ready.worker)
        if row is None or row.lease_until_at <= seen.now:
            over = "is unknown" if row is None else f"was last heard of before {since(row.lease_until_at)}"
            return Finding(Level.BAD, f"{told}, but that worker {over}", "take it back: holdfast recover")
    return Finding(Level.OK, told, "if it stays so, look at the log of that worker: a step may hang")


def _closed(seen: Examined) -> Finding:
    execution = seen.execution
    id_ = quote(execution.id)
    ended = f"at {since(execution.closed_at)}" if execution.closed_at is not None else ""
    last = seen.last_events[-1].body if seen.last_events else None
    again = f"once the cause is gone: holdfast workflow retry {id_}"
    if execution.successor is not None:
        return Finding(
            Level.OK,
            f"it ended {ended}; {execution.successor} goes on in its place",
            f"holdfast workflow show {execution.successor}",
        )
    match last:
        case e.WorkflowFailed():
            return Finding(Level.BAD, f"it failed {ended}: {words.failure(last.failure)}", again)
        case e.WorkflowTimedOut():
            return Finding(Level.BAD, f"it was not done in its time, which ended {ended}", again)
        case e.WorkflowCancelled() | e.WorkflowTerminated():
            reason = f": {last.reason}" if last.reason else ""
            return Finding(Level.NOTE, f"it was {execution.status.lower()} {ended}{reason}", again)
    return Finding(Level.OK, f"it has completed {ended}")


def _waiting(seen: Examined, wait: Wait) -> Iterator[Finding]:
    id_, name = quote(seen.execution.workflow_id), quote(wait.name)
    where = f" ({wait.line})" if wait.line else ""
    told = f"it waits for {words.wait(wait)}{where} since {since(seen.waits_since)}"
    match wait.kind:
        case "signal":
            yield Finding(Level.OK, told, f"send it: holdfast workflow signal {id_} {name} --input JSON")
        case "timer":
            yield _timer(seen, wait, where)
        case "task":
            yield _task(seen, wait, told)
        case "promise":
            promise = quote(f"{seen.execution.id}:{wait.name}")
            yield Finding(Level.OK, told, f"settle it: holdfast promise resolve {promise} --input JSON")
        case "event" | "message" | "broadcast":
            yield _subscription(seen, wait, told)
        case "child":
            child = seen.children.get(wait.number)
            yield Finding(Level.OK, told, f"look at it: holdfast workflow show {child}" if child else "")
        case "condition" | "call":
            yield Finding(Level.OK, told, "only a signal, an update or one of its other waits can change that")
        case _:
            yield Finding(Level.OK, told)


def _timer(seen: Examined, wait: Wait, where: str) -> Finding:
    due = wait.until_at
    if due is not None and seen.now - due > LATE:
        return Finding(
            Level.BAD,
            f"its {words.wait(wait)}{where} is {length(seen.now - due)} late: nothing runs on this database",
            "start a worker, a server or `holdfast dev`; or once: holdfast recover",
        )
    left = f", {since(due).rpartition(', ')[2]}" if due is not None else ""
    return Finding(Level.OK, f"its {words.wait(wait)}{where} goes on meanwhile{left}")


def _task(seen: Examined, wait: Wait, told: str) -> Finding:
    row = next((task for task in seen.tasks if task.task_no == wait.number), None)
    if row is None:
        return Finding(Level.NOTE, f"{told}, which has just ended, or is missing", "if it stays so: holdfast recover")
    told = f"{told}: attempt {row.attempt}, {words.task_state(row)}"
    if row.last_failure is not None:
        told += f"; the last one failed with {words.failure(row.last_failure)}"
    if row.worker is not None:
        return Finding(Level.OK, told)
    if row.deferred:
        return Finding(Level.OK, told, "whoever has its token: holdfast task complete TOKEN --input JSON")
    if row.not_before_at > seen.now:
        return Finding(Level.NOTE, told, "mend what it says; it is tried again by itself")
    run = f"run a worker with task {row.kind!r} on queue {row.queue!r}: holdfast worker APP --queue {quote(row.queue)}"
    unclaimed = seen.now - max(row.scheduled_at, row.not_before_at) > UNCLAIMED
    return Finding(Level.BAD if unclaimed else Level.NOTE, told, run)


def _subscription(seen: Examined, wait: Wait, told: str) -> Finding:
    row = next((found for found in seen.waits if found.wait_no == wait.number), None)
    if row is None:
        return Finding(Level.NOTE, told, "if it stays so: holdfast recover")
    if row.where:
        told += f", where {words.short(row.where)}"
    refusal = seen.refusals.get(row.wait_no)
    if refusal is not None:
        told += f"; {words.short(refusal, 300)}"
    key = quote(row.key)
    match wait.kind:
        case "broadcast":
            return Finding(Level.OK, told, f"throw it: holdfast broadcast {key}")
        case "message":
            return Finding(Level.OK, told, f"send it: holdfast message {key} {quote(row.eq_value or '')} --input JSON")
    return Finding(Level.OK, told, f"publish it: holdfast event publish {key} --input JSON")
