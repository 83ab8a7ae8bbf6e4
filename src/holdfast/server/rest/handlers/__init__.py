"""One function per operation of the table: from a call to its answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from holdfast.server.operations import OPERATIONS
from holdfast.server.rest.calls import Call
from holdfast.server.rest.handlers import (
    calls,
    deployments,
    executions,
    explanations,
    keys,
    messages,
    streams,
    system,
    task_output,
    tasks,
)

Handler = Callable[[Call], Coroutine[Any, Any, Any]]
_MODULES: Final = (executions, calls, messages, deployments, explanations, keys, streams, system, task_output, tasks)


def _find(name: str) -> Handler:
    found = [getattr(module, name) for module in _MODULES if hasattr(module, name)]
    if len(found) != 1:
        raise LookupError(f"operation {name} has {len(found)} handlers")
    handler: Handler = found[0]
    return handler


HANDLERS: Final[dict[str, Handler]] = {operation.name: _find(operation.name) for operation in OPERATIONS}
