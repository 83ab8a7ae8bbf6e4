"""Values, instants and ages as people read them: the words that explanations use."""

from __future__ import annotations

from holdfast.diagnostics.formatting import (
    clean,
    day_time,
    failure,
    length,
    now,
    short,
    since,
    task_state,
    value,
    wait,
    waits,
)

__all__ = [
    "clean",
    "day_time",
    "failure",
    "length",
    "now",
    "short",
    "since",
    "task_state",
    "value",
    "wait",
    "waits",
]
