"""Queues and workers that somebody has paused."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.model.records import table


class Pausable(StrEnum):
    QUEUE = "queue"
    WORKER = "worker"


class PauseMode(StrEnum):
    """`draining` is for workers, and for good: it gets nothing more, and what it holds comes to its end there."""

    PAUSED = "paused"
    DRAINING = "draining"


PauseKey = tuple[str, Pausable, str]
"""Org, what it is, its name."""


@table("holdfast_pauses", key=("org", "what", "name"), owner="org")
class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing of this queue, or to this worker session, is handed out. What was handed out goes on."""

    org: str
    what: Pausable
    name: str
    mode: PauseMode = PauseMode.PAUSED
    since_at: int
    reason: str = ""

    @property
    def key(self) -> PauseKey:
        return self.org, self.what, self.name
