"""From the credentials of a call to its principal.

    values of the header ─► one key, well formed ─► within the address's budget ─► the contract's Keys ─► Principal

A key whose checksum is wrong costs no query. Whatever is wrong with a key, the answer is the same.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from holdfast.config import ServerConfig
from holdfast.contract.keys import Keys, Principal, RecordAuditEntry
from holdfast.errors import AmbiguousCredentials, Forbidden, HoldfastError, Unauthenticated
from holdfast.model.api_key_text import hash_key
from holdfast.model.keys import Role
from holdfast.server.auth.login_throttle import LoginThrottle
from holdfast.server.auth.proxies import Proxies
from holdfast.server.auth.rates import Rates
from holdfast.server.auth.settings import AuthMode, AuthSettings, check_start

DEFAULT_ORG = "default"
LONGEST_CREDENTIALS = 1_024


async def open_authenticator(
    keys: Keys,
    settings: AuthSettings | None = None,
    binds: Sequence[str] = ("127.0.0.1",),
    config: ServerConfig | None = None,
) -> Authenticator:
    """The guard of a server that listens on `binds`. Raises UnprotectedServer or InvalidServer instead of letting
    everybody in."""
    settings = settings or AuthSettings()
    return Authenticator(keys, settings, may_be_open=await check_start(settings, binds, keys), config=config)


class Authenticator:
    """One per server. `may_be_open`: only this machine can reach it, so that it may do without keys."""

    def __init__(
        self,
        keys: Keys,
        settings: AuthSettings,
        *,
        may_be_open: bool = False,
        clock: Callable[[], float] = time.monotonic,
        config: ServerConfig | None = None,
    ) -> None:
        config = config or ServerConfig()
        self._proxies = Proxies(config.trusted_proxies)
        self._rates = Rates(config.requests_per_second)
        self._keys = keys
        self._settings = settings
        self._may_be_open = may_be_open
        self._throttle = LoginThrottle(settings.failures_per_minute, settings.addresses, clock)
        self._known: OrderedDict[str, None] = OrderedDict()
        """Hashes that were right before: an address without tries left may go on using them."""
        self._lookups: Counter[str] = Counter()

    async def principal(self, credentials: Sequence[str | bytes], *, address: str, org: str | None = None) -> Principal:
        """Who calls. `credentials` are all values of the `Authorization` header, or of the metadata of that name, as
        they came. `org` is the one in the path, for development without keys; everywhere else the key decides."""
        if len(credentials) > 1:
            raise AmbiguousCredentials(field="authorization")
        if await self._is_open():
            return Principal(org or DEFAULT_ORG, Role.ADMIN)
        if not credentials:
            raise Unauthenticated
        key_hash = hash_key(_bearer(credentials[0]))
        if key_hash is None:
            self._throttle.take(address)
            raise Unauthenticated
        return await self._look_up(key_hash, address)

    def address(self, peer: str, forwarded: Sequence[str | bytes]) -> str:
        """From where a call comes. `forwarded` are all values of `X-Forwarded-For`."""
        return self._proxies.address(peer, forwarded)

    def count(self, principal: Principal, address: str) -> None:
        """One more request. Raises TooManyRequests."""
        self._rates.take(principal.key_id or address)

    async def check_again(self, principal: Principal) -> None:
        """For streams and long polls, about once a second. Raises Unauthenticated once the key counts no more."""
        if principal.key_hash is None:
            if not await self._is_open():
                raise Unauthenticated
            return
        found = await self._keys.authenticate(principal.key_hash)
        if found != principal:
            raise Unauthenticated

    def require(self, principal: Principal, role: Role) -> None:
        if not principal.role.allows(role):
            raise Forbidden(
                f"this needs a key with the role {role.value!r}; yours is {principal.role.value!r}",
                role=principal.role.value,
                needed=role.value,
            )

    async def record(
        self,
        principal: Principal,
        action: str,
        subject: str = "",
        *,
        address: str = "",
        outcome: str = "done",
        detail: str = "",
    ) -> None:
        """Add to the record of the principal's org."""
        request = RecordAuditEntry(
            org=principal.org,
            action=action,
            subject=subject,
            outcome=outcome,
            detail=detail,
            by=principal,
            address=address,
        )
        await self._keys.record(request)

    @asynccontextmanager
    async def audited(
        self, principal: Principal, action: str, subject: str = "", *, address: str = ""
    ) -> AsyncIterator[None]:
        """Around an act that its org's record must know. The row comes first: what can't be recorded is not done. If it
        is refused, another row says so."""
        await self.record(principal, action, subject, address=address, outcome="begun")
        try:
            yield
        except HoldfastError as refusal:
            await self.record(principal, action, subject, address=address, outcome=refusal.code)
            raise

    async def _is_open(self) -> bool:
        """Whether this call needs no key. The first key that is made ends that, within a second."""
        if not self._may_be_open:
            return False
        return self._settings.mode is AuthMode.DEV or not await self._keys.any()

    async def _look_up(self, key_hash: str, address: str) -> Principal:
        # A new key takes its try before the question is asked, or a thousand calls at once would all be asked. A key
        # that is right gets it back.
        trusted = key_hash in self._known or self._lookups[key_hash] > 0
        if not trusted:
            self._throttle.take(address)
        self._lookups[key_hash] += 1
        try:
            principal = await self._keys.authenticate(key_hash)
        except Unauthenticated:
            self._known.pop(key_hash, None)
            if trusted:
                self._throttle.charge(address)
            raise
        except BaseException:
            if not trusted:
                self._throttle.give_back(address)
            raise
        finally:
            self._lookups[key_hash] -= 1
            if not self._lookups[key_hash]:
                del self._lookups[key_hash]
        if not trusted:
            self._throttle.give_back(address)
        self._remember(key_hash)
        return principal

    def _remember(self, key_hash: str) -> None:
        self._known[key_hash] = None
        self._known.move_to_end(key_hash)
        while len(self._known) > self._settings.known_keys:
            self._known.popitem(last=False)


def _bearer(value: str | bytes) -> bytes:
    """The key in the value of a header; nothing if it holds anything else."""
    if len(value) > LONGEST_CREDENTIALS:
        return b""
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
    scheme, _, key = raw.partition(b" ")
    return key if scheme.lower() == b"bearer" else b""
