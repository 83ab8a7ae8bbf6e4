"""Every operation: importing this module fills the table."""

from __future__ import annotations

from typing import Final

from holdfast.contract import calls, execution_reads, executions, history, mailboxes, queues
from holdfast.contract.operation import OPERATIONS, Operation

_NOUNS: Final = (executions, execution_reads, history, calls, mailboxes, queues)

TABLE: Final[tuple[Operation, ...]] = tuple(OPERATIONS.values())
BY_NAME: Final[dict[str, Operation]] = {operation.name: operation for operation in TABLE}
