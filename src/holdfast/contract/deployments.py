"""What is deployed, who works, what waits: for people who look after an org."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

import msgspec

from holdfast.model.executions import DefinitionRow, WorkerRow


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """How many turns and tasks of a queue wait for a worker, and since when the first of them does."""

    queue: str
    turns: int = 0
    tasks: int = 0
    since_at: int


class Deployments(Protocol):
    def definitions(self, org: str, limit: int = 1000) -> Awaitable[list[DefinitionRow]]:
        """What workers have registered, by kind, the version registered last first."""
        ...

    def workers(self, org: str, limit: int = 1000) -> Awaitable[list[WorkerRow]]:
        """The worker sessions, the youngest first; also one that was lost and is not missed yet."""
        ...

    def queues(self, org: str, limit: int = 1000) -> Awaitable[list[QueueView]]:
        """Queues in which something waits, by name."""
        ...
