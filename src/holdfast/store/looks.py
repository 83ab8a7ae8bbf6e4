"""What a store answers outside of transactions, beyond rows."""

from __future__ import annotations

import msgspec


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
    """How a store is doing. `reads` are those that run or wait now, for `readers` that answer them. `hints_healthy`:
    whether other processes are heard of at once; None where a database tells nothing."""

    readers: int
    reads: int = 0
    hints_healthy: bool | None = None
