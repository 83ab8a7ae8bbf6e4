"""Values, instants and ages as people read them, safe to print on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from holdfast.contract.execution_reads import FailureInfo, PendingTask, WaitingFor
from holdfast.contract.instants import LAST, micros
from holdfast.model.values import MICRO, Failure, Wait

SHORT = 100
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def clean(text: str) -> str:
    """Without anything that a terminal would obey: other people's text is only shown."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def now() -> int:
    return time.time_ns() // 1_000


def day_time(at: int | datetime | None) -> str:
    """An instant as local time; one of today without its date."""
    at = micros(at) if isinstance(at, datetime) else at
    if at is None or at >= LAST:
        return "never"
    local = datetime.fromtimestamp(at / MICRO, UTC).astimezone()
    today = datetime.now(UTC).astimezone().date()
    return local.strftime("%H:%M:%S" if local.date() == today else "%Y-%m-%d %H:%M:%S")


def length(span: int) -> str:
    """A length of time in its two largest units."""
    seconds = abs(span) / MICRO
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for number, (size, unit) in enumerate(_UNITS):
        if seconds >= size:
            whole = int(seconds // size)
            rest = int(seconds % size // _UNITS[number + 1][0]) if size > 1 else 0
            return f"{whole} {unit}" + (f" {rest} {_UNITS[number + 1][1]}" if rest else "")
    return "0 s"


def since(at: int | datetime, seen_at: int | None = None) -> str:
    """`06:10:02, 3 min ago`, or `in 3 min`. Another clock than this machine's may say when it is seen."""
    at = micros(at) if isinstance(at, datetime) else at
    passed = (now() if seen_at is None else seen_at) - at
    return f"{day_time(at)}, {length(passed)} ago" if passed >= 0 else f"{day_time(at)}, in {length(passed)}"


def value(payload: Any, limit: int = SHORT) -> str:
    """A payload, or a value that was one."""
    text = bytes(payload) if isinstance(payload, Raw | bytes) else msgspec.json.encode(payload)
    return short(text.decode("utf-8", "replace"), limit)


def short(text: str, limit: int = SHORT) -> str:
    shown = clean(text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def failure(found: Failure | FailureInfo | None) -> str:
    return "" if found is None else short(f"{found.type}: {found.message}" if found.message else found.type, 300)


def wait(found: Wait | WaitingFor) -> str:
    name = f" {clean(found.name)!r}" if found.name else ""
    until_at = found.until if isinstance(found, WaitingFor) else found.until_at
    until = f" at {day_time(until_at)}" if until_at is not None else ""
    return f"{found.kind.replace('_', ' ')}{name}{until}"


def waits(found: Iterable[Wait | WaitingFor]) -> str:
    """Timers, which mostly limit something else, come last."""
    return ", ".join(wait(one) for one in sorted(found, key=lambda one: one.kind == "timer"))


def task_state(task: PendingTask, seen_at: int | None = None) -> str:
    """Where an unfinished task stands."""
    seen_at = now() if seen_at is None else seen_at
    progress = "" if task.progress is None else f", {task.progress:.0%} done"
    if task.running:
        began = f" since {day_time(task.started_at)}" if task.started_at is not None else ""
        return f"running{began}{progress}"
    if task.deferred:
        return f"waits to be completed by its token{progress}"
    if task.attempt and task.not_before is not None and micros(task.not_before) > seen_at:
        return f"tried again in {length(micros(task.not_before) - seen_at)}{progress}"
    return f"waits for a worker{progress}"
