"""What is deployed, who works, what waits: for people who look after an org."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

import msgspec

from holdfast.contract.keys import Principal
from holdfast.model.executions import DefinitionRow, WorkerRow
from holdfast.model.pauses import Pausable, Pause, PauseKey, PauseMode


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """How many turns and tasks of a queue wait for a worker, and since when the first of them does; and whether the
    queue is paused."""

    queue: str
    turns: int = 0
    tasks: int = 0
    since_at: int | None = None
    pause: Pause | None = None


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker session, and whether it is paused or being drained."""

    row: WorkerRow
    pause: Pause | None = None


class ChangePause(msgspec.Struct, frozen=True, kw_only=True):
    """Pause a queue or a worker session, drain a worker session; without `mode`, let it go on."""

    org: str
    what: Pausable
    name: str
    mode: PauseMode | None
    reason: str = ""
    by: Principal | None = None
    address: str = ""

    @property
    def key(self) -> PauseKey:
        return self.org, self.what, self.name


class PauseAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How it is now, and whether that is due to this request."""

    changed: bool
    pause: Pause | None = None


class Deployments(Protocol):
    def definitions(self, org: str, limit: int = 1000) -> Awaitable[list[DefinitionRow]]:
        """What workers have registered, by kind, the version registered last first."""
        ...

    def workers(self, org: str, limit: int = 1000) -> Awaitable[list[WorkerView]]:
        """The worker sessions, the youngest first; also one that was lost and is not missed yet."""
        ...

    def queues(self, org: str, limit: int = 1000) -> Awaitable[list[QueueView]]:
        """Queues in which something waits, and those that are paused, by name."""
        ...

    def change_pause(self, request: ChangePause) -> Awaitable[PauseAnswer]:
        """Nothing of a paused queue, or to a paused worker, is handed out; what was handed out goes on, and everything
        is still accepted. Raises WorkerNotFound, WorkerDraining, Forbidden, OrgClosed."""
        ...
