"""A commit of the store in memory whose answer is lost: applied or not, it counts once, and those who can't wait are
told that nobody knows."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import OutcomeUnknown
from holdfast.store.protocol import Batch, Changes, Loaded, LoadPlan
from verification.memory import Faults, InDoubtCommit, MemoryDatabase, MemoryStore
from verification.stores.records import an_execution, an_id


class Once(Faults):
    """The answer to the first commit is lost."""

    def __init__(self, in_doubt: InDoubtCommit) -> None:
        self._in_doubt = [in_doubt]

    def in_doubt(self) -> InDoubtCommit | None:
        return self._in_doubt.pop() if self._in_doubt else None


class Writes:
    """A batch that makes one execution, and keeps what it is told."""

    waiting_since = 0.0

    def __init__(self) -> None:
        self.told: list[str] = []
        self.unknown: BaseException | None = None
        self.decided = 0
        self.done = asyncio.Event()

    def plan(self) -> LoadPlan:
        return LoadPlan(executions={an_id(1)})

    def decide(self, loaded: Loaded) -> Changes:
        self.decided += 1
        return Changes(new_executions=[an_execution(1)])

    def committed(self) -> None:
        self.told.append("committed")
        self.done.set()

    def failed(self, error: BaseException) -> None:
        self.told.append("failed")
        self.done.set()

    def commit_in_doubt(self, error: BaseException) -> None:
        self.told.append("doubted")
        self.unknown = error

    def split(self) -> list[Batch]:
        return [self]


class Source:
    def __init__(self, *batches: Writes) -> None:
        self._batches = list(batches)

    def take(self) -> Batch | None:
        return self._batches.pop(0) if self._batches else None

    def writer_idle(self, *, writing: bool) -> None: ...

    def data_loss_detected(self) -> None: ...

    def refuse_late(self, before: float, error: Exception) -> None: ...


async def written(in_doubt: InDoubtCommit) -> tuple[Writes, MemoryDatabase]:
    database, batch = MemoryDatabase(), Writes()
    store = MemoryStore(database, lambda: 0, Once(in_doubt))
    await store.open(Source(batch))
    store.wake()
    await batch.done.wait()
    await store.close()
    return batch, database


@pytest.mark.parametrize("stands", [True, False])
async def test_it_counts_once(stands: bool) -> None:
    """One that does not stand is made again."""
    batch, database = await written(InDoubtCommit(stands, 0.001, notified_after_s=1.0))

    assert ["committed"] == batch.told
    assert [an_id(1)] == list(database.execution_rows)
    assert (1 if stands else 2) == batch.decided


@pytest.mark.parametrize("stands", [True, False])
async def test_whoever_can_not_wait_is_told(stands: bool) -> None:
    """Then the truth comes all the same."""
    batch, database = await written(InDoubtCommit(stands, 0.02, notified_after_s=0.001))

    assert ["doubted", "committed"] == batch.told
    assert isinstance(batch.unknown, OutcomeUnknown)
    assert [an_id(1)] == list(database.execution_rows)


async def test_a_store_that_closes_waits_for_the_truth() -> None:
    """What is under way is known when it is closed."""
    database, batch = MemoryDatabase(), Writes()
    store = MemoryStore(database, lambda: 0, Once(InDoubtCommit(stands=False, lasts_s=0.01, notified_after_s=1.0)))
    await store.open(Source(batch))
    store.wake()
    await asyncio.sleep(0)
    await store.close()

    assert ["committed"] == batch.told
