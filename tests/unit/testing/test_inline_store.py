"""The store of the testing kit is a store like any other."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from holdfast.config import StoreConfig
from holdfast.store.protocol import BatchSource, Clock, Store
from holdfast.testing.inline_store import InlineStore
from verification.stores import OpenStore, StoreConformance


class TestInlineStore(StoreConformance):
    """In memory, on the event loop alone: the same suite as every other store."""

    shared = False

    def transient_error(self) -> Exception:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        return error

    @pytest.fixture
    async def open_store(self) -> AsyncIterator[OpenStore]:
        async with AsyncExitStack() as stack:

            async def open_another(clock: Clock, source: BatchSource) -> Store:
                store = InlineStore(StoreConfig(), clock)
                await store.open(source)
                stack.push_async_callback(store.close)
                return store

            yield open_another
