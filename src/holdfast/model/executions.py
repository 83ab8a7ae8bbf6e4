"""Executions and the rows that belong to them, as the engine loads and writes them."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Raw

from holdfast.model.values import NULL, Failure, RetryPolicy, TaskTimeouts, Wait


class State(StrEnum):
    """The stored state of an execution. Whether an open one is pending, running or waiting follows from its ready
    row."""

    OPEN = "OPEN"
    STUCK = "STUCK"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TERMINATED = "TERMINATED"
    TIMED_OUT = "TIMED_OUT"
    CONTINUED = "CONTINUED"


OPEN = State.OPEN
"""To ask an enumeration for one of its members is slow, and this one is asked for again and again."""
OPEN_STATES = frozenset({State.OPEN, State.STUCK})


class WorkflowStatus(StrEnum):
    """What callers see."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    STUCK = "STUCK"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TERMINATED = "TERMINATED"
    TIMED_OUT = "TIMED_OUT"
    CONTINUED = "CONTINUED"

    @property
    def is_open(self) -> bool:
        return self in OPEN_STATUSES


CLOSED_STATUS: dict[State, WorkflowStatus] = {
    state: WorkflowStatus(state.value) for state in State if state is not State.OPEN
}
OPEN_STATUSES = frozenset(
    {WorkflowStatus.PENDING, WorkflowStatus.RUNNING, WorkflowStatus.WAITING, WorkflowStatus.STUCK}
)


class StuckReason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why an execution does not move, for the person who has to find out."""

    code: str
    message: str
    at: int = 0
    event_seq: int = 0
    recorded: str = ""
    attempted: str = ""
    recorded_line: str = ""
    attempted_line: str = ""
    worker: str = ""
    build: str = ""


class Ready(msgspec.Struct, kw_only=True):
    """ "This execution has news": at most one row per execution. `worker` is the session that holds the lease, if any.

    `not_before_at` delays a retry; a worker whose build differs from `avoid_build` need not wait for it.
    """

    since_at: int
    not_before_at: int = 0
    worker: str | None = None
    pending_events: bool = False
    avoid_build: str | None = None


class Execution(msgspec.Struct, kw_only=True):
    """The head of an execution. Mutable: the rules change it in place inside one unit of work.

    `seen_seq` is the last event a recorded turn has seen; `call_seq` the last event a program must not close over
    unseen (a signal, an update or a cancel request). `open_children` are those whose fate hangs on this execution; it
    stays above 0 after the close until all of them have met it. `successor` is the execution that goes on in its place.
    """

    id: str
    org: str
    workflow_id: str
    kind: str
    version: str
    queue: str
    priority: int
    state: State
    created_at: int
    updated_at: int
    closed_at: int | None = None
    last_seq: int = 0
    seen_seq: int = 0
    call_seq: int = 0
    signal_count: int = 0
    open_tasks: int = 0
    open_timers: int = 0
    open_children: int = 0
    open_waits: int = 0
    epoch: int = 0
    nonce: int = 0
    crashes: int = 0
    close_rounds: int = 0
    cancel_requested: bool = False
    waiting_for: tuple[Wait, ...] = ()
    stuck: StuckReason | None = None
    metadata: dict[str, str] | None = None
    parent_id: str | None = None
    child_no: int = 0
    on_parent_close: str | None = None
    successor: str | None = None
    ready: Ready | None = None

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    @property
    def status(self) -> WorkflowStatus:
        if self.state is not OPEN:
            return CLOSED_STATUS[self.state]
        if self.ready is None:
            return WorkflowStatus.WAITING
        return WorkflowStatus.PENDING if self.ready.worker is None else WorkflowStatus.RUNNING


class TaskRow(msgspec.Struct, kw_only=True):
    """A task that is not finished. `worker` holds the running attempt; `due_at` is its nearest deadline; `last_failure`
    says why it is not at its first attempt any more. A `deferred` attempt can be completed by its token; once its body
    has returned it has no worker, and `not_before_at` is NEVER. `output_seq` is the number of the last `OutputRow`."""

    execution_id: str
    task_no: int
    org: str
    kind: str
    queue: str
    priority: int
    input: Raw = NULL
    retry: RetryPolicy
    timeouts: TaskTimeouts
    scheduled_at: int
    not_before_at: int = 0
    attempt: int = 0
    nonce: int = 0
    worker: str | None = None
    started_at: int | None = None
    heartbeat_at: int | None = None
    due_at: int | None = None
    details: Raw | None = None
    progress: float | None = None
    last_failure: Failure | None = None
    deferred: bool = False
    output_seq: int = 0


class OutputRow(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a task has said. Numbers go on from attempt to attempt; what a missing one stood for was
    dropped."""

    execution_id: str
    task_no: int
    seq: int
    attempt: int
    at: int
    data: Raw


NEVER = 2**62
"""An instant that does not come."""

DEADLINE_NO = 0
"""The number of the timer that ends an execution; its program's own timers count from 1."""


class TimerRow(msgspec.Struct, frozen=True, kw_only=True):
    """`promise` names the promise that is out of time when it fires."""

    execution_id: str
    timer_no: int
    org: str
    fire_at: int
    promise: str | None = None


class WorkerRow(msgspec.Struct, kw_only=True):
    """One worker session: a random id per process start, alive until `lease_until_at`."""

    id: str
    org: str
    host: str
    pid: int
    started_at: int
    lease_until_at: int


class DefinitionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow kind + version that some worker has registered."""

    org: str
    kind: str
    version: str
    build: str
    registered_at: int


class RequestRow(msgspec.Struct, frozen=True, kw_only=True):
    """An idempotency key with the answer it got, written with the effect.

    It counts until `expires_at`; if it has started an execution, until that one is closed and `ttl` has passed since.
    `subject` is what it has settled or made, for people.
    """

    org: str
    request_id: str
    fingerprint: str
    answer: bytes
    created_at: int
    ttl: int = 86_400_000_000
    expires_at: int = 0
    execution_id: str | None = None
    subject: str | None = None


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A signal that was accepted but never read, with the reason. `settled`: it was redelivered or removed, and is kept
    only so that it can't come back.

    What the signal was is in the history; it is read from there, and not written.
    """

    execution_id: str
    seq: int
    org: str
    reason: str
    at: int
    settled: bool = False
    signal_name: str = ""
    signal_value: Raw = NULL
    received_at: int = 0
