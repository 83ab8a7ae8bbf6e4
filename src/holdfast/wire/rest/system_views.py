"""The server about itself, as JSON."""

from __future__ import annotations

from datetime import datetime

from holdfast.contract import deployments as dp
from holdfast.contract.upkeep import RecoveryReport
from holdfast.model.executions import DefinitionRow, WorkerRow
from holdfast.model.keys import Role
from holdfast.wire.rest.times import instant
from holdfast.wire.rest.views import View


class HealthView(View, frozen=True, kw_only=True):
    status: str


class MeView(View, frozen=True, kw_only=True):
    """`key_id` is null where there are no keys. `payload_bytes` is how large one payload may be."""

    org: str
    role: Role
    key_id: str | None = None
    payload_bytes: int = 64 * 1024 * 1024


class RecoveryView(View, frozen=True, kw_only=True):
    """What was found and done. `stuck` are executions that can't go on by themselves."""

    open_executions: int = 0
    sessions_expired: int = 0
    turns_reclaimed: int = 0
    tasks_reclaimed: int = 0
    timers_fired: int = 0
    made_ready: int = 0
    timers_restored: int = 0
    tasks_restored: int = 0
    waits_restored: int = 0
    promises_restored: int = 0
    stuck: tuple[str, ...] = ()


def recovery_view(report: RecoveryReport) -> RecoveryView:
    return RecoveryView(**{name: getattr(report, name) for name in RecoveryView.__struct_fields__})


class DefinitionView(View, frozen=True, kw_only=True):
    """A workflow kind and version that some worker has registered."""

    workflow_kind: str
    workflow_version: str
    build: str
    registered_at: datetime


class DefinitionList(View, frozen=True, kw_only=True):
    """By kind, the version registered last first."""

    definitions: tuple[DefinitionView, ...]


class WorkerView(View, frozen=True, kw_only=True):
    """A worker session. It is missed when `lease_until` is over."""

    worker_id: str
    host: str
    pid: int
    started_at: datetime
    lease_until: datetime


class WorkerList(View, frozen=True, kw_only=True):
    """The youngest first."""

    workers: tuple[WorkerView, ...]


class QueueView(View, frozen=True, kw_only=True):
    """What waits for a worker: executions with news (`turns`) and tasks, the first of them `since`."""

    queue: str
    turns: int
    tasks: int
    since: datetime


class QueueList(View, frozen=True, kw_only=True):
    """Queues in which something waits, by name."""

    queues: tuple[QueueView, ...]


def definition_view(row: DefinitionRow) -> DefinitionView:
    return DefinitionView(
        workflow_kind=row.kind,
        workflow_version=row.version,
        build=row.build,
        registered_at=instant(row.registered_at),
    )


def worker_view(row: WorkerRow) -> WorkerView:
    return WorkerView(
        worker_id=row.id,
        host=row.host,
        pid=row.pid,
        started_at=instant(row.started_at),
        lease_until=instant(row.lease_until_at),
    )


def queue_view(queue: dp.QueueView) -> QueueView:
    return QueueView(queue=queue.queue, turns=queue.turns, tasks=queue.tasks, since=instant(queue.since_at))
