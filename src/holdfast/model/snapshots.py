"""The state of a program as its worker has stored it, so that a rebuild need not begin with the first event."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.model.records import table

SNAPSHOT_BYTES: Final = 16 * 1024 * 1024
"""The most a snapshot may have. A program whose state is larger is rebuilt from an older snapshot, or from event 1."""


@table("holdfast_snapshots", key=("execution_id",), owner="execution_id")
class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A program when it had seen event `up_to` and its turn was recorded. `version` and `build` are those of the
    definition that has made it; only that definition's front-end can read `state`."""

    execution_id: str
    org: str = ""
    """Of its execution. The engine fills it in: a worker need not say it."""
    up_to: int
    version: str
    build: str
    state: bytes
