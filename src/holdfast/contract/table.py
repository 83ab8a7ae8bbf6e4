"""Every operation: importing this module fills the table."""

from __future__ import annotations

from typing import Final

from holdfast.contract import executions, explanations, keys, messages, queues, system, task_output, tasks
from holdfast.contract.operation import OPERATIONS, Operation

_NOUNS: Final = (executions, queues, keys, tasks, task_output, messages, explanations, system)

_ORDER: Final = {noun.__name__: place for place, noun in enumerate(_NOUNS)}

# Whichever noun was imported first: the order of the table is that of the list above.
TABLE: Final[tuple[Operation, ...]] = tuple(
    sorted(OPERATIONS.values(), key=lambda operation: _ORDER[operation.request.__module__])
)
BY_NAME: Final[dict[str, Operation]] = {operation.name: operation for operation in TABLE}
