"""Beginning an execution."""

from __future__ import annotations

from holdfast.contract.executions import SignalWithStart, StartWorkflow
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import UnknownWorkflowKind
from holdfast.model.events import WorkflowStarted
from holdfast.model.executions import DefinitionRow, Execution, State
from holdfast.model.ids import execution_id


def open_execution(ws: Workspace, org: str, workflow_id: str) -> Execution | None:
    """The open execution of a workflow id; a closed one does not count."""
    found = ws.loaded.workflow_keys.get((org, workflow_id))
    execution = ws.loaded.executions.get(found) if found is not None else None
    return execution if execution is not None and execution.is_open else None


def choose_version(ws: Workspace, org: str, kind: str, version: str | None) -> str:
    """The asked version, or the one registered last."""
    known = ws.loaded.definitions.get((org, kind), [])
    if version is None and known:
        return max(known, key=_registered).version
    for row in known:
        if version is not None and row.version == version:
            return version
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


def begin(ws: Workspace, request: StartWorkflow | SignalWithStart, version: str) -> Execution:
    """A new execution with its first event and its workflow key. The caller wakes it when all its events are there."""
    new_id = execution_id(ws.now, len(ws.changes.new_executions), ws.entropy())
    workflow_id = request.workflow_id if request.workflow_id is not None else new_id
    execution = Execution(
        id=new_id,
        org=request.org,
        workflow_id=workflow_id,
        kind=request.kind,
        version=version,
        queue=request.queue,
        priority=request.priority,
        state=State.OPEN,
        created_at=ws.now,
        updated_at=ws.now,
        metadata=request.metadata,
    )
    ws.add_execution(execution)
    if request.workflow_id is not None:
        ws.loaded.workflow_keys[request.org, workflow_id] = new_id
        ws.changes.workflow_keys[request.org, workflow_id] = new_id
    ws.append(
        execution,
        WorkflowStarted(
            kind=request.kind,
            version=version,
            workflow_id=workflow_id,
            queue=request.queue,
            input=request.input,
            metadata=request.metadata,
            request_id=request.request_id,
        ),
    )
    wake(ws, execution)
    return execution
