"""Planted bugs: each breaks one rule of the engine, from outside, for as long as its `with` block runs.

They show that the tests would notice. Nothing in the engine knows of them and no setting reaches them: a mutant puts
another function in the place of a rule. Use them in tests only:

    with planted("no_fencing"):
        ...

    mutants.from_environment()      # in a test's own application: HOLDFAST_MUTANT=no_fencing, for the whole process
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from msgspec import Raw, json, structs

from holdfast.contract.workers import TurnVerdict
from holdfast.engine import group_commit, idempotency
from holdfast.engine.executions import rebuild, reset, signal, signal_with_start, start, terminate
from holdfast.engine.group_commit import OperationBatch
from holdfast.engine.rules import children, closing, commands, messages, promises, resets, signals, tasks
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.engine.turns import complete
from holdfast.engine.upkeep import run_due
from holdfast.engine.workers import heartbeat, register
from holdfast.errors import HoldfastError, InvalidRequest, StaleAttempt, StaleClaim
from holdfast.model import events as e
from holdfast.model.executions import Execution, RequestRow, TaskRow
from holdfast.model.messages import PromiseState, SubscriptionKind
from holdfast.model.values import Failure, ParentClose, RetryPolicy, Token
from holdfast.replay.machine import Machine

VARIABLE = "HOLDFAST_MUTANT"

Patch = Callable[[Any, str, Any], None]
_MUTANTS: dict[str, Callable[[Patch], None]] = {}
_BREAKS: dict[str, frozenset[str]] = {}


def _mutant(*breaks: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """`breaks`: the invariants that do not hold with it. Whoever looks for it looks for one of these."""

    def add(make: Callable[[Patch], None]) -> Callable[[Patch], None]:
        _MUTANTS[make.__name__] = make
        _BREAKS[make.__name__] = frozenset(breaks)
        return make

    return add


def names() -> tuple[str, ...]:
    """All that can be planted."""
    return tuple(_MUTANTS)


def says(name: str) -> str:
    """What the mutant does wrong, in words."""
    return (_MUTANTS[name].__doc__ or "").strip()


def breaks(name: str) -> frozenset[str]:
    """Which invariants convict it: what else it brings about, a livelock say, proves less."""
    return _BREAKS[name]


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Break one rule until the end of the block. In this process only."""
    make = _MUTANTS.get(name)
    if make is None:
        raise InvalidRequest(f"no mutant {name!r}; there are: {', '.join(_MUTANTS)}", field="name")
    with ExitStack() as undo:

        def patch(owner: Any, attribute: str, value: Any) -> None:
            undo.callback(setattr, owner, attribute, getattr(owner, attribute))
            setattr(owner, attribute, value)

        make(patch)
        yield


def from_environment() -> str | None:
    """Plant the mutant that HOLDFAST_MUTANT names, for the rest of the process; its name. For test applications."""
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    _FOR_EVER.enter_context(planted(name))
    return name


_FOR_EVER = ExitStack()


# --- ownership ----------------------------------------------------------------------------------------------------


@_mutant("I10", "I18")
def no_fencing(patch: Patch) -> None:
    """Whoever has held the lease of an execution may commit for it for ever: epoch and nonce are not compared."""

    def check_holder(execution: Execution, token: Token) -> str:
        if not execution.is_open:
            raise StaleClaim(f"execution {execution.id} is closed", execution_id=execution.id, epoch=token.epoch)
        return execution.ready.worker or "" if execution.ready is not None else ""

    patch(complete, "check_holder", check_holder)
    patch(complete, "check_here", lambda *_: None)


@_mutant("I11")
def attempt_not_checked(patch: Patch) -> None:
    """A report counts for whatever attempt of the task is there, even if its own is long over."""

    def task(self: UnitOfWork, org: str, key: tuple[str, int], token: Token) -> TaskRow:
        row = self.loaded.tasks.get(key)
        if row is None or row.org != org:
            raise StaleAttempt(f"task {key[1]} is gone", execution_id=key[0], task_no=key[1], attempt=token.epoch)
        return row

    patch(UnitOfWork, "task", task)


@_mutant("I11", "I12")
def lease_too_short(patch: Patch) -> None:
    """A session counts as lost at once: its leases are taken back while it is alive."""

    def failing(decide: Callable[..., Any]) -> Callable[..., Any]:
        def decided(self: Any, uow: UnitOfWork) -> Any:
            answer = decide(self, uow)
            for worker in uow.changes.workers.values():
                worker.lease_until_at = uow.now
            return answer

        return decided

    patch(register.Register, "decide", failing(register.Register.decide))
    patch(heartbeat.RecordHeartbeat, "decide", failing(heartbeat.RecordHeartbeat.decide))


@_mutant("I16", "I18")
def run_ahead_unchecked(patch: Patch) -> None:
    """A turn that was run ahead is recorded, although something else came in between."""
    judge = complete.Complete._judge

    def judged(self: Any, execution: Execution) -> Any:
        turns, ahead, verdict = judge(self, execution)
        if verdict is TurnVerdict.STEPS_ONLY:
            return turns, self.request.after_steps, TurnVerdict.RECORDED
        return turns, ahead, verdict

    patch(complete.Complete, "_judge", judged)


# --- commits ------------------------------------------------------------------------------------------------------


@_mutant("I06", "I17", "I19")
def ack_before_commit(patch: Patch) -> None:
    """Callers are answered when it is decided, not when it is committed."""
    decide = OperationBatch.decide

    def decided(self: Any, loaded: Any) -> Any:
        changes = decide(self, loaded)
        told = [(member.future, member.answer, member.refusal) for member in self._members]
        self._queue.call(lambda: _tell(told))
        return changes

    patch(OperationBatch, "decide", decided)


def _tell(told: list[tuple[Any, Any, BaseException | None]]) -> None:
    for future, answer, refusal in told:
        if future.done():
            continue
        if refusal is None:
            future.set_result(answer)
        else:
            future.set_exception(refusal)


@_mutant("I07", "I23")
def requests_forgotten(patch: Patch) -> None:
    """A repeated request is done again: nothing is remembered under its id."""
    patch(group_commit, "decide_once", lambda operation, uow: operation.decide(uow))


@_mutant("I03")
def start_runs_twice(patch: Patch) -> None:
    """The key of a request counts only until its execution is closed: a late repeat begins another one."""
    counts = idempotency.is_in_use

    def counted(uow: UnitOfWork, known: RequestRow) -> bool:
        begun = uow.loaded.executions.get(known.execution_id or "")
        return counts(uow, known) and (begun is None or begun.is_open)

    patch(idempotency, "is_in_use", counted)


@_mutant("I19")
def key_without_effect(patch: Patch) -> None:
    """The key of a request is kept even if the request was refused."""
    once = idempotency.decide_once

    def decided(operation: Any, uow: UnitOfWork) -> Any:
        try:
            return once(operation, uow)
        except HoldfastError:
            request = operation.request
            uow.changes.requests.append(
                RequestRow(
                    org=request.org, request_id=request.request_id, fingerprint="", answer=b"{}", created_at=uow.now
                )
            )
            raise

    patch(group_commit, "decide_once", decided)


@_mutant("I01")
def sequence_gap(patch: Patch) -> None:
    """A signal that comes right after another one leaves a number out."""
    append = UnitOfWork.append

    def appended(self: UnitOfWork, execution: Execution, body: e.EventBody) -> e.HistoryEvent:
        before = self.appended.get(execution.id)
        if isinstance(body, e.SignalReceived) and before and isinstance(before[-1].body, e.WorkflowStarted):
            execution.last_seq += 1
        return append(self, execution, body)

    patch(UnitOfWork, "append", appended)


@_mutant("I05")
def time_runs_back(patch: Patch) -> None:
    """An event has the time of the clock, even if that has been set back since the event before it."""

    def append(self: UnitOfWork, execution: Execution, body: e.EventBody) -> e.HistoryEvent:
        execution.updated_at = self.now
        return kept(self, execution, body)

    kept = UnitOfWork.append
    patch(UnitOfWork, "append", append)


@_mutant("I17")
def two_open_runs(patch: Patch) -> None:
    """A start does not look for the open execution of its workflow id."""
    for module in (start, signal_with_start):
        for name in ("last_execution", "open_execution"):
            if hasattr(module, name):
                patch(module, name, lambda uow, org, workflow_id: None)


# --- waking -------------------------------------------------------------------------------------------------------


@_mutant("I16")
def wake_up_lost(patch: Patch) -> None:
    """What comes while a turn is being committed is forgotten when the execution goes back to waiting."""
    decide = complete.Complete.decide

    def decided(self: Any, uow: UnitOfWork) -> Any:
        request = self.request
        found = uow.loaded.executions.get(request.execution_id)
        if found is not None and request.waiting_for is not None and not request.steps:
            self.request = structs.replace(request, base_seq=max(request.base_seq, found.last_seq))
        try:
            return decide(self, uow)
        finally:
            self.request = request

    patch(complete.Complete, "decide", decided)


@_mutant("I16")
def task_result_not_delivered(patch: Patch) -> None:
    """A task's result is recorded, but nobody wakes the execution for it unless it has other news."""
    patch(tasks, "wake", lambda uow, execution: None)


@_mutant("I16")
def cancel_not_delivered(patch: Patch) -> None:
    """A cancel request is recorded, but nobody wakes the execution for it."""
    patch(children, "wake", lambda uow, execution: None)


@_mutant("I06")
def signal_overwritten(patch: Patch) -> None:
    """A signal that finds the execution at work is acknowledged and not recorded."""
    receive = signals.receive_signal

    def received(uow: UnitOfWork, execution: Execution, signal: e.SignalReceived) -> int:
        if execution.ready is not None and execution.ready.worker is not None and signal.carried_from is None:
            return execution.last_seq
        return receive(uow, execution, signal)

    patch(signals, "receive_signal", received)


@_mutant("I08")
def signal_put_off(patch: Patch) -> None:
    """A signal that finds the execution at work is acknowledged, and recorded after the next one."""
    receive = signals.receive_signal
    held: dict[str, e.SignalReceived] = {}

    def received(uow: UnitOfWork, execution: Execution, signal: e.SignalReceived) -> int:
        before = held.pop(execution.id, None)
        if before is None and execution.ready is not None and execution.ready.worker and not signal.carried_from:
            held[execution.id] = signal
            return execution.last_seq
        seq = receive(uow, execution, signal)
        if before is not None and before.request_id != signal.request_id:
            receive(uow, execution, before)
        return seq

    patch(signals, "receive_signal", received)


# --- the end ------------------------------------------------------------------------------------------------------


@_mutant("I06")
def complete_over_inbox(patch: Patch) -> None:
    """A program may close although there are signals it has not seen."""
    judge = complete.Complete._judge

    def judged(self: Any, execution: Execution) -> Any:
        unseen, execution.call_seq = execution.call_seq, 0
        try:
            return judge(self, execution)
        finally:
            execution.call_seq = unseen

    patch(complete.Complete, "_judge", judged)


@_mutant("I04")
def closed_takes_signals(patch: Patch) -> None:
    """A signal is appended to an execution that has ended."""
    patch(signal, "check_signal", lambda uow, execution: None)


@_mutant("I06")
def unread_not_dead_lettered(patch: Patch) -> None:
    """An execution that is ended from outside leaves no dead letters."""
    end = closing.close_externally

    def ended(uow: UnitOfWork, execution: Execution, *rest: Any, **named: Any) -> None:
        letters, dead_letter = len(uow.changes.dead_letters), len(uow.changes.dead_letter)
        end(uow, execution, *rest, **named)
        del uow.changes.dead_letters[letters:], uow.changes.dead_letter[dead_letter:]

    for module in (closing, commands, run_due, start, terminate):
        patch(module, "close_externally", ended)


@_mutant("I06")
def dead_letters_without_reason(patch: Patch) -> None:
    """Dead letters do not say why they are."""
    patch(closing, "CLOSED", "")


@_mutant("I06", "I09")
def continue_drops_signals(patch: Patch) -> None:
    """What a run has not read is not handed over to the next one."""
    patch(commands, "carry", lambda uow, successor, event: None)


@_mutant("I19")
def rows_outlive_close(patch: Patch) -> None:
    """Tasks and timers of a closed execution stay."""

    def drop_rows(uow: UnitOfWork, execution: Execution) -> None:
        execution.open_tasks = execution.open_timers = 0

    patch(closing, "_drop_rows", drop_rows)


@_mutant("I10")
def child_notified_twice(patch: Patch) -> None:
    """A parent hears of a child's end two times."""
    tell = children.notify_parent

    def told(uow: UnitOfWork, child: Execution, end: e.EventBody) -> None:
        tell(uow, child, end)
        tell(uow, child, end)

    patch(closing, "notify_parent", told)


@_mutant("I15")
def parent_not_notified(patch: Patch) -> None:
    """A parent hears nothing of its child's end."""
    patch(closing, "notify_parent", lambda uow, child, end: None)


@_mutant("I15")
def children_always_abandoned(patch: Patch) -> None:
    """What is to become of a child when its parent closes is not looked up: it lives on."""
    patch(children, "parent_close_action", lambda parent, child: ParentClose.ABANDON)


@_mutant("I15")
def children_always_terminated(patch: Patch) -> None:
    """The same: it dies."""
    patch(children, "parent_close_action", lambda parent, child: ParentClose.TERMINATE)


@_mutant("I15")
def parent_close_swapped(patch: Patch) -> None:
    """A child that is to be cancelled is terminated, and one that is to be terminated is cancelled."""
    parent_close_action = children.parent_close_action
    other = {ParentClose.CANCEL: ParentClose.TERMINATE, ParentClose.TERMINATE: ParentClose.CANCEL}

    def swapped(parent: Execution, child: Execution) -> ParentClose:
        decided = parent_close_action(parent, child)
        return other.get(decided, decided)

    patch(children, "parent_close_action", swapped)


# --- time ---------------------------------------------------------------------------------------------------------


@_mutant("I13")
def timer_fires_twice(patch: Patch) -> None:
    """A timer that has fired stays in its table."""
    patch(
        UnitOfWork,
        "drop_timer",
        lambda self, execution, timer_no: (execution.id, timer_no) in self.loaded.timers,
    )


@_mutant("I12")
def retries_beyond_policy(patch: Patch) -> None:
    """A task is tried again, however often it has been."""

    def allows(self: RetryPolicy, failure: Failure, attempt: int) -> bool:
        return not failure.non_retryable

    patch(RetryPolicy, "allows", allows)


@_mutant("I12")
def success_discarded(patch: Patch) -> None:
    """The result of a task's first attempt is thrown away, and the task run again."""
    complete_task = tasks.complete

    def completed(uow: UnitOfWork, execution: Execution, task: TaskRow, result: Any) -> None:
        if task.attempt == 1:
            tasks.rest(uow, task, 0)
        else:
            complete_task(uow, execution, task, result)

    patch(tasks, "complete", completed)


@_mutant("I11")
def attempts_overlap(patch: Patch) -> None:
    """A task is begun once more a tenth of a second after it was begun, as if its worker were lost."""
    attempt_deadline = tasks._attempt_deadline

    def deadline(task: TaskRow, beat_at: int | None) -> int:
        due_at = attempt_deadline(task, beat_at)
        return due_at if task.attempt > 1 or task.started_at is None else min(due_at, task.started_at + 100_000)

    patch(tasks, "_attempt_deadline", deadline)
    patch(tasks, "time_out", lambda uow, execution, task: tasks.rest(uow, task, 0))


# --- the outside --------------------------------------------------------------------------------------------------


@_mutant("I10", "I14")
def promise_settled_twice(patch: Patch) -> None:
    """The last to settle a promise counts, not the first."""
    settle = promises.settle

    def settled(uow: UnitOfWork, execution: Execution, promise: Any, how: Any) -> bool:
        if execution.is_open:
            promise.state = PromiseState.PENDING
        return settle(uow, execution, promise, how)

    patch(promises, "settle", settled)


@_mutant("I14")
def promise_value_wrong(patch: Patch) -> None:
    """A program is told who has settled its promise, in the place of the value."""
    deliver = Machine._deliver

    def delivered(self: Machine, event: e.HistoryEvent) -> Any:
        if isinstance(event.body, e.PromiseResolved):
            told = Raw(json.encode(event.body.settled_by))
            event = e.HistoryEvent(event.seq, event.at, structs.replace(event.body, value=told))
        return deliver(self, event)

    patch(Machine, "_deliver", delivered)


@_mutant("I26")
def event_missed(patch: Patch) -> None:
    """A wait does not see what was published just before it began."""
    patch(messages, "_look_back", lambda uow, execution, event, wait: None)


@_mutant("I20")
def subscription_stays(patch: Patch) -> None:
    """Whoever has got a broadcast still waits for it: the next page, or the next broadcast, comes to him again."""
    deliver = messages._deliver

    def delivered(uow: UnitOfWork, execution: Execution, wait: Any, *rest: Any) -> bool:
        done: bool = deliver(uow, execution, wait, *rest)
        if done and wait.kind is SubscriptionKind.BROADCAST and wait.id in uow.changes.deleted_subscriptions:
            uow.changes.deleted_subscriptions.remove(wait.id)
        return done

    patch(messages, "_deliver", delivered)


# --- resets, forks, retries ---------------------------------------------------------------------------------------


@_mutant("I06")
def reset_forgets_signals(patch: Patch) -> None:
    """What came after the event that a reset goes back to is not received again."""
    calls = resets.calls
    patch(
        resets,
        "calls",
        lambda tail: [event for event in calls(tail) if not isinstance(event.body, e.SignalReceived)],
    )


@_mutant("I06", "I07")
def reset_keeps_dead_letters(patch: Patch) -> None:
    """What the new execution has received stays a dead letter of the old one."""
    patch(reset.Reset, "_settle_dead_letters", lambda self, uow, old, carried: None)


@_mutant("I13")
def reset_revives_timers(patch: Patch) -> None:
    """A timer of the past that was cancelled runs again."""
    settled = resets._SETTLED
    patch(resets, "_SETTLED", {kind: what for kind, what in settled.items() if kind is not e.TimerCancelled})


@_mutant("I23")
def redone_twice(patch: Patch) -> None:
    """A repeated reset, fork or retry is done again: its request id does not count."""
    once = idempotency.decide_once

    def decided(operation: Any, uow: UnitOfWork) -> Any:
        return operation.decide(uow) if isinstance(operation, rebuild.Rebuild) else once(operation, uow)

    patch(group_commit, "decide_once", decided)


@_mutant("I15", "I16")
def reset_loses_children(patch: Patch) -> None:
    """An open child of the past stays with the old execution; the new one waits for it in vain."""
    patch(resets, "move_child", lambda uow, child_no, child, new, prefix: None)


@_mutant("I16")
def reset_drops_tasks(patch: Patch) -> None:
    """Tasks of the past without outcome are not put on their queues again."""
    prefix_of = resets.prefix_of
    patch(resets, "prefix_of", lambda history, seq: structs.replace(prefix_of(history, seq), tasks={}))


# --- replay -------------------------------------------------------------------------------------------------------


@_mutant("I18")
def signals_seen_early(patch: Patch) -> None:
    """A program that is rebuilt sees all signals of its history from the beginning."""
    replay = Machine.replay

    def replayed(self: Machine, history: Any) -> None:
        queued = self._signals
        for event in history:
            if type(event.body) is e.SignalReceived:
                queue = queued.setdefault(event.body.signal_name, deque())
                queue.append((event.seq, event.body.signal_value))
        replay(self, [event for event in history if type(event.body) is not e.SignalReceived])

    patch(Machine, "replay", replayed)
