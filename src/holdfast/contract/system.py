"""The server about itself: who asks, whether it works, its figures; and `recover`."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from holdfast.contract.operation import GET, ORG, POST, Record, Request, operation
from holdfast.contract.principals import Principal
from holdfast.contract.upkeep import RecoveryReport
from holdfast.model.keys import Role

SYSTEM: Final = "system"
_PROBES: Final = "gRPC servers have a health service of their own"


class CallerInfo(Record, frozen=True, kw_only=True):
    """Who asks. `key_id` is None where there are no keys. `payload_bytes` is how large one payload may be. `now` is the
    time by which leases and timers are judged."""

    org: str
    role: Role
    key_id: str | None = None
    payload_bytes: int = 64 * 1024 * 1024
    now: datetime | None = None


class Health(Record, frozen=True, kw_only=True):
    """`alive` or `ready`."""

    status: str


@operation("who_am_i", GET, "/api/me", Role.READER, tag=SYSTEM)
class WhoAmI(Request[CallerInfo], frozen=True, kw_only=True):
    """The org and role of the key."""

    org: str = ""
    by: Principal | None = None


@operation("recover", POST, f"{ORG}/recover", Role.ADMIN, tag=SYSTEM, waits=True)
class Recover(Request[RecoveryReport], frozen=True, kw_only=True):
    """Do at once what the services do in time, check every waiting execution, report."""


@operation(
    "metrics",
    GET,
    "/metrics",
    Role.READER,
    tag=SYSTEM,
    media="text/plain; version=0.0.4; charset=utf-8",
    no_rpc="Prometheus scrapes over HTTP",
)
class ReadMetrics(Request[bytes], frozen=True, kw_only=True):
    """Figures for Prometheus; with a key, of its org alone."""

    by: Principal | None = None


@operation("healthz", GET, "/healthz", None, tag=SYSTEM, no_rpc=_PROBES)
class CheckAlive(Request[Health], frozen=True, kw_only=True):
    """Whether the process is alive."""


@operation("readyz", GET, "/readyz", None, tag=SYSTEM, no_rpc=_PROBES)
class CheckReady(Request[Health], frozen=True, kw_only=True):
    """Whether it can work: the database answers."""
