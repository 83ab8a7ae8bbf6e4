"""Durable workflows for Python.

The few names an application imports. They are loaded when first used: `import holdfast` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.assembly import Engine, RemoteWorker, Server
    from holdfast.blocking.engine import SyncEngine
    from holdfast.client.broadcasts import Broadcast, MessageSent
    from holdfast.client.calls import UpdateHandle
    from holdfast.client.client import Client
    from holdfast.client.events import DeadEventView, EventKeyView, EventView, Published, WaitView
    from holdfast.client.explaining import EventExplanation, WaitExplanation, WorkflowExplanation
    from holdfast.client.handles import WorkflowHandle
    from holdfast.client.promises import PromiseView, SettledPromise
    from holdfast.client.sync import SyncClient, SyncTaskHandle, SyncUpdateHandle, SyncWorkflowHandle
    from holdfast.client.task_output import TaskChunk, TaskOutput, TaskUpdate
    from holdfast.client.tasks import TaskHandle, TaskPage, TaskView
    from holdfast.config import EngineConfig, Limits, ServerConfig, StoreConfig, TelemetryConfig, WorkerConfig
    from holdfast.contract.calls import UpdateStatus
    from holdfast.contract.execution_reads import ExecutionInfo, PendingTask, PendingTimer, WaitingFor, WorkflowPage
    from holdfast.contract.executions import SignalResponse, SignalWithStartResponse
    from holdfast.contract.keys import CreateKey, KeyMade, KeyView, RevokeKey, RotateKey
    from holdfast.contract.mailboxes import DeadLetter, Mailbox, MailboxEntry, Redelivered
    from holdfast.contract.queues import PauseInfo, QueueInfo, WorkerInfo
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
    from holdfast.frontends.python.triggers import On
    from holdfast.model.events import HistoryEvent
    from holdfast.model.executions import Status
    from holdfast.model.keys import Role
    from holdfast.model.messages import PromiseState
    from holdfast.model.values import Delivery, IfClosed, IfRunning, ParentClose, RetryPolicy

_HOMES = {
    "Broadcast": "holdfast.client.broadcasts",
    "ChildHandle": "holdfast.frontends.python.children",
    "Client": "holdfast.client.client",
    "CreateKey": "holdfast.contract.keys",
    "DeadEventView": "holdfast.client.events",
    "DeadLetter": "holdfast.contract.mailboxes",
    "Delivery": "holdfast.model.values",
    "Engine": "holdfast.assembly",
    "EngineConfig": "holdfast.config",
    "EventExplanation": "holdfast.client.explaining",
    "EventKeyView": "holdfast.client.events",
    "EventView": "holdfast.client.events",
    "ExecutionInfo": "holdfast.contract.execution_reads",
    "HistoryEvent": "holdfast.model.events",
    "HoldfastError": "holdfast.errors",
    "IfClosed": "holdfast.model.values",
    "IfRunning": "holdfast.model.values",
    "KeyMade": "holdfast.contract.keys",
    "KeyView": "holdfast.contract.keys",
    "Limits": "holdfast.config",
    "Mailbox": "holdfast.contract.mailboxes",
    "MailboxEntry": "holdfast.contract.mailboxes",
    "MessageSent": "holdfast.client.broadcasts",
    "NonRetryable": "holdfast.errors",
    "On": "holdfast.frontends.python.triggers",
    "Outcome": "holdfast.frontends.python.composition",
    "ParentClose": "holdfast.model.values",
    "PauseInfo": "holdfast.contract.queues",
    "PendingTask": "holdfast.contract.execution_reads",
    "PendingTimer": "holdfast.contract.execution_reads",
    "PromiseFuture": "holdfast.frontends.python.messages",
    "PromiseState": "holdfast.model.messages",
    "PromiseView": "holdfast.client.promises",
    "Published": "holdfast.client.events",
    "QueueInfo": "holdfast.contract.queues",
    "RecoveryReport": "holdfast.contract.upkeep",
    "Redelivered": "holdfast.contract.mailboxes",
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
    "WaitExplanation": "holdfast.client.explaining",
    "WaitView": "holdfast.client.events",
    "WaitingFor": "holdfast.contract.execution_reads",
    "WorkerConfig": "holdfast.config",
    "WorkerInfo": "holdfast.contract.queues",
    "WorkflowContext": "holdfast.frontends.python.context",
    "WorkflowExplanation": "holdfast.client.explaining",
    "WorkflowHandle": "holdfast.client.handles",
    "WorkflowInfo": "holdfast.frontends.python.info",
    "WorkflowPage": "holdfast.contract.execution_reads",
    "query": "holdfast.frontends.python.handlers",
    "signal": "holdfast.frontends.python.handlers",
    "task": "holdfast.frontends.python.definitions",
    "update": "holdfast.frontends.python.handlers",
    "workflow": "holdfast.frontends.python.definitions",
}

__all__ = [
    "Broadcast",
    "ChildHandle",
    "Client",
    "CreateKey",
    "DeadEventView",
    "DeadLetter",
    "Delivery",
    "Engine",
    "EngineConfig",
    "EventExplanation",
    "EventKeyView",
    "EventView",
    "ExecutionInfo",
    "HistoryEvent",
    "HoldfastError",
    "IfClosed",
    "IfRunning",
    "KeyMade",
    "KeyView",
    "Limits",
    "Mailbox",
    "MailboxEntry",
    "MessageSent",
    "NonRetryable",
    "On",
    "Outcome",
    "ParentClose",
    "PauseInfo",
    "PendingTask",
    "PendingTimer",
    "PromiseFuture",
    "PromiseState",
    "PromiseView",
    "Published",
    "QueueInfo",
    "RecoveryReport",
    "Redelivered",
    "RemoteWorker",
    "RetryPolicy",
    "RevokeKey",
    "Role",
    "RotateKey",
    "Saga",
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
    "WaitView",
    "WaitingFor",
    "WorkerConfig",
    "WorkerInfo",
    "WorkflowContext",
    "WorkflowExplanation",
    "WorkflowHandle",
    "WorkflowInfo",
    "WorkflowPage",
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
