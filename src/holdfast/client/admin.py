"""What those need who look after an org: queues, workers, what is paused, why something does not move.

`Administration` is the part of `Client` that has these calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.client.explainer import EventExplanation, Explainer, WorkflowExplanation
from holdfast.client.views import instant
from holdfast.contract.deployments import ChangePause, Deployments, QueueView, WorkerView
from holdfast.errors import Unsupported
from holdfast.model.pauses import Pausable, Pause, PauseMode


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseInfo:
    """Since when nothing is handed out, and why; `mode` is `draining` for a worker that gets nothing more for good."""

    mode: PauseMode
    since: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """What waits for a worker: `turns` of executions with news, and `tasks`; the first of them since `waiting_since`.
    `pause` if the queue is paused."""

    name: str
    turns: int
    tasks: int
    waiting_since: datetime | None = None
    pause: PauseInfo | None = None

    @property
    def paused(self) -> bool:
        return self.pause is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A worker session. It is missed when `lease_until` is over."""

    id: str
    host: str
    pid: int
    started_at: datetime
    lease_until: datetime
    pause: PauseInfo | None = None

    @property
    def paused(self) -> bool:
        return self.pause is not None


class Administration:
    """See the module's text."""

    org: str
    explainer: Explainer
    deployments: Deployments | None

    async def list_queues(self, *, limit: int = 1000) -> list[QueueInfo]:
        """Queues in which something waits for a worker, and those that are paused, by name."""
        return [_queue(found) for found in await self._of().queues(self.org, limit)]

    async def pause_queue(self, queue: str, *, reason: str = "") -> bool:
        """Hand out nothing of a queue until it is resumed, on any node; whether it was not paused before.

        What was handed out goes on. Starts, signals and everything else are still accepted: work waits in the queue.
        """
        return await self._change(Pausable.QUEUE, queue, PauseMode.PAUSED, reason)

    async def resume_queue(self, queue: str) -> bool:
        """Hand out what waits in a queue again; whether it was paused."""
        return await self._change(Pausable.QUEUE, queue, None)

    async def list_workers(self, *, limit: int = 1000) -> list[WorkerInfo]:
        """The worker sessions, the youngest first; also one that was lost and is not missed yet."""
        return [_worker(found) for found in await self._of().workers(self.org, limit)]

    async def pause_worker(self, worker_id: str, *, reason: str = "") -> bool:
        """Hand out nothing to a worker session until it is resumed; whether it was not paused before.

        What it has it finishes. Raises WorkerNotFound, WorkerDraining.
        """
        return await self._change(Pausable.WORKER, worker_id, PauseMode.PAUSED, reason)

    async def resume_worker(self, worker_id: str) -> bool:
        """Hand out work to a worker session again; whether it was paused. Raises WorkerNotFound, WorkerDraining."""
        return await self._change(Pausable.WORKER, worker_id, None)

    async def drain_worker(self, worker_id: str, *, reason: str = "") -> bool:
        """Hand out nothing more to a worker session, for good; whether it was not being drained before.

        It can be stopped when it has finished what it has. Raises WorkerNotFound.
        """
        return await self._change(Pausable.WORKER, worker_id, PauseMode.DRAINING, reason)

    async def explain_workflow(self, workflow_execution_id: str) -> WorkflowExplanation:
        """Why an execution does not move, or how it ended, and what to do next."""
        return await self.explainer.workflow(workflow_execution_id)

    async def explain_event(self, event_id: int) -> EventExplanation:
        """Why an event that is kept or dead went to whom it went: every open wait of its key, and what refused it."""
        return await self.explainer.event(event_id)

    async def _change(self, what: Pausable, name: str, mode: PauseMode | None, reason: str = "") -> bool:
        request = ChangePause(org=self.org, what=what, name=name, mode=mode, reason=reason)
        return (await self._of().change_pause(request)).changed

    def _of(self) -> Deployments:
        if self.deployments is None:
            raise Unsupported("this client was made without access to queues and workers")
        return self.deployments


def _queue(found: QueueView) -> QueueInfo:
    return QueueInfo(
        name=found.queue,
        turns=found.turns,
        tasks=found.tasks,
        waiting_since=None if found.since_at is None else instant(found.since_at),
        pause=_pause(found.pause),
    )


def _worker(found: WorkerView) -> WorkerInfo:
    row = found.row
    return WorkerInfo(
        id=row.id,
        host=row.host,
        pid=row.pid,
        started_at=instant(row.started_at),
        lease_until=instant(row.lease_until_at),
        pause=_pause(found.pause),
    )


def _pause(found: Pause | None) -> PauseInfo | None:
    if found is None:
        return None
    return PauseInfo(mode=found.mode, since=instant(found.since_at), reason=found.reason)
