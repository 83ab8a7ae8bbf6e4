"""The smallest shared pieces: payload, failure, retry policy, time-outs, waits."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final
from zlib import crc32

import msgspec
from msgspec import Raw

from holdfast.errors import InvalidRequest

Payload = Raw
NULL: Final = Raw(b"null")

MICRO: Final = 1_000_000
TEN_YEARS_S: Final = 10 * 366 * 86_400.0


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An exception in its durable form."""

    type: str
    message: str = ""
    traceback: str = ""
    code: str = ""
    non_retryable: bool = False
    cause: Failure | None = None


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When to try again: `initial_interval_s` times `backoff` for each further attempt, at most `max_interval_s`.

    `max_attempts=None` never gives up. With `jitter` each delay is drawn from its upper half, so that tasks which
    failed together do not come back together. `non_retryable` names exception types that fail at once.
    """

    initial_interval_s: float = 1.0
    backoff: float = 2.0
    max_interval_s: float = 60.0
    max_attempts: int | None = None
    jitter: bool = True
    non_retryable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.max_attempts is not None and self.max_attempts < 1:
            raise InvalidRequest(f"max_attempts must be at least 1, not {self.max_attempts}", field="max_attempts")
        for name in ("initial_interval_s", "backoff", "max_interval_s"):
            number = getattr(self, name)
            if not math.isfinite(number) or number < 0:
                raise InvalidRequest(f"{name} must be a finite number of at least 0, not {number}", field=name)

    def allows(self, failure: Failure, attempt: int) -> bool:
        """Whether another attempt may follow attempt number `attempt`, which ended in `failure`."""
        if failure.non_retryable or failure.type in self.non_retryable:
            return False
        return self.max_attempts is None or attempt < self.max_attempts

    def delay_s(self, attempt: int, seed: str) -> float:
        """Seconds between the end of attempt number `attempt` and the next one; the same for the same seed."""
        try:
            grown = self.initial_interval_s * self.backoff ** (attempt - 1)
        except OverflowError:
            grown = self.initial_interval_s and math.inf
        delay = min(grown, self.max_interval_s, TEN_YEARS_S)  # later than that is no time a database can keep
        if not self.jitter:
            return delay
        return delay * (0.5 + 0.5 * crc32(f"{seed}/{attempt}".encode()) / 0xFFFFFFFF)


class TaskTimeouts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`start_to_close_s`: one attempt; `schedule_to_close_s`: all attempts; `heartbeat_s`: silence of the body."""

    start_to_close_s: float = 3600.0
    schedule_to_close_s: float | None = None
    heartbeat_s: float | None = None


class Wait(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an execution is blocked on, for people and for `recover()`. `kind`: signal, timer, task, step, child,
    external_signal, promise, event, message, broadcast, condition, call (only a signal or update to
    one of its handlers can move it)."""

    kind: str
    name: str = ""
    number: int = 0
    line: str = ""
    until_at: int | None = None


class ParentClose(StrEnum):
    """What becomes of an open child when its parent closes."""

    DEFAULT = "default"
    """It outlives a parent that completes or continues as new, and is asked to cancel otherwise."""
    TERMINATE = "terminate"
    CANCEL = "cancel"
    ABANDON = "abandon"


class IfRunning(StrEnum):
    """What a start means when an open execution has the same workflow id."""

    USE_EXISTING = "use_existing"
    FAIL = "fail"
    TERMINATE = "terminate"


class IfClosed(StrEnum):
    """What a start means when the workflow id was used before and its last execution is closed."""

    ALLOW = "allow"
    ALLOW_IF_FAILED = "allow_if_failed"
    REJECT = "reject"


class DeliveryMode(StrEnum):
    """Who gets a published event besides those that wait for it now."""

    WAITERS = "waiters"
    """Nobody: it is not kept."""
    WAITERS_AND_FUTURE = "waiters_and_future"
    """Whoever looks back, until it expires."""
    CREATED_BEFORE = "created_before"
    """Whoever looks back, if their execution was begun before it; nor do younger ones that wait now."""


class Settlement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What settled a promise: by which way, under which idempotency key, by which published event."""

    by: str
    idempotency_key: str | None = None
    event_id: int | None = None


class Token(msgspec.Struct, frozen=True):
    """The right to write for an execution or task. The nonce keeps an old holder out even after a restored backup
    has made the counter run through the same numbers again."""

    epoch: int
    nonce: int


DEFAULT_TASK_RETRY: Final = RetryPolicy()
DEFAULT_STEP_RETRY: Final = RetryPolicy(initial_interval_s=0.1, max_interval_s=5.0, max_attempts=3)
DEFAULT_TIMEOUTS: Final = TaskTimeouts()
