"""Every operation: importing this module fills the table."""

from __future__ import annotations

from typing import Final

from holdfast.contract import executions, explanations, keys, messages, queues, system, task_output, tasks
from holdfast.contract.operation import OPERATIONS, Operation

_NOUNS: Final = (executions, queues, keys, tasks, task_output, messages, explanations, system)

TABLE: Final[tuple[Operation, ...]] = tuple(OPERATIONS.values())
BY_NAME: Final[dict[str, Operation]] = {operation.name: operation for operation in TABLE}
