"""Durable workflows for Python.

The few names an application imports, the exceptions it catches among them. They are loaded when first used:
`import holdfast` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

# One table: what is public, and where it lives. After a change: `make generate`.
NAMES: Final = {
    "holdfast.assembly": "Engine RemoteWorker Server",
    "holdfast.blocking.engine": "SyncEngine",
    "holdfast.client.calls": "UpdateHandle",
    "holdfast.client.client": "Client",
    "holdfast.client.handles": "WorkflowHandle",
    "holdfast.client.sync": "SyncClient SyncTaskHandle SyncUpdateHandle SyncWorkflowHandle",
    "holdfast.client.tasks": "TaskHandle",
    "holdfast.config": "EngineConfig Limits ServerConfig StoreConfig TelemetryConfig WorkerConfig",
    "holdfast.contract.calls": "UpdateStatus",
    "holdfast.contract.keys": "KeyState",
    "holdfast.errors": (
        "AllFailed ChildWorkflowFailed CompensationFailed ConditionTimeout DeterminismError EventNotFound EventTimeout "
        "ExecutionClosed ExecutionNotFound ExternalSignalFailed HoldfastError InvalidExpression InvalidRequest "
        "InvalidServer NonRetryable PromiseRejected PromiseTimeout QueryFailed QueryNotReadOnly RequestMismatch "
        "ServerUnreachable SignalTimeout StepFailed StorageBusy TaskFailed TaskTimedOut TooFewSucceeded Unavailable "
        "UpdateFailed UpdateRejected WorkflowAlreadyRunning WorkflowCancelled WorkflowFailed WorkflowIdUsed "
        "WorkflowTerminated WorkflowTimedOut"
    ),
    "holdfast.frontends.python.children": "ChildHandle",
    "holdfast.frontends.python.composition": "Outcome",
    "holdfast.frontends.python.context": "WorkflowContext",
    "holdfast.frontends.python.definitions": "task workflow",
    "holdfast.frontends.python.handlers": "query signal update",
    "holdfast.frontends.python.info": "WorkflowInfo",
    "holdfast.frontends.python.messages": "PromiseFuture",
    "holdfast.frontends.python.saga": "Saga",
    "holdfast.worker.task_context": "TaskContext TaskInfo",
    "holdfast.frontends.python.triggers": "On",
    "holdfast.model.executions": "Status",
    "holdfast.model.keys": "Role",
    "holdfast.model.messages": "PromiseState",
    "holdfast.model.values": "Delivery IfClosed IfRunning ParentClose RetryPolicy",
}
# What calls give and nobody makes: `holdfast.types`, and attributes of `holdfast` outside of `__all__`.
RECORDS: Final = {
    "holdfast.client.task_output": "TaskChunk TaskOutput TaskUpdate",
    "holdfast.contract.tasks": "StandaloneTaskInfo TaskPage",
    "holdfast.contract.execution_reads": "ExecutionInfo PendingTask PendingTimer WaitingFor WorkflowPage",
    "holdfast.contract.executions": "SignalResponse SignalWithStartResponse",
    "holdfast.contract.keys": "AuditEntry CreatedKey KeyInfo OrgInfo",
    "holdfast.contract.explanations": "EventExplanation WorkflowExplanation",
    "holdfast.contract.mailboxes": "DeadLetter Mailbox MailboxEntry Redelivered",
    "holdfast.contract.messages": (
        "BroadcastResult EventInfo EventKeyInfo PromiseInfo PublishResult SendResult SettledPromise WaitInfo"
    ),
    "holdfast.explaining.events": "WaitExplanation",
    "holdfast.contract.queues": "PauseInfo QueueInfo WorkerInfo",
    "holdfast.contract.upkeep": "RecoveryReport",
    "holdfast.model.events": "EventBody HistoryEvent",
    "holdfast.model.values": "Payload Wait",
}
MODULES: Final = {
    "errors": "holdfast.errors",
    "events": "holdfast.model.events",
    "expressions": "holdfast.expressions",
    "telemetry": "holdfast.telemetry",
    "testing": "holdfast.testing",
    "types": "holdfast.types",
}

# --- made by `make generate` from the table above ---

if TYPE_CHECKING:
    from holdfast import errors as errors
    from holdfast import expressions as expressions
    from holdfast import telemetry as telemetry
    from holdfast import testing as testing
    from holdfast import types as types
    from holdfast.assembly import Engine, RemoteWorker, Server
    from holdfast.blocking.engine import SyncEngine
    from holdfast.client.calls import UpdateHandle
    from holdfast.client.client import Client
    from holdfast.client.handles import WorkflowHandle
    from holdfast.client.sync import SyncClient, SyncTaskHandle, SyncUpdateHandle, SyncWorkflowHandle
    from holdfast.client.task_output import TaskChunk as TaskChunk
    from holdfast.client.task_output import TaskOutput as TaskOutput
    from holdfast.client.task_output import TaskUpdate as TaskUpdate
    from holdfast.client.tasks import TaskHandle
    from holdfast.config import EngineConfig, Limits, ServerConfig, StoreConfig, TelemetryConfig, WorkerConfig
    from holdfast.contract.calls import UpdateStatus
    from holdfast.contract.execution_reads import ExecutionInfo as ExecutionInfo
    from holdfast.contract.execution_reads import PendingTask as PendingTask
    from holdfast.contract.execution_reads import PendingTimer as PendingTimer
    from holdfast.contract.execution_reads import WaitingFor as WaitingFor
    from holdfast.contract.execution_reads import WorkflowPage as WorkflowPage
    from holdfast.contract.executions import SignalResponse as SignalResponse
    from holdfast.contract.executions import SignalWithStartResponse as SignalWithStartResponse
    from holdfast.contract.explanations import EventExplanation as EventExplanation
    from holdfast.contract.explanations import WorkflowExplanation as WorkflowExplanation
    from holdfast.contract.keys import AuditEntry as AuditEntry
    from holdfast.contract.keys import CreatedKey as CreatedKey
    from holdfast.contract.keys import KeyInfo as KeyInfo
    from holdfast.contract.keys import KeyState
    from holdfast.contract.keys import OrgInfo as OrgInfo
    from holdfast.contract.mailboxes import DeadLetter as DeadLetter
    from holdfast.contract.mailboxes import Mailbox as Mailbox
    from holdfast.contract.mailboxes import MailboxEntry as MailboxEntry
    from holdfast.contract.mailboxes import Redelivered as Redelivered
    from holdfast.contract.messages import BroadcastResult as BroadcastResult
    from holdfast.contract.messages import EventInfo as EventInfo
    from holdfast.contract.messages import EventKeyInfo as EventKeyInfo
    from holdfast.contract.messages import PromiseInfo as PromiseInfo
    from holdfast.contract.messages import PublishResult as PublishResult
    from holdfast.contract.messages import SendResult as SendResult
    from holdfast.contract.messages import SettledPromise as SettledPromise
    from holdfast.contract.messages import WaitInfo as WaitInfo
    from holdfast.contract.queues import PauseInfo as PauseInfo
    from holdfast.contract.queues import QueueInfo as QueueInfo
    from holdfast.contract.queues import WorkerInfo as WorkerInfo
    from holdfast.contract.tasks import StandaloneTaskInfo as StandaloneTaskInfo
    from holdfast.contract.tasks import TaskPage as TaskPage
    from holdfast.contract.upkeep import RecoveryReport as RecoveryReport
    from holdfast.errors import (
        AllFailed,
        ChildWorkflowFailed,
        CompensationFailed,
        ConditionTimeout,
        DeterminismError,
        EventNotFound,
        EventTimeout,
        ExecutionClosed,
        ExecutionNotFound,
        ExternalSignalFailed,
        HoldfastError,
        InvalidExpression,
        InvalidRequest,
        InvalidServer,
        NonRetryable,
        PromiseRejected,
        PromiseTimeout,
        QueryFailed,
        QueryNotReadOnly,
        RequestMismatch,
        ServerUnreachable,
        SignalTimeout,
        StepFailed,
        StorageBusy,
        TaskFailed,
        TaskTimedOut,
        TooFewSucceeded,
        Unavailable,
        UpdateFailed,
        UpdateRejected,
        WorkflowAlreadyRunning,
        WorkflowCancelled,
        WorkflowFailed,
        WorkflowIdUsed,
        WorkflowTerminated,
        WorkflowTimedOut,
    )
    from holdfast.explaining.events import WaitExplanation as WaitExplanation
    from holdfast.frontends.python.children import ChildHandle
    from holdfast.frontends.python.composition import Outcome
    from holdfast.frontends.python.context import WorkflowContext
    from holdfast.frontends.python.definitions import task, workflow
    from holdfast.frontends.python.handlers import query, signal, update
    from holdfast.frontends.python.info import WorkflowInfo
    from holdfast.frontends.python.messages import PromiseFuture
    from holdfast.frontends.python.saga import Saga
    from holdfast.frontends.python.triggers import On
    from holdfast.model import events as events
    from holdfast.model.events import EventBody as EventBody
    from holdfast.model.events import HistoryEvent as HistoryEvent
    from holdfast.model.executions import Status
    from holdfast.model.keys import Role
    from holdfast.model.messages import PromiseState
    from holdfast.model.values import Delivery, IfClosed, IfRunning, ParentClose, RetryPolicy
    from holdfast.model.values import Payload as Payload
    from holdfast.model.values import Wait as Wait
    from holdfast.worker.task_context import TaskContext, TaskInfo

    __version__: str

__all__ = [
    "AllFailed",
    "ChildHandle",
    "ChildWorkflowFailed",
    "Client",
    "CompensationFailed",
    "ConditionTimeout",
    "Delivery",
    "DeterminismError",
    "Engine",
    "EngineConfig",
    "EventNotFound",
    "EventTimeout",
    "ExecutionClosed",
    "ExecutionNotFound",
    "ExternalSignalFailed",
    "HoldfastError",
    "IfClosed",
    "IfRunning",
    "InvalidExpression",
    "InvalidRequest",
    "InvalidServer",
    "KeyState",
    "Limits",
    "NonRetryable",
    "On",
    "Outcome",
    "ParentClose",
    "PromiseFuture",
    "PromiseRejected",
    "PromiseState",
    "PromiseTimeout",
    "QueryFailed",
    "QueryNotReadOnly",
    "RemoteWorker",
    "RequestMismatch",
    "RetryPolicy",
    "Role",
    "Saga",
    "Server",
    "ServerConfig",
    "ServerUnreachable",
    "SignalTimeout",
    "Status",
    "StepFailed",
    "StorageBusy",
    "StoreConfig",
    "SyncClient",
    "SyncEngine",
    "SyncTaskHandle",
    "SyncUpdateHandle",
    "SyncWorkflowHandle",
    "TaskContext",
    "TaskFailed",
    "TaskHandle",
    "TaskInfo",
    "TaskTimedOut",
    "TelemetryConfig",
    "TooFewSucceeded",
    "Unavailable",
    "UpdateFailed",
    "UpdateHandle",
    "UpdateRejected",
    "UpdateStatus",
    "WorkerConfig",
    "WorkflowAlreadyRunning",
    "WorkflowCancelled",
    "WorkflowContext",
    "WorkflowFailed",
    "WorkflowHandle",
    "WorkflowIdUsed",
    "WorkflowInfo",
    "WorkflowTerminated",
    "WorkflowTimedOut",
    "query",
    "signal",
    "task",
    "update",
    "workflow",
]

# --- end ---

_HOMES = {name: home for table in (NAMES, RECORDS) for home, names in table.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = _rehomed(getattr(import_module(_HOMES[name]), name), _HOMES[name])
    elif name in MODULES:
        value = import_module(MODULES[name])
    elif name == "__version__":
        value = import_module("importlib.metadata").version("holdfast")
    else:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    globals()[name] = value
    return value


def _rehomed(value: Any, home: str) -> Any:
    """Lets tracebacks and reprs say `holdfast.WorkflowContext`, where users know it from.

    Exceptions stay in `holdfast.errors`, which is public. So do classes with annotations where they are: msgspec and
    `typing.get_type_hints` read annotations in the module that a class names.
    """
    ours = isinstance(value, type) and value.__module__ == home != MODULES["errors"]
    if ours and not value.__annotations__:
        value.__module__ = __name__
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *MODULES, "__version__"])
