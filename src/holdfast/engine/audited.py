"""What changes of keys, orgs, queues and workers have in common: their transaction writes them into the audit log."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from holdfast.contract.operation import AuditedRequest
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import Act, plan_actor, record
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.keys import AuditRow, Org
from holdfast.store.protocol import LoadPlan

R = TypeVar("R", bound=AuditedRequest[Any])
A = TypeVar("A")

LONGEST: Final = 1_000


class AuditedOperation(Operation[R, A]):
    """`chain` is the key of the audit log's digests."""

    __slots__ = ("chain",)

    def __init__(self, request: R, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.org, self.request.by)

    def record(self, ws: Workspace, org: Org, action: str, subject: str = "", detail: str = "") -> AuditRow:
        act = Act(
            org=org.slug,
            action=action,
            by=self.request.by,
            chain=self.chain,
            subject=subject,
            address=printable(self.request.address),
            detail=detail,
        )
        return record(ws, org, act)


def printable(text: str) -> str:
    """A text that can be kept and shown: it comes from anywhere, and must not prevent the act."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:LONGEST])
