"""Feeds: what is committed, as it is committed. For those who watch; nothing depends on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Protocol

from holdfast.model.events import HistoryEvent


class Feeds(Protocol):
    def history(self, org: str, execution_id: str, after: int = 0) -> AsyncIterator[list[HistoryEvent]]:
        """The events after number `after`, those that are there and those that come, each once and in order, in pieces.
        Ends after the last event of a closed execution. Raises ExecutionNotFound.

        Any number may follow one execution at the cost of one; nothing of the database is held while there is nothing
        new.
        """
        ...

    def changed(self, org: str, seen: int) -> Awaitable[int]:
        """Waits until something of the org's executions may have changed, and answers the number to ask with next.
        Start with 0, which is answered at once. Changes that come together are told once."""
        ...
