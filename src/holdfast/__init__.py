"""Durable workflows for Python.

The few names an application imports. They are loaded when first used: `import holdfast` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.assembly import Engine, RemoteWorker, Server
    from holdfast.blocking.engine import SyncEngine
    from holdfast.client.calls import UpdateHandle
    from holdfast.client.client import Client
    from holdfast.client.explaining import WorkflowExplanation
    from holdfast.client.handles import WorkflowHandle
    from holdfast.client.mailbox import DeadLetter, Mailbox, MailboxEntry
    from holdfast.client.sync import SyncClient, SyncTaskHandle, SyncUpdateHandle, SyncWorkflowHandle
    from holdfast.client.task_output import TaskChunk, TaskOutput, TaskUpdate
    from holdfast.client.tasks import TaskHandle, TaskPage, TaskView
    from holdfast.client.views import WorkflowPage, WorkflowView
    from holdfast.config import EngineConfig, Limits, ServerConfig, StoreConfig, TelemetryConfig, WorkerConfig
    from holdfast.contract.calls import UpdateStatus
    from holdfast.contract.executions import Redelivered, SignalResponse, SignalWithStartResponse
    from holdfast.contract.explanations import EventExplanation
    from holdfast.contract.keys import CreateKey, KeyMade, KeyView, RevokeKey, RotateKey
    from holdfast.contract.messages import (
        BroadcastResult,
        EventInfo,
        EventKeyInfo,
        PromiseInfo,
        PublishResult,
        SendResult,
        SettledPromise,
        WaitInfo,
    )
    from holdfast.contract.queues import PauseInfo, QueueInfo, WorkerInfo
    from holdfast.contract.upkeep import RecoveryReport
    from holdfast.errors import HoldfastError, NonRetryable
    from holdfast.explaining.events import WaitExplanation
    from holdfast.frontends.python.children import ChildHandle
    from holdfast.frontends.python.composition import Outcome
    from holdfast.frontends.python.context import WorkflowContext
    from holdfast.frontends.python.definitions import task, workflow
    from holdfast.frontends.python.handlers import query, signal, update
    from holdfast.frontends.python.info import WorkflowInfo
    from holdfast.frontends.python.messages import PromiseFuture
    from holdfast.frontends.python.saga import Saga
    from holdfast.frontends.python.task_context import TaskContext, TaskInfo
    from holdfast.frontends.python.triggers import On
    from holdfast.model.executions import Status
    from holdfast.model.keys import Role
    from holdfast.model.messages import PromiseState
    from holdfast.model.values import Delivery, IfClosed, IfRunning, ParentClose, RetryPolicy

_HOMES = {
    "BroadcastResult": "holdfast.contract.messages",
    "ChildHandle": "holdfast.frontends.python.children",
    "Client": "holdfast.client.client",
    "CreateKey": "holdfast.contract.keys",
    "DeadLetter": "holdfast.client.mailbox",
    "Delivery": "holdfast.model.values",
    "Engine": "holdfast.assembly",
    "EngineConfig": "holdfast.config",
    "EventExplanation": "holdfast.contract.explanations",
    "EventInfo": "holdfast.contract.messages",
    "EventKeyInfo": "holdfast.contract.messages",
    "HoldfastError": "holdfast.errors",
    "IfClosed": "holdfast.model.values",
    "IfRunning": "holdfast.model.values",
    "KeyMade": "holdfast.contract.keys",
    "KeyView": "holdfast.contract.keys",
    "Limits": "holdfast.config",
    "Mailbox": "holdfast.client.mailbox",
    "MailboxEntry": "holdfast.client.mailbox",
    "NonRetryable": "holdfast.errors",
    "On": "holdfast.frontends.python.triggers",
    "Outcome": "holdfast.frontends.python.composition",
    "ParentClose": "holdfast.model.values",
    "PauseInfo": "holdfast.contract.queues",
    "PromiseFuture": "holdfast.frontends.python.messages",
    "PromiseInfo": "holdfast.contract.messages",
    "PromiseState": "holdfast.model.messages",
    "PublishResult": "holdfast.contract.messages",
    "QueueInfo": "holdfast.contract.queues",
    "RecoveryReport": "holdfast.contract.upkeep",
    "Redelivered": "holdfast.contract.executions",
    "RemoteWorker": "holdfast.assembly",
    "RetryPolicy": "holdfast.model.values",
    "RevokeKey": "holdfast.contract.keys",
    "Role": "holdfast.model.keys",
    "RotateKey": "holdfast.contract.keys",
    "Saga": "holdfast.frontends.python.saga",
    "SendResult": "holdfast.contract.messages",
    "Server": "holdfast.assembly",
    "ServerConfig": "holdfast.config",
    "SettledPromise": "holdfast.contract.messages",
    "SignalResponse": "holdfast.contract.executions",
    "SignalWithStartResponse": "holdfast.contract.executions",
    "Status": "holdfast.model.executions",
    "StoreConfig": "holdfast.config",
    "SyncClient": "holdfast.client.sync",
    "SyncEngine": "holdfast.blocking.engine",
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
    "TaskView": "holdfast.client.tasks",
    "TelemetryConfig": "holdfast.config",
    "UpdateHandle": "holdfast.client.calls",
    "UpdateStatus": "holdfast.contract.calls",
    "WaitExplanation": "holdfast.explaining.events",
    "WaitInfo": "holdfast.contract.messages",
    "WorkerConfig": "holdfast.config",
    "WorkerInfo": "holdfast.contract.queues",
    "WorkflowContext": "holdfast.frontends.python.context",
    "WorkflowExplanation": "holdfast.client.explaining",
    "WorkflowHandle": "holdfast.client.handles",
    "WorkflowInfo": "holdfast.frontends.python.info",
    "WorkflowPage": "holdfast.client.views",
    "WorkflowView": "holdfast.client.views",
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
    "DeadLetter",
    "Delivery",
    "Engine",
    "EngineConfig",
    "EventExplanation",
    "EventInfo",
    "EventKeyInfo",
    "HoldfastError",
    "IfClosed",
    "IfRunning",
    "KeyMade",
    "KeyView",
    "Limits",
    "Mailbox",
    "MailboxEntry",
    "NonRetryable",
    "On",
    "Outcome",
    "ParentClose",
    "PauseInfo",
    "PromiseFuture",
    "PromiseInfo",
    "PromiseState",
    "PublishResult",
    "QueueInfo",
    "RecoveryReport",
    "Redelivered",
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
    "Status",
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
    "TaskView",
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
    "WorkflowView",
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
