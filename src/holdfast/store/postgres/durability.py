"""What becomes of answered calls when the server crashes, or a standby takes its place.

PostgreSQL answers a commit as its settings say: when it is on disk here, when a standby has it too, or before either.
Which of these holds can be asked; a standby that has never been heard of can't.
"""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple

from holdfast.config import StoreConfig
from holdfast.errors import ServerNotSupported

_log = logging.getLogger("holdfast.store")

# A slot stays when its standby is away. Logical ones are subscribers, and none of them will ever be the primary; a
# backup that is being taken will not either. What others do may be hidden from us, but not that they are there.
_REPLICATION: Final = """
SELECT current_setting('fsync') = 'on', current_setting('synchronous_standby_names'),
    (SELECT count(*) FROM pg_stat_replication r WHERE r.state IS DISTINCT FROM 'backup' AND NOT EXISTS (
        SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid)),
    (SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT temporary)
"""
_NOT_WAITED_FOR: Final = frozenset({"off", "local"})
NOT_ON_DISK: Final = "not_on_disk"


class DurabilityRisk(NamedTuple):
    """A way in which answered calls can be lost, and what to do about it. `code` is stable."""

    code: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}"


async def durability_risks(connection: Any, synchronous: str) -> list[DurabilityRisk]:
    """In what ways this server may lose what it has answered; `synchronous` is its synchronous_commit."""
    on_disk, names, without_slot, slots = await connection.fetchrow(_REPLICATION)
    found = []
    if synchronous == "off":
        found.append(
            DurabilityRisk(
                "answers_early",
                "it answers before a commit is on disk (synchronous_commit = off): if the server crashes, the last "
                "moments of answered calls are lost",
                "set it to on",
            )
        )
    standbys = without_slot + slots
    if standbys and (not names or synchronous in _NOT_WAITED_FOR):
        why = f"synchronous_commit = {synchronous}" if names else "synchronous_standby_names is empty"
        found.append(
            DurabilityRisk(
                "standby_not_waited_for",
                f"it has {standbys} standby{'s' if standbys > 1 else ''}, and does not wait for "
                f"{'any of them' if standbys > 1 else 'it'} ({why}): if one takes its place, the last moments of "
                "answered calls are lost",
                "name those that may in synchronous_standby_names, with synchronous_commit = on",
            )
        )
    if not on_disk:
        found.append(DurabilityRisk(NOT_ON_DISK, "it does not write commits to disk (fsync = off)", "set it to on"))
    return found


async def check_durability(connection: Any, name: str, config: StoreConfig, synchronous: str) -> None:
    """Say what may be lost, once; with `require_sync`, refuse the server instead."""
    if config.synchronous != "full" and not config.require_sync:
        return
    found = await durability_risks(connection, synchronous)
    if not config.require_sync:
        for risk in found:
            if risk.code != NOT_ON_DISK:  # nobody sets that without meaning it
                _log.warning("%s: %s, or say synchronous='normal' if that is meant", name, risk)
    elif found:
        raise ServerNotSupported(
            f"{name} may lose what it has answered, and require_sync forbids that: {'; and '.join(map(str, found))}",
            path=name,
            found=[str(risk) for risk in found],
        )
