"""A crowd of executions that wait for one broadcast, written straight through a store: quicker than running them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from holdfast.assembly import SystemClock, open_store
from holdfast.config import EngineConfig, StoreConfig
from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Execution, State
from holdfast.model.ids import execution_id
from holdfast.model.messages import SubscriptionKind, SubscriptionRow
from holdfast.model.values import Wait
from holdfast.store.protocol import Changes, Loaded, LoadPlan

KIND = "waits_for_all_clear"
NAME = "all clear"
PAGE = 5_000


class _Write:
    """One transaction that writes a page of the crowd."""

    def __init__(self, ids: Sequence[str], name: str, wait: SubscriptionKind, now: int) -> None:
        self._page = (ids, name, wait, now)
        self._loop = asyncio.get_running_loop()
        self.waiting_since = self._loop.time()
        self.done: asyncio.Future[None] = self._loop.create_future()

    def plan(self) -> LoadPlan:
        return LoadPlan(numbering=True)

    def decide(self, loaded: Loaded) -> Changes:
        ids, name, wait, now = self._page
        changes = Changes()
        for number, made in enumerate(ids, start=loaded.last_id + 1):
            _add(changes, number, made, name=name, wait=wait, now=now)
        changes.last_id = loaded.last_id + len(ids)
        return changes

    def committed(self) -> None:
        self._loop.call_soon_threadsafe(self.done.set_result, None)

    def failed(self, error: BaseException) -> None:
        self._loop.call_soon_threadsafe(self.done.set_exception, error)

    def commit_in_doubt(self, error: BaseException) -> None: ...

    def split(self) -> Sequence[_Write]:
        return [self]


class _Source:
    def __init__(self) -> None:
        self.waiting: list[_Write] = []

    def take(self) -> _Write | None:
        return self.waiting.pop(0) if self.waiting else None

    def writer_idle(self, *, writing: bool) -> None:
        """Nobody has anything else to do."""

    def data_loss_detected(self) -> None:
        """Nobody here remembers anything."""

    def refuse_late(self, before: float, error: Exception) -> None:
        """Nobody here has a deadline."""


async def write_waiting(
    database_url: str, count: int, *, name: str = NAME, wait: SubscriptionKind = SubscriptionKind.BROADCAST
) -> list[str]:
    """As many executions as if each had been started and had run `await ctx.wait_for_broadcast(name)`, or that for
    another kind of wait; their ids."""
    clock = SystemClock()
    store = open_store(database_url, EngineConfig(store=StoreConfig(synchronous="normal")), clock)
    source = _Source()
    await store.open(source)
    ids: list[str] = []
    try:
        for first in range(0, count, PAGE):
            now = clock()
            page = [execution_id(now, 0, number) for number in range(first, min(first + PAGE, count))]
            ids += page
            write = _Write(page, name, wait, now)
            source.waiting.append(write)
            store.wake()
            await write.done
    finally:
        await store.close()
    return ids


def _add(changes: Changes, number: int, made: str, *, name: str, wait: SubscriptionKind, now: int) -> None:
    waiting_for = (Wait(str(wait), name, 1),)
    events = list(_events(made, name, now, waiting_for))
    changes.new_executions.append(
        Execution(
            id=made,
            org="default",
            workflow_id=made,
            kind=KIND,
            version="1",
            queue="default",
            priority=0,
            state=State.OPEN,
            created_at=now,
            updated_at=now,
            last_seq=len(events),
            seen_seq=len(events),
            open_waits=1,
            epoch=1,
            waiting_for=waiting_for,
        )
    )
    changes.events += [(made, HistoryEvent(seq, now, body)) for seq, body in enumerate(events, start=1)]
    changes.new_subscriptions[number] = SubscriptionRow(
        id=number,
        execution_id=made,
        wait_no=1,
        org="default",
        kind=wait,
        key=name,
        created_at=now,
    )


def _events(made: str, name: str, now: int, waiting_for: tuple[Wait, ...]) -> Iterator[e.EventBody]:
    yield e.WorkflowStarted(kind=KIND, workflow_id=made)
    yield e.WaitStarted(up_to=1, wait_no=1, kind=waiting_for[0].kind, key=name)
    yield e.TurnCompleted(up_to=1, scheduled_at=now, started_at=now, worker="w", waiting_for=waiting_for)
