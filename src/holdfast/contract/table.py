"""Every operation: importing this module fills the table."""

from __future__ import annotations

from typing import Final

from holdfast.contract import explanations, messages, queues
from holdfast.contract.operation import OPERATIONS, Operation

_NOUNS: Final = (queues, messages, explanations)

TABLE: Final[tuple[Operation, ...]] = tuple(OPERATIONS.values())
BY_NAME: Final[dict[str, Operation]] = {operation.name: operation for operation in TABLE}
