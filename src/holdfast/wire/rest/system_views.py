"""The server about itself, as JSON."""

from __future__ import annotations

from datetime import datetime

from holdfast.contract.upkeep import RecoveryReport
from holdfast.model.keys import Role
from holdfast.wire.rest.views import View


class HealthView(View, frozen=True, kw_only=True):
    status: str


class MeView(View, frozen=True, kw_only=True):
    """`key_id` is null where there are no keys. `payload_bytes` is how large one payload may be. `now` is the time by
    which leases and timers are judged."""

    org: str
    role: Role
    key_id: str | None = None
    payload_bytes: int = 64 * 1024 * 1024
    now: datetime | None = None


class RecoveryView(View, frozen=True, kw_only=True):
    """What was found and done. `stuck` are executions that can't go on by themselves."""

    open_executions: int = 0
    sessions_expired: int = 0
    turns_reclaimed: int = 0
    tasks_reclaimed: int = 0
    timers_fired: int = 0
    made_ready: int = 0
    timers_restored: int = 0
    tasks_restored: int = 0
    waits_restored: int = 0
    promises_restored: int = 0
    stuck: tuple[str, ...] = ()


def recovery_view(report: RecoveryReport) -> RecoveryView:
    return RecoveryView(**{name: getattr(report, name) for name in RecoveryView.__struct_fields__})
