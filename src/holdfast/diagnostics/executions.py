"""Why one execution does not move: what is known about it, and findings that each name a next step.

`examine` reads; `findings` only thinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from shlex import quote
from typing import NamedTuple

from holdfast.contract.deployments import Deployments
from holdfast.contract.executions import Executions
from holdfast.contract.explanations import Finding, Level
from holdfast.contract.messages import Messages
from holdfast.diagnostics import formatting
from holdfast.diagnostics.events import misses
from holdfast.diagnostics.formatting import length, since
from holdfast.model import events as e
from holdfast.model.executions import DefinitionRow, Execution, TaskRow, TimerRow, WorkerRow, WorkflowStatus
from holdfast.model.messages import PromiseRow, PromiseState, SubscriptionRow
from holdfast.model.pauses import Pause
from holdfast.model.standalone import KIND_TAG, TASK_WORKFLOW, is_reserved
from holdfast.model.values import MICRO, Wait
from holdfast.transport.rest.reading import UNTOLD

LAST_EVENTS = 10
MOST = 1_000
LATE = 5 * MICRO
"""A timer that is so much overdue is not just about to fire."""
UNCLAIMED = 10 * MICRO
"""News that nobody has taken for so long: there is no worker for it."""


class Sources(NamedTuple):
    """Where to look. `deployments` is None where nobody can be asked about workers."""

    executions: Executions
    messages: Messages
    deployments: Deployments | None
    org: str


@dataclass(frozen=True, slots=True)
class Sessions:
    """Workers that were not seen to end, every workflow that one of them ever had, and what is paused."""

    workers: tuple[WorkerRow, ...] = ()
    definitions: tuple[DefinitionRow, ...] = ()
    alive: tuple[WorkerRow, ...] = ()
    paused_workers: tuple[Pause, ...] = ()
    paused_queues: tuple[Pause, ...] = ()

    def knows(self, kind: str, version: str) -> bool:
        """The engine's own kinds are not among the definitions that are told: whoever was started was known."""
        return is_reserved(kind) or any((row.kind, row.version) == (kind, version) for row in self.definitions)

    def worker(self, session: str) -> WorkerRow | None:
        return next((row for row in self.workers if row.id == session), None)

    def pause_of(self, queue: str) -> Pause | None:
        return next((pause for pause in self.paused_queues if pause.name == queue), None)

    @property
    def all_paused(self) -> bool:
        """Whether there are workers, and nothing is handed out to any of them."""
        stopped = {pause.name for pause in self.paused_workers}
        return bool(self.alive) and all(row.id in stopped for row in self.alive)


async def read_sessions(deployments: Deployments, org: str, now: int) -> Sessions:
    workers = await deployments.workers(org, MOST)
    rows = tuple(sorted((found.row for found in workers), key=lambda row: row.id))
    return Sessions(
        workers=rows,
        definitions=tuple(await deployments.definitions(org, MOST)),
        alive=tuple(row for row in rows if row.lease_until_at > now),
        paused_workers=tuple(found.pause for found in workers if found.pause is not None),
        paused_queues=tuple(found.pause for found in await deployments.queues(org, MOST) if found.pause is not None),
    )


@dataclass(frozen=True, slots=True)
class Examined:
    """What was read about one execution. `sessions` is None where nobody can be asked about workers."""

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


async def examine(sources: Sources, execution: Execution, *, now: int) -> Examined:
    executions, messages, deployments, org = sources
    id_ = execution.id
    after = max(0, execution.last_seq - LAST_EVENTS)
    last = tuple(await executions.history(org, id_, after))
    sessions = None if deployments is None else await read_sessions(deployments, org, now)
    if not execution.is_open:
        return Examined(execution, now, last, sessions=sessions)
    kinds = {wait.kind for wait in execution.waiting_for}
    children = await executions.history(org, id_, types=(e.ChildStarted.TYPE,)) if "child" in kinds else ()
    promises = await messages.promises(org, id_)
    waits = tuple(await messages.waits(org, id_))
    return Examined(
        execution=execution,
        now=now,
        last_events=last,
        tasks=tuple(await executions.tasks(org, id_)),
        timers=tuple(await executions.timers(org, id_)),
        promises=tuple(row for row in promises if row.state is PromiseState.PENDING),
        waits=waits,
        children={
            event.body.child_no: event.body.child_execution_id
            for event in children
            if isinstance(event.body, e.ChildStarted)
        },
        refusals=await _refusals(messages, org, waits),
        sessions=sessions,
    )


async def _refusals(messages: Messages, org: str, waits: tuple[SubscriptionRow, ...]) -> dict[int, str]:
    """For each wait for an event: the one that came nearest, and what refused it."""
    text: dict[int, str] = {}
    for wait in waits[:LAST_EVENTS]:
        nearest = await misses(messages, org, wait)
        if nearest:
            text[wait.wait_no] = f"the nearest, event {nearest[0].event.id}: {nearest[0].reason}"
    return text


def findings(seen: Examined) -> list[Finding]:
    """What to know about an execution, the most important first."""
    execution = seen.execution
    match execution.status:
        case WorkflowStatus.STUCK:
            return [_stuck(seen)]
        case WorkflowStatus.PENDING:
            return [_pending(seen)]
        case WorkflowStatus.RUNNING:
            return [_running(seen)]
        case WorkflowStatus.WAITING:
            waits = sorted(execution.waiting_for, key=lambda wait: wait.kind == "timer")
            found = [finding for wait in waits for finding in _waiting(seen, wait)]
            text = "it waits, and says for nothing"
            return found or [Finding(Level.BAD, text, "holdfast recover", "waits_for_nothing")]
    return [_closed(seen)]


def _stuck(seen: Examined) -> Finding:
    stuck = seen.execution.stuck
    id_ = quote(seen.execution.workflow_id)
    if stuck is None:
        return Finding(Level.BAD, "it is stuck, and nobody knows why", f"holdfast workflow resume {id_}", "stuck")
    text = f"its code can't go on since {since(stuck.at, seen.now)}: {stuck.message} [{stuck.code}]"
    if stuck.worker:
        text += f"; last tried by worker {stuck.worker}"
    return Finding(
        Level.BAD,
        text,
        "deploy code that fits its history, and it goes on by itself; or try again now: "
        f"holdfast workflow resume {id_}",
        "stuck",
    )


def _pending(seen: Examined) -> Finding:
    execution, ready = seen.execution, seen.execution.ready
    assert ready is not None, "that is what pending means"
    if ready.not_before_at > seen.now:
        why = f"is tried again after {execution.crashes} crashes of its worker" if execution.crashes else "begins"
        return Finding(Level.NOTE, f"it {why} at {since(ready.not_before_at, seen.now)}", code="begins_later")
    text = f"it has news since {since(ready.since_at, seen.now)}, and no worker has taken it"
    has = f"kind {execution.kind!r} version {execution.version!r}"
    if execution.kind == TASK_WORKFLOW:
        has = f"task {(execution.metadata or {}).get(KIND_TAG, '')!r}"
    wanted = f"a worker with {has} on queue {execution.queue!r}"
    run = f"run {wanted}: holdfast worker APP --queue {quote(execution.queue)}"
    paused = _paused(seen, execution.queue, text)
    if paused is not None:
        return paused
    if seen.sessions is not None and not seen.sessions.knows(execution.kind, execution.version):
        return Finding(Level.BAD, f"{text}; no worker ever had this kind and version", run, "unknown_kind")
    if seen.sessions is not None and not seen.sessions.alive:
        return Finding(Level.BAD, f"{text}; no worker is connected to this database", run, "no_worker")
    level = Level.BAD if seen.now - ready.since_at > UNCLAIMED else Level.NOTE
    return Finding(level, text, run, "unclaimed")


def _paused(seen: Examined, queue: str, text: str) -> Finding | None:
    """What nobody takes because somebody has said so."""
    if seen.sessions is None:
        return None
    pause = seen.sessions.pause_of(queue)
    if pause is not None:
        why = f": {formatting.short(pause.reason, 300)}" if pause.reason else ""
        return Finding(
            Level.NOTE,
            f"{text}; the queue is paused since {since(pause.since_at, seen.now)}{why}",
            f"holdfast queue resume {quote(queue)}",
            "queue_paused",
        )
    if seen.sessions.all_paused:
        return Finding(
            Level.BAD,
            f"{text}; all workers are paused or being drained",
            "start another worker, or: holdfast workers resume WORKER_ID",
            "workers_paused",
        )
    return None


def _running(seen: Examined) -> Finding:
    ready = seen.execution.ready
    assert ready is not None, "that is what running means"
    holder = "" if ready.worker in {None, UNTOLD} else f" {ready.worker}"
    text = f"{'a worker' if not holder else 'worker' + holder} runs its code since {since(ready.since_at, seen.now)}"
    if seen.sessions is not None and ready.worker is not None:
        row = seen.sessions.worker(ready.worker)
        if row is None or row.lease_until_at <= seen.now:
            over = "is unknown" if row is None else f"was last heard of before {since(row.lease_until_at, seen.now)}"
            text = f"{text}, but that worker {over}"
            return Finding(Level.BAD, text, "take it back: holdfast recover", "worker_lost")
    return Finding(Level.OK, text, "if it stays so, look at the log of that worker: a step may hang", "running")


def _closed(seen: Examined) -> Finding:
    execution = seen.execution
    id_ = quote(execution.id)
    ended = f"at {since(execution.closed_at, seen.now)}" if execution.closed_at is not None else ""
    last = seen.last_events[-1].body if seen.last_events else None
    again = f"once the cause is gone: holdfast workflow retry {id_}"
    if execution.successor is not None:
        return Finding(
            Level.OK,
            f"it ended {ended}; {execution.successor} goes on in its place",
            f"holdfast workflow show {execution.successor}",
            "goes_on",
        )
    match last:
        case e.WorkflowFailed():
            return Finding(Level.BAD, f"it failed {ended}: {formatting.failure(last.failure)}", again, "failed")
        case e.WorkflowTimedOut():
            return Finding(Level.BAD, f"it was not done in its time, which ended {ended}", again, "timed_out")
        case e.WorkflowCancelled() | e.WorkflowTerminated():
            reason = f": {last.reason}" if last.reason else ""
            how = execution.status.lower()
            return Finding(Level.NOTE, f"it was {how} {ended}{reason}", again, how)
    return Finding(Level.OK, f"it has completed {ended}", code="completed")


def _waiting(seen: Examined, wait: Wait) -> Iterator[Finding]:
    id_, name = quote(seen.execution.workflow_id), quote(wait.name)
    where = f" ({wait.line})" if wait.line else ""
    text = f"it waits for {formatting.wait(wait)}{where} since {since(seen.waits_since, seen.now)}"
    code = f"waits_for_{wait.kind}"
    match wait.kind:
        case "signal":
            yield Finding(Level.OK, text, f"send it: holdfast workflow signal {id_} {name} --input JSON", code)
        case "timer":
            yield _timer(seen, wait, where)
        case "task":
            yield _task(seen, wait, text)
        case "promise":
            promise = quote(f"{seen.execution.id}:{wait.name}")
            yield Finding(Level.OK, text, f"settle it: holdfast promise resolve {promise} --input JSON", code)
        case "event" | "message" | "broadcast":
            yield _subscription(seen, wait, text)
        case "child":
            child = seen.children.get(wait.number)
            yield Finding(Level.OK, text, f"look at it: holdfast workflow show {child}" if child else "", code)
        case "condition" | "call":
            yield Finding(Level.OK, text, "only a signal, an update or one of its other waits can change that", code)
        case _:
            yield Finding(Level.OK, text, code=code)


def _timer(seen: Examined, wait: Wait, where: str) -> Finding:
    due = wait.until_at
    if due is not None and seen.now - due > LATE:
        return Finding(
            Level.BAD,
            f"its {formatting.wait(wait)}{where} is {length(seen.now - due)} late: nothing runs on this database",
            "start a worker, a server or `holdfast dev`; or once: holdfast recover",
            "timer_late",
        )
    left = f", {since(due, seen.now).rpartition(', ')[2]}" if due is not None else ""
    return Finding(Level.OK, f"its {formatting.wait(wait)}{where} goes on meanwhile{left}", code="waits_for_timer")


def _task(seen: Examined, wait: Wait, text: str) -> Finding:
    row = next((task for task in seen.tasks if task.task_no == wait.number), None)
    if row is None:
        text = f"{text}, which has just ended, or is missing"
        return Finding(Level.NOTE, text, "if it stays so: holdfast recover", "task_missing")
    text = f"{text}: attempt {row.attempt}, {formatting.task_state(row, seen.now)}"
    if row.last_failure is not None:
        text += f"; the last one failed with {formatting.failure(row.last_failure)}"
    if row.worker is not None:
        return Finding(Level.OK, text, code="task_running")
    if row.deferred:
        complete = "whoever has its token: holdfast task complete TOKEN --input JSON"
        if seen.execution.kind == TASK_WORKFLOW:
            complete = f"holdfast task complete {quote(seen.execution.workflow_id)} --input JSON"
        return Finding(Level.OK, text, complete, "task_deferred")
    if row.not_before_at > seen.now:
        return Finding(Level.NOTE, text, "mend what it says; it is tried again by itself", "task_retried_later")
    paused = _paused(seen, row.queue, text)
    if paused is not None:
        return paused
    run = f"run a worker with task {row.kind!r} on queue {row.queue!r}: holdfast worker APP --queue {quote(row.queue)}"
    unclaimed = seen.now - max(row.scheduled_at, row.not_before_at) > UNCLAIMED
    return Finding(Level.BAD if unclaimed else Level.NOTE, text, run, "task_unclaimed")


def _subscription(seen: Examined, wait: Wait, text: str) -> Finding:
    row = next((found for found in seen.waits if found.wait_no == wait.number), None)
    if row is None:
        return Finding(Level.NOTE, text, "if it stays so: holdfast recover", "wait_missing")
    if row.where:
        text += f", where {formatting.short(row.where)}"
    refusal = seen.refusals.get(row.wait_no)
    if refusal is not None:
        text += f"; {formatting.short(refusal, 300)}"
    key, code = quote(row.key), f"waits_for_{wait.kind}"
    match wait.kind:
        case "broadcast":
            return Finding(Level.OK, text, f"throw it: holdfast broadcast {key}", code)
        case "message":
            send = f"send it: holdfast message {key} {quote(row.eq_value or '')} --input JSON"
            return Finding(Level.OK, text, send, code)
    return Finding(Level.OK, text, f"publish it: holdfast event publish {key} --input JSON", code)
