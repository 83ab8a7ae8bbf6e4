"""The server about itself, as JSON."""

from __future__ import annotations

from datetime import datetime

from holdfast.contract import deployments as dp
from holdfast.contract.upkeep import RecoveryReport
from holdfast.model.executions import DefinitionRow, WorkerRow
from holdfast.model.keys import Role
from holdfast.model.pauses import Pausable, Pause, PauseMode
from holdfast.transport.rest.bodies import Body
from holdfast.transport.rest.times import instant, instant_or_none, micros
from holdfast.transport.rest.views import View


class HealthView(View, frozen=True, kw_only=True):
    status: str


class MeView(View, frozen=True, kw_only=True):
    """`key_id` is null where there are no keys. `payload_bytes` is how large one payload may be. `now` is the time by
    which leases and timers are judged."""

    org: str
    role: Role
    key_id: str | None = None
    payload_bytes: int = 64 * 1024 * 1024
    now: datetime | None = None


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


class PauseView(View, frozen=True, kw_only=True):
    """Since when nothing is handed out, and why."""

    mode: PauseMode
    since: datetime
    reason: str = ""


class WorkerView(View, frozen=True, kw_only=True):
    """A worker session. It is missed when `lease_until` is over. `pause` if it is paused, or being drained."""

    worker_id: str
    host: str
    pid: int
    started_at: datetime
    lease_until: datetime
    pause: PauseView | None = None


class WorkerList(View, frozen=True, kw_only=True):
    """The youngest first."""

    workers: tuple[WorkerView, ...]


class QueueView(View, frozen=True, kw_only=True):
    """What waits for a worker: executions with news (`turns`) and tasks, the first of them `since`. `pause` if nothing
    of it is handed out for the time being."""

    queue: str
    turns: int
    tasks: int
    since: datetime | None = None
    paused: bool = False
    pause: PauseView | None = None


class QueueList(View, frozen=True, kw_only=True):
    """Queues in which something waits, and those that are paused, by name."""

    queues: tuple[QueueView, ...]


class PauseBody(Body, frozen=True, kw_only=True):
    """`reason` is for people: it is shown with the pause and stands in the record of acts."""

    reason: str = ""


class PauseAnswerView(View, frozen=True, kw_only=True):
    """How it is now; `changed` if that is due to this call."""

    name: str
    changed: bool
    paused: bool
    pause: PauseView | None = None


def definition_view(row: DefinitionRow) -> DefinitionView:
    return DefinitionView(
        workflow_kind=row.kind,
        workflow_version=row.version,
        build=row.build,
        registered_at=instant(row.registered_at),
    )


def pause_view(pause: Pause | None) -> PauseView | None:
    if pause is None:
        return None
    return PauseView(mode=pause.mode, since=instant(pause.since_at), reason=pause.reason)


def pause_answer_view(name: str, answer: dp.PauseAnswer) -> PauseAnswerView:
    pause = pause_view(answer.pause)
    return PauseAnswerView(name=name, changed=answer.changed, paused=pause is not None, pause=pause)


def worker_view(worker: dp.WorkerView) -> WorkerView:
    row = worker.row
    return WorkerView(
        worker_id=row.id,
        host=row.host,
        pid=row.pid,
        started_at=instant(row.started_at),
        lease_until=instant(row.lease_until_at),
        pause=pause_view(worker.pause),
    )


def queue_view(queue: dp.QueueView) -> QueueView:
    return QueueView(
        queue=queue.queue,
        turns=queue.turns,
        tasks=queue.tasks,
        since=instant_or_none(queue.since_at),
        paused=queue.pause is not None,
        pause=pause_view(queue.pause),
    )


# --- read again, by a client ----------------------------------------------------------------------------------------


def read_pause(view: PauseView | None, org: str, what: Pausable, name: str) -> Pause | None:
    if view is None:
        return None
    return Pause(org=org, what=what, name=name, mode=view.mode, since_at=micros(view.since), reason=view.reason)


def read_worker(view: WorkerView, org: str) -> dp.WorkerView:
    row = WorkerRow(
        id=view.worker_id,
        org=org,
        host=view.host,
        pid=view.pid,
        started_at=micros(view.started_at),
        lease_until_at=micros(view.lease_until),
    )
    return dp.WorkerView(row=row, pause=read_pause(view.pause, org, Pausable.WORKER, view.worker_id))


def read_queue(view: QueueView, org: str) -> dp.QueueView:
    return dp.QueueView(
        queue=view.queue,
        turns=view.turns,
        tasks=view.tasks,
        since_at=None if view.since is None else micros(view.since),
        pause=read_pause(view.pause, org, Pausable.QUEUE, view.queue),
    )


def read_definition(view: DefinitionView, org: str) -> DefinitionRow:
    return DefinitionRow(
        org=org,
        kind=view.workflow_kind,
        version=view.workflow_version,
        build=view.build,
        registered_at=micros(view.registered_at),
    )
