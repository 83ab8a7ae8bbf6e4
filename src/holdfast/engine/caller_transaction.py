"""Operations inside a transaction of the caller's: the same plan and the same rules, but its commit is not ours.

Nothing is handed to a worker, answered to anybody else or kept in memory, because it may never be committed. What is
decided waits in the database like something another process has written.

This process comes to look at what was committed in one of two ways. On SQLite the caller holds the write lock until the
transaction ends, so that an operation that is put into the queue now runs only after that end, without knowing of the
commit. On PostgreSQL it runs at once and finds nothing; there the store watches the transaction, and tells when it was
committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from holdfast.config import EngineConfig
from holdfast.engine.group_commit import plan_operation
from holdfast.engine.idempotency import decide_once
from holdfast.engine.operation import Operation
from holdfast.engine.rules.unit_of_work import Entropy, UnitOfWork
from holdfast.engine.workers.claim import Claim
from holdfast.errors import EngineStopped, HoldfastError
from holdfast.model.executions import Execution, TaskRow
from holdfast.store.protocol import Batch, Changes, Loaded, LoadPlan

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine

Answer = TypeVar("Answer")
log = logging.getLogger("holdfast.engine")


class NoPlacement:
    """A placement that knows no session of this process: work stays where every process can claim it, and holders are
    told through the database."""

    def for_turn(self, execution: Execution) -> str | None:
        return None

    def for_task(self, task: TaskRow) -> str | None:
        return None

    def is_local(self, session: str) -> bool:
        return False

    def local_sessions(self) -> list[str]:
        return []

    def retire(self, session: str) -> None: ...

    def turn_done(self, session: str, execution: Execution) -> None: ...

    def turn_lost(self, execution_id: str, holder: str | None) -> None: ...

    def cleared(self, session: str, execution: Execution) -> None: ...

    def alive(self, session: str) -> None: ...

    def task_done(self, session: str) -> None: ...


class JoinedOperation(Generic[Answer]):
    """A batch of one operation. A refusal is raised: there is nobody else whom it could spoil."""

    answer: Answer
    due_at: int | None = None
    waiting_since = 0.0

    def __init__(
        self,
        operation: Operation[Any, Answer],
        config: EngineConfig,
        entropy: Entropy,
        on_commit: Callable[[int | None], None],
    ) -> None:
        self._operation = operation
        self._config = config
        self._entropy = entropy
        self._on_commit = on_commit

    def plan(self) -> LoadPlan:
        plan = LoadPlan(retained_per_key=self._config.limits.events_per_key)
        self._once = plan_operation(self._operation, plan)
        return plan

    def decide(self, loaded: Loaded) -> Changes:
        uow = UnitOfWork(loaded, self._config, NoPlacement(), self._entropy)
        self.answer = decide_once(self._operation, uow) if self._once else self._operation.decide(uow)
        self.due_at = uow.due_at
        return uow.changes

    def committed(self) -> None:
        """Told, on the loop, by a store that can watch the caller's transaction."""
        self._on_commit(self.due_at)

    def failed(self, error: BaseException) -> None:
        """Never told: the error is raised."""

    def commit_in_doubt(self, error: BaseException) -> None:
        """Never told: the commit is the caller's."""

    def split(self) -> list[Batch]:
        return [self]


class CallerTransactions:
    """What callers ask for in their own transactions, and the look around after each."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._poller: asyncio.Task[None] | None = None
        self._poll_again = False

    async def run(self, operation: Operation[Any, Answer], using: Any) -> Answer:
        """On any thread. Waits for nothing but a connection that lives in a thread of its own: with any other it can be
        driven to its end in one go."""
        engine = self._engine
        if engine.loop is None or engine.loop.is_closed():
            raise EngineStopped
        joined = JoinedOperation(operation, engine.config, engine.queue.entropy, self._joined)
        waiting: Awaitable[None] | None = engine.store.run_on(using, joined)
        if waiting is not None:
            await waiting
        with suppress(RuntimeError):  # the loop has been closed since: what was written stands, and others find it
            engine.loop.call_soon_threadsafe(self._joined, joined.due_at)
        return joined.answer

    def _joined(self, due_at: int | None) -> None:
        self._engine.upkeep.notify_due(due_at)
        if self._poller is None or self._poller.done():
            assert self._engine.loop is not None, "it runs on this loop"
            self._poller = self._engine.loop.create_task(self._poll_changes(), name="holdfast-joined")
        else:
            self._poll_again = True

    async def _poll_changes(self) -> None:
        """When the caller's transaction is over, or may be. A hint: the services look by themselves, only later."""
        again = True
        while again:
            self._poll_again = False
            try:
                await self._engine.queue.submit(Claim(self._engine.dispatcher))
                await self._engine.upkeep.poll_changes()
                self._engine.upkeep.notify_due(await self._engine.store.next_due_at(self._engine.store.clock()))
            except EngineStopped:
                return
            except HoldfastError as error:
                log.info("what was committed with an application's transaction is looked for later: %s", error)
            again = self._poll_again

    async def stop(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
