"""Why one execution does not move: what is known about it, and findings that each name a next step.

`examine` reads; `findings` only thinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from shlex import quote

from holdfast.contract.execution_reads import (
    ExecutionInfo,
    ListPendingTasks,
    ListPendingTimers,
    PendingTask,
    PendingTimer,
    WaitingFor,
)
from holdfast.contract.explanations import Finding, Level
from holdfast.contract.history import GetHistory
from holdfast.contract.instants import micros, micros_or_none
from holdfast.contract.messages import ListPromises, ListWaits, PromiseInfo, WaitInfo
from holdfast.contract.operation import Api
from holdfast.contract.queues import (
    DefinitionInfo,
    ListDefinitions,
    ListQueues,
    ListWorkers,
    PauseInfo,
    QueueInfo,
    WorkerInfo,
)
from holdfast.explaining import words
from holdfast.explaining.events import misses
from holdfast.explaining.words import length, since
from holdfast.model import events as e
from holdfast.model.executions import Status
from holdfast.model.messages import PromiseState
from holdfast.model.standalone import KIND_TAG, TASK_WORKFLOW, is_reserved
from holdfast.model.values import MICRO

LAST_EVENTS = 10
MOST = 1_000
LATE = 5 * MICRO
"""A timer that is so much overdue is not just about to fire."""
UNCLAIMED = 10 * MICRO
"""News that nobody has taken for so long: there is no worker for it."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Workers that were not seen to end, every workflow that one of them ever had, and what is paused."""

    workers: tuple[WorkerInfo, ...] = ()
    definitions: tuple[DefinitionInfo, ...] = ()
    alive: tuple[WorkerInfo, ...] = ()
    queues: tuple[QueueInfo, ...] = ()

    def knows(self, kind: str, version: str) -> bool:
        """The engine's own kinds are not among the definitions that are told: whoever was started was known."""
        return is_reserved(kind) or any((row.kind, row.version) == (kind, version) for row in self.definitions)

    def worker(self, session: str) -> WorkerInfo | None:
        return next((row for row in self.workers if row.id == session), None)

    def pause_of(self, queue: str) -> PauseInfo | None:
        return next((found.pause for found in self.queues if found.name == queue), None)

    @property
    def all_paused(self) -> bool:
        """Whether there are workers, and nothing is handed out to any of them."""
        return bool(self.alive) and all(worker.paused for worker in self.alive)


async def read_sessions(api: Api, org: str, now: int) -> Sessions:
    found = (await api.call(ListWorkers(org=org, limit=MOST))).workers
    workers = tuple(sorted(found, key=lambda worker: worker.id))
    return Sessions(
        workers=workers,
        definitions=(await api.call(ListDefinitions(org=org, limit=MOST))).definitions,
        alive=tuple(worker for worker in workers if micros(worker.lease_until) > now),
        queues=(await api.call(ListQueues(org=org, limit=MOST))).queues,
    )


@dataclass(frozen=True, slots=True)
class Examined:
    """What was read about one execution."""

    execution: ExecutionInfo
    now: int
    last_events: tuple[e.HistoryEvent, ...] = ()
    tasks: tuple[PendingTask, ...] = ()
    timers: tuple[PendingTimer, ...] = ()
    promises: tuple[PromiseInfo, ...] = ()
    waits: tuple[WaitInfo, ...] = ()
    children: dict[int, str] = field(default_factory=dict)
    refusals: dict[int, str] = field(default_factory=dict)
    sessions: Sessions | None = None

    @property
    def waits_since(self) -> int:
        """The end of its last turn."""
        turns = [event.at for event in self.last_events if isinstance(event.body, e.TurnCompleted)]
        return turns[-1] if turns else micros(self.execution.updated_at)


async def examine(api: Api, execution: ExecutionInfo, *, org: str, now: int) -> Examined:
    id_ = execution.id
    last = await _events(api, org, id_, after=max(0, execution.history_length - LAST_EVENTS))
    sessions = await read_sessions(api, org, now)
    if not execution.is_open:
        return Examined(execution, now, last, sessions=sessions)
    kinds = {wait.kind for wait in execution.waiting_for}
    children = await _events(api, org, id_, types=(e.ChildStarted.TYPE,)) if "child" in kinds else ()
    promises = (await api.call(ListPromises(org=org, workflow_execution_id=id_))).promises
    waits = (await api.call(ListWaits(org=org, workflow_execution_id=id_))).waits
    return Examined(
        execution=execution,
        now=now,
        last_events=last,
        tasks=(await api.call(ListPendingTasks(org=org, workflow_execution_id=id_))).tasks,
        timers=(await api.call(ListPendingTimers(org=org, workflow_execution_id=id_))).timers,
        promises=tuple(row for row in promises if row.state is PromiseState.PENDING),
        waits=waits,
        children={
            event.body.child_no: event.body.child_execution_id
            for event in children
            if isinstance(event.body, e.ChildStarted)
        },
        refusals=await _refusals(api, org, waits),
        sessions=sessions,
    )


async def _events(
    api: Api, org: str, execution_id: str, *, after: int = 0, types: tuple[str, ...] = ()
) -> tuple[e.HistoryEvent, ...]:
    found = await api.call(GetHistory(org=org, workflow_execution_id=execution_id, after=after, types=types))
    return tuple(entry.event for entry in found.events)


async def _refusals(api: Api, org: str, waits: tuple[WaitInfo, ...]) -> dict[int, str]:
    """For each wait for an event: the one that came nearest, and what refused it."""
    told: dict[int, str] = {}
    for wait in waits[:LAST_EVENTS]:
        nearest = await misses(api, org, wait)
        if nearest:
            told[wait.wait_no] = f"the nearest, event {nearest[0].event.id}: {nearest[0].reason}"
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
            told = "it waits, and says for nothing"
            return found or [Finding.of(Level.BAD, told, "holdfast recover", "waits_for_nothing")]
    return [_closed(seen)]


def _stuck(seen: Examined) -> Finding:
    stuck = seen.execution.stuck
    id_ = quote(seen.execution.workflow_id)
    if stuck is None:
        return Finding.of(Level.BAD, "it is stuck, and nobody knows why", f"holdfast workflow resume {id_}", "stuck")
    told = f"its code can't go on since {since(stuck.at, seen.now)}: {stuck.message} [{stuck.code}]"
    if stuck.worker:
        told += f"; last tried by worker {stuck.worker}"
    return Finding.of(
        Level.BAD,
        told,
        "deploy code that fits its history, and it goes on by itself; or try again now: "
        f"holdfast workflow resume {id_}",
        "stuck",
    )


def _pending(seen: Examined) -> Finding:
    execution = seen.execution
    ready_at = micros(execution.ready_since or execution.updated_at)
    if execution.not_before is not None and micros(execution.not_before) > seen.now:
        why = f"is tried again after {execution.crashes} crashes of its worker" if execution.crashes else "begins"
        return Finding.of(Level.NOTE, f"it {why} at {since(execution.not_before, seen.now)}", code="begins_later")
    told = f"it has news since {since(ready_at, seen.now)}, and no worker has taken it"
    has = f"kind {execution.kind!r} version {execution.version!r}"
    if execution.kind == TASK_WORKFLOW:
        has = f"task {execution.metadata.get(KIND_TAG, '')!r}"
    wanted = f"a worker with {has} on queue {execution.queue!r}"
    run = f"run {wanted}: holdfast worker APP --queue {quote(execution.queue)}"
    paused = _paused(seen, execution.queue, told)
    if paused is not None:
        return paused
    if seen.sessions is not None and not seen.sessions.knows(execution.kind, execution.version):
        return Finding.of(Level.BAD, f"{told}; no worker ever had this kind and version", run, "unknown_kind")
    if seen.sessions is not None and not seen.sessions.alive:
        return Finding.of(Level.BAD, f"{told}; no worker is connected to this database", run, "no_worker")
    level = Level.BAD if seen.now - ready_at > UNCLAIMED else Level.NOTE
    return Finding.of(level, told, run, "unclaimed")


def _paused(seen: Examined, queue: str, told: str) -> Finding | None:
    """What nobody takes because somebody has said so."""
    if seen.sessions is None:
        return None
    pause = seen.sessions.pause_of(queue)
    if pause is not None:
        why = f": {words.short(pause.reason, 300)}" if pause.reason else ""
        return Finding.of(
            Level.NOTE,
            f"{told}; the queue is paused since {since(pause.since, seen.now)}{why}",
            f"holdfast queue resume {quote(queue)}",
            "queue_paused",
        )
    if seen.sessions.all_paused:
        return Finding.of(
            Level.BAD,
            f"{told}; all workers are paused or being drained",
            "start another worker, or: holdfast workers resume WORKER_ID",
            "workers_paused",
        )
    return None


def _running(seen: Examined) -> Finding:
    execution = seen.execution
    holder = "a worker" if execution.worker is None else f"worker {execution.worker}"
    told = f"{holder} runs its code since {since(execution.ready_since or execution.updated_at, seen.now)}"
    if seen.sessions is not None and execution.worker is not None:
        row = seen.sessions.worker(execution.worker)
        if row is None or micros(row.lease_until) <= seen.now:
            over = "is unknown" if row is None else f"was last heard of before {since(row.lease_until, seen.now)}"
            told = f"{told}, but that worker {over}"
            return Finding.of(Level.BAD, told, "take it back: holdfast recover", "worker_lost")
    return Finding.of(Level.OK, told, "if it stays so, look at the log of that worker: a step may hang", "running")


def _closed(seen: Examined) -> Finding:
    execution = seen.execution
    id_ = quote(execution.id)
    ended = f"at {since(execution.closed_at, seen.now)}" if execution.closed_at is not None else ""
    last = seen.last_events[-1].body if seen.last_events else None
    again = f"once the cause is gone: holdfast workflow retry {id_}"
    if execution.successor is not None:
        return Finding.of(
            Level.OK,
            f"it ended {ended}; {execution.successor} goes on in its place",
            f"holdfast workflow show {execution.successor}",
            "goes_on",
        )
    match last:
        case e.WorkflowFailed():
            return Finding.of(Level.BAD, f"it failed {ended}: {words.failure(last.failure)}", again, "failed")
        case e.WorkflowTimedOut():
            return Finding.of(Level.BAD, f"it was not done in its time, which ended {ended}", again, "timed_out")
        case e.WorkflowCancelled() | e.WorkflowTerminated():
            reason = f": {last.reason}" if last.reason else ""
            how = execution.status.lower()
            return Finding.of(Level.NOTE, f"it was {how} {ended}{reason}", again, how)
    return Finding.of(Level.OK, f"it has completed {ended}", code="completed")


def _waiting(seen: Examined, wait: WaitingFor) -> Iterator[Finding]:
    id_, name = quote(seen.execution.workflow_id), quote(wait.name)
    where = f" ({wait.line})" if wait.line else ""
    told = f"it waits for {words.wait(wait)}{where} since {since(seen.waits_since, seen.now)}"
    code = f"waits_for_{wait.kind}"
    match wait.kind:
        case "signal":
            yield Finding.of(Level.OK, told, f"send it: holdfast workflow signal {id_} {name} --input JSON", code)
        case "timer":
            yield _timer(seen, wait, where)
        case "task":
            yield _task(seen, wait, told)
        case "promise":
            promise = quote(f"{seen.execution.id}:{wait.name}")
            yield Finding.of(Level.OK, told, f"settle it: holdfast promise resolve {promise} --input JSON", code)
        case "event" | "message" | "broadcast":
            yield _subscription(seen, wait, told)
        case "child":
            child = seen.children.get(wait.number)
            yield Finding.of(Level.OK, told, f"look at it: holdfast workflow show {child}" if child else "", code)
        case "condition" | "call":
            yield Finding.of(Level.OK, told, "only a signal, an update or one of its other waits can change that", code)
        case _:
            yield Finding.of(Level.OK, told, code=code)


def _timer(seen: Examined, wait: WaitingFor, where: str) -> Finding:
    due = micros_or_none(wait.until)
    if due is not None and seen.now - due > LATE:
        return Finding.of(
            Level.BAD,
            f"its {words.wait(wait)}{where} is {length(seen.now - due)} late: nothing runs on this database",
            "start a worker, a server or `holdfast dev`; or once: holdfast recover",
            "timer_late",
        )
    left = f", {since(due, seen.now).rpartition(', ')[2]}" if due is not None else ""
    return Finding.of(Level.OK, f"its {words.wait(wait)}{where} goes on meanwhile{left}", code="waits_for_timer")


def _task(seen: Examined, wait: WaitingFor, told: str) -> Finding:
    row = next((task for task in seen.tasks if task.task_no == wait.number), None)
    if row is None:
        told = f"{told}, which has just ended, or is missing"
        return Finding.of(Level.NOTE, told, "if it stays so: holdfast recover", "task_missing")
    told = f"{told}: attempt {row.attempt}, {words.task_state(row, seen.now)}"
    if row.last_failure is not None:
        told += f"; the last one failed with {words.failure(row.last_failure)}"
    if row.running:
        return Finding.of(Level.OK, told, code="task_running")
    if row.deferred:
        complete = "whoever has its token: holdfast task complete TOKEN --input JSON"
        if seen.execution.kind == TASK_WORKFLOW:
            complete = f"holdfast task complete {quote(seen.execution.workflow_id)} --input JSON"
        return Finding.of(Level.OK, told, complete, "task_deferred")
    if row.not_before is not None and micros(row.not_before) > seen.now:
        return Finding.of(Level.NOTE, told, "mend what it says; it is tried again by itself", "task_retried_later")
    paused = _paused(seen, row.queue, told)
    if paused is not None:
        return paused
    run = f"run a worker with task {row.kind!r} on queue {row.queue!r}: holdfast worker APP --queue {quote(row.queue)}"
    unclaimed = seen.now - micros(max(row.scheduled_at, row.not_before or row.scheduled_at)) > UNCLAIMED
    return Finding.of(Level.BAD if unclaimed else Level.NOTE, told, run, "task_unclaimed")


def _subscription(seen: Examined, wait: WaitingFor, told: str) -> Finding:
    row = next((found for found in seen.waits if found.wait_no == wait.number), None)
    if row is None:
        return Finding.of(Level.NOTE, told, "if it stays so: holdfast recover", "wait_missing")
    if row.where:
        told += f", where {words.short(row.where)}"
    refusal = seen.refusals.get(row.wait_no)
    if refusal is not None:
        told += f"; {words.short(refusal, 300)}"
    key, code = quote(row.key), f"waits_for_{wait.kind}"
    match wait.kind:
        case "broadcast":
            return Finding.of(Level.OK, told, f"throw it: holdfast broadcast {key}", code)
        case "message":
            send = f"send it: holdfast message {key} {quote(row.correlation_key or '')} --input JSON"
            return Finding.of(Level.OK, told, send, code)
    return Finding.of(Level.OK, told, f"publish it: holdfast event publish {key} --input JSON", code)
