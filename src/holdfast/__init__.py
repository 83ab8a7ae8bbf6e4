"""Durable workflows for Python.

The few names an application imports. They are loaded when first used: `import holdfast` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.assembly import Engine, RemoteWorker, Server
    from holdfast.client.admin import PauseInfo, QueueInfo, WorkerInfo
    from holdfast.client.broadcasts import BroadcastResult, SendResult
    from holdfast.client.calls import UpdateHandle
    from holdfast.client.client import Client
    from holdfast.client.events import DeadEventInfo, EventInfo, EventKeyInfo, PublishResult, WaitInfo
    from holdfast.client.explainer import EventExplanation, WaitExplanation, WorkflowExplanation
    from holdfast.client.handles import WorkflowHandle
    from holdfast.client.mailbox import DeadLetter, Mailbox, MailboxEntry
    from holdfast.client.promises import PromiseInfo, SettledPromise
    from holdfast.client.sync import SyncClient, SyncTaskHandle, SyncUpdateHandle, SyncWorkflowHandle
    from holdfast.client.task_output import TaskChunk, TaskOutput, TaskUpdate
    from holdfast.client.tasks import StandaloneTaskInfo, TaskHandle, TaskPage
    from holdfast.client.views import ExecutionInfo, WorkflowPage
    from holdfast.config import EngineConfig, Limits, ServerConfig, StoreConfig, TelemetryConfig, WorkerConfig
    from holdfast.contract.calls import UpdateStatus
    from holdfast.contract.executions import RedeliverResult, SignalResponse, SignalWithStartResponse
    from holdfast.contract.keys import CreatedKey, CreateKey, KeyInfo, RevokeKey, RotateKey
    from holdfast.contract.upkeep import RecoveryReport
    from holdfast.errors import HoldfastError, NonRetryable
    from holdfast.frontends.python.children import ChildHandle
    from holdfast.frontends.python.composition import Outcome
    from holdfast.frontends.python.context import WorkflowContext
    from holdfast.frontends.python.definitions import task, workflow
    from holdfast.frontends.python.handlers import query, signal, update
    from holdfast.frontends.python.info import WorkflowInfo
    from holdfast.frontends.python.messages import PromiseFuture
    from holdfast.frontends.python.saga import Saga
    from holdfast.frontends.python.task_context import TaskContext, TaskInfo
    from holdfast.frontends.python.triggers import EventTrigger
    from holdfast.model.executions import WorkflowStatus
    from holdfast.model.keys import Role
    from holdfast.model.messages import PromiseState
    from holdfast.model.values import DeliveryMode, IfClosed, IfRunning, ParentClose, RetryPolicy
    from holdfast.sync.engine import SyncEngine

_HOMES = {
    "BroadcastResult": "holdfast.client.broadcasts",
    "ChildHandle": "holdfast.frontends.python.children",
    "Client": "holdfast.client.client",
    "CreateKey": "holdfast.contract.keys",
    "DeadEventInfo": "holdfast.client.events",
    "DeadLetter": "holdfast.client.mailbox",
    "DeliveryMode": "holdfast.model.values",
    "Engine": "holdfast.assembly",
    "EngineConfig": "holdfast.config",
    "EventExplanation": "holdfast.client.explainer",
    "EventKeyInfo": "holdfast.client.events",
    "EventInfo": "holdfast.client.events",
    "HoldfastError": "holdfast.errors",
    "IfClosed": "holdfast.model.values",
    "IfRunning": "holdfast.model.values",
    "CreatedKey": "holdfast.contract.keys",
    "KeyInfo": "holdfast.contract.keys",
    "Limits": "holdfast.config",
    "Mailbox": "holdfast.client.mailbox",
    "MailboxEntry": "holdfast.client.mailbox",
    "SendResult": "holdfast.client.broadcasts",
    "NonRetryable": "holdfast.errors",
    "EventTrigger": "holdfast.frontends.python.triggers",
    "Outcome": "holdfast.frontends.python.composition",
    "ParentClose": "holdfast.model.values",
    "PauseInfo": "holdfast.client.admin",
    "PromiseFuture": "holdfast.frontends.python.messages",
    "PromiseState": "holdfast.model.messages",
    "PromiseInfo": "holdfast.client.promises",
    "PublishResult": "holdfast.client.events",
    "QueueInfo": "holdfast.client.admin",
    "RecoveryReport": "holdfast.contract.upkeep",
    "RedeliverResult": "holdfast.contract.executions",
    "RemoteWorker": "holdfast.assembly",
    "RetryPolicy": "holdfast.model.values",
    "RevokeKey": "holdfast.contract.keys",
    "Role": "holdfast.model.keys",
    "RotateKey": "holdfast.contract.keys",
    "Saga": "holdfast.frontends.python.saga",
    "Server": "holdfast.assembly",
    "ServerConfig": "holdfast.config",
    "SettledPromise": "holdfast.client.promises",
    "SignalResponse": "holdfast.contract.executions",
    "SignalWithStartResponse": "holdfast.contract.executions",
    "WorkflowStatus": "holdfast.model.executions",
    "StoreConfig": "holdfast.config",
    "SyncClient": "holdfast.client.sync",
    "SyncEngine": "holdfast.sync.engine",
    "SyncTaskHandle": "holdfast.client.sync",
    "SyncUpdateHandle": "holdfast.client.sync",
    "SyncWorkflowHandle": "holdfast.client.sync",
    "TaskChunk": "holdfast.client.task_output",
    "TaskContext": "holdfast.frontends.python.task_context",
    "TaskHandle": "holdfast.client.tasks",
    "TaskInfo": "holdfast.frontends.python.task_context",
    "TaskOutput": "holdfast.client.task_output",
    "TaskPage": "holdfast.client.tasks",
    "TaskUpdate": "holdfast.client.task_output",
    "StandaloneTaskInfo": "holdfast.client.tasks",
    "TelemetryConfig": "holdfast.config",
    "UpdateHandle": "holdfast.client.calls",
    "UpdateStatus": "holdfast.contract.calls",
    "WaitExplanation": "holdfast.client.explainer",
    "WaitInfo": "holdfast.client.events",
    "WorkerConfig": "holdfast.config",
    "WorkerInfo": "holdfast.client.admin",
    "WorkflowContext": "holdfast.frontends.python.context",
    "WorkflowExplanation": "holdfast.client.explainer",
    "WorkflowHandle": "holdfast.client.handles",
    "WorkflowInfo": "holdfast.frontends.python.info",
    "WorkflowPage": "holdfast.client.views",
    "ExecutionInfo": "holdfast.client.views",
    "query": "holdfast.frontends.python.handlers",
    "signal": "holdfast.frontends.python.handlers",
    "task": "holdfast.frontends.python.definitions",
    "update": "holdfast.frontends.python.handlers",
    "workflow": "holdfast.frontends.python.definitions",
}

__all__ = [
    "BroadcastResult",
    "ChildHandle",
    "Client",
    "CreateKey",
    "CreatedKey",
    "DeadEventInfo",
    "DeadLetter",
    "DeliveryMode",
    "Engine",
    "EngineConfig",
    "EventExplanation",
    "EventInfo",
    "EventKeyInfo",
    "EventTrigger",
    "ExecutionInfo",
    "HoldfastError",
    "IfClosed",
    "IfRunning",
    "KeyInfo",
    "Limits",
    "Mailbox",
    "MailboxEntry",
    "NonRetryable",
    "Outcome",
    "ParentClose",
    "PauseInfo",
    "PromiseFuture",
    "PromiseInfo",
    "PromiseState",
    "PublishResult",
    "QueueInfo",
    "RecoveryReport",
    "RedeliverResult",
    "RemoteWorker",
    "RetryPolicy",
    "RevokeKey",
    "Role",
    "RotateKey",
    "Saga",
    "SendResult",
    "Server",
    "ServerConfig",
    "SettledPromise",
    "SignalResponse",
    "SignalWithStartResponse",
    "StandaloneTaskInfo",
    "StoreConfig",
    "SyncClient",
    "SyncEngine",
    "SyncTaskHandle",
    "SyncUpdateHandle",
    "SyncWorkflowHandle",
    "TaskChunk",
    "TaskContext",
    "TaskHandle",
    "TaskInfo",
    "TaskOutput",
    "TaskPage",
    "TaskUpdate",
    "TelemetryConfig",
    "UpdateHandle",
    "UpdateStatus",
    "WaitExplanation",
    "WaitInfo",
    "WorkerConfig",
    "WorkerInfo",
    "WorkflowContext",
    "WorkflowExplanation",
    "WorkflowHandle",
    "WorkflowInfo",
    "WorkflowPage",
    "WorkflowStatus",
    "query",
    "signal",
    "task",
    "update",
    "workflow",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
