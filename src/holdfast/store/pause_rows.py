"""Pauses as rows of a table, the same in every store."""

from __future__ import annotations

from holdfast.model.pauses import Pausable, Pause, PauseKey, PauseMode
from holdfast.store.rows import Row


def pause_to_row(pause: Pause) -> Row:
    return (pause.org, pause.what.value, pause.name, pause.mode.value, pause.since_at, pause.reason)


def row_to_pause(row: Row) -> Pause:
    return Pause(org=row[0], what=Pausable(row[1]), name=row[2], mode=PauseMode(row[3]), since_at=row[4], reason=row[5])


def key_to_row(key: PauseKey) -> Row:
    return (key[0], key[1].value, key[2])
