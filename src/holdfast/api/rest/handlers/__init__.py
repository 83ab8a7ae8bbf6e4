"""One function per operation of the table: from a call to its answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from holdfast.api.operation import Operation
from holdfast.api.operations import OPERATIONS
from holdfast.api.rest.calls import Call
from holdfast.api.rest.handlers import streams, task_output
from holdfast.wire.rest.request_shapes import shape_of

Handler = Callable[[Call], Coroutine[Any, Any, Any]]
_MODULES: Final = (streams, task_output)


async def by_the_table(call: Call) -> Any:
    """Any operation of the contract's table."""
    row = call.operation.row
    assert row is not None, "it was made from a row"
    given = call.body if call.body is not None else call.query
    request = shape_of(row).request(call.org, call.path, given, key=call.key, by=call.principal, address=call.address)
    return await call.nouns.api.call(request)


def _find(operation: Operation) -> Handler:
    if operation.row is not None and not operation.streams:
        return by_the_table
    name = operation.name
    found = [getattr(module, name) for module in _MODULES if hasattr(module, name)]
    if len(found) != 1:
        raise LookupError(f"operation {name} has {len(found)} handlers")
    handler: Handler = found[0]
    return handler


HANDLERS: Final[dict[str, Handler]] = {operation.name: _find(operation) for operation in OPERATIONS}
