"""THE table of public operations: what there is, where, who may, what goes in and comes out.

Routes, OpenAPI, role checks, the command line's help and the tests of attacks are all made from it: an operation that
is not here does not exist, and one that is here can't be forgotten. Handlers have the names of their operations.
"""

from __future__ import annotations

from typing import Final

from holdfast.api.execution_operations import EXECUTION_OPERATIONS
from holdfast.api.operation import ORG, Operation, do, read, routes_of
from holdfast.contract.table import TABLE
from holdfast.model.keys import Role
from holdfast.wire.rest import bodies as b
from holdfast.wire.rest import system_views as sv

_SYS: Final = "system"


SYSTEM_OPERATIONS: Final = (
    read(
        "who_am_i",
        "/api/me",
        "keys.authenticate",
        _SYS,
        "The org and role of the key",
        sv.MeView,
        role=Role.READER,
    ),
    do(
        "recover",
        f"{ORG}/recover",
        "upkeep.recover",
        _SYS,
        "Do at once what the services do in time, check every waiting execution, report",
        b.NoBody,
        sv.RecoveryView,
        role=Role.ADMIN,
        waits=True,
    ),
    read(
        "metrics",
        "/metrics",
        "metrics.page",
        _SYS,
        "Figures for Prometheus; with a key, of its org alone",
        None,
        media="text/plain; version=0.0.4; charset=utf-8",
    ),
    read("healthz", "/healthz", "", _SYS, "Whether the process is alive", sv.HealthView, role=None),
    read("readyz", "/readyz", "", _SYS, "Whether it can work: the database answers", sv.HealthView, role=None),
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    *EXECUTION_OPERATIONS,
    *SYSTEM_OPERATIONS,
    *(route for operation in TABLE for route in routes_of(operation)),
)
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
