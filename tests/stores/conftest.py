"""Stores on PostgreSQL. Modules about other stores have an `open_store` of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from holdfast.config import StoreConfig
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.protocol import BatchSource, Clock, Store
from verification.stores import OpenStore


@pytest.fixture
async def open_store(postgres_url: str) -> AsyncIterator[OpenStore]:
    """Opens stores on one database, and closes them."""
    async with AsyncExitStack() as stack:

        async def open_(clock: Clock, source: BatchSource) -> Store:
            store = PostgresStore(postgres_url, StoreConfig(), clock)
            await store.open(source)
            stack.push_async_callback(store.close)
            return store

        yield open_
