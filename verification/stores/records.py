"""Records to store, with every field set to something else than its default where that is asked for."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from holdfast.model import events as ev
from holdfast.model.events import EventBody, HistoryEvent
from holdfast.model.executions import Execution, OutputRow, Ready, State, StuckReason, TaskRow, TimerRow, WorkerRow
from holdfast.model.ids import execution_id
from holdfast.model.values import DeliveryMode, Failure, RetryPolicy, Settlement, TaskTimeouts, Wait
from verification.stores.bench import START

ORG = "acme"
OTHER_ORG = "rival"


def an_id(number: int) -> str:
    """Ids in the order of their numbers."""
    return execution_id(START + number * 1_000, 0, number)


def an_execution(number: int = 1, **fields: Any) -> Execution:
    defaults: dict[str, Any] = {
        "id": an_id(number),
        "org": ORG,
        "workflow_id": f"order-{number}",
        "kind": "shipping",
        "version": "1",
        "queue": "default",
        "priority": 0,
        "state": State.OPEN,
        "created_at": START,
        "updated_at": START,
    }
    state = fields.get("state", State.OPEN)
    if state not in (State.OPEN, State.STUCK):
        defaults["closed_at"] = START + 1
    if state is State.STUCK:
        defaults["stuck"] = StuckReason(code="nondeterminism", message="off")
    if state is State.CONTINUED:
        defaults["successor"] = an_id(number + 1)
    return Execution(**(defaults | fields))


def a_full_execution() -> Execution:
    return an_execution(
        workflow_id="größe 大 \U0001f680",
        kind="billing",
        version="2024-11",
        queue="slow",
        priority=-3,
        state=State.STUCK,
        created_at=START + 1,
        updated_at=START + 2,
        last_seq=9,
        seen_seq=7,
        call_seq=8,
        signal_count=4,
        open_tasks=2,
        open_timers=1,
        open_children=6,
        open_waits=7,
        epoch=5,
        nonce=2**62 + 1,
        crashes=3,
        close_rounds=2,
        cancel_requested=True,
        waiting_for=(Wait("signal", "paid", 0, "app.py:7"), Wait("timer", number=3, until_at=START + 9)),
        stuck=StuckReason(code="nondeterminism", message='it\'s\n"off"', at=START, event_seq=4, build="b1"),
        metadata={"a": "1", "ü": ""},
        parent_id=an_id(90),
        child_no=12,
        on_parent_close="terminate",
        ready=Ready(since_at=START + 3, not_before_at=START + 4, worker="w-1", pending_events=True, avoid_build="b0"),
    )


def a_full_closed_execution() -> Execution:
    """With what only a closed one has."""
    return a_closed_execution(2, state=State.CONTINUED, closed_at=START + 9, last_seq=7, successor=an_id(91))


def a_closed_execution(number: int = 1, **fields: Any) -> Execution:
    return an_execution(number, **{"state": State.COMPLETED, "closed_at": START + 5} | fields)


def a_task(execution: Execution, task_no: int = 1, **fields: Any) -> TaskRow:
    defaults: dict[str, Any] = {
        "execution_id": execution.id,
        "task_no": task_no,
        "org": execution.org,
        "kind": "charge",
        "queue": "default",
        "priority": 0,
        "retry": RetryPolicy(),
        "timeouts": TaskTimeouts(),
        "scheduled_at": START,
    }
    if fields.get("worker") is not None:
        defaults |= {"attempt": 1, "started_at": START}
    return TaskRow(**(defaults | fields))


def a_full_task(execution: Execution) -> TaskRow:
    return a_task(
        execution,
        7,
        kind="mail",
        queue="slow",
        priority=4,
        input=Raw(b'{"to": "\xc3\xbc", "n": 1.50, "big": 123456789012345678901234567890}'),
        retry=RetryPolicy(initial_interval_s=0.25, max_attempts=3, jitter=False, non_retryable=("ValueError",)),
        timeouts=TaskTimeouts(start_to_close_s=5.5, schedule_to_close_s=60.0, heartbeat_s=1.0),
        scheduled_at=START + 1,
        not_before_at=START + 2,
        attempt=2,
        nonce=2**62 + 3,
        worker="w-1",
        started_at=START + 3,
        heartbeat_at=START + 4,
        due_at=START + 5,
        details=Raw(b"[1, 2]"),
        progress=0.5,
        output_seq=12,
    )


def an_output(execution: Execution, seq: int, task_no: int = 1, **fields: Any) -> OutputRow:
    defaults: dict[str, Any] = {"attempt": 1, "at": START + seq, "data": Raw(b'{"n": %d, "u": "\xc3\xbc"}' % seq)}
    return OutputRow(execution_id=execution.id, task_no=task_no, seq=seq, **(defaults | fields))


def a_timer(execution: Execution, timer_no: int = 1, fire_at: int = START + 10) -> TimerRow:
    return TimerRow(execution_id=execution.id, timer_no=timer_no, org=execution.org, fire_at=fire_at)


def a_worker(name: str = "w-1", lease_until_at: int = START + 30, **fields: Any) -> WorkerRow:
    defaults: dict[str, Any] = {"org": ORG, "host": "host-1", "pid": 4711, "started_at": START}
    return WorkerRow(id=name, lease_until_at=lease_until_at, **(defaults | fields))


def some_events(count: int, first: int = 1) -> list[HistoryEvent]:
    return [
        HistoryEvent(seq, START + seq, ev.SignalReceived(signal_name=f"s{seq}")) for seq in range(first, first + count)
    ]


def every_kind_of_event() -> list[EventBody]:
    """One event of each type, with its fields set."""
    failure = Failure(type="ValueError", message="no", traceback="…", code="x", cause=Failure(type="KeyError"))
    raw = Raw(b'{"a": [1, 2.50, null]}')
    return [
        ev.WorkflowStarted(
            kind="k",
            version="2",
            workflow_id="w",
            queue="q",
            input=raw,
            metadata={"a": "b"},
            request_id="r",
            parent_execution_id="p",
            child_no=2,
            depth=3,
            continued_from="c",
            expires_at=START + 9,
            start_at=START + 1,
            seed="s",
            event_id=6,
            born=2,
            had=(5, 6),
        ),
        ev.SignalReceived(
            signal_name="s", signal_value=raw, request_id="r", sender="e", carried_from=7, redelivered_from="d"
        ),
        ev.TimerFired(timer_no=1),
        ev.TaskCompleted(task_no=1, result=raw, attempt=2, worker="w"),
        ev.TaskFailed(task_no=1, failure=failure, attempt=2, timeout="heartbeat", worker="w"),
        ev.ChildCompleted(child_no=1, child_execution_id="c", result=raw),
        ev.ChildFailed(child_no=1, child_execution_id="c", status="timed_out", failure=failure),
        ev.ExternalSignalDelivered(signal_no=1, target_execution_id="t", signal_event_sequence=4),
        ev.ExternalSignalFailed(signal_no=1, failure=failure),
        ev.UpdateRequested(update_id="u", update_name="n", input=raw, carried_from=7),
        ev.PromiseResolved(
            promise_no=1,
            name="p",
            value=raw,
            settled_by=Settlement(by="event", idempotency_key="i", event_id=3),
        ),
        ev.PromiseRejected(promise_no=1, name="p", failure=failure, settled_by=Settlement(by="token")),
        ev.PromiseTimedOut(promise_no=1, name="p"),
        ev.EventReceived(wait_no=1, key="k", event_id=3, data=raw, correlation="c"),
        ev.BroadcastReceived(wait_no=1, name="n", broadcast_id=3),
        ev.CancelRequested(reason="why"),
        ev.WorkflowReset(from_execution_id="f", event_seq=5, workflow_id="w", reason="why", fork=True),
        ev.WorkflowTerminated(reason="why", successor="s"),
        ev.WorkflowTimedOut(expires_at=START),
        ev.TaskScheduled(
            up_to=1,
            task_no=1,
            kind="k",
            input=raw,
            queue="q",
            priority=2,
            retry=RetryPolicy(max_attempts=2),
            timeouts=TaskTimeouts(heartbeat_s=1.0),
            line="a.py:1",
        ),
        ev.TaskCancelRequested(up_to=1, task_no=1, line="a.py:2"),
        ev.TimerStarted(up_to=1, timer_no=1, fire_at=START, line="a.py:3"),
        ev.TimerCancelled(up_to=1, timer_no=1, line="a.py:4"),
        ev.ChildStarted(
            up_to=1,
            child_no=1,
            child_execution_id="c",
            kind="k",
            version="2",
            workflow_id="w",
            input=raw,
            queue="q",
            priority=2,
            metadata={"a": "b"},
            execution_timeout_s=2.5,
            on_parent_close="cancel",
            if_running="use_existing",
            propagate_failure=False,
            depth=2,
            line="a.py:5",
        ),
        ev.ChildCancelRequested(up_to=1, child_no=1, line="a.py:6"),
        ev.ExternalSignalInitiated(
            up_to=1, signal_no=1, target="t", signal_name="s", signal_value=raw, child_no=1, line="a.py:7"
        ),
        ev.PromiseCreated(
            up_to=1,
            promise_no=1,
            name="p",
            token_hash="h",  # noqa: S106 - a hash
            event_key="k",
            timer_no=2,
            expires_at=START + 9,
            shape=raw,
            line="a.py:7",
        ),
        ev.PromiseCancelled(up_to=1, promise_no=1, name="p", line="a.py:7"),
        ev.WaitStarted(
            up_to=1,
            wait_no=1,
            kind="event",
            key="k",
            correlation="c",
            where="input.a == 1",
            since_at=START,
            after_event_id=3,
            skip=(4, 5),
            born=2,
            consume=True,
            line="a.py:7",
        ),
        ev.WaitCancelled(up_to=1, wait_no=1, line="a.py:7"),
        ev.EventPublished(
            up_to=1,
            key="k",
            event_id=3,
            data=raw,
            correlation="c",
            expire_after_s=2.5,
            delivery=DeliveryMode.CREATED_BEFORE,
            consume=True,
            line="a.py:7",
        ),
        ev.BroadcastThrown(up_to=1, name="n", broadcast_id=3, line="a.py:7"),
        ev.UpdateAccepted(up_to=1, update_id="u"),
        ev.UpdateRejected(up_to=1, update_id="u", failure=failure),
        ev.UpdateCompleted(up_to=1, update_id="u", result=raw),
        ev.UpdateFailed(up_to=1, update_id="u", failure=failure),
        ev.PatchMarked(up_to=1, patch_id="p", line="a.py:8"),
        ev.StateChanged(up_to=1, values={"a": raw, "ü": Raw(b"null")}, removed=("b",)),
        ev.MetadataChanged(up_to=1, values={"a": "b"}, removed=("c",)),
        ev.StepCompleted(
            up_to=1, step_no=1, name="n", result=raw, attempts=2, started_at=1, finished_at=2, line="a.py:9"
        ),
        ev.StepFailed(
            up_to=1, step_no=1, name="n", failure=failure, attempts=2, started_at=1, finished_at=2, line="a.py:9"
        ),
        ev.TurnCompleted(up_to=1, scheduled_at=1, started_at=2, worker="w", waiting_for=(Wait("signal", "s"),)),
        ev.WorkflowCompleted(up_to=1, result=raw),
        ev.WorkflowFailed(up_to=1, failure=failure),
        ev.WorkflowCancelled(up_to=1, reason="why"),
        ev.WorkflowContinued(up_to=1, new_execution_id="n", kind="k", version="2", input=raw),
    ]
