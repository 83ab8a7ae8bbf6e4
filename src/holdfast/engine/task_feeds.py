"""Who follows a task: what it says, how far it is, which attempt runs, how it ends.

A follower registers first, then reads, then is told that there is something to read. Whichever of a task's followers
comes first reads for all of them, and not more often than every `PAUSE_S`; who is too slow for what is remembered
reads on from the store. Nothing is held, and nothing read, while nothing happens. All on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple

from holdfast.contract.task_output import OutputPage, TaskEnd, TaskFeedItem, TaskFeedItemKind
from holdfast.engine.checks import check_number
from holdfast.errors import ExecutionNotFound, InvalidRequest, TaskNotFound
from holdfast.model.events import HistoryEvent, TaskCancelRequested, TaskCompleted, TaskFailed, TaskScheduled
from holdfast.model.executions import Execution, OutputRow, TaskRow
from holdfast.model.standalone import TASK_NO, TASK_WORKFLOW
from holdfast.model.validation import check_name
from holdfast.model.values import Failure
from holdfast.store.protocol import Changes, Store, TaskKey

REMEMBERED = 256
REMEMBERED_BYTES = 1024 * 1024
PAGE = 256
HISTORY_PAGE = 1_000
PAUSE_S = 0.03
LARGEST = 2**62

_PAST = (TaskScheduled.TYPE, TaskCompleted.TYPE, TaskFailed.TYPE, TaskCancelRequested.TYPE)


class End(NamedTuple):
    """How a task ended. The attempt is 0 where its history does not say."""

    status: TaskEnd
    at: int
    attempt: int = 0
    failure: Failure | None = None


class TaskFeed:
    """What is known of a task that somebody follows. All kept chunks above `trimmed_to` are remembered. `stale`: there
    may be something to read; `more`: there is."""

    __slots__ = (
        "chunks",
        "end",
        "followers",
        "last_seq",
        "lock",
        "more",
        "org",
        "read_at",
        "row",
        "size",
        "stale",
        "trimmed_to",
        "waiters",
    )

    def __init__(self, org: str, after: int) -> None:
        self.org = org
        self.trimmed_to = self.last_seq = after
        self.chunks: deque[OutputRow] = deque()
        self.size = 0
        self.row: TaskRow | None = None
        self.end: End | None = None
        self.stale = True
        self.more = False
        self.read_at = float("-inf")
        self.followers = 0
        self.lock = asyncio.Lock()
        self.waiters: set[asyncio.Future[None]] = set()

    def add(self, chunks: Iterable[OutputRow]) -> None:
        for chunk in chunks:
            if chunk.seq > self.last_seq:
                self.chunks.append(chunk)
                self.size += len(memoryview(chunk.data))
                self.last_seq = chunk.seq
        while len(self.chunks) > REMEMBERED or self.size > REMEMBERED_BYTES:
            oldest = self.chunks.popleft()
            self.size -= len(memoryview(oldest.data))
            self.trimmed_to = oldest.seq

    def after(self, seq: int) -> list[OutputRow] | None:
        """The chunks after a number; None if they are not remembered any more."""
        if seq >= self.last_seq:
            return []
        return None if seq < self.trimmed_to else [chunk for chunk in self.chunks if chunk.seq > seq]

    def touch(self) -> None:
        """There may be something new."""
        self.stale = True
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

    async def wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self.waiters.add(waiter)
        try:
            await waiter
        finally:
            self.waiters.discard(waiter)


class Watcher:
    """What one follower has been shown."""

    __slots__ = ("after", "attempt", "progress")

    def __init__(self, after: int) -> None:
        self.after = after
        self.attempt = 0
        self.progress: float | None = None

    def add_output(self, chunks: list[OutputRow], row: TaskRow | None) -> list[TaskFeedItem]:
        pending_events = []
        for chunk in chunks:
            if chunk.attempt != self.attempt:
                pending_events.append(self._start(chunk.attempt, chunk.at, row))
            pending_events.append(
                TaskFeedItem(
                    kind=TaskFeedItemKind.OUTPUT,
                    attempt=chunk.attempt,
                    at=chunk.at,
                    seq=chunk.seq,
                    data=chunk.data,
                    dropped=chunk.seq - self.after - 1,
                )
            )
            self.after = chunk.seq
        return pending_events

    def read(self, row: TaskRow) -> list[TaskFeedItem]:
        """What the row says beyond what was said: only when all of that is shown, so that the order is true."""
        pending_events = []
        if row.attempt > self.attempt and row.started_at is not None:
            pending_events.append(self._start(row.attempt, row.started_at, row))
        if row.progress is not None and row.progress != self.progress:
            self.progress = row.progress
            at = row.heartbeat_at or row.started_at or row.scheduled_at
            pending_events.append(
                TaskFeedItem(kind=TaskFeedItemKind.PROGRESS, attempt=row.attempt, at=at, progress=row.progress)
            )
        return pending_events

    def _start(self, attempt: int, at: int, row: TaskRow | None) -> TaskFeedItem:
        """Why the one before is over only the row knows, and of the newest attempt alone."""
        self.attempt = attempt
        failure = row.last_failure if row is not None and row.attempt == attempt else None
        return TaskFeedItem(kind=TaskFeedItemKind.ATTEMPT, attempt=attempt, at=at, failure=failure)


class TaskFeeds:
    """The tasks of this process that somebody follows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._feeds: dict[tuple[str, TaskKey], TaskFeed] = {}
        self._stopped: BaseException | None = None

    # --- reading ---

    async def page(self, org: str, execution_id: str, task_no: int, after: int, limit: int) -> OutputPage:
        key = _checked(execution_id, task_no, after)
        found = await self._store.task_output(org, *key, after, limit + 1)
        if not found and await self._store.task(org, *key) is None:
            await self._end_of(org, key)
        return OutputPage(tuple(found[:limit]), len(found) > limit)

    async def follow(
        self, org: str, execution_id: str, task_no: int, after: int = 0
    ) -> AsyncIterator[list[TaskFeedItem]]:
        key = _checked(execution_id, task_no, after)
        self._check()
        feed = self._feeds.setdefault((org, key), TaskFeed(org, after))
        feed.followers += 1
        watcher = Watcher(after)
        try:
            while True:
                await self._refresh(feed, key)
                chunks = feed.after(watcher.after)
                if chunks is None:
                    chunks = await self._store.task_output(org, *key, watcher.after, PAGE)
                pending_events = watcher.add_output(chunks, feed.row)
                shown = not feed.more and (watcher.after >= feed.last_seq or not chunks)
                if shown and feed.row is not None:
                    pending_events += watcher.read(feed.row)
                if shown and feed.end is not None:
                    yield [*pending_events, _ended(feed.end, watcher.attempt)]
                    return
                if pending_events:
                    yield pending_events
                elif not feed.stale and shown:
                    self._check()
                    await feed.wait()
        finally:
            feed.followers -= 1
            if not feed.followers and self._feeds.get((org, key)) is feed:
                del self._feeds[org, key]

    async def _refresh(self, feed: TaskFeed, key: TaskKey) -> None:
        """Read what is new, for all who follow; whoever comes meanwhile waits for that."""
        async with feed.lock:
            if not feed.stale:
                return
            loop = asyncio.get_running_loop()
            pause_s = feed.read_at + PAUSE_S - loop.time()
            if pause_s > 0:
                await asyncio.sleep(pause_s)
            feed.stale = False
            try:
                # In this order: all that a task has said is there before its row is gone.
                row = await self._store.task(feed.org, *key)
                chunks = await self._store.task_output(feed.org, *key, feed.last_seq, PAGE)
                if row is None and feed.end is None:
                    feed.end = await self._end_of(feed.org, key)
            except BaseException:
                feed.stale = True
                raise
            feed.row = row
            feed.add(chunks)
            feed.read_at = loop.time()
            feed.more = len(chunks) == PAGE
            if feed.more:
                feed.touch()

    async def _end_of(self, org: str, key: TaskKey) -> End | None:
        """How a task without a row ended; None if it has not, as the task of a standalone one before it has begun.
        Raises ExecutionNotFound, TaskNotFound."""
        execution_id, task_no = key
        found = (await self._store.executions(org, [execution_id])).get(execution_id)
        if found is None:
            raise ExecutionNotFound(
                f"no execution {execution_id!r} in org {org!r}: check the id; list_workflows() shows what there is",
                execution_id=execution_id,
            )
        known, after = False, 0
        while True:
            events = await self._store.history(org, execution_id, after, HISTORY_PAGE, _PAST)
            for event in events:
                if getattr(event.body, "task_no", None) == task_no:
                    known = True
                    end = _end_in(event)
                    if end is not None:
                        return end
            if len(events) < HISTORY_PAGE:
                break
            after = events[-1].seq
        if not known and not (found.kind == TASK_WORKFLOW and task_no == TASK_NO):
            raise TaskNotFound(
                f"execution {execution_id} has no task {task_no}: its tasks are numbered from 1 in the order in which "
                "they were asked for",
                execution_id=execution_id,
                task_no=task_no,
            )
        return _closed(found)

    def _check(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    # --- what happens ---

    def committed(self, changes: Changes) -> None:
        """A batch of this process has been written."""
        if not self._feeds:
            return
        fresh = {(task.execution_id, task.task_no) for task in changes.new_tasks}
        touched = fresh.union(changes.changed_tasks, changes.deleted_tasks)
        for (_, key), feed in self._feeds.items():
            if key in touched or key[0] in changes.state_changed:
                feed.touch()

    def poll_changes(self) -> None:
        """Other processes have written."""
        for feed in self._feeds.values():
            feed.touch()

    def start(self) -> None:
        self._stopped = None

    def stop(self, error: BaseException) -> None:
        self._stopped = error
        for feed in self._feeds.values():
            feed.wake(error)


def _checked(execution_id: str, task_no: int, after: int) -> TaskKey:
    check_name(execution_id, "workflow_execution_id")
    check_number(task_no, "task_no")
    if type(after) is not int or not 0 <= after < LARGEST:
        raise InvalidRequest(f"after must be the number of a chunk, or 0, not {after!r:.50}", field="after")
    return execution_id, task_no


def _end_in(event: HistoryEvent) -> End | None:
    match event.body:
        case TaskCompleted() as body:
            return End(TaskEnd.COMPLETED, event.at, body.attempt)
        case TaskFailed() as body:
            return End(TaskEnd.FAILED, event.at, body.attempt, body.failure)
        case TaskCancelRequested():
            return End(TaskEnd.CANCELLED, event.at)
    return None


def _closed(execution: Execution) -> End | None:
    """What becomes of the tasks of a closed execution."""
    return None if execution.is_open else End(TaskEnd.CANCELLED, execution.closed_at or execution.updated_at)


def _ended(end: End, attempt: int) -> TaskFeedItem:
    return TaskFeedItem(
        kind=TaskFeedItemKind.ENDED, attempt=end.attempt or attempt, at=end.at, status=end.status, failure=end.failure
    )
