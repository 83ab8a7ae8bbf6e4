"""Operations on executions. Importing the package makes them known to `engine.api`."""

from holdfast.engine.executions import (
    bury_unread,
    cancel,
    fork,
    redeliver,
    remove_dead_letter,
    reset,
    resume,
    retry,
    signal,
    signal_with_start,
    start,
    terminate,
    update,
)

__all__ = [
    "bury_unread",
    "cancel",
    "fork",
    "redeliver",
    "remove_dead_letter",
    "reset",
    "resume",
    "retry",
    "signal",
    "signal_with_start",
    "start",
    "terminate",
    "update",
]
