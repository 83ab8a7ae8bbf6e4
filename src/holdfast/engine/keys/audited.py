"""What operations have in common that leave a row in the audit log of an org."""

from __future__ import annotations

from typing import Protocol, TypeVar

from holdfast.contract.keys import Principal
from holdfast.engine.operation import Answer, Operation
from holdfast.engine.rules.keys import Act, record
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.keys import Org


class Audited(Protocol):
    """A request that says who asks, and from where."""

    @property
    def by(self) -> Principal | None: ...

    @property
    def address(self) -> str: ...


AuditedRequest = TypeVar("AuditedRequest", bound=Audited)


class AuditedOperation(Operation[AuditedRequest, Answer]):
    """`chain` is what the digests of the log are made with."""

    __slots__ = ("chain",)

    def __init__(self, request: AuditedRequest, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def record(self, ws: Workspace, org: Org, action: str, *, subject: str = "", detail: str = "") -> None:
        act = Act(
            org=org.slug,
            action=action,
            by=self.request.by,
            chain=self.chain,
            subject=subject,
            address=self.request.address,
            detail=detail,
        )
        record(ws, org, act)


class KeyOperation(AuditedOperation[AuditedRequest, Answer]):
    """One that gives a key another secret, made outside: only its hash and its hint come here."""

    __slots__ = ("hint", "key_hash")

    def __init__(self, request: AuditedRequest, key_hash: str, hint: str, chain: bytes) -> None:
        super().__init__(request, chain)
        self.key_hash = key_hash
        self.hint = hint
