"""What those need who look after an org: queues, workers, what is paused, why something does not move.

`Operating` is the part of `Client` that has these calls.
"""

from __future__ import annotations

from holdfast.contract.explanations import ExplainWorkflow, WorkflowExplanation
from holdfast.contract.operation import Api
from holdfast.contract.queues import (
    DrainWorker,
    ListQueues,
    ListWorkers,
    PauseQueue,
    PauseWorker,
    QueueInfo,
    ResumeQueue,
    ResumeWorker,
    WorkerInfo,
)


class Operating:
    """See the module's text."""

    org: str
    api: Api

    async def list_queues(self, *, limit: int = 1000) -> list[QueueInfo]:
        """Queues in which something waits for a worker, and those that are paused, by name."""
        return list((await self.api.call(ListQueues(org=self.org, limit=limit))).queues)

    async def pause_queue(self, queue: str, *, reason: str = "") -> bool:
        """Hand out nothing of a queue until it is resumed, on any node; whether it was not paused before.

        What was handed out goes on. Starts, signals and everything else are still accepted: work waits in the queue.
        """
        return (await self.api.call(PauseQueue(org=self.org, queue=queue, reason=reason))).changed

    async def resume_queue(self, queue: str) -> bool:
        """Hand out what waits in a queue again; whether it was paused."""
        return (await self.api.call(ResumeQueue(org=self.org, queue=queue))).changed

    async def list_workers(self, *, limit: int = 1000) -> list[WorkerInfo]:
        """The worker sessions, the youngest first; also one that was lost and is not missed yet."""
        return list((await self.api.call(ListWorkers(org=self.org, limit=limit))).workers)

    async def pause_worker(self, worker_id: str, *, reason: str = "") -> bool:
        """Hand out nothing to a worker session until it is resumed; whether it was not paused before.

        What it has it finishes. Raises WorkerNotFound, WorkerDraining.
        """
        return (await self.api.call(PauseWorker(org=self.org, worker_id=worker_id, reason=reason))).changed

    async def resume_worker(self, worker_id: str) -> bool:
        """Hand out work to a worker session again; whether it was paused. Raises WorkerNotFound, WorkerDraining."""
        return (await self.api.call(ResumeWorker(org=self.org, worker_id=worker_id))).changed

    async def drain_worker(self, worker_id: str, *, reason: str = "") -> bool:
        """Hand out nothing more to a worker session, for good; whether it was not being drained before.

        It can be stopped when it has finished what it has. Raises WorkerNotFound.
        """
        return (await self.api.call(DrainWorker(org=self.org, worker_id=worker_id, reason=reason))).changed

    async def explain_workflow(self, workflow_execution_id: str) -> WorkflowExplanation:
        """Why an execution does not move, or how it ended, and what to do next."""
        return await self.api.call(ExplainWorkflow(org=self.org, workflow_execution_id=workflow_execution_id))
