"""Histories as they were: what a program had done when an event was the last."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model.events import HistoryEvent, TurnEvent
from holdfast.replay.journal import STEP_EVENTS


def as_of(history: Sequence[HistoryEvent], seq: int) -> list[HistoryEvent]:
    """The part of a whole history that recreates the program as it was when event `seq` was the last.

    These are the turns that had written a row by then. Their later rows belong to them, too: a turn is recorded whole
    or not at all. Events that no such turn has seen are in it, but nothing delivers them.
    """
    turns = {event.body.up_to for event in history[:seq] if isinstance(event.body, TurnEvent)}
    return [event for event in history if event.seq <= seq or _completes(event, turns)]


def _completes(event: HistoryEvent, turns: set[int]) -> bool:
    """Whether a later event is a row of one of these turns. A step that finished later is news, not part of it."""
    body = event.body
    return isinstance(body, TurnEvent) and not isinstance(body, STEP_EVENTS) and body.up_to in turns


def is_closed(history: Sequence[HistoryEvent]) -> bool:
    return bool(history) and history[-1].body.TERMINAL
