"""The conformance suite on the store in memory."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from holdfast.errors import EngineStopped, InvalidRequest, StorageBusy
from holdfast.store.protocol import BatchSource, Changes, Clock, LoadPlan, Store
from verification.memory import MemoryDatabase, MemoryStore
from verification.stores import Bench, OpenStore, StoreConformance
from verification.stores.bench import Member, Source


@pytest.fixture
async def open_store() -> AsyncIterator[OpenStore]:
    """Opens nodes of one database, and closes them."""
    database = MemoryDatabase()
    async with AsyncExitStack() as stack:

        async def open_(clock: Clock, source: BatchSource) -> Store:
            store = MemoryStore(database, clock)
            await store.open(source)
            stack.push_async_callback(store.close)
            return store

        yield open_


class TestMemory(StoreConformance):
    shared = True

    def transient_error(self) -> Exception:
        return StorageBusy("somebody else is writing")


async def test_a_closed_store_answers_nothing(open_store: OpenStore) -> None:
    """As every other store."""
    bench = await Bench.opened(open_store)
    await bench.store.close()

    with pytest.raises(EngineStopped):
        await bench.store.next_due_at(0)


async def test_there_is_no_connection_to_join() -> None:
    """Refused, and the batch is not run."""
    member = Member(LoadPlan(), lambda _: Changes())
    with pytest.raises(InvalidRequest) as refused:
        MemoryStore(MemoryDatabase(), lambda: 0).run_on(object(), member)
    assert refused.value.field == "using"
    assert Source().take() is None
