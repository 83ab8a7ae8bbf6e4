"""Every operation: importing this module fills the table."""

from __future__ import annotations

from typing import Final

from holdfast.contract import (
    calls,
    execution_reads,
    executions,
    explanations,
    history,
    keys,
    mailboxes,
    messages,
    queues,
    system,
    task_output,
    tasks,
)
from holdfast.contract.operation import OPERATIONS, Operation

_NOUNS: Final = (
    executions,
    execution_reads,
    history,
    calls,
    mailboxes,
    queues,
    keys,
    tasks,
    task_output,
    messages,
    explanations,
    system,
)

TABLE: Final[tuple[Operation, ...]] = tuple(OPERATIONS.values())
BY_NAME: Final[dict[str, Operation]] = {operation.name: operation for operation in TABLE}
