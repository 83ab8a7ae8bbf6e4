"""Standalone tasks: a task run durably without a workflow. See model.standalone for what they are.

Wherever one is named, its execution id does, and so does its task id: then the open one is meant, or the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType, structs

from holdfast.config import Limits
from holdfast.contract.executions import Changed
from holdfast.contract.failures import Rejection
from holdfast.contract.fields import (
    LARGEST,
    NAME_SCHEMA,
    Check,
    Instant,
    Key,
    KeyTtl,
    Limit,
    Name,
    Priority,
    Seconds,
    Text,
    Wait,
    check_payload,
    named,
    null,
)
from holdfast.contract.messages import SettledPromise
from holdfast.contract.operation import GET, POST, TASK, TASKS, Record, Request, operation, public_names
from holdfast.errors import InvalidDuration, InvalidRequest
from holdfast.model.executions import Status
from holdfast.model.keys import Role
from holdfast.model.names import check_text
from holdfast.model.standalone import PREFIX, is_reserved
from holdfast.model.values import TEN_YEARS_S, Failure, IfClosed, IfRunning, RetryPolicy, TaskTimeouts

_TAG: Final = "tasks"
_KIND: Final = public_names(kind="task_kind")
_ONE: Final = public_names(task_id="task_execution_id")
_TIMEOUTS: Final = {
    "start_to_close_s": "start_to_close_s",
    "schedule_to_close_s": "schedule_to_close_s",
    "heartbeat_timeout_s": "heartbeat_s",
}
MOST_TAGS: Final = 50


# --- kinds of fields ----------------------------------------------------------------------------------------------


def _check_tags(value: Mapping[str, str], field: str, _: Limits) -> None:
    for key, text in value.items():
        check_text(key, field)
        check_text(text, field)
        if is_reserved(key):
            raise InvalidRequest(
                f"metadata that begin with {PREFIX!r} are the engine's own, as {key!r:.60} would be: take another name",
                field=field,
            )


def _check_filter(value: str, field: str, _: Limits) -> None:
    check_text(value, field)


def _check_filter_tags(value: Mapping[str, str], field: str, _: Limits) -> None:
    if len(value) > MOST_TAGS:
        raise InvalidRequest(f"a list can be narrowed by {MOST_TAGS} pairs of metadata, not {len(value)}", field=field)
    for pair in value.items():
        for text in pair:
            check_text(text, field)


def _check_retry(policy: RetryPolicy, _: str, __: Limits) -> None:
    """What would come to instants that no database can keep."""
    for field in ("initial_interval_s", "max_interval_s"):
        if not 0 <= getattr(policy, field) <= TEN_YEARS_S:
            raise InvalidDuration(f"{field} must lie between 0 and ten years", field=field)
    for name in policy.non_retryable:
        check_text(name, "non_retryable")


class Retry(RetryPolicy, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`initial_interval_s` times `backoff` for each further attempt, at most `max_interval_s`. Without `max_attempts`
    it never gives up; `non_retryable` names types of errors that fail at once."""

    max_attempts: Annotated[int, Meta(gt=-LARGEST, lt=LARGEST, extra_json_schema={"minimum": 1})] | None = None

    @classmethod
    def of(cls, policy: RetryPolicy) -> Retry:
        return cls(**structs.asdict(policy))


TaskKind = Annotated[str, Meta(extra_json_schema=NAME_SCHEMA), named("task_kind")]
TaskTags = Annotated[dict[str, str], Check(_check_tags)]
FilterTags = Annotated[dict[str, str], Check(_check_filter_tags)]
Filter = Annotated[str, Meta(extra_json_schema=NAME_SCHEMA), Check(_check_filter, "filter")]
Cursor = Annotated[str, Meta(extra_json_schema=NAME_SCHEMA)]
"""Which ones will do is decided by the list that they belong to."""


# --- records ------------------------------------------------------------------------------------------------------


class StartedTask(Record, frozen=True, kw_only=True):
    """`task_created` is false if one that is not over was found. `idempotency_key_new` is false when this very call had
    been made before; the rest is then as it was answered first."""

    workflow_execution_id: str
    task_id: str
    task_created: bool
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class StandaloneTaskInfo(Record, frozen=True, kw_only=True, rename=_KIND):
    """Where a standalone task stands.

    PENDING waits for a worker, or for its next attempt at `next_attempt_at`; RUNNING has one; WAITING was left to
    somebody else by `complete_later`. `attempt` is 0 before the first one, and when it was cancelled or ended from
    outside. `worker` has the running attempt, or had the last one. `last_failure` says why it is not at its first
    attempt any more, or how it ended.
    """

    workflow_execution_id: str
    task_id: str
    kind: str
    status: Status
    queue: str
    priority: int
    args: Annotated[tuple[Any, ...], Meta(extra_json_schema={"items": {}})]
    retry: RetryPolicy
    timeouts: TaskTimeouts
    metadata: dict[str, str]
    attempt: int = 0
    worker: str | None = None
    deferred: bool = False
    cancel_requested: bool = False
    progress: float | None = None
    details: Any = None
    last_failure: Failure | None = None
    result: Any = None
    created_at: datetime
    updated_at: datetime
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    next_attempt_at: datetime | None = None
    closed_at: datetime | None = None
    successor: str | None = None


class TaskPage(Record, frozen=True, kw_only=True):
    """Newest first. Pass `next_cursor` to get the page after this one; None on the last. A page before it may have
    fewer items than asked for."""

    items: tuple[StandaloneTaskInfo, ...]
    next_cursor: str | None = None


class TaskResult(Record, frozen=True, kw_only=True, rename=_KIND):
    """How a standalone task ended. While it is under way, `closed` is false. `timeout` names the limit that was passed,
    if it failed for that."""

    workflow_execution_id: str
    kind: str
    status: Status
    closed: bool
    result: Raw = msgspec.field(default_factory=null)
    failure: Failure | None = None
    attempts: int = 0
    timeout: str = ""
    reason: str = ""


# --- operations ---------------------------------------------------------------------------------------------------


@operation(
    "start_task",
    POST,
    TASKS,
    Role.WRITER,
    tag=_TAG,
    status=201,
    payload=True,
    example={
        "task_kind": "send_invoice",
        "task_id": "invoice:7",
        "input": {"order": 7},
        "retry": {"max_attempts": 5},
        "start_to_close_seconds": 60,
    },
)
class StartTask(Request[StartedTask], frozen=True, kw_only=True, rename=_KIND):
    """Run a task on its own, or find the one with this task id that is not over.

    `input` is the only argument of a task that takes one; of others, `args` has all of them.
    """

    kind: TaskKind
    task_id: Name | None = None
    input: Raw | UnsetType = UNSET
    args: tuple[Raw, ...] | None = None
    queue: Name = "default"
    priority: Priority = 0
    retry: Annotated[Retry, Check(_check_retry)] = Retry()
    start_to_close_s: Seconds = 3600.0
    schedule_to_close_s: Seconds | None = None
    heartbeat_timeout_s: Seconds | None = None
    metadata: TaskTags | None = None
    start_at: Instant | None = None
    if_running: IfRunning = IfRunning.USE_EXISTING
    if_closed: IfClosed = IfClosed.ALLOW
    ttl_s: KeyTtl | None = None
    request_id: Name | None = None

    @property
    def timeouts(self) -> TaskTimeouts:
        return TaskTimeouts(
            start_to_close_s=self.start_to_close_s,
            schedule_to_close_s=self.schedule_to_close_s,
            heartbeat_s=self.heartbeat_timeout_s,
        )

    @staticmethod
    def remembered(content: dict[str, Any]) -> dict[str, Any]:
        """Its content as idempotency keys have always known it: with the time limits as one value. The model's structs
        are used because the order of fields counts."""
        timeouts = {short: content.pop(name) for name, short in _TIMEOUTS.items() if name in content}
        if timeouts:
            content["timeouts"] = TaskTimeouts(**timeouts)
        if "retry" in content:
            content["retry"] = RetryPolicy(**structs.asdict(content["retry"]))
        return content


@operation("list_tasks", GET, TASKS, Role.READER, tag=_TAG)
class ListTasks(Request[TaskPage], frozen=True, kw_only=True, rename=public_names(kind="task_kind", statuses="status")):
    """One page of standalone tasks, the newest first.

    `metadata` is `key=value`; all that are given must be there.
    """

    statuses: tuple[Status, ...] = ()
    kind: Filter | None = None
    queue: Filter | None = None
    metadata: FilterTags = msgspec.field(default_factory=dict)
    cursor: Cursor | None = None
    limit: Limit = 100


@operation("get_task", GET, TASK, Role.READER, tag=_TAG)
class GetTask(Request[StandaloneTaskInfo], frozen=True, kw_only=True, rename=_ONE):
    """One standalone task, by either of its ids."""

    task_id: Name


@operation("task_result", GET, f"{TASK}/result", Role.READER, tag=_TAG, rpc="GetTaskResult", waits=True)
class GetTaskResult(Request[TaskResult], frozen=True, kw_only=True, rename=_ONE):
    """How the task ended; with `wait`, as soon as it has.

    If another execution goes on in its place, how that one ended.
    """

    task_id: Name
    wait: Wait = 0.0

    def is_answered_by(self, answer: TaskResult) -> bool:
        return answer.closed


@operation(
    "complete_task",
    POST,
    f"{TASK}/complete",
    Role.WRITER,
    tag=_TAG,
    payload=True,
    example={"result": {"paid": True}, "request_id": "call-1"},
)
class CompleteTask(Request[SettledPromise], frozen=True, kw_only=True, rename=_ONE):
    """Give the result of an attempt that was left to somebody else."""

    task_id: Name
    result: Annotated[Raw, Check(check_payload, "value")] = msgspec.field(default_factory=null)
    request_id: Key | None = None
    ttl_s: KeyTtl | None = None


@operation(
    "fail_task",
    POST,
    f"{TASK}/fail",
    Role.WRITER,
    tag=_TAG,
    payload=True,
    example={"error": "the bank has refused"},
)
class FailTask(Request[SettledPromise], frozen=True, kw_only=True, rename=_ONE):
    """Fail an attempt that was left to somebody else.

    It is tried again, unless the error is `non_retryable` or its policy says no.
    """

    task_id: Name
    error: str | Rejection
    request_id: Key | None = None
    ttl_s: KeyTtl | None = None


@operation("cancel_task", POST, f"{TASK}/cancel", Role.WRITER, tag=_TAG, example={"reason": "not wanted any more"})
class CancelTask(Request[Changed], frozen=True, kw_only=True, rename=_ONE):
    """Stop a standalone task."""

    task_id: Name
    reason: Text = ""
