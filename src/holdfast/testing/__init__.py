"""For applications that test their workflows. The rest of the package never imports it.

The names an application's tests import. They are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.testing.environment import WorkflowEnvironment
    from holdfast.testing.fakes import Fake
    from holdfast.testing.histories import (
        ReplayReport,
        StoredHistory,
        export_history,
        load_history,
        replay,
    )
    from holdfast.testing.mock_task import MockTaskContext
    from holdfast.testing.mock_workflow import MockCall, MockTimer, MockUpdate, MockWorkflowContext

_HOMES = {
    "Fake": "holdfast.testing.fakes",
    "MockCall": "holdfast.testing.mock_workflow",
    "MockTaskContext": "holdfast.testing.mock_task",
    "MockTimer": "holdfast.testing.mock_workflow",
    "MockUpdate": "holdfast.testing.mock_workflow",
    "MockWorkflowContext": "holdfast.testing.mock_workflow",
    "ReplayReport": "holdfast.testing.histories",
    "StoredHistory": "holdfast.testing.histories",
    "WorkflowEnvironment": "holdfast.testing.environment",
    "export_history": "holdfast.testing.histories",
    "load_history": "holdfast.testing.histories",
    "replay": "holdfast.testing.histories",
}

__all__ = [
    "Fake",
    "MockCall",
    "MockTaskContext",
    "MockTimer",
    "MockUpdate",
    "MockWorkflowContext",
    "ReplayReport",
    "StoredHistory",
    "WorkflowEnvironment",
    "export_history",
    "load_history",
    "replay",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdfast.testing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
