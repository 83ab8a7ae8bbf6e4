"""Who follows what is committed: histories of single executions, and the executions of an org as a whole.

A follower registers first, then reads, then is told: whatever happens between is seen by one of them. One feed per
execution, however many follow it; who is too slow for its few remembered events reads on from the store. What other
processes commit is found by `poll_changes`. All on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence

from holdfast.engine.task_feeds import TaskFeeds
from holdfast.errors import ExecutionNotFound
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Execution
from holdfast.model.validation import check_name
from holdfast.store.protocol import Store

REMEMBERED = 64
PAGE = 500


class Feed:
    """What is known of one execution that somebody follows."""

    __slots__ = ("closed", "events", "followers", "last_seq", "org", "waiters")

    def __init__(self, org: str) -> None:
        self.org = org
        self.last_seq = 0
        self.closed = False
        self.followers = 0
        self.events: deque[HistoryEvent] = deque(maxlen=REMEMBERED)
        self.waiters: set[asyncio.Future[None]] = set()

    def execution_row(self, execution: Execution) -> None:
        self.last_seq = max(self.last_seq, execution.last_seq)
        self.closed = self.closed or not execution.is_open

    def add(self, events: Sequence[HistoryEvent]) -> None:
        fresh = [event for event in events if event.seq > self.last_seq]
        if not fresh:
            return
        if self.events and self.events[-1].seq + 1 != fresh[0].seq:
            self.events.clear()
        self.events.extend(fresh)
        self.last_seq = fresh[-1].seq
        self.closed = self.closed or fresh[-1].body.TERMINAL
        self.wake()

    def wake(self, error: BaseException | None = None) -> None:
        waiters, self.waiters = self.waiters, set()
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    def after(self, seq: int) -> list[HistoryEvent] | None:
        """The events after a number; None if they are not remembered any more."""
        if seq >= self.last_seq:
            return []
        if not self.events or self.events[0].seq > seq + 1:
            return None
        return [event for event in self.events if event.seq > seq]

    async def wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self.waiters.add(waiter)
        try:
            await waiter
        finally:
            self.waiters.discard(waiter)


class LocalFeeds:
    """`contract.feeds.Feeds`, in process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._feeds: dict[str, Feed] = {}
        self._ticks: dict[str, int] = {}
        self._watchers: dict[str, set[asyncio.Future[None]]] = {}
        self.tasks = TaskFeeds(store)
        self._elsewhere = 0
        self._stopped: BaseException | None = None

    async def history(self, org: str, execution_id: str, after: int = 0) -> AsyncIterator[list[HistoryEvent]]:
        check_name(execution_id, "workflow_execution_id")
        feed = self._enter(org, execution_id)
        try:
            await self._read_execution(feed, org, execution_id)
            while True:
                events = feed.after(after)
                if events is None:
                    events = await self._store.history(org, execution_id, after, PAGE)
                if events:
                    after = events[-1].seq
                    yield events
                elif feed.closed and after >= feed.last_seq:
                    return
                else:
                    self._check()
                    await feed.wait()
        finally:
            self._leave(execution_id, feed)

    def _enter(self, org: str, execution_id: str) -> Feed:
        self._check()
        feed = self._feeds.get(execution_id)
        if feed is None or feed.org != org:
            feed = Feed(org)
            # Under the id of another org nothing is found: such a feed ends before it is told of anything.
            self._feeds.setdefault(execution_id, feed)
        feed.followers += 1
        return feed

    def _leave(self, execution_id: str, feed: Feed) -> None:
        feed.followers -= 1
        if not feed.followers and self._feeds.get(execution_id) is feed:
            del self._feeds[execution_id]

    async def _read_execution(self, feed: Feed, org: str, execution_id: str) -> None:
        if feed.last_seq:
            return
        found = await self._store.executions(org, [execution_id])
        if execution_id not in found:
            raise ExecutionNotFound(
                f"no execution {execution_id!r} in org {org!r}: check the id; list_workflows() shows what there is",
                execution_id=execution_id,
            )
        feed.execution_row(found[execution_id])

    async def changed(self, org: str, seen: int) -> int:
        while (now := self._tick(org)) <= seen:
            self._check()
            waiter = asyncio.get_running_loop().create_future()
            watchers = self._watchers.setdefault(org, set())
            watchers.add(waiter)
            try:
                await waiter
            finally:
                watchers.discard(waiter)
                if not watchers and self._watchers.get(org) is watchers:
                    del self._watchers[org]
        return now

    def _tick(self, org: str) -> int:
        return 1 + self._ticks.get(org, 0) + self._elsewhere

    def _check(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    # --- what happens ---

    def committed(self, appended: Mapping[str, Sequence[HistoryEvent]], orgs: Collection[str]) -> None:
        """A batch of this process has been written."""
        if self._feeds:
            for execution_id in self._feeds.keys() & appended.keys():
                self._feeds[execution_id].add(appended[execution_id])
        for org in orgs:
            self._ticks[org] = self._ticks.get(org, 0) + 1
            if org in self._watchers:
                self._wake(org)

    def _wake(self, org: str) -> None:
        for waiter in list(self._watchers.get(org, ())):
            if not waiter.done():
                waiter.set_result(None)

    async def poll_changes(self) -> None:
        """Other processes have written: read on, where an execution that is followed has got events."""
        self._elsewhere += 1
        self.tasks.poll_changes()
        for org in list(self._watchers):
            self._wake(org)
        for org in {feed.org for feed in self._feeds.values()}:
            ids = [key for key, feed in self._feeds.items() if feed.org == org]
            for execution_row in (await self._store.executions(org, ids)).values():
                await self._read_on(execution_row)

    async def _read_on(self, execution_row: Execution) -> None:
        feed = self._feeds.get(execution_row.id)
        while feed is not None and feed.last_seq < execution_row.last_seq:
            events = await self._store.history(execution_row.org, execution_row.id, feed.last_seq, PAGE)
            if not events:
                return
            feed.add(events)

    def start(self) -> None:
        self._stopped = None
        self.tasks.start()

    def stop(self, error: BaseException) -> None:
        self._stopped = error
        self.tasks.stop(error)
        for feed in self._feeds.values():
            feed.wake(error)
        for watchers in self._watchers.values():
            for waiter in watchers:
                if not waiter.done():
                    waiter.set_exception(error)
