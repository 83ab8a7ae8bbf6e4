"""Beginning an execution."""

from __future__ import annotations

import msgspec

from holdfast.contract.executions import SignalWithStart, StartWorkflow
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import UnknownWorkflowKind, WorkflowAlreadyRunning, WorkflowIdUsed
from holdfast.model.events import WorkflowStarted
from holdfast.model.executions import DEADLINE_NO, OPEN, DefinitionRow, Execution, Ready, State, TimerRow
from holdfast.model.ids import execution_id
from holdfast.model.values import MICRO, NULL, IfClosed, Payload


def last_execution(uow: UnitOfWork, org: str, workflow_id: str) -> Execution | None:
    """The newest execution of a workflow id, open or closed."""
    found = uow.loaded.workflow_keys.get((org, workflow_id))
    return uow.loaded.executions.get(found) if found is not None else None


def open_execution(uow: UnitOfWork, org: str, workflow_id: str) -> Execution | None:
    """The open execution of a workflow id; a closed one does not count."""
    execution = last_execution(uow, org, workflow_id)
    return execution if execution is not None and execution.is_open else None


def already_running(running: Execution) -> WorkflowAlreadyRunning:
    return WorkflowAlreadyRunning(
        f"workflow id {running.workflow_id!r} is in use by the open execution {running.id} ({running.status}): wait "
        "for its end, end it, or take another workflow id",
        execution_id=running.id,
        workflow_id=running.workflow_id,
        status=running.status.value,
    )


def check_reuse(last: Execution, if_closed: IfClosed) -> None:
    """Whether a workflow id may be used again after this closed execution."""
    if if_closed == IfClosed.ALLOW:
        return
    if if_closed == IfClosed.ALLOW_IF_FAILED and last.state not in {State.COMPLETED, State.CONTINUED}:
        return
    raise WorkflowIdUsed(
        f"workflow id {last.workflow_id!r} was used by execution {last.id}, which is closed ({last.status}), and "
        f"if_closed is {str(if_closed)!r}: nothing was started",
        execution_id=last.id,
        workflow_id=last.workflow_id,
        status=last.status.value,
    )


def choose_version(uow: UnitOfWork, org: str, kind: str, version: str | None) -> str:
    """The asked version, or the one registered last."""
    known = uow.loaded.definitions.get((org, kind), ())
    for row in known:
        if row.version == version:
            return row.version
    if version is None and known:
        return max(known, key=_registered).version
    if known:
        versions = ", ".join(sorted({row.version for row in known}))
        raise UnknownWorkflowKind(
            f"workflow {kind!r} has no version {version!r} on this database; known: {versions}",
            kind=kind,
            version=version,
        )
    raise UnknownWorkflowKind(
        f"no worker has ever registered workflow kind {kind!r} on this database: pass it in workflows=[...] of an "
        "Engine",
        kind=kind,
    )


def _registered(row: DefinitionRow) -> int:
    return row.registered_at


class NewExecution(msgspec.Struct, frozen=True, kw_only=True):
    """What a new execution begins with, wherever the wish for it comes from.

    `key` says whether the workflow id is the caller's own, to be found by; one without has its own id for it.
    """

    org: str
    kind: str
    version: str
    execution_id: str
    workflow_id: str
    key: bool
    input: Payload = NULL
    queue: str = "default"
    priority: int = 0
    metadata: dict[str, str] | None = None
    request_id: str | None = None
    parent_id: str | None = None
    child_no: int = 0
    on_parent_close: str | None = None
    depth: int = 0
    continued_from: str | None = None
    expires_at: int | None = None
    start_at: int | None = None
    event_id: int | None = None
    born: int | None = None
    had: tuple[int, ...] = ()


def new_execution_id(uow: UnitOfWork) -> str:
    return execution_id(uow.now, len(uow.changes.new_executions), uow.entropy())


def start_requested(uow: UnitOfWork, request: StartWorkflow | SignalWithStart, version: str, new_id: str) -> Execution:
    """What a caller has asked for."""
    start_at = request.start_at if request.start_at is not None and request.start_at > uow.now else None
    timeout_s = request.execution_timeout_s
    return start_execution(
        uow,
        NewExecution(
            org=request.org,
            kind=request.kind,
            version=version,
            execution_id=new_id,
            workflow_id=new_id if request.workflow_id is None else request.workflow_id,
            key=request.workflow_id is not None,
            input=request.input,
            queue=request.queue,
            priority=request.priority,
            metadata=request.metadata,
            request_id=request.request_id,
            expires_at=None if timeout_s is None else (start_at or uow.now) + int(timeout_s * MICRO),
            start_at=start_at,
        ),
    )


def insert_execution(uow: UnitOfWork, new: NewExecution) -> Execution:
    """The row of a new execution, its workflow key and its deadline; no event yet."""
    execution = Execution(
        id=new.execution_id,
        org=new.org,
        workflow_id=new.workflow_id,
        kind=new.kind,
        version=new.version,
        queue=new.queue,
        priority=new.priority,
        state=OPEN,
        created_at=uow.now,
        updated_at=uow.now,
        metadata=new.metadata,
        parent_id=new.parent_id,
        child_no=new.child_no,
        on_parent_close=new.on_parent_close,
    )
    uow.add_execution(execution)
    if new.key:
        uow.loaded.workflow_keys[new.org, new.workflow_id] = execution.id
        uow.changes.workflow_keys[new.org, new.workflow_id] = execution.id
    if new.expires_at is not None:
        uow.add_timer(
            execution,
            TimerRow(execution_id=execution.id, timer_no=DEADLINE_NO, org=new.org, fire_at=new.expires_at),
        )
    return execution


def start_execution(uow: UnitOfWork, new: NewExecution) -> Execution:
    """A new execution with its first event, ready to run: now, or when its time has come."""
    execution = insert_execution(uow, new)
    started = WorkflowStarted(
        kind=new.kind,
        version=new.version,
        workflow_id=new.workflow_id,
        queue=new.queue,
        input=new.input,
        metadata=new.metadata,
        request_id=new.request_id,
        parent_execution_id=new.parent_id,
        child_no=new.child_no,
        depth=new.depth,
        continued_from=new.continued_from,
        expires_at=new.expires_at,
        start_at=new.start_at,
        event_id=new.event_id,
        born=uow.loaded.last_id if new.born is None else new.born,
        had=new.had,
    )
    uow.append(execution, started)
    if new.start_at is None:
        wake(uow, execution)
    else:
        start_later(uow, execution, new.start_at)
    return execution


def start_later(uow: UnitOfWork, execution: Execution, start_at: int) -> None:
    """It has news from the beginning, but nobody may take it before its time. What wakes it until then changes
    nothing."""
    execution.ready = Ready(since_at=start_at, not_before_at=start_at)
    uow.touch_ready(execution)
    uow.note_due(start_at)
