"""An open store to try things on: a clock that is set by hand, and batches made up on the spot."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.store.protocol import BatchSource, Changes, Clock, Loaded, LoadPlan, Store

OpenStore = Callable[[Clock, BatchSource], Awaitable[Store]]
Decide = Callable[[Loaded], Changes]

START = 1_800_000_000_000_000


class Member:
    """One plan and decision, and whoever waits for what was loaded."""

    def __init__(self, plan: LoadPlan, decide: Decide) -> None:
        self._plan = plan
        self._decide = decide
        self._loop = asyncio.get_running_loop()
        self.waiting_since = self._loop.time()
        self._loaded = Loaded(now=0)
        self.future: asyncio.Future[Loaded] = self._loop.create_future()

    def plan(self) -> LoadPlan:
        return self._plan

    def decide(self, loaded: Loaded) -> Changes:
        self._loaded = loaded
        return self._decide(loaded)

    def committed(self) -> None:
        self._loop.call_soon_threadsafe(self.future.set_result, self._loaded)

    def failed(self, error: BaseException) -> None:
        self._loop.call_soon_threadsafe(self.future.set_exception, error)

    def commit_in_doubt(self, error: BaseException) -> None: ...

    def split(self) -> Sequence[Member]:
        return [self]


class Group:
    """Several members in one transaction. Their plans and changes are put one after another."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        self.waiting_since = members[0].waiting_since

    def plan(self) -> LoadPlan:
        plan = LoadPlan()
        for member in self._members:
            plan.executions |= member.plan().executions
        return plan

    def decide(self, loaded: Loaded) -> Changes:
        changes = Changes()
        for member in self._members:
            more = member.decide(loaded)
            changes.new_executions += more.new_executions
            changes.changed_executions.update(more.changed_executions)
            changes.ready.update(more.ready)
            changes.events += more.events
        return changes

    def committed(self) -> None:
        for member in self._members:
            member.committed()

    def failed(self, error: BaseException) -> None:
        for member in self._members:
            member.failed(error)

    def commit_in_doubt(self, error: BaseException) -> None: ...

    def split(self) -> Sequence[Member]:
        return self._members


class Source:
    """Hands out what was put in, in order."""

    def __init__(self) -> None:
        self.waiting: deque[Member | Group] = deque()

    def take(self) -> Member | Group | None:
        return self.waiting.popleft() if self.waiting else None

    def writer_idle(self, *, writing: bool) -> None:
        """Nobody here has anything else to do."""

    def data_loss_detected(self) -> None:
        """Nobody here remembers anything."""

    def refuse_late(self, before: float, error: Exception) -> None:
        """Nobody here has a deadline."""


class Bench:
    """A store, its source and its clock."""

    store: Store

    def __init__(self) -> None:
        self.now = START
        self.source = Source()

    @classmethod
    async def opened(cls, open_store: OpenStore) -> Bench:
        bench = cls()
        bench.store = await open_store(bench.clock, bench.source)
        return bench

    def clock(self) -> int:
        return self.now

    async def run(self, plan: LoadPlan, decide: Decide) -> Loaded:
        """One transaction; what it loaded."""
        member = Member(plan, decide)
        self.source.waiting.append(member)
        self.store.wake()
        return await member.future

    async def write(self, **changes: Any) -> None:
        """One transaction that makes these changes."""
        await self.run(LoadPlan(), lambda _: Changes(**changes))

    async def load(self, **plan: Any) -> Loaded:
        """One transaction that looks and changes nothing."""
        return await self.run(LoadPlan(**plan), lambda _: Changes())

    async def run_together(self, members: Sequence[tuple[LoadPlan, Decide]]) -> list[Loaded | BaseException]:
        """One transaction for all of them; how each ended."""
        made = [Member(plan, decide) for plan, decide in members]
        self.source.waiting.append(Group(made))
        self.store.wake()
        return await asyncio.gather(*(member.future for member in made), return_exceptions=True)
