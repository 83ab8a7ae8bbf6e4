"""Beginning an execution."""

from __future__ import annotations

import msgspec

from holdfast.contract.executions import SignalWithStart, StartWorkflow
from holdfast.contract.instants import micros
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import UnknownWorkflowKind, WorkflowAlreadyRunning, WorkflowIdUsed
from holdfast.model.events import WorkflowStarted
from holdfast.model.executions import DEADLINE_NO, OPEN, DefinitionRow, Execution, Ready, State, TimerRow
from holdfast.model.ids import execution_id
from holdfast.model.values import MICRO, NULL, IfClosed, Payload


def last_execution(ws: Workspace, org: str, workflow_id: str) -> Execution | None:
    """The newest execution of a workflow id, open or closed."""
    found = ws.loaded.workflow_keys.get((org, workflow_id))
    return ws.loaded.executions.get(found) if found is not None else None


def open_execution(ws: Workspace, org: str, workflow_id: str) -> Execution | None:
    """The open execution of a workflow id; a closed one does not count."""
    execution = last_execution(ws, org, workflow_id)
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


def choose_version(ws: Workspace, org: str, kind: str, version: str | None) -> str:
    """The asked version, or the one registered last."""
    known = ws.group(DefinitionRow, org, kind)
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


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
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


def new_execution_id(ws: Workspace) -> str:
    return execution_id(ws.now, len(ws.changes.new_executions), ws.entropy())


def begin_asked(ws: Workspace, request: StartWorkflow | SignalWithStart, version: str, new_id: str) -> Execution:
    """What a caller has asked for."""
    start_at = None if request.start_at is None else micros(request.start_at)
    if start_at is not None and start_at <= ws.now:
        start_at = None
    timeout_s = request.execution_timeout_s
    return begin(
        ws,
        Beginning(
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
            expires_at=None if timeout_s is None else (start_at or ws.now) + int(timeout_s * MICRO),
            start_at=start_at,
        ),
    )


def add_head(ws: Workspace, asked: Beginning) -> Execution:
    """The row of a new execution, its workflow key and its deadline; no event yet."""
    execution = Execution(
        id=asked.execution_id,
        org=asked.org,
        workflow_id=asked.workflow_id,
        kind=asked.kind,
        version=asked.version,
        queue=asked.queue,
        priority=asked.priority,
        state=OPEN,
        created_at=ws.now,
        updated_at=ws.now,
        metadata=asked.metadata,
        parent_id=asked.parent_id,
        child_no=asked.child_no,
        on_parent_close=asked.on_parent_close,
    )
    ws.add_execution(execution)
    if asked.key:
        ws.loaded.workflow_keys[asked.org, asked.workflow_id] = execution.id
        ws.changes.workflow_keys[asked.org, asked.workflow_id] = execution.id
    if asked.expires_at is not None:
        ws.add_timer(
            execution,
            TimerRow(execution_id=execution.id, timer_no=DEADLINE_NO, org=asked.org, fire_at=asked.expires_at),
        )
    return execution


def begin(ws: Workspace, asked: Beginning) -> Execution:
    """A new execution with its first event, ready to run: now, or when its time has come."""
    execution = add_head(ws, asked)
    started = WorkflowStarted(
        kind=asked.kind,
        version=asked.version,
        workflow_id=asked.workflow_id,
        queue=asked.queue,
        input=asked.input,
        metadata=asked.metadata,
        request_id=asked.request_id,
        parent_execution_id=asked.parent_id,
        child_no=asked.child_no,
        depth=asked.depth,
        continued_from=asked.continued_from,
        expires_at=asked.expires_at,
        start_at=asked.start_at,
        event_id=asked.event_id,
        born=ws.loaded.last_id if asked.born is None else asked.born,
        had=asked.had,
    )
    ws.append(execution, started)
    if asked.start_at is None:
        wake(ws, execution)
    else:
        begin_later(ws, execution, asked.start_at)
    return execution


def begin_later(ws: Workspace, execution: Execution, start_at: int) -> None:
    """It has news from the beginning, but nobody may take it before its time. What wakes it until then changes
    nothing."""
    execution.ready = Ready(since_at=start_at, not_before_at=start_at)
    ws.touch_ready(execution)
    ws.expect(start_at)
