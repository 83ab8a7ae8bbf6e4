"""What a store is asked outside of transactions, and answers, beyond plain rows."""

from __future__ import annotations

import msgspec

from holdfast.model.executions import WorkflowStatus


class ExecutionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of executions, newest first, strictly older than `before` (an execution id). All of the `metadata` pairs
    must be there."""

    org: str
    statuses: tuple[WorkflowStatus, ...] = ()
    kinds: tuple[str, ...] = ()
    workflow_id: str | None = None
    queue: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    created_from: int | None = None
    created_before: int | None = None
    before: str | None = None
    limit: int = 100


class Inconsistency(msgspec.Struct, frozen=True, kw_only=True):
    """An open execution whose rows disagree: for `recover()`. A promise counts as missing when it lacks its row, or the
    timer or subscription that its row speaks of."""

    execution_id: str
    unread: bool = False
    missing_timers: tuple[int, ...] = ()
    missing_tasks: tuple[int, ...] = ()
    missing_waits: tuple[int, ...] = ()
    missing_promises: tuple[int, ...] = ()


class QueueDepth(msgspec.Struct, frozen=True):
    """How much of a queue waits for a worker now, and since when the first of it does."""

    org: str
    queue: str
    waiting: int
    since_at: int


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """What waits in queues, the fullest first, and how many executions are stuck, by org. What is delayed, or left to
    somebody outside, does not wait."""

    turns: list[QueueDepth]
    tasks: list[QueueDepth]
    stuck: dict[str, int]


class Vitals(msgspec.Struct, frozen=True, kw_only=True):
    """How a store is doing. `reads` are those that run or wait now, for `readers` that answer them.
    `notifications_healthy`: whether other processes are heard of at once; None where a database tells nothing."""

    readers: int
    reads: int = 0
    notifications_healthy: bool | None = None
