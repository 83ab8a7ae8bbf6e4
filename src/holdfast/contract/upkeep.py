"""Upkeep: what the background services ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec


class DueWork(msgspec.Struct, frozen=True):
    """What one pass over the due timers, due tasks and expired sessions did. `more` asks for another pass at once."""

    timers_fired: int = 0
    tasks_timed_out: int = 0
    sessions_expired: int = 0
    turns_reclaimed: int = 0
    tasks_reclaimed: int = 0
    more: bool = False


class RecoveryReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `recover()` found and did."""

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

    @property
    def repaired(self) -> int:
        restored = self.timers_restored + self.tasks_restored + self.waits_restored + self.promises_restored
        return self.made_ready + restored


class Upkeep(Protocol):
    def run_due(self) -> Awaitable[DueWork]:
        """Fire due timers, time out due tasks, take back what expired sessions held: one page of each."""
        ...

    def next_due_at(self, after: int) -> Awaitable[int | None]:
        """When to make the next pass, given that the last one began at `after`."""
        ...

    def watch_due(self, callback: Callable[[int], None]) -> None:
        """`callback(at)` is called, on the loop, whenever something becomes due at an instant."""
        ...

    def claim(self) -> Awaitable[None]:
        """Hand unleased work to the sessions of this process that have room."""
        ...

    def poll_changes(self) -> Awaitable[bool]:
        """Notice what other processes have committed: news, closed executions, new work. True if there was anything."""
        ...

    def until_changed(self, wait_s: float) -> Awaitable[None]:
        """Wait until another process has committed, as far as the database tells, and no longer than this."""
        ...

    def work_done(self) -> int:
        """How many operations this process has run by now."""
        ...

    def prune(self) -> Awaitable[bool]:
        """Forget request ids older than their time to live."""
        ...

    def remove_closed(self) -> Awaitable[bool]:
        """Remove a page of the executions that have been closed for longer than they are kept; whether there is
        more."""
        ...

    def delete_orgs(self) -> Awaitable[bool]:
        """Remove a page of the rows of orgs that were deleted; whether there is more."""
        ...

    def now(self) -> int: ...

    def recover(self, org: str) -> Awaitable[RecoveryReport]: ...
