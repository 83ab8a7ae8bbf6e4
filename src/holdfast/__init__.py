"""Durable workflows for Python.

The few names an application imports. They are loaded when first used: `import holdfast` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.assembly import Engine
    from holdfast.blocking.engine import SyncEngine
    from holdfast.client.calls import UpdateHandle
    from holdfast.client.client import Client, WorkflowHandle
    from holdfast.client.sync import SyncClient, SyncUpdateHandle, SyncWorkflowHandle
    from holdfast.client.views import WorkflowPage, WorkflowView
    from holdfast.config import EngineConfig, Limits, StoreConfig, WorkerConfig
    from holdfast.contract.calls import UpdateStatus
    from holdfast.contract.executions import SignalResponse, SignalWithStartResponse
    from holdfast.contract.upkeep import RecoveryReport
    from holdfast.errors import HoldfastError, NonRetryable
    from holdfast.frontends.python.children import ChildHandle
    from holdfast.frontends.python.composition import Outcome
    from holdfast.frontends.python.context import WorkflowContext
    from holdfast.frontends.python.definitions import task, workflow
    from holdfast.frontends.python.handlers import query, signal, update
    from holdfast.frontends.python.info import WorkflowInfo
    from holdfast.frontends.python.saga import Saga
    from holdfast.frontends.python.task_context import TaskContext, TaskInfo
    from holdfast.model.executions import Status
    from holdfast.model.values import IfClosed, IfRunning, ParentClose, RetryPolicy

_HOMES = {
    "ChildHandle": "holdfast.frontends.python.children",
    "Client": "holdfast.client.client",
    "Engine": "holdfast.assembly",
    "EngineConfig": "holdfast.config",
    "HoldfastError": "holdfast.errors",
    "IfClosed": "holdfast.model.values",
    "IfRunning": "holdfast.model.values",
    "Limits": "holdfast.config",
    "NonRetryable": "holdfast.errors",
    "Outcome": "holdfast.frontends.python.composition",
    "ParentClose": "holdfast.model.values",
    "RecoveryReport": "holdfast.contract.upkeep",
    "RetryPolicy": "holdfast.model.values",
    "Saga": "holdfast.frontends.python.saga",
    "SignalResponse": "holdfast.contract.executions",
    "SignalWithStartResponse": "holdfast.contract.executions",
    "Status": "holdfast.model.executions",
    "StoreConfig": "holdfast.config",
    "SyncClient": "holdfast.client.sync",
    "SyncEngine": "holdfast.blocking.engine",
    "SyncUpdateHandle": "holdfast.client.sync",
    "SyncWorkflowHandle": "holdfast.client.sync",
    "TaskContext": "holdfast.frontends.python.task_context",
    "TaskInfo": "holdfast.frontends.python.task_context",
    "UpdateHandle": "holdfast.client.calls",
    "UpdateStatus": "holdfast.contract.calls",
    "WorkerConfig": "holdfast.config",
    "WorkflowContext": "holdfast.frontends.python.context",
    "WorkflowHandle": "holdfast.client.client",
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
    "ChildHandle",
    "Client",
    "Engine",
    "EngineConfig",
    "HoldfastError",
    "IfClosed",
    "IfRunning",
    "Limits",
    "NonRetryable",
    "Outcome",
    "ParentClose",
    "RecoveryReport",
    "RetryPolicy",
    "Saga",
    "SignalResponse",
    "SignalWithStartResponse",
    "Status",
    "StoreConfig",
    "SyncClient",
    "SyncEngine",
    "SyncUpdateHandle",
    "SyncWorkflowHandle",
    "TaskContext",
    "TaskInfo",
    "UpdateHandle",
    "UpdateStatus",
    "WorkerConfig",
    "WorkflowContext",
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
