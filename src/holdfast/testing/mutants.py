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

from msgspec import structs

from holdfast.contract.workers import TurnVerdict
from holdfast.engine import unit_of_work
from holdfast.engine.executions import signal_with_start, start
from holdfast.engine.rules import children, closing, commands, messages, promises, signalling, tasks
from holdfast.engine.rules.workspace import Workspace
from holdfast.engine.turns import complete
from holdfast.engine.unit_of_work import OperationBatch
from holdfast.engine.workers import heartbeat, register
from holdfast.errors import InvalidRequest, StaleAttempt, StaleClaim
from holdfast.model import events as e
from holdfast.model.executions import Execution, TaskRow
from holdfast.model.messages import PromiseState, SubscriptionKind
from holdfast.model.values import Failure, RetryPolicy, Token
from holdfast.replay.machine import Machine

VARIABLE = "HOLDFAST_MUTANT"

Patch = Callable[[Any, str, Any], None]
_MUTANTS: dict[str, Callable[[Patch], None]] = {}


def _mutant(make: Callable[[Patch], None]) -> Callable[[Patch], None]:
    _MUTANTS[make.__name__] = make
    return make


def names() -> tuple[str, ...]:
    """All that can be planted."""
    return tuple(_MUTANTS)


def says(name: str) -> str:
    """What the mutant does wrong, in words."""
    return (_MUTANTS[name].__doc__ or "").strip()


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


@_mutant
def no_fencing(patch: Patch) -> None:
    """Whoever has held the lease of an execution may commit for it for ever: epoch and nonce are not compared."""

    def check_holder(execution: Execution, token: Token) -> str:
        if not execution.is_open:
            raise StaleClaim(f"execution {execution.id} is closed", execution_id=execution.id, epoch=token.epoch)
        return execution.ready.worker or "" if execution.ready is not None else ""

    patch(complete, "check_holder", check_holder)


@_mutant
def attempt_not_checked(patch: Patch) -> None:
    """A report counts for whatever attempt of the task is there, even if its own is long over."""

    def task(self: Workspace, org: str, key: tuple[str, int], token: Token) -> TaskRow:
        row = self.loaded.tasks.get(key)
        if row is None or row.org != org:
            raise StaleAttempt(f"task {key[1]} is gone", execution_id=key[0], task_no=key[1], attempt=token.epoch)
        return row

    patch(Workspace, "task", task)


@_mutant
def lease_too_short(patch: Patch) -> None:
    """A session counts as lost at once: its leases are taken back while it is alive."""

    def hasty(decide: Callable[..., Any]) -> Callable[..., Any]:
        def decided(self: Any, ws: Workspace) -> Any:
            answer = decide(self, ws)
            for worker in ws.changes.workers.values():
                worker.lease_until_at = ws.now
            return answer

        return decided

    patch(register.Register, "decide", hasty(register.Register.decide))
    patch(heartbeat.Beat, "decide", hasty(heartbeat.Beat.decide))


@_mutant
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


@_mutant
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


@_mutant
def requests_forgotten(patch: Patch) -> None:
    """A repeated request is done again: nothing is remembered under its id."""
    patch(unit_of_work, "decide_once", lambda operation, ws: operation.decide(ws))


@_mutant
def sequence_gap(patch: Patch) -> None:
    """A signal that comes right after another one leaves a number out."""
    append = Workspace.append

    def appended(self: Workspace, execution: Execution, body: e.EventBody) -> e.HistoryEvent:
        before = self.appended.get(execution.id)
        if isinstance(body, e.SignalReceived) and before and isinstance(before[-1].body, e.WorkflowStarted):
            execution.last_seq += 1
        return append(self, execution, body)

    patch(Workspace, "append", appended)


@_mutant
def two_open_runs(patch: Patch) -> None:
    """A start does not look for the open execution of its workflow id."""
    for module in (start, signal_with_start):
        for name in ("last_execution", "open_execution"):
            if hasattr(module, name):
                patch(module, name, lambda ws, org, workflow_id: None)


# --- waking -------------------------------------------------------------------------------------------------------


@_mutant
def wake_up_lost(patch: Patch) -> None:
    """What comes while a turn is being committed is forgotten when the execution goes back to waiting."""
    decide = complete.Complete.decide

    def decided(self: Any, ws: Workspace) -> Any:
        request = self.request
        found = ws.loaded.executions.get(request.execution_id)
        if found is not None and request.waiting_for is not None and not request.steps:
            self.request = structs.replace(request, base_seq=max(request.base_seq, found.last_seq))
        try:
            return decide(self, ws)
        finally:
            self.request = request

    patch(complete.Complete, "decide", decided)


@_mutant
def task_result_not_told(patch: Patch) -> None:
    """A task's result is recorded, but nobody wakes the execution for it unless it has other news."""
    patch(tasks, "wake", lambda ws, execution: None)


@_mutant
def cancel_not_told(patch: Patch) -> None:
    """A cancel request is recorded, but nobody wakes the execution for it."""
    patch(children, "wake", lambda ws, execution: None)


@_mutant
def signal_overwritten(patch: Patch) -> None:
    """A signal that finds the execution at work is acknowledged and not recorded."""
    receive = signalling.receive_signal

    def received(ws: Workspace, execution: Execution, signal: e.SignalReceived) -> int:
        if execution.ready is not None and execution.ready.worker is not None and signal.carried_from is None:
            return execution.last_seq
        return receive(ws, execution, signal)

    patch(signalling, "receive_signal", received)


# --- the end ------------------------------------------------------------------------------------------------------


@_mutant
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


@_mutant
def continue_drops_signals(patch: Patch) -> None:
    """What a run has not read is not handed over to the next one."""
    patch(commands, "carry", lambda ws, successor, event: None)


@_mutant
def rows_outlive_close(patch: Patch) -> None:
    """Tasks and timers of a closed execution stay."""

    def drop_rows(ws: Workspace, execution: Execution) -> None:
        execution.open_tasks = execution.open_timers = 0

    patch(closing, "_drop_rows", drop_rows)


@_mutant
def child_told_twice(patch: Patch) -> None:
    """A parent hears of a child's end two times."""
    tell = children.tell_parent

    def told(ws: Workspace, child: Execution, end: e.EventBody) -> None:
        tell(ws, child, end)
        tell(ws, child, end)

    patch(closing, "tell_parent", told)


@_mutant
def parent_not_told(patch: Patch) -> None:
    """A parent hears nothing of its child's end."""
    patch(closing, "tell_parent", lambda ws, child, end: None)


# --- time ---------------------------------------------------------------------------------------------------------


@_mutant
def timer_fires_twice(patch: Patch) -> None:
    """A timer that has fired stays in its table."""
    patch(
        Workspace,
        "drop_timer",
        lambda self, execution, timer_no: (execution.id, timer_no) in self.loaded.timers,
    )


@_mutant
def retries_beyond_policy(patch: Patch) -> None:
    """A task is tried again, however often it has been."""

    def allows(self: RetryPolicy, failure: Failure, attempt: int) -> bool:
        return not failure.non_retryable

    patch(RetryPolicy, "allows", allows)


# --- the outside --------------------------------------------------------------------------------------------------


@_mutant
def promise_settled_twice(patch: Patch) -> None:
    """The last to settle a promise counts, not the first."""
    settle = promises.settle

    def settled(ws: Workspace, execution: Execution, promise: Any, how: Any) -> bool:
        if execution.is_open:
            promise.state = PromiseState.PENDING
        return settle(ws, execution, promise, how)

    patch(promises, "settle", settled)


@_mutant
def event_missed(patch: Patch) -> None:
    """A wait does not see what was published just before it began."""
    patch(messages, "_look_back", lambda ws, execution, event, wait: None)


@_mutant
def subscription_stays(patch: Patch) -> None:
    """Whoever has got a broadcast still waits for it: the next page, or the next broadcast, comes to him again."""
    deliver = messages._deliver

    def delivered(ws: Workspace, execution: Execution, wait: Any, *rest: Any) -> bool:
        done: bool = deliver(ws, execution, wait, *rest)
        if done and wait.kind is SubscriptionKind.BROADCAST and wait.id in ws.changes.deleted_subscriptions:
            ws.changes.deleted_subscriptions.remove(wait.id)
        return done

    patch(messages, "_deliver", delivered)


# --- replay -------------------------------------------------------------------------------------------------------


@_mutant
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
