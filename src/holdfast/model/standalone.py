"""Standalone tasks: the workflow kind that runs one, its input, and the names that are the engine's own.

A standalone task is an execution of `TASK_WORKFLOW`, whose program runs one task and gives its result. So everything
that an execution has, a standalone task has.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from holdfast.model.values import DEFAULT_TASK_RETRY, DEFAULT_TIMEOUTS, RetryPolicy, TaskTimeouts

PREFIX: Final = "holdfast."
"""What the engine's own kinds and tags begin with, and nobody else's."""

TASK_WORKFLOW: Final = f"{PREFIX}task"
TASK_NO: Final = 1
"""The number of its only task."""

KIND_TAG: Final = f"{PREFIX}task_kind"
"""The metadata of such an execution say which kind of task it runs, so that lists can be narrowed by it."""


class TaskOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The input of such an execution. The queue is the execution's own."""

    kind: str
    args: tuple[Raw, ...] = ()
    priority: int = 0
    retry: RetryPolicy = DEFAULT_TASK_RETRY
    timeouts: TaskTimeouts = DEFAULT_TIMEOUTS


def is_reserved(name: str) -> bool:
    return name.startswith(PREFIX)


def known_as(task_kind: str) -> str:
    """Under which name workers make a kind of task known, among the definitions of workflows."""
    return f"{TASK_WORKFLOW}:{task_kind}"
