"""What a task says while it runs, and how far it has got: to read, and to follow."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Raw

from holdfast.model.executions import OutputRow
from holdfast.model.values import NULL, Failure


class TaskFeedItemKind(StrEnum):
    OUTPUT = "output"
    PROGRESS = "progress"
    ATTEMPT = "attempt"
    ENDED = "ended"


class TaskEnd(StrEnum):
    """How a task ended. One whose workflow was closed before its end is cancelled, too."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskFeedItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a task that is followed.

    `output`: `seq`, `data`, and how many chunks before it were `dropped`. `progress`: the newest. `attempt`: one has
    begun, and `failure` says why the one before is over. `ended`: `status`, and the `failure` of a failed one.
    """

    kind: TaskFeedItemKind
    attempt: int
    at: int
    seq: int = 0
    data: Raw = NULL
    dropped: int = 0
    progress: float | None = None
    status: TaskEnd | None = None
    failure: Failure | None = None


class OutputPage(msgspec.Struct, frozen=True):
    """`more`: there is more after the last of these."""

    chunks: tuple[OutputRow, ...]
    more: bool
