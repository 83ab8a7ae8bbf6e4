"""Queues, workers and definitions: what is deployed, who works, what waits; pause, resume, drain."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from holdfast.contract.fields import Limit, Name, Reason
from holdfast.contract.operation import GET, ORG, POST, AuditedRequest, Record, Request, operation, public_names
from holdfast.model.keys import Role
from holdfast.model.pauses import Pausable, PauseKey, PauseMode

SYSTEM = "system"
_EXAMPLE = {"reason": "the payment service is down"}


class PauseInfo(Record, frozen=True, kw_only=True):
    """Since when nothing is handed out, and why; `mode` is `draining` for a worker that gets nothing more for good."""

    mode: PauseMode
    since: datetime
    reason: str = ""


class DefinitionInfo(
    Record, frozen=True, kw_only=True, rename=public_names(kind="workflow_kind", version="workflow_version")
):
    """A workflow kind and version that a worker has registered."""

    kind: str
    version: str
    build: str
    registered_at: datetime


class DefinitionList(Record, frozen=True, kw_only=True):
    """By kind, the version registered last first."""

    definitions: tuple[DefinitionInfo, ...]


class WorkerInfo(Record, frozen=True, kw_only=True, rename=public_names(id="worker_id")):
    """A worker session. It is missed when `lease_until` is over. `pause` if it is paused, or being drained."""

    id: str
    host: str
    pid: int
    started_at: datetime
    lease_until: datetime
    pause: PauseInfo | None = None

    @property
    def paused(self) -> bool:
        return self.pause is not None


class WorkerList(Record, frozen=True, kw_only=True):
    """The youngest first; also one that was lost and is not missed yet."""

    workers: tuple[WorkerInfo, ...]


class QueueInfo(Record, frozen=True, kw_only=True, rename=public_names(name="queue", waiting_since="since")):
    """What waits for a worker: `turns` of executions with pending events, and `tasks`; the first of them since
    `waiting_since`. `pause` if the queue is paused."""

    name: str
    turns: int
    tasks: int
    waiting_since: datetime | None = None
    paused: bool = False
    pause: PauseInfo | None = None


class QueueList(Record, frozen=True, kw_only=True):
    """Queues in which something waits, and those that are paused, by name."""

    queues: tuple[QueueInfo, ...]


class PauseChange(Record, frozen=True, kw_only=True):
    """How it is now; `changed` if that is due to this call."""

    name: str
    changed: bool
    paused: bool
    pause: PauseInfo | None = None


@operation("list_definitions", GET, f"{ORG}/definitions", Role.READER, tag=SYSTEM)
class ListDefinitions(Request[DefinitionList], frozen=True, kw_only=True):
    """Workflow kinds and versions that workers have registered."""

    limit: Limit = 100


@operation("list_workers", GET, f"{ORG}/workers", Role.READER, tag=SYSTEM)
class ListWorkers(Request[WorkerList], frozen=True, kw_only=True):
    """The worker sessions."""

    limit: Limit = 100


@operation("list_queues", GET, f"{ORG}/queues", Role.READER, tag=SYSTEM)
class ListQueues(Request[QueueList], frozen=True, kw_only=True):
    """What waits for workers, by queue; the executions themselves are those with status PENDING."""

    limit: Limit = 100


class PauseRequest(AuditedRequest[PauseChange], frozen=True, kw_only=True):
    """What the five have in common. `reason` is for people: it is shown with the pause and kept in the audit log."""

    WHAT: ClassVar[Pausable]
    MODE: ClassVar[PauseMode | None]

    reason: Reason = ""

    @property
    def key(self) -> PauseKey:
        return self.org, self.WHAT, self.name

    @property
    def name(self) -> str:
        """Of the queue, or the id of the worker session."""
        value: str = getattr(self, "queue" if self.WHAT is Pausable.QUEUE else "worker_id")
        return value


@operation("pause_queue", POST, f"{ORG}/queues/{{queue}}/pause", Role.ADMIN, tag=SYSTEM, example=_EXAMPLE)
class PauseQueue(PauseRequest, frozen=True, kw_only=True):
    """Hand out nothing of a queue; everything is still accepted."""

    WHAT, MODE = Pausable.QUEUE, PauseMode.PAUSED
    queue: Name


@operation("resume_queue", POST, f"{ORG}/queues/{{queue}}/resume", Role.ADMIN, tag=SYSTEM, example=_EXAMPLE)
class ResumeQueue(PauseRequest, frozen=True, kw_only=True):
    """Hand out what waits in a queue again."""

    WHAT, MODE = Pausable.QUEUE, None
    queue: Name


@operation("pause_worker", POST, f"{ORG}/workers/{{worker_id}}/pause", Role.ADMIN, tag=SYSTEM, example=_EXAMPLE)
class PauseWorker(PauseRequest, frozen=True, kw_only=True):
    """Hand out nothing to a worker session."""

    WHAT, MODE = Pausable.WORKER, PauseMode.PAUSED
    worker_id: Name


@operation("resume_worker", POST, f"{ORG}/workers/{{worker_id}}/resume", Role.ADMIN, tag=SYSTEM, example=_EXAMPLE)
class ResumeWorker(PauseRequest, frozen=True, kw_only=True):
    """Hand out work to a worker session again."""

    WHAT, MODE = Pausable.WORKER, None
    worker_id: Name


@operation("drain_worker", POST, f"{ORG}/workers/{{worker_id}}/drain", Role.ADMIN, tag=SYSTEM, example=_EXAMPLE)
class DrainWorker(PauseRequest, frozen=True, kw_only=True):
    """Hand out nothing more to a worker session, for good: it can be stopped when it has finished what it has."""

    WHAT, MODE = Pausable.WORKER, PauseMode.DRAINING
    worker_id: Name
