"""THE table of public operations: what there is, where, who may, what goes in and comes out.

Routes, OpenAPI, role checks, the command line's help and the tests of attacks are all made from it: an operation that
is not here does not exist, and one that is here can't be forgotten. Handlers have the names of their operations.
"""

from __future__ import annotations

from typing import Final

from holdfast.api.operation import Operation, routes_of
from holdfast.contract.table import TABLE

OPERATIONS: Final[tuple[Operation, ...]] = tuple(route for row in TABLE for route in routes_of(row))
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
