"""THE table of public operations: what there is, where, who may, what goes in and comes out.

Routes, OpenAPI, role checks, the command line's help and the tests of attacks are all made from it: an operation that
is not here does not exist, and one that is here can't be forgotten. Handlers have the names of their operations.
"""

from __future__ import annotations

from typing import Final

from holdfast.api.execution_operations import EXECUTION_OPERATIONS
from holdfast.api.operation import ORG, Operation, do, read, routes_of
from holdfast.api.task_operations import TASK_OPERATIONS
from holdfast.contract.table import TABLE
from holdfast.model.keys import Role
from holdfast.wire.rest import bodies as b
from holdfast.wire.rest import key_views as kv
from holdfast.wire.rest import system_views as sv

_KEYS: Final = "keys"

KEY_OPERATIONS: Final = (
    do(
        "create_key",
        f"{ORG}/keys",
        "keys.create",
        _KEYS,
        "Make an API key; its text is shown once",
        kv.CreateKeyBody,
        kv.KeyMadeView,
        role=Role.ADMIN,
        status=201,
        example={"name": "shop", "role": "writer", "expires_in_seconds": 7776000},
    ),
    read(
        "list_keys",
        f"{ORG}/keys",
        "keys.list",
        _KEYS,
        "The org's API keys, the newest first",
        kv.KeyList,
        query=kv.KeysQuery,
        role=Role.ADMIN,
    ),
    read("get_key", f"{ORG}/keys/{{key_id}}", "keys.get", _KEYS, "One API key", kv.KeyView, role=Role.ADMIN),
    do(
        "revoke_key",
        f"{ORG}/keys/{{key_id}}/revoke",
        "keys.revoke",
        _KEYS,
        "End an API key",
        b.NoBody,
        kv.KeyView,
        role=Role.ADMIN,
    ),
    do(
        "rotate_key",
        f"{ORG}/keys/{{key_id}}/rotate",
        "keys.rotate",
        _KEYS,
        "Give an API key another secret; the present one counts a while longer",
        kv.RotateKeyBody,
        kv.KeyMadeView,
        role=Role.ADMIN,
        example={"overlap_seconds": 3600},
    ),
    do(
        "delete_org",
        ORG,
        "keys.delete_org",
        _KEYS,
        "Delete the org: its keys are dead at once, everything it has is removed in the background, for good",
        kv.DeleteOrgBody,
        kv.OrgDeletedView,
        role=Role.ADMIN,
        method="DELETE",
        status=202,
        example={"confirm": "acme"},
    ),
    read(
        "list_audit",
        f"{ORG}/audit",
        "keys.audit",
        _KEYS,
        "The record of acts, the newest first",
        kv.AuditList,
        query=kv.AuditQuery,
        role=Role.ADMIN,
    ),
    read(
        "verify_audit",
        f"{ORG}/audit/verification",
        "keys.verify_audit",
        _KEYS,
        "Whether the record of acts is as it was written",
        kv.AuditCheckView,
        role=Role.ADMIN,
    ),
)

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
    *TASK_OPERATIONS,
    *KEY_OPERATIONS,
    *SYSTEM_OPERATIONS,
    *(route for operation in TABLE for route in routes_of(operation)),
)
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
