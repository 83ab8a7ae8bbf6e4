"""API keys, orgs and the audit log. The texts of keys are made here and kept nowhere."""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from holdfast.contract import keys as ks
from holdfast.contract.instants import instant
from holdfast.contract.principals import Principal
from holdfast.engine.api import answers
from holdfast.engine.audited import printable
from holdfast.engine.key_cache import TTL_S, KeyCache
from holdfast.engine.key_changes import (
    AddOrg,
    Close,
    Create,
    Delete,
    RecordAct,
    Revoke,
    Rotate,
    Touch,
    is_stale,
    key_info,
    org_info,
)
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import Act, Verification, no_key
from holdfast.engine.unit_of_work import OperationQueue
from holdfast.errors import EngineStopped, InvalidRequest, OrgNotFound, Unauthenticated
from holdfast.model.key_text import SECRET_BYTES, hash_key, hint_of, make_key
from holdfast.model.keys import ApiKey, AuditRow, Org, Role
from holdfast.model.names import check_name
from holdfast.store import reads
from holdfast.store.protocol import Store

T = TypeVar("T")

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_PAGE: Final = 1_000
_NOBODY: Final = (
    ApiKey(id="", org="", name="", role=Role.READER, hash="-" * 64, hint="", created_at=0),
    Org(slug="", created_at=0),
)


class Keys:
    """`secret` gives the installation's secret, `random_bytes` makes the secrets of keys; `clock` says how old a
    remembered answer is. It is the contract's `KeyChecks`, too."""

    def __init__(
        self,
        store: Store,
        queue: OperationQueue,
        secret: Callable[[], bytes],
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._queue = queue
        self._secret = secret
        self._random_bytes = random_bytes
        self._clock = clock
        self._cache = KeyCache(lambda key_hash: store.read(reads.KeyByHash(key_hash)), clock)
        self._none_until = 0.0
        self._any = False
        self._touching: set[str] = set()
        self._made_chain: bytes | None = None

    # --- keys ---

    @answers(ks.CreateKey)
    async def create(self, request: ks.CreateKey) -> ks.CreatedKey:
        text, key_hash = self._new_secret()
        key = await self._change(Create(request, self.chain, key_hash, hint_of(text)))
        return ks.CreatedKey(key=key, text=text)

    @answers(ks.RotateKey)
    async def rotate(self, request: ks.RotateKey) -> ks.CreatedKey:
        text, key_hash = self._new_secret()
        key = await self._change(Rotate(request, self.chain, key_hash, hint_of(text)))
        return ks.CreatedKey(key=key, text=text)

    @answers(ks.RevokeKey)
    async def revoke(self, request: ks.RevokeKey) -> ks.KeyInfo:
        return await self._change(Revoke(request, self.chain))

    @answers(ks.GetKey)
    async def get(self, request: ks.GetKey) -> ks.KeyInfo:
        found = await self._store.read(reads.Row(ApiKey, request.key_id, request.org))
        if found is None:
            raise no_key(request.org, request.key_id)
        return key_info(found, self._store.clock())

    @answers(ks.ListKeys)
    async def list(self, request: ks.ListKeys) -> ks.KeyList:
        now = self._store.clock()
        found = await self._store.read(
            reads.Select(ApiKey, (("org", request.org),), ("-id",), request.before, request.limit)
        )
        return ks.KeyList(keys=tuple(key_info(key, now) for key in found))

    async def authenticate(self, key_hash: str) -> Principal:
        """Known or not, revoked or not: the same query and the same comparison."""
        if not _is_hash(key_hash):
            raise Unauthenticated
        found = await self._cache.get(key_hash)
        key, org = found or _NOBODY
        now = self._store.clock()
        if not key.is_opened_by(key_hash, now) or org.closed_at is not None:
            raise Unauthenticated
        if is_stale(key, now):
            self._touch(key.id)
        return Principal(key.org, key.role, key.id, key_hash)

    async def any(self) -> bool:
        if not self._any and self._clock() >= self._none_until:
            asked_at = self._clock()
            self._any = bool(await self._store.read(reads.Select(ApiKey, limit=1)))
            self._none_until = asked_at + TTL_S
        return self._any

    # --- orgs ---

    @answers(ks.CreateOrg)
    async def create_org(self, request: ks.CreateOrg) -> ks.OrgInfo:
        return await self._change(AddOrg(request, self.chain))

    @answers(ks.CloseOrg)
    async def close_org(self, request: ks.CloseOrg) -> ks.OrgInfo:
        return await self._change(Close(request, self.chain))

    @answers(ks.DeleteOrg)
    async def delete_org(self, request: ks.DeleteOrg) -> ks.OrgDeleted:
        if request.confirm != request.org:
            raise InvalidRequest("confirm must be the name of the org: everything it has is removed", field="confirm")
        return await self._change(Delete(request, self.chain))

    @answers(ks.ListOrgs)
    async def orgs(self, request: ks.ListOrgs) -> ks.OrgList:
        found = await self._store.read(reads.Select(Org, after=request.after or "", limit=request.limit))
        return ks.OrgList(orgs=tuple(map(org_info, found)))

    # --- the audit log ---

    async def record(
        self,
        *,
        org: str,
        action: str,
        subject: str = "",
        outcome: str = "done",
        detail: str = "",
        by: Principal | None = None,
        address: str = "",
    ) -> ks.AuditEntry:
        check_name(org, "org")
        check_name(action, "action")
        act = Act(
            org=org,
            action=action,
            by=by,
            chain=self.chain,
            subject=printable(subject),
            address=printable(address),
            outcome=printable(outcome),
            detail=printable(detail),
        )
        return _entry(await self._queue.submit(RecordAct(act)))

    @answers(ks.ListAudit)
    async def audit(self, request: ks.ListAudit) -> ks.AuditList:
        rows = await self._store.read(
            reads.Select(AuditRow, (("org", request.org),), ("-seq",), request.before, request.limit)
        )
        return ks.AuditList(acts=tuple(map(_entry, rows)))

    @answers(ks.VerifyAudit)
    async def verify_audit(self, request: ks.VerifyAudit) -> ks.AuditCheck:
        org = request.org
        newest = await self._store.read(reads.Select(AuditRow, (("org", org),), ("-seq",), None, 1))
        found = await self._store.read(reads.Row(Org, org))
        if found is None:
            raise OrgNotFound(f"there is no org {org!r}", org=org)
        verification, count, before = Verification(self.chain, found), 0, found.audit_seq + 1
        if newest and newest[0].seq > found.audit_seq:
            # Looked at before the org was, so it can't be one that has come since: nobody has recorded it.
            verification.first_bad = before
        while page := await self._store.read(reads.Select(AuditRow, (("org", org),), ("-seq",), before, _PAGE)):
            verification.look_at(page)
            count, before = count + len(page), page[-1].seq
        first_bad = verification.finish()
        return ks.AuditCheck(rows=count, is_whole=first_bad is None, first_bad=first_bad)

    # --- inside ---

    async def _change(self, operation: Operation[Any, T]) -> T:
        try:
            return await self._queue.submit(operation)
        finally:
            # Also when the answer was lost: the change may have been made.
            self._cache.forget()
            self._none_until = 0.0

    def _new_secret(self) -> tuple[str, str]:
        text = make_key(self._random_bytes(SECRET_BYTES))
        key_hash = hash_key(text)
        assert key_hash is not None, "made by the same rule"
        return text, key_hash

    @property
    def chain(self) -> bytes:
        """What the digests of the audit log are made with."""
        if self._made_chain is None:
            self._made_chain = hmac.digest(self._secret(), b"audit", "sha256")
        return self._made_chain

    def _touch(self, key_id: str) -> None:
        """In the background: nobody waits for it, and nothing is lost if it fails."""
        if key_id in self._touching:
            return

        def done(future: asyncio.Future[None]) -> None:
            self._touching.discard(key_id)
            if not future.cancelled():
                future.exception()

        with suppress(EngineStopped):
            future = self._queue.submit(Touch(key_id))
            self._touching.add(key_id)
            future.add_done_callback(done)


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _entry(row: AuditRow) -> ks.AuditEntry:
    return ks.AuditEntry(
        seq=row.seq,
        at=instant(row.at),
        actor=row.actor,
        action=row.action,
        subject=row.subject,
        address=row.address,
        outcome=row.outcome,
        detail=row.detail,
        digest=row.digest,
    )
