"""Why something does not happen: an execution that does not move, an event that nobody has got."""

from __future__ import annotations

from collections.abc import Awaitable
from enum import StrEnum
from typing import Protocol

import msgspec

from holdfast.contract.execution_reads import ExecutionInfo
from holdfast.expressions import Finding as FilterPart
from holdfast.model.messages import DeadEvent, PublishedRow, SubscriptionRow


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    BAD = "bad"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was found, and what to do about it. `code` is stable: for programs."""

    level: Level
    text: str
    next: str = ""
    code: str = ""


class ExecutionExplained(msgspec.Struct, frozen=True, kw_only=True):
    """Where an execution stands; the most important finding first."""

    execution: ExecutionInfo
    findings: tuple[Finding, ...]


class ConsideredWait(msgspec.Struct, frozen=True, kw_only=True):
    """A wait that an event was held against. `reason` says what refused it, or why it has not got it all the same;
    `parts` are those of its filter with what they saw."""

    wait: SubscriptionRow
    satisfied: bool
    reason: str
    parts: tuple[FilterPart, ...] = ()


class EventExplained(msgspec.Struct, frozen=True, kw_only=True):
    """An event, and the open waits of its key. `more`: there are more than are shown."""

    event: PublishedRow | DeadEvent
    waits: tuple[ConsideredWait, ...]
    more: bool = False


class Explanations(Protocol):
    def execution(self, org: str, execution_id: str) -> Awaitable[ExecutionExplained]:
        """Why an execution does not move, or how it ended. Raises ExecutionNotFound."""
        ...

    def event(self, org: str, event_id: int) -> Awaitable[EventExplained]:
        """Why an event that is kept or dead went to whom it went. Raises EventNotFound."""
        ...
