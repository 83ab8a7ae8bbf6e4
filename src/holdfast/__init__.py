"""Durable workflows for Python.

The few names an application imports. They are loaded when first used: `import holdfast` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.assembly import Engine
    from holdfast.client.client import Client, WorkflowHandle
    from holdfast.client.views import WorkflowPage, WorkflowView
    from holdfast.config import EngineConfig, Limits, StoreConfig, WorkerConfig
    from holdfast.contract.executions import SignalResponse, SignalWithStartResponse
    from holdfast.contract.upkeep import RecoveryReport
    from holdfast.errors import HoldfastError, NonRetryable
    from holdfast.frontends.python.composition import Outcome
    from holdfast.frontends.python.context import WorkflowContext, WorkflowInfo
    from holdfast.frontends.python.definitions import task, workflow
    from holdfast.frontends.python.task_context import TaskContext, TaskInfo
    from holdfast.model.executions import Status
    from holdfast.model.values import RetryPolicy

_HOMES = {
    "Client": "holdfast.client.client",
    "Engine": "holdfast.assembly",
    "EngineConfig": "holdfast.config",
    "HoldfastError": "holdfast.errors",
    "Limits": "holdfast.config",
    "NonRetryable": "holdfast.errors",
    "Outcome": "holdfast.frontends.python.composition",
    "RecoveryReport": "holdfast.contract.upkeep",
    "RetryPolicy": "holdfast.model.values",
    "SignalResponse": "holdfast.contract.executions",
    "SignalWithStartResponse": "holdfast.contract.executions",
    "Status": "holdfast.model.executions",
    "StoreConfig": "holdfast.config",
    "TaskContext": "holdfast.frontends.python.task_context",
    "TaskInfo": "holdfast.frontends.python.task_context",
    "WorkerConfig": "holdfast.config",
    "WorkflowContext": "holdfast.frontends.python.context",
    "WorkflowHandle": "holdfast.client.client",
    "WorkflowInfo": "holdfast.frontends.python.context",
    "WorkflowPage": "holdfast.client.views",
    "WorkflowView": "holdfast.client.views",
    "task": "holdfast.frontends.python.definitions",
    "workflow": "holdfast.frontends.python.definitions",
}

__all__ = [
    "Client",
    "Engine",
    "EngineConfig",
    "HoldfastError",
    "Limits",
    "NonRetryable",
    "Outcome",
    "RecoveryReport",
    "RetryPolicy",
    "SignalResponse",
    "SignalWithStartResponse",
    "Status",
    "StoreConfig",
    "TaskContext",
    "TaskInfo",
    "WorkerConfig",
    "WorkflowContext",
    "WorkflowHandle",
    "WorkflowInfo",
    "WorkflowPage",
    "WorkflowView",
    "task",
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
