from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import asyncpg
import pytest

from holdfast.config import StoreConfig
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.protocol import BatchSource, Clock, Store
from holdfast.testing.stores import OpenStore, StoreConformance

QUICK = StoreConfig()


@pytest.fixture
async def open_store(postgres_url: str) -> AsyncIterator[OpenStore]:
    """Opens stores on one database, and closes them."""
    async with AsyncExitStack() as stack:

        async def open_(clock: Clock, source: BatchSource) -> Store:
            store = PostgresStore(postgres_url, QUICK, clock)
            await store.open(source)
            stack.push_async_callback(store.close)
            return store

        yield open_


class TestPostgres(StoreConformance):
    """The suite on a database of its own for each test."""

    shared = True

    def transient_error(self) -> Exception:
        return asyncpg.DeadlockDetectedError("deadlock detected")
