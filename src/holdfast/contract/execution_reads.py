"""Executions as callers see them: one, lists, how they ended, what they wait for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw

from holdfast.config import Limits
from holdfast.contract.fields import NAME_SCHEMA, Check, EventNumber, Instant, Limit, Name, Wait, null
from holdfast.contract.history import EXECUTIONS_TAG, HistoryEntry
from holdfast.contract.operation import EXECUTION, EXECUTIONS, GET, ORG, Record, Request, operation, public_names
from holdfast.errors import InvalidRequest
from holdfast.model.executions import Status
from holdfast.model.keys import Role
from holdfast.model.names import check_text
from holdfast.model.values import Failure, RetryPolicy, TaskTimeouts

MOST_TAGS: Final = 50


class WaitingFor(Record, frozen=True, kw_only=True):
    """What an execution is blocked on."""

    kind: str
    name: str = ""
    number: int = 0
    line: str = ""
    until: datetime | None = None


class StuckInfo(Record, frozen=True, kw_only=True, rename=public_names(event_seq="event_sequence")):
    """Why an execution does not move."""

    code: str
    message: str
    at: datetime
    event_seq: int = 0
    recorded: str = ""
    attempted: str = ""
    recorded_line: str = ""
    attempted_line: str = ""
    worker: str = ""
    build: str = ""


class FailureInfo(Record, frozen=True, kw_only=True):
    """Why a closed execution has no result. Of one that was cancelled or terminated, `message` is the reason given."""

    type: str
    message: str = ""


class ExecutionInfo(
    Record, frozen=True, kw_only=True, rename=public_names(kind="workflow_kind", version="workflow_version")
):
    """One execution.

    `waiting_for` says what it is blocked on, `stuck` why it can't go on, `failure` why it ended without a result,
    `start_at` when one that was not to begin at once will. `successor` goes on in the place of one that is closed.
    `worker` is the session that runs its code. News that no worker has taken wait since `ready_since`, and are not
    handed out before `not_before`, after `crashes` of workers.
    """

    workflow_execution_id: str
    workflow_id: str
    kind: str
    version: str
    queue: str
    priority: int
    status: Status
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    start_at: datetime | None = None
    history_length: int = 0
    seen_length: int = 0
    signal_count: int = 0
    open_tasks: int = 0
    open_timers: int = 0
    open_children: int = 0
    open_waits: int = 0
    cancel_requested: bool = False
    waiting_for: tuple[WaitingFor, ...] = ()
    stuck: StuckInfo | None = None
    failure: FailureInfo | None = None
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    parent_execution_id: str | None = None
    successor: str | None = None
    worker: str | None = None
    ready_since: datetime | None = None
    not_before: datetime | None = None
    crashes: int = 0

    @property
    def id(self) -> str:
        """Its execution id, as a handle calls it."""
        return self.workflow_execution_id

    @property
    def is_open(self) -> bool:
        return self.status.is_open


class WorkflowPage(Record, frozen=True):
    """The newest first. Pass `next_cursor` to get the page after this one; None on the last."""

    items: tuple[ExecutionInfo, ...]
    next_cursor: str | None = None


class WorkflowCounts(Record, frozen=True, kw_only=True):
    """How many executions have each status."""

    counts: dict[Status, int]
    total: int


class WorkflowResult(Record, frozen=True, kw_only=True):
    """How an execution ended. While it is open, `closed` is false and there is no event yet."""

    workflow_execution_id: str
    status: Status
    closed: bool
    result: Raw = msgspec.field(default_factory=null)
    failure: Failure | None = None
    successor: str | None = None
    last_event: HistoryEntry | None = None


class PendingTask(
    Record,
    frozen=True,
    kw_only=True,
    rename=public_names(task_no="task_number", kind="task_kind", output_seq="output_sequence"),
):
    """A task that is not finished. `worker` is the session that runs the present attempt; a `deferred` one was left to
    the holder of its token. `last_failure` says why it is not at its first attempt any more, `output_seq` is the number
    of the last thing it has said."""

    workflow_execution_id: str
    task_no: int
    kind: str
    queue: str
    priority: int
    input: Any = None
    retry: RetryPolicy
    timeouts: TaskTimeouts
    attempt: int
    running: bool
    scheduled_at: datetime
    not_before: datetime | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    due_at: datetime | None = None
    details: Any = None
    progress: float | None = None
    last_failure: Failure | None = None
    deferred: bool = False
    output_seq: int = 0
    worker: str | None = None


class TaskList(Record, frozen=True, kw_only=True):
    tasks: tuple[PendingTask, ...]


class PendingTimer(Record, frozen=True, kw_only=True, rename=public_names(timer_no="timer_number")):
    """`promise` is out of time when it fires."""

    workflow_execution_id: str
    timer_no: int
    fire_at: datetime
    promise: str | None = None


class TimerList(Record, frozen=True, kw_only=True):
    timers: tuple[PendingTimer, ...]


class WorkflowState(Record, frozen=True, kw_only=True):
    """What the program shows in `ctx.state`."""

    state: dict[str, Raw]


# --- what a list is narrowed by ---


def _texts(values: tuple[str, ...], field: str, _: Limits) -> None:
    for text in values:
        check_text(text, field)


def _text(value: str, field: str, _: Limits) -> None:
    check_text(value, field)


def _tags(tags: dict[str, str], field: str, limits: Limits) -> None:
    if len(tags) > MOST_TAGS:
        raise InvalidRequest(f"a list can be narrowed by {MOST_TAGS} pairs of metadata, not {len(tags)}", field=field)
    _texts((*tags, *tags.values()), field, limits)


_Named = Annotated[str, Meta(extra_json_schema=NAME_SCHEMA)]
Kinds = Annotated[tuple[_Named, ...], Check(_texts, "filter")]
FilterText = Annotated[str, Meta(extra_json_schema=NAME_SCHEMA), Check(_text, "filter")]
FilterTags = Annotated[dict[str, str], Check(_tags, "metadata")]
_LIST_NAMES = public_names(statuses="status", kinds="workflow_kind")


@operation("list_workflows", GET, EXECUTIONS, Role.READER, tag=EXECUTIONS_TAG)
class ListExecutions(Request[WorkflowPage], frozen=True, kw_only=True, rename=_LIST_NAMES):
    """One page of executions, the newest first.

    `metadata` is `key=value`; all that are given must be there.
    """

    statuses: tuple[Status, ...] = ()
    kinds: Kinds = ()
    workflow_id: FilterText | None = None
    queue: FilterText | None = None
    metadata: FilterTags = msgspec.field(default_factory=dict)
    created_from: Instant | None = None
    created_before: Instant | None = None
    cursor: _Named | None = None
    limit: Limit = 100


@operation(
    "stream_workflows",
    GET,
    f"{EXECUTIONS}/events",
    Role.READER,
    tag=EXECUTIONS_TAG,
    streams=True,
    no_rpc="a list that is followed is for pages in a browser",
)
class StreamExecutions(Request[ExecutionInfo], frozen=True, kw_only=True, rename=_LIST_NAMES):
    """Executions as they change, as server-sent events.

    As the list; what is among the newest `limit` is followed.
    """

    statuses: tuple[Status, ...] = ()
    kinds: Kinds = ()
    workflow_id: FilterText | None = None
    queue: FilterText | None = None
    metadata: FilterTags = msgspec.field(default_factory=dict)
    created_from: Instant | None = None
    created_before: Instant | None = None
    limit: Limit = 100


@operation("count_workflows", GET, f"{EXECUTIONS}/count", Role.READER, tag=EXECUTIONS_TAG)
class CountExecutions(Request[WorkflowCounts], frozen=True, kw_only=True):
    """How many executions have each status."""


@operation("get_workflow", GET, EXECUTION, Role.READER, tag=EXECUTIONS_TAG)
class GetWorkflow(Request[ExecutionInfo], frozen=True, kw_only=True):
    """One execution."""

    workflow_execution_id: Name


@operation("find_workflow", GET, f"{ORG}/workflows/{{workflow_id}}", Role.READER, tag=EXECUTIONS_TAG)
class FindWorkflow(Request[ExecutionInfo], frozen=True, kw_only=True):
    """The open execution of a workflow id, or the last closed one."""

    workflow_id: Name


@operation("workflow_result", GET, f"{EXECUTION}/result", Role.READER, tag=EXECUTIONS_TAG, rpc="GetResult", waits=True)
class GetResult(Request[WorkflowResult], frozen=True, kw_only=True):
    """How the execution ended; with `wait`, as soon as it has."""

    workflow_execution_id: Name
    wait: Wait = 0.0

    def is_answered_by(self, answer: WorkflowResult) -> bool:
        return answer.closed


@operation("workflow_state", GET, f"{EXECUTION}/state", Role.READER, tag=EXECUTIONS_TAG, rpc="GetState")
class GetState(Request[WorkflowState], frozen=True, kw_only=True):
    """What the workflow shows of itself.

    `as_of`: as it was when that event was the last.
    """

    workflow_execution_id: Name
    as_of: EventNumber | None = None


@operation("workflow_tasks", GET, f"{EXECUTION}/tasks", Role.READER, tag=EXECUTIONS_TAG, rpc="ListPendingTasks")
class ListPendingTasks(Request[TaskList], frozen=True, kw_only=True):
    """Its tasks that are not finished."""

    workflow_execution_id: Name


@operation("workflow_timers", GET, f"{EXECUTION}/timers", Role.READER, tag=EXECUTIONS_TAG, rpc="ListPendingTimers")
class ListPendingTimers(Request[TimerList], frozen=True, kw_only=True):
    """Its timers that have not fired."""

    workflow_execution_id: Name
