"""What committed batches look like to telemetry: a batch that takes its times, and the meters that read it.

An engine that is not observed uses none of this: its queue makes plain batches. All counting happens on the event
loop, after the callers have been answered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from holdfast.contract.upkeep import DueWork
from holdfast.contract.workers import TaskWork, TurnWork
from holdfast.engine.group_commit import Effects, OperationBatch, OperationQueue, PendingOperation
from holdfast.engine.messages.broadcast import Broadcast
from holdfast.engine.messages.publish import Publish
from holdfast.engine.post_commit import Chunks
from holdfast.engine.tasks.complete import Complete as CompleteTask
from holdfast.engine.tasks.defer import Defer
from holdfast.engine.tasks.fail import Fail
from holdfast.engine.turns.complete import Complete as CompleteTurn
from holdfast.model import events as e
from holdfast.model.executions import Execution
from holdfast.model.values import MICRO
from holdfast.store.protocol import Changes, Loaded, LoadPlan
from holdfast.telemetry.meters import Meters
from holdfast.telemetry.traces import Tracing

REMEMBERED_SIGNALS = 10_000
_REPORTS: dict[type[Any], str] = {CompleteTask: "completed", Fail: "failed", Defer: "deferred"}
_SENT = frozenset({Publish, Broadcast})


class Observer(Protocol):
    """Told of every batch of an engine, on its loop."""

    def committed(self, batch: ObservedBatch) -> None: ...

    def failed(self, error: BaseException) -> None: ...

    def split(self) -> None: ...

    def commit_in_doubt(self) -> None: ...


class ObservedBatch(OperationBatch):
    """A batch that tells an observer what it was. `attempts` counts how often the store began it."""

    __slots__ = (
        "_observer",
        "attempts",
        "began_at",
        "changes",
        "committed_at",
        "decided_at",
        "loaded_at",
        "now",
        "ran",
    )

    def __init__(self, observer: Observer, queue: OperationQueue, members: list[PendingOperation]) -> None:
        super().__init__(queue, members)
        self._observer = observer
        self.attempts = 0

    @property
    def members(self) -> Sequence[PendingOperation]:
        return self._members

    @property
    def effects(self) -> Effects:
        return self._effects

    def plan(self) -> LoadPlan:
        self.attempts += 1
        self.began_at = perf_counter()
        return super().plan()

    def decide(self, loaded: Loaded) -> Changes:
        self.loaded_at = perf_counter()
        self.now = loaded.now
        self.ran = _runs(self._members, loaded)
        self.changes = super().decide(loaded)
        self.decided_at = perf_counter()
        return self.changes

    def committed(self) -> None:
        self.committed_at = perf_counter()
        super().committed()

    def answer(self, chunk: int) -> Chunks:
        yield from super().answer(chunk)
        self._observer.committed(self)

    def failed(self, error: BaseException) -> None:
        super().failed(error)
        self._queue.call(partial(self._observer.failed, error))

    def commit_in_doubt(self, error: BaseException) -> None:
        super().commit_in_doubt(error)
        self._queue.call(self._observer.commit_in_doubt)

    def split(self) -> Sequence[OperationBatch]:
        parts = super().split()
        if len(parts) > 1:
            self._queue.call(self._observer.split)
        return parts

    def closed(self) -> list[tuple[Execution, e.HistoryEvent]]:
        """The executions it has ended, with their last events."""
        changed = self.changes.changed_executions
        fresh = {execution.id: execution for execution in self.changes.new_executions} if self._effects.closed else {}
        found = []
        for (_, execution_id), outcome in self._effects.closed:
            execution = changed.get(execution_id) or fresh.get(execution_id)
            if execution is not None:
                found.append((execution, outcome.last_event))
        return found


def _runs(members: Sequence[PendingOperation], loaded: Loaded) -> list[int]:
    """How long the attempts ran that are reported here. Before the decision: it removes their rows."""
    found = []
    for member in members:
        if type(member.operation) in _REPORTS:
            request = member.operation.request
            row = loaded.tasks.get((request.execution_id, request.task_no))
            if row is not None and row.started_at is not None and row.attempt == request.token.epoch:
                found.append(loaded.now - row.started_at)
    return found


def observe(queue: OperationQueue, *observers: Observer) -> None:
    """From now on these are told of every batch."""
    observer = observers[0] if len(observers) == 1 else Several(observers)
    queue.make_batch = partial(ObservedBatch, observer)


class Several:
    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def committed(self, batch: ObservedBatch) -> None:
        for observer in self._observers:
            observer.committed(batch)

    def failed(self, error: BaseException) -> None:
        for observer in self._observers:
            observer.failed(error)

    def split(self) -> None:
        for observer in self._observers:
            observer.split()

    def commit_in_doubt(self) -> None:
        for observer in self._observers:
            observer.commit_in_doubt()


class CommitMeters:
    """Counts what batches did."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self._signals: dict[str, tuple[int, int]] = {}
        """The first signal that no recorded turn has seen, by execution: its number and its time."""

    def committed(self, batch: ObservedBatch) -> None:
        meters = self._meters
        meters.transactions.value += 1
        meters.retried.value += batch.attempts - 1
        meters.load.observe(batch.loaded_at - batch.began_at)
        meters.decide.observe(batch.decided_at - batch.loaded_at)
        meters.write.observe(batch.committed_at - batch.decided_at)
        meters.batch.observe(len(batch.members))
        for member in batch.members:
            self._count_member(member)
        for ran in batch.ran:
            meters.task_run.observe(ran / MICRO)
        self._count_events(batch.changes.events)
        self._count_leases(batch)
        for execution, last in batch.closed():
            meters.closed.of(execution.state.value).value += 1
            meters.lifetime.observe((last.at - execution.created_at) / MICRO)
            self._signals.pop(execution.id, None)

    def failed(self, error: BaseException) -> None:
        self._meters.failed.of(getattr(error, "code", "internal_error")).value += 1

    def split(self) -> None:
        self._meters.split.value += 1

    def commit_in_doubt(self) -> None:
        self._meters.commit_in_doubt.value += 1

    def _count_member(self, member: PendingOperation) -> None:
        meters, operation = self._meters, member.operation
        if member.refusal is not None:
            meters.refused.of(getattr(member.refusal, "code", "internal_error")).value += 1
            return
        kind = type(operation)
        meters.operations.of(operation_name(kind)).value += 1
        if kind is CompleteTurn:
            request = operation.request
            meters.turns.value += len(request.turns) + (request.after_steps is not None)
        elif kind in _REPORTS:
            meters.attempts.of(_REPORTS[kind]).value += 1
        elif kind in _SENT:
            meters.published.value += 1
        elif type(member.answer) is DueWork:
            self._count_due(member.answer)

    def _count_due(self, due: DueWork) -> None:
        meters = self._meters
        meters.timers.value += due.timers_fired
        meters.timed_out.value += due.tasks_timed_out
        meters.sessions_expired.value += due.sessions_expired
        if due.turns_reclaimed:
            meters.leases_lost.of("turn").value += due.turns_reclaimed
        if due.tasks_reclaimed:
            meters.leases_lost.of("task").value += due.tasks_reclaimed

    def _count_events(self, events: Sequence[tuple[str, e.HistoryEvent]]) -> None:
        meters, signals = self._meters, self._signals
        by_type = meters.events
        for execution_id, event in events:
            body = event.body
            by_type.of(body.TYPE).value += 1
            if isinstance(body, e.TurnEvent):
                waiting = signals.get(execution_id)
                if waiting is not None and body.up_to >= waiting[0]:
                    meters.reaction.observe((event.at - waiting[1]) / MICRO)
                    del signals[execution_id]
            match body:
                case e.WorkflowStarted():
                    meters.started.value += 1
                case e.SignalReceived():
                    meters.signals.value += 1
                    if len(signals) < REMEMBERED_SIGNALS:
                        signals.setdefault(execution_id, (event.seq, event.at))
                case e.StepCompleted() | e.StepFailed():
                    meters.steps.of("completed" if type(body) is e.StepCompleted else "failed").value += 1
                    meters.step_run.observe((body.finished_at - body.started_at) / MICRO)
                case e.TaskCompleted():
                    meters.tasks.of("completed").value += 1
                case e.TaskFailed():
                    meters.tasks.of("failed").value += 1
                case e.EventPublished() | e.BroadcastThrown():
                    meters.published.value += 1

    def _count_leases(self, batch: ObservedBatch) -> None:
        """How long what was handed out in this batch had waited."""
        meters = self._meters
        for _, work in batch.effects.work:
            if type(work) is TurnWork:
                meters.turn_wait.observe(max(batch.now - work.scheduled_at, 0) / MICRO)
            elif type(work) is TaskWork and work.token.epoch == 1:
                meters.task_wait.observe(max(work.started_at - work.scheduled_at, 0) / MICRO)


class CommitTraces:
    """Makes the spans of executions that a batch has closed."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    def committed(self, batch: ObservedBatch) -> None:
        for execution, last in batch.closed():
            self._tracing.executed(
                execution.id,
                execution.kind,
                status=execution.state.value,
                began_at=execution.created_at,
                ended_at=last.at,
                attributes={
                    "holdfast.org": execution.org,
                    "holdfast.workflow_id": execution.workflow_id,
                    "holdfast.workflow_kind": execution.kind,
                    "holdfast.workflow_version": execution.version,
                    "holdfast.queue": execution.queue,
                    "holdfast.history_events": execution.last_seq,
                },
                metadata=execution.metadata,
                parent_id=execution.parent_id,
            )

    def failed(self, error: BaseException) -> None: ...

    def split(self) -> None: ...

    def commit_in_doubt(self) -> None: ...


_NAMES: dict[type[Any], str] = {}


def operation_name(kind: type[Any]) -> str:
    """`turns.complete`: the noun's folder and the operation."""
    found = _NAMES.get(kind)
    if found is None:
        noun = kind.__module__.split(".")[-2]
        found = _NAMES[kind] = f"{noun}.{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', kind.__name__).lower()}"
    return found
