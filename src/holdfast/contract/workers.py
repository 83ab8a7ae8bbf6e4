"""Workers: a session, the work handed to it, and what it reports."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Awaitable
from enum import StrEnum
from typing import Protocol

import msgspec
from msgspec import Raw

from holdfast.model.commands import Turn
from holdfast.model.events import HistoryEvent, StepFinished
from holdfast.model.executions import StuckReason
from holdfast.model.values import NULL, Failure, TaskTimeouts, Token, Wait


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a key start a workflow, if they satisfy the filter."""

    kind: str
    version: str
    key: str
    queue: str
    where: str | None = None


class RegisterWorker(msgspec.Struct, frozen=True, kw_only=True):
    """Open a session. `builds` maps (workflow kind, version) to a fingerprint of the code. `triggers` are all that its
    workflows have: those of a kind's newest version replace what was registered before."""

    org: str
    session: str
    host: str
    pid: int
    queues: tuple[str, ...] = ("default",)
    builds: dict[tuple[str, str], str]
    task_kinds: tuple[str, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    turn_slots: int
    task_slots: int
    lease_s: float


class TurnWork(msgspec.Struct, frozen=True):
    """An execution to run a turn of. `events` are its newest events, up to `last_seq`; earlier ones are in the
    history."""

    execution_id: str
    workflow_id: str
    kind: str
    version: str
    token: Token
    last_seq: int
    events: tuple[HistoryEvent, ...]
    scheduled_at: int


class PendingEvents(msgspec.Struct, frozen=True):
    """Events that reached an execution while this session holds it. Without `events` they are to be read."""

    execution_id: str
    last_seq: int
    events: tuple[HistoryEvent, ...] = ()


class TaskWork(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a task. `token.epoch` is the attempt's number."""

    execution_id: str
    task_no: int
    kind: str
    token: Token
    input: Raw = NULL
    timeouts: TaskTimeouts
    scheduled_at: int
    started_at: int
    details: Raw | None = None
    output_seq: int = 0
    """The number of the last chunk that the attempts before have said: this one's count on from it."""


class TaskStop(msgspec.Struct, frozen=True):
    """An attempt that no longer counts: cancelled, timed out, or its execution is closed."""

    execution_id: str
    task_no: int
    attempt: int
    reason: str


class ExecutionEnded(msgspec.Struct, frozen=True):
    """The execution is closed: whatever runs of its tasks no longer counts."""

    execution_id: str


class LostTurn(msgspec.Struct, frozen=True):
    """The session no longer holds this execution: it was closed from outside, or the lease passed on."""

    execution_id: str
    epoch: int


class QueryWork(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a program. It must have seen the history up to `last_seq`, or, with `as_of`, be as it was when that
    event was the last. Nothing is leased and nothing may be recorded."""

    query_id: str
    execution_id: str
    kind: str
    version: str
    query_name: str
    input: Raw = NULL
    has_input: bool = False
    as_of: int | None = None
    last_seq: int


Work = TurnWork | PendingEvents | TaskWork | TaskStop | ExecutionEnded | LostTurn | QueryWork


class CompleteTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What the holder of an execution has to record, in this order: `turns`, then `steps`, then `after_steps`.

    `base_seq` is the last event the worker knows. `after_steps` is a turn run ahead on the assumption that nothing else
    has come in between: if something has, only `turns` and `steps` are recorded and the answer says so.
    A turn without commands leaves a row all the same, to say that it took place; `after_steps` does not, it is sent
    again with the next commit unless a step of that one carries its number.
    `waiting_for` is given when the program has gone quiet and holds nothing in the worker: the lease may end.
    `unread` are signals that a closing program has seen and not taken; `refused` those that its handlers could not
    read, with the reason.
    """

    org: str
    execution_id: str
    token: Token
    base_seq: int
    worker: str
    turns: tuple[Turn, ...] = ()
    steps: tuple[StepFinished, ...] = ()
    after_steps: Turn | None = None
    waiting_for: tuple[Wait, ...] | None = None
    unread: tuple[int, ...] = ()
    refused: tuple[tuple[int, str], ...] = ()


class TurnVerdict(StrEnum):
    RECORDED = "recorded"
    STEPS_ONLY = "steps_only"
    UNREAD = "unread"
    """Not closed: signals or a cancel came that the turn has not seen. Run it again with them."""


class TurnAnswer(msgspec.Struct, frozen=True):
    """`first_seq` is the number the first of the recorded rows got; `released` that the lease is over."""

    verdict: TurnVerdict
    first_seq: int
    last_seq: int
    released: bool
    closed: bool = False


class ParkTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The program can't go on: park the execution as stuck with the reason and give the lease back."""

    org: str
    execution_id: str
    token: Token
    reason: StuckReason


class ReleaseWork(msgspec.Struct, frozen=True, kw_only=True):
    """Hand back unstarted or interrupted work: another worker takes it at once, and no attempt is counted."""

    org: str
    session: str
    turns: tuple[tuple[str, Token], ...] = ()
    tasks: tuple[tuple[str, int, Token], ...] = ()


class OutputLimits(msgspec.Struct, frozen=True):
    """How large one chunk of a task's output may be, and how many of them are kept."""

    chunk_bytes: int
    chunks: int


class OutputChunk(msgspec.Struct, frozen=True):
    """Something that the body of a task has said. Numbered by the worker, so that it counts once if it comes twice."""

    seq: int
    data: Raw


class CompleteTask(msgspec.Struct, frozen=True, kw_only=True):
    """`output` is what is not known to be recorded of what the attempt has said, as in the other reports."""

    org: str
    session: str
    execution_id: str
    task_no: int
    token: Token
    result: Raw = NULL
    output: tuple[OutputChunk, ...] = ()


class FailTask(msgspec.Struct, frozen=True, kw_only=True):
    """`details` are the newest heartbeat details, if they were not sent yet: the next attempt gets them."""

    org: str
    session: str
    execution_id: str
    task_no: int
    token: Token
    failure: Failure
    details: Raw | None = None
    output: tuple[OutputChunk, ...] = ()


class IssueTaskToken(msgspec.Struct, frozen=True, kw_only=True):
    """A running attempt is going to hand out a token: from now on it can be completed by it."""

    org: str
    execution_id: str
    task_no: int
    token: Token
    token_hash: str


class DeferTask(msgspec.Struct, frozen=True, kw_only=True):
    """The body has returned, and somebody else completes the attempt by its token. `details` as in FailTask."""

    org: str
    session: str
    execution_id: str
    task_no: int
    token: Token
    token_hash: str
    details: Raw | None = None
    output: tuple[OutputChunk, ...] = ()


RunningAttempt = tuple[str, int, Token]
"""Execution, task number, token."""


class ReplaceSession(msgspec.Struct, frozen=True, kw_only=True):
    """The worker of `session` goes on as `by`, a session of its own. `running` are the attempts it has not ended."""

    org: str
    session: str
    by: str
    running: tuple[RunningAttempt, ...] = ()


class AnswerQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a `QueryWork`, or why there is none: `failure.code` is that of the error the caller gets."""

    query_id: str
    result: Raw = NULL
    failure: Failure | None = None


class TaskBeat(msgspec.Struct, frozen=True, kw_only=True):
    """A sign of life from the body of a task, and what it has said."""

    execution_id: str
    task_no: int
    token: Token
    details: Raw | None = None
    progress: float | None = None
    output: tuple[OutputChunk, ...] = ()


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """The session is alive; so are the bodies of `tasks`. `running` are all its attempts: it is told of stale ones."""

    org: str
    session: str
    lease_s: float
    tasks: tuple[TaskBeat, ...] = ()
    running: tuple[tuple[str, int, Token], ...] = ()


class HeartbeatAnswer(msgspec.Struct, frozen=True):
    """`alive` is False when the session had expired and its leases are gone; `stale` are attempts that no longer
    count, and of which nothing was recorded."""

    alive: bool
    stale: tuple[tuple[str, int, int], ...] = ()


class Workers(Protocol):
    def output_limits(self) -> OutputLimits:
        """Callable from any thread, once there is a session."""
        ...

    def register(self, request: RegisterWorker) -> Awaitable[None]: ...

    def poll(self, session: str) -> Awaitable[list[Work]]:
        """Waits until there is work for this session. One waiter per session."""
        ...

    def complete_turn(self, request: CompleteTurn) -> Awaitable[TurnAnswer]: ...

    def park_turn(self, request: ParkTurn) -> Awaitable[None]: ...

    def complete_task(self, request: CompleteTask) -> Awaitable[None]: ...

    def fail_task(self, request: FailTask) -> Awaitable[None]: ...

    def issue_task_token(self, request: IssueTaskToken) -> concurrent.futures.Future[None]:
        """Callable from any thread. What is asked of the engine afterwards comes after it."""
        ...

    def defer_task(self, request: DeferTask) -> Awaitable[None]: ...

    def heartbeat(self, request: Heartbeat) -> concurrent.futures.Future[HeartbeatAnswer]:
        """Callable from any thread, so that a busy event loop does not cost the lease."""
        ...

    def renew(self, request: Heartbeat) -> bool:
        """Keep the session's lease while its event loop answers nobody. Callable from any thread but the loop's; waits
        for the database. False where a heartbeat does not need the loop, or it could not be done."""
        ...

    def release(self, request: ReleaseWork) -> Awaitable[None]: ...

    def answer_query(self, request: AnswerQuery) -> Awaitable[None]: ...

    def drain(self, session: str) -> Awaitable[None]:
        """Hand out nothing more to this session."""
        ...

    def unregister(self, org: str, session: str) -> Awaitable[None]:
        """End the session; whatever it still holds is up for claim at once."""
        ...

    def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None
    ) -> Awaitable[list[HistoryEvent]]: ...


class Sessions(Workers, Protocol):
    """For a door that holds sessions on behalf of workers elsewhere."""

    def pause(self, session: str) -> Awaitable[None]:
        """Hand out nothing for the time being. What it holds it keeps, as long as its lease lasts."""
        ...

    def resume(self, session: str) -> Awaitable[None]:
        """Hand out work again, unless the session is to be drained."""
        ...

    def replace(self, request: ReplaceSession) -> Awaitable[tuple[RunningAttempt, ...]]:
        """End a session, wherever it was open. Its running attempts go over to the other one, as far as they still
        count: these are the answer. Whatever else it held is up for claim at once."""
        ...

    def abandon(self, session: str) -> Awaitable[None]:
        """Forget the session here, and change nothing in the database: its lease runs out there, if it has not."""
        ...
