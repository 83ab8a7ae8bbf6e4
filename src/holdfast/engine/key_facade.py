"""`contract.keys.Keys`, in process. The texts of keys are made here and kept nowhere."""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import structs

from holdfast.contract import keys as ks
from holdfast.engine.checks import check_number, check_timeout
from holdfast.engine.key_cache import TTL_S, KeyCache
from holdfast.engine.keys.audit import RecordAudit
from holdfast.engine.keys.create import Create
from holdfast.engine.keys.orgs import AddOrg, Close, Delete
from holdfast.engine.keys.revoke import Revoke
from holdfast.engine.keys.rotate import Rotate
from holdfast.engine.keys.touch import Touch, is_stale
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import Verification, no_key
from holdfast.errors import EngineStopped, InvalidRequest, OrgNotFound, Unauthenticated
from holdfast.model.api_key_text import SECRET_BYTES, hash_key, hint_of, make_key
from holdfast.model.keys import ApiKey, AuditRow, Org, Role
from holdfast.model.validation import check_name

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine

T = TypeVar("T")

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_SLUG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,62}")
_PAGE: Final = 1_000
_LONGEST: Final = 1_000
_NOBODY: Final = (
    ApiKey(id="", org="", name="", role=Role.READER, hash="-" * 64, hint="", created_at=0),
    Org(slug="", created_at=0),
)


class LocalKeys:
    """`random_bytes` makes the secrets of keys; `clock` says how old a remembered answer is."""

    def __init__(
        self,
        engine: LocalEngine,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._store = engine.store
        self._random_bytes = random_bytes
        self._clock = clock
        self._cache = KeyCache(engine.store.key_by_hash, clock)
        self._none_until = 0.0
        self._any = False
        self._touching: set[str] = set()
        self._made_chain: bytes | None = None

    # --- keys ---

    async def create(self, request: ks.CreateKey) -> ks.CreatedKey:
        _check_slug(request.org)
        check_name(request.name, "name")
        if not isinstance(request.role, Role):
            raise InvalidRequest(f"role must be one of {', '.join(Role)}, not {request.role!r:.50}", field="role")
        check_timeout(request.expires_in_s, "expires_in")
        text, key_hash = self._new_secret()
        key = await self._change(Create(shown(request), key_hash, hint_of(text), self.chain))
        return ks.CreatedKey(key=key, text=text)

    async def rotate(self, request: ks.RotateKey) -> ks.CreatedKey:
        _check_key(request.org, request.key_id)
        if request.overlap_s:
            check_timeout(request.overlap_s, "overlap")
        text, key_hash = self._new_secret()
        key = await self._change(Rotate(shown(request), key_hash, hint_of(text), self.chain))
        return ks.CreatedKey(key=key, text=text)

    async def revoke(self, request: ks.RevokeKey) -> ks.KeyInfo:
        _check_key(request.org, request.key_id)
        return await self._change(Revoke(shown(request), self.chain))

    async def get(self, org: str, key_id: str) -> ks.KeyInfo:
        _check_key(org, key_id)
        found = await self._store.key(org, key_id)
        if found is None:
            raise no_key(org, key_id)
        return ks.view_of(found, self._store.clock())

    async def authenticate(self, key_hash: str) -> ks.Principal:
        """Known or not, revoked or not: the same query and the same comparison."""
        if not _is_hash(key_hash):
            raise Unauthenticated
        found = await self._cache.get(key_hash)
        key, org = found or _NOBODY
        now = self._store.clock()
        if not key.matches(key_hash, now) or org.closed_at is not None:
            raise Unauthenticated
        if is_stale(key, now):
            self._touch(key.id)
        return ks.Principal(key.org, key.role, key.id, key_hash)

    async def any(self) -> bool:
        if not self._any and self._clock() >= self._none_until:
            requested_at = self._clock()
            self._any = await self._store.any_keys()
            self._none_until = requested_at + TTL_S
        return self._any

    # --- orgs ---

    async def create_org(self, request: ks.CreateOrg) -> Org:
        _check_slug(request.slug)
        return await self._change(AddOrg(shown(request), self.chain))

    async def close_org(self, request: ks.CloseOrg) -> Org:
        check_name(request.slug, "org")
        return await self._change(Close(shown(request), self.chain))

    async def delete_org(self, request: ks.DeleteOrg) -> Org:
        check_name(request.slug, "org")
        if request.confirm != request.slug:
            raise InvalidRequest("confirm must be the name of the org: everything it has is removed", field="confirm")
        return await self._change(Delete(shown(request), self.chain))

    async def orgs(self, after: str = "", limit: int = 100) -> list[Org]:
        if after:
            check_name(after, "after")
        return await self._store.orgs(after, self._page(limit))

    # --- the record ---

    async def record(self, request: ks.RecordAuditEntry) -> AuditRow:
        check_name(request.org, "org")
        check_name(request.action, "action")
        return await self._engine.queue.submit(RecordAudit(shown(request), self.chain))

    async def audit(self, org: str, before: int | None = None, limit: int = 100) -> list[AuditRow]:
        check_name(org, "org")
        if before is not None:
            check_number(before, "before")
        return await self._store.audit(org, before, self._page(limit))

    async def verify_audit(self, org: str) -> ks.AuditCheck:
        check_name(org, "org")
        newest = await self._store.audit(org, None, 1)
        found = await self._store.org(org)
        if found is None:
            raise OrgNotFound(f"there is no org {org!r}", org=org)
        verification, count, before = Verification(self.chain, found), 0, found.audit_seq + 1
        if newest and newest[0].seq > found.audit_seq:
            # Looked at before the org was, so it can't be one that has come since: nobody has recorded it.
            verification.first_bad = before
        while page := await self._store.audit(org, before, _PAGE):
            verification.check_row(page)
            count, before = count + len(page), page[-1].seq
        return ks.AuditCheck(rows=count, first_bad=verification.finish())

    async def list(self, org: str, before: str | None = None, limit: int = 100) -> tuple[ks.KeyInfo, ...]:
        check_name(org, "org")
        if before is not None:
            check_name(before, "before")
        now = self._store.clock()
        return tuple(ks.view_of(key, now) for key in await self._store.keys(org, before, self._page(limit)))

    # --- inside ---

    async def _change(self, operation: Operation[Any, T]) -> T:
        try:
            return await self._engine.queue.submit(operation)
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
        """What the digests of records are made with."""
        if self._made_chain is None:
            self._made_chain = hmac.digest(self._engine.secret(), b"audit", "sha256")
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
            future = self._engine.queue.submit(Touch(key_id))
            self._touching.add(key_id)
            future.add_done_callback(done)

    def _page(self, limit: int) -> int:
        most = self._engine.config.limits.page_size
        if type(limit) is not int or not 1 <= limit <= most:
            raise InvalidRequest(f"limit must lie between 1 and {most}", field="limit")
        return limit


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _check_slug(slug: Any) -> None:
    """An org's name is a part of addresses."""
    if not isinstance(slug, str) or _SLUG.fullmatch(slug) is None:
        raise InvalidRequest(
            "org must have 1 to 63 letters, digits, or . _ ~ - and begin with a letter or digit", field="org"
        )


def _check_key(org: Any, key_id: Any) -> None:
    check_name(org, "org")
    check_name(key_id, "key_id")


R = TypeVar("R", bound=Any)


def shown(request: R) -> R:
    """With texts for the record that can be kept and shown: they come from anywhere, and must not prevent the act."""
    fields = {}
    for name in ("subject", "address", "outcome", "detail"):
        value = getattr(request, name, "")
        if value:
            fields[name] = "".join(char if char.isprintable() else "\ufffd" for char in str(value)[:_LONGEST])
    return structs.replace(request, **fields) if fields else request
