"""What a history asks for, and what has come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from verification.invariants.records import Record, Violation

_WHAT: Final[dict[type[e.EventBody], tuple[str, str]]] = {
    e.TaskScheduled: ("task", "made"),
    e.TaskCompleted: ("task", "settled"),
    e.TaskFailed: ("task", "settled"),
    e.TaskCancelRequested: ("task", "cancelled"),
    e.TimerStarted: ("timer", "made"),
    e.TimerFired: ("timer", "settled"),
    e.TimerCancelled: ("timer", "cancelled"),
    e.ChildStarted: ("child", "made"),
    e.ChildCompleted: ("child", "settled"),
    e.ChildFailed: ("child", "settled"),
    e.ChildCancelRequested: ("child", "cancelled"),
    e.ExternalSignalInitiated: ("signal", "made"),
    e.ExternalSignalDelivered: ("signal", "settled"),
    e.ExternalSignalFailed: ("signal", "settled"),
    e.WaitStarted: ("wait", "made"),
    e.EventReceived: ("wait", "settled"),
    e.BroadcastReceived: ("wait", "settled"),
    e.WaitCancelled: ("wait", "cancelled"),
    e.PromiseCreated: ("promise", "made"),
    e.PromiseResolved: ("promise", "settled"),
    e.PromiseRejected: ("promise", "settled"),
    e.PromiseTimedOut: ("promise", "settled"),
    e.PromiseCancelled: ("promise", "cancelled"),
    e.StepCompleted: ("step", "settled"),
    e.StepFailed: ("step", "settled"),
}
"""Which kind of work an event is about, and what it says of it. The field `<kind>_no` says which one."""
_UPDATES: Final = frozenset({e.UpdateRequested, e.UpdateAccepted, e.UpdateRejected, e.UpdateCompleted, e.UpdateFailed})


def check_commands(record: Record) -> Iterator[Violation]:
    yield from _Commands(record).check()
    if not _UPDATES.isdisjoint(record.kinds):
        yield from _Updates(record).check()


class _Commands:
    """One walk through a history, keeping what was asked for and what has come of it."""

    def __init__(self, record: Record) -> None:
        self._id = record.execution_row.id
        self._history = record.history
        self._due: dict[int, int] = {}
        self._made: Counter[str] = Counter()
        self._outcome: dict[tuple[str, int], HistoryEvent] = {}
        self._cancelled: dict[tuple[str, int], HistoryEvent] = {}

    def check(self) -> Iterator[Violation]:
        for event in self._history:
            body: Any = event.body
            what = _WHAT.get(type(body))
            if what is None:
                continue
            kind, number = what[0], getattr(body, f"{what[0]}_no")
            match body:
                case e.TimerFired():
                    yield from self._fire(number, event)
                case e.StepCompleted() | e.StepFailed():
                    yield from self._step(number, event)
                case _ if what[1] == "made":
                    if isinstance(body, e.TimerStarted):
                        self._due[number] = body.fire_at
                    yield from self._make(kind, number, event)
                    if isinstance(body, e.PromiseCreated) and body.timer_no is not None:
                        # Its time-out is one of the timers, though it fires as the promise's own event.
                        yield from self._make("timer", body.timer_no, event)
                case _ if what[1] == "cancelled":
                    yield from self._cancel(kind, number, event)
                case _:
                    yield from self._settle(kind, number, event, "I10")

    def _make(self, kind: str, number: int, event: HistoryEvent) -> Iterator[Violation]:
        self._made[kind] += 1
        if number != self._made[kind]:
            yield self._violation(
                "I10", event, f"{kind} {number} was asked for where {kind} {self._made[kind]} belongs"
            )

    def _settle(self, kind: str, number: int, event: HistoryEvent, twice: str) -> Iterator[Violation]:
        """A child that was asked to cancel ends all the same, and that is told. Nothing else is."""
        key = (kind, number)
        if not 1 <= number <= self._made[kind]:
            yield self._violation("I10", event, f"outcome of {kind} {number}, which was never asked for")
        if key in self._outcome:
            yield self._violation(twice, event, f"{kind} {number} had its outcome at {self._outcome[key].seq}")
        if key in self._cancelled and kind != "child":
            yield self._violation(twice, event, f"{kind} {number} was cancelled at {self._cancelled[key].seq}")
        self._outcome.setdefault(key, event)

    def _fire(self, number: int, event: HistoryEvent) -> Iterator[Violation]:
        yield from self._settle("timer", number, event, "I13")
        early_us = self._due.get(number, event.at) - event.at
        if early_us > 0:
            yield self._violation("I13", event, f"timer {number} fired {early_us} µs before it was due")

    def _cancel(self, kind: str, number: int, event: HistoryEvent) -> Iterator[Violation]:
        # Cancelling what has just had its outcome is no violation: the turn had not seen it yet.
        if not 1 <= number <= self._made[kind]:
            yield self._violation("I10", event, f"{kind} {number} is cancelled and was never asked for")
        if (kind, number) in self._cancelled:
            yield self._violation("I10", event, f"{kind} {number} is cancelled twice")
        self._cancelled.setdefault((kind, number), event)

    def _step(self, number: int, event: HistoryEvent) -> Iterator[Violation]:
        """A step is known by its outcome alone; steps that run side by side finish in any order."""
        if ("step", number) in self._outcome:
            yield self._violation("I10", event, f"step {number} was recorded at {self._outcome['step', number].seq}")
        self._outcome.setdefault(("step", number), event)

    def _violation(self, invariant: str, event: HistoryEvent, text: str) -> Violation:
        return Violation(invariant, self._id, event.seq, text)


class _Updates:
    """Asked for once, then accepted or rejected, and an accepted one completed or failed: each at most once."""

    def __init__(self, record: Record) -> None:
        self._id = record.execution_row.id
        self._history = record.history
        self._requested: dict[str, HistoryEvent] = {}
        self._verdict: dict[str, HistoryEvent] = {}
        self._end: dict[str, HistoryEvent] = {}

    def check(self) -> Iterator[Violation]:
        for event in self._history:
            body: Any = event.body
            match body:
                case e.UpdateRequested():
                    yield from self._note(self._requested, event)
                case e.UpdateAccepted() | e.UpdateRejected():
                    if body.update_id not in self._requested:
                        yield self._violation(event, "was never requested")
                    yield from self._note(self._verdict, event)
                case e.UpdateCompleted() | e.UpdateFailed():
                    verdict = self._verdict.get(body.update_id)
                    if verdict is None or not isinstance(verdict.body, e.UpdateAccepted):
                        yield self._violation(event, "was not accepted")
                    yield from self._note(self._end, event)

    def _note(self, known: dict[str, HistoryEvent], event: HistoryEvent) -> Iterator[Violation]:
        body: Any = event.body
        first = known.setdefault(body.update_id, event)
        if first is not event:
            yield self._violation(event, f"has had its {first.type} at {first.seq}")

    def _violation(self, event: HistoryEvent, text: str) -> Violation:
        body: Any = event.body
        return Violation("I10", self._id, event.seq, f"{event.type}: update {body.update_id!r} {text}")
