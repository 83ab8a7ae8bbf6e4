"""One call: who asks, what is asked, and how a refusal is told.

    bytes ─► who (metadata) ─► message ─► role, org ─► handler ─► message
                                                          └─► HoldfastError ─► status, code and details in the trailer

Messages are read here and not by grpc: what it can't read it reports as INTERNAL, and only we know that it is the
caller's fault.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, Protocol

import grpc
import msgspec
from google.protobuf.message import DecodeError

from holdfast.contract.keys import Principal
from holdfast.errors import Forbidden, HoldfastError, InvalidRequest, OrgNotFound
from holdfast.model.keys import Role
from holdfast.model.validation import check_name
from holdfast.server.errors import details_of, grpc_status

log = logging.getLogger("holdfast.server.grpc")

CODE = "holdfast-code"
DETAILS = "holdfast-details-bin"
LONGEST_TEXT = 1_000
LONGEST_DETAILS = 2_000
"""A trailer that is too large would replace the error by another one."""
DEFAULT_ORG = "default"


class Guard(Protocol):
    """Who may come in: see holdfast.server.auth."""

    async def principal(self, credentials: list[str | bytes], *, address: str, org: str | None = None) -> Principal: ...

    async def check_again(self, principal: Principal) -> None: ...

    def address(self, peer: str, forwarded: Sequence[str | bytes]) -> str: ...

    def count(self, principal: Principal, address: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was let in. `org` is the one it is about; `request_id` makes a repeat of it harmless."""

    principal: Principal
    org: str
    request_id: str | None


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC with a single answer. `handle` gets the call and the message."""

    name: str
    request: Any
    response: Any
    role: Role
    handle: Callable[[Call, Any], Awaitable[Any]]


def read_message(cls: Any, data: bytes) -> Any:
    """Raises InvalidRequest."""
    try:
        return cls.FromString(data)
    except DecodeError as error:
        raise InvalidRequest(f"this is not a {cls.DESCRIPTOR.name}: {error}") from error


class Caller:
    """What the metadata say, read once: grpc makes them anew whenever it is asked."""

    __slots__ = ("_peer", "credentials", "forwarded", "request_ids")

    def __init__(self, context: Any) -> None:
        self._peer = context.peer()
        self.credentials: list[str | bytes] = []
        self.forwarded: list[str | bytes] = []
        self.request_ids: list[str] = []
        for key, value in context.invocation_metadata():
            if key == "authorization":
                self.credentials.append(value)
            elif key == "x-forwarded-for":
                self.forwarded.append(value)
            elif key == "idempotency-key":
                self.request_ids.append(value)

    async def identify(self, guard: Guard) -> Principal:
        """Who calls; it counts as one request. Raises Unauthenticated and its kin, TooManyRequests."""
        address = guard.address(address_of(self._peer), self.forwarded)
        principal = await guard.principal(self.credentials, address=address)
        guard.count(principal, address)
        return principal

    @property
    def request_id(self) -> str | None:
        if len(self.request_ids) > 1:
            raise InvalidRequest("there are several idempotency-key in the metadata", field="idempotency-key")
        return self.request_ids[0] if self.request_ids else None


def enter(principal: Principal, role: Role, org_id: str) -> str:
    """The org of the call. Another org than the key's is as unknown as one that does not exist."""
    if not principal.role.allows(role):
        raise Forbidden(
            f"this needs a key with the role {role.value!r}; yours is {principal.role.value!r}",
            role=principal.role.value,
            needed=role.value,
        )
    if principal.key_id is None:
        org = org_id or DEFAULT_ORG
        check_name(org, "org_id")
        return org
    if org_id and org_id != principal.org:
        raise OrgNotFound("no such org")
    return principal.org


@lru_cache(maxsize=1_024)
def address_of(peer: str) -> str:
    """The caller's address without its port: `ipv4:127.0.0.1:50000`, `ipv6:%5B::1%5D:50000`, `unix:`."""
    kind, _, rest = peer.partition(":")
    if kind not in {"ipv4", "ipv6"}:
        return str(kind)
    return str(rest.rpartition(":")[0].replace("%5B", "").replace("%5D", "").strip("[]"))


async def refuse(context: Any, error: HoldfastError) -> NoReturn:
    """End the call with the error's status; its code and details are in the trailer."""
    details = msgspec.json.encode(details_of(error))
    shown = details if len(details) <= LONGEST_DETAILS else b"{}"
    trailer: list[tuple[str, str | bytes]] = [(CODE, error.code), (DETAILS, shown)]
    wait_s = error.details.get("retry_after_s")
    if wait_s is not None:
        # The name that gRPC's own retries look for.
        trailer.append(("grpc-retry-pushback-ms", str(max(1, round(wait_s * 1000)))))
    text = error.message if len(error.message) <= LONGEST_TEXT else f"{error.message[:LONGEST_TEXT]} ..."
    await context.abort(grpc.StatusCode[grpc_status(error)], text, trailing_metadata=tuple(trailer))
    raise AssertionError("abort raises")


async def break_down(context: Any, what: str, error: Exception) -> NoReturn:
    """Our own fault: it goes to the log, and the caller learns no more than that."""
    log.error("%s broke", what, exc_info=error)
    await context.abort(
        grpc.StatusCode.INTERNAL,
        "the server could not do this; its log says why",
        trailing_metadata=((CODE, "internal_error"),),
    )
    raise AssertionError("abort raises")
