"""Channels to a server: addresses, metadata, and what an RPC's end means."""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import grpc

from holdfast.errors import (
    DeadlinePassed,
    EngineStopped,
    Forbidden,
    HoldfastError,
    InvalidRequest,
    InvalidServer,
    ServerUnreachable,
    Unauthenticated,
    Unavailable,
    UnexpectedAnswer,
    revived,
)
from holdfast.transport.grpc.failures import read_details

log = logging.getLogger("holdfast.client.remote")

CODE = "holdfast-code"
DETAILS = "holdfast-details-bin"
DEFAULT_PORT = 7234
LARGEST_MESSAGE = 128 * 1024 * 1024

_STATUS: dict[Any, type[HoldfastError]] = {
    grpc.StatusCode.UNAVAILABLE: ServerUnreachable,
    grpc.StatusCode.CANCELLED: ServerUnreachable,
    grpc.StatusCode.UNKNOWN: ServerUnreachable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlinePassed,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: Forbidden,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Unavailable,
    grpc.StatusCode.UNIMPLEMENTED: UnexpectedAnswer,
}


@dataclass(frozen=True, slots=True)
class Address:
    target: str
    secure: bool


def addresses(server: str) -> tuple[Address, ...]:
    """`grpc://host:port`, `grpcs://host:port` for TLS; several hosts with commas between them."""
    scheme, _, rest = str(server).partition("://")
    if scheme not in {"grpc", "grpcs"} or not rest:
        raise InvalidServer(
            f"{_shown(str(server))} is not the address of a server for workers: use grpc://host:port, or grpcs:// for "
            "TLS",
            field="server",
        )
    return tuple(_address(part.strip(), secure=scheme == "grpcs") for part in rest.rstrip("/").split(","))


def _address(text: str, *, secure: bool) -> Address:
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port or DEFAULT_PORT
    except ValueError as error:
        reason = f": {error}" if "@" not in text else ""
        raise InvalidServer(f"{_shown(text)} is not host:port{reason}", field="server") from None
    if not parts.hostname or parts.path or parts.query or parts.fragment or parts.username is not None:
        raise InvalidServer(f"{_shown(text)} is not host:port; a key is given as api_key=", field="server")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Address(f"{host}:{port}", secure)


def _shown(text: str) -> str:
    """What was given, unless there may be a key in it."""
    return "this" if "@" in text or "?" in text else f"{text!r:.200}"


def is_local(target: str) -> bool:
    host = target.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_channel(address: Address, *, keepalive_s: float, authority: bytes | None = None) -> Any:
    """A channel of its own, which tries at once: one that failed before would first wait. `authority` is the PEM of the
    certificates to trust, instead of the system's."""
    options = [
        ("grpc.max_receive_message_length", LARGEST_MESSAGE),
        ("grpc.max_send_message_length", LARGEST_MESSAGE),
        ("grpc.keepalive_time_ms", int(keepalive_s * 1000)),
        ("grpc.keepalive_timeout_ms", int(keepalive_s * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_retries", 0),
        # A proxy in the environment is not asked for: see GrpcSettings and the documentation of grpc.
        ("grpc.enable_http_proxy", 0),
    ]
    if address.secure:
        return grpc.secure_channel(address.target, grpc.ssl_channel_credentials(authority), options)
    return grpc.insecure_channel(address.target, options)


def metadata(api_key: str | None) -> list[tuple[str, str]]:
    return [] if api_key is None else [("authorization", f"Bearer {api_key}")]


def error_of(ended: Any) -> HoldfastError:
    """What the end of an RPC means: the error that the server has raised, or that it was not reached."""
    trailer = dict(ended.trailing_metadata() or ())
    code, text = trailer.get(CODE), ended.details() or ""
    if code is not None:
        details = trailer.get(DETAILS, b"")
        error = revived(str(code), text, read_details(details if isinstance(details, bytes) else b""))
        # Theirs has stopped, not ours: somebody else may answer, or the same one after a while.
        return ServerUnreachable(error.message) if isinstance(error, EngineStopped) else error
    cls = _STATUS.get(ended.code(), UnexpectedAnswer)
    return cls(f"{ended.code().name.lower()}: {text}" if text else None)
